#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vm_setups_test.py PROGRAM SOURCE: every set-up of vm_setups.txt gets its verdict from `check`, and `run` refuses what
`check` refuses and forecasts the rest."""
import pathlib
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

LIMIT_S = 300  # of one command

WORKERS = 2


def devices(words, prefix):
    out = []
    for word in words.split(","):
        parts = word.split()
        if parts == ["-"]:
            continue
        count, kind = (int(parts[0]), parts[2]) if len(parts) == 3 else (1, parts[0])
        for _ in range(count):
            out.append(f"{{name: {prefix}{len(out)}, type: {kind}, below: socket0}}")
    return out


def scenario(gpus, adapters, switch, settings, vms):
    count = 1 if switch == "-" else 2
    if gpus.startswith("host "):
        group = f"{{name: n, count: {count}, type: {gpus.split()[1]}"
    else:
        held = devices(gpus, "gpu") + devices(adapters, "hca")
        group = f"{{name: n, count: {count}, host: {{processor: xeon-skylake, devices: [{', '.join(held)}]}}"
    if settings != "-":
        group += f", virtualization: {settings}"
    if vms != "-":
        group += f", vms: {vms}"
    fabric = "" if switch == "-" else f"  fabric: {{single_switch: {{switch: {switch}}}}}\n"
    names = ["gpu"] + [word.split()[-1] for word in gpus.split(",")]
    holds_gpu = gpus != "-" and (vms == "-" or any(name in vms for name in names))
    work = "gpu_step, gpus: 1, compute: 1 ms, sizes: [0 B]" if holds_gpu else "osu_latency, sizes: [8 B]"
    return (f"schema: fabricast/scenario/1\nname: t\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n"
            f"    - {group}}}\n{fabric}workload: {{benchmark: {work}}}\n"), holds_gpu or count > 1


def topology_of(text, path):
    """The topology of a scenario as a file of its own."""
    lines = text.split("topology:\n", 1)[1].split("workload:")[0].splitlines()
    path.write_text("\n".join(line[2:] for line in lines) + "\n")
    return path


def verdict_of(program, path):
    done = subprocess.run([program, "check", path], capture_output=True, text=True, check=False, timeout=LIMIT_S)
    return done.returncode, done.stdout + done.stderr


def judge(program, folder, number, line):
    verdict, gpus, adapters, switch, settings, vms, words, source = (part.strip() for part in line.split("|"))
    text, can_run = scenario(gpus, adapters, switch, settings, vms)
    path = pathlib.Path(folder) / f"{number}.yaml"
    path.write_text(text)
    # One VM on one host has nobody to talk to: its machine is judged without the work.
    machine = path if can_run else topology_of(text, path.with_suffix(".topology.yaml"))
    code, said = verdict_of(program, machine)
    faults = []
    if not source:
        faults.append("has no source")
    if words and words not in said:
        faults.append(f"check does not say '{words}'")
    if (code != 0) != (verdict == "refused"):
        faults.append(f"check ends with {code}")
    if verdict == "refused" and "source:" not in said:
        faults.append("check names no source")
    run = subprocess.run([program, "run", path, "-q"], capture_output=True, text=True, check=False, timeout=LIMIT_S)
    if verdict == "refused" and run.returncode != 3:
        faults.append(f"run ends with {run.returncode}")
    if verdict == "refused" and words not in run.stderr:
        faults.append(f"run does not say '{words}'")
    if verdict != "refused" and can_run and run.returncode != 0:
        faults.append(f"run ends with {run.returncode}: {run.stderr.strip()[:300]}")
    return [f"line {number}: {line.strip()}\n    {fault}\n    {said.strip()[:400] if 'check' in fault else ''}" for fault in faults]


def main():
    program, source = sys.argv[1:3]
    table = pathlib.Path(source) / "tests" / "validation" / "vm_setups.txt"
    lines = [(n, l) for n, l in enumerate(table.read_text().splitlines(), 1) if l.strip() and not l.startswith("#")]
    if len(lines) < 120:
        sys.exit(f"{len(lines)} set-ups, expected 120 or more")
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(WORKERS) as pool:
        found = [fault for faults in pool.map(lambda one: judge(program, folder, *one), lines) for fault in faults]
    print("\n".join(found))
    print(f"{len(lines)} set-ups, {len(found)} faults")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
