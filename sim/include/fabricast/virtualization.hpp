// SPDX-License-Identifier: Apache-2.0
// What a host wears: bare metal, or virtual machines with their devices handed through in one of several ways. A layer
// over any topology: the graph says what the hardware is, this says what a guest may do with it. One word in YAML sets
// everything as the vendors' guides recommend; a mapping changes single settings. Facts and sources: docs/MODELS.md,
// "Virtualization".
#pragma once

#include <compare>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabricast/diagnostic.hpp"
#include "fabricast/sharing.hpp"
#include "fabricast/units.hpp"

namespace fabricast {

/// The word of `virtualization:`. tcp: GPUs passed through, network by vmxnet3 (ESXi) or virtio (others).
enum class VirtualMode { bare_metal, passthrough, sr_iov, vgpu, mig, pvrdma, tcp, remote_gpu };
enum class Hypervisor { none, esxi, kvm, cloud_hypervisor, xen, hyper_v };
/// How a guest gets a GPU. `remote`: calls go over the network to a server with the GPU.
enum class GpuMode { bare_metal, passthrough, vgpu, mig, remote };
/// How a guest gets a network adapter.
enum class NicMode { bare_metal, passthrough, sr_iov, pvrdma, vmxnet3, virtio };
/// PCIe access control of the switches: `redirect` sends every peer request up to the root complex,
/// `direct_translated` lets requests pass that the device has translated itself (ATS), `off` switches by address.
enum class AcsMode { redirect, direct_translated, off };
/// What the guest sees of the PCIe tree. `injected`: hidden, but a file (NCCL_TOPO_FILE) tells NCCL.
enum class GuestTopology { shown, hidden, injected };
/// Who translates the addresses of peer requests: the devices from what they have cached, or the root complexes of the
/// socket, which share what they can do.
enum class PeerTranslation { cached, shared };
enum class LatencySensitivity { normal, high };
/// Who holds the NVSwitches below passed-through GPUs: `passthrough`, the VM with all GPUs of the board; `shared`, the
/// host or a service VM, which hands out partitions of 1, 2, 4 or 8 GPUs.
enum class NvswitchMode { passthrough, shared };

std::string_view to_string(VirtualMode mode);
std::string_view to_string(Hypervisor hypervisor);
std::string_view to_string(GpuMode mode);
std::string_view to_string(NicMode mode);
std::string_view to_string(AcsMode mode);
std::string_view to_string(GuestTopology seen);
std::string_view to_string(PeerTranslation translation);
std::string_view to_string(LatencySensitivity level);
std::string_view to_string(NvswitchMode mode);

/// Release of a hypervisor: `6.7 U1` is {6, 7, 1}.
struct ReleaseNumber {
  int major = 0;
  int minor = 0;
  int update = 0;
  auto operator<=>(const ReleaseNumber&) const = default;
};
/// Reads `7.0`, `6.7 U1`, `6.7U3`; empty when it is none.
std::optional<ReleaseNumber> release_from(std::string_view text);
std::string to_string(const ReleaseNumber& release);
/// Reads the number that stands for a release in a table of parameters: 671 is 6.7 U1, 174 Open MPI 1.7.4.
ReleaseNumber release_of_code(double code);

enum class GuestSystem { linux_, windows };
std::string_view to_string(GuestSystem system);

/// A device as one VM holds it: `gpu0: {vgpu: a100-10c}`.
struct VmDevice {
  std::string device;          ///< name in the host, e.g. hca1
  std::optional<GpuMode> gpu;  ///< one of gpu and nic is set
  std::optional<NicMode> nic;
  std::string card;                     ///< the GPU it is a part of, where the VM holds several parts; else empty
  std::string profile;                  ///< vGPU or MIG profile
  int functions = 1;                    ///< sr-iov: virtual functions of the adapter
  std::optional<Bandwidth> rate_limit;  ///< of all its functions together, or of the virtual adapter, each way
  std::string remote;                   ///< host.gpu whose calls go over the network
  double share = 1;                     ///< of the remote GPU
  std::optional<Bytes> memory;          ///< limit of the remote GPU's memory
  SourceLocation location;
};

struct Virtualization {
  VirtualMode mode = VirtualMode::bare_metal;
  Hypervisor hypervisor = Hypervisor::none;
  ReleaseNumber version;  ///< of the hypervisor; checked for ESXi
  GpuMode gpu = GpuMode::bare_metal;
  NicMode nic = NicMode::bare_metal;
  std::map<std::string, GpuMode> gpu_by_name;  ///< single devices that differ
  std::map<std::string, NicMode> nic_by_name;
  int vms_per_host = 1;
  std::optional<int> vcpus;  ///< per VM; default: the host's cores shared out
  bool is_pinned = true;     ///< every vCPU has a core of its own
  bool is_numa_aligned = true;
  double reserved_share = 1;  ///< of the VM's memory, 0..1
  std::optional<Bytes> memory;
  bool has_huge_pages = true;
  LatencySensitivity latency_sensitivity = LatencySensitivity::normal;
  bool has_efi = true;
  bool has_above_4g_decoding = true;  ///< BIOS setting of the host
  bool uses_64bit_mmio = true;        ///< pciPassthru.use64bitMMIO
  std::optional<Bytes> mmio_size;     ///< pciPassthru.64bitMMIOSizeGB; default: as large as needed
  bool allow_p2p = true;              ///< pciPassthru.allowP2P
  AcsMode acs = AcsMode::direct_translated;
  bool has_ats = true;
  PeerTranslation translation = PeerTranslation::cached;
  GuestTopology guest_topology = GuestTopology::shown;
  NvswitchMode nvswitches = NvswitchMode::passthrough;
  bool is_container = false;            ///< the application runs in a container inside the VM
  bool has_vhost = true;                ///< virtio: a kernel thread moves packets; off: the emulator does
  int mtu = 9000;                       ///< of vmxnet3, virtio and remote GPU connections
  std::optional<Bandwidth> rate_limit;  ///< of each virtual function
  std::string switch_name;              ///< distributed switch the VMs are attached to
  std::string profile;                  ///< vGPU or MIG profile, e.g. `a100-20c`, `2g.10gb`; empty = whole GPU
  std::vector<std::string> profiles;    ///< profiles on one GPU when several are named
  SharePolicy scheduler = SharePolicy::best_effort;
  std::optional<Duration> time_slice;
  int busy_neighbours = 0;                    ///< other vGPUs of the same GPU that compute all the time
  std::optional<ReleaseNumber> vgpu_release;  ///< of the vGPU software; ECC needs 9.0
  bool has_ecc = false;                       ///< ECC switched on by the user
  bool has_unified_memory = false;            ///< enable_uvm of the vGPU
  double gpu_share = 1;                       ///< remote GPU: part of the GPU asked for
  std::optional<Bytes> gpu_memory;            ///< remote GPU: memory limit
  std::vector<std::string> needs;             ///< features the user requires: migration, ha, drs, snapshot, ...

