// SPDX-License-Identifier: Apache-2.0
// Where the fluid engine's answer leaves out what packets would do: links of a lossless fabric that RDMA asks for more
// than they carry, long enough for queues to reach the thresholds of ECN, PFC or credits, and links whose credits do
// not last for a round trip at the rate asked for. An Ethernet fabric that does not say how its switches are configured
// counts as one with the shipped defaults, as in the packet engine.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/job.hpp"
#include "fabricast/parameters.hpp"

namespace fabricast::engine {

struct PacketDoubt {
  std::string link;
  double oversubscription = 1;  ///< demand / rate, or / what credits allow
  Bytes queue;                  ///< what piles up when nobody slows down
  std::string threshold;        ///< "150 kB, where ECN marks"
  double credit_share = 1;      ///< of the link's rate, what the credits of a lane allow; 1 = all
  Bytes lane_buffer;            ///< where credits allow less

  /// What is to be said of it, in words.
  [[nodiscard]] std::string text() const;
};

/// The worst link while the jobs run, or nothing when packets would not change the answer. Demands are what hosts can
/// send, an HCA's port shared by its flows, of all flows that are active at one time by `timings`, whatever job they
/// belong to; only links behind a switch that several HCAs use count, but any link may lack credits.
std::optional<PacketDoubt> packet_doubt(const ParameterSet& parameters, const models::Resources& resources,
                                        const std::vector<Job>& jobs, const std::vector<OperationTiming>& timings);

}  // namespace fabricast::engine
