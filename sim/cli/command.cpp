// SPDX-License-Identifier: Apache-2.0
#include "cli/command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>

#include "base/text.hpp"
#include "check/fold.hpp"
#include "fabricast/check.hpp"

namespace fabricast::cli {

const char* const k_version = FABRICAST_VERSION;

namespace {

/// Raised by the first SIGINT when the engine at work can stop with what it has; the second ends the program at once.
std::atomic<bool> g_interrupted{false};
std::atomic<bool> g_can_stop_early{false};

extern "C" void on_interrupt(int) {
  if (g_can_stop_early && !g_interrupted.exchange(true)) return;
  remove_temporary_file();
  std::_Exit(exit_interrupted);
}

extern "C" void on_termination(int signal) {
  remove_temporary_file();
  std::_Exit(128 + signal);  // as shells report it
}

Duration parse_time(const std::string& text) {
  const auto parsed = parse_quantity(text, Dimension::time);
  if (!parsed.ok)
    throw CLI::ValidationError("--sample", parsed.error + (parsed.hint.empty() ? "" : ": " + parsed.hint));
  constexpr double k_least = 1e-9;  // nothing in a fabric changes faster
  if (parsed.value < k_least) throw CLI::ValidationError("--sample", fmt::format("'{}' is shorter than 1 ns", text));
  return from_seconds(parsed.value);
}

}  // namespace

Progress::Progress(std::string what, bool is_quiet)
    : what_(std::move(what)), is_on_(!is_quiet && isatty(STDERR_FILENO) != 0) {}

Progress::~Progress() {
  if (was_shown_) std::fputs("\r\x1b[K", stderr);
}

void Progress::show(double share) {
  if (!is_on_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - start_ < std::chrono::seconds(1) || now - last_ < std::chrono::milliseconds(100)) return;
  last_ = now;
  was_shown_ = true;
  std::fprintf(stderr, "\r%s %3.0f %%", what_.c_str(), 100 * share);
  std::fflush(stderr);
}

const std::atomic<bool>& stop_flag() {
  g_can_stop_early = true;
  return g_interrupted;
}

bool was_interrupted() { return g_interrupted.load(); }

void catch_signals() {
  std::signal(SIGINT, on_interrupt);
  for (const int one : {SIGTERM, SIGHUP}) {
    if (std::signal(one, on_termination) == SIG_IGN) std::signal(one, SIG_IGN);  // nohup
  }
  std::signal(SIGPIPE, SIG_DFL);
  std::signal(SIGXFSZ, SIG_IGN);
}

CLI::Validator whole_number(std::uint64_t high, std::uint64_t low) {
  const auto check = [low, high](std::string& text) {
    std::uint64_t value = 0;
    const auto end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, value);
    const bool is_whole = read.ec == std::errc{} && read.ptr == end;
    return is_whole && low <= value && value <= high
               ? std::string()
               : fmt::format("'{}' is not a whole number from {} to {}", text, low, high);
  };
  return CLI::Validator(check, "");
}

void add_what_if_options(CLI::App& app, CommonOptions& options, const std::string& of_parameters,
                         const std::string& of_settings) {
  app.add_option("--parameters", options.parameter_files, of_parameters + " (repeatable)")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option("--set", options.settings, of_settings + " (repeatable)")
      ->type_name("PATH=VALUE")
      ->allow_extra_args(false);
}

void add_simulation_options(CLI::App& app, CommonOptions& options) {
  add_what_if_options(app, options, "parameter file, after the shipped ones and the scenario's own",
                      "change one value: workload.gpus=8, topology.hosts.node.count=4");
  app.add_option("--seed", options.seed, "picks among equal-cost routes; default 1")
      ->check(whole_number(std::numeric_limits<std::uint64_t>::max()))
      ->type_name("N");
  app.add_option("--fidelity", options.fidelity,
                 "engine; auto is fluid and says where packets would change the answer; default fluid")
      ->check(CLI::IsMember({"fluid", "packet", "auto"}).description(""))
      ->type_name("fluid|packet|auto");
  app.add_flag("-q,--quiet", options.is_quiet, "no progress on standard error");
}

