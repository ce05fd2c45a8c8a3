// SPDX-License-Identifier: Apache-2.0
// The devices and links of one kind of host, numbered from 0. All hosts of a group share one shape.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "fabricast/topology.hpp"

namespace fabricast::topology {

/// Numbers in DeviceId and LinkId are relative to the shape.
struct HostShape {
  HostSpec spec;
  std::vector<Device> devices;               ///< names without the host
  std::vector<Link> links;                   ///< a link and its reverse are neighbours: 2k and 2k + 1
  std::vector<std::vector<int>> links_from;  ///< [device] -> links that start there
  std::vector<std::vector<int>> by_kind;     ///< [DeviceKind] -> devices in ordinal order

  [[nodiscard]] std::optional<Path> find_path(int from, int to, const PathOptions& options) const;

 private:
  mutable std::map<std::tuple<int, int, bool, bool, bool>, std::optional<Path>> paths_;
  [[nodiscard]] std::optional<Path> search(int from, int to, bool over_nvlink, bool through_gpus) const;
  [[nodiscard]] Path described(const std::vector<LinkId>& links) const;
  [[nodiscard]] std::optional<Path> redirected(int from, int to, std::optional<Path> cabled) const;
};

/// Builds the shape; faults are appended to `faults` with the location of the device that causes them.
HostShape build_shape(const HostSpec& spec, const SourceLocation& where, const ParameterSet& parameters,
                      const std::vector<DeviceType>& types, Diagnostics& faults);

}  // namespace fabricast::topology
