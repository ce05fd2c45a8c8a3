// SPDX-License-Identifier: Apache-2.0
#include "nccl/operation.hpp"
#include "base/parameter_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace fabricast::models::nccl {

const Parameter& parameter_for(const ParameterSet& parameters, const Architecture& architecture, ParameterStem stem,
                               std::string_view last) {
  const std::string what(stem.text);
  const auto name = last.empty() ? what : fmt::format("{}.{}", what, last);
  auto names = architecture.names_of(name);
  if (!last.empty()) {
    const auto of_all = architecture.names_of(what);
    names.insert(names.end(), of_all.begin(), of_all.end());
  }
  return parameters.first_of(names);
}

const Parameter& parameter_by_algorithm(const ParameterSet& parameters, const Architecture& architecture,
                                        Collective collective, ParameterStem what, Algorithm algorithm,
                                        std::string_view last) {
  const auto name = fmt::format("{}.{}.{}", what.text, to_string(algorithm), last);
  auto names = architecture.names_of(name);
  if (is_peer_to_peer(collective) || is_chain(collective)) {
    const auto other =
        architecture.names_of(fmt::format("{}.{}.{}", what.text, is_chain(collective) ? "chain" : "direct", last));
    names.insert(names.begin(), other.begin(), other.end());
  }
  // What is known of rings alone holds for trees too.
  if (algorithm == Algorithm::tree) {
    const auto of_rings = architecture.names_of(fmt::format("{}.{}.{}", what.text, to_string(Algorithm::ring), last));
    names.insert(names.end(), of_rings.begin(), of_rings.end());
  }
  return parameters.first_of(names);
}

Parameter hop_time(const ParameterSet& parameters, const Architecture& architecture, Collective collective,
                   Algorithm algorithm, std::string_view way) {
  constexpr auto what = "nccl.hop_time"_stem;
  const auto plain = [&]() -> const Parameter& {
    return parameter_by_algorithm(parameters, architecture, collective, what, algorithm, way);
  };
  if (algorithm != Algorithm::tree) return plain();
  const auto of_trees = architecture.names_of(fmt::format("{}.{}.{}", what.text, to_string(Algorithm::tree), way));
  const auto of_rings = architecture.names_of(fmt::format("{}.{}.{}", what.text, to_string(Algorithm::ring), way));
  const auto* tree_of_all = parameters.find(of_trees.back());
  const auto* ring_of_all = parameters.find(of_rings.back());
  if (tree_of_all == nullptr || ring_of_all == nullptr) return plain();
  for (std::size_t i = 0; i + 1 < of_trees.size(); ++i) {
    if (const auto* own = parameters.find(of_trees[i])) return *own;
    if (const auto* ring = parameters.find(of_rings[i])) {
      auto derived = *ring;
      derived.value *= tree_of_all->value / ring_of_all->value;
      return derived;
    }
  }
  return plain();
}

Operation::Operation(const PlanContext& given, const Communicator& whole, const Pattern& way, Collective what,
                     const Choice& chosen, const ChannelUse& use, Bytes bytes)
    : context(given),
      group(whole),
      pattern(way),
      collective(what),
      choice(chosen),
      protocol(to_string(chosen.protocol)),
      size(static_cast<double>(bytes.value)),
      channels(use.channels),
      threads(use.threads),
      most_threads(use.most_threads) {
  share = parameter("nccl.payload_share"_stem, protocol).value;
}

const Parameter* Operation::of_adapter(const Hops& hops, const char* field) const {
  if (hops.adapter.value < 0) return nullptr;
  return context.parameters.find(context.topology.device(hops.adapter).type, field);
}

bool Operation::has_hop(TransportKind kind) const {
  return std::any_of(pattern.hops.begin(), pattern.hops.end(), [kind](const Hops& h) { return h.kind == kind; });
}

bool is_before_new_primitives(const Operation& operation) {
  return operation.group.library == Library::nccl && release_number(operation.context.software.nccl_version) < 210;
}

bool fetches_work(const Operation& operation) { return release_number(operation.context.software.nccl_version) < 222; }

void add_latency(Flow& flow, Term term) {
  flow.latency += term.time;
  flow.latency_terms.push_back(std::move(term));
}

void limit_rate(Flow& flow, double rate, std::string name, const std::string& parameter_name) {
  if (rate >= flow.rate_cap) return;
  flow.rate_cap = rate;
  flow.cap_name = std::move(name);
  flow.cap_parameter = parameter_name;
}

void limit_crossings(Flow& flow, const Resources& resources, const Parameter& share, std::string_view words,
                     const std::function<bool(int)>& is_meant) {
  for (const auto& crossing : flow.crossings) {
    if (!is_meant(crossing.resource)) continue;
    const double limit = share.value * resources.capacity(crossing.resource) / crossing.times;
    if (limit < flow.rate_cap)
      limit_rate(flow, limit, fmt::format("{}{}", resources.name(crossing.resource), words), share.name);
  }
}

}  // namespace fabricast::models::nccl
