// SPDX-License-Identifier: Apache-2.0
// Grouped heads of keys and values split over a tensor group. A GPU of t has max(1, g / t) of g key heads: with more
// GPUs than heads each head has copies, with its projections, its gradients and its cache [vLLM, QKVParallelLinear and
// get_num_kv_heads; SGLang likewise; Megatron-LM's attention gives a rank one group of keys where there are fewer].
#pragma once

#include <cstdint>

#include "fabricast/scenario.hpp"
#include "fabricast/training.hpp"

namespace fabricast::models::training {

/// Key heads that the GPUs of a group of `tensor` hold together, copies counted: ceil(g / t) t.
std::int64_t held_key_heads(std::int64_t key_heads, int tensor);

/// The network as a tensor group holds it: what belongs to key heads counts with their copies, so that a t-th of it is
/// a GPU's. The same network where every head has one place; latent attention always has.
Network with_key_head_copies(Network network, int tensor);

/// `workload` in the precision that its GPUs compute in, with the copies of key heads that a tensor group holds.
Workload as_computed(Workload workload, Precision precision);

}  // namespace fabricast::models::training
