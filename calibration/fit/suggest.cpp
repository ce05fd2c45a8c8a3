// SPDX-License-Identifier: Apache-2.0
// A first calibration file from logs' own headers: an entry for each workload, the parameters that these data can
// determine, and comments where the user has to add what no log says. The file runs as it is.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/text.hpp"
#include "fabricast/calibration.hpp"
#include "fit/errors.hpp"
#include "fit/fit.hpp"
#include "fit/suggest_log.hpp"
#include "readers/readers.hpp"

namespace fabricast {

namespace fit {

namespace {

namespace fs = std::filesystem;

/// Least change of any predicted time, when a parameter is halved or doubled, that makes it worth fitting.
constexpr double k_matters = 0.02;
constexpr double k_determined = 0.8;  ///< deviation after / before the fit
constexpr double k_hidden = 0.999;
constexpr double k_poor = 0.25;        ///< median error at which other settings are tried
constexpr double k_much_better = 0.5;  ///< of that error

/// A path as the calibration file in `folder` names it: relative when they share a folder below the root.
std::string path_from(const std::string& folder, const std::string& path) {
  const auto target = fs::absolute(path).lexically_normal();
  const auto base = fs::absolute(folder.empty() ? "." : folder).lexically_normal();
  const bool is_shared = std::next(target.begin()) != target.end() && std::next(base.begin()) != base.end() &&
                         *std::next(target.begin()) == *std::next(base.begin());
  return is_shared ? target.lexically_relative(base).string() : target.string();
}

std::string quoted(const std::string& text) {
  const bool is_plain = std::all_of(text.begin(), text.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' || c == '/';
  });
  if (is_plain && !text.empty()) return text;
  return yaml_quoted(text);
}

/// Software and device values that a fit may move: not data-sheet facts, sizes and counts.
bool is_fittable(const Parameter& p) {
  if (p.value <= 0 || p.dimension == Dimension::bytes || p.confidence == Confidence::high) return false;
  if (p.name.rfind("model.", 0) == 0 || p.name.rfind("pcie.", 0) == 0 || p.name.find(".max_") != std::string::npos)
    return false;
  static const std::vector<std::string> layers{"nccl.", "mpi.", "cuda.", "gdrcopy.", "tcp.", "verbs."};
  const bool is_software =
      std::any_of(layers.begin(), layers.end(), [&](const auto& layer) { return p.name.rfind(layer, 0) == 0; });
  if (is_software || p.dimension != Dimension::number) return true;
  return p.name.ends_with("_efficiency") || p.name.ends_with("_share") || p.name.ends_with(".message_rate");
}

class Suggestion {
 public:
  Suggestion(const LoadedTopology& topology, std::string topology_file, std::string folder)
      : topology_(topology), topology_file_(std::move(topology_file)), folder_(std::move(folder)) {
    trial_.name = topology.spec.name;
    trial_.file = (fs::path(folder_.empty() ? "." : folder_) / "suggestion").string();
    for (const auto& [name, parameter] : topology.parameters.all()) {
      CalibrationParameter one;
      one.pattern = name;
      if (is_fittable(parameter)) trial_.parameters.push_back(std::move(one));
    }
  }

  /// Adds the tables of a log; one that cannot be forecast on this topology becomes a comment with the reason.
  void add(const std::vector<MeasuredLog>& tables) {
    std::set<std::string> seen;
    for (const auto& table : tables) {
      for (auto& entry : suggest_entries(table, topology_.topology)) {
        if (seen.insert(flow_mapping(entry.workload) + software_text(entry)).second) add(std::move(entry));
      }
    }
    if (!seen.empty()) return;
    left_out_.push_back(fmt::format("{}: {}", tables[0].file, why_left_out(tables)));
  }

  [[nodiscard]] Result<std::string> text() {
    if (trial_.logs.empty()) {
      Diagnostics faults;
      for (const auto& reason : left_out_) faults.push_back(make_error(reason));
      return tl::unexpected(faults);
    }
    auto data = Dataset::load(trial_);
    if (!data) return tl::unexpected(data.error());
    std::string out = fmt::format(
        "schema: fabricast/calibration/1\nname: {}\n"
        "description: suggested from the headers of the logs; comments say what they leave open\ntopology: {}\nlogs:\n",
        quoted(topology_.spec.name), quoted(path_from(folder_, topology_file_)));
    for (const auto& entry : entries_) out += entry_text(entry);
    for (const auto& reason : left_out_) out += fmt::format("  # left out: {}\n", reason);
    return out + fit_text(*data) + settings_text(*data);
  }

