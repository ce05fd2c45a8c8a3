// SPDX-License-Identifier: Apache-2.0
#include "nccl/workload_rules.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "nccl/facts.hpp"
#include "nccl/network_plugin.hpp"
#include "nccl/nics.hpp"
#include "nccl/nvls.hpp"
#include "nccl/patterns.hpp"
#include "nccl/rccl.hpp"
#include "nccl/release_rules.hpp"
#include "nccl/tuning.hpp"

namespace fabricast::models::nccl {

namespace {

void check_algorithm(const Workload& workload, Diagnostics& faults) {
  if (workload.algorithm == "auto") return;
  const auto algorithm = algorithm_from_name(workload.algorithm);
  if (!algorithm) {
    faults.push_back(make_error_at(workload.location, fmt::format("'{}' is not an NCCL algorithm", workload.algorithm),
                                   "NCCL benchmarks take auto, ring, tree, nvls, collnet_direct, pat or msccl"));
    return;
  }
  const auto names = algorithm_names(workload.benchmark);
  if (std::find(names.begin(), names.end(), to_string(*algorithm)) != names.end()) return;
  faults.push_back(make_error_at(
      workload.location, fmt::format("{} has no algorithm '{}'", to_string(workload.benchmark), workload.algorithm),
      names.empty() ? "it goes from rank to rank; write auto"
                    : fmt::format("write auto or {}", fmt::join(names, ", "))));
}

/// In words, an algorithm that runs with Simple only; empty: it has all protocols.
std::string_view name_of_simple_only(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::nvls:
      return "NVLink SHARP";
    case Algorithm::collnet:
      return "CollNet";
    case Algorithm::pat:
      return "PAT";
    case Algorithm::ring:
    case Algorithm::tree:
    case Algorithm::msccl:
      return "";
  }
  return "";
}

/// Sends and receives take LL or Simple by their size, whatever NCCL_PROTO says: LL inside hosts alone, where
/// NCCL_P2P_LL_THRESHOLD may be raised; between hosts there are no buffers for it (NCCL_ALLOC_P2P_NET_LL_BUFFERS=0).
void check_protocol_of_pairs(const PlanContext& context, const Workload& workload, const std::vector<DeviceId>& ranks,
                             Protocol protocol, Diagnostics& faults) {
  if (protocol == Protocol::simple || !is_peer_to_peer(collective_of(workload.benchmark))) return;
  const bool is_between = group_by_host(context.topology, ranks).size() > 1;
  if (protocol == Protocol::ll && !is_between) return;
  faults.push_back(make_error_at(
      workload.location,
      fmt::format("'protocol: {}' with {}: sends and receives {}", workload.protocol, to_string(workload.benchmark),
                  protocol == Protocol::ll ? "between hosts have no buffers for LL" : "have LL and Simple only"),
      "write protocol: auto, NCCL_PROTO is for collectives"));
}

void check_protocol(const PlanContext& context, const Workload& workload, const std::vector<DeviceId>& ranks,
                    Diagnostics& faults) {
  if (workload.protocol == "auto") return;
  const auto protocol = protocol_from_name(workload.protocol);
  if (!protocol) {
    faults.push_back(make_error_at(workload.location, fmt::format("'{}' is not an NCCL protocol", workload.protocol),
                                   "NCCL benchmarks take auto, ll, ll128 or simple"));
    return;
  }
  if (*protocol == Protocol::ll128 && release_number(context.software.nccl_version) < 205)
    faults.push_back(make_error_at(workload.location,
                                   fmt::format("NCCL {} has no LL128, it came with 2.5", context.software.nccl_version),
                                   "write ll or simple, or raise software.nccl.version"));
  check_protocol_of_pairs(context, workload, ranks, *protocol, faults);
  const auto algorithm = algorithm_from_name(workload.algorithm);
  const auto simple_only = algorithm ? name_of_simple_only(*algorithm) : "";
  if (*protocol != Protocol::simple && !simple_only.empty())
    faults.push_back(make_error_at(workload.location,
                                   fmt::format("{} has no protocol '{}'", simple_only, workload.protocol),
                                   "write protocol: simple or auto"));
}

/// Kernels for symmetric memory are no algorithm or protocol of channels.
void check_symmetric_memory(const PlanContext& context, const Workload& workload, Diagnostics& faults) {
  if (!context.software.nccl_symmetric_memory || workload.iterations == 0) return;
  for (const auto& [key, value] : {std::pair{"algorithm", workload.algorithm}, {"protocol", workload.protocol}})
    if (value != "auto")
      faults.push_back(make_error_at(workload.location,
                                     fmt::format("{} '{}' beside software.nccl.symmetric_memory: on, whose kernels "
                                                 "have none",
                                                 key, value),
                                     "remove one of the two"));
}

/// CollNet by name, which NCCL has only where it is switched on.
void check_collnet(const PlanContext& context, const Workload& workload, const std::vector<DeviceId>& ranks,
                   Diagnostics& faults) {
  if (algorithm_from_name(workload.algorithm) != Algorithm::collnet) return;
  if (!context.software.nccl_collnet)
    faults.push_back(make_error_at(workload.location,
                                   "algorithm 'collnet_direct' needs CollNet, which is off by default",
                                   "write software.nccl.collnet: on"));
  else if (group_by_host(context.topology, ranks).size() == 1)
    faults.push_back(make_error_at(workload.location, "algorithm 'collnet_direct' joins hosts, all GPUs are in one",
                                   "write algorithm: auto"));
}

/// PAT by name, which NCCL has among hosts of one GPU.
void check_pat(const PlanContext& context, const Workload& workload, const std::vector<DeviceId>& ranks,
               Diagnostics& faults) {
  if (algorithm_from_name(workload.algorithm) != Algorithm::pat || ranks.size() < 2) return;
  CommunicatorFacts facts;
  facts.version = release_number(context.software.nccl_version);
  facts.num_ranks = static_cast<int>(ranks.size());
  const auto hosts = group_by_host(context.topology, ranks);
  facts.num_nodes = static_cast<int>(hosts.size());
  facts.compute_capability = compute_capability(context, least_capable(context, hosts));
  facts.library = library_of(context, ranks[0]);
  if (allows_pat(facts, collective_of(workload.benchmark))) return;
  std::string reason =
      fmt::format("it needs GPUs of compute capability 6.0, these have {:.1f}", facts.compute_capability / 10.0);
  if (facts.library == Library::rccl)
    reason = "RCCL has it switched off";
  else if (facts.version < 223)
    reason = fmt::format("NCCL {} has none, it came with 2.23", context.software.nccl_version);
  else if (facts.num_nodes < facts.num_ranks)
    reason = fmt::format("it joins hosts of one GPU, here are {} GPUs in {} {}", facts.num_ranks, facts.num_nodes,
                         facts.num_nodes == 1 ? "host" : "hosts");
  faults.push_back(
      make_error_at(workload.location, fmt::format("algorithm 'pat': {}", reason), "write algorithm: auto"));
}

/// MSCCL's schedules by name, which RCCL has for all eight GPUs of a host.
void check_msccl(const PlanContext& context, const Workload& workload, const std::vector<DeviceId>& ranks,
                 Diagnostics& faults) {
  if (algorithm_from_name(workload.algorithm) != Algorithm::msccl || ranks.size() < 2) return;
  const auto hosts = group_by_host(context.topology, ranks);
  if (library_of(context, ranks[0]) == Library::rccl && hosts.size() == 1 &&
      has_schedules(context, workload, search_channels(context, hosts), 1))
    return;
  faults.push_back(make_error_at(workload.location,
                                 "algorithm 'msccl': schedules that RCCL has for all eight GPUs of one host, joined "
                                 "each with each, that are left their number of channels",
                                 "write algorithm: auto"));
}

/// NVLink SHARP where there is none. What is inferred of a VM is the user's to overrule.
void check_nvls(const PlanContext& context, const Workload& workload, const std::vector<DeviceId>& ranks,
                Diagnostics& faults) {
  const bool is_forced = algorithm_from_name(workload.algorithm) == Algorithm::nvls;
  const auto setting = context.software.nccl_nvls;
  if (is_forced && setting == NvlsSetting::off)
    faults.push_back(make_error_at(workload.location,
                                   fmt::format("algorithm '{}' beside software.nccl.nvls: off", workload.algorithm),
                                   "remove one of the two"));
  if ((!is_forced && setting != NvlsSetting::on) || ranks.empty()) return;
  const auto hosts = group_by_host(context.topology, ranks);
  if (workload.algorithm == "nvls_tree" && hosts.size() == 1)
    faults.push_back(make_error_at(workload.location, "algorithm 'nvls_tree' joins hosts, all GPUs are in one",
                                   "write algorithm: nvls"));
  const auto gate = nvls_offer(context, hosts).gate;
  if (gate.is_open || gate.is_inferred) return;
  if (is_forced)
    faults.push_back(make_error_at(
        workload.location, fmt::format("algorithm '{}' needs NVLink SHARP: {}", workload.algorithm, gate.reason),
        "write algorithm: auto, ring or tree"));
  if (setting == NvlsSetting::on)
    faults.push_back(make_error_at(where_set(context, workload, "nvls"),
                                   fmt::format("'nvls: on' without NVLink SHARP: {}", gate.reason),
                                   "write nvls: auto, which uses it where there is any"));
}

/// Adapters of several plugins, or of one that sends in several ways: p3dn and p4d by its SENDRECV protocol, P5 by its
/// RDMA protocol, whose adapters are joined (aws/aws-ofi-nccl doc/), gVNIC by TCPXO.
void check_adapters(const PlanContext& context, const Workload& workload, const std::vector<DeviceId>& ranks,
                    Diagnostics& faults) {
  const auto hosts = group_by_host(context.topology, ranks);
  if (hosts.size() < 2) return;
  std::map<std::string, DeviceId> types;
  for (const auto* host : unlike_hosts(context.topology, hosts)) {
    const auto hcas = opened_hcas(context, host->gpus.front());
    if (!hcas.empty()) types.try_emplace(context.topology.device(hcas.front()).type, hcas.front());
  }
  const auto is_plain = [&](const auto& type) {
    const auto name = network_plugin(context, type.second).name;
    return name == "internal" || name == "nccl-rdma-sharp";
  };
  const auto is_joined = [&](const auto& type) { return device_value_or(context, type.second, "rails", 1) > 1; };
  if (types.size() < 2 || std::ranges::all_of(types, is_plain) || std::ranges::all_of(types, is_joined)) return;
  faults.push_back(make_error_at(
      workload.location,
      fmt::format("'{}' and '{}' in one communicator: what NCCL's network plugins make of both is not modelled",
                  types.begin()->first, types.rbegin()->first),
      "describe the hosts of each adapter in a topology of its own, or write transport: tcp"));
}

}  // namespace

