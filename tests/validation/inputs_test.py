#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""inputs_test.py PROGRAM SOURCE: every file that a command opens stands in its result with its SHA-256. The files lie in a folder
of the test, and the kernel says which of them a command opened (inotify): a file that somebody adds to a command is noticed
without a change here, and so is a command without a case."""
import ctypes
import hashlib
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

LIMIT_S = 120
IN_OPEN, IN_ISDIR = 0x20, 0x40000000
# What these write is no result of a forecast but a description, or a file of another tool.
WITHOUT = {"import", "export", "show", "mpi", "list", "schema", "manual", "completion", "help"}
TOPOLOGY = """schema: fabricast/topology/1
name: t
devices: [own-hca.yaml]
hosts: [{name: n, count: 2, type: server-2s-rome-4a100}]
fabric: {leaf_spine: {switch: qm8700, cable: 5 m}}
"""
SCENARIO = """schema: fabricast/scenario/1
name: t
topology: topology.yaml
parameters: [parameters.yaml]
workload: {benchmark: all_reduce_perf, sizes: [1 MiB, 64 MiB]}
"""
TRAINING = """schema: fabricast/scenario/1
name: t
topology: topology.yaml
workload: {benchmark: training, network: own.yaml, batch_per_gpu: 8, precision: bf16, gpus: 2}
"""
PARAMETERS = "schema: fabricast/parameters/1\nparameters:\n  nccl.collective_overhead: {value: 9 us, source: a test}\n"
PRICES = "schema: fabricast/cost/1\nname: p\ncurrency: USD\nyears: 1\nprices: {host: {server-2s-rome-4a100: {price: 500, source: a test}}}\n"
PLAN = "schema: fabricast/plan/1\nname: p\nscenario: scenario.yaml\nvary: {hosts: [2, 3]}\nobjectives: [{maximise: busbw at 64 MiB}]\ncost: prices.yaml\n"
LOG = """# nThread 1 nGpus 1 minBytes 1048576 maxBytes 67108864 step: 64(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   1 on        n0 device  0 [0x07] NVIDIA A100-PCIE-40GB
#  Rank  1 Group  0 Pid   1 on        n0 device  1 [0x0f] NVIDIA A100-PCIE-40GB
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1    150.0    6.99    6.99      0    150.0    6.99    6.99      0
    67108864      16777216     float     sum      -1   6000.0   11.18   11.18      0   6000.0   11.18   11.18      0
