#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What every held capture becomes when it is imported, byte for byte: imports/NAME.txt holds exit code, topology and messages, of long ones the number
of lines and a hash. FABRICAST_UPDATE_GOLDEN=1 rewrites them. Arguments: program, source folder."""
import concurrent.futures
import hashlib
import os
import pathlib
import subprocess
import sys

LIMIT_S = 300  # of one command
LONGEST = 6000  # bytes that are held as they are
PROGRAM, SOURCE = sys.argv[1], pathlib.Path(sys.argv[2])
DATA = "tests/unit/import/data"
# Virtual machines need a host, and tables of GPUs that do not say which they are a dump that does.
HOSTS = {"virsh": "nccl-hgx-h100.xml", "govc": "govc-host.json", "smi": "nccl-hgx-h100.xml"}


def arguments(name: str) -> list[str]:
    kind = name.split("-")[0]
    words = ["--host", f"{DATA}/{HOSTS[kind]}"] if kind in HOSTS else []
    if kind == "virsh" or (kind == "govc" and "vm" in name):
        return [*words, "--vms", f"{DATA}/{name}"]
    if kind == "smi":
        return [*words, "--host", f"{DATA}/{name}"]
    return [f"{DATA}/{name}"]


def outcome(name: str) -> str:
    done = subprocess.run([PROGRAM, "import", *arguments(name)], cwd=SOURCE, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    text = f"exit {done.returncode}\n{done.stdout}{done.stderr}"
    if len(text) <= LONGEST:
        return text
    lines = text.count("\n")
    return f"exit {done.returncode}\n{lines} lines, sha256 {hashlib.sha256(text.encode()).hexdigest()}\n"


def main() -> int:
    names = sorted(path.name for path in (SOURCE / DATA).iterdir() if path.suffix != ".md")
    held = SOURCE / "tests" / "golden" / "imports"
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        outcomes = dict(zip(names, pool.map(outcome, names)))
    if os.environ.get("FABRICAST_UPDATE_GOLDEN") == "1":
        held.mkdir(exist_ok=True)
        for old in held.iterdir():
            old.unlink()
        for name, text in outcomes.items():
            (held / f"{name}.txt").write_text(text)
        return 0
    differs = False
    for name, text in outcomes.items():
        path = held / f"{name}.txt"
        expected = path.read_text() if path.exists() else "(no such file)\n"
        if text != expected:
            differs = True
            print(f"{name} is imported otherwise:\n--- expected\n{expected}\n--- actual\n{text}")
    for path in held.iterdir():
        if path.name.removesuffix(".txt") not in outcomes:
            differs = True
            print(f"{path.name} stands for no capture")
    return 1 if differs or not outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
