// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/parameter_keys.hpp"
#include "config/lossless_reader.hpp"
#include "config/names.hpp"
#include "config/readers.hpp"
#include "config/schema.hpp"
#include "config/virtualization.hpp"

namespace fabricast::config {

namespace {

class TopologyReader {
 public:
  TopologyReader(DeviceLibrary& library, Diagnostics& faults) : library_(library), faults_(faults) {}

  ReadTopology read(const Node& document) {
    out_.spec.name = document.find("name")->scalar;
    out_.spec.file = document.source->name;
    for (const auto& group : document.find("hosts")->items) out_.spec.hosts.push_back(read_group(group));
    name_stand_ins(document);
    if (const auto* fabric = document.find("fabric")) read_fabric(*fabric);
    if (const auto* parameters = document.find("parameters")) {
      for (const auto& entry : parameters->entries)
        inline_.push_back(read_parameter(entry.key.scalar, entry.value, nullptr, faults_));
    }
    for (auto& parameter : inline_) out_.device_parameters.set(std::move(parameter));
    return std::move(out_);
  }

 private:
  const DeviceLibrary::Entry* use(const Node& where, const std::string& name, const std::vector<std::string>& kinds) {
    const auto* entry = library_.find(name, where, faults_, kinds);
    if (entry == nullptr) return nullptr;
    if (std::find(kinds.begin(), kinds.end(), entry->type.kind) == kinds.end()) {
      faults_.push_back(where.error(
          fmt::format("'{}' is a {}, a {} is expected here", name, entry->type.kind, fmt::join(kinds, " or ")),
          DeviceLibrary::hint_of_kind(name, kinds)));
      return nullptr;
    }
    if (used_.insert(name).second) {
      out_.types.push_back(entry->type);
      for (const auto& value : entry->values) out_.device_parameters.set(value);
      // A switch brings its ASIC with it.
      if (const auto asic = entry->type.attributes.find("asic"); asic != entry->type.attributes.end())
        use(where, asic->second, {"switch_asic"});
    }
    return entry;
  }

  HostGroupSpec read_group(const Node& node) {
    HostGroupSpec group;
    group.name = node.find("name")->scalar;
    group.location = node.location();
    if (const auto* count = node.find("count")) group.count = static_cast<int>(as_integer(*count));
    if (const auto* type = node.find("type")) {
      if (const auto* entry = use(*type, type->scalar, {"host"})) group.host = read_host(entry->host);
      group.host.type = type->scalar;
    } else if (const auto* host = node.find("host")) {
      group.host = read_host(*host);
    }
    if (const auto* processor = node.find("processor")) {
      use(*processor, processor->scalar, {"processor"});
      group.host.processor = processor->scalar;
    }
    if (const auto* sockets = node.find("sockets")) group.host.num_sockets = static_cast<int>(as_integer(*sockets));
    if (const auto* devices = node.find("devices")) {
      check_named_twice(*devices);
      for (const auto& device : devices->items) patch_device(group.host, device);
    }
    if (const auto* nvlinks = node.find("nvlinks")) add_nvlinks(group.host, *nvlinks);
    if (const auto* remove = node.find("remove")) {
      for (const auto& name : remove->items) remove_device(group.host, name);
    }
    if (const auto* limit = node.find("gpu_power_limit"))
      group.host.gpu_power_limit = {as_quantity(*limit, Dimension::number), limit->location()};
    const auto* virtualization = node.find("virtualization");
    if (const auto* vms = node.find("vms"))
      group.host.virtualization =
          std::make_shared<const Virtualization>(read_vms(*vms, virtualization, group.host, faults_));
    else if (virtualization != nullptr)
      group.host.virtualization =
          std::make_shared<const Virtualization>(read_virtualization(*virtualization, group.host, faults_));
    return group;
  }

  /// Stand-ins of remote GPUs have the type of the GPU they stand for.
  void name_stand_ins(const Node& document) {
    for (auto& group : out_.spec.hosts) {
      const auto& guest = group.host.virtualization;
      if (!guest) continue;
      for (const auto& vm : guest->vms) {
        for (const auto& held : vm->devices)
          if (!held.remote.empty()) name_stand_in(document, group, held);
      }
      for (const auto& device : group.host.devices)
        if (device.type == "virtual-switch") use(document, device.type, {"hca"});
    }
  }

