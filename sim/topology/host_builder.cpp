// SPDX-License-Identifier: Apache-2.0
// From a host's description to its shape: sockets and memories, then every device below its parent, then NVLinks. A
// device directly below a socket gets a root complex of its own, rc-<device>.
#include "topology/host_shape.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "fabricast/virtualization.hpp"

namespace fabricast::topology {

namespace {

constexpr int k_any_payload = 256;  // bytes, to go on after a fault
constexpr int k_max_sockets = 64;
constexpr std::size_t k_max_devices = 1024;
constexpr int k_failed = -1;       // of a device that is at fault
constexpr int k_in_progress = -2;  // of a device whose parents are being looked for

/// Adds devices and links of one host and reports what cannot be.
class ShapeBuilder {
 public:
  ShapeBuilder(const HostSpec& spec, const SourceLocation& where, DeviceValues& values)
      : where_(where), values_(values) {
    shape_.spec = spec;
    if (!shape_.spec.virtualization) shape_.spec.virtualization = std::make_shared<const Virtualization>();
    shape_.by_kind.resize(8);
  }

  HostShape build() {
    auto& spec = shape_.spec;
    if (spec.num_sockets < 1 || spec.num_sockets > k_max_sockets) {
      values_.error(where_, fmt::format("a host has {} sockets, expected 1 to {}", spec.num_sockets, k_max_sockets));
      return std::move(shape_);
    }
    if (spec.devices.size() > k_max_devices) {
      values_.error(where_, fmt::format("a host has {} devices", spec.devices.size()),
                    fmt::format("a host holds at most {} devices", k_max_devices));
      return std::move(shape_);
    }
    if (!values_.check_type(spec.processor, "processor", where_)) return std::move(shape_);
    add_sockets();
    for (const auto& device : spec.devices) {
      if (is_sound(device)) index_.try_emplace(device.name, &device);
    }
    for (const auto& device : spec.devices) {
      if (const auto it = index_.find(device.name); it != index_.end() && it->second == &device) add(device);
    }
    connect_nvlinks(shape_, made_, where_, values_);
    return std::move(shape_);
  }

 private:
  [[nodiscard]] const SourceLocation& place(const SourceLocation& where) const {
    return where.line > 0 ? where : where_;
  }

  void fault(const SourceLocation& where, std::string message, std::string hint) {
    values_.error(place(where), std::move(message), std::move(hint));
  }

  /// Name, kind and type of a device; where it hangs is looked at later.
  bool is_sound(const DeviceSpec& spec) {
    if (spec.name.empty() || spec.name.find('.') != std::string::npos) {
      fault(spec.location, fmt::format("a device is called '{}'", spec.name), "use a name without dots, like gpu0");
      return false;
    }
    if (spec.kind == DeviceKind::socket || spec.kind == DeviceKind::memory || spec.kind == DeviceKind::network_switch) {
      fault(spec.location, fmt::format("device '{}' is a {}", spec.name, to_string(spec.kind)),
            "sockets and memories come with the host, network switches belong to the fabric");
      return false;
    }
    if (made_.count(spec.name) > 0 || spec.name == "gpus") {
      fault(spec.location, fmt::format("the name '{}' is taken", spec.name),
            "sockets, memories and all `gpus` together have names of their own; take another, like gpu0");
      return false;
    }
    if (index_.count(spec.name) > 0) {
      fault(spec.location, fmt::format("two devices are called '{}'", spec.name),
            "give every device of a host its own name");
      return false;
    }
    return has_type(spec);
  }

  bool has_type(const DeviceSpec& spec) {
    switch (spec.kind) {
      case DeviceKind::gpu:
        return values_.check_type(spec.type, "gpu", place(spec.location));
      case DeviceKind::hca:
        return values_.check_type(spec.type, "hca", place(spec.location));
      case DeviceKind::nvswitch:
        return values_.check_type(spec.type, "nvswitch", place(spec.location));
      default:
        return true;
    }
  }

