// SPDX-License-Identifier: Apache-2.0
// A checked calibration document to values. Logs with a `workload` of their own get a scenario document made from the
// file's topology and software.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/text.hpp"
#include "config/plan.hpp"
#include "config/readers.hpp"
#include "config/schema.hpp"

namespace fabricast::config {

namespace {

/// `$NAME/rest`: the folder that the environment names; files of a folder that is not set are absent.
std::string log_path(const std::string& folder, const std::string& file) {
  if (file.empty() || file[0] != '$') return resolved(folder, file);
  const auto slash = std::min(file.find('/'), file.size());
  const auto* value = std::getenv(file.substr(1, slash - 1).c_str());
  return value == nullptr ? file : value + file.substr(slash);
}

class CalibrationReader {
 public:
  CalibrationReader(const Node& document, std::string folder, Diagnostics& faults)
      : document_(document), folder_(std::move(folder)), faults_(faults) {}

  Calibration read() {
    Calibration out;
    out.name = document_.find("name")->scalar;
    out.file = document_.source->name;
    if (const auto* description = document_.find("description")) out.description = description->scalar;
    for (const auto& item : document_.find("logs")->items) out.logs.push_back(read_log(item));
    if (out.logs.empty()) faults_.push_back(document_.find("logs")->error("'logs' is empty", "list at least one log"));
    for (const auto& entry : document_.find("fit")->entries) out.parameters.push_back(read_parameter(entry));
    if (const auto* files = document_.find("parameters_before")) {
      for (const auto& file : files->items) out.parameter_files.push_back(resolved(folder_, file.scalar));
    }
    if (const auto* hold_out = document_.find("hold_out")) read_hold_out(*hold_out, out);
    if (const auto* noise = document_.find("noise")) out.noise = as_quantity(*noise, Dimension::number);
    if (const auto* loss = document_.find("loss")) out.loss = loss->scalar == "squared" ? Loss::squared : Loss::soft_l1;
    if (const auto* starts = document_.find("starts")) out.starts = static_cast<int>(as_integer(*starts));
    if (const auto* intervals = document_.find("intervals"))
      out.intervals = intervals->scalar == "bootstrap" ? IntervalMethod::bootstrap : IntervalMethod::covariance;
    if (const auto* samples = document_.find("bootstrap_samples"))
      out.bootstrap_samples = static_cast<int>(as_integer(*samples));
    return out;
  }

 private:
  CalibrationLog read_log(const Node& node) {
    CalibrationLog log;
    log.location = node.location();
    log.file = log_path(folder_, node.find("file")->scalar);
    if (const auto* scenario = node.find("scenario")) log.scenario_file = resolved(folder_, scenario->scalar);
    if (const auto* workload = node.find("workload")) log.scenario_text = scenario_of(node, *workload);
    if (const auto* settings = node.find("set")) {
      for (const auto& entry : settings->entries) log.settings.push_back({entry.key.scalar, entry.value.scalar});
    }
    if (const auto* rows = node.find("rows")) {
      for (const auto& item : rows->items) log.rows.push_back(item.scalar);
    }
    if (const auto* held_out = node.find("hold_out")) log.is_held_out = as_flag(*held_out);
    if (const auto* optional = node.find("optional")) log.is_optional = as_flag(*optional);
    if (const auto* weight = node.find("weight")) log.weight = as_quantity(*weight, Dimension::number);
    return log;
  }

  /// The topology's path is relative to the calibration file, in whose folder the document is read.
  std::string scenario_of(const Node& log, const Node& workload) {
    const auto* topology = document_.find("topology");
    if (topology == nullptr) {
      faults_.push_back(workload.error("a log with a workload needs the file's 'topology'",
                                       "add `topology: FILE` at the top of the calibration file, or use `scenario`"));
      return "";
    }
    const auto* software = log.find("software") != nullptr ? log.find("software") : document_.find("software");
    std::string text = fmt::format("schema: fabricast/scenario/1\nname: {}\ntopology: {}\n",
                                   yaml_quoted(log.find("file")->scalar), yaml_quoted(topology->scalar));
    if (software != nullptr) text += "software: " + flow_text(*software) + "\n";
    return text + "workload: " + flow_text(workload) + "\n";
  }

  static CalibrationParameter read_parameter(const Node::Entry& entry) {
    CalibrationParameter out;
    out.pattern = entry.key.scalar;
    out.location = entry.key.location();
    const auto text = [&](const char* key) -> std::optional<std::string> {
      const auto* found = entry.value.find(key);
      return found == nullptr ? std::nullopt : std::optional(found->scalar);
    };
    out.start = text("start");
    out.low = text("low");
    out.high = text("high");
    if (const auto* prior = entry.value.find("prior")) out.prior = as_quantity(*prior, Dimension::number);
    return out;
  }

  static void read_hold_out(const Node& node, Calibration& out) {
    if (const auto* every = node.find("every")) out.hold_out_every = static_cast<int>(as_integer(*every));
    if (const auto* sizes = node.find("sizes")) {
      for (const auto& item : sizes->items) out.hold_out_sizes.push_back(as_size(item));
    }
    if (const auto* ranks = node.find("ranks")) {
      for (const auto& item : ranks->items) out.hold_out_ranks.push_back(static_cast<int>(as_integer(item)));
    }
    if (const auto* hosts = node.find("hosts")) {
      for (const auto& item : hosts->items) out.hold_out_hosts.push_back(static_cast<int>(as_integer(item)));
    }
  }

  const Node& document_;
  std::string folder_;
  Diagnostics& faults_;
};

}  // namespace

Calibration read_calibration(const Node& document, const std::string& folder, Diagnostics& faults) {
  return CalibrationReader(document, folder, faults).read();
}

}  // namespace fabricast::config
