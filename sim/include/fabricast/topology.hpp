// SPDX-License-Identifier: Apache-2.0
// The cluster as one directed graph, from GPU and host memory down to network switches, and the path query over it.
//
// A TopologySpec says what the YAML said (host groups, fabric generator, irregular parts). build_topology() expands it.
// Hosts of one group share a HostShape, so 2,048 equal hosts cost little more than one: a device or link of a host is
// its number in the shape plus the host's first number. Paths inside a host are found once per shape; routes between
// hosts are found per pair on demand, never as an all-pairs table.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fabricast/diagnostic.hpp"
#include "fabricast/lossless_spec.hpp"
#include "fabricast/parameters.hpp"
#include "fabricast/units.hpp"

namespace fabricast {

struct Virtualization;

struct DeviceId {
  std::int32_t value = -1;
  constexpr auto operator<=>(const DeviceId&) const = default;
};
struct LinkId {
  std::int32_t value = -1;
  constexpr auto operator<=>(const LinkId&) const = default;
};

/// `memory` is the DRAM of one socket; a `gpu` stands for the accelerator and its memory.
enum class DeviceKind { socket, memory, root_complex, pcie_switch, gpu, nvswitch, hca, network_switch };
enum class LinkKind { memory_bus, socket_interconnect, socket_internal, pcie, nvlink, network };

std::string_view to_string(DeviceKind kind);
std::string_view to_string(LinkKind kind);

// ---- what the YAML said -------------------------------------------------------------------------------------------

/// PCIe generation (1 to 6) and lanes of a slot; 0 = the device's own.
struct PcieSlot {
  int generation = 0;
  int width = 0;
};

struct DeviceSpec {
  std::string name;  ///< unique in its host: gpu0, hca1, rc0, sw0
  DeviceKind kind = DeviceKind::gpu;
  std::string type;   ///< catalogue name; empty for root complexes and plain PCIe switches
  std::string below;  ///< name of the parent: socketN, a root complex or a PCIe switch; empty for nvswitch
  PcieSlot pcie;      ///< slot above the device (gpu, hca, pcie_switch)
  bool in_trained_below_slot = false;  ///< the link trained below its slot (reported by check)
  std::string card;                    ///< a part of this GPU of the host, in the same slot; else empty
  SourceLocation location;
};

/// `links` NVLinks between two GPUs, or between a GPU and an NVSwitch plane.
struct NvlinkSpec {
  std::string from;
  std::string to;
  int links = 1;
  SourceLocation location;
};

struct PowerLimit {
  double watts = 0;
  SourceLocation location;
};

struct HostSpec {
  std::string type;       ///< catalogue name of the host, empty when written inline
  std::string processor;  ///< catalogue name of the processor in every socket
  int num_sockets = 2;
  std::vector<DeviceSpec> devices;
  std::vector<NvlinkSpec> nvlinks;
  std::optional<PowerLimit> gpu_power_limit;             ///< of each GPU; none: its board's own
  std::shared_ptr<const Virtualization> virtualization;  ///< never null in a topology; see virtualization.hpp
};

struct HostGroupSpec {
  std::string name;  ///< hosts are called name0, name1, ... (just `name` when count is 1)
  int count = 1;
  HostSpec host;
  SourceLocation location;
};

/// Hosts of the group: its VMs on every machine where they were described one by one, else its machines.
int num_systems(const HostGroupSpec& group);

/// A switch or cable written by hand, for irregular fabrics and irregular parts of generated ones.
struct SwitchSpec {
  std::string name;
  std::string type;
  SourceLocation location;
};
struct CableSpec {
  std::string from;  ///< `host.hca` or a switch name
  std::string to;
  int count = 1;                   ///< parallel cables
  std::optional<Bandwidth> rate;   ///< per cable and direction; default: the slower end
  std::optional<double> length_m;  ///< metres; default 3
  SourceLocation location;
};

enum class FabricKind { none, single_switch, leaf_spine, fat_tree, rail_optimized, dragonfly, torus, list };

std::string_view to_string(FabricKind kind);

/// Parameters of the fabric generators. Counts of 0 mean "derive from the number of HCAs and the switch's ports".
struct FabricSpec {
  FabricKind kind = FabricKind::none;
  std::string switch_type;                   ///< catalogue name of every generated switch
  std::map<std::string, std::string> asics;  ///< [switch type] of those whose page names their ASIC
  std::optional<Bandwidth> rate;             ///< per port; default: slower of HCA and switch
  std::optional<Duration> hop_latency;       ///< per switch; default: the switch type's
  double cable_length_m = 3;
  std::optional<double> switch_cable_length_m;  ///< of cables between switches; default: cable_length_m
  Routing routing = Routing::automatic;
  std::optional<int> mtu;       ///< payload bytes per packet that the fabric carries; see packet_payload()
  int tiers = 2;                ///< fat_tree: 2 or 3
  double oversubscription = 1;  ///< leaf down capacity / up capacity, >= 1
  int leaf_ports = 0;           ///< ports of one leaf, down plus up
  bool has_splitters = false;   ///< HCAs share ports of generated leaves as far as the switch type's `port_split` goes
  int spines = 0;               ///< leaf_spine
  int rails = 0;                ///< rail_optimized: HCA i of every host goes to rail i
  int groups = 0, routers_per_group = 0, hosts_per_router = 0;  ///< dragonfly
  int global_links = 1;                                         ///< of one router
  int local_links = 1;                                          ///< between two routers of a group
  std::vector<int> dimensions;                                  ///< torus, routers per dimension
  std::vector<SwitchSpec> switches;                             ///< list, or additions to a generator
  std::vector<CableSpec> cables;
  std::optional<LosslessSpec> lossless;
  SourceLocation location;
};

/// Types of the fabric's switches, each once: the generated ones, then those listed.
std::vector<std::string> switch_types(const FabricSpec& fabric);
/// Catalogue name of a switch type's ASIC; empty when its page names none.
std::string asic_of(const FabricSpec& fabric, const std::string& switch_type);
/// Payload bytes of a full packet of adapter type `hca_type`: the largest that the adapter and the fabric's `mtu`
/// allow, of RDMA a path MTU (256 to 4096 B in powers of two); where the fabric names none, the adapter's
/// `default_mtu`, else its `mtu`. 0 where its page has no `mtu`.
double packet_payload(const FabricSpec& fabric, const ParameterSet& parameters, const std::string& hca_type);
/// Switches choose the way of each packet: those of a dragonfly, unless it says otherwise, of a tree where it says so.
bool is_adaptive(const FabricSpec& fabric);
/// Leaves and spines in tiers, and dragonflies.
bool can_be_adaptive(FabricKind kind);
/// How packets find their ways where `asked` is auto: adaptive in trees whose switches choose them, else ecmp, on
/// dragonflies too, whose ways round the packet engine does not know.
std::string packet_routing(const FabricSpec& fabric, const std::string& asked);

struct TopologySpec {
  std::string name;
  std::string file;
  std::vector<HostGroupSpec> hosts;
  FabricSpec fabric;
};

// ---- the graph ----------------------------------------------------------------------------------------------------

/// What switches that choose the way of each packet spread traffic over.
enum class SpreadOver {
  router,  ///< of a dragonfly: its links inside its group
  group,   ///< of a dragonfly: its links to other groups
  leaf,    ///< its links up
  pod,     ///< its links up
};

/// Links that share their traffic, of one direction.
struct SharedLinks {
  SpreadOver over = SpreadOver::router;
  bool is_out = false;
  DeviceId at;  ///< whose links they are; of a group or pod its first switch
  std::vector<LinkId> links;
};

/// What a link is shared with where it starts and where it ends; null: with nothing.
struct SpreadLinks {
  const SharedLinks* out = nullptr;
  const SharedLinks* in = nullptr;
};

struct Device {
  DeviceId id;
  DeviceKind kind = DeviceKind::gpu;
  std::string name;             ///< full: `node3.gpu0`, `leaf1`
  std::string type;             ///< catalogue name, may be empty
  int host = -1;                ///< index of its host; -1 for network switches
  int socket = -1;              ///< socket it hangs below; -1 for network switches and NVSwitches
  int ordinal = 0;              ///< n-th device of its kind in its host (or of all network switches)
  Duration forwarding_latency;  ///< paid by a transfer that passes through (switches, root complexes)
};

/// One direction of a connection.
struct Link {
  LinkId id;
  LinkKind kind = LinkKind::pcie;
  DeviceId from;
  DeviceId to;
  Bandwidth bandwidth;  ///< payload rate after encoding and headers; what a large transfer can reach
  Duration latency;
  int lanes = 0;          ///< PCIe lanes or NVLinks in parallel; 0 elsewhere
  int generation = 0;     ///< PCIe generation; 0 elsewhere
  std::string parameter;  ///< parameter the bandwidth comes from
};

/// A transfer between two PCIe devices that turns around in a root complex (or goes on over the socket interconnect)
/// is limited by the processor, not by the links: see docs/MODELS.md, "Peer traffic through the root complex".
struct PeerCrossing {
  DeviceId root_complex;  ///< where the traffic enters the processor
  std::string processor;  ///< catalogue name; the limits are its p2p_* parameters
  bool is_cross_socket = false;
  bool is_redirected = false;  ///< sent up by access control or for translation, not by the wiring
};

/// Who moves the bytes of a path by direct memory access: the PCIe device at its end reads, or the one at its start
/// writes. `none` inside a socket and through the network as a whole.
enum class Dma { none, read, write };

/// The directed links from one memory to another (or to and from an HCA), in order.
struct Path {
  std::vector<LinkId> links;
  Duration latency;      ///< sum of link latencies and of the forwarding latencies passed through
  Bandwidth bottleneck;  ///< lowest link bandwidth; 0 for an empty path
  LinkId bottleneck_link;
  int pcie_switch_hops = 0;
  int socket_crossings = 0;
  int network_switch_hops = 0;
  bool uses_nvlink = false;
  Dma dma = Dma::none;  ///< an HCA reads what it sends and writes what it receives; GPUs write to their peers
  std::vector<PeerCrossing> peer_crossings;
  std::vector<DeviceId> root_complexes;  ///< passed through, in order

