// SPDX-License-Identifier: Apache-2.0
// Names of figures that objectives and constraints use.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "base/text.hpp"
#include "fabricast/sweep_plan.hpp"

namespace fabricast {

namespace {

struct Known {
  const char* name;
  Dimension dimension;
  bool is_less_better;
  bool is_of_hardware;
  bool is_money;
};

constexpr std::array k_known = {
    Known{"time", Dimension::time, true, false, false},
    Known{"latency", Dimension::time, true, false, false},
    Known{"step_time", Dimension::time, true, false, false},
    Known{"compute_time", Dimension::time, true, false, false},
    Known{"exposed_exchange_time", Dimension::time, true, false, false},
    Known{"bubble_time", Dimension::time, true, false, false},
    Known{"busbw", Dimension::bandwidth, false, false, false},
    Known{"algbw", Dimension::bandwidth, false, false, false},
    Known{"bandwidth", Dimension::bandwidth, false, false, false},
    Known{"messages_per_second", Dimension::number, false, false, false},
    Known{"throughput", Dimension::number, false, false, false},
    Known{"images_per_second", Dimension::number, false, false, false},
    Known{"samples_per_second", Dimension::number, false, false, false},
    Known{"tokens_per_second", Dimension::number, false, false, false},
    Known{"throughput_per_gpu", Dimension::number, false, false, false},
    Known{"scaling_efficiency", Dimension::number, false, false, false},
    Known{"cost", Dimension::number, true, true, true},
    Known{"capital_cost", Dimension::number, true, true, true},
    Known{"running_cost", Dimension::number, true, true, true},
    Known{"power", Dimension::number, true, true, false},
    Known{"rack_units", Dimension::number, true, true, false},
    Known{"gpus", Dimension::number, true, true, false},
    Known{"hosts", Dimension::number, true, true, false},
    Known{"hcas", Dimension::number, true, true, false},
    Known{"switches", Dimension::number, true, true, false},
    Known{"cables", Dimension::number, true, true, false},
};

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// `64 GPUs` or a message size.
bool read_place(std::string_view text, Metric& metric, std::string& fault) {
  for (const std::string_view unit : {" GPUs", " GPU", " gpus", " gpu"}) {
    if (!text.ends_with(unit)) continue;
    const auto digits = trimmed(text.substr(0, text.size() - unit.size()));
    int count = 0;
    const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), count);
    if (read.ec != std::errc{} || read.ptr != digits.data() + digits.size() || count < 1) {
      fault = fmt::format("'{}' is no number of GPUs", digits);
      return false;
    }
    metric.gpus = count;
    return true;
  }
  const auto size = parse_quantity(text, Dimension::bytes);
  if (!size.ok) {
    fault = fmt::format("'{}' is neither a message size nor a number of GPUs: {}", text, size.error);
    return false;
  }
  metric.size = to_bytes(size.value);
  return true;
}

}  // namespace

const std::vector<std::string>& metric_names() {
  static const auto names = [] {
    std::vector<std::string> all;
    for (const auto& one : k_known) all.emplace_back(one.name);
    return all;
  }();
  return names;
}

std::optional<Metric> metric_from(std::string_view text, std::string& fault) {
  Metric metric;
  metric.text = std::string(trimmed(text));
  std::string_view rest = metric.text;
  if (const auto of = rest.find(" of "); of != std::string_view::npos) {
    metric.workload = std::string(trimmed(rest.substr(of + 4)));
    rest = trimmed(rest.substr(0, of));
  }
  if (const auto at = rest.find(" at "); at != std::string_view::npos) {
    if (!read_place(trimmed(rest.substr(at + 4)), metric, fault)) return std::nullopt;
    rest = trimmed(rest.substr(0, at));
  }
  metric.name = std::string(rest);
  const auto* known = std::ranges::find_if(k_known, [&](const Known& one) { return metric.name == one.name; });
  if (known == k_known.end()) {
    const auto near = nearest_name(metric.name, metric_names());
    fault = fmt::format("unknown figure '{}'{}", metric.name,
                        near.empty() ? std::string() : fmt::format(": did you mean '{}'?", near));
    return std::nullopt;
  }
  metric.dimension = known->dimension;
  metric.is_less_better = known->is_less_better;
  metric.is_of_hardware = known->is_of_hardware;
  metric.is_money = known->is_money;
  if (metric.is_of_hardware && (metric.size || metric.gpus || !metric.workload.empty())) {
    fault = fmt::format("'{}' belongs to the whole design: write it without `at` and `of`", metric.name);
    return std::nullopt;
  }
  return metric;
}

std::string metric_text(const Metric& metric, double value, const std::string& currency) {
  if (metric.dimension != Dimension::number) return quantity_text(value, metric.dimension, 4);
  if (metric.is_money) {
    const auto number = std::abs(value) >= 1e6 ? fmt::format("{:.3f} M", value * 1e-6) : fmt::format("{:.0f}", value);
    return currency.empty() ? number : number + " " + currency;
  }
  if (metric.name == "power") return fmt::format("{:.2f} kW", value * 1e-3);
  if (metric.name == "scaling_efficiency") return fmt::format("{:.1f} %", 100 * value);
  if (std::abs(value) >= 1000 || value == std::floor(value)) return fmt::format("{:.0f}", value);
  return fmt::format("{:.4g}", value);
}

}  // namespace fabricast