SourceLocation where_set(const PlanContext& context, const Workload& workload, const std::string& key) {
  const auto it = context.software.locations.find("nccl." + key);
  return it == context.software.locations.end() ? workload.location : it->second;
}

Collective collective_of(Benchmark benchmark) {
  switch (benchmark) {
    case Benchmark::all_gather_perf:
      return Collective::all_gather;
    case Benchmark::reduce_scatter_perf:
      return Collective::reduce_scatter;
    case Benchmark::broadcast_perf:
      return Collective::broadcast;
    case Benchmark::reduce_perf:
      return Collective::reduce;
    case Benchmark::alltoall_perf:
      return Collective::all_to_all;
    case Benchmark::sendrecv_perf:
      return Collective::send_receive;
    case Benchmark::gather_perf:
      return Collective::gather;
    case Benchmark::scatter_perf:
      return Collective::scatter;
    default:
      return Collective::all_reduce;
  }
}

std::vector<std::string> algorithm_names(Benchmark benchmark) {
  if (benchmark == Benchmark::all_reduce_perf) return {"ring", "tree", "nvls", "collnet_direct", "msccl"};
  if (is_peer_to_peer(collective_of(benchmark))) return {};
  const bool is_gathered = benchmark == Benchmark::all_gather_perf || benchmark == Benchmark::reduce_scatter_perf;
  if (benchmark == Benchmark::all_gather_perf) return {"ring", "pat", "msccl"};
  return is_gathered ? std::vector<std::string>{"ring", "pat"} : std::vector<std::string>{"ring"};
}

