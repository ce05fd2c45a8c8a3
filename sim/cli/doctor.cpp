// SPDX-License-Identifier: Apache-2.0
// fabricast doctor CLUSTER LOG..., fabricast expect TOPOLOGY
#include "fabricast/doctor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/sha256.hpp"
#include "base/text.hpp"
#include "cli/command.hpp"
#include "fabricast/inputs.hpp"
#include "report/inputs.hpp"

namespace fabricast::cli {

namespace {

struct DoctorCommand : CommonOptions {
  std::string cluster;
  std::vector<std::string> logs;
  std::string pairs;
};

struct ExpectCommand : CommonOptions {
  std::string cluster;
  std::vector<std::string> benchmarks{"all_reduce_perf"};
  std::vector<std::string> baselines;
  std::vector<std::string> logs;
  std::string floors;
};

const std::vector<std::string> k_doctor_formats{"text", "json"};
const std::vector<std::string> k_expect_formats{"yaml", "json", "superbench"};

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

std::string finding_text(const Finding& one, std::size_t number) {
  std::string out = fmt::format("{}. {} ({})\n   where: {}\n   fix: {}\n", number, one.title, percent(one.weight),
                                one.place, one.fix);
  for (const auto& words : one.words) out += fmt::format("   the log says: {}\n", words);
  for (const auto& row : one.evidence)
    out +=
        fmt::format("   {}:{}: {} took {}, expected {}, with this cause {}\n", row.file, row.line, to_string(row.size),
                    to_string(row.measured), to_string(row.expected), to_string(row.under_cause));
  out += fmt::format("   mean difference over all rows: {} without, {} with this cause\n",
                     percent(std::expm1(one.error_before)), percent(std::expm1(one.error_after)));
  for (const auto& other : one.alike) out += fmt::format("   the same forecast: {}\n", other);
  return out;
}

/// What these logs cannot show.
std::string hidden_text(const Diagnosis& diagnosis) {
  std::string out;
  std::vector<std::string> nowhere;
  for (const auto& one : diagnosis.hidden) {
    if (one.test)
      out += fmt::format("#   {} ({}); next test: {} at {}: {} healthy, {} with it\n", one.title, printable(one.place),
                         one.test->command, to_string(one.test->size), one.test->first, one.test->second);
    else
      nowhere.push_back(one.title);
  }
  if (!out.empty()) out = "# indistinguishable from a healthy cluster on these logs:\n" + out;
  if (!nowhere.empty())
    out += fmt::format("# no simulated test of this cluster shows by 10 %: {}\n", fmt::join(nowhere, "; "));
  return out;
}

std::string findings_text(const Diagnosis& diagnosis) {
  const auto head = fmt::format("# {} rows, {} causes simulated; median {} {} than expected\n", diagnosis.num_rows,
                                diagnosis.num_causes, percent(std::abs(diagnosis.slower)),
                                diagnosis.slower >= 0 ? "slower" : "faster");
  if (diagnosis.is_healthy)
    return head + "nothing wrong: the logs are as expected, or no known cause explains the difference\n" +
           hidden_text(diagnosis);
  auto out = head;
  if (!diagnosis.is_explained)
    out += fmt::format("far slower than forecasts are off, and no known cause explains most of it{}\n",
                       diagnosis.findings.empty() ? "" : "; the nearest:");
  for (std::size_t i = 0; i < diagnosis.findings.size(); ++i) out += finding_text(diagnosis.findings[i], i + 1);
  if (diagnosis.next)
    out += fmt::format("next: {} at {}: {} if 1 is right, {} if 2 is\n", diagnosis.next->command,
                       to_string(diagnosis.next->size), diagnosis.next->first, diagnosis.next->second);
  return out + hidden_text(diagnosis);
}

std::string diagnosis_text(const Diagnosis& diagnosis) {
  return findings_text(diagnosis) + "# inputs:\n" + report::inputs_text(report::sums_of(diagnosis.inputs));
}

std::string diagnosis_json(const Diagnosis& diagnosis) {
  nlohmann::ordered_json out;
  out["schema"] = "fabricast/diagnosis/1";
  out["inputs"] = report::inputs_json(report::sums_of(diagnosis.inputs));
  out["healthy"] = diagnosis.is_healthy;
  out["explained"] = diagnosis.is_explained;
  out["rows"] = diagnosis.num_rows;
  out["causes_simulated"] = diagnosis.num_causes;
  out["slower"] = diagnosis.slower;
  out["error_healthy"] = diagnosis.error_healthy;
  out["findings"] = nlohmann::ordered_json::array();
  for (const auto& one : diagnosis.findings) {
    nlohmann::ordered_json finding{{"cause", one.cause},
                                   {"title", one.title},
                                   {"place", printable(one.place)},
                                   {"fix", one.fix},
                                   {"weight", one.weight},
                                   {"error_before", one.error_before},
                                   {"error_after", one.error_after}};
    finding["alike"] = one.alike;
    finding["alike_causes"] = one.alike_causes;
    finding["evidence"] = nlohmann::ordered_json::array();
    for (const auto& words : one.words) finding["words"].push_back(printable(words));
    for (const auto& row : one.evidence)
      finding["evidence"].push_back({{"file", printable(row.file)},
                                     {"line", row.line},
                                     {"size_bytes", row.size.value},
                                     {"measured_ps", row.measured.ps},
                                     {"expected_ps", row.expected.ps},
                                     {"under_cause_ps", row.under_cause.ps}});
    out["findings"].push_back(std::move(finding));
  }
  out["hidden"] = nlohmann::ordered_json::array();
  for (const auto& one : diagnosis.hidden) {
    nlohmann::ordered_json hidden{{"cause", one.cause}, {"title", one.title}, {"place", printable(one.place)}};
    if (one.test)
      hidden["test"] = {{"command", one.test->command},
                        {"size_bytes", one.test->size.value},
                        {"healthy", one.test->first},
                        {"under_cause", one.test->second}};
    out["hidden"].push_back(std::move(hidden));
  }
  if (diagnosis.next)
    out["next_test"] = {{"command", diagnosis.next->command},
                        {"size_bytes", diagnosis.next->size.value},
                        {"under_first", diagnosis.next->first},
                        {"under_second", diagnosis.next->second}};
  return out.dump(1) + "\n";
}

std::string pairs_json(const PairGroups& groups, std::size_t num_pairs, const report::InputSums& inputs) {
  nlohmann::ordered_json out;
  out["schema"] = "fabricast/pairs/1";
  out["inputs"] = report::inputs_json(inputs);
  out["pairs"] = num_pairs;
  out["near"] = groups.near;
  out["far"] = groups.far;
  out["groups"] = groups.groups;
  out["slow_hosts"] = groups.slow_hosts;
  return out.dump(1) + "\n";
}

std::string pairs_text(const PairGroups& groups, std::size_t num_pairs, const report::InputSums& inputs) {
  std::string out = fmt::format("# {} pairs; {} group{}, median {:.4g} inside, {:.4g} between\n", num_pairs,
                                groups.groups.size(), groups.groups.size() == 1 ? "" : "s", groups.near, groups.far);
  for (std::size_t i = 0; i < groups.groups.size(); ++i)
    out += fmt::format("group {}: {}\n", i, fmt::join(groups.groups[i], " "));
  for (const auto& host : groups.slow_hosts) out += fmt::format("slow host: {} (all of its pairs)\n", host);
  return out + "# inputs:\n" + report::inputs_text(inputs);
}

int pairs_command(const DoctorCommand& command, const std::string& format) {
  int exit_code = exit_ok;
  if (!command.cluster.empty() || !command.logs.empty())
    throw CLI::ValidationError("--pairs", "stands alone: it needs no cluster and no logs");
  refuse_overwriting(std::vector<OutputFile>{{"-o", command.output}}, std::vector<std::string>{command.pairs});
  const auto text = read_text(command.pairs, exit_code);
  if (!text) return exit_code;
  const auto pairs = usable(read_pairs(*text, command.pairs), exit_code);
  if (!pairs) return exit_code;
  const auto groups = group_pairs(*pairs);
  const report::InputSums inputs{{command.pairs, sha256_of_text(*text)}};
  write_output(command.output,
               format == "json" ? pairs_json(groups, pairs->size(), inputs) : pairs_text(groups, pairs->size(), inputs),
               exit_code);
  if (exit_code == exit_ok && !groups.slow_hosts.empty()) exit_code = exit_limit_missed;
  return exit_code;
}

int doctor_command(const DoctorCommand& command) {
  int exit_code = exit_ok;
  const auto format = format_of(command, k_doctor_formats);
  if (!command.pairs.empty()) return pairs_command(command, format);
  if (command.cluster.empty() || command.logs.empty())
    throw CLI::ValidationError("doctor", "give CLUSTER and LOG..., or --pairs FILE");
  refuse_overwriting(std::vector<OutputFile>{{"-o", command.output}}, command.logs);
  DoctorOptions options{command.parameter_files, parse_settings(command.settings), nullptr};
  const auto diagnosis = usable(diagnose(command.cluster, command.logs, options), exit_code);
  if (!diagnosis) return exit_code;
  protect_inputs({{"-o", command.output}}, diagnosis->inputs);
  print_faults(diagnosis->warnings);
  write_output(command.output, format == "json" ? diagnosis_json(*diagnosis) : diagnosis_text(*diagnosis), exit_code);
  if (exit_code == exit_ok && !diagnosis->is_healthy) exit_code = exit_limit_missed;
  return exit_code;
}

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

/// --check: logs against floors that were written before, or are made now.
int check_logs(const ExpectCommand& command, const std::vector<Floor>& floors, std::vector<InputFile> inputs) {
  int exit_code = exit_ok;
  std::vector<CheckedTable> checked;
  for (const auto& path : command.logs) {
    const auto tables = usable(read_logs(path), exit_code);
    if (!tables) return exit_code;
    int rows = 0;
    for (const auto& table : *tables) {
      const auto check = check_floors(table, floors);
      rows += check.num_rows;
      if (check.num_rows == 0) continue;
      checked.push_back({path, table.benchmark ? std::string(to_string(*table.benchmark)) : "", check});
      if (check.is_missed) exit_code = exit_limit_missed;
    }
    if (rows == 0) {
      say(fmt::format("{}: error: no row has a floor (benchmark, ranks and sizes must be those of the floors)\n",
                      path));
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
std::optional<std::vector<Bytes>> sizes_of_logs(const std::vector<std::string>& logs, int& exit_code) {
  std::set<Bytes> sizes;
  for (const auto& path : logs) {
    const auto tables = usable(read_logs(path), exit_code);
    if (!tables) return std::nullopt;
    for (const auto& table : *tables) {
      for (const auto& row : table.rows) sizes.insert(row.size);
    }
  }
  return std::vector<Bytes>(sizes.begin(), sizes.end());
}

int expect_command(const ExpectCommand& command) {
  int exit_code = exit_ok;
  if (!command.logs.empty() && !command.format.empty() && command.format != "json")
    throw CLI::ValidationError("--format", "of --check is json or, when it is left out, text");
  if (!command.floors.empty()) {
    if (command.logs.empty()) throw CLI::ValidationError("--floors", "needs logs: --check LOG...");
    if (!command.cluster.empty() || !command.baselines.empty())
      throw CLI::ValidationError("--floors", "stands for CLUSTER and --baseline: give one of them");
    const auto text = read_text(command.floors, exit_code);
    if (!text) return exit_code;
    const auto floors = usable(read_floors(*text, command.floors), exit_code);
    return floors ? check_logs(command, *floors, {{command.floors, sha256_of_text(*text)}}) : exit_code;
  }
  if (command.cluster.empty()) throw CLI::ValidationError("CLUSTER", "is required");
  ExpectOptions options;
  for (const auto& name : command.benchmarks) {
    const auto benchmark = benchmark_from_name(name);
    const bool is_known = benchmark && family_of(*benchmark) != BenchmarkFamily::training &&
                          family_of(*benchmark) != BenchmarkFamily::sharing &&
                          family_of(*benchmark) != BenchmarkFamily::traffic &&
                          family_of(*benchmark) != BenchmarkFamily::system;
    if (!is_known) {
      const auto near = nearest_name(name, benchmark_names());
      throw CLI::ValidationError("--benchmark",
                                 fmt::format("'{}' is no benchmark of nccl-tests, OSU or perftest{}", name,
                                             near.empty() ? "" : fmt::format(": did you mean '{}'?", near)));
    }
    options.benchmarks.push_back(*benchmark);
  }
  options.parameter_files = command.parameter_files;
  options.settings = parse_settings(command.settings);
  options.baselines = command.baselines;
  const auto sizes = sizes_of_logs(command.logs, exit_code);
  if (!sizes) return exit_code;
  options.sizes = *sizes;
  const auto expectations = usable(expect(command.cluster, options), exit_code);
  if (!expectations) return exit_code;
  protect_inputs({{"-o", command.output}}, expectations->inputs);
  if (!command.logs.empty()) return check_logs(command, expectations->floors, expectations->inputs);
  auto format = command.format;
  if (format.empty()) format = command.output.ends_with(".json") ? "json" : "yaml";
  const auto text = format == "json"         ? expectations_json(*expectations)
                    : format == "superbench" ? superbench_rules(*expectations)
                                             : expectations_yaml(*expectations);
  write_output(command.output, text, exit_code);
  return exit_code;
}

}  // namespace

void add_doctor(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<DoctorCommand>();
  auto* command = app.add_subcommand(
      "doctor", "why logs are slower than expected: causes simulated, ranked, with fix and next test");
  command->footer(
      "CLUSTER is a topology, or a scenario whose workload and software the logs were taken with. Exit code 1: a cause "
      "was\nfound.\n\nExamples:\n"
      "  fabricast doctor cluster.yaml all_reduce_2hosts.log all_reduce_1host.log ib_write_bw.log\n"
      "  fabricast doctor --pairs pairs.csv");
  command->add_option("CLUSTER", options->cluster, "topology or scenario")->type_name("FILE");
  command->add_option("LOGS", options->logs, "logs of nccl-tests, OSU or perftest")->type_name("LOG...");
  command
      ->add_option("--pairs", options->pairs, "host, host, time per line: which hosts share a switch, which are slow")
      ->type_name("FILE");
  add_what_if_options(*command, *options, "parameter file", "change one value first");
  add_output_options(*command, *options, k_doctor_formats);
  command->callback([options, &exit_code] { exit_code = doctor_command(*options); });
}

void add_expect(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ExpectCommand>();
  auto* command =
      app.add_subcommand("expect", "what a healthy cluster should reach per size and count, and logs against it");
  command->footer(
      "Exit code 1: a log misses: half of its large rows are below their floors, or it is 12 % slower than expected in "
      "the\nmedian (25 % where only large sizes are).\n\nExamples:\n"
      "  fabricast expect cluster.yaml --benchmark all_reduce_perf --benchmark alltoall_perf -o floors.yaml\n"
      "  fabricast expect --floors floors.yaml --check nightly.log\n"
      "  fabricast expect cluster.yaml --baseline healthy.log --format superbench -o rules.yaml");
  command->add_option("CLUSTER", options->cluster, "topology, or a scenario: its first workload and software")
      ->type_name("FILE");
  command->add_option("--benchmark", options->benchmarks, "of a topology; default all_reduce_perf (repeatable)")
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