  void add_sockets() {
    const auto& processor = shape_.spec.processor;
    for (int s = 0; s < shape_.spec.num_sockets; ++s) {
      const int socket = shape_.add_device(DeviceKind::socket, fmt::format("socket{}", s), processor, s, {});
      const int memory = shape_.add_device(DeviceKind::memory, fmt::format("memory{}", s), "", s, {});
      made_[fmt::format("socket{}", s)] = socket;
      made_[fmt::format("memory{}", s)] = memory;
      shape_.connect(memory, socket,
                     {{},
                      LinkKind::memory_bus,
                      {},
                      {},
                      {values_.required(processor, "memory_bandwidth", where_)},
                      {},
                      0,
                      0,
                      processor + ".memory_bandwidth"});
    }
    for (int a = 0; a < shape_.spec.num_sockets; ++a) {
      for (int b = a + 1; b < shape_.spec.num_sockets; ++b) {
        shape_.connect(made_[fmt::format("socket{}", a)], made_[fmt::format("socket{}", b)],
                       {{},
                        LinkKind::socket_interconnect,
                        {},
                        {},
                        {values_.required(processor, "socket_bandwidth", where_)},
                        values_.required_duration(processor, "socket_latency", where_),
                        0,
                        0,
                        processor + ".socket_bandwidth"});
      }
    }
  }

  int add_root_complex(const std::string& name, int socket_device) {
    const auto& processor = shape_.spec.processor;
    const int socket = shape_.devices[static_cast<std::size_t>(socket_device)].socket;
    const int rc = shape_.add_device(DeviceKind::root_complex, name, "", socket,
                                     values_.required_duration(processor, "root_complex_latency", where_));
    shape_.connect(rc, socket_device,
                   {{},
                    LinkKind::socket_internal,
                    {},
                    {},
                    {values_.required(processor, "root_complex_bandwidth", where_)},
                    {},
                    0,
                    0,
                    processor + ".root_complex_bandwidth"});
    made_[name] = rc;
    return rc;
  }

  /// Number of the device, made after its parent; k_failed when the description is at fault.
  int add(const DeviceSpec& spec) {
    if (const auto it = made_.find(spec.name); it != made_.end()) return it->second;
    made_[spec.name] = k_in_progress;
    const int device = make(spec);
    return made_[spec.name] = device;
  }

  int make(const DeviceSpec& spec) {
    if (spec.kind == DeviceKind::nvswitch) return make_nvswitch(spec);
    if (!spec.card.empty()) return make_part(spec);
    const int parent = parent_of(spec);
    if (parent < 0) return k_failed;
    const bool below_socket = kind_of(parent) == DeviceKind::socket;
    if (spec.kind == DeviceKind::root_complex) {
      if (below_socket) return add_root_complex(spec.name, parent);
      fault(spec.location, fmt::format("root complex '{}' is below '{}'", spec.name, spec.below),
            "a root complex hangs below a socket");
      return k_failed;
    }
    const auto own = "rc-" + spec.name;
    if (below_socket && index_.count(own) > 0) {
      fault(spec.location,
            fmt::format("the root complex of '{}' is called '{}', which another device is called", spec.name, own),
            fmt::format("rename '{}', or put '{}' below it", own, spec.name));
      return k_failed;
    }
    const int above = below_socket ? add_root_complex(own, parent) : parent;
    const int socket = shape_.devices[static_cast<std::size_t>(above)].socket;
    const auto forwarding =
        spec.kind == DeviceKind::pcie_switch ? values_.required_duration("pcie", "switch_latency", where_) : Duration{};
    const int device = shape_.add_device(spec.kind, spec.name, spec.type, socket, forwarding);
    shape_.connect(device, above, pcie_link(spec));
    return device;
  }

  int make_nvswitch(const DeviceSpec& spec) {
    if (!spec.below.empty()) {
      fault(spec.location, fmt::format("NVSwitch '{}' is below '{}'", spec.name, spec.below),
            "remove `below`: NVSwitches hang at NVLinks, listed under `nvlinks`");
      return k_failed;
    }
    return shape_.add_device(spec.kind, spec.name, spec.type, -1,
                             values_.required_duration(spec.type, "latency", place(spec.location)));
  }

  /// A vGPU or MIG instance beside the card's first: it shares slot and links with the card.
  int make_part(const DeviceSpec& spec) {
    const auto whole = index_.find(spec.card);
    const int card = whole == index_.end() ? k_failed : add(*whole->second);
    if (card < 0) return k_failed;
    const int part = shape_.add_device(spec.kind, spec.name, spec.type,
                                       shape_.devices[static_cast<std::size_t>(card)].socket, Duration{});
    auto link = pcie_link(spec);
    link.kind = LinkKind::socket_internal;
    link.latency = {};
    shape_.connect(part, card, link);
    return part;
  }

