// SPDX-License-Identifier: Apache-2.0
#include "mpi/core_copies.hpp"

#include <algorithm>
#include <map>

namespace fabricast::models::mpi {

double Transfers::later_segments(const Message& message) const {
  if (message.protocol != "eager" || profile_.eager_bandwidth.bytes_per_s <= 0) return 0;
  return std::max(0.0, message.flow.bytes - static_cast<double>(profile_.eager_segment.value));
}

/// One way the copies of both sides overlap; a core that sends and receives makes one after the other.
void Transfers::share_core(Message& message, double bytes) const {
  if (bytes <= later_segments(message)) return;
  cap(message.flow, message.flow.bytes * profile_.eager_bandwidth.bytes_per_s / bytes,
      "copies of later segments, sent and received", own<"mpi.{}.eager_bandwidth">());
}

void share_cores(const Transfers& transfers, const schedules::Round& round, std::vector<Message>& messages) {
  std::map<int, double> later;  // bytes of a rank's core
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const double bytes = transfers.later_segments(messages[i]);
    if (bytes <= 0) continue;
    later[round.steps[i].from] += bytes;
    later[round.steps[i].to] += bytes;
  }
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (transfers.later_segments(messages[i]) <= 0) continue;
    const auto& step = round.steps[i];
    transfers.share_core(messages[i], std::max(later[step.from], later[step.to]));
  }
}

}  // namespace fabricast::models::mpi
