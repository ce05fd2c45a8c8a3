// SPDX-License-Identifier: Apache-2.0
#include "training/exchanges.hpp"
#include "base/parameter_name.hpp"

#include <algorithm>
#include <utility>

namespace fabricast::models::training {

namespace {

constexpr const char* k_rules = "planned by NCCL's rules";
constexpr const char* k_of_tensor = "exposed exchange of tensor parallelism";
constexpr const char* k_of_context = "exposed exchange of context parallelism";
constexpr const char* k_of_experts = "exposed exchange between experts";

/// One after another, when nothing else is exchanged.
Duration alone(const LayerExchange& one) { return one.times * one.groups->time_alone(one.operation, one.size); }

}  // namespace

BlockExchanges::BlockExchanges(const ParameterSet& parameters, const TrainingSpec& spec, const Layout& layout,
                               const LayerGroups& groups)
    : parameters_(parameters),
      spec_(spec),
      layout_(layout),
      groups_(groups),
      gap_(parameters["training.kernel_floor"_key]) {
  tokens_ = static_cast<double>(spec.batch_per_gpu) * static_cast<double>(spec.network->tokens) / layout.context;
}

Bytes BlockExchanges::vectors(std::int64_t elements) const {
  return to_bytes(tokens_ * static_cast<double>(elements) * activation_bytes(spec_.precision));
}

Bytes BlockExchanges::activations() const { return vectors(spec_.network->transformer->hidden); }

Bytes BlockExchanges::boundary() const {
  const auto whole = activations();
  return spec_.parallel.sequence ? Bytes{whole.value / layout_.tensor} : whole;
}

Bytes BlockExchanges::dispatched() const {
  const double tokens = spec_.network->transformer->experts_per_token * spec_.parallel.imbalance;
  return to_bytes(static_cast<double>(boundary().value) * tokens);
}

void BlockExchanges::add_tensor(Exchanges& out, Benchmark operation, Bytes size, std::int64_t times) const {
  out.push_back({k_of_tensor, &*groups_.tensor, operation, size, times, gap_, {}});
}

/// Around attention, or around a feed-forward part.
void BlockExchanges::add_tensor(Exchanges& out, bool is_backward, std::int64_t blocks) const {
  if (!groups_.tensor) return;
  const auto size = activations();
  if (!spec_.parallel.sequence) return add_tensor(out, Benchmark::all_reduce_perf, size, blocks);
  add_tensor(out, Benchmark::all_gather_perf, size, (is_backward ? 2 : 1) * blocks);
  add_tensor(out, Benchmark::reduce_scatter_perf, size, blocks);
}

void BlockExchanges::add_tensor_of_attention(Exchanges& out, bool is_backward, std::int64_t blocks) const {
  const auto& latent = spec_.network->transformer->latent;
  if (!latent || !groups_.tensor) return add_tensor(out, is_backward, blocks);
  const auto of_inputs = [&](Benchmark operation) {
    add_tensor(out, operation, latent->query_rank > 0 ? vectors(latent->query_rank) : activations(), blocks);
    add_tensor(out, operation, vectors(latent->kv_rank + latent->rope_size), blocks);
  };
  if (!spec_.parallel.sequence)
    return is_backward ? of_inputs(Benchmark::all_reduce_perf)
                       : add_tensor(out, Benchmark::all_reduce_perf, activations(), blocks);
  of_inputs(Benchmark::all_gather_perf);
  if (!is_backward) return add_tensor(out, Benchmark::reduce_scatter_perf, activations(), blocks);
  add_tensor(out, Benchmark::all_gather_perf, activations(), blocks);
  of_inputs(Benchmark::reduce_scatter_perf);
}

void BlockExchanges::add_tensor_of_experts(Exchanges& out, bool is_backward, std::int64_t blocks) const {
  if (!spec_.parallel.sequence) return add_tensor(out, is_backward, blocks);
  // The gathered tokens are kept: backward gathers and scatters once each, too.
  const Bytes size = layout_.expert_tensor * dispatched();
  if (spec_.network->transformer->shared_ffn > 0) add_tensor(out, is_backward, blocks);
  if (!groups_.expert_tensor) return;
  for (const auto operation : {Benchmark::all_gather_perf, Benchmark::reduce_scatter_perf})
    out.push_back({k_of_tensor, &*groups_.expert_tensor, operation, size, blocks, gap_, {}});
}

void BlockExchanges::add_heads_for_tokens(Exchanges& out, std::int64_t blocks) const {
  const auto& shape = *spec_.network->transformer;
  for (const auto heads : {shape.heads, shape.kv_heads}) {
    for (const auto size : {shape.head_size, shape.value_size}) {
      const double bytes = tokens_ * static_cast<double>(size) / layout_.tensor * activation_bytes(spec_.precision);
      out.push_back({k_of_context,
                     &*groups_.context,
                     Benchmark::alltoall_perf,
                     to_bytes(bytes * static_cast<double>(heads)),
                     blocks,
                     gap_,
                     {}});
    }
  }
}

void BlockExchanges::add_context(Exchanges& out, bool is_backward, std::int64_t blocks, const BlockWork& block) const {
  if (!groups_.context) return;
  if (spec_.parallel.context_exchange == ContextExchange::all_to_all) return add_heads_for_tokens(out, blocks);
  const auto& shape = *spec_.network->transformer;
  const double width = static_cast<double>(shape.kv_heads * (shape.head_size + shape.value_size)) / layout_.tensor;
  const auto size = to_bytes((is_backward ? 2 : 1) * tokens_ * width * activation_bytes(spec_.precision));
  LayerExchange sends{
      k_of_context, &*groups_.context, Benchmark::sendrecv_perf, size, (layout_.context - 1) * blocks, {}, {}};
  sends.hidden = std::min(alone(sends), (is_backward ? 2 : 1) * blocks * block.attention);
  out.push_back(sends);
}

/// `beside`: compute of another micro-batch that hides what experts exchange in a block.
void BlockExchanges::add_experts(Exchanges& out, std::int64_t blocks, Duration beside) const {
  if (!groups_.expert || blocks == 0) return;
  LayerExchange one{k_of_experts, &*groups_.expert, Benchmark::alltoall_perf, dispatched(), 2 * blocks, {}, {}};
  one.hidden = std::min(blocks * beside, alone(one));
  one.price = std::min(1.0, groups_.expert->slowdown(one.operation, one.size));
  out.push_back(one);
}

std::vector<LayerExchange> BlockExchanges::exchanges(const BlockCount& blocks, bool is_backward,
                                                     const TransformerWork& work, Duration beside) const {
  Exchanges out;
  add_tensor_of_attention(out, is_backward, blocks.all());
  add_tensor(out, is_backward, blocks.dense);
  if (blocks.sparse > 0) add_tensor_of_experts(out, is_backward, blocks.sparse);
  add_context(out, is_backward, blocks.all(), work.block(blocks.sparse > 0));
  add_experts(out, blocks.sparse, beside);
  std::erase_if(out, [](const auto& one) { return one.times == 0; });
  return out;
}

std::vector<LayerExchange> BlockExchanges::forward(const BlockCount& blocks, const TransformerWork& work,
                                                   bool is_paired) const {
  return exchanges(blocks, false, work, is_paired ? work.sparse.backward : Duration{});
}

std::vector<LayerExchange> BlockExchanges::backward(const BlockCount& blocks, const TransformerWork& work,
                                                    bool is_paired) const {
  auto out = exchanges(blocks, true, work, is_paired ? work.sparse.forward : Duration{});
  // Full recomputation runs the forward exchanges again.
  if (spec_.parallel.recompute == Recomputation::full) {
    for (const auto& one : exchanges(blocks, false, work, {})) out.push_back(one);
  }
  return out;
}

std::vector<Term> BlockExchanges::terms(const std::vector<LayerExchange>& exchanges) const {
  auto out = terms_beside(exchanges);
  for (const auto& one : exchanges) {
    const auto exposed = alone(one) - one.hidden;
    if (exposed.ps > 0) out.push_back({one.name, exposed, "topology", k_rules});
  }
  return out;
}

std::vector<Term> BlockExchanges::terms_beside(const std::vector<LayerExchange>& exchanges) const {
  const auto& price = parameters_.at("training.exchange_slowdown"_key);
  std::vector<Term> out;
  for (const auto& one : exchanges) {
    if (one.gap.ps > 0) out.push_back({one.name, one.times * one.gap, "topology", k_rules});
    const auto slowed = from_seconds(one.hidden.seconds() * one.price);
    if (slowed.ps > 0) out.push_back({"compute beside exchanges of experts", slowed, price.name, price.source});
  }
  return out;
}

int LayerFlows::append(const std::vector<LayerExchange>& exchanges, int work) {
  const auto start = program_.nodes[static_cast<std::size_t>(work)].after;
  int last = work;
  for (const auto& one : exchanges) {
    const auto once = one.groups->time_alone(one.operation, one.size).seconds();
    const double hidden = once > 0 ? one.hidden.seconds() / once : 0;
    const auto put = [&](double times, const std::vector<int>& after, int stream) {
      return one.groups->append(program_, wire_, one.operation, one.size, after, stream, one.name, -1, times);
    };
    if (hidden > 0) {
      auto after = start;
      if (const int earlier = std::max(hidden_, hidden_before_); earlier >= 0) after.push_back(earlier);
      hidden_ = put(hidden, after, -1);
    }
    const double exposed = static_cast<double>(one.times) - hidden;
    if (one.hidden < alone(one)) last = put(exposed, {last}, stream_);
  }
  return last;
}

int LayerFlows::end_pass(int last) {
  if (hidden_before_ >= 0) {
    Node join;
    join.kind = NodeKind::delay;
    join.label = "exchanges inside layers that compute had hidden";
    join.after = {last, hidden_before_};
    join.stream = stream_;
    program_.nodes.push_back(std::move(join));
    last = static_cast<int>(program_.nodes.size()) - 1;
  }
  hidden_before_ = std::exchange(hidden_, -1);
  return last;
}

}  // namespace fabricast::models::training
