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
          .expert = static_cast<double>(layout.expert)};
}

/// Elements that one GPU keeps.
double parameters_of(const NetworkLayer& layer, const LayerShare& share) {
  double elements = 0;
  for (const auto one : layer.tensors) elements += static_cast<double>(one);
  const bool is_split = layer.kind == LayerKind::gemm || layer.kind == LayerKind::embedding;
  return elements / (is_split ? share.tensor : 1) / (layer.experts > 1 ? share.expert : 1);
}

void add(BlockWork& work, const Roofline& roofline, const NetworkLayer& layer, const LayerShare& share) {
  const auto forward = roofline.forward(layer, share);
  work.forward += forward;
  work.backward += roofline.backward(layer, share);
  if (layer.kind == LayerKind::attention) work.attention += forward;
}

}  // namespace

TransformerWork transformer_work(const Roofline& roofline, const TrainingSpec& spec, const Layout& layout) {
  TransformerWork work;
  const auto share = share_of(spec, layout);
  for (const auto& layer : spec.network->layers) {
    if (layer.block > 0) continue;
    auto& part = layer.block == 0 ? work.block : (layer.is_last_stage ? work.last : work.first);
    add(part, roofline, layer, share);
    auto& parameters =
        layer.block == 0 ? work.block_parameters : (layer.is_last_stage ? work.last_parameters : work.first_parameters);
    parameters += parameters_of(layer, share);
    if (layer.block == 0) work.block_tensors += static_cast<double>(layer.tensors.size());
  }
  // Activations that were not kept are computed again before they are needed.
  if (spec.parallel.recompute == Recomputation::full) work.block.backward += work.block.forward;
  if (spec.parallel.recompute == Recomputation::selective) work.block.backward += work.block.attention;
  work.compute_parameter = roofline.efficiency(LayerKind::gemm).name;
  return work;
}

}  // namespace fabricast::models::training