void add_output_file(CLI::App& app, CommonOptions& options) {
  app.add_option("-o,--output", options.output, "file to write, whole or not at all; - is standard output")
      ->check(not_empty())
      ->type_name("FILE");
}

void add_output_options(CLI::App& app, CommonOptions& options, const std::vector<std::string>& formats) {
  std::string names;
  for (const auto& format : formats) names += (names.empty() ? "" : "|") + format;
  app.add_option("--format", options.format, "default: by the suffix of -o, else text")
      ->check(CLI::IsMember(formats).description(""))
      ->type_name(names);
  add_output_file(app, options);
}

std::vector<Setting> parse_settings(const std::vector<std::string>& texts) {
  std::vector<Setting> settings;
  for (const auto& text : texts) {
    const auto equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      throw CLI::ValidationError("--set", fmt::format("'{}' is not PATH=VALUE", text));
    settings.push_back({text.substr(0, equals), text.substr(equals + 1)});
  }
  return settings;
}

void add_source_lines(Diagnostics& found) {
  std::map<std::string, std::vector<Diagnostic*>> by_file;
  for (auto& one : found) {
    if (one.source_line.empty() && one.location.line >= 1) by_file[one.location.file].push_back(&one);
  }
  for (auto& [file, wanted] : by_file) {
    std::ranges::stable_sort(wanted, {}, [](const Diagnostic* one) { return one->location.line; });
    std::ifstream in(file);
    std::string text;
    int line = 0;
    for (auto* one : wanted) {
      while (line < one->location.line && std::getline(in, text)) ++line;
      if (line == one->location.line) set_source_line(*one, text);
    }
  }
}

std::optional<Run> run_scenario(const std::string& path, const CommonOptions& options, int& exit_code,
                                const std::vector<Bytes>& sizes, std::optional<Bytes> extra_size) {
  const auto settings = parse_settings(options.settings);
  auto loaded = usable(load_scenario(path, options.parameter_files, settings), exit_code);
  if (!loaded) return std::nullopt;
  protect_inputs(options.written, loaded->inputs);
  print_faults(loaded->warnings);
  if (const auto infeasible = infeasible_hosts(*loaded); !infeasible.empty()) {
    print_faults(check::folded(infeasible));
    exit_code = exit_input;
    return std::nullopt;
  }
  for (auto& workload : loaded->scenario.workloads) {
    if (workload.benchmark == Benchmark::gpu_sharing) continue;  // its rows are clients
    const bool is_training = workload.benchmark == Benchmark::training;
    const bool is_alike = is_training == (loaded->scenario.workloads.front().benchmark == Benchmark::training);
    if (!sizes.empty() && is_alike) workload.sizes = sizes;
    if (extra_size && !is_training) {
      if (workload.sizes.empty()) workload.sizes = default_sizes(workload.benchmark);
      if (std::find(workload.sizes.begin(), workload.sizes.end(), *extra_size) == workload.sizes.end()) {
        workload.sizes.insert(std::upper_bound(workload.sizes.begin(), workload.sizes.end(), *extra_size), *extra_size);
      }
    }
  }
  auto doubts = check_scenario(loaded->topology, loaded->scenario, loaded->parameters);
  std::erase_if(doubts,
                [](const Diagnostic& one) { return one.severity == Severity::error; });  // planners refuse these
  print_faults(doubts);
  SimulateOptions simulate_options;
  simulate_options.seed = options.seed;
  if (options.fidelity == "packet") {
    simulate_options.fidelity = Fidelity::packet;
    g_can_stop_early = true;
  }
  if (options.fidelity == "auto") simulate_options.fidelity = Fidelity::automatic;
  if (!options.sample_interval.empty()) simulate_options.sample_interval = parse_time(options.sample_interval);
  simulate_options.record_pauses = options.records_pauses;
  simulate_options.stop = &g_interrupted;
  Progress progress("simulating", options.is_quiet);
  simulate_options.progress = [&](double share) { progress.show(share); };
  auto prediction =
      usable(simulate(loaded->topology, loaded->scenario, loaded->parameters, simulate_options), exit_code);
  if (!prediction) return std::nullopt;
  report::Provenance provenance;
  provenance.version = k_version;
  provenance.inputs = loaded->inputs;
  provenance.parameter_files = loaded->scenario.parameter_files;
  provenance.parameter_files.insert(provenance.parameter_files.end(), options.parameter_files.begin(),
                                    options.parameter_files.end());
  provenance.settings = settings;
  provenance.seed = options.seed;
  provenance.fidelity = options.fidelity;
  return Run{std::move(*loaded), std::move(*prediction), std::move(provenance)};
}

