// SPDX-License-Identifier: Apache-2.0
// fabricast expect TOPOLOGY
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/sha256.hpp"
#include "base/text.hpp"
#include "cli/command.hpp"
#include "fabricast/doctor.hpp"
#include "fabricast/inputs.hpp"
#include "report/inputs.hpp"

namespace fabricast::cli {

namespace {

struct ExpectCommand : CommonOptions {
  std::string cluster;
  std::vector<std::string> benchmarks;
  std::vector<std::string> baselines;
  std::vector<std::string> logs;
  std::string floors;
};

const std::vector<std::string> k_expect_formats{"yaml", "json", "superbench"};

/// One table of a log against its floors.
struct CheckedTable {
  std::string file, benchmark;
  FloorCheck check;
};

std::string checks_text(const std::vector<CheckedTable>& tables, const report::InputSums& inputs) {
  std::string out;
  for (const auto& [file, benchmark, check] : tables) {
    out += fmt::format("{}: {}: {} of {} rows below their floor: {}\n", file, benchmark, check.num_below,
                       check.num_rows, check.is_missed ? "missed" : "ok");
    for (std::size_t i = 0; check.is_missed && i < check.lines.size() && i < 5; ++i)
      out += "  " + check.lines[i] + "\n";
  }
  return out + "# inputs:\n" + report::inputs_text(inputs);
}

std::string checks_json(const std::vector<CheckedTable>& tables, const report::InputSums& inputs) {
  nlohmann::ordered_json out;
  out["schema"] = "fabricast/floor-check/1";
  out["inputs"] = report::inputs_json(inputs);
  out["tables"] = nlohmann::ordered_json::array();
  for (const auto& [file, benchmark, check] : tables) {
    nlohmann::ordered_json table{{"file", printable(file)},   {"benchmark", benchmark},
                                 {"rows", check.num_rows},    {"rows_below", check.num_below},
                                 {"missed", check.is_missed}, {"lines", nlohmann::ordered_json::array()}};
    for (const auto& line : check.lines) table["lines"].push_back(printable(line));
    out["tables"].push_back(std::move(table));
  }
  return out.dump(1) + "\n";
}

/// "all_reduce_perf, 16 ranks on 2 hosts": what floors are for, each once.
std::string kinds_of(const std::vector<Floor>& floors) {
  std::vector<std::string> out;
  for (const auto& one : floors) {
    auto kind = fmt::format("{}, {} ranks on {} host{}", to_string(one.benchmark), one.ranks, one.hosts,
                            one.hosts == 1 ? "" : "s");
    if (std::find(out.begin(), out.end(), kind) == out.end()) out.push_back(std::move(kind));
  }
  return fmt::format("{}", fmt::join(out, "; "));
}

/// Logs of the command, each read once.
class Logs {
 public:
  /// Its tables; nullptr where it cannot be read, which is said.
  const std::vector<MeasuredLog>* tables(const std::string& path, int& exit_code) {
    const auto known = read_.find(path);
    if (known != read_.end()) return &known->second;
    auto found = usable(read_logs(path), exit_code);
    return found ? &read_.emplace(path, std::move(*found)).first->second : nullptr;
  }

