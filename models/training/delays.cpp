// SPDX-License-Identifier: Apache-2.0
#include "training/delays.hpp"

#include <algorithm>
#include <map>

#include "paths/contention.hpp"
#include "paths/guest.hpp"
#include "training/terms.hpp"

namespace fabricast::models::training {

bool is_work(const Node& node) {
  return node.kind == NodeKind::compute &&
         (node.work_name == k_forward || node.work_name == k_backward || node.work_name == k_optimizer);
}

Duration time_alone(const Resources& resources, const Node& node) {
  Duration slowest;
  for (const auto& flow : node.flows) slowest = std::max(slowest, models::time_alone(resources, flow));
  return node.repeat * (sum(node.fixed) + slowest);
}

Duration longest_work(const Program& program) {
  std::vector<Duration> ends;
  std::map<int, Duration> streams;
  Duration longest;
  for (const auto& node : program.nodes) {
    Duration end;
    for (const int earlier : node.after) end = std::max(end, ends[static_cast<std::size_t>(earlier)]);
    if (node.stream >= 0) end = std::max(end, streams[node.stream]);
    if (is_work(node)) end += node.repeat * node.work;
    if (node.stream >= 0) streams[node.stream] = end;
    ends.push_back(end);
    longest = std::max(longest, end);
  }
  return longest;
}

std::vector<Term> step_delays(const PlanContext& context, DeviceId gpu, const TrainingSpec& spec, Duration work) {
  const bool is_layer = spec.part == TrainingPart::layer;
  const std::int64_t layers = is_layer ? std::max(1, static_cast<int>(spec.network->transformer->layers)) : 1;
  auto terms = compute_delays(context, gpu, layers * work);
  for (auto& term : terms) term.time = Duration{term.time.ps / layers};
  if (spec.profile && gpu_mode_of(context, gpu) == GpuMode::passthrough)
    std::erase_if(terms, [](const Term& term) { return term.parameter.ends_with(".compute_tax"); });
  return terms;
}

}  // namespace fabricast::models::training
