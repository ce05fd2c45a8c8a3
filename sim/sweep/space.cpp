// SPDX-License-Identifier: Apache-2.0
// Designs by number. Random designs are drawn from a generator of our own, so that a seed means the same everywhere.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "fabricast/sweep.hpp"

namespace fabricast {

namespace {

constexpr double k_most_designs = 1'000'000;

/// splitmix64 [Steele, Lea & Flood, OOPSLA 2014]: the same numbers on every machine.
class Numbers {
 public:
  explicit Numbers(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    auto x = state_;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
  }
  /// 0 <= result < 1
  double share() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

double combinations(const SweepPlan& plan) {
  if (plan.axes.empty()) return 0;
  double all = 1;
  for (const auto& axis : plan.axes) all *= axis.is_range() ? 1e18 : static_cast<double>(axis.choices.size());
  return all;
}

/// Position of a random design on every axis: a choice, or a place in 2^32 of a range.
std::vector<std::vector<std::size_t>> draw(const SweepPlan& plan) {
  Numbers numbers(plan.seed);
  std::vector<std::vector<std::size_t>> out;
  std::set<std::vector<std::size_t>> known;
  const auto wanted = static_cast<std::size_t>(std::min(combinations(plan), static_cast<double>(*plan.samples)));
  // Without repetition: as many draws as that takes in the mean, and far more.
  for (std::size_t tries = 0; out.size() < wanted && tries < 1000 * wanted + 1000; ++tries) {
    std::vector<std::size_t> one;
    for (const auto& axis : plan.axes) {
      const double count = axis.is_range() ? 0x1p32 : static_cast<double>(axis.choices.size());
      one.push_back(static_cast<std::size_t>(numbers.share() * count));
    }
    if (known.insert(one).second) out.push_back(std::move(one));
  }
  return out;
}

SweepChoice in_range(const SweepAxis& axis, std::size_t place) {
  const double share = static_cast<double>(place) * 0x1p-32;
  double value = axis.is_logarithmic ? axis.from * std::pow(axis.to / axis.from, share)
                                     : axis.from + share * (axis.to - axis.from);
  if (axis.is_whole) value = std::round(value);
  const auto text = fmt::format("{:.6g}{}{}", value, axis.unit.empty() ? "" : " ", axis.unit);
  return {text, {{axis.path, text}}};
}

}  // namespace

Diagnostics space_faults(const SweepPlan& plan) {
  const double all = plan.samples ? *plan.samples : combinations(plan);
  Diagnostics faults;
  if (all + static_cast<double>(plan.designs.size()) > k_most_designs) {
    faults.push_back(
        make_error(fmt::format("the plan has {:.3g} designs, at most {:.0f} are swept", all, k_most_designs),
                   "sweep a part at random: `samples: 10000`"));
    faults.back().location.file = plan.file;
  }
  return faults;
}

DesignSpace::DesignSpace(const SweepPlan& plan) : plan_(plan) {
  if (plan.samples) samples_ = draw(plan);
  size_ = plan.designs.size() + (plan.samples ? samples_.size() : static_cast<std::size_t>(combinations(plan)));
  if (plan.axes.empty() && plan.designs.empty()) size_ = 1;  // the scenario as it is
}

DesignResult DesignSpace::design(std::size_t index) const {
  DesignResult out;
  out.index = index;
  out.settings = plan_.settings;
  const auto take = [&](const SweepChoice& choice) {
    out.settings.insert(out.settings.end(), choice.settings.begin(), choice.settings.end());
  };
  if (index < plan_.designs.size()) {
    const auto& listed = plan_.designs[index];
    out.name = listed.label.empty() ? fmt::format("design {}", index) : listed.label;
    take(listed);
    return out;
  }
  std::vector<std::size_t> places(plan_.axes.size());
  if (plan_.samples) {
    places = samples_[index - plan_.designs.size()];
  } else {
    auto rest = index - plan_.designs.size();
    for (std::size_t a = places.size(); a-- > 0;) {
      places[a] = rest % plan_.axes[a].choices.size();
      rest /= plan_.axes[a].choices.size();
    }
  }
  for (std::size_t a = 0; a < places.size(); ++a) {
    const auto& axis = plan_.axes[a];
    const auto choice = axis.is_range() ? in_range(axis, places[a]) : axis.choices[places[a]];
    out.values.emplace_back(axis.name, choice.label);
    out.name += (out.name.empty() ? "" : ", ") + axis.name + " " + choice.label;
    take(choice);
  }
  if (out.name.empty()) out.name = plan_.name;
  return out;
}

}  // namespace fabricast
