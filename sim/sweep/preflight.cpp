// SPDX-License-Identifier: Apache-2.0
// Before thousands of designs are simulated: is there an axis of which no value can be read, such as a misspelt path?
#include <algorithm>

#include "fabricast/inputs.hpp"
#include "fabricast/sweep.hpp"
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
    return true;
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
};

}  // namespace

Preflight preflight(const SweepPlan& plan) { return Trial(plan).run(); }

}  // namespace fabricast
