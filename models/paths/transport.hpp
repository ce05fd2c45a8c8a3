// SPDX-License-Identifier: Apache-2.0
// How bytes get from one memory to another, hop by hop: which copies and DMA operations, over which links and limits.
// Shared by NCCL, MPI and verbs models. Equations and sources: docs/MODELS.md, "Transports".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabricast/gpudirect_software.hpp"
#include "fabricast/models/plan.hpp"
#include "fabricast/models/planner.hpp"

namespace fabricast::models {

/// nvlink: GPU stores over NVLink. pcie: peer-to-peer over PCIe. host_memory: GPU to host memory and on to the other
/// GPU (no peer-to-peer). network: RDMA with GPUDirect on both ends, or host buffers. network_staged: RDMA with the
/// data staged through host memory on at least one end. socket: TCP.
enum class TransportKind { nvlink, pcie, host_memory, network, network_staged, socket };

/// As parameter names spell it: nvlink, pcie, shm, network, network_staged, socket.
std::string_view to_string(TransportKind kind);

/// One connection: everything a byte crosses on its way, and the idle latency of the links.
struct Route {
  TransportKind kind = TransportKind::nvlink;
  std::vector<Crossing> crossings;  ///< unsorted; a resource may occur twice
  Duration latency;                 ///< links and switches only
  double whole_packet_wait = 0;     ///< seconds per byte of a lone packet, see models::whole_packet_wait()
  Duration adapter_latency;         ///< one-way HCA processing, sending and receiving side together
  std::vector<Term> guest_terms;    ///< one way, what virtual machines on the ends add
  bool lands_in_gpu = false;        ///< between hosts: the receiver's buffer lies in its GPU
  int pcie_switch_hops = 0;
  int socket_crossings = 0;
  std::vector<Leg> legs;  ///< only when PlanContext::with_legs
};

/// Adds `times` x the legs of `route` to those of a flow.
void add_legs(const Route& route, int times, std::vector<Leg>& legs);
/// Sorted, equal transfers counted together.
std::vector<Leg> merged_legs(std::vector<Leg> legs);

/// Continues `route` with `next`; staged anywhere is staged.
void append(Route& route, const Route& next);

/// Adds a DMA by `initiator_is_reader` (reads from the far memory) along `path`: links, and the processor's peer limits
/// when the path turns around in a root complex.
/// add_dma between a GPU and an HCA; what the HCA reads from GPU memory may be limited
/// (`<hca>.gpudirect_read_bandwidth`).
void add_gpudirect(const PlanContext& context, DeviceId hca, const Path& path, bool is_read, Route& route);
void add_dma(const PlanContext& context, const Path& path, bool is_read, Route& route);

/// Adds a copy between a PCIe device and host memory; `to_memory` says which way. Counts the memory's DRAM limit.
void add_host_copy(const PlanContext& context, DeviceId device, DeviceId memory, bool to_memory, Route& route);

/// Adds what a memory reads and writes: 2 for each byte read, 3 for each written, of twice its bandwidth less what
/// neighbours of the host take. Nothing when the processor has no such figure.
void add_dram(const PlanContext& context, DeviceId memory, int times, Route& route);

/// Adds a copy between two GPUs of one host through `memory`, in chunks: out of one GPU, into the other. Returns the
/// rate that two copies reach whose chunks overlap only in part (bytes/s). Between GPUs that could reach each other
/// below one socket the processor's limits for peer traffic hold too: what a root complex forwards it also takes in, so
/// a detour through memory is not forecast to beat the direct way of the same slots.
double add_staged_copy(const PlanContext& context, DeviceId from, DeviceId to, DeviceId memory, Route& route);

/// A path between two GPUs that libraries use for peer access: NVLink, or PCIe inside a socket.
bool is_peer_path(const PlanContext& context, DeviceId from, DeviceId to, const Path& path);

/// Adds the fabric between two HCAs, with the packet-header limits of both ports.
/// Throws NoRoute when the two are not connected; simulate() turns that into a diagnostic.
/// `from_user`, `to_user`: the GPUs or memories that talk, which tell the VMs whose virtual functions carry the data.
void add_fabric(const PlanContext& context, DeviceId from_hca, DeviceId to_hca, std::uint64_t flow, Route& route,
                DeviceId from_user = {}, DeviceId to_user = {});

/// Parts of add_fabric: the links between the two adapters (throws NoRoute), half of what one adapter adds to a
/// message, and what packet headers leave of its port.
void add_wire(const PlanContext& context, DeviceId from_hca, DeviceId to_hca, std::uint64_t flow, Route& route);
/// Adds to `crossings` what traffic over a network link loads, `times` it: the link, or what routers that choose the
/// way of each packet spread it over.
void add_network_link(Resources& resources, LinkId link, int times, std::vector<Crossing>& crossings);
/// What a message's first packet waits for at switches whose next link is faster; no time where none is.
Term whole_packet_term(const PlanContext& context, const Route& route, DeviceId from_hca, double bytes);
double half_latency_s(const PlanContext& context, DeviceId hca);
Crossing payload_crossing(const PlanContext& context, DeviceId hca, bool is_sender);

/// May the HCA read or write this GPU's memory directly, as the software is set up? `is_read`: the sending side.
struct GpuDirect {
  bool is_allowed = false;
  std::string reason;  ///< why not
};
/// What of `software:` is too old for GPUDirect RDMA over this adapter.
std::optional<OldSoftware> old_for_gpudirect(const PlanContext& context, DeviceId hca);

/// Widest distance at which the library uses GPUDirect RDMA: NCCL pxb, MPI phb/node (docs/MODELS.md, "GPUDirect RDMA").
GpuDirect gpudirect_rdma(const PlanContext& context, DeviceId gpu, DeviceId hca, Distance farthest);

/// How programs reach an adapter: by verbs, by a provider of libfabric alone (Slingshot-11, Aries), or by the kernel's
/// TCP only. What a plugin of NCCL adds (TCPXO) is none of these. EFA has verbs of its own (SRD) beside libfabric.
enum class Access { verbs, libfabric, tcp };
Access access_of(const PlanContext& context, DeviceId hca);

/// The provider of libfabric by which programs reach an adapter: what its `libfabric` names (efa, cxi), efa over that
/// protocol; empty: none, it is reached by verbs or sockets, or there is no adapter.
std::string_view provider_of(const PlanContext& context, DeviceId hca);

/// True when connections of this HCA run over TCP sockets: asked for, or the adapter has no RDMA (`rdma: 0`).
bool uses_tcp(const PlanContext& context, DeviceId hca);

/// The processor type of the device's host.
const std::string& processor_of(const Topology& topology, DeviceId device);
/// The processor's `vendor` in the catalogue is "amd".
bool is_amd(const Topology& topology, DeviceId device);
/// Intel's and AMD's; NVIDIA's are not.
bool is_x86(const Topology& topology, DeviceId device);

/// `<processor of the device's host>.<field>` where it is known, else the parameter `usual`.
const Parameter& of_processor(const PlanContext& context, DeviceId device, std::string_view field,
                              const std::string& usual);

/// `<device type>.<field>` of a field that every device of the kind has.
double device_value(const PlanContext& context, DeviceId device, std::string_view field);

/// `<device type>.<field>`, or what leaving the field out means.
double device_value_or(const PlanContext& context, DeviceId device, std::string_view field, double fallback);

/// 10 x major + minor.
int compute_capability(const PlanContext& context, DeviceId gpu);

}  // namespace fabricast::models
