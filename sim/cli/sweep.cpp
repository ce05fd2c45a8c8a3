// SPDX-License-Identifier: Apache-2.0
// fabricast sweep PLAN.yaml, and --merge of stores.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <stdexcept>
#include <system_error>

#include "cli/command.hpp"
#include "cli/sweep_parts.hpp"
#include "fabricast/fault_sweep.hpp"
#include "fabricast/load_plan.hpp"
#include "fabricast/sweep.hpp"
#include "report/sweep.hpp"

namespace fabricast::cli {

namespace {

const std::vector<std::string> k_sweep_formats = {"text", "csv", "json", "jsonl", "html"};

std::string text_of(const SweepReport& sweep, const std::string& format) {
  if (format == "json") return report::sweep_json(sweep);
  if (format == "csv") return report::sweep_csv(sweep);
  if (format == "jsonl") return report::sweep_lines(sweep);
  if (format == "html") return report::sweep_html(sweep);
  return report::sweep_text(sweep);
}

class Sweep {
 public:
  Sweep(const SweepOptions& options, std::string format) : options_(options), format_(std::move(format)) {}

  int run() {
    auto plan = load_question(options_);
    if (!plan) return refuse_input(plan.error());
    plan_ = std::move(*plan);
    apply_options();
    if (const auto faults = space_faults(plan_); !faults.empty()) return refuse_input(faults);
    std::vector<InputFile> inputs;
    for (const auto& input : plan_.inputs) inputs.push_back({input.first, input.second});
    inputs.push_back({plan_.scenario_file, ""});
    protect_inputs(options_.written, inputs);
    std::string fault;
    std::error_code missing;  // no /proc: no plugin beside the program either
    const auto program = std::filesystem::read_symlink("/proc/self/exe", missing);
    mpi_ = MpiLink::connect(program.parent_path().string(), fault);
    if (!fault.empty()) {
      say(fmt::format("fabricast: {}\n", fault));
      return exit_usage;
    }
    const int code = sweep();
    if (mpi_) mpi_->close();
    return code;
  }

 private:
  void apply_options() {
    for (const auto& setting : parse_settings(options_.settings)) {
      for (const auto& axis : plan_.axes) refuse_varied(axis, setting.path);
      plan_.settings.push_back({setting.path, setting.value});
    }
    plan_.parameter_files.insert(plan_.parameter_files.end(), options_.parameter_files.begin(),
                                 options_.parameter_files.end());
    if (options_.top > 0) plan_.top = options_.top;
  }

  /// A design's own settings come last: what an axis varies cannot be fixed beside it.
  static void refuse_varied(const SweepAxis& axis, const std::string& path) {
    bool is_varied = axis.path == path;
    for (const auto& choice : axis.choices)
      is_varied = is_varied || std::ranges::find(choice.settings, path, &SweepSetting::path) != choice.settings.end();
    if (is_varied)
      throw CLI::ValidationError(
          "--set", fmt::format("'{}' is varied by axis '{}' of the plan: change the plan", path, axis.name));
  }

  int sweep() {
    const bool is_first = !mpi_ || mpi_->rank() == 0;
    const DesignSpace space(plan_);
    const auto shard = parse_shard(options_.shard);
    if (is_first) {
      if (const auto tried = preflight(plan_); has_errors(tried.faults))
        failed_ = refuse_input(tried.faults);
      else
        print_faults(tried.faults);
      if (failed_ == exit_ok && !options_.store.empty()) failed_ = open_store();
    }
    if (options_.design && *options_.design >= space.size())
      throw CLI::ValidationError("--design", fmt::format("the plan has designs 0 to {}", space.size() - 1));
    std::vector<std::size_t> todo;
    for (std::size_t i = shard.number - 1; failed_ == exit_ok && i < space.size(); i += shard.count) {
      // Whether a design is the best, and what would change that, is known beside all others.
      const bool is_asked = !options_.design || options_.is_sensitivity || i == *options_.design;
      if (!records_.contains(i) && is_asked) todo.push_back(i);
    }
    const auto known = records_.size();
    SweepProgress progress(todo.size() + known, known, options_.is_quiet || !is_first);
    const auto work = [&](std::size_t i) { return record_of(evaluate_design(plan_, space.design(i))); };
    const auto done = [&](std::size_t i, const std::string& record) {
      if (store_) store_->put(i, record);
      records_.insert_or_assign(i, record);
      progress.step();
    };
    const auto lost = [&](std::size_t i, const std::string& why) {
      auto result = space.design(i);
      result.status = DesignStatus::failed;
      result.reasons = {why};
      return record_of(result);
    };
    if (mpi_)
      mpi_->run(todo, work, done, &stop_flag());
    else
      run_tasks(todo, work, done, lost, {options_.jobs, &stop_flag()});
    if (!is_first || failed_ != exit_ok) return failed_;
    return report(space.size());
  }

