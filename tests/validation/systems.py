# SPDX-License-Identifier: Apache-2.0
"""Which published log belongs to which system (site, hosts and fabric), and what of a system is in the shipped values beside fits."""
import re

# System, names of its logs, its own calibrations (calibration/NAME.yaml).
SYSTEMS = (
    ("ABCI A100", r"a100-abci-", ("abci-a100", "mpi-abci-a100")),
    ("ABCI V100", r"v100-abci-", ("abci-v100", "mpi-abci-v100")),
    ("AWS p3dn", r"v100-aws-p3dn-|efa-aws-p3dn-", ("aws-p3dn", "mpi-aws-p3dn")),
    ("AWS p4d", r"a100-aws-p4d-", ("aws-p4d",)),
    ("Azure HBv3", r"hdr-azure-hbv3-", ("mpi-azure-hbv3",)),
    ("Azure HDR loopback", r"hdr-azure-ib_write_bw-loopback", ("mpi-azure-hdr-loopback",)),
    ("Azure NC24rs v3", r"v100-azure-nc24rsv3-", ("azure-nc24rs-v3",)),
    ("Azure ND A100 v4", r"a100-azure-8gpu-", ("azure-nd-a100-v4",)),
    ("Azure NDv2", r"v100-azure-2vm-|edr-azure-nd40-|v100-azure-(aks|ndv2)-", ("mpi-azure-ndv2",)),
    ("A100 4 PCIe", r"a100-pcie-4gpu-1node", ("a100-pcie-gen3",)),
    ("A100 PCIe pair, HDR across sockets", r"a100-pcie-2gpu-2node-hdr-", ("a100-pcie-hdr-sys-pair",)),
    ("A100 host of a guide", r"a100-8gpu-1node-nvswitch-allreduce-32KiB", ("hgx-a100-guide",)),
    ("A100 4-GPU host", r"a100-sxm4-4gpu-1node", ("hgx-a100-4gpu",)),
    ("A100 pair of EESSI", r"a100-2gpu-1node-nv4-osu", ("mpi-hgx-a100-4gpu",)),
    ("A100 80 GB host", r"a100-sxm4-80gb-8gpu-1node", ("hgx-a100-80gb",)),
    ("ConnectX-4 pair", r"cx4-100g-", ("mpi-cx4-100g",)),
    ("ConnectX-6 pair", r"hdr-cx6-", ("mpi-cx6-hdr",)),
    ("DGX-1 of an issue", r"v100-sxm2-8gpu-1node", ("dgx-1-v100-pair",)),
    ("gdrtest pair", r"gdrtest-", ("mpi-hgx-a100-4gpu",)),
    ("Google A3 Mega", r"h100-gcp-a3mega-", ("google-a3-mega",)),
    ("Google N1", r"tcp-google-n1v100-|v100-google-ce-", ("mpi-google-n1-v100",)),
    ("H100 NDR", r"h100-16gpu-2node-ndr8-baremetal|h100-64gpu-8node-ndr8|h100-8gpu-1node-nvls", ("hgx-h100-ndr",)),
    ("H100 XE9680", r"h100-hgx-16gpu-", ("hgx-h100-xe9680",)),
    ("H200 VMs of ours", r"h200vm", ("h200-8gpu-vm",)),
    ("Leonardo, inside a node", r"a100-leonardo-", ("leonardo",)),
    ("Nimbix K80", r"fdr-nimbix-|k80-nimbix-", ("mpi-nimbix-k80",)),
    ("OCI BM.GPU4.8, inside a host", r"a100-oci-bm-8gpu-1node", ("oci-bm-gpu4-8",)),
    ("Piz Daint", r"p100-pizdaint-", ("mpi-pizdaint",)),
    ("Polaris, libfabric", r"a100-polaris-.*-setup[34]-", ("shipped-nccl-libfabric",)),
    ("Polaris, TCP", r"a100-polaris-.*-setup1-", ("shipped-nccl-sockets",)),
    ("QDR pair", r"qdr40-cx3-", ("mpi-qdr-cx3",)),
    ("V100 mlx5 pair", r"v100-mlx5-2node-", ("mpi-dgx-1-v100",)),
    ("V100 behind a PCIe switch", r"v100-pcie-4gpu-1node", ("v100-pcie-switch-nccl2.4", "v100-pcie-switch-nccl2.8")),
    ("V100 PCIe, 40 Gb/s RoCE", r"v100-pcie-2gpu-1node-shm|v100-pcie-4gpu-2node-roce40", ()),
    ("MPI inside a VM of ours", r"emr-vm-", ()),
    # no calibration and no value, but a scenario or choice was made with these logs in view
    ("A100 KVM", r"a100-16gpu-2vm-2xhdr", ()),
    ("Azure NC96ads", r"a100-azure-nc96ads-", ()),
    ("CoreWeave H100", r"h100-coreweave-", ()),
    ("H100 PCIe", r"h100-pcie-2gpu", ()),
    ("H100 class, 4 hosts", r"h100class-", ()),
    ("H20 VMs", r"h20-4gpu-2vm", ()),
    ("H200, 4 adapters", r"h200-16gpu-2node-cx7x4", ()),
    # scenarios/blind: hosts or fabric that no fit has seen
    ("Alps GH200", r"gh200-alps-", ()),
    ("aiconfigurator A100", r"aic-a100", ("shipped-nccl-ampere",)),
    ("aiconfigurator B200", r"aic-b200", ("shipped-nccl-blackwell",)),
    ("aiconfigurator GB200", r"aic-gb200", ()),
    ("aiconfigurator H100", r"aic-h100_sxm-nccl", ()),
    ("DGX-2", r"v100-dgx2-", ()),
    ("H100 cluster01", r"h100-xxrjun-", ()),
    ("H100 NDR, fault reported", r"h100-16gpu-2node-ndr8-lowperf", ()),
    ("H100 RoCE VMs, fault reported", r"h100-24gpu-3vm-", ()),
    ("Leonardo Booster", r"pico-leonardo-", ()),
    ("LUMI-G", r"pico-lumi-", ()),
    ("MI300X hosts of AMD", r"mi300x-", ()),
    ("NDR200 pair, fault reported", r"ndr200-2node-", ()),
    ("NIG V100", r"v100-sxm2-4gpu-2node-ib-alltoall", ()),
    ("OCI MI300X, 2 hosts", r"oci-a100-mi300x-.*-mi300x$", ()),
    ("OCI A100, 2 hosts", r"a100-oci-bm-16gpu-|oci-a100-(?!.*-mi300x$)", ()),
    ("QDR pair, MTU 4096", r"qdr-mtu4096-", ()),
    ("V100 without peer access", r"v100-sxm2-4gpu-1node-no-p2p", ()),
)

