// SPDX-License-Identifier: Apache-2.0
// Which operations of a trace belong together, and an order in which none waits for a later one.
#pragma once

#include <vector>

#include "fabricast/trace.hpp"

namespace fabricast::models::replay {

/// An operation by rank and number.
struct OpRef {
  int rank = 0;
  int op = 0;
};

/// What happens at once: an operation by itself, a send with its receive, or a collective on all its ranks.
struct Event {
  std::vector<OpRef> members;  ///< send before receive; ranks of a collective in order
};

struct Order {
  std::vector<Event> events;  ///< each after all that it waits for
};

/// Sends and receives match in the order of their ranks' traces, by ranks and tag; the n-th collective of a group on
/// each of its ranks is one.
Result<Order> order_of(const Trace& trace);

}  // namespace fabricast::models::replay
