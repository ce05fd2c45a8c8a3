// SPDX-License-Identifier: Apache-2.0
// Whose values a GPU, and its adapter between hosts, take: their own where logs have taught some, else those of a
// relative, which the result says and which widens the band.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fabricast/models/planner.hpp"

namespace fabricast::models::nccl {

/// `volta` (and older), `ampere`, `hopper` or `blackwell`.
struct Architecture {
  std::string name;     ///< whose values are used: the last part of parameters' names
  std::string elder;    ///< whose values hold where it has none of its own; empty: those of all GPUs
  bool is_own = false;  ///< the GPU is of that architecture

  /// `what` of this architecture, of its elder, of all GPUs: where a value is looked for, in turn.
  [[nodiscard]] std::vector<std::string> names_of(std::string_view what) const;
};
/// `architecture.<name>` are the compute capabilities (10 x major + minor) from which on values of that name hold:
/// those of the name that the catalogue gives the GPU, else the youngest that is not above its own, for older GPUs the
/// oldest. `architecture.<name>.elder` is the compute capability of the elder.
Architecture architecture_of(const PlanContext& context, DeviceId gpu);

/// What stands for a GPU, or its adapter between hosts (value < 0: none), that no log has taught: one sentence each.
std::vector<std::string> stand_ins_of(const PlanContext& context, DeviceId gpu, DeviceId adapter);

}  // namespace fabricast::models::nccl