  int open_store() {
    auto store = SweepStore::open(options_.store, fingerprint_of(plan_, k_version), header_of(plan_, k_version));
    if (!store) return refuse_input(store.error());
    store_ = std::make_unique<SweepStore>(std::move(*store));
    for (auto& [index, record] : store_->records()) records_[index] = std::move(record);
    if (const auto faults = changed_inputs(records_); !faults.empty()) return refuse_input(faults);
    if (!records_.empty() && !options_.is_quiet)
      say(fmt::format("{}: {} designs are known\n", options_.store, records_.size()));
    return exit_ok;
  }

  int report(std::size_t num_planned) {
    std::vector<DesignResult> designs;
    for (const auto& entry : records_) {
      if (auto result = result_of(entry.second)) designs.push_back(std::move(*result));
    }
    auto judged = judge(plan_, std::move(designs), num_planned);
    if (options_.is_sensitivity || !options_.fail.empty())
      return was_interrupted() ? exit_interrupted : answer_question(options_, format_, judged);
    judged.version = k_version;
    judged.shard = options_.shard;
    judged.is_interrupted = was_interrupted();
    int code = exit_ok;
    if (!write_output(options_.output, text_of(judged, format_), code)) return code;
    if (was_interrupted()) return exit_interrupted;
    if (std::ranges::all_of(judged.designs,
                            [](const DesignResult& one) { return one.status == DesignStatus::invalid; })) {
      say("fabricast: error: no design could be read; the reasons are in the table\n");
      return exit_input;
    }
    if (judged.front.empty() && judged.shard.empty()) {
      say("fabricast: no design meets every constraint\n");
      return exit_limit_missed;
    }
    return exit_ok;
  }

