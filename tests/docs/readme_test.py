#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the README's commands: each must succeed, and every line the README shows below one must be printed by it.
Usage: readme_test.py PROGRAM SOURCE_FOLDER. Commands that name files of the reader's own (no such file here) are skipped."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

LIMIT_S = 300  # of one command

program, source = sys.argv[1], pathlib.Path(sys.argv[2])
blocks = re.split(r"^```\w*\n", (source / "README.md").read_text(), flags=re.M)[1::2]
environment = {**os.environ, "PATH": str(pathlib.Path(program).parent) + os.pathsep + os.environ["PATH"]}
ran, faults = 0, []
for block in blocks:
    for part in re.split(r"^\$ ", block, flags=re.M)[1:]:
        command, *shown = part.rstrip("\n").split("\n")
        files = re.findall(r"\S+\.(?:yaml|log)", re.sub(r"\{[^}]*\}\.yaml", ".yaml", command))
        own = [f for f in files if "/" not in f]
        if not command.startswith("fabricast ") or own:
            continue
        with tempfile.TemporaryFile("w+") as out:
            done = subprocess.run(["bash", "-c", command], cwd=source, env=environment, stdout=out, text=True, timeout=LIMIT_S)
            out.seek(0)
            printed = {line.rstrip() for line in out.read().split("\n")}
        ran += 1
        if done.returncode != 0:
            faults.append(f"{command}: exit code {done.returncode}")
        for line in shown:
            # Wide tables are cut on the right in the README.
            if line.strip() not in ("", "...") and not any(one.startswith(line.rstrip()) for one in printed):
                faults.append(f"{command}: not printed any more: {line}")
print(f"{ran} commands of the README run")
print("\n".join(faults))
sys.exit(1 if faults or ran < 4 else 0)