  void name_stand_in(const Node& document, HostGroupSpec& group, const VmDevice& held) {
    auto& stand_in = *std::ranges::find(group.host.devices, held.device, &DeviceSpec::name);
    const auto* server = find_gpu(held.remote);
    Node where = document;
    where.line = held.location.line;
    where.column = held.location.column;
    if (server == nullptr) {
      faults_.push_back(where.error(fmt::format("no GPU '{}' in the topology", held.remote),
                                    "remote GPUs are called host.gpuN, host as the machine is called"));
    } else if (!stand_in.type.empty() && stand_in.type != server->type) {
      faults_.push_back(
          where.error(fmt::format("'{}' stands for a {} and a {}", held.device, stand_in.type, server->type),
                      "give the second another name"));
    } else {
      stand_in.type = server->type;
    }
    if (stand_in.type.empty()) stand_in.kind = DeviceKind::pcie_switch;  // a type is asked of GPUs only
  }

  [[nodiscard]] const DeviceSpec* find_gpu(const std::string& name) const {
    const auto dot = name.find('.');
    if (dot == std::string::npos) return nullptr;
    for (const auto& group : out_.spec.hosts) {
      for (int i = 0; i < group.count; ++i) {
        const auto host = group.count == 1 ? group.name : fmt::format("{}{}", group.name, i);
        if (host != name.substr(0, dot)) continue;
        const auto device = std::ranges::find(group.host.devices, name.substr(dot + 1), &DeviceSpec::name);
        const bool is_gpu = device != group.host.devices.end() && device->kind == DeviceKind::gpu;
        return is_gpu ? &*device : nullptr;
      }
    }
    return nullptr;
  }

  HostSpec read_host(const Node& node) {
    HostSpec host;
    const auto& processor = *node.find("processor");
    use(processor, processor.scalar, {"processor"});
    host.processor = processor.scalar;
    if (const auto* sockets = node.find("sockets")) host.num_sockets = static_cast<int>(as_integer(*sockets));
    if (const auto* devices = node.find("devices")) {
      for (const auto& device : devices->items) {
        DeviceSpec spec;
        fill_device(spec, device);
        host.devices.push_back(std::move(spec));
      }
    }
    if (const auto* nvlinks = node.find("nvlinks")) add_nvlinks(host, *nvlinks);
    if (const auto* acs = node.find("acs"); acs != nullptr && acs->scalar == "redirect") {
      Virtualization bare;
      bare.acs = AcsMode::redirect;
      host.virtualization = std::make_shared<const Virtualization>(bare);
    }
    return host;
  }

  static std::optional<DeviceKind> kind_from(const std::string& name) {
    static const std::map<std::string, DeviceKind> kinds{{"gpu", DeviceKind::gpu},
                                                         {"hca", DeviceKind::hca},
                                                         {"pcie_switch", DeviceKind::pcie_switch},
                                                         {"root_complex", DeviceKind::root_complex},
                                                         {"nvswitch", DeviceKind::nvswitch}};
    const auto it = kinds.find(name);
    if (it == kinds.end()) return std::nullopt;
    return it->second;
  }

  /// Sets what `node` gives; keys it does not give keep their value (patching).
  void fill_device(DeviceSpec& spec, const Node& node) {
    spec.name = node.find("name")->scalar;
    spec.location = node.location();
    if (const auto* kind = node.find("kind")) spec.kind = *kind_from(kind->scalar);
    if (const auto* type = node.find("type")) {
      if (const auto* entry = use(*type, type->scalar, {"gpu", "hca", "nvswitch"})) {
        const auto kind = *kind_from(entry->type.kind);
        if (node.find("kind") != nullptr && spec.kind != kind)
          faults_.push_back(type->error(fmt::format("'{}' is a {}, the device is declared a {}", type->scalar,
                                                    entry->type.kind, node.find("kind")->scalar)));
        spec.kind = kind;
      }
      spec.type = type->scalar;
    } else if (node.find("kind") == nullptr && spec.type.empty() && !is_known_) {
      faults_.push_back(node.error(fmt::format("device '{}' has neither a type nor a kind", spec.name),
                                   "add `type:` from the catalogue, or `kind: pcie_switch`"));
    }
    if (const auto* below = node.find("below")) spec.below = below->scalar;
    if (const auto* slot = node.find("pcie")) std::tie(spec.pcie.generation, spec.pcie.width) = as_slot(*slot);
    if (const auto* trained = node.find("trained")) {
      const auto [generation, width] = as_slot(*trained);
      check_trained(spec, *trained, generation, width);
      spec.in_trained_below_slot = generation < spec.pcie.generation || width < spec.pcie.width;
      spec.pcie = {generation, width};
    }
  }

