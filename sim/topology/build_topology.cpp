// SPDX-License-Identifier: Apache-2.0
// From the description to the graph: host shapes, then the fabric's switches and cables, with every fault of both.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

#include "fabricast/virtualization.hpp"
#include "topology/fabric.hpp"
#include "topology/topology_impl.hpp"

namespace fabricast {

namespace {

// Signal at 1.98e8 m/s in copper and fibre (SONiC headroom calculation).
constexpr double k_seconds_per_metre = 5.05e-9;
constexpr int k_max_hosts = 1'000'000;
constexpr std::int64_t k_max_parts = 1'000'000'000;  // devices, and links, of all hosts: they are numbered by 32 bits

/// An adapter with a port: not one that ends in the switch of a hypervisor.
bool is_cabled_adapter(const Device& device) {
  return device.kind == DeviceKind::hca && device.type != topology::k_virtual_switch;
}

class Builder {
 public:
  Builder(Topology::Impl& impl, const std::vector<DeviceType>& types, topology::DeviceValues& values)
      : impl_(impl), types_(types), values_(values) {}

  void build() {
    for (const auto& type : types_)
      for (const auto& [key, word] : type.attributes) impl_.attributes[type.name][key] = word;
    for (const auto& type : types_)
      if (type.kind == "hca" && values_.value_or(type.name, "rdma", 1) == 0) impl_.plain_adapters.insert(type.name);
    const auto faults_before = values_.num_faults();
    for (const auto& group : impl_.spec.hosts) place_hosts(group);
    if (impl_.spec.hosts.empty()) {
      values_.error({impl_.spec.file, 0, 0}, fmt::format("topology '{}' has no host", impl_.spec.name),
                    "list at least one under `hosts`");
    }
    const bool has_sound_hosts = values_.num_faults() == faults_before;
    const auto& fabric = impl_.spec.fabric;
    if (fabric.kind == FabricKind::none && fabric.cables.empty()) {
      check_that_hosts_are_alone();
      return;
    }
    const bool has_sound_generator = check_types();
    // Ends of cables cannot be judged while devices or generated switches are missing.
    if (has_sound_hosts && has_sound_generator) connect_network();
  }

 private:
  void place_hosts(const HostGroupSpec& group) {
    if (group.name.empty() || group.name.find('.') != std::string::npos) {
      values_.error(group.location, fmt::format("a host group is called '{}'", group.name),
                    "use a name without dots, like node");
    }
    check_power_limit(group.host);
    auto made = topology::build_shape(group.host, group.location, values_);
    const auto& vms = made.spec.virtualization->vms;
    const auto systems = num_systems(group);
    if (group.count < 1 || systems > k_max_hosts - static_cast<int>(impl_.hosts.size()) ||
        impl_.num_host_devices + systems * static_cast<std::int64_t>(made.devices.size()) > k_max_parts ||
        impl_.num_host_links + group.count * static_cast<std::int64_t>(made.links.size()) > k_max_parts) {
      values_.error(group.location, fmt::format("{} hosts in group '{}'", systems, group.name),
                    fmt::format("a topology has 1 to {} hosts, at most {} devices and as many links in them",
                                k_max_hosts, k_max_parts));
      return;
    }
    const int shape = static_cast<int>(impl_.shapes.size());
    for (const auto& vm : vms) impl_.shapes.push_back(topology::vm_shape(made, vm));
    if (vms.empty()) impl_.shapes.push_back(std::move(made));
    bool is_name_free = true;
    for (int i = 0; i < group.count; ++i) {
      const auto name = group.count == 1 ? group.name : fmt::format("{}{}", group.name, i);
      is_name_free = place_machine(group, name, shape, is_name_free);
    }
  }

  /// A board takes limits from above what it draws idle up to its own.
  void check_power_limit(const HostSpec& host) {
    if (!host.gpu_power_limit) return;
    const auto& [watts, location] = *host.gpu_power_limit;
    std::set<std::string> types;
    for (const auto& device : host.devices)
      if (device.kind == DeviceKind::gpu) types.insert(device.type);
    if (types.empty()) values_.error(location, "'gpu_power_limit' of hosts without GPUs", "leave it out");
    for (const auto& type : types) {
      const double most = values_.required(type, "tdp_watts", location);
      const double idle = most * values_.value_or("gpu", "idle_power", 0);
      if (watts > most || watts <= idle)
        values_.error(location,
                      fmt::format("'gpu_power_limit' is {:g} W, a {} draws {:g} W idle and takes at most {:g} W", watts,
                                  type, idle, most),
                      fmt::format("leave it out for {:g} W", most));
    }
  }