  // Of one VM that was described by itself (`vms:`).
  std::string vm_name;            ///< empty for VMs dealt out by `vms_per_host`
  std::vector<VmDevice> devices;  ///< all it holds
  std::vector<int> numa_nodes;    ///< sockets its memory and vCPUs are on; empty: those of its devices
  int hardware_version = 0;       ///< 0: the newest of the release
  GuestSystem guest_system = GuestSystem::linux_;
  std::string port_group;
  int vlan = 0;
  std::optional<int> priority;  ///< PCP of its frames; empty: untagged
  double network_shares = 50;   ///< of a physical port's rate, beside those of other VMs that send
  double cpu_shares = 1000;     ///< of each vCPU, when cores are short
  double cpu_load = 1;          ///< part of the time each vCPU has work while the workload runs
  bool has_own_work = true;     ///< its vGPUs compute all the time; off: idle beside the others
  bool has_dynamic_directpath = false;
  std::optional<Bytes> host_memory;  ///< of the machine; VMs that reserve more do not power on
  bool queues_for_remote = false;    ///< clients of a remote GPU that ask for more than all of it wait; else refused
  int firmware_functions = 0;        ///< VFs the adapters' firmware offers per port; 0: as many as they can
  int vms_on_host = 1;               ///< all VMs of its host
  double vcpus_on_host = 0;          ///< of all VMs of its host
  std::map<std::string, int> busy_by_name;  ///< vGPUs of other VMs on a GPU of this VM that compute

