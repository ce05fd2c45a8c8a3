// SPDX-License-Identifier: Apache-2.0
// What a training step keeps in a GPU's memory: weights, gradients, optimiser states and the activations that backward
// needs. Adam in mixed precision keeps 4 + 4 + 4 bytes per parameter beside weights and gradients; ZeRO shards them by
// the data-parallel size [Rajbhandari et al., SC 2020]. Activations of a transformer layer are s b h (34 / t) bytes of
// 16 bits with fused attention and sequence parallelism, s b h (10 + 24 / t) without sequence parallelism, 2 s b h when
// recomputed [Korthikanti et al., MLSys 2023, without the attention matrices that fused kernels do not store]. Latent
// attention keeps its latents, and for 8 h / t of these queries, keys, values and the output's input, wider than h;
// selective recomputation makes the first three again from the latents. The first of p pipeline stages holds p
// micro-batches (1F1B), interleaved (1 + (p - 1) / (p v)) times the layers of a p-th. A lower bound: buffers of
// frameworks and fragmentation come on top, so that what is refused here does not run.
#include "fabricast/models/training_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "fabricast/models/gpu_memory.hpp"
#include "fabricast/models/shared_gpus.hpp"
#include "fabricast/models/training_precision.hpp"
#include "fabricast/training.hpp"
#include "nccl/ranks.hpp"
#include "training/key_heads.hpp"
#include "training/roofline.hpp"

