// SPDX-License-Identifier: Apache-2.0
#include "mpi/rank_clocks.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace fabricast::models::mpi {

namespace {

constexpr int k_most_calls = 32;
constexpr double k_settled = 1e-3;  ///< of what is printed, from one call to the next

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

/// The ranks of a round go on when the last of them does.
void wait_for_each_other(const schedules::Round& round, std::vector<double>& now) {
  double last = 0;
  for (const auto& step : round.steps)
    for (const int rank : {step.from, step.to}) last = std::max(last, now[static_cast<std::size_t>(rank)]);
  for (const auto& step : round.steps)
    for (const int rank : {step.from, step.to}) now[static_cast<std::size_t>(rank)] = last;
}

}  // namespace

void RankClocks::pass(const schedules::Round& round, const std::vector<MessageTimes>& times, double reducing) {
  const auto repeat = static_cast<double>(round.repeat);
  // Children of a pipeline are served segment by segment, not one after the other, and no faster than their parent.
  const bool is_pipeline = round.order == schedules::RoundOrder::pipeline;
  // The same messages again and again pass what comes late on to everyone.
  if (round.repeat > 1 && !is_pipeline) wait_for_each_other(round, now_);
  auto next = now_;
  auto sending = now_;
  auto earlier = now_;
  std::vector<double> periods(now_.size(), 0);
  std::vector<double> received(now_.size(), 0);
  bool is_held = false;
  for (std::size_t s = 0; s < round.steps.size(); ++s) {
    const auto from = static_cast<std::size_t>(round.steps[s].from);
    const auto to = static_cast<std::size_t>(round.steps[s].to);
    const double receiving = times[s].receiver + reducing;
    periods[to] = is_pipeline ? std::max(periods[from], receiving) : receiving;
    const double taken = repeat * periods[to];
    const double arrived = times[s].is_eager
                               ? std::max(earlier[from] + taken, now_[to] + std::min(taken, times[s].handling))
                               : std::max(earlier[from], now_[to]) + taken;
    earlier[from] += (is_pipeline ? 1 : repeat) * times[s].sender;
    sending[from] += repeat * times[s].sender;
    next[from] = std::max(next[from], sending[from]);
    received[to] = received[to] > 0 && !is_pipeline ? std::max(arrived, received[to] + repeat * times[s].handling)
                                                    : std::max(arrived, received[to]);
    next[to] = std::max(next[to], received[to]);
    is_held = is_held || !times[s].is_eager;
  }
  // Messages that keep their sender share links with each other: none of their ranks is done long before the round.
  if (is_held) wait_for_each_other(round, next);
  now_ = std::move(next);
}

void RankClocks::pass(const std::vector<ClockRound>& rounds) {
  for (const auto& one : rounds) pass(*one.round, one.times, one.reducing);
}

double RankClocks::last() const { return *std::ranges::max_element(now_); }

double RankClocks::mean_share() const { return last() > 0 ? mean_of(now_) / last() : 1; }

double printed_share(const std::vector<ClockRound>& call, const std::vector<ClockRound>& barrier, int num_ranks,
                     Statistic statistic) {
  RankClocks together(num_ranks);
  together.pass(call);
  if (together.last() <= 0) return 1;
  RankClocks clocks(num_ranks);
  double printed = 0;
  for (int i = 0; i < k_most_calls; ++i) {
    auto times = clocks.now();
    clocks.pass(call);
    for (std::size_t r = 0; r < times.size(); ++r) times[r] = clocks.now()[r] - times[r];
    const double before =
        std::exchange(printed, statistic == Statistic::mean ? mean_of(times) : *std::ranges::max_element(times));
    if (i > 0 && std::abs(printed - before) <= k_settled * printed) break;
    clocks.pass(barrier);
  }
  return printed / together.last();
}

}  // namespace fabricast::models::mpi