# Systems that are alike beyond their GPU: of one cloud or site, or strangers on adapters of one generation and fabric, or hosts alone with GPUs of
# one form. A system that is in none is a family of its own.
FAMILIES = {
    "ABCI": ("ABCI A100", "ABCI V100"),
    "AWS": ("AWS p3dn", "AWS p4d"),
    "Azure": ("Azure HBv3", "Azure HDR loopback", "Azure NC24rs v3", "Azure ND A100 v4", "Azure NDv2", "Azure NC96ads"),
    "Google": ("Google A3 Mega", "Google N1"),
    "InfiniBand NDR": ("H100 NDR", "H100 XE9680", "CoreWeave H100", "H100 class, 4 hosts", "H200, 4 adapters"),
    "InfiniBand HDR": ("A100 PCIe pair, HDR across sockets", "A100 KVM", "ConnectX-6 pair", "gdrtest pair"),
    "100 Gb/s, EDR and RoCE": ("ConnectX-4 pair", "V100 mlx5 pair"),
    "InfiniBand QDR and FDR": ("QDR pair", "Nimbix K80"),
    "A100 hosts with NVLinks": ("A100 host of a guide", "A100 4-GPU host", "A100 80 GB host", "A100 pair of EESSI", "OCI BM.GPU4.8, inside a host"),
    "CINECA": ("Leonardo Booster", "Leonardo, inside a node"),
    "ALCF": ("Polaris, TCP", "Polaris, libfabric"),
    "aiconfigurator": ("aiconfigurator A100", "aiconfigurator B200"),
    "PCIe hosts": ("A100 4 PCIe", "H100 PCIe", "V100 behind a PCIe switch", "V100 PCIe, 40 Gb/s RoCE"),
}

