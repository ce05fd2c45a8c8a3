# SPDX-License-Identifier: Apache-2.0
"""Public logs whose thread reports a fault and names its cause, each with the cluster as its owner would describe it (healthy),
and the public runs of clusters that nobody complains of.

Logs that report slowness without a cause, and files marked suspicious because a fact was inferred, are in `NOT_JUDGED` with the reason."""
import dataclasses
import pathlib
import re

import logs

RAW = "# ---- raw output below ----"
HEAD = "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"


@dataclasses.dataclass
class Sick:
    log: str
    scenario: str  # text below `topology:`; the description of the healthy cluster
    causes: tuple  # the doctor's names of what the thread reports
    said: str  # what the thread says
    topology: str = ""
    rows: tuple = ()  # (size, busbw in GB/s) where the log holds single published values, of `ranks`
    ranks: int = 0
    pingpong: bool = False  # a table of IMB: its PingPong is what osu_latency measures
    healthy: object = None  # what the same thread publishes of the same hosts without the fault: a log's name, or its text
    is_bare: bool = False  # that run is of bare metal, the log of VMs


GDRTEST = """software: {mpi: open-mpi-ucx, gpudirect_rdma: on, gdrcopy: on, device_eager_limit: 256 KiB}
workload: {benchmark: osu_latency, gpus: 2, ranks_per_host: 1, buffers: [device, device]}
"""
OFF = ("gpudirect-off", "nv-peer-mem-missing")
GIB = 2**30
TRANSLATED = ("acs-redirect", "ats-off", "translation-shared")

GDR_HEALTHY = "gdrtest-2node-osu_latency-DD-gdr1-gdrcopy1"

