// SPDX-License-Identifier: Apache-2.0
// What moves the answer: each parameter a forecast reads, and each price, at both ends of its 80 % interval; and which
// measurement would narrow the forecast most.
#pragma once

#include <string>
#include <vector>

#include "fabricast/sweep.hpp"

namespace fabricast {

struct Influence {
  std::string what;                     ///< parameter, price, or "systems of this kind differ"
  std::string kind;                     ///< parameter, price, scatter
  double value = 0, low = 0, high = 0;  ///< of the parameter
  double at_low = 0, at_high = 0;       ///< the figure there
  double share = 0;                     ///< of the variance of the figure's logarithm
  bool crosses_limit = false;           ///< at one end a constraint on the figure is missed that is met, or the reverse
  std::string source;
};

/// A measurement to make next, and how much of the variance it could take away.
struct NextBenchmark {
  std::string benchmark;
  double share = 0;
  std::vector<std::string> settles;  ///< parameters, most first
};

struct SensitivityReport {
  std::size_t design = 0;
  std::string name;
  std::string version;
  std::string currency;
  struct Figure {
    Metric metric;
    Estimate estimate;
    std::optional<double> at_least, at_most;
    double probability = 1;             ///< of meeting the bounds
    std::vector<Influence> influences;  ///< most first
    std::vector<NextBenchmark> next;
  };
  std::vector<Figure> figures;
  std::vector<std::pair<std::string, std::string>> inputs;
};

/// Of one design that is feasible. Every end of every parameter is one simulation.
Result<SensitivityReport> sensitivity(const SweepPlan& plan, const DesignResult& design, const TaskOptions& options,
                                      const std::function<void(double share)>& progress);

}  // namespace fabricast
