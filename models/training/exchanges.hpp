// SPDX-License-Identifier: Apache-2.0
// Collectives inside the layers of a split transformer, as times of one block and micro-batch.
//
//   tensor      2 all-reduces of b s h e forward, 2 backward; by sequence 2 all-gathers + 2 reduce-scatters forward,
//   and
//               2 all-gathers more backward (inputs gathered again)
//               latent attention: what is split are the projections up to the heads, so their inputs are gathered and
//               the gradients of these reduced: c' (or h) for queries, c + r for keys and values in the place of h
//               [Megatron-LM, multi_latent_attention.py: the projections down to the latents are duplicated]
//   context     ring: c - 1 sends of keys and values forward, twice as many bytes backward, hidden behind attention;
//               all_to_all: queries, keys, values and output change from all heads of b s tokens to 1 / c of the heads
//               of all tokens and back, 4 all-to-alls forward and the same of gradients backward, before and behind
//               attention, so exposed [Jacobs et al., DeepSpeed Ulysses, 2023]
//   expert      in blocks with experts: dispatch and combine, forward and backward: b s k h e i each, i imbalance; with
//               sequence the GPUs that share each expert gather what was dispatched and scatter what comes back,
//               instead of the tensor group's share of the feed-forward part; where two micro-batches pass each other,
//               exposed is what the other one's compute of the block does not hide, and that compute is slowed
//
// e: bytes per activation, b s: tokens of the GPU. [Megatron-LM; training-steps, section 3]
#pragma once

#include <vector>

#include "training/transformer.hpp"

namespace fabricast::models::training {

class BlockExchanges {
 public:
  BlockExchanges(const ParameterSet& parameters, const TrainingSpec& spec, const SplitGroups& groups);

  /// Terms of `blocks` blocks; zero ones are left out. `is_paired`: another micro-batch passes the other way beside it.
  [[nodiscard]] std::vector<Term> forward(const BlockCount& blocks, const TransformerWork& work,
                                          bool is_paired = false) const;
  [[nodiscard]] std::vector<Term> backward(const BlockCount& blocks, const TransformerWork& work,
                                           bool is_paired = false) const;
  /// A vector of so many elements per token.
  [[nodiscard]] Bytes vectors(std::int64_t elements) const;
  /// One all-reduce of a layer's activations.
  [[nodiscard]] Bytes activations() const;
  /// What a stage sends to the next.
  [[nodiscard]] Bytes boundary() const;
  /// Activations that the busiest GPU sends to experts, and gets back.
  [[nodiscard]] Bytes dispatched() const;

 private:
  [[nodiscard]] Duration one(const Communicators& groups, Benchmark operation, Bytes size) const;
  [[nodiscard]] Duration tensor(bool is_backward) const;
  [[nodiscard]] Duration tensor_of_attention(bool is_backward) const;
  [[nodiscard]] Duration tensor_of_experts(bool is_backward) const;
  [[nodiscard]] Duration context(bool is_backward, const BlockWork& block) const;
  [[nodiscard]] Duration heads_for_tokens() const;
  [[nodiscard]] Duration expert() const;
  [[nodiscard]] std::vector<Term> terms(const BlockCount& blocks, bool is_backward, const TransformerWork& work,
                                        Duration beside) const;

  const ParameterSet& parameters_;
  const TrainingSpec& spec_;
  const SplitGroups& groups_;
  double tokens_ = 1;
};

}  // namespace fabricast::models::training
