// SPDX-License-Identifier: Apache-2.0
// From the description to the graph: host shapes, then the fabric's switches and cables, with every fault of both.
#include <fmt/format.h>

#include <algorithm>

#include "topology/fabric.hpp"
#include "topology/topology_impl.hpp"

namespace fabricast {

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
    topology::NetworkPlan plan;
    plan.num_hcas = num_hcas;
    plan.num_switches = static_cast<int>(fabric.switches.size());
    plan.first_link = impl.num_host_links;
    plan.is_routed_by_destination = is_infiniband(fabric, types);
    plan.num_routers = fabric.num_routers;
    plan.routers_per_group = fabric.routers_per_group;
    if (spec.kind == FabricKind::torus) plan.dimensions = spec.dimensions;
    for (const auto& one : fabric.switches) plan.coordinates.push_back(one.coordinates);
    for (const auto& cable : fabric.cables) {
      plan.cables.emplace_back(cable.a, cable.b);
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
    impl.network = std::make_unique<topology::Network>(std::move(plan));
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

}  // namespace fabricast
