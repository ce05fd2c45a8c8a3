// SPDX-License-Identifier: Apache-2.0
// Hosts with each other: adapters and switches of one protocol, PVRDMA among PVRDMA, clients of one remote GPU.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "check/vm_setup.hpp"

namespace fabricast::check {

namespace {

class ClusterRules {
 public:
  ClusterRules(const Topology& topology, const ParameterSet& parameters, const std::vector<DeviceType>& types)
      : topology_(topology), parameters_(parameters), types_(types) {}

  Diagnostics run() {
    check_ports();
    check_flow_control();
    check_pvrdma_peers();
    check_remote_shares();
    return std::move(found_);
  }

 private:
  void add(const SourceLocation& where, std::string message, std::string fix, const std::string& source) {
    auto one = make_error_at(where, std::move(message), std::move(fix));
    one.notes.push_back({fmt::format("source: {}", source), {}});
    found_.push_back(std::move(one));
  }

  [[nodiscard]] std::string protocol(const std::string& type) const {
    const auto found = std::ranges::find(types_, type, &DeviceType::name);
    if (found == types_.end()) return {};
    const auto at = found->attributes.find("protocol");
    return at == found->attributes.end() ? std::string() : at->second;
  }

  [[nodiscard]] const HostGroupSpec& group_of(int host) const {
    int first = 0;
    for (const auto& group : topology_.spec().hosts) {
      first += num_systems(group);
      if (host < first) return group;
    }
    return topology_.spec().hosts.back();
  }

  /// An Ethernet port on an InfiniBand switch, or the reverse, has no link.
  void check_ports() {
    std::set<std::pair<std::string, std::string>> said;
    for (const auto hca : topology_.devices(DeviceKind::hca)) {
      const auto type = topology_.device(hca).type;
      const auto own = protocol(type);
      for (const auto link : topology_.uplinks(hca)) {
        const auto other = topology_.device(topology_.link(link).to).type;
        const auto far = protocol(other);
        const bool is_mismatch =
            (own == "ethernet" && far == "infiniband") || (own == "infiniband" && far == "ethernet");
        if (!is_mismatch || !said.insert({type, other}).second) continue;
        const auto& group = group_of(topology_.host_of(hca));
        add(group.location,
            fmt::format("{} {} on {} switch {}: the port has no link",
                        own == "ethernet" ? "Ethernet adapter" : "InfiniBand adapter", type,
                        far == "ethernet" ? "Ethernet" : "InfiniBand", other),
            "set the adapter's port to the switch's protocol (LINK_TYPE_P1: 1 InfiniBand, 2 Ethernet) and take that "
            "type",
            "InfiniBand and Ethernet are different physical layers");
      }
    }
  }

  void check_flow_control() {
    const auto& lossless = topology_.spec().fabric.lossless;
    if (!lossless || lossless->flow_control != FlowControl::pfc || !topology_.is_infiniband()) return;
    const auto where = lossless->locations.find("flow_control");
    add(where == lossless->locations.end() ? lossless->location : where->second,
        "PFC on InfiniBand switches, which have credits on every lane",
        "remove `flow_control`, or take an Ethernet switch for RoCE",
        "InfiniBand architecture 7.9; IEEE 802.1Qbb is of Ethernet");
  }

  /// PVRDMA VMs talk to PVRDMA VMs; to other RDMA adapters from 7.0 U1 with hardware version 18. Of several kinds of
  /// hosts the oldest counts.
  void check_pvrdma_peers() {
    const Virtualization* oldest = nullptr;
    std::string peer;
    for (int host = 0; host < topology_.num_hosts(); ++host) {
      const auto& guest = topology_.virtualization(host);
      const auto modes = nic_modes(host);
      const bool has_pvrdma = guest.is_virtual() && std::ranges::count(modes, NicMode::pvrdma) > 0;
      if (has_pvrdma && guest.hypervisor == Hypervisor::esxi && !is_native(guest) && oldest == nullptr) oldest = &guest;
      const bool is_peer = std::ranges::any_of(modes, [](NicMode mode) { return !is_tcp_only(mode); });
      if (!has_pvrdma && is_peer && has_rdma(host) && peer.empty())
        peer = guest.vm_name.empty() ? fmt::format("group '{}'", group_of(host).name)
                                     : fmt::format("VM '{}'", topology_.host_name(host));
    }
    if (oldest == nullptr || peer.empty()) return;
    add(oldest->location,
        fmt::format("PVRDMA adapters on ESXi {} reach PVRDMA adapters only, {} has none", to_string(oldest->version),
                    peer),
        "give all VMs PVRDMA, or take ESXi 7.0 U1 and hardware version 18 (native endpoints)",
        "VMware documentation G-4A5EBD44, PVRDMA native endpoints");
  }

  [[nodiscard]] std::vector<NicMode> nic_modes(int host) const {
    const auto& guest = topology_.virtualization(host);
    std::vector<NicMode> out;
    for (const auto hca : topology_.devices(DeviceKind::hca, host))
      out.push_back(guest.nic_mode(topology_.device(hca).name.substr(topology_.host_name(host).size() + 1)));
    return out;
  }

  [[nodiscard]] bool is_native(const Virtualization& guest) const {
    return release_code(guest.version) >= parameters_.number("support.pvrdma_native_first") &&
           (guest.hardware_version == 0 || guest.hardware_version >= 18);
  }

  /// Hosts with plain Ethernet adapters are no peers of RDMA.
  [[nodiscard]] bool has_rdma(int host) const {
    return std::ranges::any_of(topology_.devices(DeviceKind::hca, host), [&](DeviceId hca) {
      return parameters_.value_or(topology_.device(hca).type, "rdma", 1) != 0;
    });
  }

  void check_remote_shares() {
    struct Asked {
      double share = 0;
      std::optional<SourceLocation> past;  ///< the client that asks for more than is left
      bool queues = true;
    };
    std::map<std::string, Asked> all;
    for (int host = 0; host < topology_.num_hosts(); ++host) {
      const auto& guest = topology_.virtualization(host);
      for (const auto& held : guest.devices) {
        if (held.remote.empty()) continue;
        auto& asked = all[held.remote];
        asked.share += held.share;
        asked.queues = asked.queues && guest.queues_for_remote;
        if (asked.share > 1 + 1e-9 && !asked.past) asked.past = held.location;
      }
    }
    for (const auto& [gpu, asked] : all)
      if (asked.past && !asked.queues)
        add(*asked.past, fmt::format("clients ask for {:g} of {}", asked.share, gpu),
            "lower their shares, or let them wait (virtualization: {remote_sharing: queue})",
            "Bitfusion FlexDirect guide");
  }

  const Topology& topology_;
  const ParameterSet& parameters_;
  const std::vector<DeviceType>& types_;
  Diagnostics found_;
};

}  // namespace

Diagnostics cluster_findings(const Topology& topology, const ParameterSet& parameters,
                             const std::vector<DeviceType>& types) {
  return ClusterRules(topology, parameters, types).run();
}

}  // namespace fabricast::check
