// SPDX-License-Identifier: Apache-2.0
#include "topology/host_shape.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace fabricast::topology {

namespace {

constexpr int k_default_max_payload = 256;

/// Adds devices and links of one host and reports what cannot be.
class ShapeBuilder {
 public:
  ShapeBuilder(const HostSpec& spec, const SourceLocation& where, const ParameterSet& parameters,
               const std::vector<DeviceType>& types, Diagnostics& faults)
      : where_(where), parameters_(parameters), faults_(faults) {
    shape_.spec = spec;
    shape_.by_kind.resize(8);
    for (const auto& type : types) kinds_[type.name] = type.kind;
  }

  HostShape build() {
    add_sockets();
    for (const auto& device : shape_.spec.devices) index_[device.name] = &device;
    if (index_.size() != shape_.spec.devices.size()) report_duplicates();
    for (const auto& device : shape_.spec.devices) add(device);
    for (const auto& nvlink : shape_.spec.nvlinks) add_nvlinks(nvlink);
    return std::move(shape_);
  }

 private:
  [[nodiscard]] double value(const std::string& type, const char* field, double fallback) const {
    const auto* parameter = parameters_.find(fmt::format("{}.{}", type, field));
    return parameter == nullptr ? fallback : parameter->value;
  }

  void fault(const SourceLocation& where, std::string message, std::string hint) {
    auto diagnostic = make_error(std::move(message), std::move(hint));
    diagnostic.location = where.line > 0 ? where : where_;
    faults_.push_back(std::move(diagnostic));
  }

  void report_duplicates() {
    std::set<std::string> seen;
    for (const auto& device : shape_.spec.devices) {
      if (!seen.insert(device.name).second)
        fault(device.location, fmt::format("two devices are called '{}'", device.name),
              "give every device of a host its own name");
    }
  }

  int new_device(DeviceKind kind, const std::string& name, const std::string& type, int socket, Duration forwarding) {
    Device device;
    device.id = {static_cast<std::int32_t>(shape_.devices.size())};
    device.kind = kind;
    device.name = name;
    device.type = type;
    device.socket = socket;
    auto& same_kind = shape_.by_kind[static_cast<std::size_t>(kind)];
    device.ordinal = static_cast<int>(same_kind.size());
    device.forwarding_latency = forwarding;
    same_kind.push_back(device.id.value);
    shape_.devices.push_back(std::move(device));
    shape_.links_from.emplace_back();
    return shape_.devices.back().id.value;
  }

  void connect(int a, int b, Link link) {
    for (const bool is_back : {false, true}) {
      link.id = {static_cast<std::int32_t>(shape_.links.size())};
      link.from = {is_back ? b : a};
      link.to = {is_back ? a : b};
      shape_.links_from[static_cast<std::size_t>(link.from.value)].push_back(link.id.value);
      shape_.links.push_back(link);
    }
  }

  void add_sockets() {
    const auto& processor = shape_.spec.processor;
    for (int s = 0; s < shape_.spec.num_sockets; ++s) {
      const int socket = new_device(DeviceKind::socket, fmt::format("socket{}", s), processor, s, {});
      const int memory = new_device(DeviceKind::memory, fmt::format("memory{}", s), "", s, {});
      made_[fmt::format("socket{}", s)] = socket;
      made_[fmt::format("memory{}", s)] = memory;
      connect(memory, socket,
              {{},
               LinkKind::memory_bus,
               {},
               {},
               {value(processor, "memory_bandwidth", 100e9)},
               {},
               0,
               0,
               processor + ".memory_bandwidth"});
    }
    for (int a = 0; a < shape_.spec.num_sockets; ++a) {
      for (int b = a + 1; b < shape_.spec.num_sockets; ++b) {
        connect(made_[fmt::format("socket{}", a)], made_[fmt::format("socket{}", b)],
                {{},
                 LinkKind::socket_interconnect,
                 {},
                 {},
                 {value(processor, "socket_bandwidth", 20e9)},
                 from_seconds(value(processor, "socket_latency", 70e-9)),
                 0,
                 0,
                 processor + ".socket_bandwidth"});
      }
    }
  }

