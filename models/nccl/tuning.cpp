// SPDX-License-Identifier: Apache-2.0
#include "nccl/tuning.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

#include "nccl/collnet.hpp"
#include "nccl/rccl.hpp"
#include "nccl/tuning_tables.hpp"

namespace fabricast::models::nccl {

namespace {

constexpr std::array k_algorithms{Algorithm::tree,    Algorithm::ring, Algorithm::nvls,
                                  Algorithm::collnet, Algorithm::pat,  Algorithm::msccl};

/// Releases from which channels are opened by traffic, and from which a line of LL counts four times
/// (src/enqueue.cc, scheduleCollTasksToPlan).
constexpr int k_counts_traffic = 222, k_lines_count_more = 226;

/// Bytes of traffic that a channel has at least: read in 2.22, 2.24 to 2.26, 2.28 and 2.29.
std::int64_t least_traffic(int version) {
  if (version < 224) return 512;
  return version < 229 ? 16384 : 32768;
}

/// NCCL counts levels of a tree over nodes in whole numbers.
double tree_levels(const CommunicatorFacts& f) { return std::floor(std::log2(std::max(1, f.num_nodes))); }

/// Speed of one channel of a tree. Between two nodes a tree uses a port one way only, so NCCL looks for up to twice
/// its speed inside them (search.cc), where nothing limits nodes of one GPU.
double tree_speed(const CommunicatorFacts& f) {
  if (f.num_nodes != 2) return f.channel_gb_per_s;
  if (f.num_ranks == f.num_nodes) return 2 * f.channel_gb_per_s;
  return std::max(f.channel_gb_per_s, std::min(2 * f.channel_gb_per_s, f.node_gb_per_s / f.graph_channels));
}

/// Bus bandwidth of rings and trees in NCCL's tuning model, GB/s.
double bus_bandwidth(const CommunicatorFacts& f, Collective collective, Algorithm algorithm, Protocol protocol) {
  const bool is_tree = algorithm == Algorithm::tree;
  const double bus = std::min(bus_limit(f), f.graph_channels * (is_tree ? tree_speed(f) : f.channel_gb_per_s));
  if (!is_tree) {
    const double part = bus * ring_share(f, collective, protocol);
    if (protocol == Protocol::ll) return std::min(part, ll_limit(f));
    return protocol == Protocol::ll128 ? std::min(part, ring_ll128_limit(f, collective)) : part;
  }
  const double part = std::min(bus * tree_share(f), tree_limit(f, protocol));
  const double share = plain_tree_share(f);
  if (protocol == Protocol::ll) return share * std::min(part / 3.8, ll_limit(f));
  if (protocol == Protocol::simple) return share * part;
  return share * std::min(part * tree_ll128_share(f), tree_ll128_limit(f, collective));
}

/// When all channels take the GPUs in the same order NCCL counts one hop of a chain, otherwise, as on meshes and on
/// nodes whose channels begin beside HCAs of their own, one for every rank, for Simple as long as a tree's.
double chain_latency(const CommunicatorFacts& f, HopLink inside, Protocol protocol) {
  const auto where = f.num_nodes > 1 ? HopLink::net : inside;
  const double base = base_latency(f.version, Algorithm::ring, protocol);
  if (f.has_equal_channels) return base + hop_latency(f.version, where, Algorithm::ring, protocol);
  const auto as = protocol == Protocol::simple ? Algorithm::tree : Algorithm::ring;
  return base + f.num_ranks * hop_latency(f.version, where, as, protocol);
}

/// One hop between nodes. What a network plugin reports took the place of NCCL's figure until 2.17, and comes on top
/// since, twice for Simple, whose data are flushed (NVIDIA/nccl src/graph/tuning.cc, latencyInter).
double inter_latency(const CommunicatorFacts& f, double own, Protocol protocol) {
  if (f.plugin_latency_us <= 0) return own;
  if (f.version < 218) return f.plugin_latency_us;
  return own + (protocol == Protocol::simple ? 2 : 1) * f.plugin_latency_us;
}

/// A start, a part of a hop for every level of its trees and a time for every rank.
double pat_latency(const CommunicatorFacts& f) {
  constexpr double base = 8, hop = 14, hops_of_levels = 3.5, rank = 2.8;
  return base + tree_levels(f) * inter_latency(f, hop, Protocol::simple) / hops_of_levels + f.num_ranks * rank;
}

/// Planned of a tree's channels; inside nodes of one GPU nothing keeps them from twice the speed between two.
double pat_bandwidth(const CommunicatorFacts& f) {
  const double channel = (f.num_nodes == 2 ? 2 : 1) * f.channel_gb_per_s;
  return (f.version < 225 ? 0.85 : 0.75) * std::min(bus_limit(f), f.graph_channels * channel);
}

double latency_us(const CommunicatorFacts& f, Collective collective, Algorithm algorithm, Protocol protocol) {
  if (algorithm == Algorithm::pat) return pat_latency(f);
  if (algorithm == Algorithm::collnet) return collnet_latency(f);
  if (algorithm == Algorithm::nvls)
    return nvls_latency(f.version) +
           (f.collnet_allowed ? nvls_collnet_latency()
                              : 2 * tree_levels(f) * inter_latency(f, nvls_tree_hop_latency(f.version), protocol));
  const auto inside = f.is_nvlink ? HopLink::nvlink : HopLink::pcie;
  if (is_chain(collective)) return chain_latency(f, inside, protocol);
  const double base = base_latency(f.version, algorithm, protocol);
  double intra = hop_latency(f.version, inside, algorithm, protocol);
  const int per_node = f.num_ranks / std::max(1, f.num_nodes);
  // With one GPU per node nothing hides the network: NCCL takes a tree's time for it.
  const auto network = per_node == 1 && f.version >= 223 ? Algorithm::tree : algorithm;
  const double inter = inter_latency(f, hop_latency(f.version, HopLink::net, network, protocol), protocol);
  if (f.version < 218 && protocol == Protocol::ll && f.num_nodes > 1) intra *= 1.8;
  if (algorithm == Algorithm::tree) return base + 2 * ((per_node - 1) * intra + tree_levels(f) * inter);
  const double rounds = collective == Collective::all_reduce ? 2 : 1;
  const double steps = rounds * (f.num_ranks - 1);
  const double inter_steps = rounds * ring_inter_steps(f, collective);
  if (f.version >= 218 && f.num_nodes > 1) {
    const double overhead = (f.is_amd ? 2 : 1) * (protocol == Protocol::simple ? 3 : 1);
    intra = std::max(intra, overhead);
  }
  return base + (steps - inter_steps) * intra + inter_steps * inter;
}

/// Bytes of the operation over those that a bus moves.
double bus_ratio(const CommunicatorFacts& f, Collective collective, Algorithm algorithm) {
  if (algorithm == Algorithm::tree) return 0.5;
  const double n = f.num_ranks;
  if (is_chain(collective)) return 1;
  return n / ((collective == Collective::all_reduce ? 2 : 1) * (n - 1));
}

}  // namespace

// NVIDIA/nccl src/graph/tuning.cc, ncclPatEnable.
bool allows_pat(const CommunicatorFacts& f, Collective collective) {
  const bool is_gathered = collective == Collective::all_gather || collective == Collective::reduce_scatter;
  return is_gathered && f.library == Library::nccl && f.version >= 223 && f.compute_capability >= 60 &&
         f.num_nodes > 1 && f.num_ranks == f.num_nodes;
}

bool is_chain(Collective collective) { return collective == Collective::broadcast || collective == Collective::reduce; }

int release_number(std::string_view version) {
  const auto number = [](std::string_view text) { return std::atoi(std::string(text).c_str()); };
  const auto dot = version.find('.');
  return 100 * number(version) + (dot == std::string_view::npos ? 0 : number(version.substr(dot + 1)));
}

int first_release(int compute_capability) {
  if (compute_capability >= 100) return 225;
  if (compute_capability >= 90) return 215;
  return compute_capability >= 80 ? 207 : 204;
}

std::string_view to_string(Library library) { return library == Library::rccl ? "RCCL" : "NCCL"; }

std::string_view to_string(Algorithm algorithm) {
  switch (algorithm) {
    case Algorithm::tree:
      return "tree";
    case Algorithm::ring:
      return "ring";
    case Algorithm::nvls:
      return "nvls";
    case Algorithm::collnet:
      return "collnet_direct";
    case Algorithm::pat:
      return "pat";
    case Algorithm::msccl:
      return "msccl";
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
  for (const auto a : k_algorithms) {
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
  if (f.library == Library::rccl) return rccl::estimated_time_us(f, collective, algorithm, protocol, size);
  if (algorithm == Algorithm::msccl) return -1;
  if (algorithm == Algorithm::pat) {
    if (!allows_pat(f, collective) || protocol != Protocol::simple) return -1;
  } else if (algorithm != Algorithm::ring && collective != Collective::all_reduce) {
    return -1;
  }
  if (algorithm == Algorithm::nvls && (!f.nvls_allowed || protocol != Protocol::simple)) return -1;
  if (algorithm == Algorithm::collnet && (!f.collnet_allowed || protocol != Protocol::simple)) return -1;
  if (f.simple_only && protocol != Protocol::simple) return -1;
  if (protocol == Protocol::ll128 && (!f.ll128_allowed || f.version < 205)) return -1;  // LL128 came with 2.5
  double bandwidth = 0;
  if (algorithm == Algorithm::nvls)
    bandwidth = nvls_bandwidth(f);
  else if (algorithm == Algorithm::collnet)
    bandwidth = collnet_bandwidth(f);
  else if (algorithm == Algorithm::pat)
    bandwidth = pat_bandwidth(f);
  else
    bandwidth = bus_bandwidth(f, collective, algorithm, protocol) * bus_ratio(f, collective, algorithm);
  double latency = latency_us(f, collective, algorithm, protocol);
  if (algorithm == Algorithm::tree) bandwidth *= tree_correction(protocol, size);
  if (algorithm == Algorithm::nvls) bandwidth *= nvls_tree_correction(f, size);
  if (algorithm == Algorithm::ring && protocol == Protocol::simple && collective == Collective::all_reduce &&
      f.num_nodes > 1)
    latency *= ring_plateau(f, size);
  return latency + static_cast<double>(size.value) / (1000 * bandwidth);
}

Choice least_time(const CommunicatorFacts& facts, Collective collective, Bytes size, std::optional<Algorithm> algorithm,
                  std::optional<Protocol> protocol) {
  Choice best;
  if (algorithm) best.algorithm = *algorithm;
  if (protocol) best.protocol = *protocol;
  double best_time = std::numeric_limits<double>::infinity();
  for (const auto a : k_algorithms) {
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

Choice choose(const CommunicatorFacts& facts, Collective collective, Bytes size, std::optional<Algorithm> algorithm,
              std::optional<Protocol> protocol) {
  return facts.library == Library::rccl ? rccl::choose(facts, collective, size, algorithm, protocol)
                                        : least_time(facts, collective, size, algorithm, protocol);
}

int channels_of_traffic(const CommunicatorFacts& facts, const Choice& choice, Bytes size, int channels,
                        std::int64_t least) {
  const int lines = choice.protocol == Protocol::ll && facts.version >= k_lines_count_more ? 4 : 1;
  const int factor = (facts.collective == Collective::all_reduce ? 2 : 1) * lines;
  const std::int64_t cell = least / factor;
  return static_cast<int>(std::clamp<std::int64_t>((size.value + cell - 1) / cell, 1, channels));
}

ChannelUse channel_use(const CommunicatorFacts& facts, const Choice& choice, Bytes size, int max_channels) {
  if (facts.library == Library::rccl) return rccl::channel_use(facts, choice, size, max_channels);
  ChannelUse use;
  use.channels = max_channels;
  if (choice.protocol == Protocol::ll128) use.threads = 640;
  // A GPU that reaches no other but by the network counts as fast inside its node. Inferred: over loopback the second
  // channel shows at 64 KiB.
  if (choice.algorithm == Algorithm::ring && choice.protocol == Protocol::simple && !facts.is_nvlink &&
      !facts.is_network_only && facts.graph_channels * facts.channel_gb_per_s <= 12) {
    use.threads = 256;
  }
  use.most_threads = use.threads;
  std::int64_t bytes_per_thread = choice.protocol == Protocol::simple ? 64 : 8;
  if (choice.protocol == Protocol::ll && choice.algorithm == Algorithm::ring) bytes_per_thread *= facts.num_ranks;
  if (choice.algorithm == Algorithm::collnet) bytes_per_thread = 512;
  const bool is_sharp = choice.algorithm == Algorithm::nvls;
  while (!is_sharp && size.value < static_cast<std::int64_t>(use.channels) * use.threads * bytes_per_thread) {
    if (use.channels >= 2) {
      --use.channels;
    } else if (use.threads % 128 == 0 && use.threads > 64) {
      use.threads /= 2;
    } else {
      break;
    }
  }
  const bool is_whole = choice.algorithm == Algorithm::collnet || (is_sharp && facts.collnet_allowed);
  if (facts.version >= k_counts_traffic && !is_whole)
    use.channels = channels_of_traffic(facts, choice, size, use.channels, least_traffic(facts.version));
  return use;
}

}  // namespace fabricast::models::nccl
