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
  bool can_change_answer = false;    ///< one of them makes another design the best at an end of its interval
};

/// One end of one influence at which another design is the best, or none that was looked at meets every constraint.
struct AnswerChange {
  std::string what;
  std::string kind;  ///< as of Influence
  bool is_high = false;
  double value = 0;                   ///< of the parameter or price there; of the figure for the scatter
  std::optional<std::size_t> design;  ///< that is the best there
  std::string name;
  std::string why;  ///< what the design of today misses or is worse in
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
  bool is_best = false;               ///< of the plan; else there is no answer that could change
  std::size_t num_contenders = 0;     ///< other designs that were looked at
  std::vector<AnswerChange> changes;  ///< empty: nothing within its interval makes another of them the best
  std::vector<std::pair<std::string, std::string>> inputs;
};

/// Of one design that is feasible, beside the designs that could take its place: those ranked next, and cheaper (by the
/// first objective) ones that miss a constraint by less than their band. Every end of every parameter of each of them
/// is one simulation.
Result<SensitivityReport> sensitivity(const SweepReport& judged, const DesignResult& design, const TaskOptions& options,
                                      const std::function<void(double share)>& progress);

}  // namespace fabricast
