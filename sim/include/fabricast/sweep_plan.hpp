// SPDX-License-Identifier: Apache-2.0
// What a sweep asks: which settings of a scenario vary, what a design must reach, and what is better. Plain values, as
// the YAML said.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fabricast/cost_model.hpp"
#include "fabricast/diagnostic.hpp"
#include "fabricast/units.hpp"

namespace fabricast {

/// A figure of a design: `busbw at 64 MiB`, `images_per_second`, `step_time at 64 GPUs`, `cost`.
struct Metric {
  std::string text;           ///< as the user wrote it
  std::string name;           ///< one of metric_names()
  std::optional<Bytes> size;  ///< which row; default: the last
  std::optional<int> gpus;    ///< which row of training steps
  std::string workload;       ///< `of NAME`; default: the first
  Dimension dimension = Dimension::number;
  bool is_money = false;
  bool is_of_hardware = false;  ///< cost, power, counts: known without a simulation
  bool is_less_better = false;  ///< by nature; an objective may say otherwise
};

/// Every name a metric can have, for messages and docs.
const std::vector<std::string>& metric_names();
/// Reads `NAME [at SIZE | at N GPUs] [of WORKLOAD]`; on failure `fault` says why.
std::optional<Metric> metric_from(std::string_view text, std::string& fault);
/// A value of the metric for people: "12.3 ms", "20100", "1.25 M USD".
std::string metric_text(const Metric& metric, double value, const std::string& currency);

/// One change of a scenario: a YAML path, or a short name of sim/sweep (hosts, fabric.x, gpu.type, hca.count).
struct SweepSetting {
  std::string path;
  std::string value;
};

struct SweepChoice {
  std::string label;
  std::vector<SweepSetting> settings;
};

/// What varies: choices, or (random sweeps only) any value of a range.
struct SweepAxis {
  std::string name;
  std::vector<SweepChoice> choices;
  std::string path;         ///< of a range
  double from = 0, to = 0;  ///< of a range, in `unit`
  std::string unit;         ///< as written, may be empty
  bool is_logarithmic = false;
  bool is_whole = false;

  [[nodiscard]] bool is_range() const { return choices.empty(); }
};

struct Objective {
  Metric metric;
  bool is_maximised = true;
};

struct Constraint {
  Metric metric;
  std::optional<double> at_least;
  std::optional<double> at_most;
  SourceLocation location;
};

struct SweepPlan {
  std::string name;
  std::string file;
  std::string description;
  std::string question;       ///< the planner's, in words
  std::string scenario_file;  ///< resolved
  std::vector<std::string> parameter_files;
  std::vector<SweepSetting> settings;  ///< of every design
  std::vector<SweepAxis> axes;
  std::vector<SweepChoice> designs;  ///< one by one, before the grid
  std::optional<int> samples;        ///< random designs instead of the whole grid
  std::uint64_t seed = 1;
  std::vector<Objective> objectives;
  std::vector<Constraint> constraints;
  std::optional<CostModel> cost;
  int top = 5;
  /// Files that were read, with their SHA-256: the plan and its prices.
  std::vector<std::pair<std::string, std::string>> inputs;
};

}  // namespace fabricast
