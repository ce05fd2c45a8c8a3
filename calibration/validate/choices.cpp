// SPDX-License-Identifier: Apache-2.0
// What NCCL says it chose (its tuning lines) beside what the forecast chose: algorithm, protocol, channels.
#include <array>
#include <map>
#include <utility>

#include "fabricast/validation.hpp"

namespace fabricast {
namespace {

/// The operation's name in NCCL's lines; empty for benchmarks that are no NCCL collective.
std::string_view operation_of(Benchmark benchmark) {
  constexpr std::array<std::pair<Benchmark, std::string_view>, 5> k_names{
      {{Benchmark::all_reduce_perf, "AllReduce"},
       {Benchmark::all_gather_perf, "AllGather"},
       {Benchmark::reduce_scatter_perf, "ReduceScatter"},
       {Benchmark::broadcast_perf, "Broadcast"},
       {Benchmark::reduce_perf, "Reduce"}}};
  for (const auto& [known, name] : k_names) {
    if (known == benchmark) return name;
  }
  return {};
}

}  // namespace

std::vector<ChoicePoint> compare_choices(const WorkloadPrediction& prediction, const std::vector<NcclChoice>& logged) {
  const auto operation = operation_of(prediction.benchmark);
  std::map<Bytes, const Row*> rows;
  for (const auto& row : prediction.rows) rows[row.size] = &row;
  std::map<Bytes, ChoicePoint> points;  // the last choice for a size counts: NCCL settles after its first calls
  for (const auto& choice : logged) {
    const auto row = rows.find(choice.size);
    if (choice.operation != operation || row == rows.end()) continue;
    ChoicePoint point;
    point.size = choice.size;
    point.predicted_algorithm = row->second->algorithm;
    point.predicted_protocol = row->second->protocol;
    point.predicted_channels = row->second->channels;
    point.logged_algorithm = choice.algorithm;
    point.logged_protocol = choice.protocol;
    if (choice.channels_from && choice.channels_to)
      point.logged_channels = *choice.channels_to - *choice.channels_from + 1;
    point.line = choice.line;
    points[choice.size] = std::move(point);
  }
  std::vector<ChoicePoint> out;
  for (auto& [size, point] : points) out.push_back(std::move(point));
  return out;
}

}  // namespace fabricast
