// SPDX-License-Identifier: Apache-2.0
// The extension behind `import fabricast`: every call takes file names and settings and answers the JSON of the command
// line, which the package turns into dataclasses and arrays. Faults are exceptions with the messages of the program.
#include <fmt/format.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fabricast/calibration.hpp"
#include "fabricast/check.hpp"
#include "fabricast/inputs.hpp"
#include "fabricast/load.hpp"
#include "fabricast/load_plan.hpp"
#include "fabricast/measurement.hpp"
#include "fabricast/simulate.hpp"
#include "fabricast/sweep.hpp"
#include "fabricast/validation.hpp"
#include "report/report.hpp"
#include "report/sweep.hpp"

namespace py = pybind11;
using namespace fabricast;

namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

/// Becomes fabricast.InputError.
struct InputFault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <typename T>
T value_of(Result<T> result) {
  if (!result) throw InputFault(render(result.error()));
  return std::move(*result);
}

struct Loaded {
  LoadedScenario scenario;
  report::Provenance provenance;
};

Loaded load(const std::string& path, const Settings& settings, const std::vector<std::string>& parameter_files) {
  std::vector<Setting> all;
  for (const auto& one : settings) all.push_back({one.first, one.second});
  Loaded out{value_of(load_scenario(path, parameter_files, all)), {}};
  out.provenance.version = FABRICAST_VERSION;
  out.provenance.inputs = out.scenario.inputs;
  out.provenance.parameter_files = parameter_files;
  out.provenance.settings = all;
  return out;
}

Prediction predict(const Loaded& loaded, std::uint64_t seed) {
  const auto& scenario = loaded.scenario;
  if (const auto found = infeasible_hosts(scenario); !found.empty()) throw InputFault(render(found));
  SimulateOptions options;
  options.seed = seed;
  return value_of(simulate(scenario.topology, scenario.scenario, scenario.parameters, options));
}

std::string run(const std::string& path, const Settings& settings, const std::vector<std::string>& parameter_files,
                std::uint64_t seed) {
  auto loaded = load(path, settings, parameter_files);
  loaded.provenance.seed = seed;
  const auto prediction = predict(loaded, seed);
  return report::json({prediction, loaded.scenario.scenario, loaded.provenance});
}

std::string describe(const std::string& path, const Settings& settings,
                     const std::vector<std::string>& parameter_files) {
  const auto loaded = load(path, settings, parameter_files);
  const auto& topology = loaded.scenario.topology;
  return fmt::format("{}\n{}\n{}\n{}", loaded.scenario.scenario.name, topology.name(), topology.num_hosts(),
                     topology.devices(DeviceKind::gpu).size());
}

std::string compare(const std::vector<std::string>& paths, const Settings& settings) {
  std::vector<Loaded> loaded;
  std::vector<Prediction> predictions;
  for (const auto& path : paths) {
    loaded.push_back(load(path, settings, {}));
    predictions.push_back(predict(loaded.back(), 1));
  }
  std::vector<report::Compared> all;
  for (std::size_t i = 0; i < paths.size(); ++i)
    all.push_back({paths[i], &predictions[i], &loaded[i].scenario.scenario, &loaded[i].provenance,
                   &loaded[i].scenario.parameters});
  return report::compare_json(all);
}

std::string validate_logs(const std::string& path, const std::vector<std::string>& files, const Settings& settings,
                          const std::vector<std::string>& parameter_files) {
  auto loaded = load(path, settings, parameter_files);
  std::vector<MeasuredLog> logs;
  std::set<Bytes> sizes;
  for (const auto& file : files) {
    auto read = value_of(read_logs(file));
    auto table = table_for(read, loaded.scenario.scenario);
    if (table && !table->refusal.empty()) throw InputFault(fmt::format("{}: {}\n", file, table->refusal));
    if (!table || table->rows.empty())
      throw InputFault(fmt::format("{}: no row of {} in this log\n", file,
                                   to_string(loaded.scenario.scenario.workloads.front().benchmark)));
    for (const auto size : sizes_of(*table)) sizes.insert(size);
    note_hash(loaded.provenance.inputs, file, table->sha256);
    logs.push_back(std::move(*table));
  }
  loaded.scenario.scenario.workloads.front().sizes = {sizes.begin(), sizes.end()};
  const auto prediction = predict(loaded, 1);
  std::vector<Validation> validations;
  for (const auto& log : logs) validations.push_back(validate(prediction.workloads.front(), log));
  const auto overall = summarize(std::span<const Validation>(validations));
  return report::validation_json(
      {validations, overall, prediction.scenario, &prediction.workloads.front(), &loaded.provenance, {}, 0});
}

/// The report, and the parameter file's text.
std::pair<std::string, std::string> calibrate_file(const std::string& path) {
  const auto report = value_of(calibrate(value_of(load_calibration(path))));
  return {report::calibration_json(report), parameters_yaml(report)};
}

std::string sweep_plan(const std::string& path, int jobs, const std::string& store_path) {
  const auto plan = value_of(load_sweep_plan(path));
  if (auto faults = space_faults(plan); !faults.empty()) throw InputFault(render(faults));
  if (const auto tried = preflight(plan); has_errors(tried.faults)) throw InputFault(render(tried.faults));
  const DesignSpace space(plan);
  std::map<std::size_t, std::string> records;
  std::optional<SweepStore> store;
  if (!store_path.empty()) {
    store.emplace(value_of(
        SweepStore::open(store_path, fingerprint_of(plan, FABRICAST_VERSION), header_of(plan, FABRICAST_VERSION))));
    for (auto& entry : store->records()) records[entry.first] = std::move(entry.second);
  }
  std::vector<std::size_t> todo;
  for (std::size_t i = 0; i < space.size(); ++i) {
    if (!records.contains(i)) todo.push_back(i);
  }
  run_tasks(
      todo, [&](std::size_t i) { return record_of(evaluate_design(plan, space.design(i))); },
      [&](std::size_t i, const std::string& record) {
        if (store) store->put(i, record);
        records[i] = record;
      },
      [&](std::size_t i, const std::string& why) {
        auto result = space.design(i);
        result.status = DesignStatus::failed;
        result.reasons = {why};
        return record_of(result);
      },
      {jobs, nullptr});
  std::vector<DesignResult> designs;
  for (const auto& entry : records) {
    if (auto result = result_of(entry.second)) designs.push_back(std::move(*result));
  }
  auto judged = judge(plan, std::move(designs), space.size());
  judged.version = FABRICAST_VERSION;
  return report::sweep_json(judged);
}

}  // namespace

PYBIND11_MODULE(_fabricast, module) {
  module.doc() = "Calls of Fabricast; use the package `fabricast`.";
  module.attr("version") = FABRICAST_VERSION;
  py::register_exception<InputFault>(module, "InputError", PyExc_ValueError);
  module.def("run", &run, py::arg("path"), py::arg("settings"), py::arg("parameter_files"), py::arg("seed"));
  module.def("describe", &describe, py::arg("path"), py::arg("settings"), py::arg("parameter_files"));
  module.def("compare", &compare, py::arg("paths"), py::arg("settings"));
  module.def("validate", &validate_logs, py::arg("path"), py::arg("logs"), py::arg("settings"),
             py::arg("parameter_files"));
  module.def("calibrate", &calibrate_file, py::arg("path"));
  module.def("sweep", &sweep_plan, py::arg("path"), py::arg("jobs"), py::arg("store"));
}
