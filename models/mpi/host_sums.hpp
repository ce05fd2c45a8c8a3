// SPDX-License-Identifier: Apache-2.0
// How fast a core sums what it received into its own buffer. docs/models/mpi.md, "Reductions".
#pragma once

#include <vector>

#include "mpi/transfer.hpp"

namespace fabricast::models::mpi {

/// Sums of one call, of one core beside `memory`. What ranks of a host hand each other moves from core to core, and so
/// do buffers that others have read: one rate. What came from another host is summed at the rate of a core's own cache
/// while it lies there, else at that of the last level.
class HostSums {
 public:
  /// `working_set`: bytes that the rank sweeps in the call.
  HostSums(const PlanContext& context, DeviceId memory, double working_set);

  /// Of `bytes` after `messages` of a round. The core's copy of an eager message is in its cache, what an adapter wrote
  /// is not; the other operand is swept with the call's buffers.
  [[nodiscard]] Term of(double bytes, const std::vector<Message>& messages) const;

 private:
  const ParameterSet* parameters_;
  double beyond_;  ///< share of a swept operand that the core's cache does not hold
};

}  // namespace fabricast::models::mpi
