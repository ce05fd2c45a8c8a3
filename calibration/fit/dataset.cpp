// SPDX-License-Identifier: Apache-2.0
#include "fit/dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <map>
#include <set>

#include "base/parameter_keys.hpp"
#include "fabricast/simulate.hpp"

namespace fabricast::fit {

namespace {

constexpr double k_unforecast = std::numeric_limits<double>::infinity();
constexpr std::size_t k_topologies_kept = 3;
constexpr std::size_t k_tables_kept = 6;  ///< per log; a difference quotient needs the middle and its two sides

/// Efficiencies of links and adapters are known to a tenth: what is slower by half has another cause.
constexpr double k_efficiency_prior = 0.1;

/// Relative standard deviation of a shipped value before the fit. Intervals hold 80 %: 1.28 deviations each side.
double prior_of(const Parameter& parameter) {
  const bool is_of_compute = parameter.name.starts_with("training.");
  if (!is_of_compute && parameter.name.ends_with("_efficiency")) return k_efficiency_prior;
  if (parameter.has_interval() && parameter.confidence != Confidence::high) {
    const double low = std::max(parameter.low, parameter.value / 20);
    return std::max(0.2, std::log(parameter.high / low) / 2 / 1.28);
  }
  switch (parameter.confidence) {
    case Confidence::high:
      return 0.05;
    case Confidence::medium:
      return 0.4;
    case Confidence::low:
    case Confidence::read_off:
      return 0.8;
    case Confidence::assumed:
      return 1.0;
    case Confidence::fitted:
      return 0.3;
  }
  return 0.4;
}

/// The topology is built from device values and from the bus; all other layers act in the planners.
bool builds_topology(const std::string& name) {
  static const std::vector<std::string> layers{"nccl.", "mpi.",   "cuda.",  "gdrcopy.",
                                               "tcp.",  "verbs.", "model.", "training."};
  return std::none_of(layers.begin(), layers.end(), [&](const auto& layer) { return name.rfind(layer, 0) == 0; });
}

/// The interval keeps its relative width.
void set_start(double start, Parameter& parameter) {
  const double ratio = parameter.value > 0 ? start / parameter.value : 0;
  parameter.low *= ratio;
  parameter.high *= ratio;
  parameter.value = start;
}

double value_of(const std::string& text, const Parameter& parameter, const SourceLocation& where, Diagnostics& faults) {
  const auto parsed = parse_quantity(text, parameter.dimension);
  if (!parsed.ok) {
    faults.push_back(make_error_at(where,
                                   fmt::format("'{}' is not a {} for '{}': {}", text, to_string(parameter.dimension),
                                               parameter.name, parsed.error),
                                   parsed.hint));
  } else if (parsed.value <= 0) {
    faults.push_back(make_error_at(where, fmt::format("'{}' of '{}' must be above zero", text, parameter.name)));
  } else if (const auto range = range_of(parameter.name, parameter.dimension); !range.holds(parsed.value)) {
    faults.push_back(make_error_at(where, fmt::format("'{}' is outside the range of '{}'", text, parameter.name),
                                   fmt::format("give {}: {}", range.what, to_string(range, parameter.dimension))));
  }
  return parsed.value;
}

/// What is read where nothing has this name: the name without its last part, or without further parts that its
/// declaration leaves out.
const Parameter* parent_of(const std::string& name, const std::map<std::string, Parameter>& all) {
  auto shorter = name;
  for (int parts = 1; shorter.find('.') != std::string::npos; ++parts) {
    shorter.resize(shorter.rfind('.'));
    if (parts > 1 && (key_of(name) == nullptr || key_of(shorter) != key_of(name))) return nullptr;
    if (const auto found = all.find(shorter); found != all.end()) return &found->second;
  }
  return nullptr;
}

}  // namespace

bool matches_pattern(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern.front() == '*') {
    for (std::size_t i = 0; i <= text.size(); ++i) {
      if (matches_pattern(pattern.substr(1), text.substr(i))) return true;
    }
    return false;
  }
  return !text.empty() && text.front() == pattern.front() && matches_pattern(pattern.substr(1), text.substr(1));
}

