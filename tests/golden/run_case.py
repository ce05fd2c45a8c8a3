#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one golden case: NAME.case holds `command:` (arguments of fabricast), `exit:` and `why:`; the output must equal
NAME.stdout and NAME.stderr byte for byte; with `kept: sha256`, for pages, NAME.stdout holds the hash. FABRICAST_UPDATE_GOLDEN=1 rewrites them. Runs everything twice: the same command
must give the same bytes. Arguments: program, case file, source folder."""
import hashlib
import os
import pathlib
import shlex
import subprocess
import sys

LIMIT_S = 300  # of one command


def main() -> int:
    program, case, source = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    fields = dict(line.split(": ", 1) for line in case.read_text().splitlines() if ": " in line)
    arguments = shlex.split(fields["command"])
    runs = [subprocess.run([program, *arguments], cwd=source, capture_output=True, check=False, timeout=LIMIT_S) for _ in range(2)]
    if (runs[0].stdout, runs[0].stderr) != (runs[1].stdout, runs[1].stderr):
        print("two runs of the same command differ")
        return 1
    failed = False
    if runs[0].returncode != int(fields["exit"]):
        print(f"exit code {runs[0].returncode}, expected {fields['exit']}")
        failed = True
    for stream in ("stdout", "stderr"):
        golden = case.with_suffix("." + stream)
        actual = getattr(runs[0], stream)
        if stream == "stdout" and fields.get("kept") == "sha256":
            actual = f"sha256 {hashlib.sha256(actual).hexdigest()}, {len(actual)} bytes\n".encode()
        if os.environ.get("FABRICAST_UPDATE_GOLDEN") == "1":
            golden.write_bytes(actual)
            continue
        expected = golden.read_bytes() if golden.exists() else b""
        if actual != expected:
            print(f"{stream} differs from {golden.name}:\n--- expected\n{expected.decode(errors='replace')}\n--- actual\n{actual.decode(errors='replace')}")
            failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
