// SPDX-License-Identifier: Apache-2.0
#include "cli/evidence.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "fabricast/simulate.hpp"
#include "fabricast/virtualization.hpp"

namespace fabricast::cli {

namespace {

constexpr double k_least_share = 0.05;

struct Evidence {
  std::array<double, 2> share{};  ///< of the time of the smallest and of the largest size
  std::set<std::string> parameters;
};

bool is_forecast_by_models(Benchmark benchmark) {
  const auto family = family_of(benchmark);
  return family == BenchmarkFamily::nccl_tests || family == BenchmarkFamily::osu || family == BenchmarkFamily::perftest;
}

void add_row(const Row& row, std::size_t column, const ParameterSet& parameters,
             std::map<std::string, Evidence>& by_source) {
  double all = 0;
  for (const auto& term : row.terms) all += std::max(0.0, term.time.seconds());
  if (all <= 0) return;
  for (const auto& term : row.terms) {
    if (term.time.seconds() <= 0) continue;
    const auto* parameter = parameters.find(term.parameter);
    const auto source = parameter == nullptr
                            ? std::string("the topology: links and their rates")
                            : fmt::format("{}: {}", to_string(parameter->confidence), parameter->source);
    auto& entry = by_source[source];
    entry.share[column] += term.time.seconds() / all;
    if (parameter != nullptr) entry.parameters.insert(parameter->name);
  }
}

std::string table_of(const WorkloadPrediction& workload, const ParameterSet& parameters) {
  std::map<std::string, Evidence> by_source;
  add_row(workload.rows.front(), 0, parameters, by_source);
  add_row(workload.rows.back(), 1, parameters, by_source);
  std::vector<std::pair<std::string, Evidence>> sorted(by_source.begin(), by_source.end());
  const auto weight = [](const Evidence& one) { return std::max(one.share[0], one.share[1]); };
  std::erase_if(sorted, [&](const auto& one) { return weight(one.second) < k_least_share; });
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const auto& a, const auto& b) { return weight(a.second) > weight(b.second); });
  const auto least = to_string(workload.rows.front().size);
  const auto most = to_string(workload.rows.back().size);
  auto out = fmt::format("  {} rests on (share of the time at {})\n", workload.name,
                         least == most ? least : fmt::format("{} and at {}", least, most));
  for (const auto& [source, entry] : sorted) {
    const auto second = least == most ? "" : fmt::format(" {:3.0f} %", 100 * entry.share[1]);
    const auto shares = fmt::format("    {:3.0f} %{}  ", 100 * entry.share[0], second);
    out += fmt::format("{}{}\n", shares, source);
    if (!entry.parameters.empty())
      out += fmt::format("{:{}}{}\n", "", shares.size(), fmt::join(entry.parameters, ", "));
  }
  return out;
}

/// The first term whose parameter's name has `part`; nullptr without one.
const Term* term_of(const WorkloadPrediction& workload, const char* part) {
  for (const auto& row : workload.rows) {
    const auto found = std::ranges::find_if(
        row.terms, [&](const Term& term) { return term.parameter.find(part) != std::string::npos; });
    if (found != row.terms.end()) return &*found;
  }
  return nullptr;
}

bool has_term_of(const WorkloadPrediction& workload, const char* part) { return term_of(workload, part) != nullptr; }

/// Requests between a GPU and an HCA pass a PCIe switch that could send them to the root complex.
bool could_be_redirected(const Topology& topology, int host) {
  if (topology.virtualization(host).redirects_peers()) return false;
  for (const auto gpu : topology.devices(DeviceKind::gpu, host))
    for (const auto hca : topology.devices(DeviceKind::hca, host))
      if (topology.distance(gpu, hca) <= Distance::pxb) return true;
  return false;
}

bool has_gpus_of(const Topology& topology, std::string_view vendor) {
  for (int host = 0; host < topology.num_hosts(); ++host)
    for (const auto gpu : topology.devices(DeviceKind::gpu, host))
      if (topology.attribute(topology.device(gpu).type, "vendor") == vendor) return true;
  return false;
}

