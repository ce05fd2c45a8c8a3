// SPDX-License-Identifier: Apache-2.0
// One transformer layer forward, its matrices split over the GPUs of a group: attention | all-reduce | feed-forward |
// all-reduce; with experts router | dispatch | experts | combine in the place of the feed-forward part. It is the last
// block of the network, whose experts are not left out. With `kv_length` cached tokens this is decoding: each token
// reads the cache of all of them (cached_attention.hpp).
#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "training/cached_attention.hpp"
#include "training/exchanges.hpp"
#include "training/terms.hpp"
#include "training/transformer.hpp"

namespace fabricast::models::training {

namespace {

class LayerStep {
 public:
  LayerStep(const Roofline& roofline, const TrainingSpec& spec, const SplitGroups& groups)
      : roofline_(roofline),
        spec_(spec),
        groups_(groups),
        inside_(groups.layer.front()),
        exchanges_(roofline.parameters(), spec, groups.layout, inside_),
        wire_(groups.wire) {
    program_.num_devices = 1;
    program_.streams = {{"GPU 0 compute", 0}};
  }

  Program make() {
    const auto times = parts();
    compute(times[attention]);
    all_reduce();
    if (inside_.expert) {
      compute(times[feed_forward]);
      to_experts("exposed dispatch to experts");
      compute(times[experts]);
      to_experts("exposed combination of experts");
      compute(times[behind_experts]);
    } else {
      compute(times[feed_forward] + times[experts] + times[behind_experts]);
    }
    all_reduce();
    wire_.fill(program_);
    return std::move(program_);
  }

 private:
  enum Part { attention, feed_forward, experts, behind_experts, num_parts };

  [[nodiscard]] std::array<Duration, num_parts> parts() const {
    const auto& network = *spec_.network;
    const auto& shape = *network.transformer;
    const auto& layout = groups_.layout;
    const LayerShare share{.samples = static_cast<double>(spec_.batch_per_gpu),
                           .tensor = static_cast<double>(layout.tensor),
                           .expert = static_cast<double>(layout.expert),
                           .expert_tensor = static_cast<double>(layout.expert_tensor),
                           .imbalance = spec_.parallel.imbalance};
    std::array<Duration, num_parts> times;
    int part = attention;
    for (const auto& layer : network.layers) {
      if (layer.block + 1 != shape.layers) continue;
      const bool is_expert = layer.experts > 1 && layer.name != "permute";
      if (is_expert) part = experts;
      if (!is_expert && part == experts) part = behind_experts;
      times[static_cast<std::size_t>(part)] += fastest(ways_over_cache(layer, network, spec_.kv_length), share);
      if (layer.name == "o") part = feed_forward;
    }
    return times;
  }

  [[nodiscard]] Duration fastest(const std::vector<std::vector<NetworkLayer>>& ways, const LayerShare& share) const {
    std::optional<Duration> least;
    for (const auto& way : ways) {
      Duration time;
      for (const auto& layer : way) time += roofline_.forward(layer, share);
      least = std::min(least.value_or(time), time);
    }
    return least.value_or(Duration{});
  }

  void compute(Duration work) {
    const auto& efficiency = roofline_.efficiency(spec_.kv_length > 0 ? LayerKind::memory : LayerKind::gemm);
    Node node;
    node.kind = NodeKind::compute;
    node.label = node.work_name = k_forward;
    node.work_parameter = efficiency.name;
    node.work = work;
    node.stream = 0;
    last_ = program_.then(std::move(node));
  }

  void all_reduce() {
    if (!inside_.tensor) return;
    last_ = inside_.tensor->append(program_, wire_, Benchmark::all_reduce_perf, exchanges_.activations(), {last_}, 0,
                                   "exposed all-reduce of activations", -1);
    start_behind("start of the kernel behind an all-reduce");
  }

  void to_experts(const char* name) {
    last_ = inside_.expert->append(program_, wire_, Benchmark::alltoall_perf, exchanges_.dispatched(), {last_}, 0, name,
                                   -1);
    start_behind("start of the kernel behind an exchange of experts");
  }

  void start_behind(const char* name) {
    const auto& gap = roofline_.kernel_floor();
    Node wait;
    wait.kind = NodeKind::delay;
    wait.label = name;
    wait.stream = 0;
    wait.fixed.push_back({wait.label, from_seconds(gap.value), gap.name, gap.source});
    last_ = program_.then(std::move(wait));
  }

  const Roofline& roofline_;
  const TrainingSpec& spec_;
  const SplitGroups& groups_;
  const LayerGroups& inside_;
  BlockExchanges exchanges_;
  Wire wire_;
  Program program_;
  int last_ = -1;
};

}  // namespace

Program layer_program(const Roofline& roofline, const TrainingSpec& spec, const SplitGroups& groups) {
  return LayerStep(roofline, spec, groups).make();
}

}  // namespace fabricast::models::training