 private:
  std::map<std::string, std::vector<MeasuredLog>> read_;
};

/// --check: logs against floors that were written before, or are made now.
int check_logs(const ExpectCommand& command, Logs& logs, const std::vector<Floor>& floors,
               std::vector<InputFile> inputs) {
  int exit_code = exit_ok;
  std::vector<CheckedTable> checked;
  for (const auto& path : command.logs) {
    const auto* tables = logs.tables(path, exit_code);
    if (tables == nullptr) return exit_code;
    int rows = 0;
    for (const auto& table : *tables) {
      const auto check = check_floors(table, floors);
      rows += check.num_rows;
      if (check.num_rows == 0) continue;
      checked.push_back({path, table.benchmark ? std::string(to_string(*table.benchmark)) : "", check});
      if (check.is_missed) exit_code = exit_limit_missed;
    }
    if (rows == 0) {
      say(
          fmt::format("{}: error: no row has a floor (benchmark, ranks and sizes must be those of the floors)\n"
                      "      = note: floors are of {}\n"
                      "      = note: a scenario in CLUSTER's place makes them of its workload\n",
                      path, kinds_of(floors)));
      return exit_input;
    }
    note_hash(inputs, path, tables->front().sha256);
  }
  protect_inputs({{"-o", command.output}}, inputs);
  const bool is_json = command.format.empty() ? command.output.ends_with(".json") : command.format == "json";
  const auto sums = report::sums_of(inputs);
  int written = exit_ok;
  write_output(command.output, is_json ? checks_json(checked, sums) : checks_text(checked, sums), written);
  return written == exit_ok ? exit_code : written;
}

/// All sizes that logs have rows of: floors are made for them.
std::optional<std::vector<Bytes>> sizes_of_logs(const ExpectCommand& command, Logs& logs, int& exit_code) {
  std::set<Bytes> sizes;
  for (const auto& path : command.logs) {
    const auto* tables = logs.tables(path, exit_code);
    if (tables == nullptr) return std::nullopt;
    for (const auto& table : *tables) {
      for (const auto& row : table.rows) sizes.insert(row.size);
    }
  }
  return std::vector<Bytes>(sizes.begin(), sizes.end());
}

bool has_floors(Benchmark benchmark) {
  const auto family = family_of(benchmark);
  return family == BenchmarkFamily::nccl_tests || family == BenchmarkFamily::osu || family == BenchmarkFamily::perftest;
}

/// OSU's collectives and pairs do not print how many took part: without it a topology has no floor for them.
bool says_ranks(const MeasuredLog& table) {
  const bool is_open = family_of(*table.benchmark) == BenchmarkFamily::osu &&
                       (is_collective(*table.benchmark) || table.benchmark == Benchmark::osu_multi_lat);
  return !is_open || table.header.num_ranks;
}

/// Those that are asked for, else those of the logs.
std::optional<std::vector<Benchmark>> benchmarks_of(const ExpectCommand& command, Logs& logs, int& exit_code) {
  std::set<Benchmark> out;
  for (const auto& name : command.benchmarks) {
    const auto benchmark = benchmark_from_name(name);
    if (!benchmark || !has_floors(*benchmark)) {
      const auto near = nearest_name(name, benchmark_names());
      throw CLI::ValidationError("--benchmark",
                                 fmt::format("'{}' is no benchmark of nccl-tests, OSU or perftest{}", name,
                                             near.empty() ? "" : fmt::format(": did you mean '{}'?", near)));
    }
    out.insert(*benchmark);
  }
  for (const auto* paths : {&command.baselines, &command.logs}) {
    if (!command.benchmarks.empty()) break;
    for (const auto& path : *paths) {
      const auto* tables = logs.tables(path, exit_code);
      if (tables == nullptr) return std::nullopt;
      for (const auto& table : *tables) {
        if (table.benchmark && has_floors(*table.benchmark) && says_ranks(table)) out.insert(*table.benchmark);
      }
    }
  }
  if (out.empty()) out.insert(Benchmark::all_reduce_perf);
  return std::vector<Benchmark>(out.begin(), out.end());
}

int expect_command(const ExpectCommand& command) {
  int exit_code = exit_ok;
  Logs logs;
  if (!command.logs.empty() && !command.format.empty() && command.format != "json")
    throw CLI::ValidationError("--format", "of --check is json or, when it is left out, text");
  if (!command.floors.empty()) {
    if (command.logs.empty()) throw CLI::ValidationError("--floors", "needs logs: --check LOG...");
    if (!command.cluster.empty() || !command.baselines.empty())
      throw CLI::ValidationError("--floors", "stands for CLUSTER and --baseline: give one of them");
    const auto text = read_text(command.floors, exit_code);
    if (!text) return exit_code;
    const auto floors = usable(read_floors(*text, command.floors), exit_code);
    return floors ? check_logs(command, logs, *floors, {{command.floors, sha256_of_text(*text)}}) : exit_code;
  }
  if (command.cluster.empty()) throw CLI::ValidationError("CLUSTER", "is required");
  ExpectOptions options;
  auto benchmarks = benchmarks_of(command, logs, exit_code);
  if (!benchmarks) return exit_code;
  options.benchmarks = std::move(*benchmarks);
  options.parameter_files = command.parameter_files;
  options.settings = parse_settings(command.settings);
  options.baselines = command.baselines;
  const auto sizes = sizes_of_logs(command, logs, exit_code);
  if (!sizes) return exit_code;
  options.sizes = *sizes;
  const auto expectations = usable(expect(command.cluster, options), exit_code);
  if (!expectations) return exit_code;
  protect_inputs({{"-o", command.output}}, expectations->inputs);
  if (!command.logs.empty()) return check_logs(command, logs, expectations->floors, expectations->inputs);
  auto format = command.format;
  if (format.empty()) format = command.output.ends_with(".json") ? "json" : "yaml";
  const auto text = format == "json"         ? expectations_json(*expectations)
                    : format == "superbench" ? superbench_rules(*expectations)
                                             : expectations_yaml(*expectations);
  write_output(command.output, text, exit_code);
  return exit_code;
}

}  // namespace

void add_expect(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ExpectCommand>();
  auto* command =
      app.add_subcommand("expect", "what a healthy cluster should reach per size and count, and logs against it");
  command->footer(
      "Exit code 1: a log misses: half of its large rows are below their floors, or it is 12 % slower than expected in "
      "the\nmedian (25 % where only large sizes are).\n\nExamples:\n"
      "  fabricast expect cluster.yaml --benchmark all_reduce_perf --benchmark alltoall_perf -o floors.yaml\n"
      "  fabricast expect --floors floors.yaml --check nightly.log\n"
      "  fabricast expect cluster.yaml --baseline last_week.log --check today.log\n"
      "  fabricast expect cluster.yaml --baseline healthy.log --format superbench -o rules.yaml");
  command->add_option("CLUSTER", options->cluster, "topology, or a scenario: its first workload and software")
      ->type_name("FILE");
  command
      ->add_option("--benchmark", options->benchmarks,
                   "of a topology; default those of the logs, else all_reduce_perf (repeatable)")
      ->type_name("NAME")
      ->allow_extra_args(false);
  command->add_option("--baseline", options->baselines, "log of this cluster when it was healthy (repeatable)")
      ->type_name("LOG")
      ->allow_extra_args(false);
  command->add_option("--floors", options->floors, "floors that were written before, for --check")->type_name("FILE");
  command->add_option("--check", options->logs, "logs to hold against the floors")->type_name("LOG...");
  add_what_if_options(*command, *options, "parameter file", "change one value of the topology");
  command->add_option("--format", options->format, "default: by the suffix of -o, else yaml")
      ->check(CLI::IsMember(k_expect_formats).description(""))
      ->type_name("yaml|json|superbench");
  add_output_file(*command, *options);
  command->callback([options, &exit_code] { exit_code = expect_command(*options); });
}

}  // namespace fabricast::cli
