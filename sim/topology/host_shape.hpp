// SPDX-License-Identifier: Apache-2.0
// The devices and links of one kind of host, numbered from 0. All hosts of a group share one shape.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "fabricast/topology.hpp"
#include "topology/device_values.hpp"

namespace fabricast::topology {

/// Catalogue name of an adapter without a port: VMs of one host meet in the hypervisor's switch.
inline constexpr const char* k_virtual_switch = "virtual-switch";

/// Numbers in DeviceId and LinkId are relative to the shape.
struct HostShape {
  HostSpec spec;
  std::vector<Device> devices;               ///< names without the host
  std::vector<Link> links;                   ///< a link and its reverse are neighbours: 2k and 2k + 1
  std::vector<std::vector<int>> links_from;  ///< [device] -> links that start there
  std::vector<std::vector<int>> by_kind;     ///< [DeviceKind] -> devices in ordinal order

  /// Number of the new device.
  int add_device(DeviceKind kind, const std::string& name, const std::string& type, int socket, Duration forwarding);
  /// Adds `link` from `a` to `b` and its reverse.
  void connect(int a, int b, Link link);

  [[nodiscard]] std::optional<Path> find_path(int from, int to, const PathOptions& options) const;

 private:
  mutable std::map<std::tuple<int, int, bool, bool, bool>, std::optional<Path>> paths_;
  mutable std::map<std::tuple<int, bool, bool>, std::vector<std::size_t>> trees_;
  /// tree[device] = the one before it on the way from `from`; itself when there is no way.
  [[nodiscard]] const std::vector<std::size_t>& tree(int from, bool over_nvlink, bool through_gpus) const;
  [[nodiscard]] std::optional<Path> search(int from, int to, bool over_nvlink, bool through_gpus) const;
  [[nodiscard]] Path described(const std::vector<LinkId>& links) const;
  [[nodiscard]] std::optional<Path> redirected(int from, int to, std::optional<Path> cabled) const;
};

/// Builds the shape; faults are reported at the device that causes them, or at `where`.
HostShape build_shape(const HostSpec& spec, const SourceLocation& where, DeviceValues& values);

/// The machine as one of its VMs has it: the same numbers, the kinds list only what the VM holds.
HostShape vm_shape(const HostShape& machine, std::shared_ptr<const Virtualization> vm);

/// Adds the NVLinks of the shape's spec. `made`: device names to numbers, below 0 for devices at fault.
void connect_nvlinks(HostShape& shape, const std::map<std::string, int>& made, const SourceLocation& where,
                     DeviceValues& values);

}  // namespace fabricast::topology