# Values read off a log of a system (no fit made them): leaving the system out does not take them away.
READ_OFF = {
    "ABCI A100": ("mpi.open-mpi-ucx.device_rendezvous_overhead", "connectx-6-hdr.store_and_forward", "xeon-icelake.p2p_read_bandwidth", "nccl.thread_loop_time.ll", "nccl.channel_bandwidth.chain.ll", "xeon-icelake.redirected_adapter_bandwidth", "xeon-icelake.translated_peer_bandwidth"),
    "ABCI V100": ("mpi.open-mpi-ucx.device_rendezvous_overhead.ucx1.7", "connectx-4-edr.store_and_forward", "xeon-skylake.p2p_read_bandwidth", "nccl.thread_loop_time.ll", "nccl.channel_bandwidth.chain.ll", "xeon-skylake.gdrcopy_read_bandwidth"),
    "AWS p3dn": ("efa-100g.connection_bandwidth", "efa-100g.latency", "efa-100g-gdr.connection_bandwidth", "efa-100g-gdr.latency", "mpi.open-mpi-ofi.fetch_gap"),
    "Azure HBv3": ("virtualization.sr-iov.message_time", "connectx-6-hdr.store_and_forward", "connectx-6-hdr.payload_efficiency"),
    "Azure NDv2": ("virtualization.sr-iov.message_time",),
    "A100 PCIe pair, HDR across sockets": ("epyc-rome-nps4.p2p_cross_read_bandwidth", "epyc-rome-nps4.p2p_cross_write_bandwidth", "epyc-rome-nps4.memory_bandwidth"),
    "Azure ND A100 v4": ("cuda.launch_interval", "nccl.launch_time_per_peer.nccl2.13"),
    "A100 4-GPU host": ("cuda.launch_interval",),
    "A100 80 GB host": ("cuda.launch_interval",),
    "A100 pair of EESSI": ("mpi.shared_memory.device_gap", "mpi.cuda_ipc.window_gap", "epyc-milan.gdrcopy_read_bandwidth"),
    "ConnectX-4 pair": ("mpi.open-mpi-openib.staging_bandwidth", "mpi.open-mpi-openib.staging_gap", "mpi.tcp.flow_bandwidth", "mpi.tcp.message_gap", "mpi.tcp.gap_copy_bandwidth"),
    "ConnectX-6 pair": ("connectx-6-hdr.payload_efficiency",),
    "gdrtest pair": ("epyc-milan.p2p_read_bandwidth", "connectx-6-hdr.store_and_forward"),
    "Google N1": ("ethernet-32g.connection_sustained_bandwidth", "ethernet-32g.latency", "mpi.tcp.flow_bandwidth", "mpi.tcp.message_gap", "mpi.tcp.gap_copy_bandwidth"),
    "H20 VMs": ("connectx-7-bond-2x200.payload_efficiency",),
    "H200 VMs of ours": ("xeon-emeraldrapids-vm.memory_bandwidth", "xeon-emeraldrapids-vm.copy_in_bandwidth", "xeon-emeraldrapids-vm.copy_out_bandwidth", "xeon-emeraldrapids-vm.copy_both_bandwidth", "nccl.chunk_overhead.ll128",
                         "nccl.hop_ramp_time", "nccl.hop_ramp_time.simple", "nccl.channel_skew", "nccl.channel_skew.simple",
                         "nccl.first_chunk", "nccl.socket_helper_gain",
                         "nccl.symmetric_block_bandwidth", "nccl.symmetric_block_bandwidth.all_reduce", "nccl.symmetric_pass_time",
                         "nccl.launch_time_per_peer", "h200-sxm.nvlink_efficiency", "cuda.staged_copy_share", "host.both_sockets_share", "host.io_cache_share", "nccl.shm_cache_gain", "nccl.shm_four_packs_share", "nccl.shm_one_way_gain", "nccl.shm_one_way_gain.four_packs", "nccl.shm_both_ways_share", "nccl.shm_apart_share",
                         "cuda.process_switch", "mpi.open-mpi-openib.cuda_ipc_overhead", "mpi.open-mpi-ucx.cuda_ipc_overhead", "xeon-emeraldrapids-vm.p2p_read_bandwidth", "xeon-emeraldrapids-vm.p2p_write_bandwidth", "xeon-emeraldrapids-vm.p2p_cross_read_bandwidth", "xeon-emeraldrapids-vm.p2p_cross_write_bandwidth"),
    "Nimbix K80": ("cuda.device_copy_share", "cuda.process_switch.kepler"),
    "OCI BM.GPU4.8, inside a host": ("cuda.launch_interval",),
    "Piz Daint": ("aries.latency", "mpi.cray-mpich.eager_limit", "mpi.cray-mpich.inline_limit", "mpi.cray-mpich.gpudirect_limit", "mpi.cray-mpich.staging_chunk"),
    "Polaris, libfabric": ("epyc-milan-nps4.p2p_write_bandwidth",),
    "QDR pair": ("connectx-3-qdr.latency", "connectx-3-qdr.payload_efficiency"),
    "DGX-1 of an issue": ("xeon-broadwell.launch_interval",),
    "Azure NC24rs v3": ("xeon-broadwell.launch_interval",),
}

