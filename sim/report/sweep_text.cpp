// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "report/inputs.hpp"
#include "report/sweep.hpp"
#include "report/tables.hpp"

namespace fabricast::report {

namespace {

constexpr std::size_t k_most_front = 20;    ///< rows of the front in text
constexpr std::size_t k_most_reasons = 12;  ///< kinds of infeasibility in text
constexpr std::size_t k_widest = 150;

std::string cut(const std::string& text, std::size_t width) {
  return text.size() <= width ? text : text.substr(0, width - 3) + "...";
}

/// A table whose columns are as wide as their widest cell; the last is flush left.
std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string out;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c)
      line += (c == 0 ? "" : "  ") + (c + 1 == row.size() ? row[c] : fmt::format("{:>{}}", row[c], widths[c]));
    out += line + "\n";
  }
  return out;
}

std::string band_text(const Metric& metric, const Estimate& estimate, const std::string& currency) {
  const auto low = metric_text(metric, estimate.low, ""), high = metric_text(metric, estimate.high, "");
  const auto value = metric_text(metric, estimate.value, currency);
  return low == high ? value : fmt::format("{} ({} .. {})", value, low, high);
}

std::string front_table(const SweepReport& sweep) {
  const auto currency = currency_of(sweep);
  std::vector<std::vector<std::string>> rows{{"#", "rank"}};
  for (const auto& objective : sweep.plan.objectives) rows[0].push_back(objective.metric.text);
  rows[0].insert(rows[0].end(), {"probability", "design"});
  for (std::size_t f = 0; f < sweep.front.size() && f < k_most_front; ++f) {
    const auto& design = sweep.designs[sweep.front[f]];
    const auto& standing = sweep.standings[sweep.front[f]];
    rows.push_back({std::to_string(design.index), std::to_string(standing.rank)});
    for (const auto& objective : sweep.plan.objectives) {
      const auto* found = design.find(objective.metric.text);
      rows.back().push_back(found == nullptr ? "-" : band_text(objective.metric, *found, currency));
    }
    rows.back().push_back(fmt::format("{:.2f}", standing.probability));
    rows.back().push_back(design.name);
  }
  auto out = table(rows);
  if (sweep.front.size() > k_most_front) out += fmt::format("... and {} more\n", sweep.front.size() - k_most_front);
  return out;
}

/// The feasible design that is least off, when none meets all.
std::string nearest_miss(const SweepReport& sweep) {
  double least = 1e300;
  const DesignResult* nearest = nullptr;
  const Standing* its = nullptr;
  for (std::size_t i = 0; i < sweep.designs.size(); ++i) {
    double off = 0;
    if (sweep.designs[i].status != DesignStatus::feasible) continue;
    for (const auto& bound : sweep.plan.constraints) {
      const auto* found = sweep.designs[i].find(bound.metric.text);
      if (found == nullptr) continue;
      if (bound.at_least && *bound.at_least > 0) off += std::max(0.0, 1 - found->value / *bound.at_least);
      if (bound.at_most && *bound.at_most > 0) off += std::max(0.0, found->value / *bound.at_most - 1);
    }
    if (off >= least) continue;
    least = off;
    nearest = &sweep.designs[i];
    its = &sweep.standings[i];
  }
  if (nearest == nullptr) return "";
  auto out = fmt::format("nearest: design {} ({})\n", nearest->index, nearest->name);
  for (const auto& miss : its->misses) out += "  " + miss + "\n";
  return out;
}

std::string infeasible_table(const SweepReport& sweep) {
  const auto all = refusals_of(sweep);
  std::string out;
  for (std::size_t i = 0; i < all.size() && i < k_most_reasons; ++i)
    out += fmt::format(
        "{:>6}  {}\n", all[i].count,
        cut(all[i].example + (all[i].count > 1 ? fmt::format(" (design {})", all[i].first) : ""), k_widest));
  if (all.size() > k_most_reasons)
    out += fmt::format("... and {} further kinds of reasons\n", all.size() - k_most_reasons);
  return out;
}

}  // namespace

std::vector<Metric> columns_of(const SweepReport& sweep) { return metrics_of(sweep.plan); }

std::string currency_of(const SweepReport& sweep) { return sweep.plan.cost ? sweep.plan.cost->currency : ""; }

std::string constraint_text(const Constraint& constraint, const std::string& currency) {
  std::string out = constraint.metric.text;
  if (constraint.at_least) out += " at least " + metric_text(constraint.metric, *constraint.at_least, currency);
  if (constraint.at_least && constraint.at_most) out += " and";
  if (constraint.at_most) out += " at most " + metric_text(constraint.metric, *constraint.at_most, currency);
  return out;
}

