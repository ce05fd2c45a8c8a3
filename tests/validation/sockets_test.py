#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NCCL over sockets against our own runs of 2, 4 and 8 ranks (calibration/data/h200-2gpu-hosts-over-sockets, h200-2gpu-pat-over-sockets). A machine's own sockets
are no wire and its threads no cluster's, so what is compared is how times grow with the ranks, not the times. Arguments: program,
source folder."""
import pathlib
import re
import sys
import tempfile

import logs

DATA = ("calibration/data/h200-2gpu-hosts-over-sockets/hosts-over-sockets.txt", "calibration/data/h200-2gpu-pat-over-sockets/pat-over-sockets.txt")
LIMIT = 0.25  # of a ratio
LIMIT_OF_PAT = 0.35  # eight processes on two GPUs get in each other's way, with more bytes too much to compare
# Of a message, and of what a kernel adds to a hop: inside a machine, docs/models/nccl.md.
PARAMETERS = {"nccl.socket_message_time": "4 us", "nccl.hop_time.ring.simple.socket": "16.7 us", "connectx-7-ndr.latency": "0 us"}
TOPOLOGY = """schema: fabricast/topology/1
name: hosts
hosts:
  - name: node
    count: {hosts}
    host:
      processor: xeon-emeraldrapids
      sockets: 1
      devices:
        - {{name: gpu0, type: h200-sxm, below: socket0, pcie: gen5 x16}}
        - {{name: hca0, type: connectx-7-ndr, below: socket0, pcie: gen5 x16}}
fabric: {{single_switch: {{switch: qm9700, cable: 1 m}}}}
parameters:
{parameters}
"""


def tables(path: pathlib.Path) -> dict:
    """Heading to size to microseconds."""
    found, rows = {}, {}
    for line in path.read_text().splitlines():
        if line.startswith("# "):
            rows = found.setdefault(line[2:], {})
        elif match := re.search(r"size (\d+) time_us ([\d.]+)$", line):
            rows[int(match[1])] = float(match[2])
    return found


def forecast_us(program: str, folder: pathlib.Path, hosts: int, workload: str, size: int) -> float:
    parameters = "\n".join(f"  {name}: {{value: {value}, source: own runs}}" for name, value in PARAMETERS.items())
    (folder / "topology.yaml").write_text(TOPOLOGY.format(hosts=hosts, parameters=parameters))
    scenario = folder / "scenario.yaml"
    scenario.write_text(
        "schema: fabricast/scenario/1\nname: hosts\ntopology: topology.yaml\nsoftware: {transport: tcp, nccl: {version: \"2.28.9\"}}\n"
        f"workload: {{{workload}, launch: process_per_gpu, sizes: [{size} B]}}\n")
    return logs.forecast(program, scenario)["rows"][0]["time_ps"] * 1e-6


PAT = "all_gather, NCCL_ALGO=allreduce:ring;allgather:pat;reducescatter:pat NCCL_PROTO=Simple"
PAT_WORKLOAD = "benchmark: all_gather_perf, algorithm: pat, protocol: simple"
# What ran, the workload that says it, bytes, ranks to compare with two, limit.
CASES = [
    ("all_reduce, NCCL_ALGO=Tree NCCL_PROTO=Simple", "benchmark: all_reduce_perf, algorithm: tree, protocol: simple", 67108864, (4, 8), LIMIT),
    ("all_reduce, NCCL_ALGO=Tree NCCL_PROTO=LL", "benchmark: all_reduce_perf, algorithm: tree, protocol: ll", 67108864, (4, 8), LIMIT),
    ("all_reduce, NCCL_ALGO=Ring NCCL_PROTO=Simple", "benchmark: all_reduce_perf, algorithm: ring, protocol: simple", 67108864, (4, 8), LIMIT),
    ("alltoall, NCCL's own choice", "benchmark: alltoall_perf", 67108864, (4, 8), LIMIT),
    ("alltoall, NCCL's own choice", "benchmark: alltoall_perf", 1024, (4, 8), LIMIT),
    (PAT, PAT_WORKLOAD, 1024, (4, 8), LIMIT_OF_PAT),
    (PAT, PAT_WORKLOAD, 65536, (4,), LIMIT_OF_PAT),
    (PAT, PAT_WORKLOAD, 67108864, (4,), LIMIT_OF_PAT),
    ("all_gather, NCCL_ALGO=Ring NCCL_PROTO=Simple", "benchmark: all_gather_perf, algorithm: ring, protocol: simple", 65536, (4, 8), LIMIT),
]


def main() -> int:
    program, source = sys.argv[1], pathlib.Path(sys.argv[2])
    measured, failures = {heading: rows for name in DATA for heading, rows in tables(source / name).items()}, 0
    with tempfile.TemporaryDirectory() as folder:
        for what, workload, size, compared, limit in CASES:
            log = {ranks: measured[f"{ranks} hosts of one GPU under MPS, {what}"][size] for ranks in (2, *compared)}
            times = {ranks: forecast_us(program, pathlib.Path(folder), ranks, workload, size) for ranks in (2, *compared)}
            for ranks in compared:
                ratio, expected = times[ranks] / times[2], log[ranks] / log[2]
                is_good = abs(ratio / expected - 1) <= limit
                failures += not is_good
                print(f"{what}, {size} B: {ranks} ranks take {ratio:.2f} times as long as 2, measured {expected:.2f}{'' if is_good else ': too far'}")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main())
