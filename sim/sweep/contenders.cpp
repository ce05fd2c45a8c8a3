// SPDX-License-Identifier: Apache-2.0
#include "sweep/contenders.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "sweep/cost.hpp"
#include "sweep/short_names.hpp"

namespace fabricast::sweep {

namespace {

constexpr std::size_t k_most_ranked = 4;     ///< designs ranked next that are looked at
constexpr std::size_t k_most_misses = 4;     ///< designs that miss a constraint
constexpr double k_least_probability = 0.1;  ///< of meeting every constraint, of those

/// Which way an objective is better: more than 0 when `a` is better than `b`.
double better(const Objective& objective, double a, double b) { return objective.is_maximised ? a - b : b - a; }

/// Places of the designs that could take the place of `own`.
std::vector<std::size_t> rivals_of(const SweepReport& judged, std::size_t own) {
  std::vector<std::size_t> ranked;
  std::vector<std::size_t> misses;
  const auto& objective = judged.plan.objectives.front();
  const auto* mine = judged.designs[own].find(objective.metric.text);
  for (std::size_t i = 0; i < judged.designs.size(); ++i) {
    const auto& standing = judged.standings[i];
    const auto* its = judged.designs[i].find(objective.metric.text);
    if (i == own || its == nullptr || judged.designs[i].status != DesignStatus::feasible) continue;
    if (standing.meets_all && !standing.equals) ranked.push_back(i);
    const bool could_win = mine == nullptr || better(objective, its->value, mine->value) > 0;
    if (!standing.meets_all && could_win && standing.probability >= k_least_probability) misses.push_back(i);
  }
  std::ranges::stable_sort(ranked, {}, [&](std::size_t i) { return judged.standings[i].rank; });
  std::ranges::stable_sort(misses, std::greater{}, [&](std::size_t i) { return judged.standings[i].probability; });
  ranked.resize(std::min(ranked.size(), k_most_ranked));
  ranked.insert(ranked.end(), misses.begin(),
                misses.begin() + static_cast<std::ptrdiff_t>(std::min(misses.size(), k_most_misses)));
  return ranked;
}

Result<Contender> contender_of(const SweepPlan& plan, const DesignResult& design,
                               const std::vector<Metric>& simulated) {
  Diagnostics faults;
  const auto settings = expanded(plan, design.settings, faults);
  if (has_errors(faults)) return tl::unexpected(faults);
  auto loaded = load_scenario(plan.scenario_file, plan.parameter_files, settings);
  if (!loaded) return tl::unexpected(loaded.error());
  Contender out;
  out.design = &design;
  for (const auto& input : loaded->inputs) out.inputs.emplace_back(input.path, input.sha256);
  out.analyst = std::make_shared<const Analyst>(std::move(*loaded), simulated);
  return out;
}

using Figures = std::map<std::string, double>;  ///< by the metric's text

class Contest {
 public:
  Contest(const SweepPlan& plan, const std::vector<Contender>& contenders) : plan_(plan), contenders_(contenders) {}

  /// The contender that is best with these figures; nothing when none meets every constraint.
  [[nodiscard]] std::optional<std::size_t> winner(const std::vector<Figures>& figures) const {
    std::optional<std::size_t> best;
    for (std::size_t c = 0; c < figures.size(); ++c) {
      if (!missed(figures[c]).empty()) continue;
      if (!best || is_before(figures[c], figures[*best])) best = c;
    }
    return best;
  }

  [[nodiscard]] std::vector<Figures> usual() const {
    std::vector<Figures> out;
    for (const auto& one : contenders_) {
      out.emplace_back();
      for (const auto& [name, estimate] : one.design->metrics) out.back()[name] = estimate.value;
    }
    return out;
  }

  /// Why the first contender is not the best.
  [[nodiscard]] std::string why(const std::vector<Figures>& figures, std::optional<std::size_t> best) const {
    const auto currency = plan_.cost ? plan_.cost->currency : std::string();
    const auto text = [&](const Metric& metric, std::size_t c) {
      return metric_text(metric, figures[c].at(metric.text), currency);
    };
    if (const auto miss = missed(figures[0]); !miss.empty()) return miss;
    for (const auto& objective : plan_.objectives) {
      const auto& metric = objective.metric;
      if (best && better(objective, figures[*best].at(metric.text), figures[0].at(metric.text)) > 0)
        return fmt::format("{}: {} against {}", metric.text, text(metric, *best), text(metric, 0));
    }
    return "";
  }

 private:
  /// The first constraint that is missed, in words.
  [[nodiscard]] std::string missed(const Figures& figures) const {
    for (const auto& bound : plan_.constraints) {
      const auto it = figures.find(bound.metric.text);
      if (it == figures.end()) continue;
      const bool is_low = bound.at_least && it->second < *bound.at_least;
      if (!is_low && !(bound.at_most && it->second > *bound.at_most)) continue;
      const auto currency = plan_.cost ? plan_.cost->currency : std::string();
      return fmt::format("{} {} misses {}", bound.metric.text, metric_text(bound.metric, it->second, currency),
                         metric_text(bound.metric, is_low ? *bound.at_least : *bound.at_most, currency));
    }
    return "";
  }

