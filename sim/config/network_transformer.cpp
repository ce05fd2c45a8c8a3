// SPDX-License-Identifier: Apache-2.0
// Transformers by their dimensions: s tokens, hidden h, a heads of d (g for keys and values), feed-forward f,
// vocabulary V, k of E experts per token. FLOP forward per sequence, backward twice that (attention 2.5 times: flash
// kernels compute the scores again):
//
//   projections 2 s h d (a + 2 g) and 2 s a d h;  scores and context 4 s^2 a d, half of it when causal
//   feed-forward 4 s h f, gated 6 s h f, k times with experts, and 2 s h E for their choice;  logits 2 s h V
//
// Latent attention (kv_lora_rank c, q_lora_rank c', per head n without and r with positions, v of values): heads are
// projected from latents, which training and prefill do for every token [DeepSeek-V2, arXiv 2405.04434]:
//
//   projections 2 s h (c' + c + r), 2 s c' a (n + r), 2 s c a (n + v) and 2 s a v h;  scores and context
//   2 s^2 a (n + r + v), half of it when causal;  without c' queries are projected from h
//
// A module that predicts a further token [DeepSeek-V3, arXiv 2412.19437, 2.2]: the next token's embedding and the
// block's output before, 2 h -> h, a block of its own, and the shared head once more.
//
// Experts: tokens are sorted by expert before they are sent and brought back into order behind, 1 + k vectors of h each
// read or written per token. A shared expert is a feed-forward part of its own that every token meets.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "config/network.hpp"
#include "config/unfused.hpp"

namespace fabricast::config {

namespace {

class TransformerWriter {
 public:
  TransformerWriter(const Node& node, Network& network) : node_(node), network_(network) {}

  void write(Diagnostics& faults) {
    if (!read(faults)) return;
    embeddings();
    for (int block = 0; block < own_layers_; ++block) add_block(block);
    begin_ends();
    head();
    for (int block = own_layers_; block < shape_.layers; ++block) predicting_module(block);
    network_.transformer = shape_;
    network_.tokens = tokens_;
    network_.sample = "sequence";
  }

 private:
  void add_block(int block) {
    block_ = block;
    is_last_ = false;
    attention();
    feed_forward();
  }

  void begin_ends() {
    block_ = -1;
    is_last_ = true;
  }

  [[nodiscard]] std::int64_t number(const char* key, std::int64_t otherwise) const {
    const auto* found = node_.find(key);
    return found == nullptr ? otherwise : as_integer(*found);
  }
  [[nodiscard]] bool flag(const char* key, bool otherwise) const {
    const auto* found = node_.find(key);
    return found == nullptr ? otherwise : as_flag(*found);
  }

  bool read(Diagnostics& faults) {
    form_ = node_.find("form")->scalar;
    tokens_ = number("sequence", 0);
    own_layers_ = static_cast<int>(number("layers", 1));
    shape_.layers = own_layers_ + static_cast<int>(number("mtp_modules", 0));
    shape_.hidden = number("hidden", 1);
    shape_.heads = number("heads", 1);
    shape_.kv_heads = number("kv_heads", shape_.heads);
    shape_.ffn = number("ffn", 1);
    shape_.vocabulary = number("vocabulary", 1);
    shape_.experts = static_cast<int>(number("experts", 0));
    shape_.experts_per_token = static_cast<int>(number("experts_per_token", shape_.experts > 0 ? 1 : 0));
    shape_.head_size = shape_.value_size = number("head_size", shape_.hidden / shape_.heads);
    shape_.shared_ffn = number("shared_ffn", 0);
    dense_ffn_ = number("dense_ffn", shape_.ffn);
    dense_blocks_ = number("dense_blocks", 0);
    expert_every_ = number("expert_every", 1);
    shape_.is_gated = form_ == "llama";
    shape_.is_causal = form_ != "bert";
    has_biases_ = flag("biases", form_ != "llama");
    is_tied_ = flag("tied", form_ == "bert");
    read_latent(faults);
    if (!shape_.latent && node_.find("head_size") == nullptr && shape_.hidden % shape_.heads != 0)
      faults.push_back(node_.find("heads")->error(
          fmt::format("hidden {} is no multiple of {} heads", shape_.hidden, shape_.heads), "give `head_size`"));
    if (!shape_.latent && shape_.heads % shape_.kv_heads != 0)
      faults.push_back(
          node_.find("kv_heads")
              ->error(fmt::format("{} heads are no multiple of {} key heads", shape_.heads, shape_.kv_heads), ""));
    if (shape_.experts_per_token > shape_.experts)
      faults.push_back(
          node_.error(fmt::format("a token meets {} of {} experts", shape_.experts_per_token, shape_.experts),
                      "give `experts`, and at most as many per token"));
    if (const auto* modules = node_.find("mtp_modules"); modules != nullptr && !shape_.is_causal)
      faults.push_back(modules->error("'mtp_modules' of a network that predicts no next token", "leave it out"));
    refuse_idle_keys(faults);
    return !has_errors(faults);
  }

