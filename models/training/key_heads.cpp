// SPDX-License-Identifier: Apache-2.0
#include "training/key_heads.hpp"

#include <algorithm>

namespace fabricast::models::training {

namespace {

/// A product with other columns; its input is read as before.
void set_columns(NetworkLayer& layer, double columns) {
  const double ratio = columns / layer.columns;
  const double more = layer.rows * (columns - layer.columns);
  layer.forward_flop *= ratio;
  layer.backward_flop *= ratio;
  layer.output *= ratio;
  layer.forward_moved += more;
  layer.backward_moved += 2 * more;
  layer.columns = columns;
  layer.tensors.front() = static_cast<std::int64_t>(layer.inner * columns);
  if (layer.tensors.size() > 1) layer.tensors[1] = static_cast<std::int64_t>(columns);
}

}  // namespace

std::int64_t held_key_heads(std::int64_t key_heads, int tensor) { return (key_heads + tensor - 1) / tensor * tensor; }

Network with_key_head_copies(Network network, int tensor) {
  if (!network.transformer || network.transformer->latent) return network;
  auto& shape = *network.transformer;
  const auto held = held_key_heads(shape.kv_heads, tensor);
  if (held == shape.kv_heads) return network;
  const auto more = static_cast<double>((held - shape.kv_heads) * shape.head_size);
  for (auto& layer : network.layers) {
    if (layer.name == "k" || layer.name == "v") set_columns(layer, layer.columns + more);
    if (layer.name == "qkv") set_columns(layer, layer.columns + 2 * more);
    if (layer.kind != LayerKind::attention) continue;
    const double moved = layer.rows * 2 * more;  // keys and values of each token
    layer.forward_moved += moved;
    layer.backward_moved += 2 * moved;
  }
  shape.kv_heads = held;
  return network;
}

Workload as_computed(Workload workload, Precision precision) {
  auto spec = *workload.training;
  spec.precision = precision;
  if (spec.network) spec.network = with_key_head_copies(std::move(*spec.network), spec.parallel.tensor);
  workload.training = std::make_shared<const TrainingSpec>(std::move(spec));
  return workload;
}

}  // namespace fabricast::models::training