  [[nodiscard]] bool empty() const { return links.empty(); }
};

struct PathOptions {
  bool may_use_nvlink = true;
  /// NVLink paths may pass through another GPU (NCCL's NVB). Off for plain peer copies.
  bool may_forward_through_gpu = false;
  /// The wiring alone, without access control redirecting peer traffic of a VM.
  bool as_cabled = false;
};

/// NCCL's and nvidia-smi's distance classes, near to far.
enum class Distance { same, nvlink, pix, pxb, phb, node, sys };

std::string_view to_string(Distance distance);

/// The expanded cluster. Immutable; copies are cheap (shared state).
class Topology {
 public:
  struct Impl;
  explicit Topology(std::shared_ptr<const Impl> impl);

  [[nodiscard]] const std::string& name() const;
  [[nodiscard]] const TopologySpec& spec() const;
  /// Systems that run something: machines on bare metal or with VMs that share all devices, else their VMs.
  [[nodiscard]] int num_hosts() const;
  /// The machine a host is, or is a VM of, numbered from 0.
  [[nodiscard]] int machine_of(int host) const;
  [[nodiscard]] const std::string& machine_name(int host) const;
  /// The device that stands for the hardware behind a VM's: VMs that hold the same have the same. Else `id` itself.
  [[nodiscard]] DeviceId hardware(DeviceId id) const;
  /// `machine.device`: the device as the hardware has it.
  [[nodiscard]] std::string hardware_name(DeviceId id) const;
  [[nodiscard]] int num_devices() const;
  [[nodiscard]] int num_links() const;
  /// Network links are numbered from here to num_links().
  [[nodiscard]] int first_network_link() const;
  [[nodiscard]] const std::string& host_name(int host) const;
  /// Hosts with equal shape numbers have equal devices and links in equal order.
  [[nodiscard]] int host_shape(int host) const;
  /// Where devices of one host and kind lie: equal for equal places in equal hosts. Not empty.
  [[nodiscard]] std::pair<int, std::vector<int>> place_of(const std::vector<DeviceId>& devices) const;
  /// Of devices in equal places of equal hosts the first.
  [[nodiscard]] std::vector<DeviceId> unlike(const std::vector<DeviceId>& devices) const;
  [[nodiscard]] const HostSpec& host_spec(int host) const;
  /// What the host wears (bare metal by default).
  [[nodiscard]] const Virtualization& virtualization(int host) const;
  /// Number of the system (VM, or host on bare metal) a GPU or memory belongs to: GPUs are dealt out in order.
  [[nodiscard]] int guest_of(DeviceId id) const;
  /// HCAs a system may use: its own, or all of the host when they are shared.
  [[nodiscard]] bool may_use_hca(int guest, DeviceId hca) const;