  void read_latent(Diagnostics& faults) {
    static constexpr std::array k_sizes{"qk_nope_head_size", "qk_rope_head_size", "v_head_size"};
    const auto* rank = node_.find("kv_lora_rank");
    if (rank == nullptr) {
      for (const auto* key : {k_sizes[0], k_sizes[1], k_sizes[2], "q_lora_rank"}) {
        if (const auto* found = node_.find(key))
          faults.push_back(found->error(fmt::format("'{}' without 'kv_lora_rank'", key),
                                        "latent attention needs both; other heads have `head_size`"));
      }
      return;
    }
    for (const auto* key : k_sizes) {
      if (node_.find(key) == nullptr)
        faults.push_back(rank->error(fmt::format("'kv_lora_rank' without '{}'", key),
                                     "give qk_nope_head_size, qk_rope_head_size and v_head_size"));
    }
    const std::pair<const char*, const char*> idle[] = {
        {"head_size", "give qk_nope_head_size, qk_rope_head_size and v_head_size"},
        {"kv_heads", "leave it out: each head has keys and values of its own from the shared latent"},
        {"shared_kv", "leave it out: the cache holds the latent once"},
        {"qk_norm", "leave it out: the latents have norms of their own"}};
    for (const auto& [key, fix] : idle) {
      if (const auto* found = node_.find(key))
        faults.push_back(found->error(fmt::format("'{}' beside 'kv_lora_rank'", key), fix));
    }
    const auto rope = number("qk_rope_head_size", 0);
    shape_.latent = LatentAttention{number("q_lora_rank", 0), as_integer(*rank), rope};
    shape_.kv_heads = shape_.heads;
    shape_.head_size = number("qk_nope_head_size", 0) + rope;
    shape_.value_size = number("v_head_size", 0);
  }

  void refuse_idle_keys(Diagnostics& faults) {
    for (const auto* key : {"shared_ffn", "expert_every", "dense_blocks"}) {
      const auto* found = node_.find(key);
      if (found != nullptr && shape_.experts == 0)
        faults.push_back(found->error(fmt::format("'{}' of a network without experts", key), "give `experts`"));
    }
    bool has_dense = false;
    bool has_sparse = shape_.experts == 0;
    for (int block = 0; block < shape_.layers; ++block) (has_experts(block) ? has_sparse : has_dense) = true;
    if (!has_sparse)
      faults.push_back(node_.find("experts")->error("no block has experts", "lower `dense_blocks` or `expert_every`"));
    const auto* width = node_.find("dense_ffn");
    if (width != nullptr && (shape_.experts == 0 || !has_dense))
      faults.push_back(width->error("'dense_ffn' of a network that mixes no blocks with and without experts",
                                    "the width of all others is `ffn`"));
  }

  [[nodiscard]] bool has_experts(int block) const {
    // The block of a module is as the last one.
    block = std::min(block, own_layers_ - 1);
    return shape_.experts > 0 && block >= dense_blocks_ && (block + 1) % expert_every_ == 0;
  }

  NetworkLayer& push(NetworkLayer layer) {
    layer.block = block_;
    layer.is_last_stage = is_last_;
    network_.layers.push_back(std::move(layer));
    return network_.layers.back();
  }

  void embedding(const char* name, std::int64_t rows) {
    const double out = static_cast<double>(tokens_ * shape_.hidden);
    push({.name = name,
          .kind = LayerKind::embedding,
          .tensors = {rows * shape_.hidden},
          .output = out,
          .forward_moved = 2 * out,
          .backward_moved = 2 * out});
  }