std::string format_of(const CommonOptions& options, const std::vector<std::string>& formats) {
  return options.format.empty() ? format_by_suffix({"-o", options.output}, formats) : options.format;
}

void protect_inputs(const std::vector<OutputFile>& written, const std::vector<InputFile>& inputs) {
  std::vector<std::string> paths;
  for (const auto& input : inputs) paths.push_back(input.path);
  refuse_overwriting(written, paths);
}

void say(const std::string& text) { std::fputs(printable(text, Keep::lines).c_str(), stderr); }

void print_faults(Diagnostics faults) {
  if (faults.empty()) return;
  add_source_lines(faults);
  say(render(faults));
}

std::optional<Bytes> parse_size(const std::string& text) {
  const auto parsed = parse_quantity(text, Dimension::bytes);
  if (parsed.ok) return to_bytes(parsed.value);
  const auto last = text.empty() ? '\0' : text.back();
  if (last == 'K' || last == 'M' || last == 'G') {
    const auto binary = parse_quantity(text + "iB", Dimension::bytes);
    if (binary.ok) {
      say(fmt::format("warning: '{}' is read as '{}iB' (powers of 1024), as nccl-tests does\n", text, text));
      return to_bytes(binary.value);
    }
  }
  throw CLI::ValidationError("size", parsed.error + (parsed.hint.empty() ? "" : ": " + parsed.hint));
}

double parse_share(const std::string& option, const std::string& text) {
  const bool is_percent = text.ends_with('%');
  const auto digits = is_percent ? text.substr(0, text.size() - 1) : text;
  const auto parsed = parse_quantity(digits, Dimension::number);
  const auto refuse = [&](const std::string& why) {
    throw CLI::ValidationError(option, fmt::format("'{}' {}: write 10% or 0.1", text, why));
  };
  if (!parsed.ok) refuse("is not a share");
  const double share = is_percent ? parsed.value / 100 : parsed.value;
  if (share < 0) refuse("is negative");
  // A gate that everything passes is no gate; 10 is more likely 10 % than a thousand.
  if (share > 1) refuse(fmt::format("is {:.6g} %, a limit is 100 % at most", 100 * share));
  return share;
}

std::optional<double> parse_limit(const std::string& option, const std::optional<std::string>& text) {
  return text ? std::optional(parse_share(option, *text)) : std::nullopt;
}

CLI::Validator not_empty() {
  return CLI::Validator([](std::string& text) { return text.empty() ? std::string("the value is empty") : ""; }, "");
}

std::optional<std::string> read_text(const std::string& path, int& exit_code) {
  if (path == "-") return std::string{std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::string text;
  if (in) text.assign(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  if (in && !in.bad()) return text;
  say(fmt::format("{}: error: cannot read: {}\n", path, std::strerror(errno == 0 ? EIO : errno)));
  exit_code = exit_input;
  return std::nullopt;
}

}  // namespace fabricast::cli
