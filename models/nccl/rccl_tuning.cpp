// SPDX-License-Identifier: Apache-2.0
// RCCL's planning numbers (ROCm/rccl src/graph/tuning.cc: for CDNA 3 model 5, the same from 2.22 to 2.25; for CDNA 4
// model 6 as it was when broadcast and reduce had got ranges, in 2.26 or 2.27), and what takes their place: ranges of
// bytes (src/rccl_wrap.cc) and MSCCL's schedules (tools/msccl-algorithms).
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "nccl/rccl.hpp"

namespace fabricast::models::nccl::rccl {

namespace {

using ByProtocol = std::array<double, 3>;  // LL, LL128, Simple
using BySize = std::array<double, 27>;     // from 64 B on, by powers of two

constexpr ByProtocol k_base{12, 12, 17};
constexpr ByProtocol k_tree_hop{0.9, 0.9, 2.3}, k_ring_hop{0.8, 0.8, 2.1};
constexpr ByProtocol k_tree_network_hop{10.5, 10.5, 25}, k_ring_network_hop{9.5, 9.5, 320};
constexpr ByProtocol k_tree_share{0.06, 0.06, 0.11}, k_tree_share_beyond_two{0.06, 0.06, 0.59};
constexpr ByProtocol k_ring_share{0.08, 0.08, 1};

/// Of LL and, on CDNA 3, of LL128.
constexpr BySize k_tree_line_factors{.1, .1, .1, .1, .1, .1, 1,  1,  1,  1,  1,  .6, 1, .9,
                                     1,  1,  .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1};
constexpr BySize k_tree_simple_factors{.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1,
                                       .1, .7, 1,  1,  1,  1,  1,  .7, .7, .5, .6, .6, .6};
constexpr BySize k_ring_line_factors{.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, 1,  .2, 1,
                                     .4, .4, .1, .2, .2, .1, .1, .1, .1, .1, .1, .1, .1};
constexpr BySize k_ring_simple_factors{.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1,
                                       .1, .1, .1, .1, .1, .1, .1, .1, 1,  .8, 1,  1,  1};
constexpr BySize k_cdna4_tree_ll128_factors{.1, .1, .1, .1, .1, .1, 1,  1,  1,  1,  1,  .6, 1, .9,
                                            1,  1,  1,  1,  1,  2,  .1, .1, .1, .1, .1, .1, .1};
constexpr BySize k_cdna4_tree_simple_factors{.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1,
                                             .1, .7, 1,  .1, .1, .1, .9, .9, .7, .8, .6, .6, .6};
constexpr BySize k_cdna4_ring_ll128_factors{.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, 1,  .2, 1,
                                            .4, .4, .1, .2, .1, .1, .1, .1, .1, .1, .1, .1, .1};
constexpr BySize k_cdna4_ring_simple_factors{.1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1, .1,
                                             .1, .1, .1, .1, .1, .1, .1, .1, 1,  .8, .8, 1,  1};

/// From, without itself, to, bytes: of all-gather and reduce-scatter those of a rank, of others all.
struct Range {
  double above = 0, to = 0;
};
struct Ranges {
  Range ll, ll128;
};

/// What tuning.cc and rccl_wrap.cc have of a generation.
struct Model {
  std::array<BySize, 3> tree_factors, ring_factors;  ///< LL, LL128, Simple
  /// Between hosts.
  Ranges reduce_scatter, all_gather, all_reduce;
  std::optional<Ranges> broadcast, reduce;
  /// In one host LL takes so many bytes of a rank, whatever the tuning model says.
  double gathered_by_ll, scattered_by_ll;
};

constexpr Model k_cdna3{{k_tree_line_factors, k_tree_line_factors, k_tree_simple_factors},
                        {k_ring_line_factors, k_ring_line_factors, k_ring_simple_factors},
                        {{0, 655360}, {131072, 3211264}},
                        {{0, 98304}, {98304, 5046272}},
                        {{0, 1048576}, {1048576, 9437184}},
                        std::nullopt,
                        std::nullopt,
                        0,
                        352128};
constexpr Model k_cdna4{{k_tree_line_factors, k_cdna4_tree_ll128_factors, k_cdna4_tree_simple_factors},
                        {k_ring_line_factors, k_cdna4_ring_ll128_factors, k_cdna4_ring_simple_factors},
                        {{0, 131071}, {131071, 4194304}},
                        {{0, 7}, {7, 8388608}},
                        {{0, 131071}, {131071, 17660227}},
                        Ranges{{0, 2048}, {2048, 16777216}},
                        Ranges{{0, 16383}, {16383, 16777216}},
                        88448,
                        175488};

const Model& model_of(const CommunicatorFacts& f) { return f.generation == AmdGeneration::cdna4 ? k_cdna4 : k_cdna3; }

std::size_t at(Protocol protocol) { return static_cast<std::size_t>(protocol); }

double size_factor(const CommunicatorFacts& f, Algorithm algorithm, Protocol protocol, Bytes size) {
  if (algorithm == Algorithm::ring && f.num_nodes == 1) return 1;
  const auto& model = model_of(f);
  const auto& factors = (algorithm == Algorithm::tree ? model.tree_factors : model.ring_factors)[at(protocol)];
  const double power = std::floor(std::log2(std::max(1.0, static_cast<double>(size.value) / 64)));
  return factors[static_cast<std::size_t>(std::min(power, static_cast<double>(factors.size() - 1)))];
}

double latency_us(const CommunicatorFacts& f, Collective collective, Algorithm algorithm, Protocol protocol) {
  const auto p = at(protocol);
  const double nodes = f.num_nodes;
  const double per_node = f.num_ranks / nodes;
  if (algorithm == Algorithm::tree)
    return k_base[p] + 2 * ((per_node - 1) * k_tree_hop[p] + std::floor(std::log2(nodes)) * k_tree_network_hop[p]);
  if (is_chain(collective)) {
    const bool is_simple = protocol == Protocol::simple;
    const double hop = nodes > 1 ? (is_simple ? k_tree_network_hop[p] : k_ring_network_hop[p])
                                 : (is_simple ? k_tree_hop[p] : k_ring_hop[p]);
    return k_base[p] + f.num_ranks * hop;
  }
  const double rounds = collective == Collective::all_reduce ? 2 : 1;
  const double between = rounds * (nodes - 1);
  const double overhead = nodes > 1 ? (f.is_amd ? 2 : 1) * (protocol == Protocol::simple ? 3 : 1) : 0;
  const double network = per_node == 1 ? k_tree_network_hop[p] : k_ring_network_hop[p];
  return k_base[p] + (rounds * (f.num_ranks - 1) - between) * std::max(k_ring_hop[p], overhead) + between * network;
}

double bandwidth(const CommunicatorFacts& f, Collective collective, Algorithm algorithm, Protocol protocol) {
  const auto p = at(protocol);
  const double bus = f.graph_channels * f.channel_gb_per_s;
  if (algorithm == Algorithm::tree) return bus * (f.num_nodes > 2 ? k_tree_share_beyond_two : k_tree_share)[p] * 0.5;
  const double n = f.num_ranks;
  const double share = k_ring_share[p];
  if (is_chain(collective)) return bus * share * (protocol == Protocol::ll && f.num_nodes == 1 ? 1.65 : 1);
  return bus * share * n / ((collective == Collective::all_reduce ? 2 : 1) * (n - 1));
}

std::optional<Ranges> ranges_of(const CommunicatorFacts& f, Collective collective) {
  const auto& model = model_of(f);
  auto of_all = model.all_reduce;
  if (f.num_nodes > 2) of_all.ll128.to *= 3.8;
  switch (collective) {
    case Collective::reduce_scatter:
      return model.reduce_scatter;
    case Collective::all_gather:
      return model.all_gather;
    case Collective::all_reduce:
      return of_all;
    case Collective::broadcast:
      return model.broadcast;
    case Collective::reduce:
      return model.reduce;
    case Collective::all_to_all:
    case Collective::send_receive:
    case Collective::gather:
    case Collective::scatter:
      break;
  }
  return std::nullopt;
}

bool is_gathered(Collective collective) {
  return collective == Collective::all_gather || collective == Collective::reduce_scatter;
}

bool holds(const Range& range, double bytes) { return bytes > range.above && bytes <= range.to; }

/// The protocol that takes the place of the tuning model's: between hosts by ranges, and where one host gathers or
/// scatters few bytes.
Protocol protocol_by_bytes(const CommunicatorFacts& f, Collective collective, Protocol chosen, Bytes size) {
  const double bytes = static_cast<double>(size.value);
  const double of_rank = is_gathered(collective) ? bytes / f.num_ranks : bytes;
  constexpr int k_scatters_lines = 226;
  if (f.num_nodes == 1) {
    if (!is_gathered(collective) || f.version < k_scatters_lines) return chosen;
    const auto& model = model_of(f);
    const double most = collective == Collective::all_gather ? model.gathered_by_ll : model.scattered_by_ll;
    return of_rank <= most ? Protocol::ll : chosen;
  }
  constexpr int k_ranges = 225;
  const auto ranges = ranges_of(f, collective);
  if (!ranges || f.version < k_ranges) return chosen;
  if (f.ll128_allowed && holds(ranges->ll128, of_rank)) return Protocol::ll128;
  return holds(ranges->ll, of_rank) ? Protocol::ll : Protocol::simple;
}

/// Bytes of a thread from which on another channel is opened.
double bytes_per_thread(const CommunicatorFacts& f, const Choice& choice) {
  if (f.num_nodes > 1 && is_gathered(f.collective) && choice.protocol != Protocol::simple)
    return (choice.protocol == Protocol::ll ? 16 : 64) * f.num_ranks;
  if (choice.protocol == Protocol::simple) return 64;
  return choice.protocol == Protocol::ll && choice.algorithm == Algorithm::ring ? 8 * f.num_ranks : 8;
}

}  // namespace

double estimated_time_us(const CommunicatorFacts& f, Collective collective, Algorithm algorithm, Protocol protocol,
                         Bytes size) {
  if (algorithm == Algorithm::msccl) {
    const auto found = schedule(f, collective, size);
    return found && found->protocol == protocol ? 0 : -1;
  }
  if (algorithm != Algorithm::ring && (algorithm != Algorithm::tree || collective != Collective::all_reduce)) return -1;
  if (protocol == Protocol::ll128 && !f.ll128_allowed) return -1;
  if (algorithm == Algorithm::tree && protocol == Protocol::simple && f.num_nodes == 1) return -1;
  const double gb_per_s = bandwidth(f, collective, algorithm, protocol) * size_factor(f, algorithm, protocol, size);
  return latency_us(f, collective, algorithm, protocol) + static_cast<double>(size.value) / (1000 * gb_per_s);
}

Choice choose(const CommunicatorFacts& facts, Collective collective, Bytes size, std::optional<Algorithm> algorithm,
              std::optional<Protocol> protocol) {
  auto best = least_time(facts, collective, size, algorithm, protocol);
  if (best.algorithm == Algorithm::msccl) {
    if (rccl::estimated_time_us(facts, collective, best.algorithm, best.protocol, size) >= 0) return best;
    best = least_time(facts, collective, size, std::nullopt, protocol);  // asked for by name, and there is none
  }
  if (!protocol) best.protocol = protocol_by_bytes(facts, collective, best.protocol, size);
  return best;
}

ChannelUse channel_use(const CommunicatorFacts& facts, const Choice& choice, Bytes size, int max_channels) {
  constexpr int threads = 256;
  if (choice.algorithm == Algorithm::msccl) {
    const auto found = schedule(facts, facts.collective, size);
    return {found ? found->channels : max_channels, threads};
  }
  const double of_channel = threads * bytes_per_thread(facts, choice);
  const double filled = std::floor(static_cast<double>(size.value) / of_channel);
  const int channels = static_cast<int>(std::clamp<double>(filled, 1, max_channels));
  const std::int64_t least = facts.version < 226 ? 512 : 16384;
  return {channels_of_traffic(facts, choice, size, channels, least), threads};
}

std::optional<Schedule> schedule(const CommunicatorFacts& facts, Collective collective, Bytes size) {
  return facts.has_schedules ? schedule_of(collective, size) : std::nullopt;
}

std::optional<Schedule> schedule_of(Collective collective, Bytes size) {
  if (size.value == 0) return std::nullopt;
  struct Entry {
    Collective collective;
    std::int64_t from, to, elements;  // bytes; of a multiple of so many elements only
    Schedule schedule;
  };
  // A later set begins with one round for less than 25 KiB of any 16 elements; the one log there is has this one.
  static constexpr std::array k_entries{
      Entry{Collective::all_reduce, 0, 65536, 256, {Protocol::ll, 2, 4}},
      Entry{Collective::all_reduce, 65537, 524287, 512, {Protocol::ll, 2, 8}},
      Entry{Collective::all_reduce, 524288, 16777216, 512, {Protocol::simple, 2, 8}},
      Entry{Collective::all_gather, 0, 8191, 16, {Protocol::ll, 1, 2}},
      Entry{Collective::all_gather, 8192, 1048575, 32, {Protocol::ll128, 1, 4}},
  };
  constexpr std::int64_t element = 4;
  for (const auto& entry : k_entries) {
    const bool is_whole = size.value % element == 0 && size.value / element % entry.elements == 0;
    if (entry.collective == collective && is_whole && size.value >= entry.from && size.value <= entry.to)
      return entry.schedule;
  }
  return std::nullopt;
}

}  // namespace fabricast::models::nccl::rccl
