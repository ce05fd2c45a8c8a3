// SPDX-License-Identifier: Apache-2.0
// fabricast doctor CLUSTER LOG...
#include "fabricast/doctor.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/sha256.hpp"
#include "base/text.hpp"
#include "cli/command.hpp"
#include "fabricast/inputs.hpp"
#include "report/inputs.hpp"

namespace fabricast::cli {

namespace {

struct DoctorCommand : CommonOptions {
  std::string cluster;
  std::vector<std::string> logs, baselines, bare_metal_baselines;
  std::string pairs;
};

constexpr std::size_t k_most_sizes = 8;  ///< in a line for people
const std::vector<std::string> k_doctor_formats{"text", "json"};

std::string percent(double share) { return fmt::format("{:.0f} %", 100 * share); }

std::string finding_text(const Finding& one, std::size_t number) {
  std::string out = fmt::format("{}. {} ({})\n   where: {}\n   fix: {}\n", number, one.title, percent(one.weight),
                                one.place, one.fix);
  for (const auto& words : one.words) out += fmt::format("   the log says: {}\n", words);
  for (const auto& row : one.evidence)
    out += fmt::format("   {}:{}: {} took {}, expected {}{}, with this cause {}\n", row.file, row.line,
                       to_string(row.size), to_string(row.measured), to_string(row.expected),
                       row.baseline.empty() ? "" : fmt::format(" ({})", row.baseline), to_string(row.under_cause));
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

/// Which rows were held against healthy runs.
std::string covered_text(const Diagnosis& diagnosis) {
  if (diagnosis.covered.empty()) return "";
  auto out = fmt::format("# a healthy run's time is expected in {} of {} rows, the forecast's in the others\n",
                         diagnosis.num_rows_with_baseline, diagnosis.num_rows);
  for (const auto& table : diagnosis.covered) {
    out += fmt::format("#   {}:{}: {} of {}", printable(table.file), table.line,
                       table.num_rows - static_cast<int>(table.by_forecast.size()), table.num_rows);
    std::vector<std::string> sizes;
    for (const auto size : table.by_forecast) sizes.push_back(to_string(size));
    const auto more = sizes.size() > k_most_sizes ? sizes.size() - k_most_sizes : 0;
    sizes.resize(sizes.size() - more);
    if (!sizes.empty()) out += fmt::format("; by forecast {}", fmt::join(sizes, ", "));
    out += more > 0 ? fmt::format(" and {} more\n", more) : "\n";
  }
  return out;
}

/// What the VMs cost as described, and how to get it back.
std::string virtual_text(const Diagnosis& diagnosis) {
  if (!diagnosis.virtualization) return "";
  const auto& cost = *diagnosis.virtualization;
  auto out =
      fmt::format("# the VMs as described add up to {} (at {}) to {}: expected, no fault\n", percent(cost.share),
                  to_string(cost.size), cost.is_measured ? "what bare metal took" : "bare metal, by the forecast");
  for (const auto& one : cost.settings)
    out += fmt::format("#   {} left with {}: {}\n", percent(one.share_left), one.setting, one.title);
  return out;
}

std::string findings_text(const Diagnosis& diagnosis) {
  const auto head = fmt::format("# {} row{}, {} causes simulated; median {} {} than expected\n", diagnosis.num_rows,
                                diagnosis.num_rows == 1 ? "" : "s", diagnosis.num_causes,
                                percent(std::abs(diagnosis.slower)), diagnosis.slower >= 0 ? "slower" : "faster") +
                    covered_text(diagnosis) + virtual_text(diagnosis);
  if (diagnosis.is_healthy)
    return head + "nothing wrong: the logs are as expected, or no known cause explains the difference\n" +
           hidden_text(diagnosis);
  auto out = head;
  if (!diagnosis.is_explained)
    out +=
        fmt::format("{}, and no known cause explains most of it{}\n",
                    diagnosis.is_below_baseline ? "slower than the healthy run" : "far slower than forecasts are off",
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
  out["rows_with_baseline"] = diagnosis.num_rows_with_baseline;
  if (!diagnosis.covered.empty()) {
    out["below_baseline"] = diagnosis.is_below_baseline;
    out["covered"] = nlohmann::ordered_json::array();
    for (const auto& table : diagnosis.covered) {
      nlohmann::ordered_json covered{{"file", printable(table.file)}, {"line", table.line}, {"rows", table.num_rows}};
      covered["by_forecast_size_bytes"] = nlohmann::ordered_json::array();
      for (const auto size : table.by_forecast) covered["by_forecast_size_bytes"].push_back(size.value);
      out["covered"].push_back(std::move(covered));
    }
  }
  if (const auto& cost = diagnosis.virtualization) {
    auto settings = nlohmann::ordered_json::array();
    for (const auto& one : cost->settings)
      settings.push_back(
          {{"causes", one.causes}, {"setting", one.setting}, {"title", one.title}, {"share_left", one.share_left}});
    out["virtualization_cost"] = {{"share", cost->share},
                                  {"size_bytes", cost->size.value},
                                  {"of_measured_bare_metal", cost->is_measured},
                                  {"settings", std::move(settings)}};
  }
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
    for (const auto& row : one.evidence) {
      finding["evidence"].push_back({{"file", printable(row.file)},
                                     {"line", row.line},
                                     {"size_bytes", row.size.value},
                                     {"measured_ps", row.measured.ps},
                                     {"expected_ps", row.expected.ps},
                                     {"under_cause_ps", row.under_cause.ps}});
      if (!row.baseline.empty()) finding["evidence"].back()["baseline"] = printable(row.baseline);
    }
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
  if (!command.cluster.empty() || !command.logs.empty() || !command.baselines.empty() ||
      !command.bare_metal_baselines.empty())
    throw CLI::ValidationError("--pairs", "stands alone: it needs no cluster, no logs and no baselines");
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
  for (const auto* read : {&command.logs, &command.baselines, &command.bare_metal_baselines})
    refuse_overwriting(std::vector<OutputFile>{{"-o", command.output}}, *read);
  DoctorOptions options;
  options.parameter_files = command.parameter_files;
  options.settings = parse_settings(command.settings);
  options.baselines = command.baselines;
  options.bare_metal_baselines = command.bare_metal_baselines;
  const auto diagnosis = usable(diagnose(command.cluster, command.logs, options), exit_code);
  if (!diagnosis) return exit_code;
  protect_inputs({{"-o", command.output}}, diagnosis->inputs);
  print_faults(diagnosis->warnings);
  write_output(command.output, format == "json" ? diagnosis_json(*diagnosis) : diagnosis_text(*diagnosis), exit_code);
  if (exit_code == exit_ok && !diagnosis->is_healthy) exit_code = exit_limit_missed;
  return exit_code;
}

}  // namespace

void add_doctor(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<DoctorCommand>();
  auto* command = app.add_subcommand(
      "doctor", "why logs are slower than expected: causes simulated, ranked, with fix and next test");
  command->footer(
      "CLUSTER is a topology, or a scenario whose workload and software the logs were taken with. Exit code 1: a cause "
      "was\nfound, or a log is slower than its healthy run.\n\n"
      "A baseline serves rows of the same benchmark, ranks, hosts and size (or between two sizes): they are expected "
      "to "
      "take\nwhat it took, and the forecast's own error drops out; the other rows are held against the forecast. "
      "--baseline is of\nthe cluster as CLUSTER describes it. Where that has VMs and the healthy run had none, "
      "--bare-metal-baseline adds what\nthe VMs cost by the forecast.\n\nExamples:\n"
      "  fabricast doctor cluster.yaml all_reduce_2hosts.log all_reduce_1host.log ib_write_bw.log\n"
      "  fabricast doctor cluster.yaml today.log --baseline last_week.log\n"
      "  fabricast doctor --pairs pairs.csv");
  command->add_option("CLUSTER", options->cluster, "topology or scenario")->type_name("FILE");
  command->add_option("LOGS", options->logs, "logs of nccl-tests, OSU, perftest, iperf3 or sockperf")
      ->type_name("LOG...");
  command->add_option("--baseline", options->baselines, "log of this cluster when it was healthy (repeatable)")
      ->type_name("LOG")
      ->allow_extra_args(false);
  command
      ->add_option("--bare-metal-baseline", options->bare_metal_baselines,
                   "healthy log of the hosts without CLUSTER's VMs (repeatable)")
      ->type_name("LOG")
      ->allow_extra_args(false);
  command
      ->add_option("--pairs", options->pairs, "host, host, time per line: which hosts share a switch, which are slow")
      ->type_name("FILE");
  add_what_if_options(*command, *options, "parameter file", "change one value first");
  add_output_options(*command, *options, k_doctor_formats);
  command->callback([options, &exit_code] { exit_code = doctor_command(*options); });
}

}  // namespace fabricast::cli
