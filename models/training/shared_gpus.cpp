// SPDX-License-Identifier: Apache-2.0
#include "fabricast/models/shared_gpus.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "fabricast/models/training_memory.hpp"
#include "fabricast/training.hpp"
#include "nccl/ranks.hpp"
#include "paths/contention.hpp"

namespace fabricast::models {

using namespace literals;

namespace {

/// Kernel of a process that computes all the time: longer than any slice, short enough to simulate.
constexpr Duration k_busy_process = 50_ms;

bool computes_steps(const Workload& workload) {
  return workload.benchmark == Benchmark::training || workload.benchmark == Benchmark::gpu_step;
}

bool runs_kernels(const Workload& workload) {
  return computes_steps(workload) || family_of(workload.benchmark) == BenchmarkFamily::nccl_tests;
}

}  // namespace

std::vector<DeviceId> gpus_of(const Topology& topology, const Workload& workload) {
  const auto found = workload.training ? training_gpus(topology, workload) : nccl::choose_ranks(topology, workload);
  auto gpus = found.value_or(std::vector<DeviceId>{});
  std::ranges::sort(gpus, {}, &DeviceId::value);
  return gpus;
}

std::vector<SharedGpus> shared_gpus(const Topology& topology, const std::vector<Workload>& workloads,
                                    std::size_t index) {
  std::vector<SharedGpus> out;
  if (workloads.size() < 2 || !runs_kernels(workloads[index])) return out;
  std::vector<DeviceId> own;
  for (std::size_t other = 0; other < workloads.size(); ++other) {
    const bool is_counted = computes_steps(workloads[index]) || computes_steps(workloads[other]);
    if (other == index || !is_counted || !runs_kernels(workloads[other])) continue;
    if (own.empty()) own = gpus_of(topology, workloads[index]);
    const auto others = gpus_of(topology, workloads[other]);
    SharedGpus one{other, {}};
    std::ranges::set_intersection(own, others, std::back_inserter(one.gpus), {}, &DeviceId::value, &DeviceId::value);
    if (!one.gpus.empty()) out.push_back(std::move(one));
  }
  return out;
}

std::vector<Term> waits_in_turns(const PlanContext& context, const Planner& planner, const Workload& workload,
                                 const std::vector<SharedGpus>& others, Duration time) {
  if (others.empty()) return planner.waits(time);
  std::vector<Term> out;
  auto asked = workload;
  // Processes of one vGPU take turns in what it gets; clients without a profile are processes beside these.
  if (!asked.sharing || !asked.sharing->profile.empty()) {
    out = planner.waits(time);
    asked.sharing = GpuSharing{};
  }
  for (const auto& one : others)
    asked.sharing->clients.push_back({name_of(*context.workloads, one.other), k_busy_process, {}});
  for (auto& term : waits_for_others(context, asked, others.front().gpus.front(), time + sum(out)))
    out.push_back(std::move(term));
  return out;
}

std::string name_of(const std::vector<Workload>& workloads, std::size_t index) {
  const auto& one = workloads[index];
  return one.name.empty() ? fmt::format("{} (workload {})", to_string(one.benchmark), index + 1)
                          : fmt::format("'{}'", one.name);
}

std::string words_of(const Topology& topology, const std::vector<DeviceId>& gpus) {
  const auto first = topology.device(gpus.front()).name;
  if (gpus.size() == 1) return first;
  return fmt::format("{} GPUs ({} to {})", gpus.size(), first, topology.device(gpus.back()).name);
}

}  // namespace fabricast::models
