// SPDX-License-Identifier: Apache-2.0
#include "nccl/tuning.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

namespace fabricast::models::nccl {

namespace {

using Row = std::array<double, 3>;  // LL, LL128, Simple

/// One generation of NCCL's built-in tables, microseconds. Index: algorithm tree 0, ring 1; link nvlink 0, pcie 1,
/// net 2.
struct Tables {
  std::array<Row, 2> base;
  std::array<std::array<Row, 2>, 3> hop;
};

// Read at v2.5.6 (2.4 and 2.5), v2.7.8 (2.6 and 2.7; a published table of 2.6.4 leaves LL where this says), v2.8 to
// v2.14 (2.8 to 2.17), v2.30 (2.18 and later).
constexpr Tables k_tables_2_4{
    {{{4.4, 4.4, 0}, {3.6, 3.6, 8.4}}},
    {{{{{0.5, 1.9, 28}, {0.4, 2.5, 5.7}}}, {{{1.0, 1.9, 28}, {1.0, 2.5, 5.7}}}, {{{5.0, 7.5, 50}, {0.9, 2.5, 6.6}}}}}};
constexpr Tables k_tables_2_6{
    {{{4.4, 4.4, 0}, {3.6, 10.0, 8.4}}},
    {{{{{0.5, 1.9, 28}, {0.4, 2.5, 5.7}}}, {{{1.0, 1.9, 28}, {1.0, 2.5, 5.7}}}, {{{5.0, 7.5, 50}, {2.7, 4.0, 9.6}}}}}};
constexpr Tables k_tables_2_8{{{{4.4, 4.4, 0}, {3.6, 10.0, 8.4}}},
                              {{{{{0.52, 1.25, 28}, {0.47, 1.9, 3.4}}},
                                {{{1.0, 1.9, 28}, {1.0, 2.5, 5.7}}},
                                {{{5.0, 8.5, 28}, {2.7, 4.0, 9.6}}}}}};
constexpr Tables k_tables_2_18{{{{6.8, 14.0, 8.4}, {6.6, 14.0, 8.4}}},
                               {{{{{0.6, 1.25, 4.0}, {0.6, 1.9, 3.4}}},
                                 {{{1.0, 1.9, 4.0}, {1.0, 2.5, 5.7}}},
                                 {{{5.0, 8.5, 14}, {2.7, 4.0, 14.0}}}}}};

const Tables& tables(int version) {
  if (version < 206) return k_tables_2_4;
  if (version < 208) return k_tables_2_6;
  if (version < 218) return k_tables_2_8;
  return k_tables_2_18;
}

/// Tree correction by log2(bytes / 64), v2.5 onwards.
constexpr std::array<std::array<double, 24>, 3> k_tree_correction{
    {{1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1, 1},
     {1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1, 1},
     {.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9, .9}}};

int architecture_row(int compute_capability) {
  if (compute_capability >= 90) return 2;
  return compute_capability >= 80 ? 1 : 0;
}

int node_column(int num_nodes) { return num_nodes == 1 ? 0 : (num_nodes == 2 ? 1 : 2); }

// 2.8 to 2.17: LL128 over one channel by collective (all-reduce, all-gather, reduce-scatter, broadcast, reduce).
constexpr double k_ll128_per_channel_2_8[5] = {16.9, 18.3, 15.2, 18.8, 12.0};

// Rows Volta (and older), Ampere, Hopper; columns 1 node, 2 nodes, more. GB/s.
constexpr double k_ll_max[3][3] = {{39, 39, 20.4}, {87.7, 22.5, 19}, {141, 45, 35}};
constexpr double k_ring_ll128_per_channel[3] = {20, 20, 36.7};
constexpr double k_tree_ll128_per_channel[3][3] = {{20, 20, 20}, {20, 20, 20}, {36.7, 36.7, 29}};
constexpr double k_tree_per_channel[3][3] = {{26.5, 18.5, 10}, {24, 23.6, 17.8}, {38.7, 41.4, 36}};

double ll_max(const CommunicatorFacts& facts) {
  // Inside a node the GPU decides, between nodes the processor (0 other, 1 AMD).
  const int row = facts.num_nodes == 1 ? architecture_row(facts.compute_capability) : (facts.is_amd ? 1 : 0);
  return k_ll_max[row][node_column(facts.num_nodes)];
}

int index_of(Protocol protocol) { return static_cast<int>(protocol); }

/// NCCL counts levels of a tree over nodes in whole numbers.
double tree_levels(const CommunicatorFacts& f) { return std::floor(std::log2(std::max(1, f.num_nodes))); }

/// What NCCL lets LL128 have on one channel, GB/s.
double ll128_per_channel(const CommunicatorFacts& f, Collective collective, const double* of_architecture) {
  const auto index = static_cast<std::size_t>(collective);
  return f.version < 218 && index < 5 ? k_ll128_per_channel_2_8[index] : *of_architecture;
}

/// Speed of one channel of a tree. Between two nodes a tree uses a port one way only, so NCCL looks for up to twice
/// its speed inside them (search.cc).
double tree_speed(const CommunicatorFacts& f) {
  if (f.num_nodes != 2) return f.channel_gb_per_s;
  return std::max(f.channel_gb_per_s, std::min(2 * f.channel_gb_per_s, f.node_gb_per_s / f.graph_channels));
}

/// Ring bus bandwidth, GB/s: LL pays its flags, and before 2.18 as much again wherever data are reduced or leave the
/// node.
double ring_bandwidth(const CommunicatorFacts& f, Collective collective, Protocol protocol, double bus) {
  if (protocol == Protocol::simple) return bus;
  if (protocol == Protocol::ll) {
    if (f.version >= 218) return std::min(ll_max(f), bus * 0.5);
    const bool is_copy = f.num_nodes == 1 && collective != Collective::all_reduce && collective != Collective::reduce;
    return std::min(ll_max(f), bus / (is_copy ? 3 : 4));
  }
  const double* of_architecture = &k_ring_ll128_per_channel[architecture_row(f.compute_capability)];
  const double share = f.version < 218 && f.num_ranks < 2 * f.num_nodes ? 0.7 : 0.92;
  return std::min(bus * share, f.graph_channels * ll128_per_channel(f, collective, of_architecture));
}

double tree_bandwidth(const CommunicatorFacts& f, Collective collective, Protocol protocol, double bus) {
  const int arch = architecture_row(f.compute_capability);
  const int nodes = node_column(f.num_nodes);
  bus = std::min(bus * 0.92, f.graph_channels * k_tree_per_channel[arch][nodes]);
  if (protocol == Protocol::ll) return std::min(bus / 3.8, ll_max(f));
  if (protocol == Protocol::simple) return bus;
  return std::min(bus * (f.num_nodes == 1 ? 7.0 / 9.0 : 120.0 / 128.0),
                  f.graph_channels * ll128_per_channel(f, collective, &k_tree_ll128_per_channel[arch][nodes]));
}

/// Bus bandwidth of NCCL's tuning model, GB/s.
double bus_bandwidth(const CommunicatorFacts& f, Collective collective, Algorithm algorithm, Protocol protocol) {
  double bus = f.graph_channels * (algorithm == Algorithm::tree ? tree_speed(f) : f.channel_gb_per_s);
  if (f.version < 218 && f.compute_capability == 80) bus = std::min(bus, 235.0);
  if (algorithm == Algorithm::ring) return ring_bandwidth(f, collective, protocol, bus);
  if (algorithm == Algorithm::tree) return tree_bandwidth(f, collective, protocol, bus);
  // NVLS: the switch reduces at 85 % of the links. Between hosts it is a tree: releases before 2.25 grant it half of
  // what a ring has from three hosts on, later ones as much; 2.29 doubles it between two.
  const double inside = f.node_gb_per_s * 0.85 * 2 * 15 / 16;
  if (f.num_nodes == 1) return inside;
  if (f.num_nodes == 2) return std::min(inside, bus * (f.version >= 229 ? 2 : 1));
  return std::min(inside, bus * (f.version >= 225 ? 1 : 0.5));
}

double latency_us(const CommunicatorFacts& f, Collective collective, Algorithm algorithm, Protocol protocol) {
  const auto& t = tables(f.version);
  const int p = index_of(protocol);
  const int link = f.is_nvlink ? 0 : 1;
  if (algorithm == Algorithm::nvls) return 25 + 2 * tree_levels(f) * 20.9;
  const auto a = static_cast<std::size_t>(algorithm == Algorithm::ring ? 1 : 0);
  const auto pi = static_cast<std::size_t>(p);
  double intra = t.hop[static_cast<std::size_t>(link)][a][pi];
  const int n = f.num_ranks;
  const int per_node = n / std::max(1, f.num_nodes);
  // With one GPU per node nothing hides the network: NCCL takes a tree's time for it.
  const double inter = t.hop[2][per_node == 1 && f.version >= 219 ? 0 : a][pi];
  double latency = t.base[a][pi];
  if (f.version < 218 && protocol == Protocol::ll && f.num_nodes > 1) intra *= 1.8;
  if (algorithm == Algorithm::tree) return latency + 2 * ((per_node - 1) * intra + tree_levels(f) * inter);
  double steps = n - 1;
  double inter_steps = f.num_nodes > 1 ? f.num_nodes - 1 : 0;
  if (collective == Collective::all_reduce) {
    steps = 2.0 * (n - 1);
    inter_steps = f.num_nodes > 1 ? 2.0 * (f.num_nodes - 1) : 0;
  }
  if (is_chain(collective)) {
    // When all channels take the GPUs in the same order NCCL counts one hop of a chain, otherwise, as on meshes, all of
    // them, for Simple as long as a tree's.
    const std::size_t where = f.num_nodes > 1 ? 2 : static_cast<std::size_t>(link);
    const bool is_same = !f.is_mesh || per_node < 3;
    if (is_same) return latency + t.hop[where][a][pi];
    return latency + n * t.hop[where][protocol == Protocol::simple ? 0 : a][pi];
  }
  if (f.version >= 218 && f.num_nodes > 1) {
    double overhead = f.is_amd ? 2 : 1;
    if (protocol == Protocol::simple) overhead *= 3;
    intra = std::max(intra, overhead);
  }
  return latency + (steps - inter_steps) * intra + inter_steps * inter;
}

}  // namespace

bool is_chain(Collective collective) { return collective == Collective::broadcast || collective == Collective::reduce; }

int release_number(std::string_view version) {
  const auto number = [](std::string_view text) { return std::atoi(std::string(text).c_str()); };
  const auto dot = version.find('.');
  return 100 * number(version) + (dot == std::string_view::npos ? 0 : number(version.substr(dot + 1)));
}

std::string_view to_string(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::tree:
      return "tree";
    case Algorithm::ring:
      return "ring";
    case Algorithm::nvls:
      return "nvls";
  }
  return "";
}

