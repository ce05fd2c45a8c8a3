#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every shipped scenario forecasts what it did: forecasts.csv holds the first, the middle and the last row of each of its tables, numbers to five
digits, in the columns of its CSV. A change of numbers is a change that somebody meant: FABRICAST_UPDATE_GOLDEN=1 rewrites the file, its diff shows what moved.
Arguments: program, source folder."""
import concurrent.futures
import csv
import io
import os
import pathlib
import subprocess
import sys

LIMIT_S = 300  # of one command
PROGRAM, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
# Seconds each; scale has tests of its own (tests/growth).
LARGE = {"allreduce-16384-ring", "alltoall-1024", "training-llama3-405b-1024", "allreduce-4096-ring"}
LEFT_OUT = {"scenario", "topology", "fidelity", "is_finished", "algbw_bytes_per_s", "busbw_bytes_per_s"}  # said by the others
FOLDERS = ["scenarios", "scenarios/validation", "scenarios/blind"]


def scenarios() -> list[pathlib.Path]:
    files = [path for folder in FOLDERS for path in sorted((SOURCE / folder).glob("*.yaml"))]
    return [path for path in files if path.stem not in LARGE and "schema: fabricast/scenario/1" in path.read_text()]


def shown(value: str) -> str:
    """A number to five digits, of any compiler; anything else as it is."""
    try:
        return f"{float(value):.5g}"
    except ValueError:
        return value


def rows_of(path: pathlib.Path) -> list[str]:
    name = str(path.relative_to(SOURCE / "scenarios").with_suffix(""))
    done = subprocess.run([PROGRAM, "run", str(path), "--format", "csv", "-q"], cwd=SOURCE, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    tables: dict[str, list[dict[str, str]]] = {}
    for row in csv.DictReader(io.StringIO(done.stdout)):
        tables.setdefault(row.get("workload", ""), []).append(row)
    out = []
    for rows in tables.values():
        for at in sorted({0, len(rows) // 2, len(rows) - 1}):
            out.append(",".join([name, *(shown(value or "") for key, value in rows[at].items() if key not in LEFT_OUT)]))
    return out or [f"{name},exit {done.returncode}"]


def main() -> int:
    held = SOURCE / "tests" / "golden" / "forecasts.csv"
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        lines = [line for rows in pool.map(rows_of, scenarios()) for line in rows]
    if os.environ.get("FABRICAST_UPDATE_GOLDEN") == "1":
        held.write_text("\n".join(lines) + "\n")
        return 0
    expected = held.read_text().splitlines()
    gone, new = sorted(set(expected) - set(lines)), sorted(set(lines) - set(expected))
    for sign, changed in (("-", gone), ("+", new)):
        for line in changed[:40]:
            print(sign, line)
    if gone or new:
        print(f"{len(gone)} rows of {held.name} are otherwise, {len(new)} are new")
    return 1 if gone or new or len(lines) < 500 else 0


if __name__ == "__main__":
    sys.exit(main())
