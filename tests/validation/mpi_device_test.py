#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""MPI messages and collectives of buffers in two GPUs of one host (calibration/data/h200-2gpu-mpi-device) against their forecasts: per table the median
error must stay below its limit. Arguments: program, source folder."""
import pathlib
import re
import statistics
import sys
import tempfile

import logs

DATA = "calibration/data/h200-2gpu-mpi-device"
SOFTWARE = {"ucx sm,self,cuda_copy,cuda_ipc": "mpi: open-mpi-ucx, gdrcopy: off", "smcuda": "mpi: open-mpi-openib"}
# Median error of a table at most; of windows and of collectives with an own part, whose copies take longer in this machine.
LIMITS = {"osu_latency": 0.13, "osu_bw": 0.27, "osu_bcast": 0.12, "osu_allreduce": 0.18, "osu_reduce_scatter": 0.15, "osu_allgather": 0.19, "osu_alltoall": 0.19}


def tables(folder: pathlib.Path) -> dict:
    """(transport, benchmark) to bytes to microseconds, or MB/s of osu_bw; device buffers of two GPUs only."""
    found = {}
    for name in ("pairs.txt", "collectives.txt"):
        transport, rows = None, None
        for line in (folder / name).read_text().splitlines():
            if line.startswith("## "):
                transport = line[3:]
            elif head := re.match(r"# (osu_\w+), 2 ranks, (\w\w), (\d) GPUs", line):
                is_judged = transport in SOFTWARE and head[2] == "DD" and head[3] == "2"
                rows = found.setdefault((transport, head[1]), {}) if is_judged else None
            elif rows is not None and (row := re.match(r"(\d+)\s+([\d.]+)", line)):
                rows[int(row[1])] = float(row[2])
    return found


def main() -> int:
    program, source = sys.argv[1], pathlib.Path(sys.argv[2])
    failures, points = 0, 0
    with tempfile.TemporaryDirectory() as name:
        scenario = pathlib.Path(name) / "scenario.yaml"
        for (transport, benchmark), rows in sorted(tables(source / DATA).items()):
            scenario.write_text(f"schema: fabricast/scenario/1\nname: pair\ntopology: {source / 'topologies' / 'h200-2gpu-vm.yaml'}\nsoftware: {{{SOFTWARE[transport]}}}\n"
                                f"workload: {{benchmark: {benchmark}, gpus: 2, ranks_per_host: 2, buffers: [device, device], sizes: [{', '.join(f'{size} B' for size in rows)}]}}\n")
            errors = []
            for row in logs.forecast(program, scenario)["rows"]:
                size = row["size_bytes"]
                measured = size / rows[size] if benchmark == "osu_bw" else rows[size]
                errors.append(row["time_ps"] * 1e-6 / measured - 1)
            median = statistics.median(map(abs, errors))
            points += len(errors)
            failures += median > LIMITS[benchmark]
            print(f"{'FAILED ' if median > LIMITS[benchmark] else ''}{transport}, {benchmark}: {100 * median:.1f} % off, bias {100 * statistics.median(errors):+.1f} %, at most {100 * LIMITS[benchmark]:.0f}")
    print(f"{points} points")
    return failures > 0 or points < 200


if __name__ == "__main__":
    sys.exit(main())
