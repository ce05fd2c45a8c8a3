// SPDX-License-Identifier: Apache-2.0
// NCCL's own choice of algorithm, protocol and number of channels. These are NCCL's planning numbers, not a forecast of
// time: for every algorithm and protocol NCCL computes latency + bytes / bandwidth from built-in tables and takes the
// least. What changed with the release: tuning_tables.hpp.
//
// Source: NVIDIA/nccl src/graph/tuning.cc and src/enqueue.cc.
#pragma once

#include <optional>
#include <string_view>

#include "fabricast/scenario.hpp"
#include "fabricast/units.hpp"

namespace fabricast::models::nccl {

/// 100 x major + minor of a release: 228 of "2.28.9".
int release_number(std::string_view version);

/// The first release, as a number, with rules for GPUs of a compute capability (NVIDIA/nccl src/graph/tuning.cc, tables
/// and LL128); of those before Ampere the oldest that is modelled.
int first_release(int compute_capability);

/// Whose rules hold: NVIDIA's, or those of AMD's fork (rccl.hpp).
enum class Library { nccl, rccl };

/// Of AMD's GPUs, those whose rules of RCCL are modelled (rccl.hpp): MI300X and MI325X, MI350X and MI355X.
enum class AmdGeneration { cdna3, cdna4 };

/// nvls: NVLink SHARP inside a host; between hosts NCCL calls it NVLSTree, or NVLS where the fabric reduces (CollNet).
/// collnet: CollNetDirect, GPUs hand each other shares and the fabric reduces. pat: parallel aggregated trees. msccl:
/// in RCCL, schedules in which every GPU of a host sends to all others at once.
enum class Algorithm { tree, ring, nvls, collnet, pat, msccl };
enum class Protocol { ll, ll128, simple };

std::string_view to_string(Library library);
std::string_view to_string(Algorithm algorithm);
std::string_view to_string(Protocol protocol);
std::optional<Algorithm> algorithm_from_name(std::string_view name);
std::optional<Protocol> protocol_from_name(std::string_view name);

enum class Collective {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  send_receive,
  gather,
  scatter
};

/// Broadcast and reduce: one way along the ring, without the hop that closes it.
bool is_chain(Collective collective);

/// Channels of NVLink SHARP that NCCL's search finds, one per GPU that heads a reduction. GB/s.
struct NvlsGraph {
  int heads = 0;       ///< GPUs of the host with the fewest
  double inside = 0;   ///< of one channel inside a host
  double between = 0;  ///< of one channel between hosts; 0 with one host
};

/// What NCCL's tuner sees of a communicator.
struct CommunicatorFacts {
  int num_ranks = 2;
  int num_nodes = 1;
  int compute_capability = 70;
  bool is_nvlink = true;  ///< GPUs of a node talk over NVLink
  bool is_amd = false;    ///< processor vendor, for the network overhead
  bool is_x86 = true;
  bool ll128_allowed = true;       ///< path types allow LL128
  bool has_equal_channels = true;  ///< all channels pass the GPUs of a node in one order
  bool has_plain_trees = false;    ///< a tree's parent and children all meet one GPU of some node
  bool nvls_allowed = false;
  NvlsGraph nvls;                ///< when it is allowed
  bool collnet_allowed = false;  ///< the fabric's switches reduce
  bool is_network_only = false;  ///< GPUs of one node that reach each other by sockets only
  bool simple_only = false;      ///< settings that come with a network plugin forbid LL and LL128
  double plugin_latency_us = 0;  ///< of a message between nodes, as the network plugin reports it; 0: it reports none
  int graph_channels = 1;        ///< channels found by the search, before they are doubled
  double node_gb_per_s = 12;     ///< all channels of one node alone, without the network; what trees grow into
  double channel_gb_per_s = 12;  ///< speed of one of them, inside a node for <= 2 nodes, else between nodes
  int version = 228;             ///< release_number
  Library library = Library::nccl;
  AmdGeneration generation = AmdGeneration::cdna3;  ///< in RCCL
  bool has_schedules = false;                       ///< RCCL: those of MSCCL are for these ranks
  Collective collective = Collective::all_reduce;
};

struct Choice {
  Algorithm algorithm = Algorithm::ring;
  Protocol protocol = Protocol::simple;
};

/// PAT gathers and scatters among nodes of one GPU of compute capability 6.0 and later, from 2.23 on.
bool allows_pat(const CommunicatorFacts& facts, Collective collective);

/// NCCL's estimate in microseconds; negative when the combination is disabled.
double estimated_time_us(const CommunicatorFacts& facts, Collective collective, Algorithm algorithm, Protocol protocol,
                         Bytes size);

/// The combination of least estimated time, within what the user forced.
Choice least_time(const CommunicatorFacts& facts, Collective collective, Bytes size, std::optional<Algorithm> algorithm,
                  std::optional<Protocol> protocol);

/// The one that NCCL, or RCCL, takes.
Choice choose(const CommunicatorFacts& facts, Collective collective, Bytes size, std::optional<Algorithm> algorithm,
              std::optional<Protocol> protocol);

/// How many of `max_channels` NCCL opens for `size`, and with how many threads per channel.
struct ChannelUse {
  int channels = 1;
  int threads = 512;
  int most_threads = 512;  ///< that a channel has at sizes that fill them
};
ChannelUse channel_use(const CommunicatorFacts& facts, const Choice& choice, Bytes size, int max_channels);

/// Of `channels` those that have at least `least` bytes of traffic each: an all-reduce counts twice, LL four times from
/// 2.26 on (enqueue.cc, scheduleCollTasksToPlan).
int channels_of_traffic(const CommunicatorFacts& facts, const Choice& choice, Bytes size, int channels,
                        std::int64_t least);

}  // namespace fabricast::models::nccl
