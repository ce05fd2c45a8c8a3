// SPDX-License-Identifier: Apache-2.0
// Which designs do, which are best, and why.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "fabricast/sweep.hpp"

namespace fabricast {

namespace {

constexpr double k_ninety_percent = 1.2815515655446004;  ///< quantile of the normal distribution

double normal_below(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

/// Probability that the figure is below `bound`.
double below(const Estimate& estimate, double bound) {
  if (estimate.value <= 0 || bound <= 0) return estimate.value < bound ? 1 : 0;
  const double distance = std::log(bound / estimate.value);
  const double end = distance < 0 ? estimate.low : estimate.high;
  const double width = end > 0 ? std::abs(std::log(end / estimate.value)) / k_ninety_percent : 0;
  if (width <= 0) return distance > 0 ? 1 : 0;
  return normal_below(distance / width);
}

class Judge {
 public:
  Judge(const SweepPlan& plan, std::vector<DesignResult> designs) {
    report_ = {plan, "", std::move(designs), {}, {}, {}, 0, false, ""};
  }

  SweepReport judge(std::size_t num_planned) {
    report_.num_planned = num_planned;
    report_.standings.resize(report_.designs.size());
    for (std::size_t i = 0; i < report_.designs.size(); ++i) meet(i);
    order();
    find_front();
    for (std::size_t r = 0; r < ranked_.size() && report_.top.size() < static_cast<std::size_t>(report_.plan.top);
         ++r) {
      if (!report_.standings[ranked_[r]].equals) report_.top.push_back({ranked_[r], reasons_of(r)});
    }
    return std::move(report_);
  }

 private:
  [[nodiscard]] const SweepPlan& plan() const { return report_.plan; }
  [[nodiscard]] const std::string& currency() const {
    static const std::string none;
    return plan().cost ? plan().cost->currency : none;
  }
  [[nodiscard]] double value(std::size_t i, const Metric& metric) const {
    const auto* found = report_.designs[i].find(metric.text);
    return found == nullptr ? std::numeric_limits<double>::quiet_NaN() : found->value;
  }
  /// More is better.
  [[nodiscard]] double worth(std::size_t i, const Objective& objective) const {
    const double found = value(i, objective.metric);
    return objective.is_maximised ? found : -found;
  }

  void meet(std::size_t i) {
    auto& standing = report_.standings[i];
    const auto& design = report_.designs[i];
    if (design.status != DesignStatus::feasible) return;
    standing.meets_all = true;
    double performance = 1;  // figures of one simulation are off together
    double hardware = 1;
    for (const auto& bound : plan().constraints) {
      const auto* found = design.find(bound.metric.text);
      if (found == nullptr) continue;
      auto& chance = bound.metric.is_of_hardware ? hardware : performance;
      chance = std::min(chance, probability_within(*found, bound.at_least, bound.at_most));
      const bool is_low = bound.at_least && found->value < *bound.at_least;
      const bool is_high = bound.at_most && found->value > *bound.at_most;
      if (!is_low && !is_high) continue;
      standing.meets_all = false;
      const double limit = is_low ? *bound.at_least : *bound.at_most;
      standing.misses.push_back(
          fmt::format("{} is {}, {} {} is asked for ({:.3g} % off)", bound.metric.text,
                      metric_text(bound.metric, found->value, currency()), is_low ? "at least" : "at most",
                      metric_text(bound.metric, limit, currency()), 100 * std::abs(found->value / limit - 1)));
    }
    standing.probability = performance * hardware;
  }

  /// Best first by the first objective, then the others, then by number.
  void order() {
    for (std::size_t i = 0; i < report_.designs.size(); ++i) {
      if (report_.standings[i].meets_all) ranked_.push_back(i);
    }
    std::ranges::stable_sort(ranked_, [&](std::size_t a, std::size_t b) {
      for (const auto& objective : plan().objectives) {
        if (worth(a, objective) != worth(b, objective)) return worth(a, objective) > worth(b, objective);
      }
      return false;
    });
    for (std::size_t r = 0; r < ranked_.size(); ++r) report_.standings[ranked_[r]].rank = static_cast<int>(r) + 1;
  }

  [[nodiscard]] bool dominates(std::size_t a, std::size_t b) const {
    bool is_better = false;
    for (const auto& objective : plan().objectives) {
      if (worth(a, objective) < worth(b, objective)) return false;
      is_better = is_better || worth(a, objective) > worth(b, objective);
    }
    return is_better;
  }

  [[nodiscard]] bool is_equal(std::size_t a, std::size_t b) const {
    return std::ranges::all_of(plan().objectives,
                               [&](const Objective& objective) { return worth(a, objective) == worth(b, objective); });
  }

  /// Whoever dominates or equals a design ranks before it.
  void find_front() {
    for (const auto i : ranked_) {
      const auto same = std::ranges::find_if(report_.front, [&](std::size_t one) { return is_equal(one, i); });
      if (same != report_.front.end()) {
        report_.standings[i].equals = report_.designs[*same].index;
        continue;
      }
      const auto better = std::ranges::find_if(report_.front, [&](std::size_t one) { return dominates(one, i); });
      if (better == report_.front.end()) {
        report_.front.push_back(i);
        report_.standings[i].is_on_front = true;
      } else {
        report_.standings[i].dominated_by = report_.designs[*better].index;
      }
    }
  }

  [[nodiscard]] std::vector<std::string> reasons_of(std::size_t r) const {
    const auto i = ranked_[r];
    const auto& design = report_.designs[i];
    const auto& standing = report_.standings[i];
    std::vector<std::string> out;
    const auto& first = plan().objectives.front();
    const auto shown = metric_text(first.metric, value(i, first.metric), currency());
    out.push_back(
        r == 0 ? fmt::format("{} of all that meet the constraints: {} = {}", first.is_maximised ? "highest" : "lowest",
                             first.metric.text, shown)
               : fmt::format("{} = {}, {} than the first{}", first.metric.text, shown,
                             difference(value(i, first.metric), value(ranked_[0], first.metric)),
                             is_undecided(i, ranked_[0], first.metric) ? ", each within the other's 80 % band" : ""));
    for (const auto& bound : plan().constraints) {
      const auto* found = design.find(bound.metric.text);
      if (found == nullptr) continue;
      const auto chance = probability_within(*found, bound.at_least, bound.at_most);
      const auto against = [&](const char* side, const std::optional<double>& limit) {
        if (!limit) return;
        out.push_back(fmt::format("{} = {} against {} {}: {} off the limit, met with probability {:.2f}",
                                  bound.metric.text, metric_text(bound.metric, found->value, currency()), side,
                                  metric_text(bound.metric, *limit, currency()), percent(found->value / *limit - 1),
                                  chance));
      };
      against("at least", bound.at_least);
      against("at most", bound.at_most);
    }
    if (standing.is_on_front && plan().objectives.size() > 1)
      out.emplace_back("on the Pareto front: no other design is as good in every objective and better in one");
    std::string equals;
    for (std::size_t k = 0; k < report_.designs.size(); ++k) {
      if (report_.standings[k].equals == design.index)
        equals +=
            fmt::format("{}{} ({})", equals.empty() ? "" : ", ", report_.designs[k].index, report_.designs[k].name);
    }
    if (!equals.empty()) out.push_back("the same in every objective: design " + equals);
    if (standing.dominated_by) out.push_back(dominance(i, *standing.dominated_by));
    if (!design.bottleneck.empty()) out.push_back("limited by " + design.bottleneck);
    if (!design.doubts.empty())
      out.push_back(fmt::format("check doubts {} thing{}: {}", design.doubts.size(),
                                design.doubts.size() == 1 ? "" : "s", design.doubts.front()));
    return out;
  }

  /// Each value lies in the other's band: the order holds only where both are off alike.
  [[nodiscard]] bool is_undecided(std::size_t a, std::size_t b, const Metric& metric) const {
    const auto* one = report_.designs[a].find(metric.text);
    const auto* other = report_.designs[b].find(metric.text);
    return one->value != other->value && one->low <= other->value && other->value <= one->high &&
           other->low <= one->value && one->value <= other->high;
  }

  static std::string percent(double share) { return fmt::format("{:+.1f} %", 100 * share); }
  static std::string difference(double one, double other) {
    if (one == other) return "not different";
    return fmt::format("{:.1f} % {}", 100 * std::abs(one / other - 1), one > other ? "more" : "less");
  }

  [[nodiscard]] std::string dominance(std::size_t i, std::size_t better_index) const {
    const auto better = static_cast<std::size_t>(
        std::ranges::find(report_.designs, better_index, &DesignResult::index) - report_.designs.begin());
    std::string out = fmt::format("design {} is better in one objective and worse in none:", better_index);
    for (const auto& objective : plan().objectives)
      out += fmt::format(" {} {}", objective.metric.text,
                         metric_text(objective.metric, value(better, objective.metric), currency()));
    return out + fmt::format(" (this: rank {})", report_.standings[i].rank);
  }

  SweepReport report_;
  std::vector<std::size_t> ranked_;
};

}  // namespace

double probability_within(const Estimate& estimate, const std::optional<double>& at_least,
                          const std::optional<double>& at_most) {
  double out = 1;
  if (at_most) out = estimate.value == *at_most && estimate.low == estimate.high ? 1 : below(estimate, *at_most);
  if (at_least && !(estimate.value == *at_least && estimate.low == estimate.high)) out -= below(estimate, *at_least);
  return std::max(0.0, out);
}

SweepReport judge(const SweepPlan& plan, std::vector<DesignResult> designs, std::size_t num_planned) {
  return Judge(plan, std::move(designs)).judge(num_planned);
}

}  // namespace fabricast