  [[nodiscard]] Device device(DeviceId id) const;
  [[nodiscard]] DeviceKind kind(DeviceId id) const;
  /// Of a host's device: Device::ordinal, without a copy of the rest.
  [[nodiscard]] int ordinal(DeviceId id) const;
  [[nodiscard]] int host_of(DeviceId id) const;
  [[nodiscard]] Link link(LinkId id) const;
  [[nodiscard]] LinkKind link_kind(LinkId id) const;
  [[nodiscard]] Bandwidth link_bandwidth(LinkId id) const;
  [[nodiscard]] std::string link_name(LinkId id) const;  ///< "node0.gpu0 -> node0.sw0 (PCIe 3 x16)"
  /// What its maker calls the links between GPUs: "NVLink" or "Infinity Fabric link".
  [[nodiscard]] std::string_view gpu_link_word(DeviceId gpu) const;
  /// The same connection in the other direction.
  [[nodiscard]] LinkId reverse(LinkId id) const;
  /// Number of the link in its host's shape, or -1 for network links: equal for equal places in equal hosts.
  [[nodiscard]] int link_in_shape(LinkId id) const;

  /// Devices of one kind in host order, then by ordinal. `host` = -1: all hosts.
  [[nodiscard]] std::vector<DeviceId> devices(DeviceKind kind, int host = -1) const;
  [[nodiscard]] int count(DeviceKind kind, int host) const;
  /// A head node without GPUs, or a host without HCAs, may come before it; 0 where no host has any.
  [[nodiscard]] int first_host_with(DeviceKind kind) const;
  [[nodiscard]] int last_host_with(DeviceKind kind) const;
  /// After `host`, round the end; the next one where no other has any.
  [[nodiscard]] int next_host_with(DeviceKind kind, int host) const;
  /// The `ordinal`-th device of `kind` in `host`; must exist.
  [[nodiscard]] DeviceId device_in_host(int host, DeviceKind kind, int ordinal) const;
  [[nodiscard]] std::optional<DeviceId> find_device(std::string_view name) const;

