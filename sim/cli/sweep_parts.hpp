// SPDX-License-Identifier: Apache-2.0
// Parts of `fabricast sweep`: its options, shards, progress with the time that is left, and what has changed under a
// store.
#pragma once

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/sha256.hpp"
#include "cli/command.hpp"
#include "fabricast/sweep.hpp"

namespace fabricast::cli {

struct SweepOptions : CommonOptions {
  std::vector<std::string> files;
  std::string store;
  std::string shard;
  int jobs = 1;
  int top = 0;
  bool is_merge = false;
  bool is_sensitivity = false;
  std::optional<std::size_t> design;
  std::string fail;
  int simultaneous = 1;
  int samples = 200;
  std::string target = "95%";
  std::string metric;
};

inline int refuse_input(const Diagnostics& faults) {
  print_faults(faults);
  return exit_input;
}

/// The plan of a sweep; of --sensitivity and --fail also a scenario, as a plan of one design.
Result<SweepPlan> load_question(const SweepOptions& options);
/// --sensitivity or --fail: answers it and returns the exit code.
int answer_question(const SweepOptions& options, const std::string& format, const SweepReport& judged);

/// `2/8`: the second of eight.
struct Shard {
  std::size_t number = 1;
  std::size_t count = 1;
};
inline Shard parse_shard(const std::string& text) {
  if (text.empty()) return {};
  Shard shard;
  char end = 0;
  if (std::sscanf(text.c_str(), "%zu/%zu%c", &shard.number, &shard.count, &end) != 2 || shard.number < 1 ||
      shard.number > shard.count || text.find('-') != std::string::npos)
    throw CLI::ValidationError("--shard", fmt::format("'{}' is no part of a whole: write 1/8 to 8/8", text));
  return shard;
}

/// Designs done on standard error with the time that is left: in place when a person watches, else a line a minute.
class SweepProgress {
 public:
  SweepProgress(std::size_t all, std::size_t known, bool is_quiet)
      : all_(all), done_(known), known_(known), is_quiet_(is_quiet), is_terminal_(isatty(STDERR_FILENO) != 0) {}
  ~SweepProgress() {
    if (was_shown_ && is_terminal_) std::fputs("\r\x1b[K", stderr);
  }
  SweepProgress(const SweepProgress&) = delete;
  SweepProgress& operator=(const SweepProgress&) = delete;

  void step() {
    ++done_;
    const auto now = Clock::now();
    const auto pause = is_terminal_ ? std::chrono::milliseconds(200) : std::chrono::milliseconds(60'000);
    if (is_quiet_ || now - last_ < pause) return;
    last_ = now;
    was_shown_ = true;
    const double spent = std::chrono::duration<double>(now - start_).count();
    const double left = spent / static_cast<double>(done_ - known_) * static_cast<double>(all_ - done_);
    std::fprintf(stderr, "%ssweep %zu of %zu designs, %d:%02d left%s", is_terminal_ ? "\r" : "", done_, all_,
                 static_cast<int>(left) / 60, static_cast<int>(left) % 60, is_terminal_ ? "\x1b[K" : "\n");
    std::fflush(stderr);
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::size_t all_, done_, known_;
  bool is_quiet_, is_terminal_, was_shown_ = false;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = Clock::now();
};

/// Files of stored results that have changed since, each once.
inline Diagnostics changed_inputs(const std::map<std::size_t, std::string>& records) {
  std::map<std::string, std::string> known;
  Diagnostics faults;
  for (const auto& entry : records) {
    const auto result = result_of(entry.second);
    if (!result) continue;
    for (const auto& input : result->inputs) {
      if (!known.try_emplace(input.first, input.second).second) continue;
      if (sha256_of_file(input.first) == input.second) continue;
      faults.push_back(make_error("this file has changed since results were stored",
                                  "name another file with --store, or remove the store"));
      faults.back().location.file = input.first;
    }
  }
  return faults;
}

}  // namespace fabricast::cli