/// Risks that logs have shown and that a scenario does not settle.
std::vector<std::string> risks_of(const LoadedScenario& loaded, const Workload& workload,
                                  const WorkloadPrediction& prediction) {
  std::vector<std::string> out;
  if (family_of(workload.benchmark) != BenchmarkFamily::nccl_tests) return out;
  const auto& software = loaded.scenario.software;
  const bool is_rccl = has_gpus_of(loaded.topology, "amd");
  if (!software.locations.contains("nccl.version"))
    out.push_back(fmt::format("the release of {}: {} is taken, choices and channels differ by release",
                              is_rccl ? "RCCL" : "NCCL", software.nccl_version));
  if (prediction.num_hosts < 2) return out;
  if (has_term_of(prediction, ".plugin_") && !software.nccl_plugin_version.empty())
    out.push_back(fmt::format(
        "what a message costs by aws-ofi-nccl {}: logs of other releases stand for it; two of one adapter's "
        "differ by 30 % above 128 MiB",
        software.nccl_plugin_version));
  else if (has_term_of(prediction, ".plugin_"))
    out.push_back(
        "the release of the adapters' network plugin: that of the logs stands for it; two of one adapter's differ by "
        "30 % above 128 MiB");
  else if (const auto* limit = term_of(prediction, ".libfabric_eager_limit")) {
    if (loaded.parameters.at(limit->parameter).value > 0)
      out.push_back(
          "what the site sets of FI_CXI_*: the provider's own threshold is taken; with FI_CXI_RDZV_THRESHOLD=0 every "
          "message is announced first (`libfabric_eager_limit: {value: 0 B}`)");
  } else if (has_term_of(prediction, ".socket"))
    out.push_back(
        "processors, kernels and interrupts: one system's logs taught NCCL over TCP between hosts (A100, EPYC, "
        "Slingshot-11)");
  else if (could_be_redirected(loaded.topology, 0))
    out.push_back(
        "whether PCIe switches redirect peer requests (ACS): they are taken not to; with `acs: redirect` the forecast "
        "is "
        "slower");
  if (workload.benchmark == Benchmark::all_reduce_perf && !loaded.scenario.software.nccl_collnet && !is_rccl)
    out.push_back("reductions in network switches (SHARP): off, as NCCL has them; `software.nccl.collnet: on`");
  return out;
}

}  // namespace

std::optional<std::string> describe_evidence(const LoadedScenario& loaded) {
  auto scenario = loaded.scenario;
  for (auto& workload : scenario.workloads) {
    if (!is_forecast_by_models(workload.benchmark)) return std::nullopt;
    const auto all = workload.sizes.empty() ? default_sizes(workload.benchmark) : workload.sizes;
    if (all.empty()) continue;
    const auto [least, most] = std::minmax_element(all.begin(), all.end());
    workload.sizes = *least == *most ? std::vector<Bytes>{*least} : std::vector<Bytes>{*least, *most};
  }
  const auto prediction = simulate(loaded.topology, scenario, loaded.parameters);
  if (!prediction) return std::nullopt;
  std::string out;
  for (std::size_t w = 0; w < prediction->workloads.size() && w < scenario.workloads.size(); ++w) {
    const auto& one = prediction->workloads[w];
    if (one.rows.empty()) continue;
    out += table_of(one, loaded.parameters);
    if (!one.stand_ins.empty())
      out += fmt::format("  stands in, the band is wider for it:\n    {}\n", fmt::join(one.stand_ins, "\n    "));
    auto unknown = risks_of(loaded, scenario.workloads[w], one);
    if (!unknown.empty())
      out += fmt::format("  not known, and able to change it:\n    {}\n", fmt::join(unknown, "\n    "));
  }
  return out;
}

}  // namespace fabricast::cli