# Values guessed from what a system taught, beside it: they go with it too.
AS_OF = {"H200 VMs of ours": tuple(f"mpi.{library}.cuda_ipc_overhead" for library in ("mvapich2-gdr", "open-mpi-ofi", "cray-mpich", "verbs", "tcp")),
         "A100 PCIe pair, HDR across sockets": ("epyc-milan-nps4.memory_bandwidth", *(f"{name}.p2p_cross_{way}_bandwidth" for name in ("epyc-rome", "epyc-milan") for way in ("read", "write"))),
         "AWS p3dn": ("efa-4x100g.connection_bandwidth", "efa-4x100g.latency", "efa-4x100g.message_rate", "efa-4x100g.libfabric_latency", "efa-2x200g.libfabric_latency", "efa-2x200g.connection_bandwidth", "efa-2x200g.latency", "efa-2x200g.message_rate")}

# The same of logs of several systems that agree (thresholds of a library, a step of every table), which stay when one of them is left out ...
SEEN_ON_SEVERAL = ("mpi.cuda_ipc.gap", "nccl.line_check_bandwidth", "gdrcopy.read_bandwidth", "verbs.dma_read_time", "mpi.open-mpi-ucx.inline_limit", "mpi.shared_memory.device_eager_limit")
# ... and of logs of systems that no table of systems scores.
SEEN_ELSEWHERE = ("tcp.wakeup_time", "xeon-emeraldrapids.translated_peer_bandwidth", "xeon-broadwell.p2p_read_bandwidth", "connect-ib.payload_efficiency", "connectx-3-fdr.payload_efficiency",
                  "mpi.mvapich2-gdr.rendezvous_gap", "mpi.mvapich2-gdr.staging_gap", "virtualization.passthrough.port_share", "virtualization.split_tax", "virtualization.vgpu.split_tax", "virtualization.virtio.message_time",
                  "virtualization.virtio.packet_time", "virtualization.virtio.emulator_message_time", "virtualization.virtio.emulator_packet_time", "mpi.core_memory_bandwidth", "mpi.mpich.inside_overhead", "mpi.mpich.inside_rendezvous")

