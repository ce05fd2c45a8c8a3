// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "training/transformer.hpp"

namespace fabricast::models::training {

namespace {

/// Every `stride`-th GPU from `first`, `count` of them.
std::vector<DeviceId> every(const std::vector<DeviceId>& gpus, int first, int stride, int count) {
  std::vector<DeviceId> out;
  for (int i = 0; i < count; ++i) out.push_back(gpus[static_cast<std::size_t>(first + i * stride)]);
  return out;
}

/// Makes communicators and keeps the first fault.
class GroupMaker {
 public:
  GroupMaker(const PlanContext& context, const Workload& workload, const std::vector<DeviceId>& gpus)
      : context_(context), workload_(workload), gpus_(gpus) {}

  std::optional<Communicator> make(int first, int stride, int count) {
    if (count < 2 || !faults_.empty()) return std::nullopt;
    auto made = Communicator::make(context_, workload_, every(gpus_, first, stride, count));
    if (made) return std::move(*made);
    faults_ = made.error();
    return std::nullopt;
  }
  [[nodiscard]] const Diagnostics& faults() const { return faults_; }

 private:
  const PlanContext& context_;
  const Workload& workload_;
  const std::vector<DeviceId>& gpus_;
  Diagnostics faults_;
};

/// Why the experts cannot lie as asked.
std::optional<Diagnostic> expert_fault(const Workload& workload, const Layout& layout) {
  const auto& spec = workload.training->parallel;
  const auto& shape = workload.training->network->transformer;
  const auto fault = [&](std::string message, const char* fix) {
    return make_error_at(workload.location, std::move(message), fix);
  };
  if (layout.tensor % layout.expert_tensor != 0)
    return fault(
        fmt::format("each expert is shared by {} GPUs, tensor {} is no multiple", layout.expert_tensor, layout.tensor),
        "change parallel.expert_tensor");
  // Without `sequence` all GPUs of a tensor group hold the same tokens, and their parts of an expert add up in it.
  if (layout.expert_tensor != layout.tensor && !spec.sequence)
    return fault("`expert_tensor` other than `tensor` sends each token once, its GPUs hold the same tokens",
                 "add `sequence: on`");
  const int stage = layout.tensor * layout.replicas();
  if (stage % (layout.expert * layout.expert_tensor) != 0)
    return fault(fmt::format("experts are shared by {} x {} GPUs, {} of a pipeline stage are no multiple",
                             layout.expert, layout.expert_tensor, stage),
                 "lower parallel.expert");
  if (layout.expert > 1 && (!shape || shape->experts == 0 || shape->experts % layout.expert != 0))
    return fault(fmt::format("{} experts cannot be shared by {} GPUs", shape ? shape->experts : 0, layout.expert),
                 "change parallel.expert");
  return std::nullopt;
}

}  // namespace

Result<Layout> layout_of(const Workload& workload, int gpus) {
  const auto& spec = workload.training->parallel;
  Layout out{spec.tensor, spec.context, spec.pipeline, 1, spec.expert, spec.expert_tensor.value_or(spec.tensor)};
  const int split = out.tensor * out.context * out.pipeline;
  if (gpus % split != 0 || gpus < split)
    return tl::unexpected(
        Diagnostics{make_error_at(workload.location,
                                  fmt::format("{} GPUs are no multiple of {}: tensor {} x context {} x pipeline {}",
                                              gpus, split, out.tensor, out.context, out.pipeline),
                                  "change workload.gpus or workload.parallel")});
  out.data = gpus / split;
  const auto& shape = workload.training->network->transformer;
  if (auto fault = expert_fault(workload, out)) return tl::unexpected(Diagnostics{std::move(*fault)});
  if (shape && shape->heads % out.tensor != 0)
    return tl::unexpected(Diagnostics{
        make_error_at(workload.location, fmt::format("{} heads cannot be split over {} GPUs", shape->heads, out.tensor),
                      "lower parallel.tensor")});
  // [TransformerEngine, context_parallel.py: heads and groups of keys and values divide by the GPUs that share them]
  if (shape && out.context > 1 && spec.context_exchange == ContextExchange::all_to_all) {
    const auto shared = std::int64_t{out.tensor} * out.context;
    for (const auto& [heads, what] : {std::pair{shape->heads, "heads"}, std::pair{shape->kv_heads, "heads of keys"}}) {
      if (heads % shared != 0)
        return tl::unexpected(Diagnostics{make_error_at(
            workload.location,
            fmt::format("{} {} cannot be dealt out to tensor {} x context {} GPUs, as `context_exchange: all_to_all` "
                        "does",
                        heads, what, out.tensor, out.context),
            "lower parallel.context, or write `context_exchange: ring`")});
    }
  }
  if (shape && out.pipeline * spec.interleave > shape->layers)
    return tl::unexpected(Diagnostics{make_error_at(
        workload.location,
        fmt::format("{} layers cannot be split into {} stages", shape->layers, out.pipeline * spec.interleave),
        "lower parallel.pipeline or parallel.interleave")});
  if (spec.interleave > 1 && spec.micro_batches % out.pipeline != 0)
    return tl::unexpected(
        Diagnostics{make_error_at(workload.location,
                                  fmt::format("{} micro-batches are no multiple of {} stages, which interleaving needs",
                                              spec.micro_batches, out.pipeline),
                                  "change parallel.micro_batches")});
  return out;
}

Result<SplitGroups> make_groups(const PlanContext& context, const Workload& workload,
                                const std::vector<DeviceId>& gpus) {
  auto layout = layout_of(workload, static_cast<int>(gpus.size()));
  if (!layout) return tl::unexpected(layout.error());
  SplitGroups groups;
  groups.layout = *layout;
  GroupMaker maker(context, workload, gpus);
  const int replicas = layout->replicas();
  const int stage = layout->tensor * replicas;
  const int experts = layout->expert * layout->expert_tensor;
  const bool has_experts = workload.training->network->transformer->experts > 0;
  const bool is_apart = has_experts && layout->has_experts_apart();
  groups.tensor = maker.make(0, 1, layout->tensor);
  groups.context = maker.make(0, layout->tensor, layout->context);
  groups.expert = maker.make(0, layout->expert_tensor, layout->expert);
  groups.expert_tensor =
      maker.make(0, 1, has_experts && workload.training->parallel.sequence ? layout->expert_tensor : 1);
  for (int s = 0; s < layout->pipeline; ++s) {
    groups.data.push_back(maker.make(s * stage, layout->tensor, replicas));
    groups.expert_data.push_back(maker.make(s * stage, experts, is_apart ? layout->expert_replicas() : 1));
    const int next = (s + 1) % layout->pipeline;
    groups.send.push_back(layout->pipeline > 1 ? maker.make(std::min(s, next) * stage, std::abs(next - s) * stage, 2)
                                               : std::nullopt);
  }
  if (!maker.faults().empty()) return tl::unexpected(maker.faults());
  return groups;
}

}  // namespace fabricast::models::training
