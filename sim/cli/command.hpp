// SPDX-License-Identifier: Apache-2.0
// What the subcommands share: options, exit codes, writing results, reporting faults. The only folder that prints.
#pragma once

#include <CLI/CLI.hpp>
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/output.hpp"
#include "fabricast/load.hpp"
#include "fabricast/simulate.hpp"
#include "report/report.hpp"

namespace fabricast::cli {

enum ExitCode {
  exit_ok = 0,
  exit_limit_missed = 1,
  exit_usage = 2,
  exit_input = 3,
  exit_internal = 4,
  exit_interrupted = 130
};

/// --parameters, --set, --seed, --fidelity, --format, -o, -q: the same for every command that simulates.
struct CommonOptions {
  std::vector<std::string> parameter_files;
  std::vector<std::string> settings;
  std::string format;
  std::string output = "-";
  std::uint64_t seed = 1;
  std::string fidelity = "fluid";
  std::string sample_interval;  ///< packet engine; empty = none
  bool records_pauses = false;  ///< packet engine
  bool is_quiet = false;
  std::vector<OutputFile> written;  ///< every file that the command will write: none may be an input
};

void add_simulation_options(CLI::App& app, CommonOptions& options);
/// --parameters and --set, with what a command says of them.
void add_what_if_options(CLI::App& app, CommonOptions& options, const std::string& of_parameters,
                         const std::string& of_settings);
void add_output_options(CLI::App& app, CommonOptions& options, const std::vector<std::string>& formats);
/// -o alone, of commands with formats of their own.
void add_output_file(CLI::App& app, CommonOptions& options);

/// Subcommands register themselves; `exit_code` is set when one has run.
void add_run(CLI::App& app, int& exit_code);
void add_compare(CLI::App& app, int& exit_code);
void add_validate(CLI::App& app, int& exit_code);
void add_calibrate(CLI::App& app, int& exit_code);
void add_check(CLI::App& app, int& exit_code);
void add_show(CLI::App& app, int& exit_code);
void add_list(CLI::App& app, int& exit_code);
void add_schema(CLI::App& app, int& exit_code);
void add_import(CLI::App& app, int& exit_code);
void add_export(CLI::App& app, int& exit_code);
void add_sweep(CLI::App& app, int& exit_code);
void add_manual(CLI::App& app, int& exit_code);
void add_doctor(CLI::App& app, int& exit_code);
void add_expect(CLI::App& app, int& exit_code);
void add_mpi(CLI::App& app, int& exit_code);
/// `fabricast mpi` as users of mpirun write it: -np is --np, and what follows the program belongs to it.
std::vector<std::string> like_mpirun(std::vector<std::string> arguments);
void add_replay(CLI::App& app, int& exit_code);

/// `path=value` of --set; a missing '=' is a usage error.
std::vector<Setting> parse_settings(const std::vector<std::string>& texts);

/// A scenario that was loaded and simulated.
struct Run {
  LoadedScenario loaded;
  Prediction prediction;
  report::Provenance provenance;
};
/// True once the user has interrupted the run: finished rows are printed, then the program ends with 130.
bool was_interrupted();
/// SIGINT, SIGTERM and SIGHUP leave no temporary file behind; a file above a size limit is a message, no signal.
void catch_signals();
/// From here on the first interrupt raises this flag only; the second still ends the program.
const std::atomic<bool>& stop_flag();

/// Share done on standard error, from the second second on, when a person is watching.
class Progress {
 public:
  Progress(std::string what, bool is_quiet);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(double share);

 private:
  std::string what_;
  bool is_on_;
  bool was_shown_ = false;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_;
};

/// Loads and simulates; faults are printed and the exit code set. `sizes`, when not empty, replace every workload's.
std::optional<Run> run_scenario(const std::string& path, const CommonOptions& options, int& exit_code,
                                const std::vector<Bytes>& sizes = {}, std::optional<Bytes> extra_size = std::nullopt);

/// The format asked for, else the one the output's suffix names, else the first; another suffix is a usage error.
std::string format_of(const CommonOptions& options, const std::vector<std::string>& formats);

/// Usage error when `written` is among the files that were loaded.
void protect_inputs(const std::vector<OutputFile>& written, const std::vector<InputFile>& inputs);

/// Text of a file, `-` standard input; a message and the exit code when it cannot be read.
std::optional<std::string> read_text(const std::string& path, int& exit_code);

/// Prints to standard error, without what would do something to a terminal.
void say(const std::string& text);

/// Prints diagnostics to standard error, each with the line it is about.
void print_faults(Diagnostics faults);

/// What was loaded or made of inputs; otherwise its faults are printed and the exit code says so.
template <typename T>
std::optional<T> usable(Result<T> result, int& exit_code) {
  if (result) return std::move(*result);
  print_faults(result.error());
  exit_code = exit_input;
  return std::nullopt;
}

/// Adds the text of the line to findings that know their place only.
void add_source_lines(Diagnostics& found);

/// Text as given on the command line, to bytes: our grammar, and nccl-tests' `128M` with a warning.
std::optional<Bytes> parse_size(const std::string& text);
/// `10%` or `0.1` to a fraction.
double parse_share(const std::string& option, const std::string& text);
/// Absent when the option is not given; a text that is no share from 0 to 1 is refused.
std::optional<double> parse_limit(const std::string& option, const std::optional<std::string>& text);
/// Checks of option values: a whole number within bounds; not the empty text.
CLI::Validator whole_number(std::uint64_t high, std::uint64_t low = 0);
CLI::Validator not_empty();

extern const char* const k_version;

}  // namespace fabricast::cli
