# SPDX-License-Identifier: Apache-2.0
"""Describes hosts to NCCL that are not there and lets it plan for them. Arguments: libnccl, folder of the plugin and of plans, output file, seconds."""
import os, subprocess, sys, time

nccl, folder, out, limit = sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4])
gpus = [line.strip().lower() for line in subprocess.run(["nvidia-smi", "--query-gpu=pci.bus_id", "--format=csv,noheader"], capture_output=True, text=True).stdout.split()]
gpus = [bus[4:] if len(bus.split(":")[0]) == 8 else bus for bus in gpus]
GEN5 = 'link_speed="32.0 GT/s PCIe" link_width="16"'


def adapter(i, speed):
    return f'<pci busid="0000:{0xb0 + i:02x}:00.0" class="0x020700" vendor="0x15b3" device="0x1021" subsystem_vendor="0x15b3" subsystem_device="0x0041" {GEN5}><nic><net name="fab{i}" dev="{i}" speed="{speed}" port="1" latency="0.000000" guid="0x{i + 1}" maxconn="65536" gdr="1"/></nic></pci>'


def gpu(i):
    return f'<pci busid="{gpus[i]}" class="0x030200" vendor="0x10de" device="0x2335" subsystem_vendor="0x10de" subsystem_device="0x18be" {GEN5}><gpu dev="{i}" sm="90" gdr="1"/></pci>'


def switch(number, inside):
    return f'<pci busid="0000:{0xa0 + number:02x}:00.0" class="0x060400" vendor="0x1000" device="0xc030" subsystem_vendor="0x1000" subsystem_device="0x100b" {GEN5}>{inside}</pci>'


def host(shape, speed, vendor, n):
    cpu = {"intel": 'vendor="GenuineIntel" familyid="6" modelid="143"', "amd": 'vendor="AuthenticAMD" familyid="175" modelid="17"'}[vendor]
    if shape == "each":        # a switch and an adapter for every GPU
        body, count = "".join(switch(i, gpu(i) + adapter(i, speed)) for i in range(n)), n
    elif shape == "pairs":     # two GPUs and two adapters below a switch
        body, count = "".join(switch(i, gpu(2 * i) + gpu(2 * i + 1) + adapter(2 * i, speed) + adapter(2 * i + 1, speed)) for i in range(n // 2)), n
    elif shape == "half":      # two GPUs and one adapter below a switch
        body, count = "".join(switch(i, gpu(2 * i) + gpu(2 * i + 1) + adapter(i, speed)) for i in range(n // 2)), n // 2
    elif shape == "one":       # one adapter, below the first GPU's switch
        body, count = "".join(switch(i, gpu(i) + (adapter(0, speed) if i == 0 else "")) for i in range(n)), 1
    elif shape == "beside":    # one adapter of the processor's own
        body, count = "".join(switch(i, gpu(i)) for i in range(n)) + adapter(0, speed), 1
    elif shape == "two":       # two adapters, below the first GPU's switch
        body, count = "".join(switch(i, gpu(i) + (adapter(0, speed) + adapter(1, speed) if i == 0 else "")) for i in range(n)), 2
    else:                      # "far": as many adapters as GPUs, all of the processor's own
        body, count = "".join(switch(i, gpu(i)) for i in range(n)) + "".join(adapter(i, speed) for i in range(n)), n
    return f'<system version="1"><cpu numaid="0" affinity="ffffffff,ffffffff" arch="x86_64" {cpu}>{body}</cpu></system>', count


cases = [(shape, speed, "intel", n, hosts) for shape in ("each", "pairs", "half", "one", "two", "beside", "far") for speed in (400000, 200000) for n in (len(gpus),) for hosts in (2, 4, 8, 16)]
cases += [(shape, 100000, "intel", len(gpus), hosts) for shape in ("each", "half", "one") for hosts in (2, 4)]
cases += [(shape, 400000, "amd", len(gpus), hosts) for shape in ("each", "pairs", "beside") for hosts in (2, 4)]
cases += [("each", 400000, "intel", 1, hosts) for hosts in (2, 4, 8, 16)]
start = time.time()
with open(out, "w") as file:
    for shape, speed, vendor, n, hosts in cases:
        if time.time() - start > limit or n > len(gpus):
            continue
        text, count = host(shape, speed, vendor, n)
        open("/tmp/topo.xml", "w").write(text)
        env = dict(os.environ, NCCL_TOPO_FILE="/tmp/topo.xml", NCCL_NET_PLUGIN=f"{folder}/libnccl-net-fake.so", NAMED_ADAPTERS=str(count), NAMED_SPEED=str(speed), NCCL_NVLS_ENABLE="0", NCCL_SOCKET_IFNAME="lo",
                   NCCL_DEBUG="INFO", NCCL_DEBUG_SUBSYS="GRAPH,TUNING,ENV,INIT", NCCL_IGNORE_CPU_AFFINITY="1")
        run = subprocess.run(["timeout", "40", "mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "pml", "ob1", "--mca", "btl", "vader,self", "-n", str(hosts * n), f"{folder}/plans", nccl, str(n)] ,
                             capture_output=True, text=True, env=env)
        file.write(f"# shape {shape} speed {speed} processor {vendor} gpus_per_host {n} hosts {hosts}\n")
        file.write("\n".join(line for line in run.stdout.splitlines() if any(word in line for word in ("Pattern", " : ", "Algorithm", "Protocol", "|", "NET/", "GPU/", "channels", "Tree ", "P2P Chunksize"))) + run.stderr[-1500:] + "\n")
        file.flush()
print(time.time() - start)
