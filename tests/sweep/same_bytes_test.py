#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A sweep gives the same bytes from one process, several, shards that are merged, MPI ranks, and after kill -9 at random
moments, with no design lost or twice. Arguments: the fabricast program, the source folder, --mpi when the plugin is built."""
import os
import pathlib
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time

from base import BASE

LIMIT_S = 300   # of one sweep of 48 designs: a second or two of CPU
GRACE_S = 20    # of a launcher whose rank was killed, to end by itself

PLAN = """schema: fabricast/plan/1
name: small
scenario: base.yaml
vary:
  hosts: [2, 3, 4, 5]
  server:
    choices:
      one: {topology.hosts.node.type: server-2s-rome-1a100}
      eight: {topology.hosts.node.type: server-2s-rome-8a100}
  virtualization:
    choices:
      bare metal: {virtualization: bare-metal}
      passthrough: {virtualization: passthrough}
      must migrate: {virtualization: {mode: passthrough, needs: [migration]}}
  adapters: {path: hca.count, values: [1, 2]}
objectives: [{minimise: gpus}, {maximise: busbw at 64 MiB}]
constraints: [{metric: time at 1 MiB, at_most: 10 ms}]
"""


def end_session(process):
    """Ends a process that began a session of its own, and all of that session: ranks have process groups of their own."""
    members = subprocess.run(["ps", "-o", "pid=", "-s", str(process.pid)], capture_output=True, text=True, check=False, timeout=GRACE_S).stdout.split()
    for member in members:
        try:
            os.kill(int(member), signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait(timeout=GRACE_S)


def bounded(command, folder):
    """Runs a command; one that takes longer than LIMIT_S ends with its children and has no exit code of a sweep."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:  # no pipe that a child could keep open
        process = subprocess.Popen(command, cwd=folder, stdout=out, stderr=err, text=True, start_new_session=True)
        try:
            process.wait(timeout=LIMIT_S)
        except subprocess.TimeoutExpired:
            end_session(process)
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(command, process.returncode, out.read(), err.read())


class Folder:
    def __init__(self, program: str):
        self.program = program
        self.path = pathlib.Path(tempfile.mkdtemp(prefix="fabricast-sweep-"))
        (self.path / "base.yaml").write_text(BASE)
        (self.path / "plan.yaml").write_text(PLAN)
        self.failures = []

    def run(self, *arguments, launcher=()):
        done = bounded([*launcher, self.program, "sweep", *arguments], self.path)
        if done.returncode not in (0, 1):
            self.failures.append(f"{arguments}: exit {done.returncode}: {done.stderr}")
        return done

    def text(self, name: str) -> str:
        path = self.path / name
        return path.read_text() if path.exists() else f"no {name}"

    def expect_same(self, one: str, other: str):
        if self.text(one) != self.text(other):
            self.failures.append(f"{one} and {other} differ")


def killed_and_resumed(folder: Folder, launcher=()):
    """Kills until the sweep ends by itself; every restart goes on with the same store."""
    generator = random.Random(14)
    kills, known = 0, 0
    for _ in range(40):
        is_ended = True
        process = subprocess.Popen([*launcher, folder.program, "sweep", "plan.yaml", "--jobs", "2", "--store", "killed.sqlite", "-o", "killed.jsonl"],
                                   cwd=folder.path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        try:
            process.wait(timeout=generator.uniform(0.05, 0.35) if kills < 6 else LIMIT_S)
        except subprocess.TimeoutExpired:
            if kills >= 6:
                end_session(process)
                folder.failures.append(f"a sweep that nobody killed did not end in {LIMIT_S} s")
                break
            victim = process.pid
            if launcher:  # a rank rather than the launcher: its host's job ends with it
                ranks = subprocess.run(["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True, check=False, timeout=GRACE_S).stdout.split()
                victim = int(generator.choice(ranks)) if ranks else victim
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                pass  # ended meanwhile
            try:
                process.wait(timeout=GRACE_S)
            except subprocess.TimeoutExpired:
                is_ended = False  # a launcher that waits for the dead: as when its host goes down
            end_session(process)
            kills += 1
            with sqlite3.connect(folder.path / "killed.sqlite") as store:
                try:
                    count, distinct = store.execute("SELECT count(*), count(DISTINCT id) FROM design").fetchone()
                except sqlite3.OperationalError:  # killed before the tables were made
                    count = distinct = 0
            if count != distinct or count < known:
                folder.failures.append(f"after a kill {count} designs, {distinct} of them different, {known} before")
            known = count
            if not is_ended:
                print(f"the launcher did not end in {GRACE_S} s after a rank was killed; its processes were ended")
            continue
        break
    if process.returncode not in (0, 1):
        folder.failures.append(f"the sweep that was killed {kills} times ends with {process.returncode}")
    if kills == 0:
        folder.failures.append("no sweep was killed: the moments are too late")
    folder.expect_same("one.jsonl", "killed.jsonl")
    for name in ("killed.sqlite", "killed.jsonl", "killed.sqlite-wal", "killed.sqlite-shm"):
        (folder.path / name).unlink(missing_ok=True)


def main() -> int:
    folder = Folder(sys.argv[1])
    folder.run("plan.yaml", "-o", "one.jsonl")
    if len(folder.text("one.jsonl").splitlines()) != 48:
        folder.failures.append(f"{len(folder.text('one.jsonl').splitlines())} lines for 48 designs")
    for name in ("csv", "json", "html", "txt"):
        folder.run("plan.yaml", "-o", f"one.{name}")
    folder.run("plan.yaml", "--jobs", "3", "-o", "three.jsonl")
    folder.expect_same("one.jsonl", "three.jsonl")
    for part in ("1/3", "2/3", "3/3"):
        folder.run("plan.yaml", "--shard", part, "--store", f"part{part[0]}.sqlite", "-o", f"part{part[0]}.csv")
    for name in ("jsonl", "csv", "json", "html", "txt"):
        folder.run("--merge", "part1.sqlite", "part2.sqlite", "part3.sqlite", "-o", f"merged.{name}")
        folder.expect_same(f"one.{name}", f"merged.{name}")
    missing = folder.run("--merge", "part1.sqlite", "part3.sqlite", "-o", "lacking.jsonl")
    if missing.returncode != 1 or "16 of 48 designs are missing" not in missing.stderr:
        folder.failures.append(f"two of three shards: {missing.returncode} {missing.stderr}")
    killed_and_resumed(folder)
    (folder.path / "base.yaml").write_text(BASE.replace("cable: 5 m", "cable: 6 m"))
    changed = bounded([folder.program, "sweep", "plan.yaml", "--store", "part1.sqlite"], folder.path)
    if changed.returncode != 3 or "this file has changed since results were stored" not in changed.stderr:
        folder.failures.append(f"a store of another scenario was continued: {changed.returncode} {changed.stderr}")
    (folder.path / "base.yaml").write_text(BASE)
    if "--mpi" in sys.argv and shutil.which("mpirun"):
        launcher = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-np", "4"]
        folder.run("plan.yaml", "-o", "ranks.jsonl", launcher=launcher)
        folder.expect_same("one.jsonl", "ranks.jsonl")
        killed_and_resumed(folder, launcher)
    elif "--mpi" in sys.argv:
        print("mpirun is missing: ranks are not tested (apt-get install openmpi-bin)")
    for failure in folder.failures:
        print(failure)
    if not folder.failures:
        shutil.rmtree(folder.path)
    return 1 if folder.failures else 0


if __name__ == "__main__":
    start = time.monotonic()
    code = main()
    print(f"{time.monotonic() - start:.1f} s")
    sys.exit(code)
