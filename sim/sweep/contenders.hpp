// SPDX-License-Identifier: Apache-2.0
// The designs that could be the best if a parameter or price were at an end of its interval, and whether one of them
// is.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fabricast/sensitivity.hpp"
#include "sweep/analyst.hpp"

namespace fabricast::sweep {

struct Contender {
  const DesignResult* design = nullptr;
  std::shared_ptr<const Analyst> analyst;
  std::map<std::size_t, std::vector<double>> ends;  ///< figures at end 2 i or 2 i + 1 of range i
  std::vector<std::pair<std::string, std::string>> inputs;

  /// The m-th figure at both ends of a parameter; nothing when the design does not read it or has no figure there.
  [[nodiscard]] std::optional<std::pair<double, double>> ends_of(const std::string& parameter, std::size_t m) const;
};

/// `design` first, then those that could take its place.
Result<std::vector<Contender>> contenders_of(const SweepReport& judged, const DesignResult& design,
                                             const std::vector<Metric>& simulated);

/// Every end of every parameter of every contender, in processes.
void simulate_ends(std::vector<Contender>& contenders, const TaskOptions& options,
                   const std::function<void(double share)>& progress);

/// Ends of influences at which another contender is the best, in the order of the figures' influences.
std::vector<AnswerChange> changes_of_answer(const SweepPlan& plan, const std::vector<Contender>& contenders,
                                            const std::vector<Metric>& simulated,
                                            const std::vector<SensitivityReport::Figure>& figures);

}  // namespace fabricast::sweep
