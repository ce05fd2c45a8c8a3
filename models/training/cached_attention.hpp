// SPDX-License-Identifier: Apache-2.0
// Attention of s tokens over L cached ones, a heads.
//
//   keys and values of g heads of d: L g d e bytes each, once when values are read as keys;  FLOP 4 s L a d
//
// Latent attention (latent c, per head n without and r with positions, v of values) caches c + r elements per token,
// which every GPU of a tensor group reads whole, once for keys and values. It has two forms; software decodes in the
// first and continues a prefill in the second [DeepSeek-V2, arXiv 2405.04434, 2.1.2; Megatron-LM and vLLM absorb where
// each sequence has a token or few], so the faster one counts:
//
//   absorbed   the projections up from the latent are multiplied into queries and outputs: 2 s a c (n + v), then
//              scores and context in the latent space, FLOP 2 s L a (2 c + r)
//   expanded   keys and values of all tokens are projected up again: 2 (s + L) c a (n + v), then FLOP 2 s L a (n + r +
//              v), which read L a (n + r + v) elements
#pragma once

#include <vector>

#include "fabricast/training.hpp"

namespace fabricast::models::training {

/// Ways to compute `layer` of a block with `cached` tokens, each as its kernels: itself where it is no attention or
/// nothing is cached. Those of latent attention have its projection up from the latent, which alone is nothing.
std::vector<std::vector<NetworkLayer>> ways_over_cache(const NetworkLayer& layer, const Network& network,
                                                       double cached);

}  // namespace fabricast::models::training
