#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vm_tools_test.py PROGRAM SOURCE: settings of VMs and switches written for people, read back where a reader exists; how many VMs fit a host; VMs in
the picture."""
import pathlib
import random
import re
import subprocess
import sys
import tempfile

LIMIT_S = 300  # of one command

FAULTS = []


def check(is_true, words):
    if not is_true:
        FAULTS.append(words)


def run(program, *words, code=0):
    done = subprocess.run([program, *map(str, words)], capture_output=True, text=True, check=False, timeout=LIMIT_S)
    check(done.returncode == code, f"{' '.join(map(str, words))}: exit {done.returncode}, expected {code}: {done.stderr[:400]}")
    return done.stdout, done.stderr


def host(settings, vms, fabric="single_switch: {switch: sn2700}"):
    return f"""schema: fabricast/topology/1
name: t
hosts:
  - name: n
    count: 2
    host:
      processor: xeon-icelake
      devices:
        - {{name: gpu0, type: a100-pcie-40, below: socket0}}
        - {{name: gpu1, type: a100-pcie-80, below: socket0}}
        - {{name: gpu2, type: a100-pcie-40, below: socket1}}
        - {{name: hca0, type: connectx-6-dx-100g, below: socket0}}
        - {{name: hca1, type: connectx-6-dx-100g, below: socket1}}
    virtualization: {settings}
    vms: {vms}
fabric:
  {fabric}