  const SweepOptions& options_;
  std::string format_;
  SweepPlan plan_;
  std::optional<MpiLink> mpi_;
  std::unique_ptr<SweepStore> store_;
  std::map<std::size_t, std::string> records_;
  int failed_ = exit_ok;
};

/// One whole from the stores of its shards.
int merge(const SweepOptions& options, const std::string& format) {
  std::map<std::size_t, std::string> records;
  std::string header;
  std::string fingerprint;
  Diagnostics faults;
  for (const auto& path : options.files) {
    const auto store = SweepStore::open_existing(path);
    if (!store) {
      faults.insert(faults.end(), store.error().begin(), store.error().end());
      continue;
    }
    if (header.empty()) {
      header = store->meta("header");
      fingerprint = store->meta("fingerprint");
    }
    if (store->meta("fingerprint") != fingerprint) {
      faults.push_back(make_error(fmt::format("the results of another plan than '{}'", options.files.front()),
                                  "merge the shards of one plan"));
      faults.back().location.file = path;
    }
    for (auto& [index, record] : store->records()) {
      const auto [it, is_new] = records.try_emplace(index, record);
      if (is_new || it->second == record) continue;
      faults.push_back(make_error(fmt::format("design {} has another result than in an earlier store", index),
                                  "input files differed between the shards: sweep again"));
      faults.back().location.file = path;
    }
  }
  if (!faults.empty()) return refuse_input(faults);
  auto plan = plan_of(header);
  if (!plan)
    return refuse_input({make_error("the stores hold no plan", "name files that `fabricast sweep --store` has made")});
  if (options.top > 0) plan->top = options.top;
  const auto num_planned = DesignSpace(*plan).size();
  std::vector<DesignResult> designs;
  for (const auto& entry : records) {
    if (auto result = result_of(entry.second)) designs.push_back(std::move(*result));
  }
  auto judged = judge(*plan, std::move(designs), num_planned);
  judged.version = k_version;
  int code = exit_ok;
  if (!write_output(options.output, text_of(judged, format), code)) return code;
  if (records.size() == num_planned) return exit_ok;
  say(fmt::format("fabricast: warning: {} of {} designs are missing: further shards, or shards that did not end\n",
                  num_planned - records.size(), num_planned));
  return exit_limit_missed;
}

int sweep(SweepOptions options) {
  const auto format = format_of(options, k_sweep_formats);
  options.written = {{"-o", options.output}};
  if (!options.store.empty()) options.written.push_back({"--store", options.store});
  refuse_overwriting(options.written, options.files);
  parse_shard(options.shard);
  if (options.is_sensitivity && !options.fail.empty())
    throw CLI::ValidationError("--sensitivity", "one question at a time: --sensitivity or --fail");
  if (format == "jsonl" && (options.is_sensitivity || !options.fail.empty()))
    throw CLI::ValidationError("--format", "jsonl prints designs: take text, csv, json or html");
  if (std::string fault; !options.fail.empty() && fault_classes_from(options.fail, fault).empty())
    throw CLI::ValidationError("--fail", fault);
  try {
    if (options.is_merge) return merge(options, format);
    if (options.files.size() != 1)
      throw CLI::ValidationError("PLAN", "one plan is swept at a time; stores are merged with --merge");
    return Sweep(options, format).run();
  } catch (const std::runtime_error& error) {
    say(fmt::format("fabricast: error: {}\n", error.what()));  // a full disk, no further process
    return exit_input;
  }
}

}  // namespace

void add_sweep(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<SweepOptions>();
  auto* command = app.add_subcommand("sweep", "many designs of one plan: which reaches the target for the least money");
  command->footer(
      "Examples:\n"
      "  fabricast sweep scenarios/plan-vgg16-cluster.yaml --jobs 2 -o plan.html\n"
      "  fabricast sweep plan.yaml --jobs 8 --store plan.sqlite   (again after a crash: goes on where it was)\n"
      "  mpirun -np 64 fabricast sweep plan.yaml --store plan.sqlite -o plan.csv\n"
      "  fabricast sweep scenarios/allreduce-hgx-h100-64.yaml --fail 'link|leaf' --jobs 2\n"
      "  fabricast sweep plan.yaml --shard 3/16 --store part3.sqlite; fabricast sweep --merge part*.sqlite -o all.csv");
  command->add_option("PLAN", options->files, "plan (schema fabricast/plan/1); with --merge: stores")
      ->required()
      ->type_name("FILE");
  command->add_option("--jobs", options->jobs, "processes; default 1")->check(whole_number(4096, 1))->type_name("N");
  command->add_option("--store", options->store, "SQLite file that keeps every result; an interrupted sweep goes on")
      ->check(not_empty())
      ->type_name("FILE");
  command->add_option("--shard", options->shard, "only every n-th design, beginning with the i-th")->type_name("I/N");
  command->add_flag("--merge", options->is_merge, "join the stores of shards and report on the whole");
  command->add_option("--top", options->top, "designs that are recommended with reasons; default: the plan's, 5")
      ->check(whole_number(1000, 1))
      ->type_name("K");
  add_what_if_options(*command, *options, "parameter file, after the plan's own", "change one value of every design");
  command->add_flag("--sensitivity", options->is_sensitivity,
                    "which parameter, price or scatter moves the best design's figures, and what to measure next");
  command
      ->add_option("--fail", options->fail,
                   "what breaks, joined by |: link, hca, leaf, switch, host, slow-gpu:10%; every "
                   "single fault of the best design, or of a scenario")
      ->check(not_empty())
      ->type_name("FAULTS");
  command->add_option("--simultaneous", options->simultaneous, "random faults at once; default 1: every single fault")
      ->check(whole_number(1000, 1))
      ->type_name("N");
  command->add_option("--samples", options->samples, "draws of simultaneous faults; default 200")
      ->check(whole_number(1'000'000, 1))
      ->type_name("N");
  command->add_option("--seed", options->seed, "of the draws; default 1")
      ->check(whole_number(std::numeric_limits<std::uint64_t>::max()))
      ->type_name("N");
  command->add_option("--target", options->target, "goodput asked for under faults; default 95%")->type_name("SHARE");
  command->add_option("--design", options->design, "the design to look at, instead of the best")->type_name("ID");
  command->add_option("--metric", options->metric, "figure to look at under faults, or of a scenario")
      ->type_name("FIGURE");
  command->add_flag("-q,--quiet", options->is_quiet, "no progress on standard error");
  add_output_options(*command, *options, k_sweep_formats);
  command->callback([options, &exit_code] { exit_code = sweep(*options); });
}

}  // namespace fabricast::cli
