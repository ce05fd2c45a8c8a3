#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What NCCL 2.28 itself chose on described machines (calibration/data/h200-2gpu-nccl-decisions) against what the forecast lets it choose:
algorithm, protocol and channels by size. Arguments: program, source folder."""
import pathlib
import re
import sys
import tempfile

import logs

DATA = "calibration/data/h200-2gpu-nccl-decisions/decisions.txt"
MOST_OTHER = 10  # of all choices
BENCHMARKS = {"AllReduce": "all_reduce_perf", "AllGather": "all_gather_perf", "ReduceScatter": "reduce_scatter_perf", "Broadcast": "broadcast_perf"}
ADAPTERS = {10000: "ethernet-10g", 100000: "connectx-6-dx-100g", 200000: "connectx-7-200g", 400000: "connectx-7-400g"}


def topology(hosts: int, gpus: int, speed: int, place: str) -> str:
    lines = [f"        - {{name: sw{i}, kind: pcie_switch, below: socket0, pcie: gen5 x16}}" for i in range(gpus)]
    lines += [f"        - {{name: gpu{i}, type: h200-sxm, below: sw{i}, pcie: gen5 x16}}" for i in range(gpus)]
    lines.append(f"        - {{name: hca0, type: {ADAPTERS[speed]}, below: {'sw0' if place == 'pix' else 'socket0'}, pcie: gen5 x16}}")
    if gpus > 1:
        lines += ["        - {name: nvswitch0, type: nvswitch-3}", "      nvlinks:"]
        lines += [f"        - {{from: gpu{i}, to: nvswitch0, links: 18}}" for i in range(gpus)]
    head = f"schema: fabricast/topology/1\nname: hosts\nhosts:\n  - name: node\n    count: {hosts}\n    host:\n      processor: xeon-emeraldrapids\n      sockets: 1\n      devices:\n"
    return head + "\n".join(lines) + f"\nfabric: {{single_switch: {{switch: sn4600, rate: {speed // 1000} Gb/s, cable: 1 m}}}}\n"


def machines(path: pathlib.Path) -> dict:
    """(hosts, GPUs per host, Mb/s, place) to collective to bytes to (algorithm, protocol, channels)."""
    found, rows = {}, {}
    for line in path.read_text().splitlines():
        if head := re.match(r"# hosts (\d+) gpus_per_host (\d+) speed (\d+) place (\w+)", line):
            rows = found.setdefault((int(head[1]), int(head[2]), int(head[3]), head[4]), {})
        elif one := re.match(r"(\w+): (\d+) Bytes -> Algo (\w+) proto (\w+) channel\{Lo\.\.Hi\}=\{0\.\.(\d+)\}", line):
            rows.setdefault(one[1], {})[int(one[2])] = (one[3].lower(), one[4].lower(), int(one[5]) + 1)
    return found


def forecast(program: str, folder: pathlib.Path, benchmark: str, sizes: list) -> dict:
    scenario = folder / "scenario.yaml"
    scenario.write_text(
        "schema: fabricast/scenario/1\nname: hosts\ntopology: topology.yaml\nsoftware: {transport: tcp, nccl: {version: \"2.28.9\", nvls: off}}\n"
        f"workload: {{benchmark: {benchmark}, launch: process_per_gpu, sizes: [{', '.join(f'{size} B' for size in sizes)}]}}\n")
    return {row["size_bytes"]: (row["algorithm"], row["protocol"], row["channels"]) for row in logs.forecast(program, scenario)["rows"]}


def main() -> int:
    program, source = sys.argv[1], pathlib.Path(sys.argv[2])
    total, others = 0, []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for (hosts, gpus, speed, place), collectives in machines(source / DATA).items():
            (folder / "topology.yaml").write_text(topology(hosts, gpus, speed, place))
            for collective, choices in collectives.items():
                ranks = hosts * gpus if collective in ("AllGather", "ReduceScatter") else 1
                ours = forecast(program, folder, BENCHMARKS[collective], [size * ranks for size in choices])
                for size, choice in choices.items():
                    total += 1
                    if ours[size * ranks] != choice:
                        others.append(f"{hosts} hosts of {gpus}, {speed} Mb/s {place}, {collective} of {size * ranks} B: {ours[size * ranks]}, NCCL {choice}")
    print("\n".join(others))
    print(f"{len(others)} of {total} choices are not NCCL's, at most {MOST_OTHER}")
    return total < 700 or len(others) > MOST_OTHER


if __name__ == "__main__":
    sys.exit(main())
