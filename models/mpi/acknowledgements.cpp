// SPDX-License-Identifier: Apache-2.0
#include "mpi/acknowledgements.hpp"

namespace fabricast::models::mpi {

Acknowledgements::Acknowledgements(const schedules::Rounds& rounds, int num_ranks)
    : last_(static_cast<std::size_t>(num_ranks), nullptr), end_(rounds.empty() ? nullptr : &rounds.back()) {
  for (const auto& round : rounds) {
    for (const auto& step : round.steps) {
      last_[static_cast<std::size_t>(step.from)] = &round;
      last_[static_cast<std::size_t>(step.to)] = &round;
    }
  }
}

void Acknowledgements::add_wait(const schedules::Round& round, int rank, bool receives, Message& message) const {
  if (message.acknowledgement.ps == 0) return;
  const bool is_done = last_[static_cast<std::size_t>(rank)] == &round && &round != end_;
  if (is_done && !receives) return;
  message.terms.push_back({"adapter's acknowledgement to the sender", message.acknowledgement, "",
                           "the data lie in the sender's buffer until then: a blocking send waits for it"});
}

}  // namespace fabricast::models::mpi
