// SPDX-License-Identifier: Apache-2.0
#include "nccl/architecture.hpp"

#include <fmt/format.h>

#include <string_view>

#include "paths/transport.hpp"

namespace fabricast::models::nccl {

namespace {

/// For an adapter that programs reach by libfabric and whose plugin no log has taught, the sentence that says so.
std::string untaught_adapter(const PlanContext& context, DeviceId adapter) {
  if (adapter.value < 0) return {};
  const auto& type = context.topology.device(adapter).type;
  const std::string provider(context.topology.attribute(type, "libfabric"));
  if (provider.empty() || uses_tcp(context, adapter)) return {};
  if (context.parameters.contains(fmt::format("{}.plugin_latency", type))) return {};
  const bool has_rule = context.parameters.contains(fmt::format("{}.libfabric_eager_limit", type));
  return fmt::format(
      "{}: NCCL reaches it by aws-ofi-nccl over libfabric ({}), of which no log has taught anything; verbs{} stand for "
      "it",
      type, provider, has_rule ? " with the provider's rendezvous" : "");
}

}  // namespace

Architecture architecture_of(const PlanContext& context, DeviceId gpu) {
  constexpr std::string_view k_prefix = "architecture.";
  const auto& parameters = context.parameters;
  const std::string word(context.topology.attribute(context.topology.device(gpu).type, "architecture"));
  const int capability = compute_capability(context, gpu);
  Architecture out;
  int first = 0;
  for (auto it = parameters.all().lower_bound(k_prefix);
       it != parameters.all().end() && it->first.starts_with(k_prefix); ++it) {
    const int from = static_cast<int>(it->second.value);
    const auto name = it->first.substr(k_prefix.size());
    if (name == word) return {name, true};
    const bool is_better = from <= capability ? from > first || first > capability
                                              : out.name.empty() || (first > capability && from < first);
    if (!is_better) continue;
    first = from;
    out.name = name;
  }
  // A GPU of the user's whose architecture nobody names goes by its capability.
  out.is_own = word.empty() && first / 10 == capability / 10;
  return out;
}

std::vector<std::string> stand_ins_of(const PlanContext& context, DeviceId gpu, DeviceId adapter) {
  std::vector<std::string> out;
  const auto architecture = architecture_of(context, gpu);
  const auto& type = context.topology.device(gpu).type;
  if (!architecture.is_own) {
    const std::string word(context.topology.attribute(type, "architecture"));
    const int capability = compute_capability(context, gpu);
    out.push_back(fmt::format(
        "{} ({}, compute capability {}.{}): no log of NCCL on a GPU of its architecture has taught "
        "anything, values of {} stand for its own",
        type, word.empty() ? "no architecture named" : word, capability / 10, capability % 10, architecture.name));
  }
  if (auto sentence = untaught_adapter(context, adapter); !sentence.empty()) out.push_back(std::move(sentence));
  return out;
}

}  // namespace fabricast::models::nccl
