#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every command of docs/PLANNING.md and docs/PARAMETERS.md runs as it stands there, in order and in one folder, with the exit code 0, and
prints the lines below it ("..." stands for any number of lines; PARAMETERS.md shows all). Arguments: the fabricast program, the source folder."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

LIMIT_S = 300  # of one command


def blocks(text: str):
    """(command, lines that follow it) of every fenced block with a `$`."""
    for fenced in re.findall(r"```\n(\$ .*?)```", text, re.DOTALL):
        command, lines = None, []
        for line in fenced.rstrip("\n").split("\n"):
            if line.startswith("$ "):
                if command:
                    yield command, lines
                command, lines = line[2:], []
            else:
                lines.append(line)
        if command:
            yield command, lines


def main() -> int:
    program, source = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    here = pathlib.Path(tempfile.mkdtemp(prefix="fabricast-planning-"))
    for folder in ("scenarios", "topologies"):
        (here / folder).symlink_to((source / folder).resolve())
    (here / "bin").mkdir()
    (here / "bin" / "fabricast").symlink_to(program)
    environment = {**os.environ, "PATH": f"{here / 'bin'}:{os.environ['PATH']}"}
    failures, count = [], 0
    commands = [(False, *block) for block in blocks((source / "docs" / "PLANNING.md").read_text())]
    commands += [(True, *block) for block in blocks((source / "docs" / "PARAMETERS.md").read_text())]
    for is_whole, command, lines in commands:
        count += 1
        done = subprocess.run(["bash", "-c", command], cwd=here, env=environment, capture_output=True, text=True, check=False, timeout=LIMIT_S)
        if done.returncode != 0:
            failures.append(f"{command}: exit {done.returncode}: {done.stderr}")
            continue
        printed = [line.rstrip() for line in done.stdout.split("\n")]
        failures += [f"{command}: does not print {line!r}" for line in lines if line.strip() not in ("", "...") and line.rstrip() not in printed]
        if is_whole and [line for line in printed if line] != [line.rstrip() for line in lines if line.strip()]:
            failures.append(f"{command}: prints other lines than the page shows")
    if count < 8:
        failures.append(f"only {count} commands")
    for failure in failures:
        print(failure)
    if not failures:
        shutil.rmtree(here)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