  int add_root_complex(const std::string& name, int socket_device) {
    const auto& processor = shape_.spec.processor;
    const int socket = shape_.devices[static_cast<std::size_t>(socket_device)].socket;
    const int rc = new_device(DeviceKind::root_complex, name, "", socket,
                              from_seconds(value(processor, "root_complex_latency", 50e-9)));
    connect(rc, socket_device,
            {{},
             LinkKind::socket_internal,
             {},
             {},
             {value(processor, "root_complex_bandwidth", 50e9)},
             {},
             0,
             0,
             processor + ".root_complex_bandwidth"});
    made_[name] = rc;
    return rc;
  }

  /// Number of the device, made after its parent; -1 when the description is at fault.
  int add(const DeviceSpec& spec) {
    if (const auto it = made_.find(spec.name); it != made_.end()) return it->second;
    made_[spec.name] = -1;  // a cycle ends here
    if (spec.kind == DeviceKind::nvswitch) {
      return made_[spec.name] =
                 new_device(spec.kind, spec.name, spec.type, -1, from_seconds(value(spec.type, "latency", 100e-9)));
    }
    const int parent = parent_of(spec);
    if (parent < 0) return -1;
    const bool below_socket = shape_.devices[static_cast<std::size_t>(parent)].kind == DeviceKind::socket;
    if (spec.kind == DeviceKind::root_complex) {
      if (below_socket) return add_root_complex(spec.name, parent);
      fault(spec.location, fmt::format("root complex '{}' is below '{}'", spec.name, spec.below),
            "a root complex hangs below a socket");
      return -1;
    }
    const int above = below_socket ? add_root_complex("rc-" + spec.name, parent) : parent;
    const int socket = shape_.devices[static_cast<std::size_t>(above)].socket;
    const auto forwarding = spec.kind == DeviceKind::pcie_switch ? forwarding_of_switch() : Duration{};
    const int device = new_device(spec.kind, spec.name, spec.type, socket, forwarding);
    connect(device, above, pcie_link(spec));
    return made_[spec.name] = device;
  }

  [[nodiscard]] Duration forwarding_of_switch() const {
    const auto* latency = parameters_.find("pcie.switch_latency");
    return from_seconds(latency == nullptr ? 125e-9 : latency->value);
  }

  [[nodiscard]] Link pcie_link(const DeviceSpec& spec) const {
    const auto& processor = shape_.spec.processor;
    const bool is_switch = spec.type.empty();
    const double slot_generation =
        spec.pcie.generation > 0 ? spec.pcie.generation : value(processor, "pcie_generation", 3);
    const double own_generation = is_switch ? slot_generation : value(spec.type, "pcie_generation", slot_generation);
    const double slot_width = spec.pcie.width > 0 ? spec.pcie.width : 16;
    const double own_width = is_switch ? slot_width : value(spec.type, "pcie_width", slot_width);
    const int generation =
        static_cast<int>(std::min(spec.pcie.generation > 0 ? slot_generation : own_generation, own_generation));
    const int width = static_cast<int>(std::min(slot_width, own_width));
    const auto* latency = parameters_.find("pcie.link_latency");
    const int payload = static_cast<int>(value(processor, "max_payload", k_default_max_payload));
    return {{},
            LinkKind::pcie,
            {},
            {},
            pcie_bandwidth(std::clamp(generation, 1, 6), std::clamp(width, 1, 32), payload),
            from_seconds(latency == nullptr ? 0 : latency->value),
            width,
            generation,
            is_switch ? processor + ".pcie_generation" : spec.type + ".pcie_generation"};
  }