  /// Path between two devices of one host (GPU, memory, HCA). Empty optional when there is none.
  [[nodiscard]] std::optional<Path> path_in_host(DeviceId from, DeviceId to, const PathOptions& options = {}) const;
  /// Path through the fabric between two HCAs. `flow` picks one of the equal-cost routes by hash, the same every time.
  [[nodiscard]] std::optional<Path> path_between_hcas(DeviceId from, DeviceId to, std::uint64_t flow = 0) const;
  /// The links of that path alone, empty when there is none: for who counts millions of them.
  [[nodiscard]] std::vector<LinkId> links_between_hcas(DeviceId from, DeviceId to, std::uint64_t flow) const;
  /// All equal-cost routes between two HCAs as link lists, at most `limit`.
  [[nodiscard]] std::vector<std::vector<LinkId>> equal_cost_routes(DeviceId from, DeviceId to,
                                                                   std::size_t limit = 64) const;
  /// What a link between switches shares its traffic with where they choose the way of each packet; nothing of other
  /// links.
  [[nodiscard]] std::optional<SpreadLinks> spread_of(LinkId link) const;
  /// Links a packet for HCA or switch `to` may take next after `arrived` (a network link that ends in a switch), by the
  /// fabric's routing. Empty when there is none, or `arrived` ends in `to`.
  [[nodiscard]] std::vector<LinkId> next_network_links(LinkId arrived, DeviceId to) const;
  /// The virtual lane of a packet that goes on from link `arrived` (in lane `lane`) to `next`, with `num_lanes` lanes:
  /// on a torus lane 1 after the wrap-around of a ring, lane 0 again in the next dimension; on a dragonfly one lane
  /// higher behind a link between groups; elsewhere the lane stays.
  [[nodiscard]] int next_lane(LinkId arrived, int lane, LinkId next, int num_lanes) const;
  /// The network links from an HCA to switches.
  [[nodiscard]] std::vector<LinkId> uplinks(DeviceId hca) const;
  /// A number that HCAs share whose ways to any other HCA differ in nothing but their own cable, the first link of the
  /// path. Empty for HCAs that share with none.
  [[nodiscard]] std::optional<int> way_class(DeviceId hca) const;
  /// A word that the catalogue says of a device type (vendor, microarchitecture ...); empty when it says none.
  [[nodiscard]] std::string_view attribute(std::string_view type, std::string_view key) const;
  /// True when every switch is an InfiniBand switch.
  [[nodiscard]] bool is_infiniband() const;
  /// Path between any two memories, through the nearest HCAs when they are in different hosts.
  [[nodiscard]] std::optional<Path> path(DeviceId from, DeviceId to, std::uint64_t flow = 0) const;