namespace fabricast::models {

namespace {

constexpr double k_adam_states = 12;  ///< bytes per parameter: master weight, momentum, variance in 32 bits
constexpr double k_pure_states = 8;   ///< of 32-bit training: momentum, variance

struct Kept {
  double states = 0;  ///< weights, gradients, optimiser
  double activations = 0;
};

/// Parameters of one GPU of a model split by tensor, pipeline and expert parallelism; the largest stage.
struct OwnParameters {
  double dense = 0, expert = 0;
};

OwnParameters own_parameters(const Network& network, const ParallelSpec& p) {
  double dense = 0;
  double expert = 0;
  double whole = 0;  // what every GPU of a tensor group has
  double ends = 0;   // embeddings and head: not part of blocks
  for (const auto& layer : network.layers) {
    double count = 0;
    for (const auto elements : layer.tensors) count += static_cast<double>(elements);
    if (layer.block < 0)
      ends = std::max(ends, count);
    else if (layer.experts > 1)
      expert += count;
    else if (layer.is_replicated)
      whole += count;
    else
      dense += count;
  }
  const double stages = p.pipeline;
  return {(dense / stages + ends) / p.tensor + whole / stages,
          expert / stages / (p.expert * p.expert_tensor.value_or(p.tensor))};
}

/// Of parameters that `shards` replicas hold.
double state_bytes(const ParallelSpec& p, Precision precision, double parameters, double shards) {
  const double weight = precision == Precision::fp32 || precision == Precision::tf32 ? 4 : 2;
  const double gradient = weight;
  const double states = weight == 4 ? k_pure_states : k_adam_states;
  shards = std::max(1.0, shards);
  if (p.data == DataParallelism::fsdp) return parameters * (weight + gradient + states) / shards;
  if (p.data == DataParallelism::zero1) return parameters * (weight + gradient + states / shards);
  return parameters * (weight + gradient + states);
}

/// Per token, of 16 bits.
double latent_attention_bytes(const TransformerShape& shape, const ParallelSpec& p) {
  const auto latents = shape.latent->query_rank + shape.latent->kv_rank + shape.latent->rope_size;
  const bool is_made_again = p.recompute == Recomputation::selective;
  const auto of_head = shape.value_size + (is_made_again ? 0 : 2 * shape.head_size + shape.value_size);
  const double t = p.tensor;
  return 2 * (static_cast<double>(latents) / (p.sequence ? t : 1) + static_cast<double>(shape.heads * of_head) / t);
}

double activation_bytes(const TrainingSpec& spec) {
  const auto& p = spec.parallel;
  const auto& shape = *spec.network->transformer;
  const double sbh =
      static_cast<double>(spec.network->tokens) / p.context * spec.batch_per_gpu * static_cast<double>(shape.hidden);
  const double t = p.tensor;
  double per_layer = p.sequence ? 34 * sbh / t : sbh * (10 + 24 / t);
  if (shape.latent)
    per_layer += sbh / static_cast<double>(shape.hidden) * latent_attention_bytes(shape, p) - 8 * sbh / t;
  // Megatron's selective recomputation makes attention's matrices again, which fused kernels never store, PyTorch's
  // keeps every second product: both keep what a layer and its output projection read.
  if (p.recompute == Recomputation::selective && !shape.latent) per_layer = sbh * (2 / (p.sequence ? t : 1) + 2 / t);
  if (p.recompute == Recomputation::full) per_layer = 2 * sbh / (p.sequence ? t : 1);
  const double in_flight = std::min(p.pipeline, p.micro_batches);
  const double layers = static_cast<double>(shape.layers) / p.pipeline;
  const double interleaved = p.interleave > 1 ? 1 + (in_flight - 1) / (in_flight * p.interleave) : 1;
  return per_layer * layers * in_flight * interleaved;
}

}  // namespace

Result<std::vector<int>> training_counts(const Topology& topology, const Workload& workload) {
  auto counts = workload.training->gpu_counts;
  if (!workload.sizes.empty()) counts.clear();
  for (const auto size : workload.sizes) counts.push_back(static_cast<int>(size.value));
  auto asked = workload;
  if (!counts.empty()) asked.gpus = *std::ranges::max_element(counts);
  if (!workload.devices.empty()) {
    const auto named = nccl::named_gpus(topology, asked);
    if (!named) return tl::unexpected(named.error());
    if (counts.empty()) counts.push_back(static_cast<int>(named->size()));
  }
  if (counts.empty()) counts.push_back(static_cast<int>(topology.devices(DeviceKind::gpu).size()));
  return counts;
}

namespace {

Result<std::vector<DeviceId>> gpus_of_largest(const Topology& topology, Workload workload,
                                              const std::vector<int>& counts) {
  workload.gpus = *std::ranges::max_element(counts);
  return nccl::choose_ranks(topology, workload);
}

}  // namespace

Result<std::vector<DeviceId>> training_gpus(const Topology& topology, const Workload& workload) {
  const auto counts = training_counts(topology, workload);
  if (!counts) return tl::unexpected(counts.error());
  return gpus_of_largest(topology, workload, *counts);
}

namespace {

/// More GPUs shard more: the smallest of the counts decides.
Kept kept_by(const Topology& topology, const Workload& workload, const std::vector<int>& counts,
             const ParameterSet& parameters) {
  const auto& spec = *workload.training;
  const auto& p = spec.parallel;
  const int split = p.tensor * p.pipeline * p.context;
  const int data = std::max(1, *std::ranges::min_element(counts) / split);
  Kept kept;
  const auto own = own_parameters(training::with_key_head_copies(*spec.network, p.tensor), p);
  const double replicas = data * p.context;
  const double expert_replicas = replicas * p.tensor / (p.expert * p.expert_tensor.value_or(p.tensor));
  const auto precision = used_precision(topology, workload, parameters).precision;
  kept.states = state_bytes(p, precision, own.dense, replicas) + state_bytes(p, precision, own.expert, expert_replicas);
  if (spec.network->transformer) kept.activations = activation_bytes(spec);
  return kept;
}

/// Of one layer of inference, in every GPU.
struct KeptByLayer {
  double weights = 0, cache = 0;

