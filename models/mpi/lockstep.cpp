// SPDX-License-Identifier: Apache-2.0
#include "mpi/lockstep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "paths/transport.hpp"

namespace fabricast::models::mpi {

namespace {

/// What most of a flow's latency comes from.
std::string parameter_of_longest(const Flow& flow) {
  const auto longest = std::ranges::max_element(flow.latency_terms, {}, &Term::time);
  return longest == flow.latency_terms.end() ? std::string() : longest->parameter;
}

bool is_same(const Term& one, const Term& other) {
  return one.time == other.time && one.name == other.name && one.parameter == other.parameter &&
         one.source == other.source;
}

constexpr std::size_t k_most_compared = 16;  ///< lists that were put last

}  // namespace

void SharedTerms::put(std::vector<Term>& terms) {
  const auto begin = lists_.size() - std::min(lists_.size(), k_most_compared);
  auto place = begin;
  while (place < lists_.size() && !std::ranges::equal(lists_[place], terms, is_same)) ++place;
  places_.push_back(place);
  if (place == lists_.size()) lists_.push_back(std::move(terms));
  terms = {};
}

void RoundFlows::add(Flow flow) {
  if (!is_folded_) return flows_.push_back(std::move(flow));
  const auto crossings = std::exchange(flow.crossings, {});
  const auto legs = std::exchange(flow.legs, {});
  auto kind = std::ranges::find(kinds_, flow.bytes, [](const Kind& one) { return one.first.bytes; });
  if (kind == kinds_.end()) {
    kind = kinds_.emplace(kind);
    kind->first = kind->last = flow;
  }
  for (const auto& crossing : crossings) kind->crossings.add(crossing.resource, crossing.times);
  kind->legs.insert(kind->legs.end(), legs.begin(), legs.end());
  if (flow.rate_cap < kind->rate_cap) {
    kind->rate_cap = flow.rate_cap;
    kind->cap_name = flow.cap_name;
    kind->cap_parameter = flow.cap_parameter;
  }
  if (flow.latency >= kind->last.latency) kind->last = flow;
  if (flow.latency < kind->first.latency) kind->first = std::move(flow);
}

std::vector<Flow> RoundFlows::take() {
  for (auto& kind : kinds_) flows_.push_back(as_one(kind));
  return std::move(flows_);
}

Flow RoundFlows::as_one(Kind& kind) {
  auto& out = kind.first;
  const double span = (kind.last.latency - out.latency).seconds();
  out.crossings = kind.crossings.take();
  out.legs = merged_legs(std::move(kind.legs));
  if (kind.rate_cap < out.rate_cap) {
    out.rate_cap = kind.rate_cap;
    out.cap_name = kind.cap_name;
    out.cap_parameter = kind.cap_parameter;
  }
  if (const double posted = span > 0 ? out.bytes / span : std::numeric_limits<double>::infinity();
      posted < out.rate_cap) {
    out.rate_cap = posted;
    out.cap_name = "messages of a round, posted one after the other";
    out.cap_parameter = parameter_of_longest(kind.last);
  }
  return std::move(out);
}

void share_latencies(Node& node) {
  std::vector<Term> mean;
  for (const auto& flow : node.flows) {
    for (const auto& term : flow.latency_terms) {
      const auto known = std::find_if(mean.begin(), mean.end(), [&](const Term& t) { return t.name == term.name; });
      if (known == mean.end()) {
        mean.push_back(term);
      } else {
        known->time += term.time;
      }
    }
  }
  for (auto& term : mean) term.time = term.time / static_cast<std::int64_t>(node.flows.size());
  for (auto& flow : node.flows) {
    flow.latency = sum(mean);
    flow.latency_terms = mean;
  }
}

}  // namespace fabricast::models::mpi