std::string without_numbers(const std::string& reason) {
  std::string out;
  for (std::size_t i = 0; i < reason.size(); ++i) {
    const auto is_digit = [&](std::size_t at) {
      return at < reason.size() && std::isdigit(static_cast<unsigned char>(reason[at])) != 0;
    };
    if (!is_digit(i)) {
      out += reason[i];
      continue;
    }
    out += 'N';
    // 1,024; 2.5; 1.5e9; 1e-06
    while (is_digit(i + 1) || ((reason[i + 1] == '.' || reason[i + 1] == ',') && is_digit(i + 2))) ++i;
    if (i + 1 < reason.size() && reason[i + 1] == 'e') {
      const std::size_t sign = i + 2 < reason.size() && (reason[i + 2] == '-' || reason[i + 2] == '+') ? 1 : 0;
      if (is_digit(i + 2 + sign)) {
        i += 2 + sign;
        while (is_digit(i + 1)) ++i;
      }
    }
  }
  return out;
}

std::vector<Refusal> refusals_of(const SweepReport& sweep) {
  std::map<std::pair<DesignStatus, std::string>, Refusal> by_kind;
  for (const auto& design : sweep.designs) {
    if (design.status == DesignStatus::feasible) continue;
    const auto reason = design.reasons.empty() ? std::string() : design.reasons.front();
    auto& one =
        by_kind.try_emplace({design.status, without_numbers(reason)}, Refusal{design.status, reason, design.index, 0})
            .first->second;
    ++one.count;
  }
  std::vector<Refusal> out;
  for (const auto& entry : by_kind) out.push_back(entry.second);
  std::ranges::stable_sort(out, std::greater{}, &Refusal::count);
  return out;
}

std::vector<std::pair<std::string, std::string>> inputs_of(const SweepReport& sweep) {
  std::set<std::pair<std::string, std::string>> all(sweep.plan.inputs.begin(), sweep.plan.inputs.end());
  for (const auto& design : sweep.designs) all.insert(design.inputs.begin(), design.inputs.end());
  return {all.begin(), all.end()};
}

std::string outcome_text(const SweepReport& sweep) {
  std::map<DesignStatus, std::size_t> by_status;
  std::size_t meeting = 0;
  for (std::size_t i = 0; i < sweep.designs.size(); ++i) {
    ++by_status[sweep.designs[i].status];
    meeting += sweep.standings[i].meets_all ? 1 : 0;
  }
  auto out = fmt::format("{} of {} designs: {} meet every constraint, {} feasible designs miss one",
                         sweep.designs.size(), sweep.num_planned, meeting, by_status[DesignStatus::feasible] - meeting);
  for (const auto status : {DesignStatus::infeasible, DesignStatus::invalid, DesignStatus::failed}) {
    if (by_status[status] > 0) out += fmt::format(", {} {}", by_status[status], to_string(status));
  }
  return out;
}

/// What the recommended designs rest on: what the bill leaves out, what a forecast takes for granted.
std::string assumptions_text(const SweepReport& sweep) {
  std::set<std::string> lines;
  for (const auto& one : sweep.top) {
    const auto& design = sweep.designs[one.index];
    lines.insert(design.assumptions.begin(), design.assumptions.end());
  }
  std::string out;
  for (const auto& line : lines) out += "#   " + line + "\n";
  return out.empty() ? out : "\n# assumptions of the best:\n" + out;
}

std::string sweep_text(const SweepReport& sweep) {
  const auto currency = currency_of(sweep);
  std::string out = fmt::format("# fabricast {}: sweep '{}'\n", sweep.version, sweep.plan.name);
  if (!sweep.plan.question.empty()) out += "# " + sweep.plan.question + "\n";
  out += "# " + outcome_text(sweep) + "\n";
  if (!sweep.shard.empty()) out += fmt::format("# shard {}: merge all shards before you decide\n", sweep.shard);
  if (sweep.is_interrupted) out += "# interrupted: designs are missing\n";
  for (const auto& bound : sweep.plan.constraints) out += "# constraint: " + constraint_text(bound, currency) + "\n";
  for (const auto& one : sweep.plan.objectives)
    out += fmt::format("# objective: {} {}\n", one.is_maximised ? "maximise" : "minimise", one.metric.text);
  if (sweep.front.empty()) {
    out += "\nno design meets every constraint\n" + nearest_miss(sweep);
  } else {
    out += fmt::format("\nPareto front, {} design{} (80 % bands in brackets)\n", sweep.front.size(),
                       sweep.front.size() == 1 ? "" : "s");
    out += front_table(sweep) + fmt::format("\nBest {}\n", sweep.top.size());
    for (const auto& one : sweep.top) {
      const auto& design = sweep.designs[one.index];
      out += fmt::format("{}. design {}: {}\n", sweep.standings[one.index].rank, design.index, design.name);
      for (const auto& reason : one.reasons) out += "     " + reason + "\n";
    }
  }
  if (const auto why = infeasible_table(sweep); !why.empty()) out += "\nNot feasible, by kind of first reason\n" + why;
  return out + assumptions_text(sweep) + "\n# inputs:\n" + inputs_text(inputs_of(sweep));
}

}  // namespace fabricast::report