  [[nodiscard]] double all() const { return weights + cache; }
};

KeptByLayer kept_by_layer(const Workload& workload) {
  const auto& spec = *workload.training;
  const auto& p = spec.parallel;
  const auto network = training::with_key_head_copies(*spec.network, p.tensor);
  const auto& shape = *network.transformer;
  const double tokens =
      static_cast<double>(spec.batch_per_gpu) * (spec.kv_length + static_cast<double>(network.tokens));
  const double bytes = training::activation_bytes(spec.precision);
  KeptByLayer kept;
  for (const auto& layer : network.layers) {
    if (layer.block + 1 != shape.layers) continue;
    double elements = 0;
    for (const auto one : layer.tensors) elements += static_cast<double>(one);
    const double shared = layer.experts > 1 ? p.expert * p.expert_tensor.value_or(p.tensor)
                                            : (layer.kind == LayerKind::gemm && !layer.is_replicated ? p.tensor : 1);
    kept.weights += elements / shared * (takes_fp8(layer) ? element_bytes(spec.precision) : bytes);
    if (layer.kind != LayerKind::attention) continue;
    const auto vectors = layer.inner * static_cast<double>(shape.kv_heads * shape.head_size) / p.tensor;
    kept.cache += bytes * tokens *
                  (shape.latent ? static_cast<double>(shape.latent->kv_rank + shape.latent->rope_size) : vectors);
  }
  return kept;
}

bool keeps_states(const Workload& workload) {
  return workload.training && workload.training->network && workload.training->part == TrainingPart::step;
}

/// What steps earlier in the list keep in the same GPU, at most: processes share no memory. `which` gets their names.
double kept_beside(const Topology& topology, const std::vector<Workload>& all, std::size_t index,
                   const ParameterSet& parameters, std::vector<std::string>& which) {
  std::map<DeviceId, double> sums;
  double most = 0;
  for (const auto& shared : shared_gpus(topology, all, index)) {
    const auto& other = all[shared.other];
    if (shared.other > index || !keeps_states(other)) continue;
    const auto counts = training_counts(topology, other);
    if (!counts) continue;
    const auto kept = kept_by(topology, other, *counts, parameters);
    for (const auto gpu : shared.gpus) most = std::max(most, sums[gpu] += kept.states + kept.activations);
    which.push_back(name_of(all, shared.other));
  }
  return most;
}

std::string text(double bytes) { return to_string(to_bytes(bytes)); }

bool is_layer(const Workload& workload) {
  return workload.training->network && workload.training->part == TrainingPart::layer;
}

Diagnostics layer_memory(const Workload& workload, const GpuMemory& memory) {
  const auto kept = kept_by_layer(workload);
  if (kept.all() <= memory.bytes) return {};
  return {make_error_at(
      workload.location,
      fmt::format("one layer of {} keeps at least {} in every GPU, a {} has {}: {} of weights, {} of keys and values",
                  workload.training->network->name, text(kept.all()), memory.what, text(memory.bytes),
                  text(kept.weights), text(kept.cache)),
      "split it further (`tensor`, `expert`), or lower batch_per_gpu, kv_length or tokens")};
}

}  // namespace

std::string layers_beyond_memory(const Topology& topology, const Workload& workload, const ParameterSet& parameters) {
  if (!is_layer(workload)) return "";
  const auto gpus = training_gpus(topology, workload);
  const auto memory = gpus ? least_memory(topology, parameters, *gpus) : std::nullopt;
  if (!memory) return "";
  const auto kept = kept_by_layer(workload);
  const int layers = workload.training->network->transformer->layers;
  const int fitting = static_cast<int>(std::min(memory->bytes / kept.all(), 1e6));
  if (fitting >= layers) return "";
  return fmt::format(
      "{} of {} layers fit into a {} with their weights ({} each), keys and values ({}): the others need "
      "further GPUs",
      fitting, layers, memory->what, text(kept.weights), text(kept.cache));
}

Diagnostics training_memory(const Topology& topology, const std::vector<Workload>& all, std::size_t index,
                            const ParameterSet& parameters) {
  const auto& workload = all[index];
  if (!workload.training) return {};
  const auto counts = training_counts(topology, workload);
  if (!counts) return counts.error();
  const auto gpus = gpus_of_largest(topology, workload, *counts);
  if (!gpus) return {};  // said by others
  const auto memory = least_memory(topology, parameters, *gpus);
  if (!memory) return {};
  if (is_layer(workload)) return layer_memory(workload, *memory);
  if (!keeps_states(workload)) return {};
  const auto kept = kept_by(topology, workload, *counts, parameters);
  const double own = kept.states + kept.activations;
  if (own > memory->bytes)
    return {make_error_at(
        workload.location,
        fmt::format(
            "a step of {} keeps at least {} in every GPU, a {} has {}: {} of weights, gradients and optimiser, {} "
            "of activations",
            workload.training->network->name, text(own), memory->what, text(memory->bytes), text(kept.states),
            text(kept.activations)),
        "split the model further (tensor, pipeline, `data: zero1` or fsdp), recompute, or lower batch_per_gpu")};
  std::vector<std::string> which;
  const double beside = kept_beside(topology, all, index, parameters, which);
  if (own + beside <= memory->bytes) return {};
  return {make_error_at(
      workload.location,
      fmt::format("steps of {} and {} keep at least {} together in a GPU that they share, a {} has {}",
                  fmt::join(which, ", "), name_of(all, index), text(own + beside), memory->what, text(memory->bytes)),
      "give each workload GPUs of its own (`devices`)")};
}

}  // namespace fabricast::models
