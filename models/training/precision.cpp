// SPDX-License-Identifier: Apache-2.0
// Capabilities: CUDA programming guide, arithmetic of tensor cores by compute capability. bf16 before Ampere: PyTorch,
// torch/amp/autocast_mode.py ("does not support bfloat16. Please switch dtype to float16"), vLLM's check of 8.0.
#include "fabricast/models/training_precision.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "fabricast/models/training_memory.hpp"

namespace fabricast::models {

namespace {

constexpr double k_fp16_cores = 70;  ///< compute capability
constexpr double k_ampere = 80;      ///< bf16 and tf32
constexpr double k_fp8_cores = 89;

struct Capability {
  double value = 0;  ///< 10 x major + minor
  std::string type;
};

/// Of the least capable GPU that takes part; empty where none has a known one.
std::optional<Capability> least_capability(const Topology& topology, const Workload& workload,
                                           const ParameterSet& parameters) {
  const auto gpus = training_gpus(topology, workload);
  if (!gpus) return std::nullopt;  // said by others
  std::set<std::string> types;
  for (const auto gpu : *gpus) types.insert(topology.device(gpu).type);
  std::optional<Capability> least;
  for (const auto& type : types) {
    const auto* known = parameters.find(type + ".compute_capability");
    if (known != nullptr && (!least || known->value < least->value)) least = Capability{known->value, type};
  }
  return least;
}

std::string precisions_of(double capability) {
  if (capability >= k_fp8_cores) return "fp8, bf16, fp16, tf32 and fp32";
  if (capability >= k_ampere) return "bf16, fp16, tf32 and fp32";
  return "fp16 and fp32";
}

}  // namespace

bool takes_fp8(const NetworkLayer& layer) {
  return layer.kind == LayerKind::gemm && layer.block >= 0 && layer.name != "router";
}

UsedPrecision used_precision(const Topology& topology, const Workload& workload, const ParameterSet& parameters) {
  const auto& spec = *workload.training;
  const bool is_named = !spec.precision_location.file.empty();
  if (spec.network && is_named && spec.precision == Precision::fp8) {
    if (std::ranges::any_of(spec.network->layers, takes_fp8))
      return {Precision::fp8, "linear layers of blocks; router, attention, cache, norms and head in bf16"};
    return {Precision::bf16, fmt::format("{} has no blocks, whose linear layers compute in fp8", spec.network->name)};
  }
  const bool depends = !is_named || spec.precision == Precision::tf32;
  if (!spec.network || !depends) return {spec.precision, ""};
  const auto least = least_capability(topology, workload, parameters);
  if (!least || least->value >= k_ampere) return {spec.precision, ""};
  if (is_named) return {Precision::fp32, fmt::format("{} computes tf32 as fp32", least->type)};
  if (least->value >= k_fp16_cores) return {Precision::fp16, fmt::format("{} has no bf16", least->type)};
  return {Precision::fp32, fmt::format("{} has neither bf16 nor tensor cores", least->type)};
}

Diagnostics precision_faults(const Topology& topology, const Workload& workload, const ParameterSet& parameters) {
  if (!workload.training || !workload.training->network || workload.training->precision_location.file.empty())
    return {};
  const auto precision = workload.training->precision;
  if (precision != Precision::fp8 && precision != Precision::bf16) return {};
  const auto least = least_capability(topology, workload, parameters);
  if (!least || least->value >= (precision == Precision::fp8 ? k_fp8_cores : k_ampere)) return {};
  const auto* instead = least->value >= k_ampere ? "bf16" : "fp16";
  return {make_error_at(workload.training->precision_location,
                        fmt::format("{} GPUs do not compute in {}: they have {}", least->type, to_string(precision),
                                    precisions_of(least->value)),
                        fmt::format("write `precision: {}`", instead))};
}

}  // namespace fabricast::models