  NetworkLayer& linear(const char* name, std::int64_t inner, std::int64_t columns, bool has_bias, double share = 1) {
    const double rows = static_cast<double>(tokens_) * share;
    const double flop = 2 * rows * static_cast<double>(inner) * static_cast<double>(columns);
    NetworkLayer layer{.name = name, .kind = LayerKind::gemm, .tensors = {inner * columns}};
    if (has_bias) layer.tensors.push_back(columns);
    layer.forward_flop = flop;
    layer.backward_flop = 2 * flop;
    layer.output = rows * static_cast<double>(columns);
    layer.forward_moved = rows * static_cast<double>(inner + columns);
    layer.backward_moved = 2 * layer.forward_moved;
    layer.rows = rows;
    layer.inner = static_cast<double>(inner);
    layer.columns = static_cast<double>(columns);
    if (has_bias) add_unfused_bias(layer);
    return push(std::move(layer));
  }

  void norm(const char* name, std::int64_t width, std::int64_t count = 1) {
    const double elements = static_cast<double>(tokens_ * width * count);
    auto& layer = pass(name, elements, 2, 3);
    set_unfused_norm(layer, elements);
    layer.tensors = {width};
    if (form_ != "llama" && has_biases_) layer.tensors.push_back(width);
  }

  NetworkLayer& pass(const char* name, double elements, double forward, double backward) {
    return push(
        {.name = name, .output = elements, .forward_moved = forward * elements, .backward_moved = backward * elements});
  }

  void embeddings() {
    embedding("word embedding", shape_.vocabulary);
    if (node_.find("segments") != nullptr) embedding("segment embedding", number("segments", 2));
    if (node_.find("positions") != nullptr) embedding("position embedding", number("positions", 1));
    if (form_ == "bert") norm("norm", shape_.hidden);
  }

  void attention() {
    if (form_ != "bert") norm("norm", shape_.hidden);
    if (shape_.latent) {
      latent_projections();
    } else {
      projections();
    }
    scores_and_context();
    linear("o", shape_.heads * shape_.value_size, shape_.hidden, has_biases_);
    residual();
    if (form_ == "bert") norm("norm", shape_.hidden);
  }

  void residual() {
    const double elements = static_cast<double>(tokens_ * shape_.hidden);
    set_unfused_residual(pass("residual", elements, 3, 1), elements);
  }

  void projections() {
    const auto width = shape_.heads * shape_.head_size;
    const auto kv_width = shape_.kv_heads * shape_.head_size;
    if (form_ == "gpt") {
      auto& layer = linear("qkv", shape_.hidden, width + 2 * kv_width, has_biases_);
      add_unfused_concatenation(layer);
      add_unfused_reader(layer, 1);
    } else {
      add_unfused_reader(linear("q", shape_.hidden, width, has_biases_), 1);
      add_unfused_reader(linear("k", shape_.hidden, kv_width, has_biases_), 2);
      add_unfused_reader(linear("v", shape_.hidden, kv_width, has_biases_), 3);
    }
    if (flag("qk_norm", false)) {
      norm("q norm", shape_.head_size, shape_.heads);
      norm("k norm", shape_.head_size, shape_.kv_heads);
    }
  }

  /// Down to the latents in each GPU of a tensor group, up to its own heads.
  void latent_projections() {
    const auto& latent = *shape_.latent;
    const auto from = latent.query_rank > 0 ? latent.query_rank : shape_.hidden;
    if (latent.query_rank > 0) {
      linear("q down", shape_.hidden, latent.query_rank, has_biases_).is_replicated = true;
      norm("q norm", latent.query_rank);
    }
    linear(latent.query_rank > 0 ? "q up" : "q", from, shape_.heads * shape_.head_size, has_biases_).is_selective =
        true;
    linear("kv down", shape_.hidden, latent.kv_rank + latent.rope_size, has_biases_).is_replicated = true;
    norm("kv norm", latent.kv_rank);
    const auto columns = shape_.heads * (shape_.head_size - latent.rope_size + shape_.value_size);
    linear("kv up", latent.kv_rank, columns, has_biases_).is_selective = true;
  }

