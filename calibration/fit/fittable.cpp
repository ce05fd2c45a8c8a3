// SPDX-License-Identifier: Apache-2.0
#include "fit/fittable.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fabricast::fit {

namespace {

constexpr std::size_t k_most_named = 3;

bool is_fitted(const Experiment& experiment) {
  return std::find(experiment.is_fitted.begin(), experiment.is_fitted.end(), true) != experiment.is_fitted.end();
}

/// "'a', 'b', 'c' and 4 more".
std::string named(const std::vector<FreeParameter>& parameters) {
  std::string out;
  for (std::size_t i = 0; i < std::min(k_most_named, parameters.size()); ++i)
    out += fmt::format("{}'{}'", i == 0 ? "" : ", ", parameters[i].parameter.name);
  if (parameters.size() > k_most_named) out += fmt::format(" and {} more", parameters.size() - k_most_named);
  return out;
}

std::size_t points_of(const Dataset& data) {
  std::size_t points = 0;
  for (const auto& experiment : data.experiments()) points += experiment.sizes.size();
  return points;
}

}  // namespace

Diagnostics faults_of_fit(const Dataset& data, const Calibration& calibration) {
  SourceLocation where{calibration.file, 0, 0};
  if (!calibration.parameters.empty()) where = calibration.parameters.front().location;
  const auto refuse = [&](std::string message, std::string hint) {
    return Diagnostics(1, make_error_at(where, std::move(message), std::move(hint)));
  };
  if (data.parameters().empty()) return refuse("no parameter to fit", "list names under 'fit'");
  const auto& experiments = data.experiments();
  if (std::none_of(experiments.begin(), experiments.end(), is_fitted))
    return refuse(fmt::format("all {} measured points are held out, none is left to fit", points_of(data)),
                  "hold out fewer sizes, ranks, hosts or logs");
  const bool is_any_used = std::any_of(experiments.begin(), experiments.end(),
                                       [](const auto& e) { return is_fitted(e) && !e.uses.empty(); });
  if (is_any_used) return {};
  return refuse(
      fmt::format("no forecast of the fitted logs depends on {}", named(data.parameters())),
      "`fabricast run SCENARIO --explain SIZE` names the parameter behind each term of a forecast, `fabricast "
      "calibrate --suggest` lists those that these logs can determine");
}

}  // namespace fabricast::fit