std::string_view to_string(Protocol protocol) {
  switch (protocol) {
    case Protocol::ll:
      return "ll";
    case Protocol::ll128:
      return "ll128";
    case Protocol::simple:
      return "simple";
  }
  return "";
}

std::optional<Algorithm> algorithm_from_name(std::string_view name) {
  for (const auto a : {Algorithm::tree, Algorithm::ring, Algorithm::nvls}) {
    if (to_string(a) == name) return a;
  }
  if (name == "nvls_tree") return Algorithm::nvls;
  return std::nullopt;
}

std::optional<Protocol> protocol_from_name(std::string_view name) {
  for (const auto p : {Protocol::ll, Protocol::ll128, Protocol::simple}) {
    if (to_string(p) == name) return p;
  }
  return std::nullopt;
}

double estimated_time_us(const CommunicatorFacts& f, Collective collective, Algorithm algorithm, Protocol protocol,
                         Bytes size) {
  if (algorithm != Algorithm::ring && collective != Collective::all_reduce) return -1;
  if (algorithm == Algorithm::nvls && (!f.nvls_allowed || protocol != Protocol::simple)) return -1;
  if (f.simple_only && protocol != Protocol::simple) return -1;
  if (protocol == Protocol::ll128 && (!f.ll128_allowed || f.version < 205)) return -1;  // LL128 came with 2.5
  const double n = f.num_ranks;
  const double steps = collective == Collective::all_reduce                                               ? 2 * (n - 1)
                       : collective == Collective::all_gather || collective == Collective::reduce_scatter ? n - 1
                                                                                                          : n;
  double algorithm_bandwidth =
      bus_bandwidth(f, collective, algorithm, protocol) * (algorithm == Algorithm::tree ? 0.5 : n / steps);
  double latency = latency_us(f, collective, algorithm, protocol);
  const double bytes = static_cast<double>(size.value);
  if (algorithm == Algorithm::tree) {
    const int slot = size.value < 64 ? 0 : static_cast<int>(std::floor(std::log2(bytes / 64)));
    if (slot < 24) {
      algorithm_bandwidth *=
          k_tree_correction[static_cast<std::size_t>(index_of(protocol))][static_cast<std::size_t>(slot)];
    }
  }
  if (algorithm == Algorithm::ring && protocol == Protocol::simple && collective == Collective::all_reduce &&
      f.num_nodes > 1) {
    const bool plateau = f.version >= 218 ? bytes / (f.graph_channels * n) >= 64 : bytes >= n * 4096;
    if (plateau) latency *= f.compute_capability >= 80 && f.version >= 218 ? 1.4 : 1.9;
  }
  return latency + bytes / (1000 * algorithm_bandwidth);
}

