#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Inputs four times as long take at most about four times as long: the ratio of CPU seconds at n and 4n, never seconds themselves.

growth_test.py PROGRAM [CASE...]     (prints every case's figures)
"""
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

LIMIT_S = 300  # of one command

LIMIT = 9.0  # linear 4, quadratic 16; a neighbour on the machine may double one of the two figures
ENOUGH = 0.15  # CPU seconds at 4n below which nothing can be told, and nobody would notice
ROUNDS = 8  # a case that looks bad is measured again up to so often: noise passes, growth stays

HEAD = "schema: fabricast/scenario/1\nname: growth\n"
TOPOLOGY = "schema: fabricast/topology/1\nname: growth\n"


def check(text):
    return lambda folder: ["check", write(folder, text)]


def write(folder, text, name="input.yaml"):
    path = Path(folder) / name
    path.write_text(text)
    return str(path)


def unknown_keys(n):
    return check(HEAD + "".join(f"key{i}: {i}\n" for i in range(n)))


def unknown_keys_on_one_line(n):
    return check(HEAD + "workload: {" + ", ".join(f"key{i}: {i}" for i in range(n)) + "}\n")


def duplicate_keys(n):
    return check(HEAD + "name: again\n" * n)


def bad_values(n):
    return check(HEAD + "workload: {sizes: [" + ", ".join(["64 KB"] * n) + "]}\n")


def long_value(n):
    return check(HEAD + "workload: {benchmark: '" + "x" * (100 * n) + "'}\n")


def long_key(n):
    return check(HEAD + "? " + "x" * (100 * n) + "\n: 1\n")


def aliases_of_a_long_value(n):
    return check(HEAD + "description: &a '" + "x" * 2000 + "'\nsoftware: {" + ", ".join(f"k{i}: *a" for i in range(n)) + "}\n")


def brackets(n):
    return check(HEAD + "workload: " + "[" * n + "]" * n + "\n")


def hosts_in_a_list(n):
    return check(TOPOLOGY + "hosts:\n" + "".join(f"  - {{name: h{i}, type: azure-hbv3}}\n" for i in range(n)) +
                 "fabric: {fat_tree: {switch: qm8700, tiers: 3}}\n")


def bad_hosts_in_a_list(n):
    return check(TOPOLOGY + "hosts:\n" + "".join(f"  - {{name: h{i}, type: dgx-a10}}\n" for i in range(n)) +
                 "fabric: {fat_tree: {switch: qm8700, tiers: 3}}\n")


def equal_names_in_a_list(n):
    return check(TOPOLOGY + "hosts:\n" + "  - {name: h, type: dgx-a100}\n" * n +
                 "fabric: {fat_tree: {switch: qm8700, tiers: 3}}\n")


def gpus_in_one_host(n):
    devices = "".join(f"        - {{name: g{i}, type: a100-pcie-40, below: socket{i % 2}}}\n" for i in range(n))
    return check(TOPOLOGY + "hosts:\n  - name: h\n    host:\n      processor: epyc-rome\n      devices:\n" + devices)


def parts_of_a_setting(n):
    return lambda folder: ["check", write(folder, HEAD), "--set", ".".join(["a"] * n) + "=1"]


def settings(n):
    return lambda folder: ["check", write(folder, HEAD + "workload: {benchmark: osu_bw}\n"),
                           *sum((["--set", f"workload.k{i}=1"] for i in range(n)), [])]


def settings_of_a_list(n):
    hosts = "[" + ", ".join(f"{{name: h{i}, type: dgx-a100}}" for i in range(n)) + "]"
    return lambda folder: ["check", write(folder, HEAD + f"topology: {{hosts: {hosts}}}\n"),
                           "--set", f"topology.hosts.h{n - 1}.count=2"]


def long_setting(n):
    return lambda folder: ["check", write(folder, HEAD), "--set", "name=" + "x" * n]


def ibnetdiscover(n):
    """A fat tree's leaves as the fabric prints them: 32 hosts' ports per switch."""
    lines = []
    for s in range(n):
        lines.append(f'devid=0xd2f2\nSwitch\t64 "S-{0x2000 + s:016x}"\t\t# "leaf{s}" base port 0 lid 1 lmc 0\n')
        lines += [f'[{p}]\t"H-{0x100000 + 64 * s + p:016x}"[1]({p:x}) \t\t# "n{4 * s + (p - 1) // 8} mlx5_{(p - 1) % 8}" lid 2 4xNDR\n' for p in range(1, 33)]
        lines += [f'Ca\t1 "H-{0x100000 + 64 * s + p:016x}"\t\t# "n{4 * s + (p - 1) // 8} mlx5_{(p - 1) % 8}"\n'
                  f'[1]({p:x}) \t"S-{0x2000 + s:016x}"[{p}]\t\t# lid 3 4xNDR\n' for p in range(1, 33)]
    return lambda folder: ["import", "--fabric", write(folder, "".join(lines), "fabric.txt")]


def entities(n):
    """Entities that name each other: they never grow."""
    text = "<?xml version=\"1.0\"?>\n<!DOCTYPE a [<!ENTITY a0 \"lol\">"
    text += "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10}">' for i in range(1, n))
    text += f"]>\n<domain type='kvm'><name>&a{n - 1};</name><vcpu>2</vcpu></domain>"
    return lambda folder: ["import", "--vms", write(folder, text, "vms.xml")]


CASES = {
    ibnetdiscover: 600,
    entities: 2000,
    unknown_keys: 20000,
    unknown_keys_on_one_line: 20000,
    duplicate_keys: 20000,
    bad_values: 20000,
    long_value: 40000,
    long_key: 5000,
    aliases_of_a_long_value: 10000,
    brackets: 50000,
    hosts_in_a_list: 3000,
    bad_hosts_in_a_list: 5000,
    equal_names_in_a_list: 5000,
    gpus_in_one_host: 200,
    parts_of_a_setting: 15000,
    settings: 500,
    settings_of_a_list: 12000,
    long_setting: 50000,
}


def cpu_seconds(program, make):
    """(CPU seconds, exit code) of one run; the program may refuse the input, but not fail."""
    with tempfile.TemporaryDirectory() as folder:
        command = [program, *make(folder)]
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False, timeout=LIMIT_S)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 3):
        raise SystemExit(f"exit code {done.returncode} of {make.__qualname__}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, done.returncode


def growth(program, case, n, start):
    """(seconds at n, seconds at 4n, too fast a growth?): the least of both over the rounds, without the program's start."""
    small = large = float("inf")
    for _ in range(ROUNDS):
        (at_n, code), (at_4n, code_4n) = cpu_seconds(program, case(n)), cpu_seconds(program, case(4 * n))
        if code != code_4n:
            raise SystemExit(f"{case.__name__}: exit code {code} at {n}, {code_4n} at {4 * n}: not the same work")
        small, large = min(small, max(1e-3, at_n - start)), min(large, max(1e-3, at_4n - start))
        if large <= ENOUGH or large <= LIMIT * small:
            return small, large, False
    return small, large, True


def main():
    program, *wanted = sys.argv[1:]
    failed = []
    start = min(cpu_seconds(program, check(HEAD))[0] for _ in range(3))
    for case, most in CASES.items():
        if wanted and case.__name__ not in wanted:
            continue
        n = most // 2
        small, large, is_bad = growth(program, case, n, start)
        print(f"{case.__name__:28} n = {n:6}: {small:7.3f} s, 4n: {large:7.3f} s, ratio {large / small:5.2f}{'  TOO FAST A GROWTH' if is_bad else ''}",
              flush=True)
        failed += [case.__name__] * is_bad
    return 1 if failed else 0


sys.exit(main())
