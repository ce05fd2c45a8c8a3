// SPDX-License-Identifier: Apache-2.0
#include "engine/interval.hpp"

#include <algorithm>
#include <cmath>

#include "base/parameter_change.hpp"

namespace fabricast::engine {

namespace {

constexpr double k_unfitted_share = 0.5;  ///< of the time, from values the fit did not touch, that makes a row foreign
constexpr double k_outside = 0.1;         ///< of the draws, on either side of an 80 % band
constexpr double k_size_weight = 0.25;    ///< doublings of the size count less: curves are smooth beyond their ends

/// Share of the time that follows from uncertain values nobody fitted.
double unfitted_share(const Row& row, const ParameterSet& parameters) {
  double unfitted = 0;
  for (const auto& term : row.terms) {
    const auto* parameter = parameters.find(term.parameter);
    if (parameter == nullptr || parameter->confidence == Confidence::high ||
        parameter->confidence == Confidence::fitted)
      continue;
    unfitted += term.time.seconds();
  }
  return row.time.ps > 0 ? unfitted / row.time.seconds() : 0;
}

}  // namespace

double SystemScatter::all() const { return std::hypot(exchange, compute); }

Interval spread_of_draws(Duration time, Duration bound, const std::vector<Duration>& drawn) {
  std::vector<Duration> times{time};
  for (const auto& other : drawn) times.push_back(std::max(Duration{}, time + (other - bound)));
  std::ranges::sort(times);
  const auto last = static_cast<double>(times.size() - 1);
  const auto at = [&](double share) { return times[static_cast<std::size_t>(std::lround(share * last))]; };
  return {std::min(time, at(k_outside)), std::max(time, at(1 - k_outside))};
}

Interval both(const Interval& one, const Interval& other, Duration time) {
  const auto width = [](Duration a, Duration b) { return from_seconds(std::hypot(a.seconds(), b.seconds())); };
  return {std::max(Duration{}, time - width(time - one.low, time - other.low)),
          time + width(one.high - time, other.high - time)};
}

Extrapolation extrapolation(const Row& row, int num_ranks, int num_hosts, const ParameterSet& parameters,
                            bool is_step) {
  if (!parameters.contains("model.fitted_ranks")) return {};
  const double count = std::max(doublings_above(parameters, "model.fitted_ranks", num_ranks),
                                doublings_above(parameters, "model.fitted_hosts", num_hosts));
  const auto size = static_cast<double>(row.size.value);
  double sizes = is_step ? 0 : doublings_above(parameters, "model.fitted_size_high", size);
  if (const auto* low = parameters.find("model.fitted_size_low"); !is_step && low != nullptr && size < low->value)
    sizes = std::log2(low->value / std::max(1.0, size));
  const bool is_foreign = unfitted_share(row, parameters) > k_unfitted_share;
  return {count > 0 || sizes > 0 || is_foreign, count + k_size_weight * sizes};
}

namespace {

/// Seconds that the intervals of the parameters leave.
struct Sides {
  double below = 0, above = 0;
};

/// `is_like`: the logs that set a value are like the row; else it may as well be what it was before them.
Sides of_parameters(const Row& row, const ParameterSet& parameters, bool is_like) {
  Sides squares;
  for (const auto& term : row.terms) {
    const auto* parameter = parameters.find(term.parameter);
    if (parameter == nullptr || parameter->value == 0) continue;
    auto change = change_of_time(*parameter);
    const auto* before = is_like ? nullptr : parameters.find("model.fitted_value." + term.parameter);
    if (before != nullptr) {
      auto then = *parameter;
      then.low = std::min(1.0, before->low) * parameter->value;
      then.high = std::max(1.0, before->high) * parameter->value;
      const auto other = change_of_time(then);
      change = {std::max(change.less, other.less), std::max(change.more, other.more)};
    }
    squares.below += std::pow(change.less * term.time.seconds(), 2);
    squares.above += std::pow(change.more * term.time.seconds(), 2);
  }
  return {std::sqrt(squares.below), std::sqrt(squares.above)};
}

Interval around(double time, double below, double above) {
  return {from_seconds(std::max(0.0, time - below)), from_seconds(time + above)};
}

}  // namespace

Interval interval(const Row& row, const ParameterSet& parameters, const Extrapolation& outside,
                  const SystemScatter& between) {
  const double time = row.time.seconds();
  const double systems = between.all();
  const auto sides = of_parameters(row, parameters, true);
  const double own = time * std::hypot(parameters.value_or("model.relative_error", 0),
                                       parameters.value_or("model.extrapolation_error", 0) * outside.doublings);
  // Systems differ by factors: as many are 1 + b times as fast as are 1 + b times as slow.
  return around(time, std::hypot(sides.below, own, time * systems / (1 + systems)),
                std::hypot(sides.above, own, time * systems));
}

double own_error(const Acquaintance& known, double wide, double narrow, double per_doubling) {
  if (!known.is_of_kind) return wide;
  double own = narrow;
  for (const auto& one : known.unseen) own += one.share * (one.seen > 0 ? std::min(narrow / one.seen, wide) : wide);
  own = std::hypot(own, per_doubling * known.doublings);
  return std::min(own, std::max(narrow, wide));
}

Interval interval(const Row& row, const ParameterSet& parameters, const Acquaintance& known,
                  const SystemScatter& between) {
  const double time = row.time.seconds();
  const auto sides = of_parameters(row, parameters, known.in.empty());
  const double narrow = parameters.value_or("model.fitted_error", 0);
  const double further = parameters.value_or("model.extrapolation_error", 0);
  const double model = parameters.value_or("model.relative_error", 0);
  // One GPU's steps say nothing of exchanges: these scatter as on any system.
  const double kept = known.is_of_kind && !known.has_exchanged ? between.exchange : 0;
  const double seen = std::hypot(between.exchange - kept, between.compute);
  const auto side = [&](double of_parameters, double scatter, double scatter_kept) {
    return std::hypot(of_parameters, time * own_error(known, std::hypot(model, scatter), narrow, further),
                      time * scatter_kept);
  };
  return around(time, side(sides.below, seen / (1 + seen), kept / (1 + kept)), side(sides.above, seen, kept));
}

}  // namespace fabricast::engine
