#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sharing of GPUs and hosts against our own logs, through the program: what `fabricast run` prints for scenarios with
`sharing` and `host_neighbours` is compared with calibration/data. Arguments: program, source folder."""
import csv
import io
import json
import pathlib
import statistics
import subprocess
import sys

LIMIT_S = 300  # of one command

TWO_GPUS = "calibration/data/h200-2gpu-nvswitch-passthrough-vm"
EIGHT_GPUS = "calibration/data/h200-8gpu-nvswitch-passthrough-vm"


def table(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


class Program:
    def __init__(self, path, source):
        self.path = path
        self.source = source

    def times_us(self, scenario, *settings):
        """Predicted times by size, or by label in tables of clients."""
        command = [self.path, "run", scenario, "-q", "--format", "json"]
        for setting in settings:
            command += ["--set", setting]
        done = subprocess.run(command, cwd=self.source, capture_output=True, text=True, check=False, timeout=LIMIT_S)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{done.stderr}")
        rows = json.loads(done.stdout)["rows"]
        for row in rows:
            assert sum(term["time_ps"] for term in row["terms"]) == row["time_ps"], "terms add up"
        return {row.get("label", row["size_bytes"]): row["time_ps"] * 1e-6 for row in rows}


def judge(what, errors, limit):
    median = statistics.median(errors)
    print(f"{what}: median error {median:.1%} of {len(errors)}, limit {limit:.0%}")
    return [] if median <= limit else [what]


def time_slicing(program, source):
    """Period of a kernel for 1 and 2 processes; the kernel is the period alone less the launch gap of 9.3 us."""
    rows = table(source / EIGHT_GPUS / "gpu-time-slicing.tsv")
    alone = {row["kernel_iterations"]: float(row["p50_us"]) for row in rows if row["processes"] == "1"}
    worst = 0
    for row in rows:
        kernel = alone[row["kernel_iterations"]] - 9.3
        clients = f"[{{name: process, kernel: {kernel} us, pause: 9.3 us, count: {row['processes']}}}]"
        predicted = program.times_us("scenarios/gpu-sharing-processes.yaml", f"workload.sharing.clients={clients}")
        measured = float(row["p50_us"])
        worst = max(worst, max(abs(time / measured - 1) for time in predicted.values()))
    print(f"time slices: largest error {worst:.1%} of {len(rows)}, limit 5%")
    return [] if worst <= 0.05 else ["time slices"]


def beside_compute(program, source):
    errors = []
    rows = table(source / TWO_GPUS / "all-reduce-beside-compute-on-the-same-gpu.tsv")
    for kernel in sorted({row["neighbour_kernel_us"] for row in rows}):
        predicted = program.times_us("scenarios/allreduce-beside-compute.yaml",
                                     f"workload.sharing.clients.0.kernel={float(kernel) - 9.3} us")
        errors += [abs(predicted[int(row["size_bytes"])] / float(row["time_us_mean_of_10"]) - 1)
                   for row in rows if row["neighbour_kernel_us"] == kernel]
    return judge("all-reduce beside compute", errors, 0.15)


def neighbours(program, source):
    rows = table(source / TWO_GPUS / "host-neighbours.tsv")
    scenario = {"p2p": "threads", "p2poff": "p2poff", "tcp": "tcp-socket"}
    errors = {}
    for threads, traffic in sorted({(int(row["threads"]), row["memory_traffic_GBps"]) for row in rows}):
        for path, name in scenario.items():
            some = [row for row in rows if int(row["threads"]) == threads and row["path"] == path]
            sizes = ", ".join(f"{row['size_bytes']} B" for row in some)
            predicted = program.times_us(
                f"scenarios/validation/h200vm2-2gpu-all_reduce-{name}.yaml", f"workload.sizes=[{sizes}]",
                f"workload.iterations={10 if path == 'tcp' else 20}",
                f"host_neighbours={{threads: {threads}, vcpus: 32, memory_traffic: {traffic} GB/s}}")
            errors.setdefault(threads, []).extend(
                abs(predicted[int(row["size_bytes"])] / float(row["time_us"]) - 1) for row in some)
    failures = []
    for threads, some in errors.items():
        failures += judge(f"neighbours, {threads} threads", some, 0.10)
    return failures


def main():
    source = pathlib.Path(sys.argv[2])
    program = Program(sys.argv[1], source)
    failures = time_slicing(program, source) + beside_compute(program, source) + neighbours(program, source)
    for failure in failures:
        print(f"above its limit: {failure}")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
