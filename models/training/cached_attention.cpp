// SPDX-License-Identifier: Apache-2.0
#include "training/cached_attention.hpp"

namespace fabricast::models::training {

namespace {

/// Attention whose cache holds keys and values of each key head.
NetworkLayer over_heads(NetworkLayer layer, const TransformerShape& shape, double tokens, double cached) {
  const double width = static_cast<double>(shape.heads * shape.head_size);
  const double kv_width = static_cast<double>(shape.kv_heads * shape.head_size);
  layer.forward_flop = 4 * tokens * cached * width;
  layer.forward_moved = 2 * tokens * width + layer.inner * cached * kv_width;
  layer.rows = 0;  // split kernels fill the GPU whatever the length
  return layer;
}

/// Latent attention over a cache.
class LatentCache {
 public:
  LatentCache(const TransformerShape& shape, double tokens, double cached)
      : tokens_(tokens),
        cached_(cached),
        heads_(static_cast<double>(shape.heads)),
        latent_(static_cast<double>(shape.latent->kv_rank)),
        rope_(static_cast<double>(shape.latent->rope_size)),
        keys_(static_cast<double>(shape.head_size) - rope_),
        values_(static_cast<double>(shape.value_size)) {}

  [[nodiscard]] std::vector<NetworkLayer> absorbed(const NetworkLayer& layer) const {
    auto attention = layer;
    const double widths = 2 * latent_ + rope_;
    attention.forward_flop = 2 * tokens_ * cached_ * heads_ * widths;
    attention.forward_moved = tokens_ * heads_ * widths;
    attention.shared_moved = cached_ * (latent_ + rope_);
    attention.rows = 0;
    return {to_latent("k up", keys_), attention, to_latent("v up", values_)};
  }

  [[nodiscard]] std::vector<NetworkLayer> expanded(const NetworkLayer& layer) const {
    const double columns = heads_ * (keys_ + values_);
    const double rows = tokens_ + cached_;
    auto up = product("kv up", columns);
    up.block = layer.block;  // a linear layer; absorbed projections are products of each head, in 16 bits [vLLM]
    up.rows = rows;
    up.forward_flop = 2 * rows * latent_ * columns;
    up.forward_moved = rows * columns;
    up.shared_moved = rows * latent_;
    auto attention = layer;
    const double widths = keys_ + rope_ + values_;
    attention.forward_flop = 2 * tokens_ * cached_ * heads_ * widths;
    attention.forward_moved = rows * heads_ * widths;
    attention.rows = 0;
    return {up, attention};
  }

 private:
  /// Of each token's heads, between `width` and the latent.
  [[nodiscard]] NetworkLayer to_latent(const char* name, double width) const {
    auto layer = product(name, heads_ * width);
    layer.rows = tokens_;
    layer.forward_flop = 2 * tokens_ * latent_ * layer.columns;
    layer.forward_moved = tokens_ * heads_ * (latent_ + width);
    return layer;
  }

  [[nodiscard]] NetworkLayer product(const char* name, double columns) const {
    NetworkLayer layer{
        .name = name, .kind = LayerKind::gemm, .tensors = {static_cast<std::int64_t>(latent_ * columns)}};
    layer.inner = latent_;
    layer.columns = columns;
    return layer;
  }

  double tokens_, cached_, heads_, latent_, rope_;
  double keys_, values_;  ///< per head, without positions
};

}  // namespace

std::vector<std::vector<NetworkLayer>> ways_over_cache(const NetworkLayer& layer, const Network& network,
                                                       double cached) {
  const auto& shape = *network.transformer;
  const auto tokens = static_cast<double>(network.tokens);
  const bool is_up = shape.latent && layer.name == "kv up";
  if (cached <= 0 || (layer.kind != LayerKind::attention && !is_up)) return {{layer}};
  if (is_up) return {{}};
  if (!shape.latent) return {{over_heads(layer, shape, tokens, cached)}};
  const LatentCache cache(shape, tokens, cached);
  return {cache.absorbed(layer), cache.expanded(layer)};
}

}  // namespace fabricast::models::training