"""


ESXI = ("{version: \"8.0 U3\"}", "[{name: a, vcpus: 16, memory: 64 GiB, hardware_version: 20, latency_sensitivity: high, numa: 0, cpu_shares: 2000, port_group: {name: pg, vlan: 7, shares: 100}, "
        "devices: {gpu0: passthrough, gpu1: passthrough, hca0: {vf: 2}}}, {name: b, memory: 8 GiB, devices: {gpu2: {vgpu: a100-10c}, hca1: pvrdma}}]")
KVM = ("{hypervisor: kvm}", "[{name: a, vcpus: 8, memory: 64 GiB, port_group: {vlan: 7, priority: 3, mtu: 1500}, devices: {gpu0: passthrough, hca0: {vf: 2, rate_limit: 50 Gb/s}}}, "
       "{name: b, vhost: off, devices: {gpu2: {mig: [3g.20gb, 2g.10gb]}, hca1: virtio}}]")
LOSSLESS = "single_switch: {switch: sn2700, lossless: {pfc: [3], trust: dscp}}"

# What the topology above sets, as the line that says so.
WANTED_ESXI = ['numvcpus = "16"', 'memSize = "65536"', 'virtualHW.version = "20"', 'firmware = "efi"', 'pciPassthru.use64bitMMIO = "TRUE"', 'pciPassthru.64bitMMIOSizeGB = "256"',
               'pciPassthru.allowP2P = "TRUE"', 'pciPassthru.RelaxACSforP2P = "TRUE"', 'sched.cpu.latencySensitivity = "high"', 'sched.mem.min = "65536"', 'sched.mem.pin = "TRUE"',
               'sched.cpu.shares = "32000"', 'numa.nodeAffinity = "0"', 'ethernet0.virtualDev = "sriov"', 'ethernet1.virtualDev = "sriov"', 'ethernet0.networkName = "pg"',
               'pciPassthru0.vgpu = "grid_a100-10c"', 'ethernet0.virtualDev = "pvrdma"', "NUM_OF_VFS=2 LINK_TYPE_P1=2 ATS_ENABLED=1", 'max_vfs=2 pfctx=0x08 pfcrx=0x08 trust_state=2',
               "pcipassthru set -d ADDRESS OF GPU0 -e true", "atsSupport -v TRUE", "/Net/PVRDMAVmknic -s vmk1", "ruleset set -e true -r pvrdma"]
WANTED_KVM = ["<vcpu placement='static'>8</vcpu>", "<memory unit='MiB'>65536</memory>", "<hugepages/>", "bus='BUS OF GPU0'", "<tag id='7'/>", "<driver name='qemu'/>",
              "max_tx_rate 25000 vlan 7 qos 3", "sriov_numvfs", "mlnx_qos -i IF OF HCA0 --trust dscp --pfc 0,0,0,1,0,0,0,0", "nvidia-smi -i INDEX OF GPU2 -mig 1", "-cgi 3g.20gb,2g.10gb -C"]


def settings_of_vms(program, folder):
    for (settings, vms), wanted in ((ESXI, WANTED_ESXI), (KVM, WANTED_KVM)):
        path = folder / "vms.yaml"
        path.write_text(host(settings, vms, LOSSLESS))
        text, _ = run(program, "export", "vm-settings", path)
        for line in wanted:
            check(line in text, f"vm-settings lacks '{line}':\n{text}")
        for line in text.splitlines():
            is_said = "  # " in line or " <!-- " in line or line.startswith("#") or not line
            check(is_said, f"a line without source: {line}")
    path.write_text(host("bare-metal", "[]").replace("    vms: []\n", ""))
    _, said = run(program, "export", "vm-settings", path, code=3)
    check("has no virtual machine" in said, said)


def random_lossless(dice):
    pfc = sorted(dice.sample(range(0, 6), dice.choice([1, 2])))
    low = dice.choice([50, 150, 400])
    trust = dice.choice(["dscp", "pcp"])
    marks = [f"dscp_to_priority: {{26: {pfc[0]}, 48: 6}}", "marks: {dscp: 26}"] if trust == "dscp" and dice.random() < 0.7 else []
    keys = [f"pfc: {pfc}", f"trust: {trust}", *marks, f"pool_share: {dice.choice([0.25, 0.5, 0.75])}", "cnp_priority: 6",
            dice.choice(["ecn: off", f"ecn: {{min: {low} kB, max: {low * 10} kB}}"]),
            "weights: {" + ", ".join(f"{p}: {dice.randint(1, 100)}" for p in pfc) + ", 6: strict}"]
    return "{" + ", ".join(keys) + "}"


def round_trip(program, folder):
    """Settings -> Onyx lines -> settings -> the same lines."""
    for draw in range(12):
        lossless = random_lossless(random.Random(draw))
        path, config = folder / "t.yaml", folder / "onyx.txt"
        path.write_text(host("passthrough", "[]", f"single_switch: {{switch: sn2700, lossless: {lossless}}}").replace("    vms: []\n", ""))
        first, _ = run(program, "export", "onyx", path)
        config.write_text("hostname sw\n" + first + "ip default-gateway 10.0.0.1\n")
        block, said = run(program, "import", config)
        check(said == "", f"import of what export wrote complains: {said}")
        indented = "".join(f"    {line}\n" for line in block.splitlines() if not line.startswith("#"))
        path.write_text(host("passthrough", "[]", "single_switch:\n    switch: sn2700\n" + indented).replace("    vms: []\n", ""))
        second, _ = run(program, "export", "onyx", path)
        check(first == second, f"{lossless}:\n{first}\n{second}")


def doubtful_configurations(program, folder):
    config = folder / "bad.txt"
    for text, words in (("traffic pool p type lossless\ntraffic pool p map switch-priority 3\ndcb priority-flow-control enable force\ndcb priority-flow-control priority 4 enable\n",
                         ["PFC pauses priority 4, no lossless pool holds it", "a lossless pool holds priority 3, PFC does not pause it", "no port has priority flow control"]),
                        ("traffic pool p type lossless\ntraffic pool p map switch-priority 9\n", ["'9' where a number is expected", "bad.txt:2:1"])):
        config.write_text(text)
        block, said = run(program, "import", config)
        for word in words:
            check(word in said, f"import does not say '{word}': {said}")
        check("flow_control: drop" in block, block)
    config.write_text("hostname a\nip route 0.0.0.0/0 10.0.0.1\n")
    _, said = run(program, "import", "onyx", config, code=3)
    check("no line of this configuration is of lossless traffic" in said, said)


def density(program, source, folder):
    text, _ = run(program, "compare", "--density", "tenant", source / "scenarios" / "vms-density.yaml")
    rows = [line.split() for line in text.splitlines() if not line.startswith("#")]
    counts = [int(row[0]) for row in rows]
    times = [float(row[1]) for row in rows]
    check(counts == [1, 2, 3, 4], f"an A100 of 40 GB takes four vGPUs of 10 GB:\n{text}")
    check(times == sorted(times) and times[-1] > 3.5 * times[0], f"four share a GPU:\n{text}")
    check(re.search(r"# 4 fit; 5 do not: 5 vGPUs of a100-40.10c", text) and "source:" in text, text)
    _, said = run(program, "compare", "--density", "tenent", source / "scenarios" / "vms-density.yaml", code=3)
    check("did you mean 'tenant'?" in said, said)
    run(program, "compare", source / "scenarios" / "vms-density.yaml", code=2)


def picture(program, source, folder):
    run(program, "show", source / "topologies" / "vms-a100-roce.yaml", "-o", folder / "vms.svg")
    text = (folder / "vms.svg").read_text()
    lines = re.findall(r'class="vm">.*?class="note">([^<]*)</text><title>VM ([^<]*)</title>', text)
    check(len(lines) == 6, f"two machines of three VMs: {lines}")
    check(any("gpu0 by passthrough" in whole for _, whole in lines), str(lines))
    held = re.findall(r'class="held"><title>held by VM (\w+)</title>', text)
    check(sorted(set(held)) == ["tenant0", "tenant1", "train"] and len(held) == 12, f"{held}")
    machines = re.findall(r'class="host-name"[^>]*>([^<]*)<', text)
    check(machines == ["node0", "node1"], f"machines are called {machines}")


def main():
    program, source = sys.argv[1], pathlib.Path(sys.argv[2]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        settings_of_vms(program, folder)
        round_trip(program, folder)
        doubtful_configurations(program, folder)
        density(program, source, folder)
        picture(program, source, folder)
    print("\n".join(FAULTS))
    print(f"{len(FAULTS)} faults")
    sys.exit(1 if FAULTS else 0)


if __name__ == "__main__":
    main()
