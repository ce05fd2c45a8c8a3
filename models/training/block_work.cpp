// SPDX-License-Identifier: Apache-2.0
// Time and parameters of a transformer's blocks on one GPU of its groups.
#include <algorithm>

#include "training/transformer.hpp"

namespace fabricast::models::training {

namespace {

LayerShare share_of(const TrainingSpec& spec, const Layout& layout) {
  return {.samples = static_cast<double>(spec.batch_per_gpu) / layout.context,
          .tensor = static_cast<double>(layout.tensor),
          .sequence = static_cast<double>(spec.parallel.sequence ? layout.tensor : 1),
          .expert = static_cast<double>(layout.expert),
          .expert_tensor = static_cast<double>(layout.expert_tensor),
          .imbalance = spec.parallel.imbalance};
}

void add(BlockWork& work, const Roofline& roofline, const NetworkLayer& layer, const LayerShare& share) {
  const auto forward = roofline.forward(layer, share);
  work.forward += forward;
  work.backward += roofline.backward(layer, share);
  if (layer.kind == LayerKind::attention) work.attention += forward;
  if (layer.is_selective) work.selective += forward;
  double elements = 0;
  for (const auto one : layer.tensors) elements += static_cast<double>(one);
  const bool is_split = (layer.kind == LayerKind::gemm || layer.kind == LayerKind::embedding) && !layer.is_replicated;
  const bool is_apart = share.expert > 1 || share.expert_tensor < share.tensor;
  if (layer.experts > 1 && is_apart)
    work.expert_parameters += elements / (share.expert * share.expert_tensor);
  else
    work.parameters += elements / (is_split ? share.tensor : 1);
  work.tensors += static_cast<double>(layer.tensors.size());
}

/// [block]: whether it has experts.
std::vector<bool> sparse_blocks(const Network& network) {
  std::vector<bool> out(static_cast<std::size_t>(network.transformer->layers), false);
  for (const auto& layer : network.layers) {
    if (layer.block >= 0 && layer.experts > 1) out[static_cast<std::size_t>(layer.block)] = true;
  }
  return out;
}

void add_times(BlockWork& sum, int times, const BlockWork& one) {
  sum.forward += times * one.forward;
  sum.backward += times * one.backward;
  sum.attention += times * one.attention;
  sum.selective += times * one.selective;
  sum.launch_forward += times * one.launch_forward;
  sum.launch_backward += times * one.launch_backward;
  sum.parameters += times * one.parameters;
  sum.expert_parameters += times * one.expert_parameters;
  sum.tensors += times * one.tensors;
}

/// Operators that a pass over a part of the network launches.
struct Launched {
  double forward = 0, backward = 0;
};

Launched operators_of(const TrainingSpec& spec, auto&& is_part) {
  Launched out;
  for (const auto& layer : spec.network->layers) {
    if (!is_part(layer)) continue;
    const bool is_again = spec.parallel.recompute == Recomputation::full
                              ? layer.block >= 0
                              : spec.parallel.recompute == Recomputation::selective && layer.is_selective;
    out.forward += layer.operators;
    out.backward += (is_again ? 3 : 2) * layer.operators;
  }
  return out;
}

/// A pass takes at least as long as its operators are launched (work_of_network); what that adds is dealt out by
/// operators.
void add_launches(TransformerWork& work, const Roofline& roofline, const TrainingSpec& spec, double slower) {
  const auto all = operators_of(spec, [](const NetworkLayer&) { return true; });
  auto passes = work.sum(work.count(0, spec.network->transformer->layers));
  add_times(passes, 1, work.first);
  add_times(passes, 1, work.last);
  const auto forward = std::max(Duration{}, roofline.launches(all.forward) - passes.forward);
  const auto backward = std::max(Duration{}, roofline.launches(all.backward) - passes.backward);
  const double waited = (forward + backward).seconds();
  if (waited <= 0) return;
  const double left = std::max(0.0, 1 - (slower - 1) * (passes.forward + passes.backward).seconds() / waited);
  const auto deal_out = [&](BlockWork& part, auto&& is_part) {
    const auto own = operators_of(spec, is_part);
    part.launch_forward = from_seconds(forward.seconds() * left * own.forward / all.forward);
    part.launch_backward = from_seconds(backward.seconds() * left * own.backward / all.backward);
  };
  const auto is_sparse = sparse_blocks(*spec.network);
  const auto first_of = [&](bool kind) {
    return static_cast<int>(std::ranges::find(is_sparse, kind) - is_sparse.begin());
  };
  deal_out(work.dense, [&](const NetworkLayer& layer) { return layer.block == first_of(false); });
  deal_out(work.sparse, [&](const NetworkLayer& layer) { return layer.block == first_of(true); });
  deal_out(work.first, [](const NetworkLayer& layer) { return layer.block < 0 && !layer.is_last_stage; });
  deal_out(work.last, [](const NetworkLayer& layer) { return layer.block < 0 && layer.is_last_stage; });
}

}  // namespace

BlockCount TransformerWork::count(int from, int to) const {
  const int sparse_count = sparse_before[static_cast<std::size_t>(to)] - sparse_before[static_cast<std::size_t>(from)];
  return {to - from - sparse_count, sparse_count};
}

BlockWork TransformerWork::sum(const BlockCount& blocks) const {
  BlockWork out;
  add_times(out, blocks.dense, dense);
  add_times(out, blocks.sparse, sparse);
  return out;
}

TransformerWork transformer_work(const Roofline& roofline, const TrainingSpec& spec, const Layout& layout,
                                 double slower) {
  TransformerWork work;
  const auto share = share_of(spec, layout);
  const auto is_sparse = sparse_blocks(*spec.network);
  work.sparse_before = {0};
  for (const bool one : is_sparse) work.sparse_before.push_back(work.sparse_before.back() + (one ? 1 : 0));
  // Blocks of a kind are equal: the first of each stands for them.
  const auto first_of = [&](bool kind) {
    return static_cast<int>(std::ranges::find(is_sparse, kind) - is_sparse.begin());
  };
  const int first_dense = first_of(false), first_sparse = first_of(true);
  for (const auto& layer : spec.network->layers) {
    if (layer.block == first_dense) add(work.dense, roofline, layer, share);
    if (layer.block == first_sparse) add(work.sparse, roofline, layer, share);
    if (layer.block < 0) add(layer.is_last_stage ? work.last : work.first, roofline, layer, share);
  }
  // Activations that were not kept are computed again before they are needed.
  for (auto* block : {&work.dense, &work.sparse}) {
    if (spec.parallel.recompute == Recomputation::full) block->backward += block->forward;
    if (spec.parallel.recompute == Recomputation::selective) block->backward += block->selective;
  }
  if (roofline.is_eager()) add_launches(work, roofline, spec, slower);
  work.compute_parameter = roofline.efficiency(LayerKind::gemm).name;
  return work;
}

}  // namespace fabricast::models::training
