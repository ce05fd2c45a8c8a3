// SPDX-License-Identifier: Apache-2.0
#include "engine/ring_rounds.hpp"

#include <algorithm>
#include <cmath>

namespace fabricast::engine {

namespace {

using models::RepeatOrder;

/// Lags looked for: leaves have no more ports.
constexpr std::int64_t k_longest_lag = 128;
/// Repeats remembered: those of a lag, and those that some flows have ended before others.
constexpr std::int64_t k_memory = 3 * k_longest_lag;

/// Of the time left out: acknowledgements that meet data shift ends by some of their own 5 ns.
constexpr double k_tolerance = 1e-3;

/// What every flow advanced by, where that is the same; else -1.
Duration common_advance(const std::vector<Duration>& before, const std::vector<Duration>& after) {
  const auto step = after[0] - before[0];
  for (std::size_t f = 1; f < after.size(); ++f) {
    if (after[f] - before[f] != step) return {-1};
  }
  return step;
}

/// The middle of what the flows advanced by, where they differ by no more than k_tolerance; else -1. The map from
/// ends to ends is monotone and commutes with adding a constant, so what follows stays between the least and the
/// greatest [Crandall and Tartar, Proc. AMS 78, 1980].
Duration steady_advance(const std::vector<Duration>& before, const std::vector<Duration>& after) {
  auto least = after[0] - before[0];
  auto most = least;
  for (std::size_t f = 1; f < after.size(); ++f) {
    least = std::min(least, after[f] - before[f]);
    most = std::max(most, after[f] - before[f]);
    if ((most - least).seconds() > k_tolerance * most.seconds()) return {-1};
  }
  return Duration{least.ps + (most - least).ps / 2};
}

}  // namespace

Duration ring_time(const std::vector<Duration>& latencies, const std::vector<Duration>& transfers,
                   std::int64_t repeats) {
  const auto n = transfers.size();
  std::vector<Duration> ends(n);
  std::vector<Duration> before(n);
  for (std::int64_t k = 0; k < repeats; ++k) {
    std::swap(ends, before);
    for (std::size_t f = 0; f < n; ++f) {
      const auto& fed = before[f == 0 ? n - 1 : f - 1];
      ends[f] = std::max(fed + latencies[f], before[f]) + transfers[f];
    }
    const auto step = k == 0 ? Duration{-1} : common_advance(before, ends);
    if (step.ps < 0) continue;
    for (auto& end : ends) end += (repeats - 1 - k) * step;
    break;
  }
  return *std::max_element(ends.begin(), ends.end());
}

std::vector<Term> mean_latency_terms(const std::vector<models::Flow>& flows) {
  std::vector<Term> mean;
  for (const auto& flow : flows) {
    for (const auto& term : flow.latency_terms) {
      const auto known = std::ranges::find(mean, term.name, &Term::name);
      if (known == mean.end()) {
        mean.push_back(term);
      } else {
        known->time += term.time;
      }
    }
  }
  for (auto& term : mean) term.time.ps /= static_cast<std::int64_t>(flows.size());
  return mean;
}

void describe_ring(const models::Node& node, Duration whole, NodeTiming& timing) {
  timing.whole = whole;
  timing.latency_terms = mean_latency_terms(node.flows);
  timing.latency = models::sum(timing.latency_terms);
  timing.transfer = Duration{whole.ps / node.repeat} - timing.fixed - timing.latency;
}

RingProgress::RingProgress(std::size_t num_flows, std::int64_t repeats, RepeatOrder order)
    : order_(order),
      asked_(repeats),
      repeats_(repeats),
      left_(static_cast<std::int64_t>(num_flows) * repeats),
      begun_(num_flows, 1),
      ended_(num_flows, 0),
      ends_(k_memory) {}

bool RingProgress::may_begin(std::size_t f) const {
  if (begun_[f] >= repeats_) return false;
  const auto before = f == 0 ? ended_.size() - 1 : f - 1;
  return ended_[before] >= begun_[f] && (order_ == RepeatOrder::neighbour || ended_[f] >= begun_[f]);
}

std::vector<std::size_t> RingProgress::end(std::size_t f, Duration now) {
  --left_;
  if (stops_when_steady_) note_end(f, now);
  ++ended_[f];
  std::vector<std::size_t> out;
  for (const auto next : {f, (f + 1) % ended_.size()}) {
    if (!may_begin(next)) continue;
    ++begun_[next];
    out.push_back(next);
    if (ended_.size() == 1) break;
  }
  return out;
}

void RingProgress::note_end(std::size_t f, Duration now) {
  if (ended_[f] >= complete_ + k_longest_lag) {  // too far ahead of the others to be remembered
    stops_when_steady_ = false;
    return;
  }
  auto& ends = ends_of(ended_[f]);
  if (ends.at.empty()) ends.at.resize(ended_.size());
  ends.at[f] = now;
  if (++ends.count < ended_.size()) return;
  ends.count = 0;
  look_for_lag(complete_++);
}

// Twice in a row by the same time, because packets of the repeats before may still be in the way of those of the first
// ones: flows may then advance alike, and less from repeat to repeat.
void RingProgress::look_for_lag(std::int64_t repeat) {
  for (std::int64_t lag = 1; lag <= std::min(k_longest_lag, repeat - 1); ++lag) {
    const auto step = steady_advance(ends_of(repeat - lag).at, ends_of(repeat).at);
    if (step.ps < 0) continue;
    const auto before = steady_advance(ends_of(repeat - 1 - lag).at, ends_of(repeat - 1).at);
    if (before.ps < 0 || std::abs((step - before).seconds()) > k_tolerance * step.seconds()) continue;
    lag_ = lag;
    period_ = step;
    return stop();
  }
}

// What has begun goes on to its end, so that all flows end equally often; what is left out is a multiple of the lag.
void RingProgress::stop() {
  stops_when_steady_ = false;
  const auto most = *std::max_element(begun_.begin(), begun_.end());
  const auto left_out = (repeats_ - most) / lag_ * lag_;
  left_ -= static_cast<std::int64_t>(ended_.size()) * left_out;
  repeats_ -= left_out;
}

}  // namespace fabricast::engine
