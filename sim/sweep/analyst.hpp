// SPDX-License-Identifier: Apache-2.0
// One loaded design at either end of every parameter that its forecast reads.
#pragma once

#include <string>
#include <vector>

#include "fabricast/load.hpp"
#include "fabricast/sweep_plan.hpp"

namespace fabricast::sweep {

struct Range {
  std::string name;
  double value = 0, low = 0, high = 0;
  std::string source;
};

class Analyst {
 public:
  Analyst(LoadedScenario loaded, std::vector<Metric> metrics);

  /// Parameters that the graph or the simulation reads and whose value is uncertain, by name.
  [[nodiscard]] const std::vector<Range>& ranges() const { return ranges_; }
  /// Every figure at one end of one parameter, as a text of numbers; 2 i: low, 2 i + 1: high.
  [[nodiscard]] std::string figures_at(std::size_t end) const;

 private:
  void collect();

  LoadedScenario loaded_;
  std::vector<Metric> metrics_;
  std::vector<Range> ranges_;
};

/// The numbers of figures_at(); NaN where there was no figure.
std::vector<double> numbers_of(const std::string& text);

}  // namespace fabricast::sweep
