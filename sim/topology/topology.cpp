// SPDX-License-Identifier: Apache-2.0
// The expanded cluster: host shapes placed one after another, then the network's switches and links.
#include "fabricast/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/assert.hpp"
#include "topology/fabric.hpp"
#include "topology/host_shape.hpp"
#include "topology/network.hpp"
#include "topology/path.hpp"

namespace fabricast {

using topology::HostShape;

struct Topology::Impl {
  struct Host {
    std::string name;
    int shape = 0;
    int first_device = 0;
    int first_link = 0;
  };
  TopologySpec spec;
  std::vector<HostShape> shapes;
  std::vector<Host> hosts;
  int num_host_devices = 0;
  int num_host_links = 0;
  std::vector<Device> switches;
  std::vector<Link> network_links;
  std::vector<DeviceId> hcas;               ///< network node -> device
  std::map<std::int32_t, int> node_of_hca;  ///< device -> network node
  bool is_infiniband = false;
  std::unique_ptr<topology::Network> network;
  std::map<std::string, int, std::less<>> host_by_name;

  [[nodiscard]] int host_of_device(int device) const {
    const auto it = std::upper_bound(hosts.begin(), hosts.end(), device,
                                     [](int d, const Host& host) { return d < host.first_device; });
    return static_cast<int>(it - hosts.begin()) - 1;
  }
  [[nodiscard]] int host_of_link(int link) const {
    const auto it =
        std::upper_bound(hosts.begin(), hosts.end(), link, [](int l, const Host& host) { return l < host.first_link; });
    return static_cast<int>(it - hosts.begin()) - 1;
  }
  [[nodiscard]] const HostShape& shape_of(int host) const {
    return shapes[static_cast<std::size_t>(hosts[static_cast<std::size_t>(host)].shape)];
  }

  /// A path of the shape, renumbered for one host.
  [[nodiscard]] Path placed(Path path, int host) const {
    const auto& where = hosts[static_cast<std::size_t>(host)];
    for (auto& link : path.links) link.value += where.first_link;
    path.bottleneck_link.value += where.first_link;
    for (auto& crossing : path.peer_crossings) crossing.root_complex.value += where.first_device;
    for (auto& rc : path.root_complexes) rc.value += where.first_device;
    return path;
  }
};

namespace {

constexpr double k_seconds_per_metre =
    5.05e-9;  // signal at 1.98e8 m/s in copper and fibre (SONiC headroom calculation)

struct Builder {
  const ParameterSet& parameters;
  Diagnostics& faults;

  [[nodiscard]] double value(const std::string& type, const char* field, double fallback) const {
    const auto* parameter = parameters.find(fmt::format("{}.{}", type, field));
    return parameter == nullptr ? fallback : parameter->value;
  }

  void place_hosts(Topology::Impl& impl, const std::vector<DeviceType>& types) const {
    for (const auto& group : impl.spec.hosts) {
      const int shape = static_cast<int>(impl.shapes.size());
      impl.shapes.push_back(topology::build_shape(group.host, group.location, parameters, types, faults));
      const auto& made = impl.shapes.back();
      for (int i = 0; i < group.count; ++i) {
        const auto name = group.count == 1 ? group.name : fmt::format("{}{}", group.name, i);
        if (!impl.host_by_name.try_emplace(name, static_cast<int>(impl.hosts.size())).second) {
          auto fault = make_error(fmt::format("two hosts are called '{}'", name), "give every host group its own name");
          fault.location = group.location;
          faults.push_back(std::move(fault));
        }
        impl.hosts.push_back({name, shape, impl.num_host_devices, impl.num_host_links});
        impl.num_host_devices += static_cast<int>(made.devices.size());
        impl.num_host_links += static_cast<int>(made.links.size());
      }
    }
  }

  std::vector<topology::HcaPort> number_hcas(Topology::Impl& impl) const {
    std::vector<topology::HcaPort> ports;
    for (std::size_t h = 0; h < impl.hosts.size(); ++h) {
      const auto& shape = impl.shape_of(static_cast<int>(h));
      for (const int d : shape.by_kind[static_cast<std::size_t>(DeviceKind::hca)]) {
        const auto& device = shape.devices[static_cast<std::size_t>(d)];
        const DeviceId id{impl.hosts[h].first_device + d};
        impl.node_of_hca[id.value] = static_cast<int>(impl.hcas.size());
        impl.hcas.push_back(id);
        ports.push_back(
            {fmt::format("{}.{}", impl.hosts[h].name, device.name), device.type, static_cast<int>(h), device.ordinal});
      }
    }
    return ports;
  }