  /// Distance class between two PCIe devices (or a PCIe device and a socket's memory) of one host, NVLink ignored
  /// unless `with_nvlink`. As the software sees it: in a VM that hides the PCIe tree every pair is PHB.
  [[nodiscard]] Distance distance(DeviceId a, DeviceId b, bool with_nvlink = false) const;
  /// True when a cable ends at the HCA.
  [[nodiscard]] bool is_cabled(DeviceId hca) const;
  /// HCAs of the device's host, nearest first; ties by ordinal. Where there is a fabric, only those with a cable; those
  /// without RDMA only where no other is.
  [[nodiscard]] std::vector<DeviceId> hcas_by_distance(DeviceId device) const;
  /// The memory of the socket the device hangs below.
  [[nodiscard]] DeviceId local_memory(DeviceId device) const;

  /// The same cluster without these network links, both directions of each: devices, links and ports keep their
  /// numbers, routes go round, HCAs without a cable are not used. Only where can_lose_links() says so.
  [[nodiscard]] Topology without_links(const std::vector<LinkId>& failed) const;
  /// False for tori and dragonflies, whose routes are fixed by place.
  [[nodiscard]] bool can_lose_links() const;

 private:
  std::shared_ptr<const Impl> impl_;
};

/// Expands a spec with the device values in `parameters`. `device_types` resolves catalogue names. Faults of the
/// description (dangling names, no path to any switch, switch ports exceeded) come back as diagnostics.
Result<Topology> build_topology(const TopologySpec& spec, const ParameterSet& parameters,
                                const std::vector<DeviceType>& device_types);

/// The host or VM of that name (`node3`, `node3/train`); names of devices have a dot.
std::optional<int> host_called(const Topology& topology, std::string_view name);

/// True for a GPU that hangs on its processor by NVLink-C2C (catalogue: `form: superchip`).
bool has_c2c(const Topology& topology, DeviceId device);

/// Concatenates two paths; the second starts where the first ends.
Path join(const Path& first, const Path& second);

/// Payload bandwidth of a PCIe link after encoding, TLP and DLLP overhead (docs/MODELS.md, "PCIe").
/// generation 1 to 6, width 1 to 32 lanes, max_payload 64 to 4096 bytes.
Bandwidth pcie_bandwidth(int generation, int width, int max_payload);

}  // namespace fabricast
