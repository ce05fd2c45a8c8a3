// SPDX-License-Identifier: Apache-2.0
// What a training step works on: a network as a list of layers with what each computes, keeps and moves, or a measured
// profile of one GPU; and how the work is spread over GPUs. Plain values, as YAML and profile files said.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabricast/diagnostic.hpp"
#include "fabricast/units.hpp"

namespace fabricast {

enum class Precision { fp32, tf32, fp16, bf16, fp8 };
std::string_view to_string(Precision precision);
std::optional<Precision> precision_from_name(std::string_view name);
/// Bytes of an activation or of a weight as kernels read it: 4, 4, 2, 2, 1.
int element_bytes(Precision precision);

/// What limits a layer: arithmetic of one shape or another, or memory.
enum class LayerKind { convolution, gemm, attention, memory, embedding };
std::string_view to_string(LayerKind kind);

/// What kernels that are launched one by one move beside those of products, in elements per sample.
struct UnfusedMoves {
  double elements = 0;   ///< of what layers hand on
  double residual = 0;   ///< of what autocast keeps in fp32: norms, and the sums that blocks add to
  double singles = 0;    ///< of kernels that compute in fp32 whatever the precision
  double casts = 0;      ///< between fp32 and 16 bits, where products take 16
  double autocasts = 0;  ///< between what autocast keeps in fp32 and products of 16 bits
};

/// Everything is per sample: an image, or a sequence of `Network::tokens` tokens.
struct NetworkLayer {
  std::string name;
  LayerKind kind = LayerKind::memory;
  std::vector<std::int64_t> tensors;  ///< elements of each parameter tensor: weight, then bias
  double forward_flop = 0;
  double backward_flop = 0;
  double output = 0;         ///< elements of the result
  double forward_moved = 0;  ///< elements read and written, weights apart
  double backward_moved = 0;
  UnfusedMoves unfused_forward, unfused_backward;  ///< of transformers
  double shared_moved = 0;        ///< elements that each GPU of a tensor group reads beside its share of the others
  double rows = 0;                ///< rows of the matrix product
  double inner = 0, columns = 0;  ///< of the product; inner of attention: vectors cached per token and key head
  int operators = 1;              ///< the host launches forward; backward about twice as many
  int buffers = 0;                ///< tensors without gradient that data parallelism broadcasts (batch norm)
  int block = -1;                 ///< repeated block it belongs to; -1 = before the first or after the last
  int experts = 1;                ///< that share the layer's parameters; a token meets `experts_per_token`
  bool is_last_stage = false;     ///< after the blocks
  bool is_replicated = false;     ///< every GPU of a tensor group has all weights of the product
  bool is_selective = false;      ///< computed again by selective recomputation
  bool is_winograd = false;       ///< 3 x 3 of stride 1: kernels of fp32 multiply less often than counted
};

/// Multi-head latent attention: heads are projected from low-rank latents of queries and of keys and values; a cache
/// holds the latter, and one key of positions that all heads share.
struct LatentAttention {
  std::int64_t query_rank = 0;  ///< 0: queries are projected from the hidden vector
  std::int64_t kv_rank = 0;
  std::int64_t rope_size = 0;  ///< of a head's key, the part with positions
};

/// Dimensions of a transformer, for model parallelism.
struct TransformerShape {
  int layers = 0;  ///< blocks, those of modules that predict further tokens among them
  std::int64_t hidden = 0, heads = 0, kv_heads = 0, head_size = 0, ffn = 0, vocabulary = 0;
  int experts = 0;  ///< 0 = dense
  int experts_per_token = 0;
  std::int64_t shared_ffn = 0;  ///< width of what every token meets beside its experts
  std::int64_t value_size = 0;  ///< of a head's values; queries and keys have head_size
  std::optional<LatentAttention> latent;
  bool is_gated = false;
  bool is_causal = true;
};

struct Network {
  std::string name;
  std::string description;
  std::string source;
  std::string sample = "image";  ///< what `batch_per_gpu` counts
  std::int64_t tokens = 0;       ///< of a sample; 0 = not a sequence
  std::vector<NetworkLayer> layers;
  std::optional<TransformerShape> transformer;

