// SPDX-License-Identifier: Apache-2.0
// One transformer layer forward, its matrices split over the GPUs of a group: attention | all-reduce | feed-forward |
// all-reduce. With `kv_length` cached tokens this is decoding: each token reads keys and values of all of them.
//
//   keys and values: L g d e bytes each, once when values are read as keys;  FLOP 4 s L a d
#include "training/exchanges.hpp"
#include "training/terms.hpp"
#include "training/transformer.hpp"

namespace fabricast::models::training {

namespace {

/// The attention of `layer` over `cached` tokens instead of the sequence's own.
NetworkLayer over_cache(NetworkLayer layer, const TransformerShape& shape, double tokens, double cached) {
  const double width = static_cast<double>(shape.heads * shape.head_size);
  const double kv_width = static_cast<double>(shape.kv_heads * shape.head_size);
  layer.forward_flop = 4 * tokens * cached * width;
  layer.forward_moved = 2 * tokens * width + layer.inner * cached * kv_width;
  layer.rows = 0;  // split kernels fill the GPU whatever the length
  return layer;
}

}  // namespace

Program layer_program(const Roofline& roofline, const TrainingSpec& spec, const SplitGroups& groups) {
  const auto& network = *spec.network;
  const auto& shape = *network.transformer;
  const LayerShare share{.samples = static_cast<double>(spec.batch_per_gpu),
                         .tensor = static_cast<double>(groups.layout.tensor),
                         .expert = static_cast<double>(groups.layout.expert)};
  Duration attention, feed_forward;
  bool is_behind = false;
  for (const auto& layer : network.layers) {
    if (layer.block != 0) continue;
    const bool is_cached = layer.kind == LayerKind::attention && spec.kv_length > 0;
    const auto one = is_cached ? over_cache(layer, shape, static_cast<double>(network.tokens), spec.kv_length) : layer;
    (is_behind ? feed_forward : attention) += roofline.forward(one, share);
    is_behind = is_behind || layer.name == "o";
  }
  Program program;
  program.num_devices = 1;
  program.streams = {{"GPU 0 compute", 0}};
  const auto& efficiency = roofline.efficiency(spec.kv_length > 0 ? LayerKind::memory : LayerKind::gemm);
  const auto& gap = roofline.kernel_floor();
  const BlockExchanges exchanges(roofline.parameters(), spec, groups);
  for (const auto work : {attention, feed_forward}) {
    Node node;
    node.kind = NodeKind::compute;
    node.label = node.work_name = k_forward;
    node.work_parameter = efficiency.name;
    node.work = work;
    node.stream = 0;
    int last = program.then(std::move(node));
    if (!groups.tensor) continue;
    last = groups.tensor->append(program, Benchmark::all_reduce_perf, exchanges.activations(), {last}, 0,
                                 "exposed all-reduce of activations", -1);
    Node wait;
    wait.kind = NodeKind::delay;
    wait.label = "start of the kernel behind an all-reduce";
    wait.stream = 0;
    wait.fixed.push_back({wait.label, from_seconds(gap.value), gap.name, gap.source});
    program.then(std::move(wait));
  }
  return program;
}

}  // namespace fabricast::models::training
