// SPDX-License-Identifier: Apache-2.0
// What the inside of hosts allows the flows of a round before the fabric has its say: fair shares of PCIe links, DMA
// limits and channel caps. The packet engine paces its senders and receivers by it.
#pragma once

#include <map>
#include <vector>

#include "fabricast/models/plan.hpp"

namespace fabricast::engine {

struct HostLimits {
  /// Rate of each flow by what is on its sending side (for flows of one leg) or anywhere in hosts (others), bytes/s;
  /// infinite when nothing limits it.
  std::vector<double> send_rates;
  /// The same if the fabric had no limits, bytes/s.
  std::vector<double> host_rates;
  /// The same for the fabric alone: the slowest network link, headers counted, nobody else about.
  std::vector<double> fabric_rates;
};

/// Max-min shares of host resources by progressive filling [Bertsekas & Gallager 1992, 6.5.2]. `others` take their
/// shares at the same time; the limits are those of `flows`.
HostLimits host_limits(const models::Resources& resources, const std::vector<models::Flow>& flows,
                       const std::vector<models::Flow>& others = {});

/// Payload bytes/s at which HCA `hca` can take what flow brings, by the host behind it; infinite when nothing limits.
double receive_rate(const models::Resources& resources, const models::Flow& flow);

}  // namespace fabricast::engine
