// SPDX-License-Identifier: Apache-2.0
// Names of benchmark programs in command lines, titles and file names.
#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "readers/readers.hpp"

namespace fabricast::readers {
namespace {

using Named = std::pair<std::string_view, Benchmark>;

/// Whether a table of the benchmark's own program is read.
bool has_program(Benchmark benchmark) {
  const auto family = family_of(benchmark);
  return family == BenchmarkFamily::nccl_tests || family == BenchmarkFamily::osu || family == BenchmarkFamily::perftest;
}

bool is_word_char(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool has_word(std::string_view text, std::string_view word) {
  for (auto at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    const bool begins = at == 0 || !is_word_char(text[at - 1]);
    const auto end = at + word.size();
    if (begins && (end == text.size() || !is_word_char(text[end]))) return true;
  }
  return false;
}

}  // namespace

std::optional<Benchmark> benchmark_in(std::string_view text) {
  std::optional<Benchmark> found;
  for (const auto& word : benchmark_names()) {
    const auto benchmark = benchmark_from_name(word);
    if (!has_program(*benchmark) || !has_word(text, word)) continue;
    if (found) return std::nullopt;
    found = benchmark;
  }
  return found;
}

void name_program(std::string_view program, MeasuredLog& table) {
  program.remove_prefix(program.find_last_of('/') + 1);
  constexpr std::string_view k_with_mpi = "_mpi";  // NAME_SUFFIX of builds with MPI
  if (program.ends_with(k_with_mpi)) program.remove_suffix(k_with_mpi.size());
  if (!program.ends_with("_perf")) return;
  const auto benchmark = benchmark_in(program);
  if (benchmark) table.benchmark = benchmark;
  if (!benchmark) table.other_test = std::string(program);
}

bool is_of_format(Benchmark benchmark, LogFormat format) {
  const auto family = family_of(benchmark);
  switch (format) {
    case LogFormat::nccl_tests:
    case LogFormat::nccl_tests_json:
      return family == BenchmarkFamily::nccl_tests;
    case LogFormat::osu:
      return family == BenchmarkFamily::osu;
    case LogFormat::perftest:
    case LogFormat::perftest_json:
      return family == BenchmarkFamily::perftest;
    case LogFormat::iperf3:
      return benchmark == Benchmark::iperf3;
    case LogFormat::sockperf:
      return benchmark == Benchmark::sockperf;
    case LogFormat::forecast:
      return true;
    case LogFormat::p2p_matrix:
    case LogFormat::cuda_bandwidth:
    case LogFormat::copies:
    case LogFormat::nccl_tuning:
    case LogFormat::training:
      return false;
  }
  return false;
}

std::optional<Benchmark> nccl_benchmark_of_file(std::string_view path) {
  std::string name = lower(path.substr(path.find_last_of('/') + 1));
  std::erase_if(name, [](char c) { return c == '_' || c == '-'; });
  // Longer names first: "allreduce" and "reducescatter" contain "reduce", "allgather" contains "gather".
  constexpr std::array<Named, 10> k_names{{{"reducescatter", Benchmark::reduce_scatter_perf},
                                           {"allreduce", Benchmark::all_reduce_perf},
                                           {"allgather", Benchmark::all_gather_perf},
                                           {"broadcast", Benchmark::broadcast_perf},
                                           {"alltoall", Benchmark::alltoall_perf},
                                           {"sendrecv", Benchmark::sendrecv_perf},
                                           {"reduceperf", Benchmark::reduce_perf},
                                           {"gpureduce", Benchmark::reduce_perf},
                                           {"gather", Benchmark::gather_perf},
                                           {"scatter", Benchmark::scatter_perf}}};
  for (const auto& [word, benchmark] : k_names) {
    if (contains(name, word)) return benchmark;
  }
  return std::nullopt;
}

}  // namespace fabricast::readers

namespace fabricast {

const std::vector<Benchmark>& nccl_collectives() {
  static const std::vector<Benchmark> all{
      Benchmark::all_reduce_perf, Benchmark::all_gather_perf, Benchmark::reduce_scatter_perf,
      Benchmark::broadcast_perf,  Benchmark::reduce_perf,     Benchmark::alltoall_perf,
      Benchmark::sendrecv_perf,   Benchmark::gather_perf,     Benchmark::scatter_perf};
  return all;
}

}  // namespace fabricast
