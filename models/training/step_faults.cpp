// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "fabricast/models/training_memory.hpp"
#include "fabricast/models/training_precision.hpp"
#include "fabricast/training.hpp"
#include "training/data_parallel.hpp"
#include "training/planner.hpp"

namespace fabricast::models::training {

namespace {

/// Combinations of `parallel` that nothing computes.
Diagnostics parallel_faults(const Workload& workload) {
  Diagnostics faults;
  const auto& spec = *workload.training;
  const auto& p = spec.parallel;
  const auto add = [&](std::string message, std::string fix) {
    faults.push_back(make_error_at(workload.location, message, fix));
  };
  const bool needs_blocks = !is_plain(spec) || p.recompute != Recomputation::none;
  if (needs_blocks && (!spec.network || !spec.network->transformer))
    add(fmt::format("`data: {}`, recomputation and splits need a network given by the dimensions of a transformer",
                    to_string(p.data)),
        "write `data: ddp`, or name such a network");
  if (p.data == DataParallelism::fsdp && p.pipeline > 1)
    add("`data: fsdp` beside pipeline stages", "write `data: zero1`, which shards the optimiser");
  if (p.data == DataParallelism::horovod && !is_plain(spec))
    add("Horovod splits no model", "write `data: ddp` or `data: zero1`");
  if (p.bucket && !is_plain(spec))
    add("`bucket` of a split model: its gradients go as Megatron-LM cuts them", "leave `bucket` out");
  if (spec.part == TrainingPart::layer && (p.pipeline > 1 || p.context > 1 || p.micro_batches > 1))
    add("one layer has no pipeline, context or micro-batches", "leave these keys out, or write `part: step`");
  return faults;
}

/// Beside the other workloads where it is one of the scenario's.
Diagnostics memory_faults(const PlanContext& context, const Workload& given) {
  const auto* all = context.workloads;
  for (std::size_t w = 0; all != nullptr && w < all->size(); ++w)
    if (&(*all)[w] == &given) return training_memory(context.topology, *all, w, context.parameters);
  return training_memory(context.topology, {given}, 0, context.parameters);
}

}  // namespace

Diagnostics step_faults(const PlanContext& context, const Workload& workload) {
  auto faults = precision_faults(context.topology, workload, context.parameters);
  if (faults.empty()) faults = parallel_faults(workload);
  return faults.empty() ? memory_faults(context, workload) : faults;
}

}  // namespace fabricast::models::training
