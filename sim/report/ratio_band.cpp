// SPDX-License-Identifier: Apache-2.0
#include "report/ratio_band.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/parameter_change.hpp"
#include "report/compare_tables.hpp"

namespace fabricast::report {

namespace {

/// Logarithms of what a time may be less and more.
struct Widths {
  double less = 0, more = 0;
};

/// What of a time follows from one parameter.
struct Part {
  double squares = 0;  ///< sum of the squared shares of its terms, which the time's band takes as independent
  Widths widths;
  const Parameter* parameter = nullptr;
};

struct Made {
  std::map<std::string, Part> parts;  ///< by parameter
  Widths rest;                        ///< what the band has beside its parameters
};

double squared(double value) { return value * value; }

/// Widths of parts, by one factor not above the band of the time: that ends at its physical bound.
double fitting(double band, double squares) { return squares > band * band ? band / std::sqrt(squares) : 1; }

double log_less(double share) { return -std::log1p(-std::min(share, 1 - 1e-9)); }

Made made_of(const Forecast& forecast) {
  Made out;
  const double time = forecast.row.time.seconds();
  for (const auto& term : forecast.row.terms) {
    const auto* parameter = forecast.parameters.find(term.parameter);
    if (parameter == nullptr || parameter->value == 0) continue;
    auto& part = out.parts[term.parameter];
    part.squares += squared(term.time.seconds() / time);
    part.parameter = parameter;
  }
  double less_squares = 0, more_squares = 0;
  for (auto& [name, part] : out.parts) {
    const auto change = change_of_time(*part.parameter);
    part.widths = {log_less(change.less * std::sqrt(part.squares)), std::log1p(change.more * std::sqrt(part.squares))};
    less_squares += squared(part.widths.less);
    more_squares += squared(part.widths.more);
  }
  const double less = log_less(std::max(0.0, 1 - forecast.row.low_time.seconds() / time));
  const double more = std::log(std::max(1.0, forecast.row.high_time.seconds() / time));
  for (auto& [name, part] : out.parts) {
    part.widths.less *= fitting(less, less_squares);
    part.widths.more *= fitting(more, more_squares);
  }
  out.rest = {std::sqrt(std::max(0.0, less * less - less_squares)),
              std::sqrt(std::max(0.0, more * more - more_squares))};
  return out;
}

bool is_same(const Parameter& one, const Parameter& other) {
  return one.value == other.value && one.low == other.low && one.high == other.high;
}

bool is_same(const Forecast& a, const Term& one, const Forecast& b, const Term& other) {
  const auto* of_one = a.parameters.find(one.parameter);
  const auto* of_other = b.parameters.find(other.parameter);
  if (of_one == nullptr || of_other == nullptr) return of_one == of_other && one.name == other.name;
  return one.parameter == other.parameter && is_same(*of_one, *of_other);
}

/// The device of "transfer over packets sent by node0.hca0" and "transfer over virtual port out of node0.hca0".
std::string_view holder(std::string_view term) {
  return term.starts_with("transfer over ") ? term.substr(term.rfind(' ')) : std::string_view();
}

/// How much of two times, as a share, is made of the same: of equal parameters, then of transfers that one device
/// holds.
double share_alike(const Forecast& one, const Forecast& other) {
  const auto shares = [](const Row& row) {
    std::vector<double> out;
    for (const auto& term : row.terms) out.push_back(term.time.seconds() / row.time.seconds());
    return out;
  };
  auto left = shares(one.row), left_of_other = shares(other.row);
  double sum = 0;
  const auto match = [&](const auto& is_alike) {
    for (std::size_t i = 0; i < left.size(); ++i)
      for (std::size_t k = 0; k < left_of_other.size(); ++k) {
        if (!is_alike(one.row.terms[i], other.row.terms[k])) continue;
        const double both = std::min(left[i], left_of_other[k]);
        left[i] -= both;
        left_of_other[k] -= both;
        sum += both;
      }
  };
  match([&](const Term& a, const Term& b) { return is_same(one, a, other, b); });
  match([](const Term& a, const Term& b) { return !holder(a.name).empty() && holder(a.name) == holder(b.name); });
  return std::min(sum, 1.0);
}

/// By how much a ratio may be more where both sides are off alike: at whichever end of what they share.
double alike(const Widths& above, const Widths& below) {
  return squared(std::max({0.0, above.more - below.more, below.less - above.less}));
}

double apart(const Widths& above, const Widths& below) { return squared(above.more) + squared(below.less); }

/// By how much, as a logarithm, the ratio of `above` to `below` may be more; `correlation` of what parameters do not
/// explain.
double widening(const Made& above, const Made& below, double correlation) {
  double squares = 0;
  for (const auto& [name, part] : above.parts) {
    const auto it = below.parts.find(name);
    const auto other = it == below.parts.end() ? Widths{} : it->second.widths;
    const bool is_shared = it != below.parts.end() && is_same(*part.parameter, *it->second.parameter);
    squares += is_shared ? alike(part.widths, other) : apart(part.widths, other);
  }
  for (const auto& [name, part] : below.parts)
    if (!above.parts.contains(name)) squares += apart({}, part.widths);
  return std::sqrt(squares + correlation * alike(above.rest, below.rest) +
                   (1 - correlation) * apart(above.rest, below.rest));
}

}  // namespace

RatioBand ratio_band(const Forecast& one, const Forecast& other) {
  const double ratio = time_ratio(one.row, other.row);
  if (one.row.time.ps <= 0 || other.row.time.ps <= 0) return {ratio, ratio};
  const auto above = made_of(one), below = made_of(other);
  const double same = share_alike(one, other);
  const double correlation = same * same / (same * same + (1 - same) * (1 - same));
  return {ratio / std::exp(widening(below, above, correlation)), ratio * std::exp(widening(above, below, correlation))};
}

}  // namespace fabricast::report