  /// Every switch type is InfiniBand.
  static bool is_infiniband(const topology::Fabric& fabric, const std::vector<DeviceType>& types) {
    return !fabric.switches.empty() &&
           std::all_of(fabric.switches.begin(), fabric.switches.end(), [&](const topology::FabricSwitch& one) {
             return std::any_of(types.begin(), types.end(), [&](const DeviceType& type) {
               const auto protocol = type.attributes.find("protocol");
               return type.name == one.type && protocol != type.attributes.end() && protocol->second == "infiniband";
             });
           });
  }

  void connect_network(Topology::Impl& impl, const std::vector<DeviceType>& types) const {
    const auto ports = number_hcas(impl);
    const auto& spec = impl.spec.fabric;
    if (spec.kind == FabricKind::none && spec.cables.empty()) return;
    const auto fabric = topology::make_fabric(spec, ports, parameters, faults);
    const int num_hcas = static_cast<int>(ports.size());
    for (const auto& one : fabric.switches) {
      Device device;
      device.id = {impl.num_host_devices + static_cast<int>(impl.switches.size())};
      device.kind = DeviceKind::network_switch;
      device.name = one.name;
      device.type = one.type;
      device.ordinal = static_cast<int>(impl.switches.size());
      device.forwarding_latency = spec.hop_latency.value_or(from_seconds(value(one.type, "latency", 150e-9)));
      impl.switches.push_back(std::move(device));
    }
    const auto type_of = [&](int node) {
      return node < num_hcas ? ports[static_cast<std::size_t>(node)].type
                             : fabric.switches[static_cast<std::size_t>(node - num_hcas)].type;
    };
    const auto id_of = [&](int node) {
      return node < num_hcas ? impl.hcas[static_cast<std::size_t>(node)]
                             : DeviceId{impl.num_host_devices + node - num_hcas};
    };
    std::vector<std::pair<int, int>> pairs;
    for (const auto& cable : fabric.cables) {
      pairs.emplace_back(cable.a, cable.b);
      const double a = value(type_of(cable.a), "rate", 1e18);
      const double b = value(type_of(cable.b), "rate", 1e18);
      double rate = std::min(a, b);
      auto parameter = type_of(a <= b ? cable.a : cable.b) + ".rate";
      if (cable.rate > 0 && cable.rate < rate) {
        rate = cable.rate;
        parameter = "fabric.rate";
      }
      for (const bool is_back : {false, true}) {
        Link link;
        link.id = {impl.num_host_links + static_cast<int>(impl.network_links.size())};
        link.kind = LinkKind::network;
        link.from = id_of(is_back ? cable.b : cable.a);
        link.to = id_of(is_back ? cable.a : cable.b);
        link.bandwidth = {rate};
        link.latency = from_seconds(cable.length_m * k_seconds_per_metre);
        link.parameter = parameter;
        impl.network_links.push_back(std::move(link));
      }
    }
    topology::Network::Options options;
    options.coordinates.resize(static_cast<std::size_t>(num_hcas));
    options.groups.resize(static_cast<std::size_t>(num_hcas), -1);
    options.is_switch.resize(static_cast<std::size_t>(num_hcas), false);
    for (const auto& one : fabric.switches) {
      options.coordinates.push_back(one.coordinates);
      options.groups.push_back(one.group);
      options.is_switch.push_back(true);
    }
    impl.is_infiniband = is_infiniband(fabric, types);
    options.dimensions = spec.dimensions;
    options.is_routed_by_destination = impl.is_infiniband;
    options.routing = spec.routing;
    impl.network = std::make_unique<topology::Network>(num_hcas + static_cast<int>(fabric.switches.size()),
                                                       std::move(pairs), impl.num_host_links, std::move(options));
  }
};

}  // namespace

Result<Topology> build_topology(const TopologySpec& spec, const ParameterSet& parameters,
                                const std::vector<DeviceType>& device_types) {
  Diagnostics faults;
  auto impl = std::make_shared<Topology::Impl>();
  impl->spec = spec;
  const Builder builder{parameters, faults};
  builder.place_hosts(*impl, device_types);
  if (impl->hosts.empty())
    faults.push_back(
        make_error(fmt::format("topology '{}' has no host", spec.name), "list at least one under `hosts`"));
  if (!has_errors(faults)) builder.connect_network(*impl, device_types);
  if (!faults.empty()) return tl::unexpected(faults);
  return Topology(std::move(impl));
}

Topology::Topology(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

const std::string& Topology::name() const { return impl_->spec.name; }
const TopologySpec& Topology::spec() const { return impl_->spec; }
int Topology::num_hosts() const { return static_cast<int>(impl_->hosts.size()); }
int Topology::num_devices() const { return impl_->num_host_devices + static_cast<int>(impl_->switches.size()); }
int Topology::num_links() const { return impl_->num_host_links + static_cast<int>(impl_->network_links.size()); }
int Topology::first_network_link() const { return impl_->num_host_links; }
const std::string& Topology::host_name(int host) const { return impl_->hosts[static_cast<std::size_t>(host)].name; }
int Topology::host_shape(int host) const { return impl_->hosts[static_cast<std::size_t>(host)].shape; }
const HostSpec& Topology::host_spec(int host) const { return impl_->shape_of(host).spec; }

Device Topology::device(DeviceId id) const {
  if (id.value >= impl_->num_host_devices)
    return impl_->switches[static_cast<std::size_t>(id.value - impl_->num_host_devices)];
  const int host = impl_->host_of_device(id.value);
  const auto& where = impl_->hosts[static_cast<std::size_t>(host)];
  auto device = impl_->shape_of(host).devices[static_cast<std::size_t>(id.value - where.first_device)];
  device.id = id;
  device.host = host;
  device.name = where.name + "." + device.name;
  return device;
}

DeviceKind Topology::kind(DeviceId id) const {
  if (id.value >= impl_->num_host_devices) return DeviceKind::network_switch;
  const int host = impl_->host_of_device(id.value);
  return impl_->shape_of(host)
      .devices[static_cast<std::size_t>(id.value - impl_->hosts[static_cast<std::size_t>(host)].first_device)]
      .kind;
}

int Topology::host_of(DeviceId id) const {
  return id.value >= impl_->num_host_devices ? -1 : impl_->host_of_device(id.value);
}

Link Topology::link(LinkId id) const {
  if (id.value >= impl_->num_host_links)
    return impl_->network_links[static_cast<std::size_t>(id.value - impl_->num_host_links)];
  const int host = impl_->host_of_link(id.value);
  const auto& where = impl_->hosts[static_cast<std::size_t>(host)];
  auto link = impl_->shape_of(host).links[static_cast<std::size_t>(id.value - where.first_link)];
  link.id = id;
  link.from.value += where.first_device;
  link.to.value += where.first_device;
  return link;
}

LinkKind Topology::link_kind(LinkId id) const {
  if (id.value >= impl_->num_host_links) return LinkKind::network;
  const int host = impl_->host_of_link(id.value);
  return impl_->shape_of(host)
      .links[static_cast<std::size_t>(id.value - impl_->hosts[static_cast<std::size_t>(host)].first_link)]
      .kind;
}

Bandwidth Topology::link_bandwidth(LinkId id) const {
  if (id.value >= impl_->num_host_links)
    return impl_->network_links[static_cast<std::size_t>(id.value - impl_->num_host_links)].bandwidth;
  const int host = impl_->host_of_link(id.value);
  return impl_->shape_of(host)
      .links[static_cast<std::size_t>(id.value - impl_->hosts[static_cast<std::size_t>(host)].first_link)]
      .bandwidth;
}

std::string Topology::link_name(LinkId id) const {
  const auto one = link(id);
  std::string what(to_string(one.kind));
  if (one.kind == LinkKind::pcie) what = fmt::format("PCIe {} x{}", one.generation, one.lanes);
  if (one.kind == LinkKind::nvlink) what = fmt::format("NVLink x{}", one.lanes);
  return fmt::format("{} -> {} ({})", device(one.from).name, device(one.to).name, what);
}

LinkId Topology::reverse(LinkId id) const {
  // Links and their reverses are neighbours, and every shape and the network start at an even number.
  return {id.value ^ 1};
}

int Topology::link_in_shape(LinkId id) const {
  if (id.value >= impl_->num_host_links) return -1;
  return id.value - impl_->hosts[static_cast<std::size_t>(impl_->host_of_link(id.value))].first_link;
}

std::vector<DeviceId> Topology::devices(DeviceKind kind, int host) const {
  std::vector<DeviceId> found;
  if (kind == DeviceKind::network_switch) {
    for (const auto& one : impl_->switches) found.push_back(one.id);
    return found;
  }
  const int first = host < 0 ? 0 : host;
  const int last = host < 0 ? num_hosts() : host + 1;
  for (int h = first; h < last; ++h) {
    for (const int d : impl_->shape_of(h).by_kind[static_cast<std::size_t>(kind)])
      found.push_back({impl_->hosts[static_cast<std::size_t>(h)].first_device + d});
  }
  return found;
}

int Topology::count(DeviceKind kind, int host) const {
  return static_cast<int>(impl_->shape_of(host).by_kind[static_cast<std::size_t>(kind)].size());
}

DeviceId Topology::device_in_host(int host, DeviceKind kind, int ordinal) const {
  const auto& all = impl_->shape_of(host).by_kind[static_cast<std::size_t>(kind)];
  FABRICAST_ASSERT(ordinal >= 0 && ordinal < static_cast<int>(all.size()), "{} {} of host {}", to_string(kind), ordinal,
                   host);
  return {impl_->hosts[static_cast<std::size_t>(host)].first_device + all[static_cast<std::size_t>(ordinal)]};
}

std::optional<DeviceId> Topology::find_device(std::string_view name) const {
  const auto dot = name.find('.');
  if (dot == std::string_view::npos) {
    for (const auto& one : impl_->switches) {
      if (one.name == name) return one.id;
    }
    return std::nullopt;
  }
  const auto host = impl_->host_by_name.find(name.substr(0, dot));
  if (host == impl_->host_by_name.end()) return std::nullopt;
  const auto& shape = impl_->shape_of(host->second);
  for (const auto& device : shape.devices) {
    if (device.name == name.substr(dot + 1))
      return DeviceId{impl_->hosts[static_cast<std::size_t>(host->second)].first_device + device.id.value};
  }
  return std::nullopt;
}

std::optional<Path> Topology::path_in_host(DeviceId from, DeviceId to, const PathOptions& options) const {
  const int host = impl_->host_of_device(from.value);
  if (to.value >= impl_->num_host_devices || impl_->host_of_device(to.value) != host) return std::nullopt;
  const int first = impl_->hosts[static_cast<std::size_t>(host)].first_device;
  auto path = impl_->shape_of(host).find_path(from.value - first, to.value - first, options);
  if (!path) return std::nullopt;
  return impl_->placed(std::move(*path), host);
}

std::optional<Path> Topology::path_between_hcas(DeviceId from, DeviceId to, std::uint64_t flow) const {
  if (!impl_->network) return std::nullopt;
  const auto a = impl_->node_of_hca.find(from.value);
  const auto b = impl_->node_of_hca.find(to.value);
  if (a == impl_->node_of_hca.end() || b == impl_->node_of_hca.end()) return std::nullopt;
  const auto links = impl_->network->route(a->second, b->second, flow);
  if (links.empty()) return std::nullopt;
  return topology::path_over(
      links,
      [this](LinkId id) -> const Link& {
        return impl_->network_links[static_cast<std::size_t>(id.value - impl_->num_host_links)];
      },
      [this](DeviceId id) -> const Device& {
        return impl_->switches[static_cast<std::size_t>(id.value - impl_->num_host_devices)];
      });
}

std::vector<std::vector<LinkId>> Topology::equal_cost_routes(DeviceId from, DeviceId to, std::size_t limit) const {
  if (!impl_->network) return {};
  const auto a = impl_->node_of_hca.find(from.value);
  const auto b = impl_->node_of_hca.find(to.value);
  if (a == impl_->node_of_hca.end() || b == impl_->node_of_hca.end()) return {};
  return impl_->network->all_routes(a->second, b->second, limit);
}

std::vector<LinkId> Topology::next_network_links(LinkId arrived, DeviceId to) const {
  const auto target = impl_->node_of_hca.find(to.value);
  if (!impl_->network || target == impl_->node_of_hca.end()) return {};
  return impl_->network->next_links(arrived, target->second);
}

int Topology::next_lane(LinkId arrived, int lane, LinkId next, int num_lanes) const {
  return impl_->network ? impl_->network->next_lane(arrived, lane, next, num_lanes) : 0;
}

LinkId Topology::uplink(DeviceId hca) const {
  const auto node = impl_->node_of_hca.find(hca.value);
  if (!impl_->network || node == impl_->node_of_hca.end()) return {-1};
  return impl_->network->uplink(node->second);
}

bool Topology::is_infiniband() const { return impl_->is_infiniband; }

std::optional<Path> Topology::path(DeviceId from, DeviceId to, std::uint64_t flow) const {
  if (host_of(from) == host_of(to)) return path_in_host(from, to);
  const auto out = hcas_by_distance(from);
  const auto in = hcas_by_distance(to);
  if (out.empty() || in.empty()) return std::nullopt;
  PathOptions pcie;
  pcie.may_use_nvlink = false;
  const auto first = path_in_host(from, out.front(), pcie);
  const auto middle = path_between_hcas(out.front(), in.front(), flow);
  const auto last = path_in_host(in.front(), to, pcie);
  if (!first || !middle || !last) return std::nullopt;
  return join(join(*first, *middle), *last);
}

Distance Topology::distance(DeviceId a, DeviceId b, bool with_nvlink) const {
  if (a == b) return Distance::same;
  if (with_nvlink) {
    const auto path = path_in_host(a, b);
    if (path && path->uses_nvlink) return Distance::nvlink;
  }
  PathOptions pcie;
  pcie.may_use_nvlink = false;
  const auto path = path_in_host(a, b, pcie);
  if (!path || path->socket_crossings > 0) return Distance::sys;
  if (path->root_complexes.empty()) return path->pcie_switch_hops <= 1 ? Distance::pix : Distance::pxb;
  return path->root_complexes.size() == 1 ? Distance::phb : Distance::node;
}

std::vector<DeviceId> Topology::hcas_by_distance(DeviceId device) const {
  auto hcas = devices(DeviceKind::hca, host_of(device));
  std::vector<std::pair<Distance, DeviceId>> ranked;
  for (const auto hca : hcas) ranked.emplace_back(distance(device, hca), hca);
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  for (std::size_t i = 0; i < hcas.size(); ++i) hcas[i] = ranked[i].second;
  return hcas;
}

DeviceId Topology::local_memory(DeviceId id) const {
  const auto one = device(id);
  return device_in_host(one.host, DeviceKind::memory, std::max(0, one.socket));
}

Path join(const Path& first, const Path& second) {
  if (first.empty()) return second;
  if (second.empty()) return first;
  Path whole = first;
  whole.links.insert(whole.links.end(), second.links.begin(), second.links.end());
  whole.latency += second.latency;
  if (second.bottleneck < whole.bottleneck) {
    whole.bottleneck = second.bottleneck;
    whole.bottleneck_link = second.bottleneck_link;
  }
  whole.pcie_switch_hops += second.pcie_switch_hops;
  whole.socket_crossings += second.socket_crossings;
  whole.network_switch_hops += second.network_switch_hops;
  whole.uses_nvlink = whole.uses_nvlink || second.uses_nvlink;
  whole.peer_crossings.insert(whole.peer_crossings.end(), second.peer_crossings.begin(), second.peer_crossings.end());
  whole.root_complexes.insert(whole.root_complexes.end(), second.root_complexes.begin(), second.root_complexes.end());
  return whole;
}

std::string_view to_string(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::socket:
      return "socket";
    case DeviceKind::memory:
      return "memory";
    case DeviceKind::root_complex:
      return "root complex";
    case DeviceKind::pcie_switch:
      return "PCIe switch";
    case DeviceKind::gpu:
      return "GPU";
    case DeviceKind::nvswitch:
      return "NVSwitch";
    case DeviceKind::hca:
      return "HCA";
    case DeviceKind::network_switch:
      return "network switch";
  }
  return "";
}

std::string_view to_string(LinkKind kind) {
  switch (kind) {
    case LinkKind::memory_bus:
      return "memory bus";
    case LinkKind::socket_interconnect:
      return "socket interconnect";
    case LinkKind::socket_internal:
      return "root complex to mesh";
    case LinkKind::pcie:
      return "PCIe";
    case LinkKind::nvlink:
      return "NVLink";
    case LinkKind::network:
      return "network";
  }
  return "";
}

std::string_view to_string(FabricKind kind) {
  switch (kind) {
    case FabricKind::none:
      return "none";
    case FabricKind::single_switch:
      return "single_switch";
    case FabricKind::leaf_spine:
      return "leaf_spine";
    case FabricKind::fat_tree:
      return "fat_tree";
    case FabricKind::rail_optimized:
      return "rail_optimized";
    case FabricKind::dragonfly:
      return "dragonfly";
    case FabricKind::torus:
      return "torus";
    case FabricKind::list:
      return "list";
  }
  return "";
}

std::string_view to_string(FlowControl control) {
  switch (control) {
    case FlowControl::pfc:
      return "pfc";
    case FlowControl::credits:
      return "credits";
    case FlowControl::drop:
      return "drop";
  }
  return "";
}

std::string_view to_string(Routing routing) {
  switch (routing) {
    case Routing::automatic:
      return "automatic";
    case Routing::minimal:
      return "minimal";
    case Routing::dimension_order:
      return "dimension_order";
    case Routing::up_down:
      return "up_down";
  }
  return "";
}

std::string_view to_string(Distance distance) {
  switch (distance) {
    case Distance::same:
      return "same";
    case Distance::nvlink:
      return "NVL";
    case Distance::pix:
      return "PIX";
    case Distance::pxb:
      return "PXB";
    case Distance::phb:
      return "PHB";
    case Distance::node:
      return "NODE";
    case Distance::sys:
      return "SYS";
  }
  return "";
}

}  // namespace fabricast
