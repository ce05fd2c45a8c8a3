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

}  // namespace

Result<Layout> layout_of(const Workload& workload, int gpus) {
  const auto& spec = workload.training->parallel;
  Layout out{spec.tensor, spec.context, spec.pipeline, 1, spec.expert};
  const int split = out.tensor * out.context * out.pipeline;
  if (gpus % split != 0 || gpus < split)
    return tl::unexpected(
        Diagnostics{make_error_at(workload.location,
                                  fmt::format("{} GPUs are no multiple of {}: tensor {} x context {} x pipeline {}",
                                              gpus, split, out.tensor, out.context, out.pipeline),
                                  "change workload.gpus or workload.parallel")});
  out.data = gpus / split;
  const auto& shape = workload.training->network->transformer;
  if (out.data * out.context % out.expert != 0)
    return tl::unexpected(
        Diagnostics{make_error_at(workload.location,
                                  fmt::format("experts are shared by {} GPUs, {} replicas x context {} are no multiple",
                                              out.expert, out.data, out.context),
                                  "lower parallel.expert")});
  if (shape && shape->heads % out.tensor != 0)
    return tl::unexpected(Diagnostics{
        make_error_at(workload.location, fmt::format("{} heads cannot be split over {} GPUs", shape->heads, out.tensor),
                      "lower parallel.tensor")});
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
  if (out.expert > 1 && (!shape || shape->experts == 0 || shape->experts % out.expert != 0))
    return tl::unexpected(Diagnostics{
        make_error_at(workload.location,
                      fmt::format("{} experts cannot be shared by {} GPUs", shape ? shape->experts : 0, out.expert),
                      "change parallel.expert")});
  return out;
}

Result<SplitGroups> make_groups(const PlanContext& context, const Workload& workload,
                                const std::vector<DeviceId>& gpus) {
  auto layout = layout_of(workload, static_cast<int>(gpus.size()));
  if (!layout) return tl::unexpected(layout.error());
  SplitGroups groups;
  groups.layout = *layout;
  GroupMaker maker(context, workload, gpus);
  const int replicas = layout->data * layout->context;
  const int stage = layout->tensor * replicas;
  groups.tensor = maker.make(0, 1, layout->tensor);
  groups.context = maker.make(0, layout->tensor, layout->context);
  groups.expert = maker.make(0, layout->tensor, layout->expert);
  for (int s = 0; s < layout->pipeline; ++s) {
    groups.data.push_back(maker.make(s * stage, layout->tensor, replicas));
    const int next = (s + 1) % layout->pipeline;
    groups.send.push_back(layout->pipeline > 1 ? maker.make(std::min(s, next) * stage, std::abs(next - s) * stage, 2)
                                               : std::nullopt);
  }
  if (!maker.faults().empty()) return tl::unexpected(maker.faults());
  return groups;
}

}  // namespace fabricast::models::training