 private:
  static std::string why_left_out(const std::vector<MeasuredLog>& tables) {
    if (tables[0].format == LogFormat::nccl_tuning)
      return "NCCL's choices without times; compare them by `fabricast validate`";
    for (const auto& table : tables) {
      if (!table.other_test.empty()) return fmt::format("the log is of '{}', which is not forecast", table.other_test);
      const auto refusal = table.benchmark ? readers::refusal_of(table, *table.benchmark) : std::string();
      if (!refusal.empty()) return refusal;
      if (table.benchmark || table.rows.empty() || table.format != LogFormat::nccl_tests) continue;
      std::string possible;
      for (const auto one : table.possible_benchmarks)
        possible += fmt::format("{}{}", possible.empty() ? "" : " or ", to_string(one));
      return fmt::format("the log does not say which collective it is of{}; name it by --benchmark",
                         possible.empty() ? std::string() : fmt::format(", by its columns {}", possible));
    }
    for (const auto& table : tables)
      if (table.benchmark && !table.warnings.empty()) return table.warnings.back().message;
    return "no table of a benchmark that is forecast";
  }

  [[nodiscard]] std::string software_line(const SuggestedLog& entry) const {
    const auto software = software_text(entry);
    return software.empty() ? "" : "    software: " + software + "\n";
  }

  [[nodiscard]] std::string entry_text(const SuggestedLog& entry) const {
    std::string out;
    for (const auto& comment : entry.comments) out += fmt::format("  # {}\n", comment);
    return out + fmt::format("  - file: {}\n    workload: {}\n{}", quoted(path_from(folder_, entry.file)),
                             flow_mapping(entry.workload), software_line(entry));
  }

  [[nodiscard]] CalibrationLog log_of(const SuggestedLog& entry) const {
    CalibrationLog log;
    log.file = entry.file;
    log.location.file = entry.file;
    const auto software = software_text(entry);
    log.scenario_text =
        fmt::format("schema: fabricast/scenario/1\nname: x\ntopology: {}\n{}workload: {}\n",
                    quoted(path_from(folder_, topology_file_)), software.empty() ? "" : "software: " + software + "\n",
                    flow_mapping(entry.workload));
    return log;
  }

  /// Median error of the entry under shipped parameters; nothing when it does not run.
  [[nodiscard]] Result<double> error_of(const SuggestedLog& entry) const {
    Calibration one;
    one.file = trial_.file;
    one.logs.push_back(log_of(entry));
    auto data = Dataset::load(one);
    if (!data) return tl::unexpected(data.error());
    const auto& seconds = data->predict(0, {});
    std::vector<double> errors;
    for (std::size_t i = 0; i < seconds.size(); ++i)
      errors.push_back(std::abs(seconds[i] / data->experiments()[0].seconds[i] - 1));
    return percentile(errors, 0.5);
  }

  void add(SuggestedLog entry) {
    const auto error = error_of(entry);
    if (!error) {
      const auto& fault = error.error().front();
      const auto hint = fault.notes.empty() ? "" : "; " + fault.notes.front().text;
      left_out_.push_back(fmt::format("{} {}: {}{}", entry.file, flow_mapping(entry.workload), fault.message, hint));
      return;
    }
    if (*error > k_poor) look_for_settings(entry, *error);
    trial_.logs.push_back(log_of(entry));
    entries_.push_back(std::move(entry));
  }

  using Others = std::vector<std::pair<std::string, SuggestedLog>>;

  static Others other_nccl_settings(const SuggestedLog& entry) {
    Others others;
    const auto add_other = [&](const std::string& what) -> SuggestedLog& {
      others.emplace_back(what, entry);
      return others.back().second;
    };
    if (!has_key(entry.nccl, "p2p")) {
      set_key(add_other("software.nccl.p2p: off").nccl, "p2p", "off");
      auto& socket = add_other("software: {nccl: {p2p: off, shm: off}, transport: tcp}");
      set_key(socket.nccl, "p2p", "off");
      set_key(socket.nccl, "shm", "off");
      set_key(socket.software, "transport", "tcp");
    }
    if (!has_key(entry.nccl, "nvls")) set_key(add_other("software.nccl.nvls: on").nccl, "nvls", "on");
    if (has_key(entry.workload, "algorithm") || has_key(entry.workload, "protocol")) return others;
    for (const auto* algorithm : {"ring", "tree"}) {
      for (const auto* protocol : {"ll", "ll128", "simple"}) {
        auto& forced = add_other(fmt::format("algorithm: {}, protocol: {}", algorithm, protocol));
        set_key(forced.workload, "algorithm", algorithm);
        set_key(forced.workload, "protocol", protocol);
      }
    }
    return others;
  }

  static Others other_mpi_settings(const SuggestedLog& entry) {
    Others others;
    const auto try_one = [&](const char* key, const char* value) {
      if (has_key(entry.software, key)) return;
      others.emplace_back(fmt::format("software.{}: {}", key, value), entry);
      set_key(others.back().second.software, key, value);
    };
    const bool is_osu = !entry.workload.empty() && entry.workload.front().second.starts_with("osu_");
    if (!is_osu) return others;
    try_one("transport", "tcp");
    try_one("gpudirect_rdma", "off");
    try_one("gdrcopy", "off");
    for (const auto* profile : {"open-mpi-openib", "open-mpi-ofi", "mvapich2-gdr", "cray-mpich", "mpich", "intel-mpi"})
      try_one("mpi", profile);
    return others;
  }

