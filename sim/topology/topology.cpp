// SPDX-License-Identifier: Apache-2.0
// Queries of a built topology.
#include "fabricast/topology.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/assert.hpp"
#include "topology/path.hpp"
#include "topology/topology_impl.hpp"

namespace fabricast {

Topology::Topology(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

const std::string& Topology::name() const { return impl_->spec.name; }
const TopologySpec& Topology::spec() const { return impl_->spec; }
int Topology::num_hosts() const { return static_cast<int>(impl_->hosts.size()); }
int Topology::num_devices() const { return impl_->num_host_devices + static_cast<int>(impl_->switches.size()); }
int Topology::num_links() const { return impl_->num_host_links + static_cast<int>(impl_->network_links.size()); }
int Topology::first_network_link() const { return impl_->num_host_links; }
const std::string& Topology::host_name(int host) const { return impl_->hosts[static_cast<std::size_t>(host)].name; }
int Topology::host_shape(int host) const { return impl_->hosts[static_cast<std::size_t>(host)].shape; }

std::pair<int, std::vector<int>> Topology::place_of(const std::vector<DeviceId>& devices) const {
  std::pair<int, std::vector<int>> out{host_shape(host_of(devices.front())), {}};
  out.second.reserve(devices.size());
  for (const auto one : devices) out.second.push_back(ordinal(one));
  return out;
}

std::vector<DeviceId> Topology::unlike(const std::vector<DeviceId>& devices) const {
  std::set<std::pair<int, int>> seen;
  std::vector<DeviceId> out;
  for (const auto one : devices)
    if (seen.emplace(host_shape(host_of(one)), ordinal(one)).second) out.push_back(one);
  return out;
}
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

int Topology::ordinal(DeviceId id) const {
  const int host = impl_->host_of_device(id.value);
  return impl_->shape_of(host)
      .devices[static_cast<std::size_t>(id.value - impl_->hosts[static_cast<std::size_t>(host)].first_device)]
      .ordinal;
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
  if (one.kind == LinkKind::nvlink) what = fmt::format("{} x{}", gpu_link_word(one.from), one.lanes);
  return fmt::format("{} -> {} ({})", hardware_name(one.from), hardware_name(one.to), what);
}

std::string_view Topology::gpu_link_word(DeviceId gpu) const {
  return attribute(device(gpu).type, "vendor") == "amd" ? "Infinity Fabric link" : "NVLink";
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

int Topology::first_host_with(DeviceKind kind) const {
  for (int host = 0; host < num_hosts(); ++host)
    if (count(kind, host) > 0) return host;
  return 0;
}

int Topology::last_host_with(DeviceKind kind) const {
  for (int host = num_hosts() - 1; host > 0; --host)
    if (count(kind, host) > 0) return host;
  return 0;
}

bool can_be_adaptive(FabricKind kind) {
  return kind == FabricKind::leaf_spine || kind == FabricKind::fat_tree || kind == FabricKind::rail_optimized ||
         kind == FabricKind::dragonfly;
}

std::string packet_routing(const FabricSpec& fabric, const std::string& asked) {
  if (asked != "auto") return asked;
  return is_adaptive(fabric) && fabric.kind != FabricKind::dragonfly ? "adaptive" : "ecmp";
}

std::vector<std::string> switch_types(const FabricSpec& fabric) {
  std::vector<std::string> out;
  if (!fabric.switch_type.empty()) out.push_back(fabric.switch_type);
  for (const auto& one : fabric.switches)
    if (std::ranges::find(out, one.type) == out.end()) out.push_back(one.type);
  return out;
}

std::string asic_of(const FabricSpec& fabric, const std::string& switch_type) {
  const auto it = fabric.asics.find(switch_type);
  return it == fabric.asics.end() ? std::string() : it->second;
}

double packet_payload(const FabricSpec& fabric, const ParameterSet& parameters, const std::string& hca_type) {
  constexpr std::array k_path_mtus{4096, 2048, 1024, 512, 256};
  const auto* own = parameters.find(hca_type, "mtu");
  if (own == nullptr) return 0;
  if (!fabric.mtu) { return std::min(own->value, parameters.value_or(hca_type, "default_mtu", own->value)); }
  const double most = std::min(own->value, static_cast<double>(*fabric.mtu));
  const bool has_path_mtus = parameters.value_or(hca_type, "rdma", 1) != 0 &&
                             std::ranges::find(k_path_mtus, static_cast<int>(own->value)) != k_path_mtus.end();
  if (!has_path_mtus) return most;
  const auto next = std::ranges::find_if(k_path_mtus, [&](int mtu) { return mtu <= most; });
  return next == k_path_mtus.end() ? most : *next;
}

bool is_adaptive(const FabricSpec& fabric) {
  return fabric.routing == Routing::adaptive ||
         (fabric.kind == FabricKind::dragonfly && fabric.routing == Routing::automatic);
}

int Topology::next_host_with(DeviceKind kind, int host) const {
  for (int step = 1; step < num_hosts(); ++step)
    if (const int next = (host + step) % num_hosts(); count(kind, next) > 0) return next;
  return (host + 1) % num_hosts();
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
  const auto links = links_between_hcas(from, to, flow);
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

std::vector<LinkId> Topology::links_between_hcas(DeviceId from, DeviceId to, std::uint64_t flow) const {
  const int a = impl_->node_of(from);
  const int b = impl_->node_of(to);
  return a < 0 || b < 0 ? std::vector<LinkId>{} : impl_->network->route(a, b, flow);
}

std::optional<SpreadLinks> Topology::spread_of(LinkId id) const {
  if (id.value < impl_->num_host_links) return std::nullopt;
  return impl_->spread.of(id.value - impl_->num_host_links);
}

std::vector<LinkId> Topology::next_network_links(LinkId arrived, DeviceId to) const {
  if (!impl_->network) return {};
  if (kind(to) == DeviceKind::network_switch)
    return impl_->network->next_links(arrived, impl_->network->node_of_switch(to.value - impl_->num_host_devices));
  const int target = impl_->node_of(to);
  return target < 0 ? std::vector<LinkId>{} : impl_->network->next_links(arrived, target);
}

int Topology::next_lane(LinkId arrived, int lane, LinkId next, int num_lanes) const {
  return impl_->network ? impl_->network->next_lane(arrived, lane, next, num_lanes) : 0;
}

std::vector<LinkId> Topology::uplinks(DeviceId hca) const {
  const int node = impl_->node_of(hca);
  return node < 0 ? std::vector<LinkId>{} : impl_->network->uplinks(node);
}

std::optional<int> Topology::way_class(DeviceId hca) const {
  const int node = impl_->node_of(hca);
  return node < 0 ? std::nullopt : impl_->network->common_start(node);
}

std::string_view Topology::attribute(std::string_view type, std::string_view key) const {
  return impl_->attribute(type, key);
}
bool Topology::is_infiniband() const { return impl_->is_infiniband; }
bool has_c2c(const Topology& topology, DeviceId device) {
  return topology.attribute(topology.device(device).type, "form") == "superchip";
}

std::vector<std::vector<LinkId>> Topology::equal_cost_routes(DeviceId from, DeviceId to, std::size_t limit) const {
  const int a = impl_->node_of(from);
  const int b = impl_->node_of(to);
  return a < 0 || b < 0 ? std::vector<std::vector<LinkId>>{} : impl_->network->all_routes(a, b, limit);
}

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

bool Topology::is_cabled(DeviceId hca) const {
  if (device(hca).type == topology::k_virtual_switch) return true;
  const int node = impl_->node_of(hca);
  return node >= 0 && impl_->network->has_cable(node);
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

}  // namespace fabricast
