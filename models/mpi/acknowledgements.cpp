// SPDX-License-Identifier: Apache-2.0
#include "mpi/acknowledgements.hpp"

namespace fabricast::models::mpi {

Acknowledgements::Acknowledgements(const schedules::Rounds& rounds, int num_ranks)
    : last_(static_cast<std::size_t>(num_ranks), 0), end_(rounds.empty() ? 0 : rounds.size() - 1) {
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    for (const auto& step : rounds[i].steps) {
      last_[static_cast<std::size_t>(step.from)] = i;
      last_[static_cast<std::size_t>(step.to)] = i;
    }
  }
}

void Acknowledgements::add_wait(std::size_t round, int rank, bool receives, Message& message) const {
  if (message.acknowledgement.ps == 0) return;
  const bool is_done = last_[static_cast<std::size_t>(rank)] == round && round != end_;
  if (is_done && !receives) return;
  message.terms.push_back({"adapter's acknowledgement to the sender", message.acknowledgement, "",
                           "the data lie in the sender's buffer until then: a blocking send waits for it"});
}

}  // namespace fabricast::models::mpi