SICK = (
    Sick("a100-pcie-2gpu-2node-hdr-gdr-sys-allreduce-nccl2.21", """software: {gpudirect_rdma: on, nccl: {version: "2.21", gdr_level: sys}}
workload: {benchmark: all_reduce_perf, gpus: 2, ranks_per_host: 1, launch: process_per_gpu}
""", ("wrong-socket",), "GPU and adapter on different sockets, GPUDirect forced across",
         "{name: x, hosts: [{name: node, count: 2, host: {processor: epyc-rome, sockets: 2, devices: [{name: gpu0, type: a100-pcie-40, below: socket0, pcie: gen4 x16}, {name: hca0, type: connectx-6-hdr, below: socket0, pcie: gen4 x16}]}}], fabric: {single_switch: {switch: qm8700, cable: 3 m}}}"),
    Sick("gdrtest-2node-osu_latency-DD-gdr0-gdrcopy0", GDRTEST, (*OFF, "gdrcopy-off"), "GPUDirect RDMA and gdrcopy off", "hgx-a100-4gpu-hdr-pair", healthy=GDR_HEALTHY),
    Sick("gdrtest-2node-osu_latency-DD-gdr0-gdrcopy1", GDRTEST, OFF, "GPUDirect RDMA off", "hgx-a100-4gpu-hdr-pair", healthy=GDR_HEALTHY),
    Sick("gdrtest-2node-osu_latency-DD-gdr1-gdrcopy0", GDRTEST, ("gdrcopy-off",), "gdrcopy off", "hgx-a100-4gpu-hdr-pair", healthy=GDR_HEALTHY),
    Sick("ndr200-2node-osu_bw-DD-ucx1.15rc3-degraded", """software: {mpi: open-mpi-ucx, gpudirect_rdma: on}
workload: {benchmark: osu_bw, gpus: 2, ranks_per_host: 1, buffers: [device, device]}
""", OFF, "GPUDirect RDMA not used above 8 KiB", "blind/ndr200-pair",
         healthy="# OSU MPI-CUDA Bandwidth Test v7.2\n# Send Buffer on DEVICE (D) and Receive Buffer on DEVICE (D)\n# Size      Bandwidth (MB/s)\n4194304 24756.14\n"),
    Sick("h100-24gpu-3vm-roce-8x2x200-allreduce-degraded", """software: {gpudirect_rdma: on, nccl: {version: "2.22"}}
workload: {benchmark: all_reduce_perf, gpus: 24, launch: process_per_gpu}
""", ("congested-2", "congested-4", "leaf-uplinks", "pfc-off"), "congestion between two racks (flow control, ECMP)", "two racks"),
    Sick("v100-sxm2-4gpu-1node-no-p2p-allreduce-nccl2.26", """software: {nccl: {version: "2.26"}}
workload: {benchmark: all_reduce_perf, gpus: 4, launch: one_thread}
""", ("p2p-off", "p2p-shm-off"), "NVLink not used", "abci-v100"),
    Sick("v100-sxm3-2gpu-2vm-tcp-socket-allreduce-nccl2.11", """software: {nccl: {version: "2.11"}}
workload: {benchmark: all_reduce_perf, gpus: 2, ranks_per_host: 1, launch: process_per_gpu}
""", ("tcp",), "RDMA switched off (NCCL_IB_DISABLE=1)", "dgx-2-pair"),
    Sick("h100-16gpu-2vm-ndr8-cloudhypervisor-summary", """virtualization: {mode: passthrough, hypervisor: cloud-hypervisor, guest_topology: injected, ats: on}
workload: {benchmark: all_reduce_perf, gpus: 16, launch: process_per_gpu}
""", TRANSLATED, "the loss is between GPU and adapter in the VM; ACS, ATS", "hgx-h100-ndr", ((8 * GIB, 154.925),), 16),
    Sick("h200-16gpu-2node-nicscaling-kvm-vs-baremetal", """virtualization: {mode: passthrough, hypervisor: kvm, guest_topology: shown, ats: on}
workload: {benchmark: all_reduce_perf, gpus: 16, launch: process_per_gpu}
""", TRANSLATED, "guest loses above two adapters (translation)", "h200-cx7x4-pair", ((9 * GIB, 180),), 16,
         healthy=((9 * GIB, 320),), is_bare=True),
    Sick("a100-16gpu-2vm-2xhdr-sriov-acs-before-after-allreduce-partial", """virtualization: {mode: sr-iov, hypervisor: kvm, guest_topology: shown}
workload: {benchmark: all_reduce_perf, gpus: 16, launch: process_per_gpu, algorithm: ring}
""", ("acs-redirect",), "peer traffic redirected by ACS", "kvm-a100-2hdr", ((4 * GIB, 27),), 16,
         healthy=((4 * GIB, 48),)),
    Sick("fdr-cx3-ipoib-2node-imb-pingpong-pingping", """software: {mpi: open-mpi-openib}
workload: {benchmark: osu_latency, buffers: [host, host]}
""", ("tcp",), "TCP over IPoIB instead of verbs", "p100-cx3-pair", pingpong=True),
    Sick("eth1g-2node-imb-pingpong-pingping", """software: {mpi: open-mpi-openib, transport: tcp}
workload: {benchmark: osu_latency, buffers: [host, host]}
""", ("port-half", "port-quarter", "port-tenth"), "a 10GBASE-T adapter at the rate of 1 Gb/s",
         "{name: x, hosts: [{name: node, count: 2, host: {processor: xeon-broadwell, sockets: 2, devices: [{name: nic0, type: ethernet-10g, below: socket0}]}}], fabric: {single_switch: {switch: ethernet-25g-tor, rate: 10 Gb/s, cable: 3 m, mtu: 1448 B}}}",
         pingpong=True),
)

# Runs of these threads that are no healthy ones of the same hosts and count: nodes with NPS=4 and no GPUDirect (a100-pcie-2gpu-2node-hdr), bare metal
# with ACS on, one VM alone (h100-16gpu-2vm-ndr8-cloudhypervisor).

