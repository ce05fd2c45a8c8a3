// SPDX-License-Identifier: Apache-2.0
// Before thousands of designs are simulated: is there an axis of which no value can be read, such as a misspelt path,
// or a figure that the workload does not have?
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "fabricast/inputs.hpp"
#include "fabricast/sweep.hpp"
#include "sweep/figures.hpp"
#include "sweep/short_names.hpp"

namespace fabricast {

namespace {

using namespace sweep;

constexpr int k_most_pairs = 200;  ///< loads of two choices together, for axes that need each other

class Trial {
 public:
  explicit Trial(const SweepPlan& plan) : plan_(plan) {}

  Preflight run() {
    Preflight out;
    Diagnostics own;
    const bool has_base = loads({}, own);
    bool is_open = !has_base;  // an axis may be what makes the scenario one that can be read
    for (const auto& axis : plan_.axes) {
      if (axis.is_range()) continue;
      Diagnostics faults;
      const bool is_sound = loads_alone(axis, faults) || loads_beside_another(axis);
      is_open = is_open && !is_sound;
      if (!is_sound && has_base) out.faults.insert(out.faults.end(), faults.begin(), faults.end());
    }
    // Three axes together may make a scenario that no two of them make.
    if (is_open && plan_.axes.size() <= 2) out.faults = own;
    warn_of_prices(out.faults);
    if (!varies_work())
      for (const auto& why : misplaced_) {
        out.faults.push_back(make_error(why, "another figure, or another workload"));
        out.faults.back().location.file = plan_.file;
      }
    if (inputs_.empty()) note_file(inputs_, plan_.scenario_file);
    for (auto& input : inputs_) out.inputs.emplace_back(std::move(input.path), std::move(input.sha256));
    return out;
  }

 private:
  bool loads(const std::vector<const SweepChoice*>& choices, Diagnostics& faults) {
    auto settings = plan_.settings;
    for (const auto* one : choices) settings.insert(settings.end(), one->settings.begin(), one->settings.end());
    const auto before = faults.size();
    const auto all = expanded(plan_, settings, faults);
    if (faults.size() > before) return false;
    const auto loaded = load_scenario(plan_.scenario_file, plan_.parameter_files, all);
    if (!loaded) {
      faults.insert(faults.end(), loaded.error().begin(), loaded.error().end());
      return false;
    }
    for (const auto& input : loaded->inputs) note_hash(inputs_, input.path, input.sha256);
    own_types_.insert(own_types_.end(), loaded->device_types.begin(), loaded->device_types.end());
    for (const auto& metric : metrics_of(plan_))
      if (const auto why = misplaced(metric, loaded->scenario); !why.empty()) misplaced_.insert(why);
    return true;
  }

  /// A misspelt type would take the price of `other`, or none.
  void warn_of_prices(Diagnostics& faults) {
    const auto catalogue = load_whole_catalogue();
    if (!plan_.cost || !catalogue) return;
    std::vector<std::string> known;
    for (const auto& type : catalogue->device_types) known.push_back(type.name);
    for (const auto& type : own_types_) known.push_back(type.name);
    for (const auto& [kind, prices] : plan_.cost->prices) {
      for (const auto& entry : prices) {
        if (kind == "cable" || entry.first == "other" || std::ranges::find(known, entry.first) != known.end()) continue;
        const auto near = nearest_name(entry.first, known);
        faults.push_back(make_warning_at(
            {plan_.cost->file},
            fmt::format("a price of {} '{}', which is no device type: it counts nowhere", kind, entry.first),
            near.empty() ? "`fabricast list devices` prints the catalogue" : fmt::format("did you mean '{}'?", near)));
      }
    }
  }

  /// Designs may have other figures than those that were tried: another benchmark, another network.
  [[nodiscard]] bool varies_work() const {
    const auto is_work = [](const SweepSetting& one) {
      return one.path == "workload" || one.path.starts_with("workloads") || one.path.ends_with(".benchmark") ||
             one.path.ends_with(".network") || one.path.ends_with(".profile");
    };
    const auto has_work = [&](const SweepChoice& one) { return std::ranges::any_of(one.settings, is_work); };
    return std::ranges::any_of(plan_.designs, has_work) || std::ranges::any_of(plan_.axes, [&](const SweepAxis& axis) {
             return std::ranges::any_of(axis.choices, has_work);
           });
  }

  bool loads_alone(const SweepAxis& axis, Diagnostics& faults) {
    return std::ranges::any_of(axis.choices, [&](const SweepChoice& one) { return loads({&one}, faults); });
  }

  bool loads_beside_another(const SweepAxis& axis) {
    int tried = 0;
    Diagnostics unread;
    for (const auto& other : plan_.axes) {
      for (const auto& choice : other.choices) {
        for (const auto& one : axis.choices) {
          if (&other == &axis || ++tried > k_most_pairs) continue;
          if (loads({&choice, &one}, unread)) return true;
        }
      }
    }
    return false;
  }

  const SweepPlan& plan_;
  std::vector<InputFile> inputs_;
  std::vector<DeviceType> own_types_;  ///< of designs that were read
  std::set<std::string> misplaced_;    ///< why figures are none of a design that was read
};

}  // namespace

Preflight preflight(const SweepPlan& plan) { return Trial(plan).run(); }

}  // namespace fabricast