Diagnostics workload_faults(const PlanContext& context, const Workload& workload, const std::vector<DeviceId>& ranks) {
  Diagnostics faults;
  if (!ranks.empty()) faults = release_faults(context, workload, ranks);
  check_adapters(context, workload, ranks, faults);
  check_algorithm(workload, faults);
  check_protocol(context, workload, ranks, faults);
  if (faults.empty()) check_nvls(context, workload, ranks, faults);
  check_collnet(context, workload, ranks, faults);
  check_symmetric_memory(context, workload, faults);
  if (faults.empty()) check_pat(context, workload, ranks, faults);
  if (faults.empty()) check_msccl(context, workload, ranks, faults);
  if (workload.root >= static_cast<int>(ranks.size()))
    faults.push_back(make_error_at(workload.location,
                                   fmt::format("root is rank {}, there are {} ranks", workload.root, ranks.size()),
                                   "ranks count from 0"));
  return faults;
}

Diagnostic nvls_beside_plugin(const PlanContext& context, const Workload& workload) {
  return make_error_at(where_set(context, workload, "nvls"),
                       "'nvls: on' beside adapters whose network plugin comes with settings for rings and trees only",
                       "write nvls: auto");
}

Diagnostic no_collnet(const PlanContext& context, const Workload& workload, const std::string& reason) {
  return make_error_at(where_set(context, workload, "collnet"),
                       fmt::format("'collnet: on' without CollNet: {}", reason), "leave it out");
}

Diagnostic no_symmetric_memory(const PlanContext& context, const Workload& workload, const std::string& reason) {
  return make_error_at(where_set(context, workload, "symmetric_memory"),
                       fmt::format("'symmetric_memory: on' without kernels for it: {}", reason), "leave it out");
}

}  // namespace fabricast::models::nccl
