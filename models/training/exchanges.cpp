// SPDX-License-Identifier: Apache-2.0
#include "training/exchanges.hpp"
#include "base/parameter_name.hpp"

#include <algorithm>

namespace fabricast::models::training {

namespace {

constexpr const char* k_rules = "planned by NCCL's rules";

}  // namespace

BlockExchanges::BlockExchanges(const ParameterSet& parameters, const TrainingSpec& spec, const SplitGroups& groups)
    : parameters_(parameters), spec_(spec), groups_(groups) {
  tokens_ = static_cast<double>(spec.batch_per_gpu) * static_cast<double>(spec.network->tokens) / groups.layout.context;
}

Bytes BlockExchanges::vectors(std::int64_t elements) const {
  return to_bytes(tokens_ * static_cast<double>(elements) * activation_bytes(spec_.precision));
}

Bytes BlockExchanges::activations() const { return vectors(spec_.network->transformer->hidden); }

Bytes BlockExchanges::boundary() const {
  const auto whole = activations();
  return spec_.parallel.sequence ? Bytes{whole.value / groups_.layout.tensor} : whole;
}

Bytes BlockExchanges::dispatched() const {
  const double tokens = spec_.network->transformer->experts_per_token * spec_.parallel.imbalance;
  return to_bytes(static_cast<double>(boundary().value) * tokens);
}

Duration BlockExchanges::one(const Communicators& groups, Benchmark operation, Bytes size) const {
  return groups.time_alone(operation, size) + parameters_["training.kernel_floor"_key];
}

/// Around attention, or around a feed-forward part.
Duration BlockExchanges::tensor(bool is_backward) const {
  if (!groups_.tensor) return {};
  const auto size = activations();
  if (!spec_.parallel.sequence) return one(*groups_.tensor, Benchmark::all_reduce_perf, size);
  return (is_backward ? 2 : 1) * one(*groups_.tensor, Benchmark::all_gather_perf, size) +
         one(*groups_.tensor, Benchmark::reduce_scatter_perf, size);
}

Duration BlockExchanges::tensor_of_attention(bool is_backward) const {
  const auto& latent = spec_.network->transformer->latent;
  if (!latent || !groups_.tensor) return tensor(is_backward);
  const auto of_inputs = [&](Benchmark operation) {
    const auto query = latent->query_rank > 0 ? vectors(latent->query_rank) : activations();
    return one(*groups_.tensor, operation, query) +
           one(*groups_.tensor, operation, vectors(latent->kv_rank + latent->rope_size));
  };
  if (!spec_.parallel.sequence)
    return is_backward ? of_inputs(Benchmark::all_reduce_perf)
                       : one(*groups_.tensor, Benchmark::all_reduce_perf, activations());
  const auto gathered = of_inputs(Benchmark::all_gather_perf);
  if (!is_backward) return gathered + one(*groups_.tensor, Benchmark::reduce_scatter_perf, activations());
  return gathered + one(*groups_.tensor, Benchmark::all_gather_perf, activations()) +
         of_inputs(Benchmark::reduce_scatter_perf);
}

Duration BlockExchanges::tensor_of_experts(bool is_backward) const {
  if (!spec_.parallel.sequence) return tensor(is_backward);
  // The gathered tokens are kept: backward gathers and scatters once each, too.
  const Bytes size = groups_.layout.expert_tensor * dispatched();
  const auto shared = spec_.network->transformer->shared_ffn > 0 ? tensor(is_backward) : Duration{};
  if (!groups_.expert_tensor) return shared;
  return shared + one(*groups_.expert_tensor, Benchmark::all_gather_perf, size) +
         one(*groups_.expert_tensor, Benchmark::reduce_scatter_perf, size);
}

Duration BlockExchanges::heads_for_tokens() const {
  const auto& shape = *spec_.network->transformer;
  const auto of_heads = [&](std::int64_t heads, std::int64_t size) {
    const double bytes =
        tokens_ * static_cast<double>(size) / groups_.layout.tensor * activation_bytes(spec_.precision);
    return one(*groups_.context, Benchmark::alltoall_perf, to_bytes(bytes * static_cast<double>(heads)));
  };
  return of_heads(shape.heads, shape.head_size) + of_heads(shape.heads, shape.value_size) +
         of_heads(shape.kv_heads, shape.head_size) + of_heads(shape.kv_heads, shape.value_size);
}

Duration BlockExchanges::context(bool is_backward, const BlockWork& block) const {
  if (!groups_.context) return {};
  if (spec_.parallel.context_exchange == ContextExchange::all_to_all) return heads_for_tokens();
  const auto& shape = *spec_.network->transformer;
  const double width =
      static_cast<double>(shape.kv_heads * (shape.head_size + shape.value_size)) / groups_.layout.tensor;
  const auto size = to_bytes((is_backward ? 2 : 1) * tokens_ * width * activation_bytes(spec_.precision));
  const auto sends = (groups_.layout.context - 1) * groups_.context->time_alone(Benchmark::sendrecv_perf, size);
  const auto hidden = is_backward ? 2 * block.attention : block.attention;
  return std::max(Duration{}, sends - hidden);
}

Duration BlockExchanges::expert() const {
  if (!groups_.expert) return {};
  return 2 * groups_.expert->time_alone(Benchmark::alltoall_perf, dispatched());
}

/// `beside`: compute of another micro-batch that hides what experts exchange in a block.
std::vector<Term> BlockExchanges::terms(const BlockCount& blocks, bool is_backward, const TransformerWork& work,
                                        Duration beside) const {
  std::vector<Term> out;
  const auto add = [&](const char* name, Duration time) {
    if (time.ps > 0) out.push_back({name, time, "topology", k_rules});
  };
  auto around = blocks.all() * tensor_of_attention(is_backward) + blocks.dense * tensor(is_backward);
  if (blocks.sparse > 0) around += blocks.sparse * tensor_of_experts(is_backward);
  add("exposed exchange of tensor parallelism", around);
  add("exposed exchange of context parallelism", blocks.all() * context(is_backward, work.block(blocks.sparse > 0)));
  if (blocks.sparse == 0 || !groups_.expert) return out;
  const auto hidden = std::min(beside, expert());
  add("exposed exchange between experts", blocks.sparse * (expert() - hidden));
  const double slowdown = std::min(1.0, groups_.expert->slowdown(Benchmark::alltoall_perf, dispatched()));
  const auto& price = parameters_.at("training.exchange_slowdown"_key);
  const auto slowed = from_seconds(blocks.sparse * hidden.seconds() * slowdown);
  if (slowed.ps > 0) out.push_back({"compute beside exchanges of experts", slowed, price.name, price.source});
  return out;
}

std::vector<Term> BlockExchanges::forward(const BlockCount& blocks, const TransformerWork& work, bool is_paired) const {
  return terms(blocks, false, work, is_paired ? work.sparse.backward : Duration{});
}

std::vector<Term> BlockExchanges::backward(const BlockCount& blocks, const TransformerWork& work,
                                           bool is_paired) const {
  auto out = terms(blocks, true, work, is_paired ? work.sparse.forward : Duration{});
  // Full recomputation runs the forward exchanges again.
  if (spec_.parallel.recompute == Recomputation::full) {
    for (auto& term : terms(blocks, false, work, {})) out.push_back(std::move(term));
  }
  return out;
}

}  // namespace fabricast::models::training
