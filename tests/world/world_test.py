#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the world and strange names do to the program: full disks, little memory, bytes that are no text, control
characters. Exit 3 and a plain message, never "internal error"; nothing that reaches a terminal, a spreadsheet or a JSON
parser does harm there.

world_test.py PROGRAM SOURCE [--sanitized]     (--sanitized: no limits on address space)
"""
import csv
import io
import json
import os
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

LIMIT_S = 300  # of one command

PROGRAM, SOURCE, *REST = sys.argv[1:]
IS_SANITIZED = "--sanitized" in REST
EXAMPLE = f"{SOURCE}/scenarios/allreduce-dgx-a100-pair.yaml"
TOPOLOGY = """topology:
  schema: fabricast/topology/1
  name: t
  hosts: [{name: node, count: 2, type: dgx-a100}]
  fabric: {single_switch: {switch: qm8700}}
"""
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
failures = []


def expect(claim, condition, detail=""):
    if not condition:
        failures.append(claim)
        print(f"FAILED: {claim}\n{detail}")


def run(*arguments, stdout=subprocess.PIPE, **options):
    done = subprocess.run([PROGRAM, *arguments], stdout=stdout, stderr=subprocess.PIPE, check=False, **options, timeout=LIMIT_S)
    return done.returncode, done.stdout, done.stderr.decode("utf-8")  # stderr is always UTF-8


def full_disk(folder):
    for arguments in (["run", EXAMPLE], ["run", EXAMPLE, "--format", "json"], ["check", EXAMPLE], ["list", "devices"],
                      ["schema", "topology"], ["show", f"{SOURCE}/topologies/fdr-kepler-pair.yaml"], ["--help"],
                      ["compare", EXAMPLE, EXAMPLE]):
        with open("/dev/full", "wb") as full:
            code, _, error = run(*arguments, stdout=full)
        expect(f"{arguments[0]} onto a full disk ends with 3", code == 3, f"{code} {error}")
        expect(f"{arguments[0]} says so", error == "fabricast: cannot write to standard output: No space left on device\n", error)
    code, _, error = run("run", EXAMPLE, "-o", "/dev/full")
    expect("-o onto a full disk ends with 3", code == 3 and "No space left on device" in error, f"{code} {error}")


def little_memory(folder):
    if IS_SANITIZED:
        return
    path = folder / "large.yaml"
    path.write_text("schema: fabricast/topology/1\nname: t\nhosts: [{name: node, count: 100000, type: dgx-a100}]\n"
                    "fabric: {fat_tree: {switch: qm8700, tiers: 3}}\n")
    said = 0
    for limit in (60, 80, 100, 130):
        code, _, error = run("check", str(path),
                             preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit << 20, limit << 20)))
        expect(f"{limit} MiB of memory: not our fault", code in (0, 3) and "internal error" not in error, f"{code} {error[:300]}")
        said += "out of memory" in error
    expect("too little memory is named", said > 0)


def odd_names(folder):
    scenario = "schema: fabricast/scenario/1\nname: n\n" + TOPOLOGY + "workload: {benchmark: osu_bw, sizes: [1 KiB]}\n"
    odd = os.fsencode(folder) + b"/a\xff\x1b[31m\xc2\x9b.yaml"
    with open(odd, "w", encoding="utf-8") as file:
        file.write(scenario)
    for arguments in (["run", odd], ["run", odd, "--format", "json"], ["run", odd, "--format", "html"], ["check", odd]):
        code, out, error = run(*arguments)
        text = out.decode("utf-8")
        expect(f"{arguments[0]} of a file with an odd name", code == 0, error)
        expect("no control character is printed", not CONTROL.search(text + error), repr(CONTROL.findall(text + error)))
        if "json" in arguments:
            expect("the name is there, with U+FFFD", "\ufffd" in json.loads(text)["inputs"][0]["path"] if "inputs" in json.loads(text) else "\ufffd" in text)
    code, _, error = run("run", odd + b".missing")
    expect("a missing file with an odd name", code == 3 and not CONTROL.search(error), repr(error))
    code, _, error = run("run", EXAMPLE, "-o", os.fsencode(folder) + b"/no\x1b/x.json")
    expect("an output with an odd name", code == 3 and not CONTROL.search(error), repr(error))
    for arguments in ([b"ru\x1bn"], ["run", EXAMPLE, b"--fo\x1b"], ["run", EXAMPLE, "--set", b"na\x1bme=1"],
                      ["run", EXAMPLE, "--set", b"name=\xff"], ["run", EXAMPLE, "--format", b"\xff\x1b"],
                      ["run", EXAMPLE, "--explain", b"7\x1b"]):
        code, _, error = run(*arguments)
        expect(f"{arguments}: refused without control characters", code in (2, 3) and not CONTROL.search(error), repr(error))


def odd_keys(folder):
    path = folder / "keys.yaml"
    for key in ('"a\\e[2J"', "a\x1b[2J", '"\\x9b31m"', '"\\u202eabc"'):
        path.write_text(f"schema: fabricast/scenario/1\nname: n\n{TOPOLOGY}workload: {{benchmark: osu_bw}}\n{key}: 1\n")
        for command in ("run", "check"):
            code, _, error = run(command, str(path))
            expect(f"{command} of the key {key!r}", code == 3 and "control character" in error or "YAML" in error, error)
            expect("it is shown, not done", not CONTROL.search(error), repr(error))


def formulas(folder):
    path = folder / "formula.yaml"
    for name in ("=1+1", "+1", "-1", "@SUM(A1)", "plain", "a,b", '=x"y,z'):
        path.write_text("schema: fabricast/scenario/1\nname: n\n" + TOPOLOGY +
                        "workload: {name: " + json.dumps(name) + ", benchmark: osu_bw, sizes: [1 KiB]}\n")
        code, out, error = run("run", str(path), "--format", "csv")
        cells = [cell for line in csv.reader(io.StringIO(out.decode("utf-8"), newline="")) for cell in line]
        expect(f"the name {name!r} is in the table", code == 0 and (name if name[0] not in "=+-@" else "'" + name) in cells, error)
        for cell in cells:
            is_number = re.fullmatch(r"[-+]?[0-9.]+(e[-+]?[0-9]+)?", cell)
            expect(f"{cell!r} is no formula", not cell or cell[0] not in "=+-@\t\r" or is_number)


with tempfile.TemporaryDirectory() as temporary:
    for test in (full_disk, little_memory, odd_names, odd_keys, formulas):
        test(Path(temporary))
sys.exit(1 if failures else 0)