  /// A link trains at most at what slot and card can do.
  void check_trained(const DeviceSpec& spec, const Node& node, int generation, int width) {
    const auto refuse = [&](const char* what, double most_generation, double most_width) {
      if (generation <= most_generation && width <= most_width) return false;
      faults_.push_back(node.error(fmt::format("'{}' trained at {}, its {} can do gen{} x{}", spec.name, node.scalar,
                                               what, most_generation, most_width),
                                   "give the rate the link came up with, as `lspci -vv` prints it (LnkSta)"));
      return true;
    };
    if (spec.pcie.generation > 0 && refuse("slot", spec.pcie.generation, spec.pcie.width)) return;
    const auto known = [&](const char* field) { return out_.device_parameters.value_or(spec.type, field, 1e9); };
    if (!spec.type.empty()) refuse("card", known("pcie_generation"), known("pcie_width"));
  }

  void check_named_twice(const Node& devices) {
    std::set<std::string> names;
    for (const auto& device : devices.items) {
      const auto* name = device.find("name");
      if (name != nullptr && !names.insert(name->scalar).second)
        faults_.push_back(
            name->error(fmt::format("device '{}' is listed twice", name->scalar), "write all its keys in one place"));
    }
  }

  void patch_device(HostSpec& host, const Node& node) {
    const auto& name = node.find("name")->scalar;
    const auto it =
        std::find_if(host.devices.begin(), host.devices.end(), [&](const DeviceSpec& d) { return d.name == name; });
    is_known_ = it != host.devices.end();
    if (is_known_) {
      fill_device(*it, node);
    } else {
      DeviceSpec spec;
      fill_device(spec, node);
      host.devices.push_back(std::move(spec));
    }
    is_known_ = false;
  }

  void remove_device(HostSpec& host, const Node& node) {
    const auto& name = node.scalar;
    const auto count = host.devices.size();
    std::erase_if(host.devices, [&](const DeviceSpec& d) { return d.name == name; });
    if (host.devices.size() == count) {
      std::vector<std::string> names;
      for (const auto& device : host.devices) names.push_back(device.name);
      faults_.push_back(node.error(fmt::format("the host has no device '{}' to remove", name),
                                   meant_hint(near_names(name, names, 1))));
    }
    std::erase_if(host.nvlinks, [&](const NvlinkSpec& link) { return link.from == name || link.to == name; });
  }

  static void add_nvlinks(HostSpec& host, const Node& node) {
    for (const auto& one : node.items) {
      NvlinkSpec link;
      link.from = one.find("from")->scalar;
      link.to = one.find("to")->scalar;
      if (const auto* links = one.find("links")) link.links = static_cast<int>(as_integer(*links));
      link.location = one.location();
      host.nvlinks.push_back(std::move(link));
    }
  }

  void read_fabric(const Node& node) {
    auto& fabric = out_.spec.fabric;
    fabric.location = node.location();
    for (const auto kind : {FabricKind::single_switch, FabricKind::leaf_spine, FabricKind::fat_tree,
                            FabricKind::rail_optimized, FabricKind::dragonfly, FabricKind::torus, FabricKind::list}) {
      const auto* body = node.find(to_string(kind));
      if (body == nullptr) continue;
      fabric.kind = kind;
      read_fabric_body(*body, fabric);
    }
  }

  void use_switch(const Node& type, FabricSpec& fabric) {
    const auto* entry = use(type, type.scalar, {"network_switch"});
    if (entry == nullptr) return;
    const auto asic = entry->type.attributes.find("asic");
    if (asic != entry->type.attributes.end()) fabric.asics[type.scalar] = asic->second;
  }

