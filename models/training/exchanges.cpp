// SPDX-License-Identifier: Apache-2.0
#include "training/exchanges.hpp"

#include <algorithm>

namespace fabricast::models::training {

namespace {

constexpr const char* k_rules = "planned by NCCL's rules";

}  // namespace

BlockExchanges::BlockExchanges(const ParameterSet& parameters, const TrainingSpec& spec, const SplitGroups& groups)
    : parameters_(parameters), spec_(spec), groups_(groups) {
  tokens_ = static_cast<double>(spec.batch_per_gpu) * static_cast<double>(spec.network->tokens) / groups.layout.context;
}

Bytes BlockExchanges::activations() const {
  const double hidden = static_cast<double>(spec_.network->transformer->hidden);
  // fp8 products are handed on in bf16.
  return to_bytes(tokens_ * hidden * std::max(2, element_bytes(spec_.precision)));
}

Bytes BlockExchanges::boundary() const {
  const auto whole = activations();
  return spec_.parallel.sequence ? Bytes{whole.value / groups_.layout.tensor} : whole;
}

Duration BlockExchanges::tensor(bool is_backward) const {
  if (!groups_.tensor) return {};
  const auto size = activations();
  const auto gap = parameters_.duration("training.kernel_floor");
  const auto one = [&](Benchmark operation) { return groups_.tensor->time_alone(operation, size) + gap; };
  if (!spec_.parallel.sequence) return 2 * one(Benchmark::all_reduce_perf);
  return (is_backward ? 4 : 2) * one(Benchmark::all_gather_perf) + 2 * one(Benchmark::reduce_scatter_perf);
}

Duration BlockExchanges::context(bool is_backward, const BlockWork& block) const {
  if (!groups_.context) return {};
  const auto& shape = *spec_.network->transformer;
  const double width = 2.0 * static_cast<double>(shape.kv_heads * shape.head_size) / groups_.layout.tensor;
  const auto size = to_bytes((is_backward ? 2 : 1) * tokens_ * width * std::max(2, element_bytes(spec_.precision)));
  const auto sends = (groups_.layout.context - 1) * groups_.context->time_alone(Benchmark::sendrecv_perf, size);
  const auto hidden = is_backward ? 2 * block.attention : block.attention;
  return std::max(Duration{}, sends - hidden);
}

Duration BlockExchanges::expert() const {
  if (!groups_.expert) return {};
  const auto& shape = *spec_.network->transformer;
  const auto size =
      Bytes{activations().value * shape.experts_per_token / (spec_.parallel.sequence ? groups_.layout.tensor : 1)};
  return 2 * groups_.expert->time_alone(Benchmark::alltoall_perf, size);
}

std::vector<Term> BlockExchanges::terms(int blocks, bool is_backward, const BlockWork& block) const {
  std::vector<Term> out;
  const auto add = [&](const char* name, Duration time) {
    if (time.ps > 0) out.push_back({name, blocks * time, "topology", k_rules});
  };
  add("exposed exchange of tensor parallelism", tensor(is_backward));
  add("exposed exchange of context parallelism", context(is_backward, block));
  add("exposed exchange between experts", expert());
  return out;
}

std::vector<Term> BlockExchanges::forward(int blocks, const BlockWork& block) const {
  return terms(blocks, false, block);
}

std::vector<Term> BlockExchanges::backward(int blocks, const BlockWork& block) const {
  auto out = terms(blocks, true, block);
  // Full recomputation runs the forward exchanges again.
  if (spec_.parallel.recompute == Recomputation::full) {
    for (auto& term : terms(blocks, false, block)) out.push_back(std::move(term));
  }
  return out;
}

}  // namespace fabricast::models::training
