# SPDX-License-Identifier: Apache-2.0
"""Published and own measurements of virtual machines against forecasts: each case is a scenario of
scenarios/validation/virtual with --set, a unit, what was measured, and the largest error that is accepted."""
import json
import pathlib
import re
import subprocess

import logs

LIMIT_S = 300  # of one command


class Case:
    def __init__(self, name, scenario, settings, measured, unit, budget, log):
        self.name, self.scenario, self.settings = name, scenario, settings
        self.measured, self.unit, self.budget, self.log = measured, unit, budget, log
        self.predicted = None
        self.bottleneck = ""

    @property
    def error(self):
        """Of time: positive when the forecast is too slow."""
        ratio = self.predicted / self.measured
        return (ratio if self.unit in ("us", "ms") else 1 / ratio) - 1


def run(program, scenario, settings, more=()):
    command = [program, "run", str(scenario), "--format", "json", "-q", *more]
    for setting in settings:
        command += ["--set", setting]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def value_of(document, unit):
    row = document["rows"][0]
    if unit == "us":
        return row["time_ps"] * 1e-6
    rate = row["busbw_bytes_per_s"] * 1e-9
    return rate * 8 if unit == "Gb/s" else rate


BARE = "virtualization=bare-metal"
ADAPTERS = {1: "[hca1, hca2, hca3]", 2: "[hca1, hca3]", 3: "[hca3]", 4: "[]"}


def published_cases():
    nics = "h200-16gpu-2node-nicscaling-kvm-vs-baremetal"
    tcp = "tcp-25g-cloudlab"
    cases = []
    for count, host, guest in ((1, 80, 75), (2, 180, 170), (3, 240, 135), (4, 320, 180)):
        remove = f"topology.hosts.node.remove={ADAPTERS[count]}"
        cases.append(Case(f"16 H200, {count} adapters, bare metal", "h200-adapters", [remove, BARE], host, "GB/s", 0.075, nics))
        cases.append(Case(f"16 H200, {count} adapters, KVM passthrough", "h200-adapters", [remove], guest, "GB/s", 0.125, nics))
    a800 = "a800-16gpu-2host-sriov-vm-vs-baremetal-allreduce-summary"
    cases.append(Case("16 A800, bare metal, ring", "a800-sr-iov", [BARE, "workload.algorithm=ring"], 96, "GB/s", 0.1, a800))
    cases.append(Case("16 A800, KVM virtual functions, tree", "a800-sr-iov", [], 76, "GB/s", 0.2, a800))
    acs = "a100-16gpu-2vm-2xhdr-sriov-acs-before-after-allreduce-partial"
    cases.append(Case("16 A100, KVM virtual functions, ACS redirects", "a100-acs", [], 27, "GB/s", 0.2, acs))
    cases.append(Case("16 A100, KVM virtual functions, ACS set right", "a100-acs", ["virtualization={mode: sr-iov, hypervisor: kvm, guest_topology: shown}"], 48, "GB/s", 0.1, acs))
    cloud = "h100-16gpu-2vm-ndr8-cloudhypervisor-summary"
    cases.append(Case("8 H100, one VM of Cloud Hypervisor", "h100-cloud-hypervisor", ["workload.gpus=8"], 474, "GB/s", 0.1, cloud))
    cases.append(Case("16 H100, two VMs of Cloud Hypervisor", "h100-cloud-hypervisor", [], 154.9, "GB/s", 0.2, cloud))
    latency = "workload.benchmark=sockperf"
    cases.append(Case("25 GbE, 4 TCP streams, bare metal", "tcp-25g", [BARE], 23.5, "Gb/s", 0.05, tcp))
    cases.append(Case("25 GbE, 4 TCP streams, KVM vhost", "tcp-25g", [], 13.2, "Gb/s", 0.05, tcp))
    emulator = "virtualization.vhost=off"
    cases.append(Case("25 GbE, 4 TCP streams, KVM without vhost", "tcp-25g", [emulator], 9.6, "Gb/s", 0.1, tcp))
    cases.append(Case("25 GbE, 64 B UDP, KVM without vhost", "tcp-25g", [latency, emulator], 65.3, "us", 0.1, tcp))
    cases.append(Case("25 GbE, 64 B UDP, bare metal", "tcp-25g", [BARE, latency], 32.9, "us", 0.05, tcp))
    cases.append(Case("25 GbE, 64 B UDP, KVM vhost", "tcp-25g", [latency], 48.4, "us", 0.05, tcp))
    return cases