void Dataset::resolve(const Calibration& calibration, Diagnostics& faults) {
  std::map<std::string, Parameter> all;
  for (const auto& experiment : experiments_) {
    for (const auto& [name, parameter] : experiment.loaded.parameters.all()) all.emplace(name, parameter);
  }
  std::map<std::string, FreeParameter> chosen;  // a later, more exact entry replaces an earlier one
  for (const auto& entry : calibration.parameters) {
    std::vector<std::pair<Parameter, std::string>> found;
    const bool is_glob = entry.pattern.find('*') != std::string::npos;
    for (const auto& [name, parameter] : all) {
      if (matches_pattern(entry.pattern, name) && (!is_glob || parameter.value > 0)) found.emplace_back(parameter, "");
    }
    if (found.empty() && !is_glob) {
      if (const auto* parent = parent_of(entry.pattern, all)) {
        found.emplace_back(*parent, parent->name);
        found.back().first.name = entry.pattern;
      }
    }
    if (found.empty()) {
      std::vector<std::string> names;
      for (const auto& [name, parameter] : all) names.push_back(name);
      const auto near = nearest_name(entry.pattern, names);
      if (is_glob) {
        auto warning = make_error_at(entry.location, fmt::format("no parameter matches '{}'", entry.pattern));
        warning.severity = Severity::warning;
        warnings_.push_back(std::move(warning));
        continue;
      }
      faults.push_back(make_error_at(
          entry.location, fmt::format("no parameter '{}' in these scenarios", entry.pattern),
          near.empty() ? "`fabricast list parameters` prints all" : fmt::format("did you mean '{}'?", near)));
    }
    for (auto& [parameter, inherits] : found) {
      FreeParameter free;
      free.inherits = inherits;
      free.prior_deviation = entry.prior.value_or(prior_of(parameter));
      const auto faults_before = faults.size();
      if (entry.start) set_start(value_of(*entry.start, parameter, entry.location, faults), parameter);
      if (faults.size() > faults_before) continue;
      if (parameter.value <= 0) {
        faults.push_back(make_error_at(
            entry.location, fmt::format("'{}' is {} and cannot be fitted by ratio", parameter.name, parameter.value),
            "give a start above zero"));
        continue;
      }
      const auto range = range_of(parameter.name, parameter.dimension);
      free.low = entry.low ? value_of(*entry.low, parameter, entry.location, faults)
                           : std::max(parameter.value / 10, range.low);
      free.high = entry.high ? value_of(*entry.high, parameter, entry.location, faults)
                             : std::min(parameter.value * 10, range.high);
      if (free.low > parameter.value || free.high < parameter.value)
        faults.push_back(make_error_at(entry.location,
                                       fmt::format("the start of '{}' is outside its bounds", parameter.name),
                                       "low <= start <= high"));
      free.parameter = parameter;
      free.has_own_start = entry.start.has_value();
      free.is_of_device = builds_topology(parameter.name);
      chosen[parameter.name] = std::move(free);
    }
  }
  for (auto& [name, free] : chosen) parameters_.push_back(std::move(free));
}

void Dataset::hold_out(const Calibration& calibration) {
  const auto listed = [](const auto& list, const auto& value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  };
  for (auto& experiment : experiments_) {
    const bool is_whole = experiment.spec.is_held_out || listed(calibration.hold_out_ranks, experiment.num_ranks) ||
                          listed(calibration.hold_out_hosts, experiment.num_hosts);
    experiment.spec.is_held_out = is_whole;
    for (std::size_t i = 0; i < experiment.sizes.size(); ++i) {
      const bool is_nth = calibration.hold_out_every > 1 &&
                          static_cast<int>(i) % calibration.hold_out_every == calibration.hold_out_every - 1;
      experiment.is_fitted.push_back(!is_whole && !is_nth && !listed(calibration.hold_out_sizes, experiment.sizes[i]));
    }
  }
}

Result<Dataset> Dataset::load(const Calibration& calibration) {
  Dataset out;
  Diagnostics faults;
  for (const auto& log : calibration.logs) out.load_log(calibration, log, faults);
  if (faults.empty() && out.experiments_.empty())
    faults.push_back(make_error(fmt::format("every log of the calibration is absent, '{}' is the first",
                                            calibration.logs.empty() ? "" : calibration.logs.front().file),
                                "check the paths under 'logs'; a path may start with a variable of the environment, "
                                "which must be set"));
  if (!out.experiments_.empty()) out.resolve(calibration, faults);
  if (!faults.empty()) return tl::unexpected(faults);
  out.hold_out(calibration);
  out.known_.resize(out.experiments_.size());
  out.built_.resize(out.experiments_.size());
  Values x;
  for (const auto& free : out.parameters_) x.push_back(std::log(free.parameter.value));
  for (auto& experiment : out.experiments_) {
    for (std::size_t i = 0; i < x.size(); ++i) experiment.uses.push_back(static_cast<int>(i));
  }
  out.find_uses(x);
  return out;
}

Diagnostics Dataset::check(const Calibration& calibration) {
  Dataset out;
  Diagnostics faults;
  for (const auto& log : calibration.logs) {
    if (log.is_optional && !std::filesystem::exists(log.file)) {
      out.load_scenario_alone(calibration, log, faults);
    } else {
      out.load_log(calibration, log, faults);
    }
  }
  if (!out.experiments_.empty()) out.resolve(calibration, faults);
  faults.insert(faults.end(), out.warnings_.begin(), out.warnings_.end());
  return faults;
}

