// SPDX-License-Identifier: Apache-2.0
// Results to text. One function per format; all take the same document, so that a new format is a new file.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fabricast/calibration.hpp"
#include "fabricast/load.hpp"
#include "fabricast/result.hpp"
#include "fabricast/scenario.hpp"
#include "fabricast/validation.hpp"

namespace fabricast::report {

/// Everything a result file says about where it comes from. No date, no host name: the same inputs give the same bytes.
struct Provenance {
  std::string version;
  std::vector<InputFile> inputs;
  std::vector<std::string> parameter_files;
  std::vector<Setting> settings;
  std::uint64_t seed = 1;
  std::string fidelity = "fluid";
};

/// One direction of a link, and how much of it the largest rows use.
struct NamedLinkUse {
  std::string from, to, kind;
  double bytes_per_s = 0;
  double share = 0;
};
struct LinkUseTable {
  std::size_t num_used = 0;         ///< links that carry anything
  std::vector<NamedLinkUse> links;  ///< of them the most used, most first
};

struct Document {
  const Prediction& prediction;
  const Scenario& scenario;
  const Provenance& provenance;
  const LinkUseTable* link_use = nullptr;
};

/// Tables in the benchmark's own columns, then bottleneck, settings, assumptions and provenance as comment lines.
std::string text(const Document& document);
/// One JSON document, schema fabricast/result/1 (docs/FORMATS.md).
std::string json(const Document& document);
/// RFC 4180, one line per row and workload.
std::string csv(const Document& document);
/// One file without network access: table, curve with band, terms, timeline of a step. `further`: HTML before the end,
/// e.g. a picture of the topology, made by whoever can draw it.
std::string html(const Document& document, const std::string& further = {});
/// Chrome/Perfetto trace: the terms of every row, one track per workload and size; flows, queues and rates of the
/// packet engine.
std::string trace(const Document& document);

/// The packet engine's tables: flows, ports, pauses, queues, rates.
struct NamedText {
  std::string name;
  std::string text;
};
constexpr std::array<const char*, 6> k_fabric_tables = {"flows", "ports", "pauses", "spans", "queues", "rates"};
/// One text per name, in that order.
std::vector<NamedText> fabric_csv(const Document& document);

/// The terms of one row with share, parameter and source; they add up to the time.
std::string explain(const WorkloadPrediction& workload, const Row& row);

/// Predictions side by side; the first is the reference of the ratios.
struct Compared {
  std::string name;  ///< file or scenario name
  const Prediction* prediction = nullptr;
  const Scenario* scenario = nullptr;
  const Provenance* provenance = nullptr;
  const ParameterSet* parameters = nullptr;  ///< what the prediction rests on: which errors two of them share
};
std::string compare_text(std::span<const Compared> all);
std::string compare_json(std::span<const Compared> all);
std::string compare_csv(std::span<const Compared> all);
/// One file without network access: curves of all, ratios per size, terms and settings that changed.
std::string compare_html(std::span<const Compared> all);

/// Predicted against measured.
struct Validated {
  std::span<const Validation> logs;
  ValidationSummary overall;
  std::string scenario;
  const WorkloadPrediction* workload = nullptr;  ///< what the logs were compared with
  const Provenance* provenance = nullptr;
  std::vector<SettingEffect> settings;  ///< that would explain the logs, nearest first
  int num_tried = 0;                    ///< settings tried; 0 = the forecast holds, or nothing was to be tried
};
std::string validation_text(const Validated& validated);
std::string validation_json(const Validated& validated);
std::string validation_csv(const Validated& validated);
/// Curves with the band and errors below, one panel per log.
std::string validation_svg(const Validated& validated);
std::string validation_html(const Validated& validated);

/// What a fit found (schema fabricast/calibration_report/1).
std::string calibration_text(const CalibrationReport& report);
std::string calibration_json(const CalibrationReport& report);
std::string calibration_html(const CalibrationReport& report);

/// What `check` says of one file.
struct CheckedFile {
  std::string path;
  Diagnostics found;
  std::string features;
  std::vector<InputFile> inputs;  ///< that were read, as far as they could be
};
std::string check_html(std::span<const CheckedFile> files, const std::string& version);
std::string check_json(std::span<const CheckedFile> files, const std::string& version);

}  // namespace fabricast::report
