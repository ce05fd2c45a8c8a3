// SPDX-License-Identifier: Apache-2.0
// What the packets of every flow pass inside hosts: PCIe links, memories, limits of adapters, what one connection
// reaches. Each such resource is a stage that serves one packet after the other, so whoever is active shares it.
//
// A leg carries `times` bytes per byte of its flow. A resource in a host that the flow crosses m times is charged to
// the legs that leave the host, or where none does to those that enter it, with m / sum(times) per byte. Left out:
// network links and packet headers, which are the packets' own business; resources that no traffic of their ports can
// fill; of resources with the same users all but the slowest.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/job.hpp"
#include "fabricast/parameters.hpp"

namespace fabricast::engine {

/// Stages of one leg, by their number in HostPaths::capacities.
struct LegStages {
  struct Use {
    std::uint32_t stage = 0;
    double times = 1;  ///< bytes of the stage per payload byte
    friend auto operator<=>(const Use&, const Use&) = default;
  };
  std::vector<Use> send;
  std::vector<Use> receive;
};

struct HostPaths {
  std::vector<double> capacities;   ///< [stage], bytes/s
  std::vector<char> is_shared;      ///< [stage]: by several flows
  std::vector<LegStages> paths{1};  ///< [path]; the first one is empty
  /// [job][round][flow] -> number of its first leg; flows that are not on the fabric have one number for all they
  /// cross.
  std::vector<std::vector<std::vector<std::uint32_t>>> first_leg;
  std::vector<std::uint32_t> path_of_leg;  ///< [leg] -> paths

  [[nodiscard]] std::uint32_t path(std::size_t job, std::size_t round, std::size_t flow, std::size_t leg) const {
    return path_of_leg[first_leg[job][round][flow] + leg];
  }
  /// Seconds per payload byte of the slowest stage of one side; 0 when there is none.
  [[nodiscard]] double slowest(const std::vector<LegStages::Use>& side) const;
};

HostPaths make_host_paths(const ParameterSet& parameters, const models::Resources& resources,
                          const std::vector<Job>& jobs);

}  // namespace fabricast::engine
