// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "training/transformer.hpp"

namespace fabricast::models::training {

namespace {

/// Every `stride`-th GPU from `first`, `count` of them.
std::vector<DeviceId> every(const std::vector<DeviceId>& gpus, int first, int stride, int count) {
  std::vector<DeviceId> out;
  for (int i = 0; i < count; ++i) out.push_back(gpus[static_cast<std::size_t>(first + i * stride)]);
  return out;
}

/// Groups of `count` GPUs, every `stride`-th, in blocks: `groups` of them, of which `stride` lie one beside another.
struct Places {
  int first = 0, groups = 1, stride = 1, count = 1;
};

/// Makes the communicators of a kind and keeps the first fault.
class GroupMaker {
 public:
  GroupMaker(const PlanContext& context, const Workload& workload, const std::vector<DeviceId>& gpus, bool is_beside)
      : context_(context), workload_(workload), gpus_(gpus), is_beside_(is_beside) {}

  std::optional<Communicators> make(const Places& places) {
    if (places.count < 2 || !faults_.empty()) return std::nullopt;
    std::vector<std::vector<DeviceId>> groups;
    for (int g = 0; g < places.groups; ++g) {
      const int block = g / places.stride * places.stride * places.count;
      groups.push_back(every(gpus_, places.first + block + g % places.stride, places.stride, places.count));
    }
    auto made = Communicators::make(context_, workload_, groups, is_beside_);
    if (made) return std::move(*made);
    faults_ = made.error();
    return std::nullopt;
  }
  [[nodiscard]] const Diagnostics& faults() const { return faults_; }

 private:
  const PlanContext& context_;
  const Workload& workload_;
  const std::vector<DeviceId>& gpus_;
  bool is_beside_;
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
  const bool is_alone = context.runs_alone && !context.full_expansion && !context.with_legs;
  SplitGroups groups{*layout, Wire(context.resources, is_alone), !context.runs_alone, {}, {}, {}, {}};
  // Stages exchange gradients while others send.
  GroupMaker maker(context, workload, gpus, layout->pipeline > 1);
  const auto& [tensor, shards, pipeline, data, expert, expert_tensor] = *layout;
  const int replicas = layout->replicas();
  const int stage = tensor * replicas;
  const int experts = expert * expert_tensor;
  const bool has_experts = workload.training->network->transformer->experts > 0;
  const bool is_apart = has_experts && layout->has_experts_apart();
  const bool is_gathered = has_experts && workload.training->parallel.sequence;
  for (int s = 0; s < (groups.meets_others ? pipeline : 1); ++s) {
    groups.layer.push_back({maker.make({s * stage, replicas, 1, tensor}),
                            maker.make({s * stage, tensor * data, tensor, shards}),
                            maker.make({s * stage, stage / expert, expert_tensor, expert}),
                            maker.make({s * stage, stage / expert_tensor, 1, is_gathered ? expert_tensor : 1})});
  }
  for (int s = 0; s < pipeline; ++s) {
    groups.data.push_back(maker.make({s * stage, tensor, tensor, replicas}));
    groups.expert_data.push_back(maker.make({s * stage, experts, experts, is_apart ? layout->expert_replicas() : 1}));
    const int next = (s + 1) % pipeline;
    groups.send.push_back(
        maker.make({std::min(s, next) * stage, stage, std::abs(next - s) * stage, pipeline > 1 ? 2 : 1}));
  }
  if (!maker.faults().empty()) return tl::unexpected(maker.faults());
  return groups;
}

std::vector<const Communicators*> SplitGroups::all() const {
  std::vector<const Communicators*> out;
  const auto add = [&](const std::optional<Communicators>& groups) {
    if (groups) out.push_back(&*groups);
  };
  for (const auto* stages : {&data, &expert_data})
    for (const auto& groups : *stages) add(groups);
  for (const auto& stage : layer)
    for (const auto* groups : {&stage.tensor, &stage.context, &stage.expert, &stage.expert_tensor}) add(*groups);
  for (const auto& groups : send) add(groups);
  return out;
}

const Communicator* SplitGroups::speaker() const {
  const auto groups = all();
  const auto between = std::ranges::find_if(groups, [](const Communicators* one) {
    return one->first().planner(Benchmark::all_reduce_perf).num_hosts() > 1;
  });
  if (between != groups.end()) return &(*between)->first();
  return groups.empty() ? nullptr : &groups.front()->first();
}

std::vector<std::string> split_assumptions(const PlanContext& context, const SplitGroups& split, DeviceId gpu) {
  std::vector<std::string> out;
  std::set<DeviceId> used;
  for (const auto* groups : split.all()) {
    if (!groups->has_neighbours()) continue;
    if (out.empty())
      out.emplace_back("groups of one kind exchange at the same moment, over what they share of adapters and links");
    used.merge(groups->hcas_in_use());
  }
  if (split.meets_others && !split.layer.front().is_empty())
    out.emplace_back(
        "exchanges inside layers meet all else that is on the wire, also what the step itself exchanges beside them; "
        "of a step without other workloads they count as if apart");
  const int host = context.topology.host_of(gpu);
  const auto all = static_cast<std::ptrdiff_t>(context.topology.hcas_by_distance(gpu).size());
  const auto count = std::ranges::count(used, host, [&](DeviceId hca) { return context.topology.host_of(hca); });
  if (count > 0 && count < all)
    out.push_back(
        fmt::format("{} of the {} HCAs of {} carry data: NCCL takes near ones, and as many as give each group's "
                    "channels most bandwidth",
                    count, all, context.topology.host_name(host)));
  return out;
}

}  // namespace fabricast::models::training