# What others published of a value that logs here taught, too; it stands in before relatives do. One core of a receiver: Cai et al., SIGCOMM 2021.
PUBLISHED = {"mpi.tcp.flow_bandwidth": "5.3 GB/s"}

# Profiles of rules that no log taught or was compared with by its fit: what they do not have says nothing about others.
UNTAUGHT_PROFILES = ("cray-mpich-cxi",)


def system_of(log: str) -> str:
    """The system that a log belongs to, by the log's name without suffix."""
    found = [name for name, pattern, _ in SYSTEMS if re.match(pattern, log)]
    if len(found) != 1:
        raise ValueError(f"{log}: {len(found)} systems ({', '.join(found)})")
    return found[0]


def family_of(system: str) -> str:
    return next((family for family, members in FAMILIES.items() if system in members), system)


def own_calibrations(system: str) -> tuple:
    return next(own for name, _, own in SYSTEMS if name == system)

# (system, benchmark) whose errors were read after all, and rules of the software looked up for them: no judge any more.
LOOKED_AT = {("ABCI A100", "osu_bcast"), ("ABCI V100", "osu_bcast"), ("Azure ND A100 v4", "alltoall_perf"), ("gdrtest pair", "osu_latency"), ("Azure NDv2", "osu_allreduce"),
             ("Azure NDv2", "osu_bw"), ("Azure NDv2", "osu_latency"), ("Google N1", "osu_allreduce"), ("AWS p4d", "all_reduce_perf")} | {
    ("DGX-2", benchmark) for benchmark in ("all_gather_perf", "all_reduce_perf", "broadcast_perf", "reduce_scatter_perf")
} | {("MI300X hosts of AMD", "all_reduce_perf")} | {
    ("Leonardo Booster", benchmark) for benchmark in ("osu_allgather", "osu_allreduce", "osu_alltoall", "osu_bcast", "osu_gather", "osu_reduce", "osu_reduce_scatter", "osu_scatter")
} | {("LUMI-G", benchmark) for benchmark in ("osu_allgather", "osu_allreduce", "osu_reduce", "osu_reduce_scatter")} | {("ConnectX-6 pair", "ib_write_lat"), ("OCI A100, 2 hosts", "all_reduce_perf")}

# Looked at, but with a library and GPUs of which no log has taught anything: how far strangers scatter does not show there.
UNTAUGHT = ("MI300X hosts of AMD", "LUMI-G")

# Of a system whose other logs stay closed: names of the logs that were opened.
LOOKED_AT_LOGS = re.compile(r"a100-polaris-(8gpu-2node|32gpu-8node)-ss11-setup[134]-(allgather|allreduce|alltoall)-nccl2\.18$|a100-pcie-2gpu-2node-hdr-gdr-sys-allreduce-nccl2\.21$")


def is_looked_at(system: str, scenario: str, part_settings: list) -> bool:
    """`scenario`: its text."""
    name = re.search(r"^name: (\S+)", scenario, re.MULTILINE)
    is_opened = name is not None and LOOKED_AT_LOGS.match(name[1]) is not None
    return is_opened or (system, benchmark_of(scenario, part_settings)) in LOOKED_AT


def benchmark_of(scenario: str, part_settings: list) -> str:
    """What a part says by its settings, else its scenario."""
    for setting in reversed(part_settings):
        if setting.startswith("workload.benchmark="):
            return setting.partition("=")[2]
    return re.search(r"^ *benchmark: (\S+)", scenario, re.MULTILINE)[1]
