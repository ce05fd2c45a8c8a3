// SPDX-License-Identifier: Apache-2.0
#include "nccl/rccl.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "common/foreign_gpus.hpp"
#include "nccl/mesh.hpp"
#include "nccl/nics.hpp"
#include "nccl/workload_rules.hpp"
#include "paths/guest.hpp"

namespace fabricast::models::nccl {

namespace {

/// What is known of an architecture of the catalogue.
struct GenerationFacts {
  std::string_view architecture;  ///< in the catalogue
  std::string_view label;
  int since;  ///< release_number of the first RCCL with its rules
  std::size_t ranks_with_pxn;
};
/// By generation. CHANGELOG.md of RCCL: gfx950 came with 2.26.6; src/rccl_wrap.cc: PXN.
constexpr std::array k_generations{GenerationFacts{"cdna3", "CDNA 3 (MI300X)", 218, 64},
                                   GenerationFacts{"cdna4", "CDNA 4 (MI355X)", 226, 32}};

const GenerationFacts& facts_of(AmdGeneration generation) {
  return k_generations[static_cast<std::size_t>(generation)];
}

/// Settings and releases that RCCL, or this model of it, does not have.
Diagnostics setting_faults(const PlanContext& context, const Workload& workload, const GenerationFacts& gpus) {
  Diagnostics faults;
  const auto& software = context.software;
  if (release_number(software.nccl_version) < gpus.since)
    faults.push_back(
        make_error_at(where_set(context, workload, "version"),
                      fmt::format("RCCL {} does not know GPUs of {}, or its rules for them are not modelled",
                                  software.nccl_version, gpus.label),
                      fmt::format("software.nccl.version is RCCL's release on AMD's GPUs: {}.{} and later",
                                  gpus.since / 100, gpus.since % 100)));
  if (software.nccl_collnet)
    faults.push_back(make_error_at(where_set(context, workload, "collnet"), "'collnet: on' with RCCL is not modelled",
                                   "leave it out"));
  return faults;
}

}  // namespace

bool is_set(const Software& software, const std::string& key) { return software.locations.contains("nccl." + key); }

Library library_of(const PlanContext& context, DeviceId gpu) {
  return vendor_of(context.topology, gpu) == "amd" ? Library::rccl : Library::nccl;
}

std::optional<AmdGeneration> generation_of(const PlanContext& context, DeviceId gpu) {
  const auto& topology = context.topology;
  if (vendor_of(topology, gpu) != "amd") return std::nullopt;
  const auto architecture = topology.attribute(topology.device(gpu).type, "architecture");
  for (const auto generation : {AmdGeneration::cdna3, AmdGeneration::cdna4})
    if (facts_of(generation).architecture == architecture) return generation;
  return std::nullopt;
}

std::size_t ranks_with_pxn(const PlanContext& context, DeviceId gpu) {
  return facts_of(generation_of(context, gpu).value_or(AmdGeneration::cdna3)).ranks_with_pxn;
}

Diagnostics library_faults(const PlanContext& context, const Workload& workload) {
  const auto& topology = context.topology;
  std::set<std::string> vendors;
  std::set<AmdGeneration> generations;
  std::set<int> shapes;
  for (int host = 0; host < topology.num_hosts(); ++host) {
    if (!shapes.insert(topology.host_shape(host)).second) continue;
    for (const auto gpu : topology.devices(DeviceKind::gpu, host)) {
      const auto& type = topology.device(gpu).type;
      const std::string vendor(vendor_of(topology, gpu));
      vendors.insert(vendor);
      const auto generation = generation_of(context, gpu);
      if (generation) generations.insert(*generation);
      if (vendor == "nvidia" || generation) continue;
      const auto known = fmt::format("{} and {}", k_generations[0].label, k_generations[1].label);
      return {
          make_error_at(workload.location,
                        fmt::format("{} on {}: its collectives are not modelled, those of {} are no stand-in",
                                    to_string(workload.benchmark), type, vendor == "amd" ? known : "NVIDIA and AMD"),
                        "MPI and perftest with host buffers, traffic, check and export work on these hosts")};
    }
  }
  if (vendors.size() > 1)
    return {make_error_at(workload.location, "GPUs of NVIDIA and AMD in one cluster: no library joins them",
                          "describe each cluster in a topology of its own")};
  if (generations.size() > 1)
    return {make_error_at(workload.location,
                          fmt::format("GPUs of {} and {} in one cluster: what RCCL decides among both is not modelled",
                                      facts_of(*generations.begin()).label, facts_of(*generations.rbegin()).label),
                          "describe the hosts of each architecture in a topology of its own")};
  return generations.empty() ? Diagnostics{} : setting_faults(context, workload, facts_of(*generations.begin()));
}

std::optional<Software> own_software(const PlanContext& context, const std::vector<DeviceId>& ranks) {
  const auto& given = context.software;
  if (library_of(context, ranks[0]) != Library::rccl || given.nccl_pxn ||
      ranks.size() >= ranks_with_pxn(context, ranks[0]))
    return std::nullopt;
  auto own = given;
  own.nccl_pxn = false;
  return own;
}

PlanContext with_software(const PlanContext& context, const Software& software) {
  return {context.topology,  software,           context.parameters,     context.resources,
          context.seed,      context.runs_alone, context.full_expansion, context.neighbours,
          context.with_legs, context.workloads,  context.pattern_seed,   context.one_of_groups};
}

bool has_schedules(const PlanContext& context, const Workload& workload, const ChannelGraph& graph, int hosts) {
  constexpr int k_threads = 221;
  const bool is_launched_so =
      workload.launch == LaunchMode::process_per_gpu || release_number(context.software.nccl_version) >= k_threads;
  return hosts == 1 && graph.is_by_table && is_launched_so && !workload.channels;
}

namespace rccl {

namespace {

constexpr std::size_t k_gpus = 8;
using Order = std::array<int, k_gpus>;

/// rome_models.cc, for eight GPUs without adapters; each also the other way round.
constexpr std::array<Order, 7> k_rings{{{0, 1, 2, 3, 4, 5, 6, 7},
                                        {0, 1, 2, 3, 4, 5, 7, 6},
                                        {0, 2, 4, 1, 3, 6, 5, 7},
                                        {0, 2, 4, 6, 1, 7, 3, 5},
                                        {0, 3, 1, 5, 2, 7, 4, 6},
                                        {0, 3, 5, 1, 6, 2, 7, 4},
                                        {0, 4, 1, 7, 3, 6, 2, 5}}};

/// The same for eight GPUs with an adapter each: ways that use every link once.
constexpr std::array<Order, k_gpus> k_ways{{{0, 1, 2, 3, 4, 5, 6, 7},
                                            {1, 0, 2, 4, 3, 5, 7, 6},
                                            {2, 5, 0, 3, 6, 1, 7, 4},
                                            {3, 7, 0, 4, 2, 1, 6, 5},
                                            {4, 6, 2, 7, 3, 0, 5, 1},
                                            {5, 4, 7, 1, 3, 2, 6, 0},
                                            {6, 3, 1, 4, 0, 7, 5, 2},
                                            {7, 2, 0, 6, 4, 1, 5, 3}}};
/// Of the last host but one of an odd number, and of the last.
constexpr std::array<Order, k_gpus> k_ways_before_last{{{7, 4, 1, 3, 2, 0, 6, 5},
                                                        {6, 3, 0, 7, 5, 1, 4, 2},
                                                        {4, 6, 2, 1, 7, 0, 5, 3},
                                                        {5, 2, 7, 3, 1, 6, 0, 4},
                                                        {1, 0, 2, 4, 3, 5, 7, 6},
                                                        {0, 1, 2, 3, 4, 5, 6, 7},
                                                        {2, 5, 0, 3, 6, 4, 7, 1},
                                                        {3, 7, 2, 6, 1, 5, 4, 0}}};
constexpr std::array<Order, k_gpus> k_ways_of_last{{{5, 4, 2, 7, 1, 6, 3, 0},
                                                    {2, 5, 0, 3, 7, 4, 6, 1},
                                                    {3, 6, 4, 0, 5, 1, 7, 2},
                                                    {4, 7, 0, 6, 5, 2, 1, 3},
                                                    {6, 2, 0, 7, 5, 3, 1, 4},
                                                    {7, 3, 2, 6, 0, 4, 1, 5},
                                                    {1, 0, 2, 4, 3, 5, 7, 6},
                                                    {0, 1, 2, 3, 4, 5, 6, 7}}};

/// The HCA beside each GPU, by position, where each has one of its own and the host no other: ordinals; else empty.
std::vector<int> adapters_beside(const PlanContext& context, const std::vector<DeviceId>& gpus) {
  const HostNics nics(context, gpus);
  if (nics.hcas().size() != gpus.size()) return {};
  std::vector<int> out;
  std::set<std::size_t> used;
  for (std::size_t g = 0; g < gpus.size(); ++g) {
    for (std::size_t h = 0; h < nics.hcas().size(); ++h) {
      if (nics.distance(g, h) > Distance::pxb || !used.insert(h).second) continue;
      out.push_back(context.topology.device(nics.hcas()[h]).ordinal);
      break;
    }
  }
  return out.size() == gpus.size() ? out : std::vector<int>{};
}

/// Rings over links of other meshes: at half the speed of a link each, two of them on one, where that carries more.
HostSearch search_mesh(LaneMatrix lanes) {
  constexpr std::size_t most = 16;
  HostSearch search;
  search.orders = disjoint_rings(lanes, most);
  search.speed = k_link_gb_per_s;
  for (auto& row : lanes)
    for (auto& lane : row) lane *= 2;
  auto halves = disjoint_rings(lanes, most);
  if (halves.size() > 2 * search.orders.size() || (halves.size() == 2 * search.orders.size() && !halves.empty())) {
    search.orders = std::move(halves);
    search.speed /= 2;
  }
  search.is_nvlink = !search.orders.empty();
  search.inside = search.speed * static_cast<double>(search.orders.size());
  return search;
}

}  // namespace

bool is_full_mesh(const Topology& topology, const std::vector<DeviceId>& gpus) {
  if (gpus.size() != k_gpus) return false;
  const auto lanes = direct_lanes(topology, gpus);
  for (std::size_t a = 0; a < k_gpus; ++a)
    for (std::size_t b = 0; b < k_gpus; ++b)
      if (a != b && lanes[a][b] != 1) return false;
  return true;
}

std::vector<std::vector<int>> rings() {
  std::vector<std::vector<int>> out;
  for (int times = 0; times < 2; ++times) {
    for (const auto& ring : k_rings) out.emplace_back(ring.begin(), ring.end());
    for (const auto& ring : k_rings) out.emplace_back(ring.rbegin(), ring.rend());
  }
  return out;
}

std::vector<int> way(std::size_t c, std::size_t host, std::size_t hosts) {
  const bool is_odd = hosts % 2 == 1 && hosts > 1;
  const auto& ways = is_odd && host + 1 == hosts   ? k_ways_of_last
                     : is_odd && host + 2 == hosts ? k_ways_before_last
                                                   : k_ways;
  // Repeated, with the first one last.
  const auto& one = ways[(c / k_gpus + c) % k_gpus];
  const bool is_turned = &ways == &k_ways && host % 2 == 1;
  return is_turned ? std::vector<int>(one.rbegin(), one.rend()) : std::vector<int>(one.begin(), one.end());
}

HostSearch search(const PlanContext& context, const std::vector<DeviceId>& gpus, bool is_alone) {
  const auto& topology = context.topology;
  HostSearch search;
  if (!context.software.nccl_p2p || !nvlink_gate_of(context, gpus[0]).is_open) return search;
  if (!is_full_mesh(topology, gpus)) return is_alone ? search_mesh(direct_lanes(topology, gpus)) : search;
  search.is_nvlink = search.is_full_mesh = true;
  search.inside = (k_gpus - 1) * k_link_gb_per_s;
  if (is_alone) {
    search.orders = rings();
  } else {
    search.hcas_beside = adapters_beside(context, gpus);
    if (search.hcas_beside.empty()) return {};
    for (std::size_t c = 0; c < 4 * k_gpus; ++c) search.orders.push_back(way(c, 0, 2));
  }
  search.speed = search.inside / static_cast<double>(search.orders.size());
  return search;
}

// connect.cc and init.cc: all are doubled; with two GPUs sixteen times, with four four times. gfx950: four times,
// within 64 between hosts, in a host within those that there are at most.
std::size_t copies_of_channels(AmdGeneration generation, std::size_t found, std::size_t gpus_of_host,
                               std::size_t hosts) {
  if (generation == AmdGeneration::cdna4) {
    const std::size_t most = hosts > 1 ? 64 : 128;
    return std::clamp<std::size_t>(most / std::max<std::size_t>(1, found), 1, 4);
  }
  const std::size_t most = hosts == 1 && gpus_of_host == 2 ? 32 : hosts == 1 && gpus_of_host == 4 ? 24 : 0;
  return std::max<std::size_t>(2, most / std::max<std::size_t>(1, found));
}

int steps_of_p2p_chunk(const CommunicatorFacts& facts) {
  constexpr int k_chunks = 226;
  if (facts.library != Library::rccl || facts.version < k_chunks) return 1;
  const bool is_cdna4 = facts.generation == AmdGeneration::cdna4;
  if (facts.num_ranks >= (is_cdna4 ? 32 : 64)) return 4;
  return is_cdna4 && facts.num_ranks >= 16 ? 2 : 1;
}

}  // namespace rccl

}  // namespace fabricast::models::nccl