  void scores_and_context() {
    const double s = static_cast<double>(tokens_);
    const auto head = shape_.head_size + shape_.value_size;
    const double flop = 2 * s * s * static_cast<double>(shape_.heads * head) * (shape_.is_causal ? 0.5 : 1);
    const double moved = s * static_cast<double>((shape_.heads + shape_.kv_heads) * head);
    auto& layer = push({.name = "attention",
                        .kind = LayerKind::attention,
                        .forward_flop = flop,
                        .backward_flop = 2.5 * flop,
                        .output = s * static_cast<double>(shape_.heads * shape_.value_size),
                        .forward_moved = moved,
                        .backward_moved = 2 * moved,
                        .rows = s,
                        .inner = flag("shared_kv", false) ? 1.0 : 2.0,  // vectors cached per token and key head
                        .operators = 2,
                        .is_selective = !shape_.latent});
    if (form_ != "llama") return;
    const auto rotated = shape_.latent ? shape_.latent->rope_size * (shape_.heads + 1)
                                       : shape_.head_size * (shape_.heads + shape_.kv_heads);
    const auto repeated = shape_.kv_heads < shape_.heads ? (shape_.heads + shape_.kv_heads) * head : 0;
    set_unfused_rotation(layer, s * static_cast<double>(rotated), s * static_cast<double>(repeated));
  }

  void feed_forward() {
    if (form_ != "bert") norm("norm", shape_.hidden);
    if (has_experts(block_)) {
      experts();
    } else {
      matrices(shape_.experts > 0 ? dense_ffn_ : shape_.ffn, 1);
    }
    residual();
    if (form_ == "bert") norm("norm", shape_.hidden);
  }

  /// Of `width`, for `share` times the tokens.
  void matrices(std::int64_t width, double share) {
    const double elements = static_cast<double>(tokens_) * share * static_cast<double>(width);
    if (shape_.is_gated) add_unfused_reader(linear("gate", shape_.hidden, width, has_biases_, share), 1);
    add_unfused_reader(linear("up", shape_.hidden, width, has_biases_, share), shape_.is_gated ? 2 : 1);
    set_unfused_activation(pass("activation", elements, shape_.is_gated ? 3 : 2, shape_.is_gated ? 5 : 3), elements,
                           shape_.is_gated);
    linear("down", width, shape_.hidden, has_biases_, share);
  }

  void experts() {
    linear("router", shape_.hidden, shape_.experts, false);
    const double moved = static_cast<double>(tokens_ * shape_.hidden) * (1.0 + shape_.experts_per_token);
    const auto first = network_.layers.size();
    pass("permute", moved, 1, 1);
    matrices(shape_.ffn, shape_.experts_per_token);
    pass("permute", moved, 1, 1);
    for (auto i = first; i < network_.layers.size(); ++i) share_by_experts(network_.layers[i]);
    if (shape_.shared_ffn > 0) matrices(shape_.shared_ffn, 1);
  }

  void share_by_experts(NetworkLayer& layer) const {
    layer.experts = shape_.experts;
    for (auto& elements : layer.tensors) elements *= shape_.experts;
  }

  void head() {
    if (shape_.vocabulary <= 1) return;
    if (form_ == "bert") linear("transform", shape_.hidden, shape_.hidden, true);
    norm("norm", shape_.hidden);
    linear("head", shape_.hidden, shape_.vocabulary, form_ == "bert");
    auto& logits = network_.layers.back();
    if (is_tied_) logits.tensors.erase(logits.tensors.begin());
    const double elements = static_cast<double>(tokens_ * shape_.vocabulary);
    set_unfused_loss(pass("loss", elements, 4, 2), elements);
  }

  void predicting_module(int block) {
    pass("embedding of the next token", static_cast<double>(tokens_ * shape_.hidden), 2, 2);
    norm("norm of the next token", shape_.hidden);
    norm("norm before the module", shape_.hidden);
    linear("mtp projection", 2 * shape_.hidden, shape_.hidden, false);
    add_block(block);
    begin_ends();
    const auto first = network_.layers.size();
    head();
    for (auto layer = first; layer < network_.layers.size(); ++layer) {
      auto& tensors = network_.layers[layer].tensors;
      if (network_.layers[layer].kind == LayerKind::gemm) tensors.clear();  // the model's own
    }
  }

  const Node& node_;
  Network& network_;
  TransformerShape shape_;
  std::string form_;
  std::int64_t tokens_ = 0;
  int own_layers_ = 0;  ///< blocks without those of modules
  std::int64_t dense_ffn_ = 1, dense_blocks_ = 0, expert_every_ = 1;
  bool has_biases_ = true;
  bool is_tied_ = false;
  int block_ = -1;
  bool is_last_ = false;
};

}  // namespace

void add_transformer(const Node& dimensions, Network& network, Diagnostics& faults) {
  TransformerWriter(dimensions, network).write(faults);
}

}  // namespace fabricast::config