  int parent_of(const DeviceSpec& spec) {
    if (spec.below.empty()) {
      fault(spec.location, fmt::format("device '{}' does not say what it is below", spec.name),
            "add `below: socket0`, a root complex or a PCIe switch");
      return -1;
    }
    if (const auto it = made_.find(spec.below); it != made_.end() && shape_ok(it->second)) return it->second;
    const auto found = index_.find(spec.below);
    if (found == index_.end()) {
      std::vector<std::string> names;
      for (const auto& [name, number] : made_) names.push_back(name);
      for (const auto& [name, device] : index_) names.push_back(name);
      const auto near = nearest_name(spec.below, names);
      fault(spec.location,
            fmt::format("device '{}' is below '{}', which the host does not have", spec.name, spec.below),
            near.empty() ? fmt::format("the host has {} sockets, from socket0", shape_.spec.num_sockets)
                         : fmt::format("did you mean '{}'?", near));
      return -1;
    }
    const int parent = add(*found->second);
    if (parent < 0) {
      if (made_[spec.below] < 0 && reported_.insert(spec.below).second) {
        fault(spec.location,
              fmt::format("device '{}' hangs below '{}', which is not connected to any socket", spec.name, spec.below),
              "every chain of `below` must end at a socket");
      }
      return -1;
    }
    const auto kind = shape_.devices[static_cast<std::size_t>(parent)].kind;
    if (kind == DeviceKind::gpu || kind == DeviceKind::hca || kind == DeviceKind::nvswitch) {
      fault(spec.location, fmt::format("device '{}' is below '{}', a {}", spec.name, spec.below, to_string(kind)),
            "PCIe devices hang below a socket, a root complex or a PCIe switch");
      return -1;
    }
    return parent;
  }

  [[nodiscard]] bool shape_ok(int device) const {
    if (device < 0) return false;
    const auto kind = shape_.devices[static_cast<std::size_t>(device)].kind;
    return kind == DeviceKind::socket || kind == DeviceKind::root_complex || kind == DeviceKind::pcie_switch;
  }

  void add_nvlinks(const NvlinkSpec& spec) {
    std::vector<std::string> from{spec.from};
    std::vector<std::string> to{spec.to};
    const auto all_gpus = [&] {
      std::vector<std::string> names;
      for (const int gpu : shape_.by_kind[static_cast<std::size_t>(DeviceKind::gpu)])
        names.push_back(shape_.devices[static_cast<std::size_t>(gpu)].name);
      return names;
    };
    if (spec.from == "gpus") from = all_gpus();
    if (spec.to == "gpus") to = all_gpus();
    for (const auto& a : from) {
      for (const auto& b : to) add_nvlink(spec, a, b);
    }
  }

  void add_nvlink(const NvlinkSpec& spec, const std::string& a, const std::string& b) {
    bool is_sound = true;
    for (const auto& name : {a, b}) {
      const auto it = made_.find(name);
      const bool fits = it != made_.end() && it->second >= 0 &&
                        (kind_of(it->second) == DeviceKind::gpu || kind_of(it->second) == DeviceKind::nvswitch);
      if (fits) continue;
      is_sound = false;
      if (it != made_.end() && it->second < 0) continue;  // reported where the device is declared
      std::vector<std::string> names;
      for (const auto& [known, device] : index_) names.push_back(known);
      const auto near = nearest_name(name, names);
      fault(spec.location, fmt::format("NVLink ends at '{}', which is no GPU or NVSwitch of the host", name),
            near.empty() || near == name ? "" : fmt::format("did you mean '{}'?", near));
    }
    if (!is_sound) return;
    const int x = made_[a];
    const int y = made_[b];
    const auto& gpu = shape_.devices[static_cast<std::size_t>(kind_of(x) == DeviceKind::gpu ? x : y)];
    const auto* rate = parameters_.find(gpu.type + ".nvlink_link_bandwidth");
    if (rate == nullptr) {
      fault(spec.location, fmt::format("'{}' is a {}, which has no NVLink", gpu.name, gpu.type),
            "remove the NVLink or take an SXM type");
      return;
    }
    connect(x, y,
            {{},
             LinkKind::nvlink,
             {},
             {},
             {rate->value * spec.links * value(gpu.type, "nvlink_efficiency", 1)},
             from_seconds(value(gpu.type, "nvlink_latency", 0)),
             spec.links,
             0,
             rate->name});
  }

  [[nodiscard]] DeviceKind kind_of(int device) const { return shape_.devices[static_cast<std::size_t>(device)].kind; }

  HostShape shape_;
  SourceLocation where_;
  const ParameterSet& parameters_;
  Diagnostics& faults_;
  std::map<std::string, std::string> kinds_;
  std::map<std::string, const DeviceSpec*> index_;
  std::map<std::string, int> made_;
  std::set<std::string> reported_;
};

}  // namespace

HostShape build_shape(const HostSpec& spec, const SourceLocation& where, const ParameterSet& parameters,
                      const std::vector<DeviceType>& types, Diagnostics& faults) {
  return ShapeBuilder(spec, where, parameters, types, faults).build();
}

}  // namespace fabricast::topology