void Dataset::set_parameters(Experiment& experiment, const Values& x) const {
  for (const int use : experiment.uses) {
    const auto i = static_cast<std::size_t>(use);
    // A log without the device keeps its set free of the device's values.
    if (parameters_[i].is_of_device && !experiment.loaded.parameters.contains(parameters_[i].parameter.name)) continue;
    auto parameter = parameters_[i].parameter;
    parameter.value = parameter.low = parameter.high = std::exp(x[i]);
    experiment.current.set(std::move(parameter));
  }
}

std::optional<WorkloadPrediction> Dataset::predict_table(std::size_t index, const Values& x, const ParameterSet& extra,
                                                         bool with_terms) {
  auto& experiment = experiments_[index];
  set_parameters(experiment, x);
  ParameterSet merged;
  if (!extra.all().empty()) {
    merged = experiment.current;
    merged.merge(extra);
  }
  const auto& set = extra.all().empty() ? experiment.current : merged;
  ++evaluations_;
  SimulateOptions options;
  options.with_terms = with_terms;
  const auto* topology = topology_at(index, x, set);
  if (topology == nullptr) return std::nullopt;
  auto prediction = simulate(*topology, experiment.loaded.scenario, set, options);
  if (!prediction) return std::nullopt;
  return std::move(prediction->workloads.front());
}

/// Most steps of a fit leave the devices as they are: their topology is built once.
const Topology* Dataset::topology_at(std::size_t index, const Values& x, const ParameterSet& set) {
  const auto& experiment = experiments_[index];
  Values key;
  for (const int i : experiment.uses) {
    if (parameters_[static_cast<std::size_t>(i)].is_of_device) key.push_back(x[static_cast<std::size_t>(i)]);
  }
  if (key.empty()) return &experiment.loaded.topology;
  auto& built = built_[index];
  const auto found = std::find_if(built.begin(), built.end(), [&](const Built& one) { return one.key == key; });
  if (found != built.end()) {
    built.splice(built.begin(), built, found);
    return &built.front().topology;
  }
  auto topology = build_topology(experiment.loaded.topology.spec(), set, experiment.loaded.device_types);
  if (!topology) return nullptr;
  built.push_front({std::move(key), std::move(*topology)});
  if (built.size() > k_topologies_kept) built.pop_back();
  return &built.front().topology;
}

Values Dataset::seconds_of(std::size_t index, const Values& x) {
  const auto num_sizes = experiments_[index].sizes.size();
  Values out;
  if (const auto table = predict_table(index, x, {}, false)) {
    for (const auto& row : table->rows) out.push_back(row.time.ps > 0 ? row.time.seconds() : k_unforecast);
  }
  out.resize(num_sizes, k_unforecast);
  return out;
}

const Values& Dataset::predict(std::size_t index, const Values& x) {
  auto& known = known_[index];
  Values key;
  for (const int i : experiments_[index].uses) key.push_back(x[static_cast<std::size_t>(i)]);
  for (auto it = known.begin(); it != known.end(); ++it) {
    if (it->key != key) continue;
    known.splice(known.begin(), known, it);
    return known.front().seconds;
  }
  Known fresh{std::move(key), seconds_of(index, x)};
  known.push_front(std::move(fresh));
  if (known.size() > k_tables_kept) known.pop_back();
  return known.front().seconds;
}

bool Dataset::find_uses(const Values& x) {
  bool has_changed = false;
  for (std::size_t e = 0; e < experiments_.size(); ++e) {
    auto& experiment = experiments_[e];
    const auto before = experiment.uses;
    experiment.uses.resize(parameters_.size());
    for (std::size_t i = 0; i < parameters_.size(); ++i) experiment.uses[i] = static_cast<int>(i);
    built_[e].clear();
    std::set<std::string, std::less<>> reads;
    experiment.current.collect_reads(&reads);
    const auto base = seconds_of(e, x);
    experiment.current.collect_reads(nullptr);
    std::vector<int> uses;
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      if (!reads.contains(parameters_[i].parameter.name)) continue;
      bool is_used = std::find(before.begin(), before.end(), static_cast<int>(i)) != before.end() &&
                     before.size() < parameters_.size();
      for (const double ratio : {0.4, 2.5}) {
        if (is_used) break;
        auto moved = x;
        moved[i] = std::clamp(x[i] + std::log(ratio), std::log(parameters_[i].low), std::log(parameters_[i].high));
        is_used = seconds_of(e, moved) != base;
      }
      if (is_used) uses.push_back(static_cast<int>(i));
    }
    has_changed = has_changed || uses != before;
    experiment.uses = std::move(uses);
    known_[e].clear();
    built_[e].clear();
  }
  return has_changed;
}

}  // namespace fabricast::fit