"""
CALIBRATION = """schema: fabricast/calibration/1
name: c
logs: [{file: all_reduce.log, scenario: scenario.yaml, set: {workload.gpus: 2}}]
fit: {epyc-rome.root_complex_bandwidth: {}}
"""
PAIRS = "n0,n1,10\nn2,n3,10\nn0,n2,20\nn1,n3,20\nn0,n3,20\n"
GROUPS = '{"0": [0, 1]}\n'


def opened_in(folder: pathlib.Path, command: list, out: pathlib.Path):
    """The names of the files in `folder` that the command opens."""
    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if watch < 0 or libc.inotify_add_watch(watch, str(folder).encode(), IN_OPEN) < 0:
        raise OSError(ctypes.get_errno(), "inotify")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    names = set()
    try:
        while events := os.read(watch, 1 << 16):
            while events:
                _, mask, _, length = struct.unpack_from("iIII", events)
                if not mask & IN_ISDIR:
                    names.add(events[16:16 + length].split(b"\0")[0].decode())
                events = events[16 + length:]
    except BlockingIOError:
        pass
    os.close(watch)
    return done, {name for name in names if name and name != out.name and (folder / name).is_file()}


class Test:
    def __init__(self, program: str, source: pathlib.Path):
        self.program, self.faults, self.walked = program, [], set()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="fabricast-inputs-"))
        self.results = pathlib.Path(tempfile.mkdtemp(prefix="fabricast-inputs-out-"))
        for name, text in {"topology.yaml": TOPOLOGY, "scenario.yaml": SCENARIO, "training.yaml": TRAINING, "parameters.yaml": PARAMETERS,
                           "prices.yaml": PRICES, "plan.yaml": PLAN, "all_reduce.log": LOG, "healthy.log": LOG, "calibration.yaml": CALIBRATION, "groups.json": GROUPS,
                           "pairs.csv": PAIRS}.items():
            (self.folder / name).write_text(text)
        shutil.copy(source / "models" / "networks" / "resnet-50.yaml", self.folder / "own.yaml")
        (self.folder / "own-hca.yaml").write_text((source / "models" / "catalogue" / "hcas" / "connectx-6-hdr.yaml").read_text().replace("name: connectx-6-hdr\n", "name: own-hca\n"))
        shutil.copy(source / "scenarios" / "traces" / "ddp-step.json", self.folder / "trace.json")
        (self.folder / "density.yaml").write_text((source / "scenarios" / "vms-density.yaml").read_text().replace("../topologies/", ""))
        shutil.copy(source / "topologies" / "vms-a100-roce.yaml", self.folder)

    def case(self, wanted: str, *arguments, forms=("json", "html"), option="-o"):
        """`wanted`: files that the command cannot do without."""
        self.walked.add(arguments[0])
        for form in forms:
            out = self.results / f"result.{form}"
            out.unlink(missing_ok=True)
            done, opened = opened_in(self.folder, [self.program, *arguments, option, str(out)], out)
            where = f"{' '.join(arguments)} {option} {out.name}"
            if done.returncode not in (0, 1) or not out.exists():
                self.faults.append(f"{where}: exit {done.returncode}: {done.stderr}")
                continue
            missing = set(wanted.split()) - opened
            self.faults += [f"{where}: does not open {name}, says inotify" for name in sorted(missing)]
            noted = self.noted(form, out.read_text())
            for name in sorted(opened):
                whole = hashlib.sha256((self.folder / name).read_bytes()).hexdigest()
                if not any(whole.startswith(one) for one in noted):
                    self.faults.append(f"{where}: {name} has no hash")

    def make(self, *arguments):
        """A file that a later case reads."""
        done = subprocess.run([self.program, *arguments], cwd=self.folder, capture_output=True, text=True, check=False, timeout=LIMIT_S)
        if done.returncode not in (0, 1):
            self.faults.append(f"{' '.join(arguments)}: exit {done.returncode}: {done.stderr}")

    @staticmethod
    def noted(form: str, text: str) -> set:
        if form == "json":  # not anywhere in the text: where the files are listed
            found = set()

            def walk(node):
                if isinstance(node, dict):
                    found.update(one["sha256"] for one in node.get("inputs", []) if isinstance(one, dict))
                    node = list(node.values())
                for one in node if isinstance(node, list) else []:
                    walk(one)
            walk(json.loads(text))
            return found
        return set(re.findall(r"<code>sha256 ([0-9a-f]{64})</code>" if form == "html" else r"sha256 ([0-9a-f]{16})", text))

    def every_command_has_a_case(self):
        listed = subprocess.run([self.program, "--help"], capture_output=True, text=True, check=True, timeout=LIMIT_S).stdout
        commands = set(re.findall(r"^  ([a-z]+) {2,}", listed.split("ubcommands:")[-1], re.MULTILINE))
        if len(commands) < 10:
            self.faults.append(f"--help lists {sorted(commands)}")
        self.faults += [f"'{one}' has no case here" for one in sorted(commands - self.walked - WITHOUT)]


def main():
    test = Test(sys.argv[1], pathlib.Path(sys.argv[2]))
    cluster = "scenario.yaml topology.yaml own-hca.yaml parameters.yaml"
    training = "training.yaml topology.yaml own-hca.yaml own.yaml"
    test.case(cluster, "run", "scenario.yaml", forms=("json", "html", "txt"))
    test.case(training, "run", "training.yaml", "--parameters", "parameters.yaml")
    test.case(f"{cluster} own.yaml", "compare", "scenario.yaml", "training.yaml", forms=("json",))
    test.case(cluster, "compare", "scenario.yaml", "scenario.yaml")
    test.case("density.yaml vms-a100-roce.yaml", "compare", "--density", "tenant", "density.yaml", forms=("txt",))
    test.case(f"{cluster} all_reduce.log", "validate", "scenario.yaml", "--set", "workload.gpus=2", "--measured", "all_reduce.log", forms=("json", "html"))
    test.case(f"{cluster} all_reduce.log calibration.yaml", "calibrate", "calibration.yaml", "--quick", "-q", option="--report")
    for file, files in (("scenario.yaml", cluster), ("training.yaml", training), ("topology.yaml", "own-hca.yaml"), ("own-hca.yaml", ""), ("parameters.yaml", ""),
                        ("prices.yaml", ""), ("plan.yaml", f"{cluster} prices.yaml"), ("calibration.yaml", cluster)):
        test.case(f"{file} {files}", "check", file)
    for question in ([], ["--sensitivity"], ["--fail", "link"]):
        test.case(f"{cluster} plan.yaml prices.yaml", "sweep", "plan.yaml", *question, "-q", forms=("json", "html", "txt"))
    # `sweep --merge` has no case: stores hold what their plan read, and a merged result names it as one run does, byte for byte (tests/sweep).
    test.case(cluster, "sweep", "scenario.yaml", "--fail", "link", "-q")
    test.case("topology.yaml own-hca.yaml all_reduce.log", "doctor", "topology.yaml", "all_reduce.log", forms=("json", "txt"))
    test.case(f"{cluster} all_reduce.log", "doctor", "scenario.yaml", "all_reduce.log", "--set", "workload.gpus=2", forms=("json",))
    test.case(f"{cluster} all_reduce.log healthy.log", "doctor", "scenario.yaml", "all_reduce.log", "--baseline", "healthy.log", "--set", "workload.gpus=2", forms=("json", "txt"))
    test.case(f"{cluster} all_reduce.log", "expect", "scenario.yaml", "--set", "workload.gpus=2", "--baseline", "all_reduce.log", forms=("json", "yaml"))
    test.make("expect", "scenario.yaml", "--set", "workload.gpus=2", "-o", "floors.yaml")
    test.case("floors.yaml all_reduce.log", "expect", "--floors", "floors.yaml", "--check", "all_reduce.log", forms=("json", "txt"))
    test.case(f"{cluster} all_reduce.log", "expect", "scenario.yaml", "--set", "workload.gpus=2", "--check", "all_reduce.log", forms=("json", "txt"))
    test.case("pairs.csv", "doctor", "--pairs", "pairs.csv", forms=("json", "txt"))
    test.case("topology.yaml own-hca.yaml parameters.yaml", "expect", "topology.yaml", "--parameters", "parameters.yaml", forms=("json", "yaml"))
    test.case("topology.yaml own-hca.yaml trace.json groups.json parameters.yaml", "replay", "topology.yaml", "trace.json", "--ranks", "2", "--groups", "groups.json",
              "--parameters", "parameters.yaml", forms=("json", "txt"))
    test.every_command_has_a_case()
    print("\n".join(test.faults))
    shutil.rmtree(test.folder)
    shutil.rmtree(test.results)
    sys.exit(1 if test.faults else 0)


if __name__ == "__main__":
    main()