  /// One host, or the VMs on it: each with the numbers of devices of its own, all with the same links.
  bool place_machine(const HostGroupSpec& group, const std::string& name, int shape, bool is_name_free) {
    const auto& first = impl_.shapes[static_cast<std::size_t>(shape)];
    const int machine = static_cast<int>(impl_.machines.size());
    impl_.machines.push_back({name, static_cast<int>(impl_.hosts.size())});
    for (int vm = 0; vm < num_systems(group) / group.count; ++vm) {
      const auto& settings = *impl_.shapes[static_cast<std::size_t>(shape + vm)].spec.virtualization;
      const auto full = settings.vm_name.empty() ? name : fmt::format("{}/{}", name, settings.vm_name);
      if (!impl_.host_by_name.try_emplace(full, static_cast<int>(impl_.hosts.size())).second && is_name_free) {
        values_.error(group.location, fmt::format("two hosts are called '{}'", full),
                      "give every host group its own name");
        is_name_free = false;
      }
      impl_.hosts.push_back({full, shape + vm, impl_.num_host_devices, impl_.num_host_links, machine});
      impl_.num_host_devices += static_cast<int>(first.devices.size());
    }
    impl_.num_host_links += static_cast<int>(first.links.size());
    return is_name_free;
  }

  void check_that_hosts_are_alone() {
    if (impl_.machines.size() < 2) return;
    const auto& fabric = impl_.spec.fabric;
    values_.error(fabric.location.line > 0 ? fabric.location : impl_.spec.hosts.front().location,
                  fmt::format("{} hosts and no fabric between them", impl_.machines.size()),
                  "add `fabric:` with single_switch, leaf_spine, fat_tree, rail_optimized, dragonfly, torus or list");
  }

  /// Switches and HCAs of the network: types that exist, with the values links are made of. False when the generator's
  /// own switches are at fault.
  bool check_types() {
    const auto& fabric = impl_.spec.fabric;
    const auto before = values_.num_faults();
    if (fabric.kind != FabricKind::none && fabric.kind != FabricKind::list)
      check_switch(fabric.switch_type, fabric.rate.has_value(), fabric.location);
    if (topology::needs_ports(fabric)) values_.required(fabric.switch_type, "ports", fabric.location);
    const bool has_sound_generator = values_.num_faults() == before;
    for (const auto& one : fabric.switches) check_switch(one.type, false, one.location);
    for (const auto& group : impl_.spec.hosts) {
      for (const auto& device : group.host.devices) {
        if (device.kind == DeviceKind::hca)
          values_.required(device.type, "rate", device.location.line > 0 ? device.location : group.location);
      }
    }
    return has_sound_generator;
  }

  void check_switch(const std::string& type, bool has_rate, const SourceLocation& where) {
    if (!values_.check_type(type, "network_switch", where)) return;
    if (!has_rate) values_.required(type, "rate", where);
    if (!impl_.spec.fabric.hop_latency) values_.required_duration(type, "latency", where);
  }

  void set_node(int device, int node) {
    const auto index = static_cast<std::size_t>(device);
    if (index >= impl_.node_of_hca.size()) impl_.node_of_hca.resize(index + 1, -1);
    impl_.node_of_hca[index] = node;
  }

  std::vector<topology::HcaPort> number_hcas() {
    std::vector<topology::HcaPort> ports;
    for (std::size_t m = 0; m < impl_.machines.size(); ++m) {
      const auto& machine = impl_.machines[m];
      int ordinal = 0;
      for (const auto& device : impl_.shape_of(machine.first_host).devices) {
        if (!is_cabled_adapter(device)) continue;
        const int node = static_cast<int>(impl_.hcas.size());
        for (int h = machine.first_host;
             h < static_cast<int>(impl_.hosts.size()) && impl_.first_of(h) == machine.first_host; ++h)
          set_node(impl_.hosts[static_cast<std::size_t>(h)].first_device + device.id.value, node);
        impl_.hcas.push_back(
            {impl_.hosts[static_cast<std::size_t>(machine.first_host)].first_device + device.id.value});
        ports.push_back({fmt::format("{}.{}", machine.name, device.name), device.type, static_cast<int>(m), ordinal++});
      }
    }
    return ports;
  }

  /// Every switch type is InfiniBand.
  [[nodiscard]] bool is_infiniband(const topology::Fabric& fabric) const {
    return !fabric.switches.empty() && std::ranges::all_of(fabric.switches, [&](const topology::FabricSwitch& one) {
      return impl_.attribute(one.type, "protocol") == "infiniband";
    });
  }