# Ratios: predicted time on bare metal (or in one VM) over predicted time in the VM, against the published throughput ratio.
RATIOS = (
    ("passthrough against bare metal, LSTM", "one-vm-or-four", [], BARE, 0.96, 0.02, "VMware GPU guide, 2019"),
    ("vGPU with the whole GPU against bare metal, LSTM", "inference-a100", [], BARE, 0.96, 0.02, "VMware GPU guide, 2019"),
    ("four 1-GPU VMs against one 4-GPU VM, passthrough", "one-vm-or-four", ["virtualization={mode: passthrough, nic: sr-iov, vms_per_host: 4}"], "virtualization=passthrough", 0.96, 0.01, "VMware VROOM, CIFAR-10"),
    ("vGPU of the whole P100 against bare metal, LSTM", "one-vm-or-four", ["virtualization={mode: vgpu, nic: vmxnet3, version: \"6.7 U3\"}"], BARE, 0.96, 0.02, "VMware GPU guide, 2019"),
    ("beside 32 knowledge workers", "one-vm-or-four", ["virtualization=passthrough", "host_neighbours={knowledge_workers: 32}"], "virtualization=passthrough", 1 / 1.02, 0.005, "VMware GPU guide, 2019"),
    ("beside 96 knowledge workers", "one-vm-or-four", ["virtualization=passthrough", "host_neighbours={knowledge_workers: 96}"], "virtualization=passthrough", 1 / 1.18, 0.01, "VMware GPU guide, 2019"),
    ("four 1-GPU VMs against one 4-GPU VM, vGPU", "one-vm-or-four", ["virtualization={mode: vgpu, vms_per_host: 4}"], "virtualization={mode: vgpu}", 0.94, 0.01, "VMware VROOM, CIFAR-10"),
)


# Values that a published figure taught: the parameter, the scenario, its settings, those of the reference (None: the time or rate itself), the
# figure, and its unit. At the ends of the parameter's interval the forecast lies on both sides of the figure.
PASSED, SPLIT = "virtualization=passthrough", ["virtualization={mode: passthrough, nic: sr-iov, vms_per_host: 4}"]
TAUGHT = (
    ("virtualization.split_tax", "one-vm-or-four", SPLIT, [PASSED], 0.96, "us"),
    ("virtualization.vgpu.split_tax", "one-vm-or-four", ["virtualization={mode: vgpu, vms_per_host: 4}"], ["virtualization={mode: vgpu}"], 0.94, "us"),
    ("virtualization.passthrough.compute_tax", "one-vm-or-four", [PASSED], [BARE], 0.96, "us"),
    ("virtualization.vgpu.compute_tax", "inference-a100", [], [BARE], 0.96, "us"),
    ("host.knowledge_worker_load", "one-vm-or-four", [PASSED, "host_neighbours={knowledge_workers: 96}"], [PASSED], 1 / 1.18, "us"),
    ("host.machine_learning_cpu_share", "one-vm-or-four", [PASSED, "host_neighbours={knowledge_workers: 96}"], [PASSED], 1 / 1.18, "us"),
    ("host.machine_learning_cpu_share", "one-vm-or-four", [PASSED, "host_neighbours={knowledge_workers: 32}"], [PASSED], 1 / 1.02, "us"),
    ("virtualization.virtio.message_time", "tcp-25g", ["workload.benchmark=sockperf"], None, 48.4, "us"),
    ("virtualization.virtio.packet_time", "tcp-25g", [], None, 13.2, "Gb/s"),
    ("virtualization.virtio.emulator_message_time", "tcp-25g", ["workload.benchmark=sockperf", "virtualization.vhost=off"], None, 65.3, "us"),
    ("virtualization.virtio.emulator_packet_time", "tcp-25g", ["virtualization.vhost=off"], None, 9.6, "Gb/s"),
)


