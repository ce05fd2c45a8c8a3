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
constexpr std::array<Named, 29> k_benchmarks{{
    {"osu_latency", Benchmark::osu_latency},
    {"osu_bw", Benchmark::osu_bw},
    {"osu_bibw", Benchmark::osu_bibw},
    {"osu_multi_lat", Benchmark::osu_multi_lat},
    {"osu_mbw_mr", Benchmark::osu_mbw_mr},
    {"osu_allreduce", Benchmark::osu_allreduce},
    {"osu_allgather", Benchmark::osu_allgather},
    {"osu_reduce_scatter", Benchmark::osu_reduce_scatter},
    {"osu_bcast", Benchmark::osu_bcast},
    {"osu_reduce", Benchmark::osu_reduce},
    {"osu_alltoall", Benchmark::osu_alltoall},
    {"osu_gather", Benchmark::osu_gather},
    {"osu_scatter", Benchmark::osu_scatter},
    {"osu_barrier", Benchmark::osu_barrier},
    {"ib_write_lat", Benchmark::ib_write_lat},
    {"ib_write_bw", Benchmark::ib_write_bw},
    {"ib_send_lat", Benchmark::ib_send_lat},
    {"ib_send_bw", Benchmark::ib_send_bw},
    {"ib_read_lat", Benchmark::ib_read_lat},
    {"ib_read_bw", Benchmark::ib_read_bw},
    {"all_reduce_perf", Benchmark::all_reduce_perf},
    {"all_gather_perf", Benchmark::all_gather_perf},
    {"reduce_scatter_perf", Benchmark::reduce_scatter_perf},
    {"broadcast_perf", Benchmark::broadcast_perf},
    {"reduce_perf", Benchmark::reduce_perf},
    {"alltoall_perf", Benchmark::alltoall_perf},
    {"sendrecv_perf", Benchmark::sendrecv_perf},
    {"gather_perf", Benchmark::gather_perf},
    {"scatter_perf", Benchmark::scatter_perf},
}};

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

std::string_view benchmark_word(Benchmark benchmark) {
  const auto it =
      std::find_if(k_benchmarks.begin(), k_benchmarks.end(), [&](const Named& n) { return n.second == benchmark; });
  return it == k_benchmarks.end() ? std::string_view{} : it->first;
}

std::optional<Benchmark> benchmark_in(std::string_view text) {
  std::optional<Benchmark> found;
  for (const auto& [word, benchmark] : k_benchmarks) {
    if (!has_word(text, word)) continue;
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
  const auto word = benchmark_word(benchmark);
  switch (format) {
    case LogFormat::nccl_tests:
    case LogFormat::nccl_tests_json:
      return word.ends_with("_perf");
    case LogFormat::osu:
      return word.starts_with("osu_");
    case LogFormat::perftest:
    case LogFormat::perftest_json:
      return word.starts_with("ib_");
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
