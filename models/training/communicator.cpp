// SPDX-License-Identifier: Apache-2.0
#include "training/communicator.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/assert.hpp"
#include "base/parameter_name.hpp"
#include "fabricast/training.hpp"
#include "nccl/planner.hpp"
#include "paths/transport.hpp"
#include "training/delays.hpp"
#include "training/power.hpp"

namespace fabricast::models::training {

namespace {

/// Reads and writes of GPU memory per byte of the result: a ring's all-reduce receives, adds, sends and stores.
double memory_passes(Benchmark operation) { return operation == Benchmark::all_reduce_perf ? 4 : 2; }

}  // namespace

Communicator::Communicator(const PlanContext& context, const Workload& workload, const std::vector<DeviceId>& gpus)
    : context_(std::make_shared<const PlanContext>(context)),
      workload_(workload),
      size_(static_cast<int>(gpus.size())) {
  workload_.training = nullptr;
  workload_.iterations = 0;  // part of a step or trace
  workload_.algorithm = workload_.protocol = "auto";
  workload_.gpus = std::nullopt;
  workload_.devices.clear();
  for (const auto gpu : gpus) workload_.devices.push_back(context.topology.device(gpu).name);
  memory_bandwidth_ = memory_rate(context, gpus.front());
  for (const auto gpu : gpus) memory_bandwidth_ = std::min(memory_bandwidth_, memory_rate(context, gpu));
}

Result<Communicator> Communicator::make(const PlanContext& context, const Workload& workload,
                                        const std::vector<DeviceId>& gpus) {
  Communicator out(context, workload, gpus);
  out.workload_.benchmark = Benchmark::all_reduce_perf;
  auto planner = nccl::make_collective_planner(context, out.workload_);
  if (!planner) return tl::unexpected(planner.error());
  out.planners_.emplace(Benchmark::all_reduce_perf, std::move(*planner));
  return out;
}

const Planner& Communicator::planner(Benchmark operation) const {
  const auto known = planners_.find(operation);
  if (known != planners_.end()) return *known->second;
  auto workload = workload_;
  workload.benchmark = operation;
  auto planner = nccl::make_collective_planner(*context_, workload);
  // The group's all-reduce was planned: what it needs, others need too.
  FABRICAST_ASSERT(planner.has_value(), "no plan for {}", to_string(operation));
  return *planners_.emplace(operation, std::move(*planner)).first->second;
}

const OperationPlan& Communicator::plan(Benchmark operation, Bytes size) const {
  const auto [it, is_new] = plans_.try_emplace({operation, size.value});
  if (is_new) it->second = planner(operation).plan(size);
  return it->second;
}

Duration Communicator::time_alone(Benchmark operation, Bytes size) const {
  const auto& operation_plan = plan(operation, size);
  auto time = sum(operation_plan.before);
  for (const auto& node : operation_plan.program.nodes) time += training::time_alone(context_->resources, node);
  return time;
}

double Communicator::slowdown(Benchmark operation, Bytes size) const {
  return slowdown(operation, size, time_alone(operation, size));
}

double Communicator::slowdown(Benchmark operation, Bytes size, Duration time) const {
  const double seconds = time.seconds();
  if (seconds <= 0 || size.value <= 0) return 0;
  const double moved = memory_passes(operation) * static_cast<double>(size.value) / seconds;
  return context_->parameters["training.exchange_slowdown"_key] * std::min(1.0, moved / memory_bandwidth_);
}

int Communicator::append(Program& program, Benchmark operation, Bytes size, const std::vector<int>& after, int stream,
                         const std::string& name, int slowed) const {
  return append_operation(program, plan(operation, size), after, stream, name,
                          {slowed, slowed >= 0 ? slowdown(operation, size) : -1});
}

int append_operation(Program& program, const OperationPlan& plan, const std::vector<int>& after, int stream,
                     const std::string& name, std::pair<int, double> slowed) {
  Node start;
  start.kind = NodeKind::delay;
  start.label = name;
  start.after = after;
  start.stream = stream;
  start.fixed = plan.before;
  program.nodes.push_back(std::move(start));
  const auto first = program.nodes.size();
  const int last = program.append(plan.program, {static_cast<int>(first) - 1}, stream);
  for (auto n = first; n < program.nodes.size(); ++n) {
    auto& node = program.nodes[n];
    node.label = name;
    if (slowed.second >= 0 && !node.flows.empty()) node.slows = {slowed};
  }
  return last;
}

Duration time_together(const Resources& resources, const std::vector<const OperationPlan*>& plans) {
  std::size_t length = 0;
  Duration time;
  for (const auto* plan : plans) {
    length = std::max(length, plan->program.nodes.size());
    time = std::max(time, sum(plan->before));
  }
  for (std::size_t n = 0; n < length; ++n) {
    std::map<int, double> load;
    Duration longest, after;
    for (const auto* plan : plans) {
      if (n >= plan->program.nodes.size()) continue;
      const auto& node = plan->program.nodes[n];
      const auto repeat = static_cast<double>(node.repeat);
      Duration slowest;
      for (const auto& flow : node.flows) {
        const double alone = flow.bytes > 0 ? flow.bytes / rate_alone(resources, flow) : 0;
        slowest = std::max(slowest, flow.latency + from_seconds(alone));
        for (const auto& crossing : flow.crossings) load[crossing.resource] += repeat * crossing.times * flow.bytes;
      }
      after = std::max(after, node.repeat * sum(node.fixed));
      longest = std::max(longest, node.repeat * (sum(node.fixed) + slowest));
    }
    for (const auto& [resource, bytes] : load)
      longest = std::max(longest, from_seconds(bytes / resources.capacity(resource)) + after);
    time += longest;
  }
  return time;
}

}  // namespace fabricast::models::training
