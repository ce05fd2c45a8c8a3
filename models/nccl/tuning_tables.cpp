// SPDX-License-Identifier: Apache-2.0
#include "nccl/tuning_tables.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fabricast::models::nccl {

namespace {

using Row = std::array<double, 3>;  // LL, LL128, Simple

/// Index: algorithm tree 0, ring 1; link nvlink 0, pcie 1, net 2.
struct Latencies {
  std::array<Row, 2> base;
  std::array<std::array<Row, 2>, 3> hop;
};

constexpr Latencies k_latencies_2_5{
    {{{4.4, 4.4, 0}, {3.6, 3.6, 8.4}}},
    {{{{{0.5, 1.9, 28}, {0.4, 2.5, 5.7}}}, {{{1.0, 1.9, 28}, {1.0, 2.5, 5.7}}}, {{{5.0, 7.5, 50}, {0.9, 2.5, 6.6}}}}}};
constexpr Latencies k_latencies_2_7{{{{4.4, 4.4, 0}, {3.6, 10.0, 8.4}}},
                                    {{{{{0.52, 1.2, 28}, {0.47, 1.9, 3.4}}},
                                      {{{1.0, 1.9, 28}, {1.0, 2.5, 5.7}}},
                                      {{{5.0, 8.5, 50}, {2.7, 4.0, 9.6}}}}}};
constexpr Latencies k_latencies_2_8{{{{4.4, 4.4, 0}, {3.6, 10.0, 8.4}}},
                                    {{{{{0.52, 1.25, 28}, {0.47, 1.9, 3.4}}},
                                      {{{1.0, 1.9, 28}, {1.0, 2.5, 5.7}}},
                                      {{{5.0, 8.5, 28}, {2.7, 4.0, 9.6}}}}}};
constexpr Latencies k_latencies_2_12{{{{4.4, 4.4, 0}, {3.6, 10.0, 8.4}}},
                                     {{{{{0.52, 1.25, 28}, {0.47, 1.9, 3.4}}},
                                       {{{1.0, 1.9, 28}, {1.0, 2.5, 5.7}}},
                                       {{{5.0, 8.5, 28}, {2.7, 4.0, 28}}}}}};
constexpr Latencies k_latencies_2_18{
    {{{6.8, 14.0, 0}, {6.6, 14.0, 8.4}}},
    {{{{{0.6, 1.25, 4}, {0.6, 1.9, 3.4}}}, {{{1.0, 1.9, 6}, {1.0, 2.5, 5.7}}}, {{{5.0, 8.5, 14}, {2.7, 4.0, 14}}}}}};
constexpr Latencies k_latencies_2_19{
    {{{6.8, 14.0, 0}, {6.6, 14.0, 8.4}}},
    {{{{{0.6, 1.25, 28}, {0.6, 1.9, 3.4}}}, {{{1.0, 1.9, 28}, {1.0, 2.5, 5.7}}}, {{{5.0, 8.5, 28}, {2.7, 4.0, 14}}}}}};
constexpr Latencies k_latencies_2_23{
    {{{6.8, 14.0, 8.4}, {6.6, 14.0, 8.4}}},
    {{{{{0.6, 1.25, 4}, {0.6, 1.9, 3.4}}}, {{{1.0, 1.9, 4}, {1.0, 2.5, 5.7}}}, {{{5.0, 8.5, 14}, {2.7, 4.0, 14}}}}}};

const Latencies& latencies(int version) {
  if (version < 207) return k_latencies_2_5;
  if (version < 208) return k_latencies_2_7;
  if (version == 212 || version == 213) return k_latencies_2_12;
  if (version < 218) return k_latencies_2_8;
  if (version < 219) return k_latencies_2_18;
  return version < 223 ? k_latencies_2_19 : k_latencies_2_23;
}

std::size_t index_of(Algorithm algorithm) { return algorithm == Algorithm::ring ? 1 : 0; }
std::size_t index_of(Protocol protocol) { return static_cast<std::size_t>(protocol); }

/// By log2(bytes / 64). Trees of 512 MiB and more are not corrected, NVLSTree from 1 GiB on.
constexpr std::array<std::array<double, 24>, 3> k_tree_correction{
    {{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
     {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
     {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9}}};

double correction(Protocol protocol, Bytes size, std::size_t sizes) {
  const auto slot = size.value < 64 ? 0.0 : std::floor(std::log2(static_cast<double>(size.value) / 64));
  return slot < static_cast<double>(sizes) ? k_tree_correction[index_of(protocol)][static_cast<std::size_t>(slot)] : 1;
}

// LL128 of 2.5 and 2.6 over all channels, of 2.7 to 2.9 over each: all-reduce, all-gather, reduce-scatter, broadcast,
// reduce.
constexpr std::array<double, 5> k_ll128_total{100, 110, 91, 113, 72};
constexpr std::array<double, 5> k_ll128_per_channel{16.7, 18.3, 15.2, 18.8, 12.0};

// Rows Volta (and older), Ampere, Hopper; columns 1 node, 2 nodes, more.
constexpr std::array<Row, 3> k_ll_max{{{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}}};
constexpr std::array<Row, 3> k_tree_ll128_per_channel{{{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}}};
constexpr std::array<Row, 3> k_tree_per_channel{{{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}}};
constexpr Row k_tree_ampere_2_8{24, 22.5, 16};         // until 2.9
constexpr Row k_nvls_tree_per_channel{0, 57.7, 45.5};  // Hopper
// Blackwell from 2.28 on, which came with the tables that a tuner may overwrite; before, from 2.25 on, twice Hopper's.
constexpr Row k_tree_ll128_blackwell{55.6, 31.67, 20};
constexpr Row k_tree_blackwell{70, 42.8, 24};
constexpr Row k_nvls_tree_blackwell{0, 96, 80};
constexpr double k_nvls_tree_blackwell_2_28 = 43.8;  // above two nodes until 2.29
constexpr int k_own_blackwell_tables = 228;

constexpr double k_unlimited = std::numeric_limits<double>::infinity();

std::size_t row_of(const CommunicatorFacts& f) {
  if (f.compute_capability >= 90) return 2;
  return f.compute_capability >= 80 ? 1 : 0;
}

std::size_t column_of(const CommunicatorFacts& f) { return f.num_nodes == 1 ? 0 : (f.num_nodes == 2 ? 1 : 2); }

bool is_hopper_limit(const CommunicatorFacts& f) { return f.version >= 217 && f.compute_capability >= 90; }

/// Limits of Blackwell came with 2.25: at first twice those of Hopper.
bool is_blackwell_limit(const CommunicatorFacts& f) { return f.version >= 225 && f.compute_capability >= 100; }
double of_blackwell(const CommunicatorFacts& f) { return is_blackwell_limit(f) ? 2 : 1; }
bool has_blackwell_tables(const CommunicatorFacts& f) {
  return is_blackwell_limit(f) && f.version >= k_own_blackwell_tables;
}

}  // namespace

double base_latency(int version, Algorithm algorithm, Protocol protocol) {
  return latencies(version).base[index_of(algorithm)][index_of(protocol)];
}

double hop_latency(int version, HopLink link, Algorithm algorithm, Protocol protocol) {
  return latencies(version).hop[static_cast<std::size_t>(link)][index_of(algorithm)][index_of(protocol)];
}

double ring_inter_steps(const CommunicatorFacts& f, Collective collective) {
  const bool is_closed = collective == Collective::all_reduce && f.version >= 212 && f.version < 223 && f.num_nodes > 1;
  return f.num_nodes - (is_closed ? 0 : 1);
}

double nvls_latency(int version) { return version < 221 ? 23 : 25; }

double nvls_tree_hop_latency(int version) {
  if (version < 219) return 19;
  return version < 228 ? 14 : 20.9;
}

double nvls_collnet_latency() { return 18; }

double bus_limit(const CommunicatorFacts& f) {
  if (f.version >= 207 && f.version < 218 && f.compute_capability == 80) return 235;
  return f.version == 217 && f.compute_capability >= 90 ? 370 : k_unlimited;
}

double ll_limit(const CommunicatorFacts& f) {
  if (f.version < 208) return k_unlimited;
  // Inside a node the GPU decides, between nodes the processor (0 other, 1 AMD).
  if (f.num_nodes > 1) return k_ll_max[f.is_amd ? 1 : 0][column_of(f)];
  const auto row = f.version < 221 ? std::min<std::size_t>(row_of(f), 1) : row_of(f);
  return k_ll_max[row][column_of(f)] * of_blackwell(f);
}

double ring_share(const CommunicatorFacts& f, Collective collective, Protocol protocol) {
  if (protocol == Protocol::simple) return 1;
  if (protocol == Protocol::ll128) return f.version < 223 && f.num_ranks < 2 * f.num_nodes ? 0.7 : 0.92;
  if (f.version >= 221) return 0.5;
  const bool is_copy = f.num_nodes == 1 && collective != Collective::all_reduce && collective != Collective::reduce;
  return f.version >= 207 && is_copy ? 1.0 / 3 : 0.25;
}

double ring_ll128_limit(const CommunicatorFacts& f, Collective collective) {
  const auto index = std::min<std::size_t>(static_cast<std::size_t>(collective), 4);
  if (f.version < 207) return k_ll128_total[index];
  if (f.version < 210) return f.graph_channels * k_ll128_per_channel[index];
  if (is_blackwell_limit(f))
    return f.graph_channels * (f.version < 229 ? (f.version == 228 && f.num_nodes == 2 ? 34.6 : 73.4) : 40);
  return f.graph_channels * (is_hopper_limit(f) ? 36.7 : 20);
}

double tree_ll128_limit(const CommunicatorFacts& f, Collective collective) {
  if (f.version < 210) return ring_ll128_limit(f, collective) * (f.version < 208 ? 7.0 / 9 : 1);
  if (has_blackwell_tables(f)) return f.graph_channels * k_tree_ll128_blackwell[column_of(f)];
  const auto row = f.version < 217 ? std::min<std::size_t>(row_of(f), 1) : row_of(f);
  return f.graph_channels * k_tree_ll128_per_channel[row][column_of(f)] * of_blackwell(f);
}

double tree_share(const CommunicatorFacts& f) { return f.version < 208 ? 0.9 : 0.92; }

double tree_limit(const CommunicatorFacts& f, Protocol protocol) {
  if (f.version < 206) return f.num_nodes > 1 ? 70 : 90;
  if (f.version < 208) {
    const bool is_wide = f.version == 207 && f.compute_capability == 80 && protocol == Protocol::ll128;
    if (f.num_nodes > 2) return is_wide ? 105 : 80;
    return is_wide ? 130 : 110;
  }
  if (has_blackwell_tables(f)) return f.graph_channels * k_tree_blackwell[column_of(f)];
  if (f.version < 210 && row_of(f) == 1) return f.graph_channels * k_tree_ampere_2_8[column_of(f)];
  return f.graph_channels * k_tree_per_channel[row_of(f)][column_of(f)] * of_blackwell(f);
}

double plain_tree_share(const CommunicatorFacts& f) { return f.version >= 218 && f.has_plain_trees ? 0.85 : 1; }

double tree_ll128_share(const CommunicatorFacts& f) {
  if (f.num_nodes == 1) return 7.0 / 9;
  return f.version < 208 ? 0.915 : 120.0 / 128;
}

double nvls_tree_limit(const CommunicatorFacts& f) {
  if (!has_blackwell_tables(f)) return k_nvls_tree_per_channel[column_of(f)];
  return f.version < 230 && f.num_nodes > 2 ? k_nvls_tree_blackwell_2_28 : k_nvls_tree_blackwell[column_of(f)];
}

/// 2.17 to 2.27 take a fixed part of what the search found; later releases an efficiency and the (heads - 1) / heads of
/// the data that others hold. Between nodes: trees, whose inner nodes send twice; two nodes have both ways. Where the
/// fabric reduces, nobody sends twice.
double nvls_bandwidth(const CommunicatorFacts& f) {
  const double efficiency = f.compute_capability >= 100 ? 0.74 : 0.85;
  const auto& graph = f.nvls;
  const bool is_between = f.num_nodes > 1;
  if (f.version < 228) {
    const double share = f.version < 218 ? 0.75 : 5.0 / 6;
    const double half = f.version >= 219 && f.num_nodes > 2 && !f.collnet_allowed ? 0.5 : 1;
    return share * graph.heads * (is_between ? std::min(graph.inside, half * graph.between) : graph.inside);
  }
  const double heads = graph.heads;
  double speed = graph.inside * efficiency * 2 * (heads - 1) / heads;
  if (is_between && f.collnet_allowed) {
    speed = std::min(speed, graph.between);
  } else if (is_between) {
    const double both_ways = f.num_nodes == 2 ? 2 : 1;
    speed = std::min({speed, both_ways * graph.between, nvls_tree_limit(f)});
  }
  return heads * speed * f.num_ranks / (2.0 * (f.num_ranks - 1));
}

double tree_correction(Protocol protocol, Bytes size) { return correction(protocol, size, 23); }

double nvls_tree_correction(const CommunicatorFacts& f, Bytes size) {
  const bool is_corrected = f.num_nodes > 1 && !f.collnet_allowed && f.is_x86 && has_blackwell_tables(f);
  return is_corrected ? correction(Protocol::simple, size, 24) : 1;
}

double ring_plateau(const CommunicatorFacts& f, Bytes size) {
  const double bytes = static_cast<double>(size.value);
  const double n = f.num_ranks;
  const bool is_reached = f.version >= 218 ? bytes / (f.graph_channels * n) >= 64 : bytes >= n * 4096;
  if (!is_reached) return 1;
  if (f.version == 217 && f.compute_capability >= 90) return 1.5;
  return f.version >= 218 && f.compute_capability >= 80 ? 1.4 : 1.9;
}

}  // namespace fabricast::models::nccl
