#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs in SimGrid's SMPI take what the forecast says. Arguments: fabricast, source folder, folder for files.

OSU-style latency, bandwidth and all-reduce, each row within 5 % of the forecast, gather and scatter within 35 %: ranks from 2 to 17 (powers of two and
others, with hosts below several switches) on fat trees of one, two (V100 nodes, EDR) and eight adapters per host and on a dragonfly, rings, doubling and Rabenseifner, eager and rendezvous,
messages that share cables. A further program checks the data of every collective. Exit 77: smpicc is not installed."""
import json
import pathlib
import shutil
import subprocess
import sys

LIMIT_S = 300  # of one command

MOST = 0.05
# Ranks of programs in SimGrid leave a barrier together, those that a forecast describes do not.
MOST_ENTERED_APART = 0.9
LARGEST_ENTERED_APART = 1024
MOST_ROOTED = 0.35  # of means over ranks; what one core copies for several messages at once only the forecast knows


def run(command: list) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


class Bench:
    def __init__(self, fabricast: str, source: pathlib.Path, folder: pathlib.Path):
        self.fabricast, self.source, self.folder = fabricast, source, folder
        self.num_rows, self.failures = 0, []

    def build(self, path: pathlib.Path) -> pathlib.Path:
        out = self.folder / path.stem
        run(["smpicc", "-O1", path, "-o", out])
        return out

    def forecast(self, topology: str, workload: str) -> dict:
        scenario = self.folder / "forecast.yaml"
        scenario.write_text("schema: fabricast/scenario/1\nname: forecast\n"
                            f"topology: {self.source}/topologies/{topology}\n"
                            f"workload: {{{workload}, sizes: {{from: 1 B, to: 4 MiB}}}}\n")
        result = json.loads(run([self.fabricast, "run", scenario, "--format", "json"]))
        return {row["size_bytes"]: row["time_ps"] / 1e6 for row in result["workloads"][0]["rows"]}

    def compare(self, topology: str, ranks: int, program: list, workload: str, is_bandwidth: bool = False, most: float = MOST):
        expected = self.forecast(topology, workload)
        out = run([self.fabricast, "mpi", self.source / "topologies" / topology, "-n", str(ranks), "--ranks-per-host", "1", *program])
        for line in out.splitlines():
            if line.startswith("#"):
                continue
            size, value = int(line.split()[0]), float(line.split()[1])
            if size not in expected:
                continue
            found = size / value if is_bandwidth else value
            self.num_rows += 1
            # Programs print two decimals.
            allowed = MOST_ENTERED_APART if most == MOST_ROOTED and size <= LARGEST_ENTERED_APART else most
            if abs(found - expected[size]) > allowed * expected[size] + 0.006:
                self.failures.append(f"{topology}, {workload}, {ranks} ranks, {size} B: {found:.2f} us, forecast {expected[size]:.2f}")


def main() -> int:
    if shutil.which("smpicc") is None:
        print("skipped: smpicc is not installed (apt-get install libsimgrid-dev)")
        return 77
    source, folder = pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    bench = Bench(sys.argv[1], source, folder)
    latency, bandwidth, all_reduce = (bench.build(source / "scenarios/mpi" / f"{name}.c") for name in ("latency", "bandwidth", "allreduce"))
    for topology, counts in (("dgx-a100-16.yaml", (3, 6, 16)), ("fat-tree-roce-128.yaml", (2, 5, 8, 9, 11)), ("abci-v100.yaml", (3, 17)), ("dragonfly-72.yaml", (12, 24))):
        bench.compare(topology, 2, [latency], "benchmark: osu_latency")
        bench.compare(topology, 2, [bandwidth], "benchmark: osu_bw", is_bandwidth=True)
        for ranks in counts:
            bench.compare(topology, ranks, [all_reduce], f"benchmark: osu_allreduce, ranks: {ranks}, ranks_per_host: 1")
    rooted = bench.build(source / "tests/programs/rooted.c")
    for kind in ("gather", "scatter"):
        for ranks in (2, 3, 5, 8, 16):
            bench.compare("dgx-a100-16.yaml", ranks, [rooted, kind], f"benchmark: osu_{kind}, ranks: {ranks}, ranks_per_host: 1", most=MOST_ROOTED)
    data = bench.build(source / "tests/programs/data.c")
    for ranks in (2, 5, 8):
        out = run([sys.argv[1], "mpi", source / "topologies/dgx-a100-pair.yaml", "-np", str(ranks), data, "-n", "7", "--quick"])
        if out != f"{ranks} ranks: all data right\n":
            bench.failures.append(f"data of {ranks} ranks: {out}")
    for failure in bench.failures:
        print(failure)
    print(f"{bench.num_rows} rows, {len(bench.failures)} apart")
    return 1 if bench.failures or bench.num_rows < 480 else 0


if __name__ == "__main__":
    sys.exit(main())