  [[nodiscard]] std::int64_t num_hcas() const {
    std::int64_t total = 0;
    for (const auto& machine : impl_.machines)
      total += std::ranges::count_if(impl_.shape_of(machine.first_host).devices, is_cabled_adapter);
    return total;
  }

  void connect_network() {
    const auto& spec = impl_.spec.fabric;
    if (const auto total = num_hcas(); total > topology::k_max_cables) {
      values_.error(spec.location, fmt::format("{} HCAs, one cable each", total),
                    fmt::format("at most {} cables are simulated: take fewer hosts", topology::k_max_cables));
      return;
    }
    const auto ports = number_hcas();
    const auto fabric = topology::make_fabric(spec, ports, values_);
    for (const auto& one : fabric.switches) add_switch(one);
    add_links(fabric, ports);
    topology::NetworkPlan plan;
    plan.num_hcas = static_cast<int>(ports.size());
    plan.num_switches = static_cast<int>(fabric.switches.size());
    plan.first_link = impl_.num_host_links;
    impl_.is_infiniband = is_infiniband(fabric);
    plan.is_routed_by_destination = impl_.is_infiniband;
    plan.routing = spec.routing;
    plan.num_routers = fabric.num_routers;
    plan.routers_per_group = fabric.routers_per_group;
    if (spec.kind == FabricKind::torus) plan.dimensions = spec.dimensions;
    for (const auto& one : fabric.switches) plan.coordinates.push_back(one.coordinates);
    for (const auto& cable : fabric.cables) plan.cables.emplace_back(cable.a, cable.b);
    impl_.network = std::make_unique<topology::Network>(std::move(plan));
    if (is_adaptive(spec)) spread_links(fabric);
  }

  void spread_links(const topology::Fabric& fabric) {
    std::vector<topology::SwitchPlace> places;
    for (const auto& one : fabric.switches)
      if (one.place) places.push_back(*one.place);
    impl_.spread = topology::SpreadTable(impl_.network_links, impl_.num_host_links, impl_.num_host_devices, places);
  }

  void add_switch(const topology::FabricSwitch& one) {
    Device device;
    device.id = {impl_.num_host_devices + static_cast<int>(impl_.switches.size())};
    device.kind = DeviceKind::network_switch;
    device.name = one.name;
    device.type = one.type;
    device.ordinal = static_cast<int>(impl_.switches.size());
    device.forwarding_latency = impl_.spec.fabric.hop_latency.value_or(values_.duration_or(one.type, "latency", {0}));
    impl_.switches.push_back(std::move(device));
  }

  /// Rate of a cable: the slower of its ends and of what the description says about it.
  void add_links(const topology::Fabric& fabric, const std::vector<topology::HcaPort>& ports) {
    const int num_hcas = static_cast<int>(ports.size());
    const auto type_of = [&](int node) -> const std::string& {
      return node < num_hcas ? ports[static_cast<std::size_t>(node)].type
                             : fabric.switches[static_cast<std::size_t>(node - num_hcas)].type;
    };
    const auto id_of = [&](int node) {
      return node < num_hcas ? impl_.hcas[static_cast<std::size_t>(node)]
                             : DeviceId{impl_.num_host_devices + node - num_hcas};
    };
    for (const auto& cable : fabric.cables) {
      double rate = cable.rate;
      auto parameter = cable.parameter;
      for (const int end : {cable.a, cable.b}) {
        const auto own = values_.find(type_of(end), "rate");
        if (!own || (rate > 0 && *own > rate) || (rate == *own && parameter != cable.parameter)) continue;
        rate = *own;
        parameter = type_of(end) + ".rate";
      }
      Link link;
      link.kind = LinkKind::network;
      link.bandwidth = {rate};
      link.latency = from_seconds(cable.length_m * k_seconds_per_metre);
      link.parameter = parameter;
      for (const bool is_back : {false, true}) {
        link.id = {impl_.num_host_links + static_cast<int>(impl_.network_links.size())};
        link.from = id_of(is_back ? cable.b : cable.a);
        link.to = id_of(is_back ? cable.a : cable.b);
        impl_.network_links.push_back(link);
      }
    }
  }

  Topology::Impl& impl_;
  const std::vector<DeviceType>& types_;
  topology::DeviceValues& values_;
};

}  // namespace

Result<Topology> build_topology(const TopologySpec& spec, const ParameterSet& parameters,
                                const std::vector<DeviceType>& device_types) {
  Diagnostics faults;
  topology::DeviceValues values(parameters, device_types, faults);
  auto impl = std::make_shared<Topology::Impl>();
  impl->spec = spec;
  Builder(*impl, device_types, values).build();
  if (!faults.empty()) return tl::unexpected(faults);
  return Topology(std::move(impl));
}

}  // namespace fabricast
