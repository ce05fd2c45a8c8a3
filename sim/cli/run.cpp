// SPDX-License-Identifier: Apache-2.0
// fabricast run SCENARIO.yaml
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <memory>
#include <set>

#include "cli/command.hpp"
#include "fabricast/exchange.hpp"
#include "fabricast/link_use.hpp"
#include "report/page.hpp"

namespace fabricast::cli {

namespace {

struct RunOptions : CommonOptions {
  std::string scenario;
  std::string explain;
  std::string trace;
  std::string fabric_csv;
};

const std::vector<std::string> k_run_formats = {"text", "json", "csv", "html"};

/// Interrupted, packets lost in a lossless class or in one that should have been, or a fabric that came to a stop: said
/// aloud, and in the exit code.
int outcome(const Prediction& prediction) {
  std::uint64_t drops = 0;
  std::uint64_t unmeant = 0;
  std::set<const FabricReport*> seen;
  std::string stopped;
  for (const auto& workload : prediction.workloads) {
    for (const auto& row : workload.rows) {
      // Workloads that ran together share one report.
      if (!row.fabric || !seen.insert(row.fabric.get()).second) continue;
      drops += row.fabric->lossless_drops;
      unmeant += row.fabric->unmeant_drops();
      if (row.fabric->stop == "deadlock" || row.fabric->stop == "stalled") stopped = row.fabric->stop;
    }
  }
  if (drops > 0) say(fmt::format("fabricast: error: {} packets of lossless classes were dropped\n", drops));
  if (unmeant > 0) say(fmt::format("fabricast: error: {} packets were dropped in a priority without PFC\n", unmeant));
  if (!stopped.empty()) say(fmt::format("fabricast: error: the fabric stopped: {}\n", stopped));
  if (was_interrupted()) return exit_interrupted;
  return drops + unmeant > 0 || !stopped.empty() ? exit_limit_missed : exit_ok;
}

constexpr std::size_t k_most_links = 2000;  ///< in JSON; the picture shows these

/// What the largest rows use of the links, by name and as the picture wants it.
struct UsedLinks {
  report::LinkUseTable table;
  LinkShares shares;
};
UsedLinks used_links(const Run& run, std::uint64_t seed) {
  const auto& topology = run.loaded.topology;
  const auto all = link_uses(topology, run.loaded.scenario, run.loaded.parameters, run.prediction, seed);
  UsedLinks out;
  out.table.num_used = all.size();
  for (std::size_t i = 0; i < all.size() && i < k_most_links; ++i) {
    const auto link = topology.link(all[i].link);
    out.table.links.push_back({topology.hardware_name(link.from), topology.hardware_name(link.to),
                               std::string(to_string(link.kind)), all[i].bytes_per_s, all[i].share});
    auto& share = out.shares[{link.from, link.to}];  // of parallel cables the most used
    share = std::max(share, all[i].share);
  }
  return out;
}

/// The topology as a picture for the page.
std::string drawing(const Topology& topology, const LinkShares& use) {
  return fmt::format("<h2>Topology</h2>\n<figure>{}</figure>\n",
                     report::image_of(topology_svg(topology, use), "the topology's devices and links, by use"));
}

/// -o, --trace and the files of --fabric-csv.
std::vector<OutputFile> written_files(const RunOptions& options) {
  std::vector<OutputFile> files{{"-o", options.output}};
  if (!options.trace.empty()) {
    files.push_back({"--trace", options.trace});
    format_by_suffix(files.back(), {"trace"});
  }
  if (options.fabric_csv.empty()) return files;
  for (const auto* name : report::k_fabric_tables)
    files.push_back({"--fabric-csv", fmt::format("{}-{}.csv", options.fabric_csv, name)});
  return files;
}

int run(RunOptions options) {
  int exit_code = exit_ok;
  const auto format = format_of(options, k_run_formats);
  options.written = written_files(options);
  protect_inputs(options.written, {{options.scenario, ""}});
  if (!options.sample_interval.empty() && options.fidelity != "packet")
    throw CLI::ValidationError("--sample", "only packets have queues and rates to sample: add --fidelity packet");
  if (options.fidelity == "packet" && (!options.trace.empty() || format == "html")) {
    // Pictures without time series would show little.
    if (options.sample_interval.empty()) options.sample_interval = "10 us";
    options.records_pauses = true;
  }
  if (!options.fabric_csv.empty()) options.records_pauses = true;
  std::optional<Bytes> explained;
  // The table prints plain bytes: what is copied from it needs no unit.
  const bool is_plain = options.explain.find_first_not_of("0123456789") == std::string::npos;
  // Rows of training are called "4 GPUs", those of clients by their names.
  const bool is_label =
      !options.explain.empty() && (std::isdigit(static_cast<unsigned char>(options.explain[0])) == 0 ||
                                   options.explain.find(" GPU") != std::string::npos);
  if (!options.explain.empty() && !is_label) explained = parse_size(is_plain ? options.explain + "B" : options.explain);
  const auto result = run_scenario(options.scenario, options, exit_code, {}, explained);
  if (!result) return exit_code;
  UsedLinks links;
  if (format == "json" || format == "html") links = used_links(*result, options.seed);
  const report::Document document{result->prediction, result->loaded.scenario, result->provenance, &links.table};
  std::string text;
  if (format == "json") text = report::json(document);
  if (format == "csv") text = report::csv(document);
  if (format == "html") text = report::html(document, drawing(result->loaded.topology, links.shares));
  if (format == "text") {
    text = report::text(document);
    const auto is_asked = [&](const Row& row) {
      if (is_plain && row.label.starts_with(options.explain + " GPU")) return true;
      return is_label ? row.label == options.explain : explained && row.size == *explained;
    };
    bool is_found = options.explain.empty();
    for (const auto& workload : result->prediction.workloads) {
      const auto row = std::find_if(workload.rows.begin(), workload.rows.end(), is_asked);
      if (row == workload.rows.end()) continue;
      text += "\n" + report::explain(workload, *row);
      is_found = true;
    }
    if (!is_found) {
      say(fmt::format("fabricast: no row '{}' to explain\n", options.explain));
      return exit_usage;
    }
  }
  if (!write_output(options.output, text, exit_code)) return exit_code;
  if (!options.trace.empty()) write_output(options.trace, report::trace(document), exit_code);
  if (!options.fabric_csv.empty()) {
    for (const auto& [name, table] : report::fabric_csv(document))
      write_output(fmt::format("{}-{}.csv", options.fabric_csv, name), table, exit_code);
  }
  return exit_code != exit_ok ? exit_code : outcome(result->prediction);
}

}  // namespace

void add_run(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<RunOptions>();
  auto* command = app.add_subcommand("run", "predict a scenario's benchmark table");
  command->footer(
      "Examples:\n"
      "  fabricast run scenarios/allreduce-hgx-h100-64.yaml --explain 1GiB\n"
      "  fabricast run scenarios/allreduce-hgx-h100-64.yaml --set workload.gpus=128 -o forecast.html");
  command->add_option("SCENARIO", options->scenario, "scenario file (schema fabricast/scenario/1)")
      ->required()
      ->type_name("FILE");
  add_simulation_options(*command, *options);
  add_output_options(*command, *options, k_run_formats);
  command
      ->add_option(
          "--explain", options->explain,
          "split the time of one size (64MiB), number of GPUs or client (its name) into terms that add up to it")
      ->check(not_empty())
      ->type_name("SIZE|NAME");
  command
      ->add_option("--trace", options->trace, "write terms, flows, pauses, queues and rates as a Chrome/Perfetto trace")
      ->type_name("FILE");
  command
      ->add_option("--fabric-csv", options->fabric_csv,
                   "write PREFIX-flows.csv, -ports.csv, -pauses.csv, -spans.csv, -queues.csv and -rates.csv")
      ->type_name("PREFIX");
  command
      ->add_option("--sample", options->sample_interval,
                   "packet engine: queues and rates this often; default none, 10 us with --trace and HTML")
      ->check(not_empty())
      ->type_name("TIME");
  command->callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace fabricast::cli