NOT_JUDGED = {
    "a100-16gpu-2node-2xhdr-allreduce-nccl-versions": "slow since a release, no cause named",
    "a100-aws-p4d-1to4vm-allreduce-1GiB-nccl2.9": "asks what to expect, no cause named",
    "a100-sxm4-80gb-8gpu-pcie-p2p-p2pBandwidthLatencyTest": "no fault reported",
    "gcp-32gbe-tcp-nccl2.4.7-nodesxgpus-busbw": "order of GPUs (a guess), best values only",
    "h100-16gpu-2node-ndr8-lowperf-allreduce": "slow, no cause named",
    "v100-pcie-2gpu-2node-10g-allreduce": "no fault reported, network inferred",
    "v100-sxm2-4gpu-2node-ib-alltoall-nccl-hpcsdk23.7": "no fault reported, network inferred",
    "v100-dgx2-12gpu-1node-nvswitch-allgather": "four GPUs in use by others",
    "v100-dgx2-12gpu-1node-nvswitch-reducescatter": "four GPUs in use by others",
}


def scenario_text(case: Sick, source: pathlib.Path) -> tuple:
    """Topology text (empty: a shipped file) and scenario text, with absolute paths."""
    topologies = source / "topologies"
    if case.topology.startswith("{"):
        return "schema: fabricast/topology/1\n" + case.topology[1:-1].replace("name: x, hosts:", "name: x\nhosts:", 1).replace(", fabric:", "\nfabric:", 1) + "\n", case.scenario
    if case.topology == "two racks":
        text = (topologies / "blind" / "h100-roce-3vm.yaml").read_text()
        return re.sub(r"single_switch: .*", "leaf_spine: {switch: ethernet-400g-leaf, leaf_ports: 32, spines: 1, cable: 10 m}", text), case.scenario
    return "", case.scenario


def nccl_log(rows: list, ranks: int) -> str:
    """Rows of all_reduce_perf in nccl-tests' columns: (bytes, seconds)."""
    text = f"# nThread 1 nGpus 1 minBytes {rows[0][0]} maxBytes {rows[-1][0]} step: 2(factor)\n" + HEAD
    for size, seconds in rows:
        rate = size / seconds / 1e9
        half = f"{seconds * 1e6:.2f} {rate:.2f} {rate * 2 * (ranks - 1) / ranks:.2f} 0"
        text += f"{size} {size // 4} float sum -1 {half} {half}\n"
    return text


def busbw_log(rows: tuple, ranks: int) -> str:
    """Published values of all_reduce_perf: (bytes, busbw in GB/s)."""
    return nccl_log([(size, size / (rate * 1e9) * 2 * (ranks - 1) / ranks) for size, rate in rows], ranks)


def healthy_text(case: Sick) -> str:
    """The thread's own healthy run where it is no log of its own."""
    if isinstance(case.healthy, tuple):
        return busbw_log(case.healthy, case.ranks)
    return case.healthy if case.healthy and "\n" in case.healthy else ""


def log_text(case: Sick, path: pathlib.Path) -> str:
    """The log as the doctor reads it; empty: the file itself."""
    if case.rows:
        return busbw_log(case.rows, case.ranks)
    if not case.pingpong:
        return ""
    table = path.read_text(errors="replace").partition("# Benchmarking PingPong")[2].partition("# Benchmarking PingPing")[0]
    cells = [line.split() for line in table.splitlines()]
    pairs = [(cell[0], cell[2]) for cell in cells if len(cell) == 4 and cell[0].isdigit()]
    return "# OSU MPI Latency Test\n# Size          Latency (us)\n" + "".join(f"{size} {time}\n" for size, time in pairs)


def healthy(source: pathlib.Path) -> list:
    """(name, scenario, log) of public runs marked clean that a scenario describes, read by one of the three suites."""
    folders = [folder for folder in logs.measurement_folders(source) if folder.name in ("public", "public-2")]
    found = []
    for folder in ("validation", "blind"):
        for scenario in sorted((source / "scenarios" / folder).glob("*.yaml")):
            log = logs.log_of(scenario.stem, folders)
            if log is None or logs.header(log).get("quality") != "clean":
                continue
            text = log.read_text(errors="replace").partition(RAW)[2]
            tables = len(re.findall(r"out-of-place|^# OSU|#bytes +#iterations", text, re.MULTILINE))
            if re.search(r"algbw|# OSU|#bytes", text) and tables <= 1:
                found.append((scenario.stem, scenario, log))
    return found
