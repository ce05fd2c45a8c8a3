// SPDX-License-Identifier: Apache-2.0
#include "training/stragglers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/parameter_name.hpp"
#include "training/delays.hpp"
#include "training/terms.hpp"

namespace fabricast::models::training {

namespace {

constexpr double k_farthest = 9;  ///< standard deviations: beyond them lies less than one in 10^18
constexpr int k_steps = 4000;     ///< even, of Simpson's rule: the error is below 1e-6 of the standard deviation

double normal_distribution(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

/// Probability that nobody takes longer than `time`.
double all_within(const std::map<double, int>& counts, double jitter, double time) {
  double product = 1;
  for (const auto& [rate, count] : counts) product *= std::pow(normal_distribution((time * rate - 1) / jitter), count);
  return product;
}

}  // namespace

double slowest_factor(const std::map<double, int>& counts, double jitter) {
  const double slowest = counts.begin()->first;
  if (jitter <= 0) return 1 / slowest;
  const bool is_alone = counts.size() == 1 && counts.begin()->second == 1;
  if (is_alone) return 1 / slowest;
  // Nothing lies below the slowest GPU's own shortest time or above the longest of all.
  const double low = (1 - k_farthest * jitter) / slowest;
  const double high = (1 + k_farthest * jitter) / slowest;
  const double step = (high - low) / k_steps;
  double sum = 0;
  for (int i = 0; i <= k_steps; ++i) {
    const int weight = i == 0 || i == k_steps ? 1 : i % 2 == 1 ? 4 : 2;
    sum += weight * all_within(counts, jitter, low + i * step);
  }
  return high - sum * step / 3;
}

const Parameter& compute_spread(const ParameterSet& parameters) { return parameters.at("gpu.compute_spread"_key); }

bool has_spread(const TrainingSpec& spec) { return spec.part == TrainingPart::step || spec.kv_length == 0; }

Straggling straggling_of(const TrainingSpec& spec, const std::vector<std::string>& gpus, const Parameter& spread) {
  std::map<double, int> counts;
  for (const auto& gpu : gpus) {
    const auto slow = std::ranges::find(spec.slow, gpu, &SlowGpu::gpu);
    ++counts[slow == spec.slow.end() ? 1.0 : slow->rate];
  }
  const double apart = has_spread(spec) ? spread.value : 0;
  Straggling out{.passes = slowest_factor(counts, std::hypot(apart, spec.jitter)),
                 .optimizer = slowest_factor(counts, spec.jitter),
                 .parameter = spread.name,
                 .source = spread.source};
  const bool has_slow = counts.begin()->first < 1;
  if (has_slow || spec.jitter > 0) {
    out.parameter = has_slow ? "workload.slow" : "workload.jitter";
    out.source = "the scenario";
  }
  return out;
}

void add_stragglers(Program& program, const std::vector<Straggling>& streams) {
  for (auto& node : program.nodes) {
    const auto stream = static_cast<std::size_t>(std::max(0, node.stream));
    if (!is_work(node) || stream >= streams.size()) continue;
    const auto& pace = streams[stream];
    const double factor = node.work_name == k_optimizer ? pace.optimizer : pace.passes;
    const auto wait = from_seconds(node.work.seconds() * (factor - 1));
    if (wait.ps > 0) node.fixed.push_back({k_straggler, wait, pace.parameter, pace.source});
  }
}

Diagnostics slow_faults(const PlanContext& context, const Workload& workload) {
  Diagnostics faults;
  for (const auto& slow : workload.training->slow) {
    const auto device = context.topology.find_device(slow.gpu);
    if (device && context.topology.kind(*device) == DeviceKind::gpu) continue;
    faults.push_back(make_error_at(slow.location,
                                   fmt::format("'{}' is not a GPU of topology '{}'", slow.gpu, context.topology.name()),
                                   "GPUs are called host.gpuN, of VMs host/vm.gpuN"));
  }
  return faults;
}

}  // namespace fabricast::models::training
