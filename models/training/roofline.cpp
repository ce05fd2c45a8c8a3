// SPDX-License-Identifier: Apache-2.0
#include "training/roofline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "base/parameter_name.hpp"
#include "fabricast/models/training_precision.hpp"
#include "fabricast/virtualization.hpp"
#include "nccl/architecture.hpp"
#include "paths/contention.hpp"
#include "paths/transport.hpp"
#include "training/power.hpp"

namespace fabricast::models::training {

namespace {

constexpr double k_tera = 1e12;
constexpr double k_first_tensor_cores = 70;  ///< compute capability: fp16
constexpr double k_first_tf32 = 80;
constexpr double k_first_fp8 = 89;

bool uses_tensor_cores(const PlanContext& context, DeviceId gpu, Precision precision) {
  const double capability = device_value(context, gpu, "compute_capability");
  if (precision == Precision::fp32) return false;
  return capability >= (precision == Precision::fp16 ? k_first_tensor_cores : k_first_tf32);
}

/// FLOP/s, as the chip computes the precision.
double peak_of(const PlanContext& context, DeviceId gpu, Precision precision) {
  const double capability = device_value(context, gpu, "compute_capability");
  const double single = device_value_or(context, gpu, "fp32_tflops", 1);
  const double half = device_value_or(context, gpu, "fp16_tflops", single);
  const double tensor = device_value_or(context, gpu, "tensor_tflops", half);
  switch (precision) {
    case Precision::fp32:
      return single * k_tera;
    case Precision::tf32:
      return (capability >= k_first_tf32 ? tensor / 2 : single) * k_tera;
    case Precision::fp16:
      return (capability >= k_first_tensor_cores ? tensor : half) * k_tera;
    case Precision::bf16:
      return (capability >= k_first_tf32 ? tensor : single) * k_tera;
    case Precision::fp8:
      return (capability >= k_first_fp8 ? 2 * tensor : tensor) * k_tera;
  }
  return single * k_tera;
}

bool has_experts(const NetworkLayer& layer) { return layer.experts > 1; }

double elements_of(const NetworkLayer& layer) {
  double elements = 0;
  for (const auto one : layer.tensors) elements += static_cast<double>(one);
  return elements;
}

/// Of the weights of a GPU's experts, the share that some token needs.
double touched_share(const NetworkLayer& layer, const LayerShare& share) {
  const double pairs = layer.rows * share.samples * share.imbalance * share.expert_tensor / share.tensor;
  return 1 - std::pow(1 - share.expert / layer.experts, pairs);
}

/// Elements of weights that a kernel reads on one GPU.
double read_weights(const NetworkLayer& layer, const LayerShare& share, double split) {
  const double all = elements_of(layer);
  if (!has_experts(layer)) return all / split;
  return all > 0 ? all / (share.expert * share.expert_tensor) * touched_share(layer, share) : 0;
}

Precision precision_of(const NetworkLayer& layer, Precision asked) {
  return asked == Precision::fp8 && !takes_fp8(layer) ? Precision::bf16 : asked;
}

/// GPUs that share what a layer hands on.
double split_of(const NetworkLayer& layer, const LayerShare& share) {
  const bool is_split =
      layer.kind == LayerKind::gemm || layer.kind == LayerKind::attention || layer.name == "activation";
  return is_split && !layer.is_replicated ? share.tensor : share.sequence;
}

bool is_any(const UnfusedMoves& moves) {
  return moves.elements + moves.residual + moves.singles + moves.casts + moves.autocasts > 0;
}

bool bias_first(Precision precision) { return element_bytes(precision) == 4; }

}  // namespace

int activation_bytes(Precision precision) { return std::max(2, element_bytes(precision)); }

Roofline::Roofline(const PlanContext& context, DeviceId gpu, Precision precision, Kernels kernels, double arithmetic)
    : parameters_(context.parameters),
      architecture_(nccl::architecture_of(context, gpu)),
      precision_(precision),
      kernels_(kernels),
      peak_(peak_of(context, gpu, precision) * arithmetic),
      peak_of_16_bits_(peak_of(context, gpu, Precision::bf16) * arithmetic),
      memory_bandwidth_(memory_rate(context, gpu)),
      has_tensor_cores_(uses_tensor_cores(context, gpu, precision)) {}

const Parameter& Roofline::parameter(ParameterStem stem, Precision precision) const {
  const auto p = to_string(precision);
  std::vector<std::string> names;
  const auto add = [&](const std::string& base) {
    const auto of_gpu = [&](std::string_view last) {
      auto found = architecture_.names_of(base);
      found.pop_back();
      for (const auto& name : found) names.push_back(fmt::format("{}{}", name, last));
    };
    of_gpu(fmt::format(".{}", p));
    names.push_back(fmt::format("{}.{}", base, p));
    of_gpu("");
    names.push_back(base);
  };
  const std::string_view field = stem.text.substr(stem.text.find('.') + 1);
  const bool is_memory = field.ends_with("memory_efficiency");
  if (is_eager() && !is_memory) add(fmt::format("training.eager_{}", field));
  add(std::string(stem.text));
  return parameters_.first_of(names);
}

const Parameter& Roofline::efficiency(LayerKind kind, Precision precision) const {
  switch (kind) {
    case LayerKind::convolution:
      return parameter("training.convolution_efficiency"_stem, precision);
    case LayerKind::gemm:
      return parameter("training.gemm_efficiency"_stem, precision);
    case LayerKind::attention:
      return parameter("training.attention_efficiency"_stem, precision);
    case LayerKind::memory:
    case LayerKind::embedding:
      break;
  }
  return memory_limit({.kind = kind}, precision);
}

const Parameter& Roofline::efficiency(LayerKind kind) const {
  return efficiency(kind, precision_of({.kind = kind, .block = 0}, precision_));
}

double Roofline::share_of_peak(const NetworkLayer& layer) const {
  const auto precision = precision_of(layer, precision_);
  double share = efficiency(layer.kind, precision).value;
  if (layer.kind == LayerKind::gemm && has_experts(layer))
    share = parameter("training.expert_gemm_efficiency"_stem, precision).value;
  if (layer.kind == LayerKind::attention && layer.rows > 0)
    share *= layer.rows / (layer.rows + parameter("training.attention_half_length"_stem, precision).value);
  if (layer.is_winograd && !has_tensor_cores_) share *= parameter("training.winograd_saving"_stem, precision).value;
  return share;
}

const Parameter& Roofline::memory_limit(const NetworkLayer& layer, Precision precision) const {
  if (layer.name == "permute") return parameter("training.permute_efficiency"_stem, precision);
  const bool is_product = layer.kind == LayerKind::gemm || layer.kind == LayerKind::attention;
  return is_eager() && !is_product ? parameter("training.eager_memory_efficiency"_stem, precision)
                                   : parameter("training.memory_efficiency"_stem, precision);
}

double Roofline::unfused_seconds(const NetworkLayer& layer, const LayerShare& share, const UnfusedMoves& moves) const {
  constexpr double k_single = 4, k_half = 2;
  const double element = activation_bytes(precision_);
  const bool has_casts = element < k_single;
  const bool has_autocasts = has_casts && kernels_ == Kernels::autocast;
  const double samples = share.samples * (has_experts(layer) ? share.imbalance : 1) / split_of(layer, share);
  double bytes = samples * (moves.elements * element + moves.residual * (has_autocasts ? k_single : element) +
                            moves.singles * k_single);
  if (has_casts) bytes += samples * moves.casts * (k_single + k_half);
  if (has_autocasts) {
    const double weights = layer.kind == LayerKind::gemm ? elements_of(layer) / split_of(layer, share) : 0;
    bytes += (samples * moves.autocasts + weights) * (k_single + k_half);
  }
  // Bytes are counted by what each kernel takes, so one value stands for all precisions.
  return bytes / (memory_bandwidth_ * parameter("training.eager_memory_efficiency"_stem, Precision::fp32).value);
}

Duration Roofline::pass(const NetworkLayer& layer, const LayerShare& share, double flop, double moved,
                        double weight_passes, const UnfusedMoves& moves) const {
  const double unfused = is_eager() ? unfused_seconds(layer, share, moves) : 0;
  if (is_eager() && flop <= 0 && is_any(moves)) return from_seconds(kernel_floor().value + unfused);
  const double split = split_of(layer, share);
  const double samples = share.samples * (has_experts(layer) ? share.imbalance : 1);
  const double weights = read_weights(layer, share, layer.is_replicated ? 1 : split);
  const auto precision = precision_of(layer, precision_);
  const double bytes = (moved * samples / split + layer.shared_moved * samples) * activation_bytes(precision_) +
                       weights * weight_passes * element_bytes(precision);
  const double peak = precision == precision_ ? peak_ : peak_of_16_bits_;
  const double compute = flop > 0 ? flop * samples / split / (peak * share_of_peak(layer)) : 0;
  const double memory = bytes / (memory_bandwidth_ * memory_limit(layer, precision).value);
  return from_seconds(kernel_floor().value + std::max(compute, memory) + unfused);
}

Duration Roofline::forward(const NetworkLayer& layer, const LayerShare& share) const {
  return pass(layer, share, layer.forward_flop, layer.forward_moved, 1, layer.unfused_forward);
}

/// Gradients of inputs and weights are kernels of their own.
Duration Roofline::backward(const NetworkLayer& layer, const LayerShare& share) const {
  const auto time = pass(layer, share, layer.backward_flop, layer.backward_moved, 2, layer.unfused_backward);
  const bool has_two = layer.kind == LayerKind::gemm || layer.kind == LayerKind::convolution;
  return has_two ? time + from_seconds(kernel_floor().value) : time;
}

Duration Roofline::optimizer(double parameters, double tensors) const {
  const double bytes = parameters * parameter("training.optimizer_passes"_stem, precision_).value * 4;
  return from_seconds(bytes / (memory_bandwidth_ * optimizer_efficiency().value) +
                      tensors * parameter("training.optimizer_tensor_time"_stem, precision_).value);
}

Duration Roofline::launches(double operators) const {
  return from_seconds(operators * parameter("training.operator_time"_stem, precision_).value);
}

namespace {

/// Forward work that the backward pass makes once more, and before which layer of those that it meets.
struct Again {
  std::map<const NetworkLayer*, Duration> before;
  double operators = 0;
};

/// A block is made again as a whole before the backward pass enters it by its last layer.
Again computed_again(const Roofline& roofline, const LayerShare& share, const TrainingSpec& spec) {
  Again again;
  if (spec.parallel.recompute == Recomputation::none) return again;
  const bool is_full = spec.parallel.recompute == Recomputation::full;
  std::map<int, const NetworkLayer*> last;  // of each block
  for (const auto& layer : spec.network->layers) last[layer.block] = &layer;
  for (const auto& layer : spec.network->layers) {
    if (is_full ? layer.block < 0 : !layer.is_selective) continue;
    again.before[is_full ? last[layer.block] : &layer] += roofline.forward(layer, share);
    again.operators += layer.operators;
  }
  return again;
}

}  // namespace

DeviceId slowest_gpu(const PlanContext& context, const std::vector<DeviceId>& gpus, const TrainingSpec& spec,
                     bool is_eager) {
  const auto& topology = context.topology;
  const auto unlike = topology.unlike(gpus);
  using Pace = std::pair<std::string, std::optional<double>>;  // type and power limit
  const auto pace_of = [&](DeviceId gpu) { return Pace{topology.device(gpu).type, power_limit(topology, gpu)}; };
  std::map<Pace, Duration> passes;
  for (const auto gpu : unlike) passes.try_emplace(pace_of(gpu));
  // Bare GPUs of one type in equal hosts take the same.
  const int host = topology.host_of(gpus.front());
  const auto is_of_shape = [&](DeviceId gpu) {
    return topology.host_shape(topology.host_of(gpu)) == topology.host_shape(host);
  };
  const bool is_bare = !topology.virtualization(host).is_virtual();
  if (passes.size() == 1 && is_bare && std::ranges::all_of(unlike, is_of_shape)) return gpus.front();
  for (auto& [pace, time] : passes) {
    const auto gpu = *std::ranges::find(unlike, pace, pace_of);
    const auto work = spec.profile ? work_of_profile(*spec.profile, spec.batch_per_gpu)
                                   : work_of_network(context, gpu, spec, is_eager);
    time = work.forward + work.backward;
  }
  return *std::ranges::max_element(unlike, {}, [&](DeviceId gpu) {
    const auto time = passes.at(pace_of(gpu));
    return time + sum(compute_delays(context, gpu, time));
  });
}

std::string pace_of_types(const Topology& topology, const std::vector<DeviceId>& gpus, DeviceId slowest) {
  const auto& type = topology.device(slowest).type;
  const auto& vm = topology.virtualization(topology.host_of(slowest));
  const auto any = [&](auto&& is_other) { return std::ranges::any_of(gpus, is_other); };
  if (any([&](DeviceId gpu) { return topology.device(gpu).type != type; }))
    return fmt::format("the others wait for {}, the slowest of the GPUs", type);
  if (const auto limit = power_limit(topology, slowest);
      limit && any([&](DeviceId gpu) { return power_limit(topology, gpu) != limit; }))
    return fmt::format("the others wait for GPUs limited to {:g} W", *limit);
  if (vm.is_virtual() &&
      any([&](DeviceId gpu) { return topology.virtualization(topology.host_of(gpu)).mode != vm.mode; }))
    return fmt::format("the others wait for GPUs in VMs ({})", to_string(vm.mode));
  return "";
}

namespace {

StepWork work_at(const Roofline& roofline, const TrainingSpec& spec) {
  const auto& network = *spec.network;
  const auto precision = spec.precision;
  const bool is_eager = roofline.is_eager();
  const LayerShare share{.samples = static_cast<double>(spec.batch_per_gpu)};
  const auto again = computed_again(roofline, share, spec);
  StepWork work;
  double operators = 0;
  std::map<LayerKind, double> by_kind;
  for (const auto& layer : network.layers) {
    const auto time = roofline.forward(layer, share);
    work.forward += time;
    by_kind[layer.kind] += time.seconds();
    operators += layer.operators;
    work.buffers += layer.buffers;
    if (layer.buffers > 0) work.buffer_bytes += Bytes{8 * layer.tensors.front() + 8};
  }
  for (auto layer = network.layers.rbegin(); layer != network.layers.rend(); ++layer) {
    if (const auto more = again.before.find(&*layer); more != again.before.end()) work.backward += more->second;
    work.backward += roofline.backward(*layer, share);
    auto tensors = layer->tensors;
    if (bias_first(precision) && layer->buffers == 0 && layer->kind != LayerKind::memory)
      std::reverse(tensors.begin(), tensors.end());
    for (const auto elements : tensors) {
      work.tensors.push_back({layer->name, Bytes{4 * elements}, work.backward});
      work.gradient_bytes += Bytes{4 * elements};
    }
  }
  const auto limit = is_eager ? roofline.launches(operators) : Duration{};
  const auto backward_limit = is_eager ? roofline.launches(2 * operators + again.operators) : Duration{};
  work.launch = std::max(Duration{}, limit - work.forward) + std::max(Duration{}, backward_limit - work.backward);
  if (backward_limit > work.backward) {
    for (auto& tensor : work.tensors)
      tensor.ready = from_seconds(tensor.ready.seconds() * backward_limit.seconds() / work.backward.seconds());
  }
  work.optimizer = roofline.optimizer(static_cast<double>(network.parameters()), network.num_tensors());
  const auto most = std::ranges::max_element(by_kind, {}, [](const auto& one) { return one.second; });
  const auto& efficiency = roofline.efficiency(most == by_kind.end() ? LayerKind::memory : most->first);
  work.compute_parameter = efficiency.name;
  work.compute_source = efficiency.source;
  work.optimizer_parameter = roofline.optimizer_efficiency().name;
  return work;
}

}  // namespace

StepWork work_of_network(const PlanContext& context, DeviceId gpu, const TrainingSpec& spec, bool is_eager) {
  const auto at = [&](double arithmetic) {
    return work_at(Roofline(context, gpu, spec.precision, is_eager ? Kernels::autocast : Kernels::fused, arithmetic),
                   spec);
  };
  return within_power(power_budget(context, gpu, *spec.network), at, [](const StepWork& work) {
    return PowerLoad{.arithmetic = (work.forward + work.backward).seconds()};
  });
}

}  // namespace fabricast::models::training
