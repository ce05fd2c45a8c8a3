// SPDX-License-Identifier: Apache-2.0
// What PyTorch moves through a GPU's memory beside the products of a transformer where each kernel is launched by
// itself: ATen's kernels for nn.LayerNorm, F.gelu, F.silu, F.cross_entropy, scaled_dot_product_attention with keys
// repeated for their queries, and rotary embeddings by complex numbers. A fused kernel or a compiled graph moves
// `forward_moved` and `backward_moved` instead. Names and counts of the kernels: calibration/data/h200-eager-kernels.
#pragma once

#include "fabricast/training.hpp"

namespace fabricast::config {

/// Forward x -> y; backward two kernels, for the gradients of the input and of the weights.
void set_unfused_norm(NetworkLayer& layer, double elements);

/// Its gradient is added to that of what was computed from it, and cast for the product before.
void set_unfused_residual(NetworkLayer& layer, double elements);

/// A gated one is a function and a product, each of whose factors has a gradient.
void set_unfused_activation(NetworkLayer& layer, double elements, bool is_gated);

/// Logits in fp32: the softmax reads them twice and writes; backward the choice of the label is written, read twice
/// with the softmax, and written.
void set_unfused_loss(NetworkLayer& layer, double elements);

/// The gradient of a bias is a sum over rows.
void add_unfused_bias(NetworkLayer& layer);

/// The gradients of queries, keys and values become one of their common product.
void add_unfused_concatenation(NetworkLayer& layer);

/// A product is the `reader`-th, from 1, to read a norm: autocast casts the input of each and its gradient back,
/// gradients after the first are added.
void add_unfused_reader(NetworkLayer& layer, int reader);

/// Queries and keys (`rotated` elements of both) are cast to fp32, multiplied and cast back; `repeated` elements are
/// moved to write keys and values once per query head, and to sum their gradients.
void set_unfused_rotation(NetworkLayer& layer, double rotated, double repeated);

}  // namespace fabricast::config
