// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "fabricast/check.hpp"

namespace fabricast {

namespace {

constexpr double k_same_ratio = 1.001;

/// The rules over a topology. Hosts of a group are equal: the first one stands for all.
class TopologyRules {
 public:
  TopologyRules(const Topology& topology, const ParameterSet& parameters)
      : topology_(topology), parameters_(parameters) {}

  Diagnostics run() {
    int first = 0;
    for (const auto& group : topology_.spec().hosts) {
      check_group(group, first);
      first += num_systems(group);
    }
    check_fabric();
    return std::move(found_);
  }

 private:
  void warn(const SourceLocation& where, std::string message, std::string fix) {
    found_.push_back(make_warning_at(where, std::move(message), std::move(fix)));
  }

  void check_group(const HostGroupSpec& group, int host) {
    for (const auto& device : group.host.devices) check_slot(group, device);
    check_links(group, host);
    check_processor(group);
    for (const auto hca : topology_.devices(DeviceKind::hca, host)) check_hca(group, hca);
    if (topology_.num_hosts() > 1) {
      check_gpu_distance(group, host);
      const bool has_hca =
          std::ranges::any_of(group.host.devices, [](const DeviceSpec& d) { return d.kind == DeviceKind::hca; });
      if (!has_hca) {
        warn(
            group.location,
            fmt::format("hosts of group '{}' have no HCA in a topology of {} hosts", group.name, topology_.num_hosts()),
            "they cannot reach the others; add an HCA");
      }
    }
  }

  static SourceLocation place(const HostGroupSpec& group, const DeviceSpec& device) {
    // Devices of the shipped catalogue are located in files the user cannot edit: point at the group.
    return device.location.file.rfind("<shipped>", 0) == 0 ? group.location : device.location;
  }

  void check_slot(const HostGroupSpec& group, const DeviceSpec& device) {
    if (device.in_trained_below_slot) {
      warn(place(group, device),
           fmt::format("the link of '{}' trained at gen{} x{}, below its slot", device.name, device.pcie.generation,
                       device.pcie.width),
           "reseat the card, check the riser and the BIOS link speed");
    }
    if (device.type.empty() || device.pcie.generation == 0) return;
    const int own_generation =
        static_cast<int>(parameters_.value_or(device.type, "pcie_generation", device.pcie.generation));
    const int own_width = static_cast<int>(parameters_.value_or(device.type, "pcie_width", device.pcie.width));
    if (device.in_trained_below_slot || (device.pcie.generation >= own_generation && device.pcie.width >= own_width))
      return;
    warn(place(group, device),
         fmt::format("'{}' ({}) can do gen{} x{}, its slot gives gen{} x{}", device.name, device.type, own_generation,
                     own_width, device.pcie.generation, device.pcie.width),
         "take a faster slot, or expect the slot's rate");
  }

  void check_links(const HostGroupSpec& group, int host) {
    std::set<std::string> reported;
    for (const auto kind : {DeviceKind::gpu, DeviceKind::hca}) {
      for (const auto device : topology_.devices(kind, host)) {
        const auto path = topology_.path_in_host(device, topology_.local_memory(device));
        if (!path) continue;
        for (const auto link : path->links) {
          const auto one = topology_.link(link);
          if (one.bandwidth.bytes_per_s > 0 || !reported.insert(one.parameter).second) continue;
          warn(group.location, fmt::format("{} has no bandwidth", topology_.link_name(link)),
               fmt::format("parameter '{}' must be above zero", one.parameter));
        }
      }
    }
  }

  void check_processor(const HostGroupSpec& group) {
    const auto& processor = group.host.processor;
    if (topology_.attribute(processor, "vendor").empty() && without_vendor_.insert(processor).second)
      warn(group.location, fmt::format("processor '{}' does not say its vendor", processor),
           "give its type `attributes: {vendor: amd|intel, microarchitecture: ...}`; NCCL's rules for Intel from "
           "Skylake on are used");
    const bool is_known = std::ranges::all_of(
        std::array{"p2p_read_bandwidth", "p2p_write_bandwidth", "p2p_cross_read_bandwidth",
                   "p2p_cross_write_bandwidth"},
        [&](const char* field) { return parameters_.contains(fmt::format("{}.{}", processor, field)); });
    if (is_known || !unlimited_.insert(processor).second) return;
    warn(group.location, fmt::format("processor '{}' does not say how fast peer traffic passes it", processor),
         "give its type the four `p2p_*` values; without one only the links limit that traffic");
  }

  void check_hca(const HostGroupSpec& group, DeviceId hca) {
    const auto device = topology_.device(hca);
    const auto spec = std::find_if(group.host.devices.begin(), group.host.devices.end(), [&](const DeviceSpec& d) {
      return group.name + "." + d.name == device.name || device.name.ends_with("." + d.name);
    });
    const auto where = spec == group.host.devices.end() ? group.location : place(group, *spec);
    const auto short_name = spec == group.host.devices.end() ? device.name : spec->name;
    const double rate = parameters_.value_or(device.type, "rate", 0);  // one port is cabled
    if (rate <= 0)
      warn(where, fmt::format("HCA '{}' ({}) has a port rate of zero", short_name, device.type),
           "give its type a `rate`");
    if (const auto path = topology_.path_in_host(hca, topology_.local_memory(hca)); path && !path->links.empty()) {
      const double slot = topology_.link_bandwidth(path->links.front()).bytes_per_s;
      if (rate > slot * 1.01) {
        warn(where,
             fmt::format("HCA '{}' sends {} but its PCIe link carries {}", short_name, to_string(Bandwidth{rate}),
                         to_string(Bandwidth{slot})),
             "use a slot of the next generation or more lanes, or count on the PCIe rate");
      }
    }
    const auto& fabric = topology_.spec().fabric;
    if (fabric.kind == FabricKind::none && fabric.cables.empty()) return;
    const double mtu = parameters_.value_or(device.type, "mtu", 4096);
    if (fabric.mtu && mtu < *fabric.mtu)
      warn(where,
           fmt::format("HCA '{}' takes packets of {:.0f} B, the fabric is set to {} B", short_name, mtu, *fabric.mtu),
           "set the same `mtu` on both sides; the smaller is used");
    check_cabling(where, short_name, hca);
  }

