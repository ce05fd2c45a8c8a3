// SPDX-License-Identifier: Apache-2.0
// Where the fluid engine's answer leaves out what packets would do: links of a lossless fabric that RDMA asks for more
// than they carry, long enough for queues to reach the thresholds of ECN, PFC or credits. An Ethernet fabric that does
// not say how its switches are configured counts as one with the shipped defaults, as in the packet engine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/job.hpp"
#include "fabricast/parameters.hpp"

namespace fabricast::engine {

struct PacketDoubt {
  std::string link;
  double oversubscription = 1;  ///< demand / rate
  Bytes queue;                  ///< what piles up when nobody slows down
  std::string threshold;        ///< "150 kB, where ECN marks"
};

/// The worst link while the jobs run, or nothing when packets would not change the answer. Demands are what hosts can
/// send, an HCA's port shared by its flows; only links behind a switch that several HCAs use count.
std::optional<PacketDoubt> packet_doubt(const ParameterSet& parameters, const models::Resources& resources,
                                        const std::vector<Job>& jobs);

}  // namespace fabricast::engine