  [[nodiscard]] std::int64_t parameters() const;
  [[nodiscard]] int num_tensors() const;
  [[nodiscard]] double forward_flop() const;
  /// Weights that a token is multiplied with: no embeddings, of experts its own; 0 of images.
  [[nodiscard]] double activated_parameters() const;
};

/// Every network that is shipped, by name.
Result<std::vector<Network>> load_shipped_networks();

struct GradientTensor {
  std::string name;
  Bytes bytes;     ///< of its gradient
  Duration ready;  ///< after backward began
};

/// One line `#PROFILE` of a measured profile and the tensors below it, in the order in which they become ready.
struct TrainingProfile {
  std::string model;
  Precision precision = Precision::fp32;
  int batch_per_gpu = 1;
  Duration step;  ///< without an exchange; not the sum of its parts, which hooks lengthen
  Duration forward;
  Duration backward;
  Duration optimizer;
  std::int64_t parameters = 0;
  std::vector<GradientTensor> tensors;
};

/// Every profile of a text in the form of training-profile.tsv; all faults with their lines.
Result<std::vector<TrainingProfile>> parse_training_profiles(const std::string& file, const std::string& text);

enum class DataParallelism { ddp, horovod, fsdp, zero1 };
std::string_view to_string(DataParallelism kind);
/// How GPUs that share sequences see each other's keys and values: passed round, or by a change of what is split, heads
/// instead of tokens, and back.
enum class ContextExchange { ring, all_to_all };
std::string_view to_string(ContextExchange kind);
enum class Recomputation { none, selective, full };
std::string_view to_string(Recomputation kind);

struct ParallelSpec {
  DataParallelism data = DataParallelism::ddp;
  std::optional<Bytes> bucket;           ///< ddp: bucket_cap_mb; unset: 1 MiB for the first bucket, 25 MiB for others
  Precision exchange = Precision::fp32;  ///< of gradients on the wire
  std::optional<Bytes> fusion;           ///< horovod: HOROVOD_FUSION_THRESHOLD; default 64 MiB
  std::optional<Duration> cycle;         ///< horovod: HOROVOD_CYCLE_TIME; default 1 ms
  bool hierarchical = false;             ///< horovod: HOROVOD_HIERARCHICAL_ALLREDUCE
  bool torus = false;                    ///< horovod: HOROVOD_TORUS_ALLREDUCE
  int tensor = 1;
  bool sequence = false;  ///< tensor parallelism splits norms by sequence
  int pipeline = 1;
  int interleave = 1;  ///< virtual stages per GPU
  int context = 1;
  ContextExchange context_exchange = ContextExchange::ring;
  int expert = 1;
  std::optional<int> expert_tensor;  ///< GPUs that share each expert's matrices; unset: tensor
  double imbalance = 1;              ///< tokens of the busiest GPU's experts over the mean, >= 1
  bool expert_overlap = false;       ///< dispatch and combine beside the compute of another micro-batch
  int micro_batches = 1;             ///< per step; more than one accumulate gradients
  Recomputation recompute = Recomputation::none;
};

/// One transformer layer of a tensor-parallel model, alone: inference and training of large models.
enum class TrainingPart { step, layer };

/// A GPU that computes slower than its like.
struct SlowGpu {
  std::string gpu;  ///< by name: node3.gpu1
  double rate = 1;  ///< of what the others compute in the same time, (0, 1]
  SourceLocation location;
};

struct TrainingSpec {
  std::optional<Network> network;
  std::optional<TrainingProfile> profile;
  Precision precision = Precision::bf16;
  SourceLocation precision_location;  ///< where it was named; no file: it was not
  int batch_per_gpu = 1;              ///< of one micro-batch
  std::vector<int> gpu_counts;
  ParallelSpec parallel;
  std::vector<SlowGpu> slow;
  double jitter = 0;  ///< standard deviation of a GPU's compute from step to step, as a share of it
  TrainingPart part = TrainingPart::step;
  int kv_length = 0;               ///< layer: tokens in the cache; 0 = prefill
  std::vector<std::string> notes;  ///< what was assumed while reading
  std::vector<std::string> files;  ///< of the user: network, profile
};

}  // namespace fabricast
