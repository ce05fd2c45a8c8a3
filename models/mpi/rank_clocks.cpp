// SPDX-License-Identifier: Apache-2.0
#include "mpi/rank_clocks.hpp"

#include <algorithm>
#include <numeric>

namespace fabricast::models::mpi {

void RankClocks::pass(const schedules::Round& round, const std::vector<MessageTimes>& times, double reducing) {
  const auto repeat = static_cast<double>(round.repeat);
  auto next = now_;
  auto sending = now_;
  // Children of a pipeline are served segment by segment, not one after the other, and no faster than their parent.
  const bool is_pipeline = round.order == schedules::RoundOrder::pipeline;
  auto earlier = now_;
  std::vector<double> periods(now_.size(), 0);
  std::vector<double> received(now_.size(), 0);
  bool is_held = false;
  for (std::size_t s = 0; s < round.steps.size(); ++s) {
    const auto from = static_cast<std::size_t>(round.steps[s].from);
    const auto to = static_cast<std::size_t>(round.steps[s].to);
    const double start = std::max(earlier[from], now_[to]);
    earlier[from] += (is_pipeline ? 1 : repeat) * times[s].sender;
    const double receiving = times[s].receiver + reducing;
    periods[to] = is_pipeline ? std::max(periods[from], receiving) : receiving;
    sending[from] += repeat * times[s].sender;
    next[from] = std::max(next[from], sending[from]);
    const double arrived = start + repeat * periods[to];
    received[to] = received[to] > 0 && !is_pipeline ? std::max(arrived, received[to] + repeat * times[s].handling)
                                                    : std::max(arrived, received[to]);
    next[to] = std::max(next[to], received[to]);
    is_held = is_held || !times[s].is_eager;
  }
  if (is_held) end_together(round, next);
  now_ = std::move(next);
}

void RankClocks::end_together(const schedules::Round& round, std::vector<double>& next) {
  double last = 0;
  const auto for_each_end = [&](auto visit) {
    for (const auto& step : round.steps) {
      visit(next[static_cast<std::size_t>(step.from)]);
      visit(next[static_cast<std::size_t>(step.to)]);
    }
  };
  for_each_end([&](double& time) { last = std::max(last, time); });
  for_each_end([&](double& time) { time = last; });
}

double RankClocks::mean_share() const {
  const double last = *std::max_element(now_.begin(), now_.end());
  return last > 0 ? std::accumulate(now_.begin(), now_.end(), 0.0) / static_cast<double>(now_.size()) / last : 1;
}

}  // namespace fabricast::models::mpi
