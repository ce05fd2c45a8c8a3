// SPDX-License-Identifier: Apache-2.0
#include "nccl/algorithms/primitives.hpp"

#include <algorithm>

#include "base/parameter_name.hpp"

namespace fabricast::models::nccl {

Traffic operator+(const Traffic& a, const Traffic& b) {
  return {a.reads + b.reads, a.writes + b.writes, a.received + b.received, a.sent + b.sent};
}

Traffic operator*(double times, const Traffic& one) {
  return {times * one.reads, times * one.writes, times * one.received, times * one.sent};
}

bool counts_traffic(const Operation& op) {
  return !op.is(Protocol::ll) && !op.has_hop(TransportKind::host_memory) &&
         !(op.is_in_one_host() && op.has_hop(TransportKind::socket));
}

double time_of(const Operation& op, const Traffic& traffic) {
  const double read = op.context.parameters["nccl.read_share"_key];
  const double both = k_ring_step.reads + k_ring_step.received;  // of Simple, as many as writes
  double passed = 1;                                             // a byte received and sent, over one read and written
  if (op.is(Protocol::ll128)) {
    const auto step = [&](const char* protocol) {
      return 1 / op.parameter("nccl.channel_bandwidth"_stem, protocol).value;
    };
    passed = std::max(1.0, step("ll128") / (step("simple") / both) - k_ring_step.reads);
  }
  const auto time = [&](const Traffic& one) {
    return (one.reads + passed * one.received) * read + (one.writes + passed * one.sent) * (1 - read);
  };
  return time(traffic) / time(k_ring_step);
}

}  // namespace fabricast::models::nccl
