// SPDX-License-Identifier: Apache-2.0
#include "nccl/architecture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/parameter_name.hpp"
#include "nccl/rccl.hpp"
#include "nccl/release_rules.hpp"
#include "nccl/tuning.hpp"
#include "paths/transport.hpp"

namespace fabricast::models::nccl {

namespace {

constexpr std::string_view k_prefix = "architecture.";

/// `architecture.NAME.FIELD` says more of it.
bool is_of_field(std::string_view name) { return name.find('.', k_prefix.size()) != std::string_view::npos; }

/// Whether logs over a network have taught hops of this architecture.
bool has_network_values(const ParameterSet& parameters, std::string_view architecture) {
  constexpr auto k_hops = "nccl.hop_time"_stem;
  const auto last = fmt::format(".network.{}", architecture);
  return std::any_of(parameters.all().lower_bound(k_hops.text), parameters.all().end(), [&](const auto& entry) {
    return entry.first.starts_with(k_hops.text) && entry.first.ends_with(last);
  });
}

/// For an adapter that programs reach by libfabric and whose plugin has no values of its own, the sentence that says
/// so.
std::string untaught_adapter(const PlanContext& context, DeviceId adapter) {
  if (adapter.value < 0) return {};
  const auto& type = context.topology.device(adapter).type;
  const auto provider = provider_of(context, adapter);
  if (provider.empty() || uses_tcp(context, adapter)) return {};
  if (context.parameters.contains(fmt::format("{}.plugin_latency", type))) return {};
  const auto has = [&](const char* field) { return context.parameters.contains(fmt::format("{}.{}", type, field)); };
  const bool has_costs = has("libfabric_message_time"), has_software = has("libfabric_latency");
  return fmt::format("{}: NCCL reaches it by aws-ofi-nccl over libfabric ({}), of which {}; verbs{} stand for {}", type,
                     provider,
                     has_costs      ? "logs have taught what messages cost"
                     : has_software ? "logs of other adapters have taught what its software costs"
                                    : "no log has taught anything",
                     has("libfabric_eager_limit") ? " with the provider's rendezvous" : "",
                     has_costs || has_software ? "the rest" : "it");
}

/// For a GPU that is younger than the release of NCCL, the sentence that says so.
std::string younger_than_release(const PlanContext& context, DeviceId gpu) {
  if (library_of(context, gpu) == Library::rccl) return {};
  const int capability = compute_capability(context, gpu);
  const int first = first_release(capability);
  const auto& release = context.software.nccl_version;
  if (release_number(release) >= first) return {};
  return fmt::format(
      "{}: NCCL {} has no rules for compute capability {}.{}, {}.{} is the first that does; it is taken to run there "
      "by its rules for older GPUs",
      context.topology.device(gpu).type, release, capability / 10, capability % 10, first / 100, first % 100);
}

/// The architecture whose values count from exactly this compute capability.
std::string architecture_from(const ParameterSet& parameters, double capability) {
  for (auto it = parameters.all().lower_bound(k_prefix);
       it != parameters.all().end() && it->first.starts_with(k_prefix); ++it) {
    if (!is_of_field(it->first) && it->second.value == capability) return it->first.substr(k_prefix.size());
  }
  return {};
}

}  // namespace

std::vector<std::string> Architecture::names_of(std::string_view what) const {
  std::vector<std::string> names{fmt::format("{}.{}", what, name)};
  if (!elder.empty()) names.push_back(fmt::format("{}.{}", what, elder));
  names.emplace_back(what);
  return names;
}

Architecture architecture_of(const PlanContext& context, DeviceId gpu) {
  const auto& parameters = context.parameters;
  const std::string word(context.topology.attribute(context.topology.device(gpu).type, "architecture"));
  const int capability = compute_capability(context, gpu);
  Architecture out;
  int first = 0;
  for (auto it = parameters.all().lower_bound(k_prefix);
       it != parameters.all().end() && it->first.starts_with(k_prefix); ++it) {
    if (is_of_field(it->first)) continue;
    const int from = static_cast<int>(it->second.value);
    const auto name = it->first.substr(k_prefix.size());
    if (name == word) {
      out = {name, {}, true};
      break;
    }
    const bool is_better = from <= capability ? from > first || first > capability
                                              : out.name.empty() || (first > capability && from < first);
    if (!is_better) continue;
    first = from;
    out.name = name;
  }
  // A GPU of the user's whose architecture nobody names goes by its capability.
  if (out.name != word) out.is_own = word.empty() && first / 10 == capability / 10;
  if (const auto* elder = parameters.find(named<"architecture.{}.elder">(out.name).text))
    out.elder = architecture_from(parameters, elder->value);
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
  if (library_of(context, gpu) == Library::rccl) {
    constexpr int newest_read = 227;
    const auto& release = context.software.nccl_version;
    const bool is_younger = release_number(release) > newest_read;
    // src/rccl_wrap.cc, validHsaScratchEnvSetting: of HIP 6.4.43484 and firmware of the GPU's command processor.
    const int firmware = generation_of(context, gpu) == AmdGeneration::cdna4 ? 24 : 177;
    out.push_back(fmt::format(
        "{}: no value comes from a log of RCCL, AMD's own planning figures stand for what its kernels take, launches "
        "that keep their scratch memory (HSA_NO_SCRATCH_RECLAIM=1, or ROCm 6.4.2 and MEC firmware {}, else RCCL warns "
        "and each takes longer){}",
        type, firmware,
        is_younger ? fmt::format("; {} decides as 2.27, up to which its source was read", release) : ""));
  }
  const bool may_be_taught = library_of(context, gpu) == Library::nccl;
  if (may_be_taught && architecture.is_own && !architecture.elder.empty() && adapter.value >= 0 &&
      !has_network_values(context.parameters, architecture.name)) {
    out.push_back(
        fmt::format("{}: no log of NCCL between hosts has taught anything of {}, values of {} stand for its own", type,
                    architecture.name, architecture.elder));
  }
  for (auto& sentence :
       {untaught_adapter(context, adapter), younger_than_release(context, gpu), younger_than_sources(context, gpu)})
    if (!sentence.empty()) out.push_back(sentence);
  return out;
}

}  // namespace fabricast::models::nccl
