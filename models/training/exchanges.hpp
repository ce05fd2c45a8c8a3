// SPDX-License-Identifier: Apache-2.0
// Collectives inside the layers of a split transformer, of one block and micro-batch: terms of the pass where nothing
// else is on the wire, flows where other workloads are.
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

#include <cstdint>
#include <vector>

#include "training/transformer.hpp"

namespace fabricast::models::training {

/// Equal exchanges of one kind of group.
struct LayerExchange {
  const char* name;
  const Communicators* groups;
  Benchmark operation;
  Bytes size;
  std::int64_t times = 1;
  Duration gap;      ///< behind each: the start of the kernel that waits for it
  Duration hidden;   ///< of all as long as they take alone: what compute hides
  double price = 0;  ///< how much longer that compute takes, as a share
};

class BlockExchanges {
 public:
  BlockExchanges(const ParameterSet& parameters, const TrainingSpec& spec, const Layout& layout,
                 const LayerGroups& groups);

  /// Of `blocks` blocks. `is_paired`: another micro-batch passes the other way beside it.
  [[nodiscard]] std::vector<LayerExchange> forward(const BlockCount& blocks, const TransformerWork& work,
                                                   bool is_paired = false) const;
  [[nodiscard]] std::vector<LayerExchange> backward(const BlockCount& blocks, const TransformerWork& work,
                                                    bool is_paired = false) const;
  /// What they add to a pass when nothing else is on the wire; zero terms are left out.
  [[nodiscard]] std::vector<Term> terms(const std::vector<LayerExchange>& exchanges) const;
  /// The part of these that is on no wire.
  [[nodiscard]] std::vector<Term> terms_beside(const std::vector<LayerExchange>& exchanges) const;
  /// A vector of so many elements per token.
  [[nodiscard]] Bytes vectors(std::int64_t elements) const;
  /// One all-reduce of a layer's activations.
  [[nodiscard]] Bytes activations() const;
  /// What a stage sends to the next.
  [[nodiscard]] Bytes boundary() const;
  /// Activations that the busiest GPU sends to experts, and gets back.
  [[nodiscard]] Bytes dispatched() const;

 private:
  using Exchanges = std::vector<LayerExchange>;

  void add_tensor(Exchanges& out, Benchmark operation, Bytes size, std::int64_t times) const;
  void add_tensor(Exchanges& out, bool is_backward, std::int64_t blocks) const;
  void add_tensor_of_attention(Exchanges& out, bool is_backward, std::int64_t blocks) const;
  void add_tensor_of_experts(Exchanges& out, bool is_backward, std::int64_t blocks) const;
  void add_context(Exchanges& out, bool is_backward, std::int64_t blocks, const BlockWork& block) const;
  void add_heads_for_tokens(Exchanges& out, std::int64_t blocks) const;
  void add_experts(Exchanges& out, std::int64_t blocks, Duration beside) const;
  [[nodiscard]] Exchanges exchanges(const BlockCount& blocks, bool is_backward, const TransformerWork& work,
                                    Duration beside) const;

  const ParameterSet& parameters_;
  const TrainingSpec& spec_;
  const Layout& layout_;
  const LayerGroups& groups_;
  Duration gap_;
  double tokens_ = 1;
};

/// The exchanges inside the layers of one stage as flows, which those of other workloads meet. What compute hides is on
/// the wire beside it and has to be there when the pass behind it ends.
class LayerFlows {
 public:
  LayerFlows(Program& program, Wire& wire, int stream) : program_(program), wire_(wire), stream_(stream) {}

  /// Behind compute node `work`; returns what takes its place for those that wait for it.
  int append(const std::vector<LayerExchange>& exchanges, int work);
  /// A pass ends with node `last`; returns what ends it.
  int end_pass(int last);

 private:
  Program& program_;
  Wire& wire_;
  int stream_;
  int hidden_ = -1;         ///< last node of what is hidden
  int hidden_before_ = -1;  ///< of the pass before
};

}  // namespace fabricast::models::training