  void check_cabling(const SourceLocation& where, const std::string& name, DeviceId hca) {
    if (topology_.num_hosts() < 2) return;
    const int host = topology_.host_of(hca);
    const auto others = topology_.devices(DeviceKind::hca, host == 0 ? topology_.num_hosts() - 1 : 0);
    const bool reaches = std::any_of(others.begin(), others.end(), [&](DeviceId other) {
      return topology_.path_between_hcas(hca, other).has_value();
    });
    if (!reaches && !others.empty())
      warn(where,
           fmt::format("HCA '{}' reaches no HCA of host '{}'", name,
                       topology_.host_name(topology_.host_of(others.front()))),
           "cable it to the fabric");
  }

  void check_gpu_distance(const HostGroupSpec& group, int host) {
    std::vector<std::string> far;
    for (const auto gpu : topology_.devices(DeviceKind::gpu, host)) {
      const auto hcas = topology_.hcas_by_distance(gpu);
      if (!hcas.empty() && topology_.distance(gpu, hcas.front()) == Distance::sys)
        far.push_back(topology_.device(gpu).name.substr(topology_.host_name(host).size() + 1));
    }
    if (far.empty()) return;
    std::string names = far.front();
    for (std::size_t i = 1; i < far.size() && i < 4; ++i) names += ", " + far[i];
    if (far.size() > 4) names += ", ...";
    warn(group.location, fmt::format("the nearest HCA of {} is on the other socket (group '{}')", names, group.name),
         "GPUDirect RDMA is not used across sockets by default: give each socket an HCA or move the GPU");
  }

  /// What a leaf takes from HCAs over what it gives to other switches, by capacity. Of all leaves the worst.
  void check_oversubscription() {
    const auto& fabric = topology_.spec().fabric;
    if (fabric.kind == FabricKind::torus || fabric.kind == FabricKind::dragonfly) return;
    std::map<std::int32_t, std::pair<double, double>> leaves;  // down, up
    for (int l = 0; l < topology_.num_links(); ++l) {
      const auto link = topology_.link(LinkId{l});
      if (link.kind != LinkKind::network || topology_.kind(link.to) != DeviceKind::network_switch) continue;
      auto& [down, up] = leaves[link.to.value];
      (topology_.kind(link.from) == DeviceKind::hca ? down : up) += link.bandwidth.bytes_per_s;
    }
    double worst = 1;
    std::int32_t where = -1;
    for (const auto& [leaf, capacity] : leaves) {
      if (capacity.second <= 0 || capacity.first <= worst * capacity.second * k_same_ratio) continue;
      worst = capacity.first / capacity.second;
      where = leaf;
    }
    if (where < 0) return;
    warn(fabric.location,
         fmt::format("the fabric is oversubscribed {:.3g} : 1 at {}", worst, topology_.device(DeviceId{where}).name),
         "traffic that leaves a leaf shares what goes up; expected in many clusters, stated here because forecasts "
         "depend on it");
  }

  void check_fabric() {
    const auto& fabric = topology_.spec().fabric;
    check_oversubscription();
    const double port = parameters_.value_or(fabric.switch_type, "rate", 0);
    double fastest = 0;
    std::string type;
    for (const auto& group : topology_.spec().hosts) {
      for (const auto& device : group.host.devices) {
        const double rate = device.kind == DeviceKind::hca ? parameters_.value_or(device.type, "rate", 0) : 0;
        if (rate > fastest) {
          fastest = rate;
          type = device.type;
        }
      }
    }
    if (port > 0 && fastest > port * 1.01)
      warn(fabric.location,
           fmt::format("ports of {} carry {}, HCA {} sends {}", fabric.switch_type, to_string(Bandwidth{port}), type,
                       to_string(Bandwidth{fastest})),
           "the slower side counts; take a faster switch or slower HCAs");
    if (port > 0 && fastest > 0 && port > 2.01 * fastest)
      warn(fabric.location,
           fmt::format("ports of {} carry {}, the fastest HCA {} sends {}", fabric.switch_type,
                       to_string(Bandwidth{port}), type, to_string(Bandwidth{fastest})),
           "the switch is more than twice as fast as anything on it");
  }

  const Topology& topology_;
  const ParameterSet& parameters_;
  Diagnostics found_;
  std::set<std::string> without_vendor_;
  std::set<std::string> unlimited_;  ///< processors reported for a missing peer limit
};

}  // namespace

Diagnostics check_topology(const Topology& topology, const ParameterSet& parameters) {
  return TopologyRules(topology, parameters).run();
}

}  // namespace fabricast
