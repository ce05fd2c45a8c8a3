// SPDX-License-Identifier: Apache-2.0
// Times that no protocol gets below: what links carry, and their latency.
#pragma once

#include "fabricast/models/plan.hpp"

namespace fabricast::engine {

/// The least time that the links on the operation's routes allow, whatever the protocol.
Duration bound_of(const models::Resources& resources, const models::OperationPlan& plan);
/// The same where its routes between switches never met; 0 of a program with a watched stream.
Duration spread_bound(const models::Resources& resources, const models::OperationPlan& plan);

}  // namespace fabricast::engine
