// SPDX-License-Identifier: Apache-2.0
// Time of a layer on one GPU:
//
//   time = kernel floor + max(FLOP / (peak of the precision x efficiency of the kind), bytes / (bandwidth x
//   efficiency))
//
// and of a whole pass at least operators x host time per operator (eager frameworks launch one kernel after another).
// Convolutions of 3 x 3 and stride 1 outside tensor cores: the efficiency is `training.winograd_saving` times as high,
// because cuDNN's kernels multiply less often than is counted.
// Matrix products: with a floor of 3.8 us and 0.8 of the peak this is within 10 % of published shares for square
// weights of 1024 to 8192 and 128 to 8192 rows on H100 and H200. Attention reaches its efficiency with the sequence:
// s / (s + half). Efficiencies may be given per GPU architecture and precision: `training.gemm_efficiency.ampere`,
// `.fp8`, `.hopper.fp8`.
//
// fp8: what takes it (takes_fp8) reads weights of a byte; all that is read and written beside them stays in bf16.
//
// Experts compute k tokens for each token of the layer, spread evenly but for `imbalance` on the busiest GPU, and read
// the weights of those of its E experts that any of its n pairs of token and expert meet: E (1 - (1 - 1 / E)^n).
#pragma once

#include <string>

#include "base/parameter_name.hpp"
#include "fabricast/models/planner.hpp"
#include "fabricast/training.hpp"
#include "nccl/architecture.hpp"
#include "training/work.hpp"

namespace fabricast::models::training {

/// Of an element that kernels hand on: products of fp8 come out in bf16, and a cache keeps them so.
int activation_bytes(Precision precision);

/// How a GPU takes part in a layer: shares of what it would do alone.
struct LayerShare {
  double samples = 1;        ///< per GPU and micro-batch, sequences cut by context parallelism count as parts
  double tensor = 1;         ///< GPUs that share matrices and heads
  double sequence = 1;       ///< GPUs that share norms and additions
  double expert = 1;         ///< GPUs that share the experts
  double expert_tensor = 1;  ///< GPUs that share each expert's matrices
  double imbalance = 1;      ///< tokens of the busiest GPU's experts over the mean
};

/// Kernels of a framework: fused or of a graph; or launched one by one (PyTorch without its compiler), where each
/// reads and writes memory (`NetworkLayer::unfused_forward`); the latter with weights in fp32, from which autocast
/// makes those of products in each pass.
enum class Kernels { fused, eager, autocast };

class Roofline {
 public:
  /// `arithmetic`: the share of its full rate that power leaves (power.hpp), in (0, 1].
  Roofline(const PlanContext& context, DeviceId gpu, Precision precision, Kernels kernels, double arithmetic = 1);

  [[nodiscard]] Duration forward(const NetworkLayer& layer, const LayerShare& share) const;
  [[nodiscard]] Duration backward(const NetworkLayer& layer, const LayerShare& share) const;
  /// One step of the optimiser over `parameters` in `tensors` tensors.
  [[nodiscard]] Duration optimizer(double parameters, double tensors) const;
  /// Host time of a pass forward over layers with so many operators.
  [[nodiscard]] Duration launches(double operators) const;
  [[nodiscard]] bool is_eager() const { return kernels_ != Kernels::fused; }
  [[nodiscard]] double memory_bandwidth() const { return memory_bandwidth_; }
  [[nodiscard]] const Parameter& optimizer_efficiency() const {
    return parameter("training.optimizer_efficiency"_stem, precision_);
  }
  [[nodiscard]] const Parameter& kernel_floor() const { return parameter("training.kernel_floor"_stem, precision_); }
  [[nodiscard]] const ParameterSet& parameters() const { return parameters_; }
  /// The parameter that most of the network's time rests on.
  [[nodiscard]] const Parameter& efficiency(LayerKind kind) const;

 private:
  [[nodiscard]] Duration pass(const NetworkLayer& layer, const LayerShare& share, double flop, double moved,
                              double weight_passes, const UnfusedMoves& moves) const;
  /// What kernels beside those of products add to a pass, or, of layers without any, take.
  [[nodiscard]] double unfused_seconds(const NetworkLayer& layer, const LayerShare& share,
                                       const UnfusedMoves& moves) const;
  /// Of the products' own kernels, and of fused ones.
  [[nodiscard]] const Parameter& memory_limit(const NetworkLayer& layer, Precision precision) const;
  [[nodiscard]] double share_of_peak(const NetworkLayer& layer) const;
  [[nodiscard]] const Parameter& efficiency(LayerKind kind, Precision precision) const;
  [[nodiscard]] const Parameter& parameter(ParameterStem stem, Precision precision) const;

  const ParameterSet& parameters_;
  nccl::Architecture architecture_;
  Precision precision_;
  Kernels kernels_;
  double peak_ = 1;
  double peak_of_16_bits_ = 1;
  double memory_bandwidth_ = 1;
  bool has_tensor_cores_ = false;
};

/// The one of `gpus` that takes longest for forward and backward pass, with what VMs and neighbours add: the others
/// wait for it. A profile's times are those of any type.
DeviceId slowest_gpu(const PlanContext& context, const std::vector<DeviceId>& gpus, const TrainingSpec& spec,
                     bool is_eager);

/// That others wait for the slowest one, as results say; empty where all are of its type.
std::string pace_of_types(const Topology& topology, const std::vector<DeviceId>& gpus, DeviceId slowest);

/// Forward, backward and gradients of a whole network on one GPU; gradients are ready in the reverse order of layers,
/// in a layer the weight before the bias where autocast casts it, else after. What a step computes again (a whole block
/// of a transformer, or what selective recomputation names) delays the gradients behind it.
StepWork work_of_network(const PlanContext& context, DeviceId gpu, const TrainingSpec& spec, bool is_eager);

}  // namespace fabricast::models::training