  /// A log far from its forecast may have been measured under settings it does not name. What fits better is a comment:
  /// the user knows.
  void look_for_settings(SuggestedLog& entry, double error) const {
    const auto others = has_key(entry.workload, "launch") ? other_nccl_settings(entry) : other_mpi_settings(entry);
    double least = k_much_better * error;
    std::string best;
    for (const auto& [what, other] : others) {
      const auto with = error_of(other);
      if (!with || *with >= least) continue;
      least = *with;
      best = what;
    }
    entry.comments.push_back(
        fmt::format("forecast {:.0f} % off before the fit{}", 100 * error,
                    best.empty() ? "" : fmt::format("; with {{{}}} {:.0f} %: was it measured so?", best, 100 * least)));
  }

  static double largest_change(Dataset& data, std::size_t parameter, const Values& x) {
    double largest = 0;
    for (std::size_t e = 0; e < data.experiments().size(); ++e) {
      const auto& uses = data.experiments()[e].uses;
      if (std::find(uses.begin(), uses.end(), static_cast<int>(parameter)) == uses.end()) continue;
      const auto base = data.predict(e, x);
      for (const double ratio : {0.5, 2.0}) {
        auto moved = x;
        moved[parameter] += std::log(ratio);
        const auto& seconds = data.predict(e, moved);
        for (std::size_t i = 0; i < base.size(); ++i) {
          if (std::isfinite(seconds[i])) largest = std::max(largest, std::abs(std::log(seconds[i] / base[i])));
        }
      }
    }
    return largest;
  }

  /// Parameters that matter and that the data narrow; the others that matter as comments.
  [[nodiscard]] std::string fit_text(Dataset& data) const {
    const auto x = starts_of(data);
    Fitter fitter(data, trial_, {});
    const auto start = fitter.at_start();
    std::string out = "fit:\n";
    std::string weak;
    std::size_t strongest = 0;  // of the weak ones, or the first: a file that fits nothing would be refused
    double most = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double change = start.is_free[i] ? largest_change(data, i, x) : 0;
      if (change > most) strongest = i;
      most = std::max(most, change);
      if (change < k_matters) continue;
      const auto& name = data.parameters()[i].parameter.name;
      // A limit that another one hides has no derivative at the start: the fit finds out.
      const double left = start.data_deviation_ratio[i];
      if (left <= k_determined || left > k_hidden)
        out += fmt::format("  {}: {{}}\n", name);
      else
        weak += fmt::format("  # {}: {{}}\n", name);
    }
    if (out == "fit:\n") out += fmt::format("  {}: {{}}\n", data.parameters()[strongest].parameter.name);
    if (!weak.empty()) out += "  # These matter too, but these logs say less of them than is known already:\n" + weak;
    return out;
  }

  [[nodiscard]] static std::string settings_text(Dataset& data) {
    std::vector<double> floors;
    std::size_t most_sizes = 0;
    const auto x = starts_of(data);
    for (std::size_t e = 0; e < data.experiments().size(); ++e) {
      const auto& experiment = data.experiments()[e];
      const double floor = noise_floor(residuals_of(data, e, x));
      if (floor > 0) floors.push_back(floor);
      most_sizes = std::max(most_sizes, experiment.sizes.size());
    }
    const double noise = floors.empty() ? 0.02 : std::clamp(percentile(floors, 0.5), 0.01, 0.1);
    constexpr std::size_t k_enough_sizes = 12;
    return fmt::format("{}noise: {:.3f}\nstarts: 3\n", most_sizes >= k_enough_sizes ? "hold_out: {every: 4}\n" : "",
                       noise);
  }

  const LoadedTopology& topology_;
  std::string topology_file_, folder_;
  Calibration trial_;
  std::vector<SuggestedLog> entries_;
  std::vector<std::string> left_out_;
};

}  // namespace

}  // namespace fit

Result<std::string> suggest_calibration(const std::string& topology_file, const std::vector<std::string>& logs,
                                        const std::string& folder, std::optional<Benchmark> benchmark) {
  Diagnostics faults;
  const auto topology = load_topology(topology_file);
  if (!topology) faults = topology.error();
  std::vector<std::vector<MeasuredLog>> all;
  for (const auto& file : logs) {
    auto tables = read_logs(file);
    if (tables) {
      for (auto& table : *tables) {
        const bool is_nccl = table.format == LogFormat::nccl_tests || table.format == LogFormat::nccl_tests_json;
        if (benchmark && is_nccl && !table.benchmark && !table.rows.empty()) set_benchmark(table, *benchmark);
      }
      all.push_back(std::move(*tables));
    } else {
      faults.insert(faults.end(), tables.error().begin(), tables.error().end());
    }
  }
  if (!faults.empty()) return tl::unexpected(faults);
  fit::Suggestion suggestion(*topology, topology_file, folder);
  for (const auto& tables : all) suggestion.add(tables);
  return suggestion.text();
}

}  // namespace fabricast
