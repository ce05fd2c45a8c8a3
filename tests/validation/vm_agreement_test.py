#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vm_agreement_test.py PROGRAM [SET-UPS] [SEED]: random set-ups of virtual machines with a workload. What `check` finds
possible `run` forecasts, what `check` refuses `run` refuses, and neither fails of itself."""
import pathlib
import random
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

WORKERS = 2
LIMIT_S = 120  # of one command; they take a tenth of a second
GPUS = {"t4": ["t4-8c", "t4-4c"], "a100-pcie-40": ["a100-10c", "a100-20c", "a100-40c"], "a40": ["a40-12c", "a40-48c"],
        "v100-pcie-32": ["v100-8c"], "h100-pcie": ["h100-20c", "h100-80c"], "k80": ["k80-4q"]}
MIG = {"a100-pcie-40": ["1g.5gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb"], "h100-pcie": ["1g.10gb", "3g.40gb"]}
ADAPTERS = {"connectx-5-100g": "sn2700", "connectx-4-100g": "sn2700", "connectx-6-hdr": "qm8700"}
HOSTS = ["{version: \"6.5\"}", "{version: \"6.7 U3\"}", "{version: \"7.0\"}", "{version: \"8.0 U3\"}", "{hypervisor: kvm}", "{hypervisor: kvm, vhost: off}",
         "{hypervisor: cloud-hypervisor}", "{}", "{}", "{}"]


class Draw:
    """One set-up as text."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.gpu = self.random.choice(list(GPUS))
        self.adapter = self.random.choice(list(ADAPTERS))
        self.hosts = self.random.choice([1, 2, 2, 2])
        self.num_gpus, self.num_adapters = self.random.choice([1, 2]), self.random.choice([0, 1, 1, 2])
        self.num_machines = 1

    def chance(self, share):
        return self.random.random() < share

    def way_of_gpu(self):
        ways = ["passthrough"] * 8 + [f"{{vgpu: {one}}}" for one in GPUS[self.gpu]] + [f"{{mig: {one}}}" for one in MIG.get(self.gpu, ["1g.5gb"])]
        return self.random.choice(ways)

    def way_of_adapter(self):
        return self.random.choice(["passthrough", "{vf: 1}", "{vf: 1}", "{vf: 1}", "{vf: 1, rate_limit: 25 Gb/s}", "pvrdma", "vmxnet3", "virtio"])

    def held_by(self, number, ways):
        """What VM `number` holds: now and then anything, mostly parts of shared devices and whole ones that no other VM has."""
        held = []
        for place, (device, way) in enumerate(ways.items()):
            is_whole = way in ("passthrough", "pvrdma")
            if self.chance(0.1) or (place % self.num_machines == number if is_whole else self.chance(0.8)):
                held.append(f"{device}: {way}")
        return held

    def machine(self, name, number, ways):
        keys = [f"name: {name}"]
        held = self.held_by(number, ways)
        if self.chance(0.15):
            held.append(f"net: {self.random.choice(['vmxnet3', 'virtio'])}")
        keys.append(f"devices: {{{', '.join(held)}}}")
        for share, key in ((0.1, f"count: {self.random.choice([1, 2])}"), (0.3, f"vcpus: {self.random.choice([4, 16, 64])}"),
                           (0.3, f"memory: {self.random.choice([16, 64, 64, 400])} GiB"), (0.1, f"hardware_version: {self.random.choice([11, 13, 17, 20])}"),
                           (0.3, f"port_group: {{vlan: {self.random.choice([0, 100, 200])}}}"), (0.1, f"needs: [{self.random.choice(['migration', 'ha', 'snapshot'])}]")):
            if self.chance(share):
                keys.append(key)
        return f"{{{', '.join(keys)}}}"

    def work(self):
        return self.random.choice([
            "osu_latency, sizes: [8 B]", "osu_bw, sizes: [1 MiB]", "osu_latency, sizes: [8 B], buffers: [device, device]", "all_reduce_perf, sizes: [1 MiB]",
            "all_reduce_perf, sizes: [64 KiB, 16 MiB]", "alltoall_perf, sizes: [1 MiB]", "sendrecv_perf, sizes: [1 MiB]", "gpu_step, gpus: 1, compute: 1 ms, sizes: [0 B]",
            "osu_allreduce, sizes: [8 B, 1 MiB]", "ib_write_bw, sizes: [64 KiB]", "host_copies, gpus: 1, sizes: [1 MiB]",
            "training, network: resnet-50, batch_per_gpu: 32, precision: fp16"])

    def text(self):
        devices = [f"{{name: gpu{i}, type: {self.gpu}, below: socket{i}}}" for i in range(self.num_gpus)]
        devices += [f"{{name: hca{i}, type: {self.adapter}, below: socket{i}}}" for i in range(self.num_adapters)]
        ways = {f"gpu{i}": self.way_of_gpu() for i in range(self.num_gpus)} | {f"hca{i}": self.way_of_adapter() for i in range(self.num_adapters)}
        self.num_machines = self.random.choice([1, 1, 2, 3])
        machines = [self.machine(name, number, ways) for number, name in enumerate("abc"[:self.num_machines])]
        switch = self.random.choice([ADAPTERS[self.adapter]] * 9 + ["sn2700", "qm8700"])
        fabric = f"  fabric: {{single_switch: {{switch: {switch}}}}}\n" if self.hosts > 1 or self.num_adapters else ""
        return (f"schema: fabricast/scenario/1\nname: t\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n    - {{name: n, count: {self.hosts}, host: "
                f"{{processor: xeon-skylake, sockets: 2, devices: [{', '.join(devices)}]}}, virtualization: {self.random.choice(HOSTS)}, vms: [{', '.join(machines)}]}}\n"
                f"{fabric}workload: {{benchmark: {self.work()}}}\n")


def judge(program, folder, seed):
    path = pathlib.Path(folder) / f"{seed}.yaml"
    path.write_text(Draw(seed).text())
    check, run = (subprocess.run([program, word, path, *more], capture_output=True, text=True, check=False, timeout=LIMIT_S) for word, more in (("check", []), ("run", ["-q"])))
    is_sound = check.returncode in (0, 3) and run.returncode in (0, 3)
    if is_sound and check.returncode == run.returncode:
        return run.returncode, ""
    said = "\n".join(line for line in (check.stderr + run.stderr).splitlines() if "error" in line)[:600]
    return run.returncode, f"seed {seed}: check ends with {check.returncode}, run with {run.returncode}\n{path.read_text()}{said}"


def main():
    program, count, first = sys.argv[1], int((sys.argv[2:] + ["120"])[0]), int((sys.argv[3:] + ["1"])[0])
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(WORKERS) as pool:
        found = list(pool.map(lambda seed: judge(program, folder, seed), range(first, first + count)))
    ran = sum(code == 0 for code, _ in found)
    faults = [fault for _, fault in found if fault]
    print("\n".join(faults))
    print(f"{count} set-ups: {ran} run, {count - ran} are refused, {len(faults)} verdicts differ")
    # Neither kind may be rare, or the law says little.
    sys.exit(1 if faults or min(ran, count - ran) < count / 10 else 0)


if __name__ == "__main__":
    main()