  Link pcie_link(const DeviceSpec& spec) {
    const auto& processor = shape_.spec.processor;
    const bool is_switch = spec.type.empty();
    const double slot_generation =
        spec.pcie.generation > 0 ? spec.pcie.generation : values_.required(processor, "pcie_generation", where_);
    const double own_generation =
        is_switch ? slot_generation : values_.required(spec.type, "pcie_generation", place(spec.location));
    const double slot_width = spec.pcie.width > 0 ? spec.pcie.width : 16;
    const double own_width = is_switch ? slot_width : values_.required(spec.type, "pcie_width", place(spec.location));
    const int generation =
        static_cast<int>(std::min(spec.pcie.generation > 0 ? slot_generation : own_generation, own_generation));
    const int width = static_cast<int>(std::min(slot_width, own_width));
    return {{},
            LinkKind::pcie,
            {},
            {},
            pcie_bandwidth(std::clamp(generation, 1, 6), std::clamp(width, 1, 32), max_payload()),
            values_.duration_or("pcie", "link_latency", {0}),
            width,
            generation,
            is_switch ? processor + ".pcie_generation" : spec.type + ".pcie_generation"};
  }

  int max_payload() {
    const auto& processor = shape_.spec.processor;
    const double payload = values_.required(processor, "max_payload", where_);
    if (payload >= 64 && payload <= 4096) return static_cast<int>(payload);
    if (!has_reported_payload_ && values_.find(processor, "max_payload"))
      fault(where_, fmt::format("'{}.max_payload' is {}, expected 64 to 4096 bytes", processor, payload), "");
    has_reported_payload_ = true;
    return k_any_payload;
  }

  int parent_of(const DeviceSpec& spec) {
    if (spec.below.empty()) {
      fault(spec.location, fmt::format("device '{}' does not say what it is below", spec.name),
            "add `below: socket0`, a root complex or a PCIe switch");
      return k_failed;
    }
    const auto declared = index_.find(spec.below);
    if (declared == index_.end() && made_.count(spec.below) == 0) return report_dangling(spec);
    const auto kind = declared != index_.end() ? declared->second->kind : kind_of(made_[spec.below]);
    if (kind != DeviceKind::socket && kind != DeviceKind::root_complex && kind != DeviceKind::pcie_switch) {
      fault(spec.location, fmt::format("device '{}' is below '{}', a {}", spec.name, spec.below, to_string(kind)),
            "PCIe devices hang below a socket, a root complex or a PCIe switch");
      return k_failed;
    }
    const int parent = declared != index_.end() ? add(*declared->second) : made_[spec.below];
    if (parent == k_in_progress) {
      fault(spec.location,
            fmt::format("device '{}' is below '{}', which is below '{}' itself", spec.name, spec.below, spec.name),
            "every chain of `below` must end at a socket");
    }
    return parent < 0 ? k_failed : parent;  // a parent that failed is reported where it is declared
  }

  /// Nothing when the parent is declared but at fault itself.
  int report_dangling(const DeviceSpec& spec) {
    const bool is_declared =
        std::ranges::any_of(shape_.spec.devices, [&](const auto& d) { return d.name == spec.below; });
    if (is_declared) return k_failed;
    std::vector<std::string> names;
    for (int s = 0; s < shape_.spec.num_sockets; ++s) names.push_back(fmt::format("socket{}", s));
    for (const auto& [name, device] : index_) {
      if (name != spec.name && (device->kind == DeviceKind::root_complex || device->kind == DeviceKind::pcie_switch))
        names.push_back(name);
    }
    const auto sockets = shape_.spec.num_sockets == 1
                             ? std::string("the host has one socket, socket0")
                             : fmt::format("the host has {} sockets, socket0 to socket{}", shape_.spec.num_sockets,
                                           shape_.spec.num_sockets - 1);
    const auto hint = did_you_mean(spec.below, names);
    fault(spec.location, fmt::format("device '{}' is below '{}', which the host does not have", spec.name, spec.below),
          spec.below.starts_with("socket") || hint.empty() ? sockets : hint);
    return k_failed;
  }

  [[nodiscard]] DeviceKind kind_of(int device) const { return shape_.devices[static_cast<std::size_t>(device)].kind; }

  HostShape shape_;
  SourceLocation where_;
  DeviceValues& values_;
  std::map<std::string, const DeviceSpec*> index_;  ///< sound declarations by name
  std::map<std::string, int> made_;                 ///< name -> number, or one of the constants below 0
  bool has_reported_payload_ = false;
};

}  // namespace

HostShape build_shape(const HostSpec& spec, const SourceLocation& where, DeviceValues& values) {
  return ShapeBuilder(spec, where, values).build();
}

}  // namespace fabricast::topology