  void read_fabric_body(const Node& node, FabricSpec& fabric) {
    const auto integer = [&](const char* key, int& into) {
      if (const auto* found = node.find(key)) into = static_cast<int>(as_integer(*found));
    };
    if (const auto* type = node.find("switch")) {
      use_switch(*type, fabric);
      fabric.switch_type = type->scalar;
    }
    if (const auto* rate = node.find("rate")) fabric.rate = Bandwidth{as_quantity(*rate, Dimension::bandwidth)};
    if (const auto* latency = node.find("hop_latency")) read_hop_latency(*latency, fabric);
    if (const auto* cable = node.find("cable")) fabric.cable_length_m = as_length(*cable);
    if (const auto* cable = node.find("switch_cable")) {
      fabric.switch_cable_length_m = as_length(*cable);
      if (fabric.kind == FabricKind::single_switch)
        faults_.push_back(cable->error("'switch_cable' of a single switch, which has no cable to another one",
                                       "leave it out; `cable` is the length of those to hosts"));
    }
    if (const auto* routing = node.find("routing")) {
      for (const auto known : {Routing::minimal, Routing::dimension_order, Routing::up_down, Routing::adaptive}) {
        if (routing->scalar == to_string(known)) fabric.routing = known;
      }
      if (fabric.routing == Routing::dimension_order && fabric.kind != FabricKind::torus)
        faults_.push_back(routing->error("only a torus has dimensions to route in the order of",
                                         "use minimal or up_down, or leave `routing` out"));
      if (fabric.routing == Routing::adaptive && !can_be_adaptive(fabric.kind))
        faults_.push_back(routing->error(
            fmt::format("switches of a {} are not forecast to choose ways as they go", to_string(fabric.kind)),
            "those of a leaf_spine, fat_tree, rail_optimized or dragonfly are; leave `routing` out; packet by packet "
            "`workload.transport.routing: adaptive` does it on any fabric (--fidelity packet)"));
    }
    if (const auto* lossless = node.find("lossless")) {
      fabric.lossless = read_lossless(*lossless, faults_);
      if (const auto* preset = lossless->find("preset")) use(*preset, preset->scalar, {"switch_asic"});
    }
    if (const auto* mtu = node.find("mtu")) read_mtu(*mtu, fabric);
    if (const auto* over = node.find("oversubscription"))
      fabric.oversubscription = as_quantity(*over, Dimension::number);
    if (const auto* splitters = node.find("splitters")) fabric.has_splitters = splitters->scalar == "on";
    integer("tiers", fabric.tiers);
    integer("leaf_ports", fabric.leaf_ports);
    integer("spines", fabric.spines);
    integer("rails", fabric.rails);
    integer("groups", fabric.groups);
    integer("routers_per_group", fabric.routers_per_group);
    integer("hosts_per_router", fabric.hosts_per_router);
    integer("global_links", fabric.global_links);
    integer("local_links", fabric.local_links);
    if (const auto* dimensions = node.find("dimensions")) {
      for (const auto& d : dimensions->items) fabric.dimensions.push_back(static_cast<int>(as_integer(d)));
    }
    if (const auto* switches = node.find("switches")) {
      for (const auto& one : switches->items) {
        use_switch(*one.find("type"), fabric);
        fabric.switches.push_back({one.find("name")->scalar, one.find("type")->scalar, one.location()});
      }
    }
    if (const auto* cables = node.find("cables")) {
      for (const auto& one : cables->items) fabric.cables.push_back(read_cable(one));
    }
  }

  /// As a switch type's own latency.
  void read_hop_latency(const Node& node, FabricSpec& fabric) {
    const double seconds = as_quantity(node, Dimension::time);
    const auto range = range_of("switch.latency", Dimension::time);
    if (!range.holds(seconds))
      faults_.push_back(
          node.error(fmt::format("'hop_latency' is {}, allowed is {}", node.scalar, to_string(range, Dimension::time)),
                     "write e.g. `130 ns`"));
    fabric.hop_latency = from_seconds(seconds);
  }

  void read_mtu(const Node& node, FabricSpec& fabric) {
    auto parsed = parse_quantity(node.scalar, Dimension::number);
    if (!parsed.ok) parsed = parse_quantity(node.scalar, Dimension::bytes);
    const auto range = range_of("hca.mtu", Dimension::number);
    if (!parsed.ok || !range.holds(parsed.value)) {
      faults_.push_back(node.error(
          fmt::format("'mtu' must be {:.0f} to {:.0f} bytes, found '{}'", range.low, range.high, node.scalar),
          "write e.g. `4096 B`"));
      return;
    }
    fabric.mtu = static_cast<int>(std::llround(parsed.value));
  }

  static CableSpec read_cable(const Node& node) {
    CableSpec cable;
    cable.from = node.find("from")->scalar;
    cable.to = node.find("to")->scalar;
    cable.location = node.location();
    if (const auto* count = node.find("count")) cable.count = static_cast<int>(as_integer(*count));
    if (const auto* rate = node.find("rate")) cable.rate = Bandwidth{as_quantity(*rate, Dimension::bandwidth)};
    if (const auto* length = node.find("length")) cable.length_m = as_length(*length);
    return cable;
  }

  DeviceLibrary& library_;
  Diagnostics& faults_;
  ReadTopology out_;
  std::vector<Parameter> inline_;
  std::set<std::string> used_;
  bool is_known_ = false;
};

}  // namespace

ReadTopology read_topology(const Node& document, DeviceLibrary& library, Diagnostics& faults) {
  return TopologyReader(library, faults).read(document);
}

}  // namespace fabricast::config