  /// The VMs of the host, when they were described one by one; each has the settings of its own.
  std::vector<std::shared_ptr<const Virtualization>> vms;
  SourceLocation location;
  std::map<std::string, SourceLocation> locations;  ///< where each key was written

  [[nodiscard]] bool is_virtual() const { return mode != VirtualMode::bare_metal; }
  [[nodiscard]] GpuMode gpu_mode(const std::string& device) const;
  [[nodiscard]] NicMode nic_mode(const std::string& device) const;
  /// How a VM holds the device; null when it was not said of this one.
  [[nodiscard]] const VmDevice* held(const std::string& device) const;
  /// vGPU or MIG profile of a GPU; empty = the whole GPU.
  [[nodiscard]] const std::string& profile_of(const std::string& device) const;
  [[nodiscard]] std::optional<Bandwidth> rate_limit_of(const std::string& device) const;
  [[nodiscard]] int busy_neighbours_of(const std::string& device) const;
  /// VMs on the host of this one, itself included.
  [[nodiscard]] int neighbours() const { return vm_name.empty() ? vms_per_host : vms_on_host; }
  /// Peer requests between PCIe devices go up to the root complex although a switch below could join them. On bare
  /// metal only when `acs` says so.
  [[nodiscard]] bool redirects_peers() const;
};

/// The settings one word stands for.
Virtualization virtualization_of(VirtualMode mode, Hypervisor hypervisor);
const std::vector<std::string>& virtual_mode_names();
std::optional<VirtualMode> virtual_mode_from(std::string_view name);

/// Whether something works under the settings, and why not.
struct Gate {
  bool is_open = true;
  std::string reason;
  bool is_inferred = false;  ///< the reason is documented nowhere: the user may overrule it
};
/// Direct access between two passed-through PCIe devices of one VM (GPUDirect P2P over PCIe, GPUDirect RDMA).
Gate peer_gate(const Virtualization& guest);
/// GPUDirect P2P over NVLink between GPUs of one VM.
/// `compute_capability` as 10 x major + minor.
Gate nvlink_gate(const Virtualization& guest, GpuMode gpu, bool is_whole_gpu, int compute_capability);
/// NVLink multicast between GPUs of one VM, which NVLink SHARP rests on, as far as the VM decides.
Gate multicast_gate(const Virtualization& guest, GpuMode gpu, bool is_whole_gpu);
/// GPUDirect RDMA between a GPU and an HCA of one VM. `compute_capability` as 10 x major + minor.
Gate gpudirect_gate(const Virtualization& guest, GpuMode gpu, NicMode nic, bool is_whole_gpu, int compute_capability);
/// True for adapters that carry TCP only.
bool is_tcp_only(NicMode mode);
/// The adapter is a port of the hypervisor's own switch, beside those of other VMs.
bool is_on_hypervisor_switch(NicMode mode);
/// True when several VMs can use one adapter or GPU.
bool is_shareable(NicMode mode);
bool is_shareable(GpuMode mode);

/// What remains possible for the VMs of a host.
struct GuestFeatures {
  Gate sharing, p2p, gpudirect;
};
GuestFeatures features_of(const Virtualization& guest, bool is_whole_gpu, int compute_capability);

/// 64-bit MMIO space for BARs of `bytes` together: the next power of two strictly above.
Bytes mmio_space(Bytes bytes);

}  // namespace fabricast