def interval_of(source, name):
    """A parameter's value and interval with their units, as its file has them."""
    line = next(line for path in sorted((source / "models" / "params").glob("*.yaml")) for line in path.read_text().splitlines() if line.startswith(f"  {name}: "))
    return {key: re.search(rf"\b{key}: ([^,}}]+)", line).group(1) for key in ("value", "low", "high")}


def taught(program, source, folder, case):
    """Forecasts at the parameter's low, value and high."""
    name, scenario, settings, reference, _, unit = case
    path = source / "scenarios" / "validation" / "virtual" / f"{scenario}.yaml"
    out = []
    for end in ("low", "value", "high"):
        file = pathlib.Path(folder) / "one.yaml"
        file.write_text(f"schema: fabricast/parameters/1\nname: one\nparameters:\n  {name}: {{value: {interval_of(source, name)[end]}, source: test}}\n")
        value = lambda chosen: value_of(run(program, path, chosen, ["--parameters", str(file)]), unit)
        out.append(value(settings) if reference is None else value(reference) / value(settings))
    return out


def ratio(program, folder, case):
    _, scenario, settings, reference, *_ = case
    path = folder / f"{scenario}.yaml"
    time = lambda chosen: value_of(run(program, path, chosen), "us")
    return time([reference]) / time(settings)


def samples_per_second(path):
    """LoadGen summaries: (model, scenario) -> samples per second."""
    rates, section = {}, None
    for line in path.read_text().splitlines():
        if line.startswith("# === "):
            section = tuple(line[6:].split())
        for key in ("Samples per second:", "Completed samples per second    :"):
            if line.startswith(key) and section:
                rates[section] = float(line.split(":")[1])
    return rates


def inference_ratios(program, folder, folders):
    """vGPU on vSphere over bare metal, per model and scenario: (name, predicted, measured)."""
    metal = logs.log_of("mlperf-infer-v1.1-a100-pcie40x3-baremetal", folders)
    virtual = logs.log_of("mlperf-infer-v1.1-a100-pcie40x3-vsphere-vgpu", folders)
    if metal is None or virtual is None:
        return []
    measured, reference = samples_per_second(virtual), samples_per_second(metal)
    out = []
    for section, rate in sorted(measured.items()):
        compute = f"workload.compute={1e6 / reference[section]:.3f} us"
        path = folder / "inference-a100.yaml"
        predicted = value_of(run(program, path, [compute, BARE]), "us") / value_of(run(program, path, [compute]), "us")
        out.append((" ".join(section), predicted, rate / reference[section]))
    return out


def copies(program, source):
    """Concurrent copies: (direction, GPUs, GPU, predicted, measured) in GB/s."""
    table = source / "calibration" / "data" / "h200-8gpu-nvswitch-passthrough-vm" / "host-and-peer-copies.txt"
    words = {"h2d": "to_device", "d2h": "to_host", "bidir": "both"}
    out, is_inside = [], False
    for line in table.read_text().splitlines():
        if line.startswith("## "):
            is_inside = line.startswith("## concurrent pinned copies")
            continue
        if not is_inside:
            continue
        direction, count, *rates = line.split()
        count = int(count)
        settings = []
        for w, gpus in ((0, range(0, min(count, 4))), (1, range(4, max(count, 5)))):
            settings.append(f"workloads.{w}.devices=[{', '.join(f'node.gpu{g}' for g in gpus)}]")
            settings.append(f"workloads.{w}.direction={words[direction]}")
        document = run(program, source / "scenarios" / "validation" / "virtual" / "copies.yaml", settings)
        by_socket = [one["rows"][0]["algbw_bytes_per_s"] * 1e-9 for one in document["workloads"]]
        for gpu, rate in enumerate(map(float, rates)):
            out.append((direction, count, gpu, by_socket[gpu // 4], rate))
    return out