Choice choose(const CommunicatorFacts& facts, Collective collective, Bytes size, std::optional<Algorithm> algorithm,
              std::optional<Protocol> protocol) {
  Choice best;
  if (algorithm) best.algorithm = *algorithm;
  if (protocol) best.protocol = *protocol;
  double best_time = std::numeric_limits<double>::infinity();
  for (const auto a : {Algorithm::tree, Algorithm::ring, Algorithm::nvls}) {
    if (algorithm && *algorithm != a) continue;
    for (const auto p : {Protocol::ll, Protocol::ll128, Protocol::simple}) {
      if (protocol && *protocol != p) continue;
      const double time = estimated_time_us(facts, collective, a, p, size);
      if (time >= 0 && time < best_time) {
        best_time = time;
        best = {a, p};
      }
    }
  }
  return best;
}

ChannelUse channel_use(const CommunicatorFacts& facts, const Choice& choice, Bytes size, int max_channels) {
  ChannelUse use{max_channels, 512};
  if (choice.protocol == Protocol::ll128) use.threads = 640;
  // A GPU that reaches no other but by the network counts as fast inside its node. Inferred: over loopback the second
  // channel shows at 64 KiB.
  if (choice.protocol == Protocol::simple && !facts.is_nvlink && !facts.is_network_only &&
      facts.graph_channels * facts.channel_gb_per_s <= 12) {
    use.threads = 256;
  }
  std::int64_t bytes_per_thread = choice.protocol == Protocol::simple ? 64 : 8;
  if (choice.protocol == Protocol::ll && choice.algorithm == Algorithm::ring) bytes_per_thread *= facts.num_ranks;
  while (size.value < static_cast<std::int64_t>(use.channels) * use.threads * bytes_per_thread) {
    if (use.channels >= 2) {
      --use.channels;
    } else if (use.threads % 128 == 0 && use.threads > 64) {
      use.threads /= 2;
    } else {
      break;
    }
  }
  return use;
}

}  // namespace fabricast::models::nccl