  [[nodiscard]] bool is_before(const Figures& a, const Figures& b) const {
    for (const auto& objective : plan_.objectives) {
      const auto one = a.find(objective.metric.text);
      const auto other = b.find(objective.metric.text);
      if (one == a.end() || other == b.end()) continue;
      if (const double by = better(objective, one->second, other->second); by != 0) return by > 0;
    }
    return false;
  }

  const SweepPlan& plan_;
  const std::vector<Contender>& contenders_;
};

/// Figures of every contender at one end of one influence of the first.
std::vector<Figures> figures_at(const std::vector<Contender>& contenders, std::vector<Figures> figures,
                                const std::vector<Metric>& simulated, const SensitivityReport::Figure& figure,
                                const Influence& influence, const CostModel* model, bool is_high) {
  for (std::size_t c = 0; c < contenders.size(); ++c) {
    auto& own = figures[c];
    if (influence.kind == "parameter") {
      for (std::size_t m = 0; m < simulated.size(); ++m) {
        if (const auto ends = contenders[c].ends_of(influence.what, m))
          own[simulated[m].text] = is_high ? ends->second : ends->first;
      }
    } else if (influence.kind == "price") {
      for (const auto& line : contenders[c].design->bill) {
        if (line.what != influence.what) continue;
        for (const char* sum : {"cost", "capital_cost", "running_cost"}) {
          const auto [low, high] = price_ends(line, model, sum);
          if (const auto it = own.find(sum); it != own.end()) it->second += is_high ? high : low;
        }
      }
    } else {
      // Forecasts of systems of one kind are off together.
      own[figure.metric.text] *= (is_high ? influence.at_high : influence.at_low) / figure.estimate.value;
    }
  }
  return figures;
}

}  // namespace

std::optional<std::pair<double, double>> Contender::ends_of(const std::string& parameter, std::size_t m) const {
  const auto it = std::ranges::lower_bound(analyst->ranges(), parameter, {}, &Range::name);
  if (it == analyst->ranges().end() || it->name != parameter) return std::nullopt;
  const auto i = static_cast<std::size_t>(it - analyst->ranges().begin());
  const auto low = ends.find(2 * i);
  const auto high = ends.find(2 * i + 1);
  if (low == ends.end() || high == ends.end() || low->second.size() <= m || high->second.size() <= m)
    return std::nullopt;
  if (std::isnan(low->second[m]) || std::isnan(high->second[m])) return std::nullopt;
  return std::pair(low->second[m], high->second[m]);
}

Result<std::vector<Contender>> contenders_of(const SweepReport& judged, const DesignResult& design,
                                             const std::vector<Metric>& simulated) {
  std::vector<Contender> out;
  auto own = contender_of(judged.plan, design, simulated);
  if (!own) return tl::unexpected(own.error());
  out.push_back(std::move(*own));
  const auto place = static_cast<std::size_t>(&design - judged.designs.data());
  for (const auto rival : rivals_of(judged, place)) {
    if (auto other = contender_of(judged.plan, judged.designs[rival], simulated)) out.push_back(std::move(*other));
  }
  return out;
}

void simulate_ends(std::vector<Contender>& contenders, const TaskOptions& options,
                   const std::function<void(double share)>& progress) {
  std::vector<std::pair<std::size_t, std::size_t>> places;  // contender, end
  for (std::size_t c = 0; c < contenders.size(); ++c) {
    for (std::size_t end = 0; end < 2 * contenders[c].analyst->ranges().size(); ++end) places.emplace_back(c, end);
  }
  std::vector<std::size_t> todo(places.size());
  for (std::size_t i = 0; i < todo.size(); ++i) todo[i] = i;
  std::size_t num_done = 0;
  run_tasks(
      todo, [&](std::size_t i) { return contenders[places[i].first].analyst->figures_at(places[i].second); },
      [&](std::size_t i, const std::string& text) {
        contenders[places[i].first].ends[places[i].second] = numbers_of(text);
        ++num_done;
        if (progress) progress(static_cast<double>(num_done) / static_cast<double>(todo.size()));
      },
      [](std::size_t, const std::string&) { return std::string(); }, options);
}

std::vector<AnswerChange> changes_of_answer(const SweepPlan& plan, const std::vector<Contender>& contenders,
                                            const std::vector<Metric>& simulated,
                                            const std::vector<SensitivityReport::Figure>& figures) {
  const Contest contest(plan, contenders);
  const auto usual = contest.usual();
  if (contest.winner(usual) != 0) return {};  // not the best to begin with: no answer that could change
  std::vector<AnswerChange> out;
  std::set<std::pair<std::string, bool>> seen;
  for (const auto& figure : figures) {
    for (const auto& influence : figure.influences) {
      for (const bool is_high : {false, true}) {
        const auto there =
            figures_at(contenders, usual, simulated, figure, influence, plan.cost ? &*plan.cost : nullptr, is_high);
        const auto best = contest.winner(there);
        if (best == 0 || !seen.emplace(influence.what, is_high).second) continue;
        AnswerChange change{
            influence.what,          influence.kind, is_high, is_high ? influence.high : influence.low, {}, "",
            contest.why(there, best)};
        if (influence.kind == "scatter") change.value = is_high ? influence.at_high : influence.at_low;
        if (best) change.design = contenders[*best].design->index;
        if (best) change.name = contenders[*best].design->name;
        out.push_back(std::move(change));
      }
    }
  }
  return out;
}

}  // namespace fabricast::sweep
