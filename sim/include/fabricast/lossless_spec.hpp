// SPDX-License-Identifier: Apache-2.0
// What a topology says under `lossless:`: how switches keep from dropping packets (PFC or credits), their buffers,
// schedulers, marking, and the congestion control of the HCAs. Values that are not given come from the preset, then the
// switch type, then the shipped defaults (fabricast/lossless.hpp resolves them).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabricast/diagnostic.hpp"
#include "fabricast/units.hpp"

namespace fabricast {

/// pfc: Ethernet priority flow control; credits: InfiniBand per virtual lane; drop: a full buffer loses packets.
enum class FlowControl { pfc, credits, drop };
std::string_view to_string(FlowControl control);

/// Routes through the network. `automatic`: dimension order on a torus, minimal elsewhere. `minimal`: fewest hops.
/// `up_down`: fewest hops among routes that never go up again once they have gone down, from the switch in the middle
/// of the network; free of deadlock on any graph.
enum class Routing { automatic, minimal, dimension_order, up_down, adaptive };
std::string_view to_string(Routing routing);

/// Rate control of RoCEv2 senders [Zhu et al., SIGCOMM 2015]; unset values are the HCA's.
struct DcqcnSpec {
  std::optional<double> g;                    ///< weight of a new mark in alpha, (0, 1)
  std::optional<double> initial_alpha;        ///< (0, 1]
  std::optional<Duration> alpha_interval;     ///< alpha decays when no CNP came for so long
  std::optional<Duration> decrease_interval;  ///< least time between two rate cuts
  std::optional<Duration> increase_interval;  ///< timer of rate increases
  std::optional<Bytes> byte_counter;          ///< bytes sent per byte-counter increase
  std::optional<int> fast_recovery;           ///< increases before additive increase starts
  std::optional<bool> clamp_target;           ///< every cut lowers the target rate too; else the first of a series
  std::optional<Bandwidth> additive_increase;
  std::optional<Bandwidth> hyper_increase;
  std::optional<Bandwidth> minimum_rate;
  std::optional<Duration> cnp_interval;  ///< least time between two CNPs of a receiver for one flow
};

struct LosslessSpec {
  std::string operating_system;             ///< onyx or sonic; empty = the first that the ASIC has a value for
  std::string preset;                       ///< catalogue name of an ASIC; empty = the switch type's own
  std::optional<FlowControl> flow_control;  ///< unset = credits for InfiniBand switches, else pfc
  std::string trust = "dscp";               ///< dscp (layer 3) or pcp (VLAN tag): what maps a packet to its priority
  std::map<int, int> dscp_priorities;       ///< by trust dscp; others: the upper three bits of the DSCP
  std::optional<int> dscp;                  ///< of the adapters' RDMA packets
  std::optional<int> pcp;                   ///< of their VLAN tag
  std::optional<int> vlan;                  ///< 0 = untagged: there is no PCP
  std::map<std::string, std::vector<int>> port_pfc;  ///< switches and host.hca whose lossless priorities differ
  std::vector<int> pfc;                              ///< lossless priorities; empty = {3}, the RoCE guides' choice
  std::optional<Bytes> headroom;                     ///< per port and lossless priority; 0 = auto, the vendor's formula
  std::optional<Bytes> xoff;                         ///< static threshold on a port and priority instead of alpha
  std::optional<Bytes> xon;                          ///< resume below it (static); dynamic thresholds use resume_offset
  std::optional<Bytes> resume_offset;                ///< resume when so far below the dynamic threshold
  std::optional<double> alpha;                       ///< dynamic threshold = alpha x free shared memory
  std::optional<Bytes> reserved;                     ///< per port and priority, before shared memory is used
  std::optional<Bytes> shared_buffer;                ///< lossless pool; instead of pool_share
  std::optional<double> pool_share;                  ///< share of the packet memory in the lossless pool, (0, 1]
  std::optional<Bytes> cell;                         ///< memory is given out in cells of this size
  std::optional<Bytes> port_mtu;                     ///< largest frame of any class on a port
  std::optional<Bytes> lossless_mtu;                 ///< largest frame of the lossless class in the vendor's formula
  std::optional<Duration> pause_time;                ///< how long one PAUSE frame stops the peer
  std::map<int, double> weights;                     ///< share of each priority; 0 = strict, before all weighted ones
  std::optional<bool> ecn;                           ///< marking on or off
  std::optional<Bytes> ecn_min, ecn_max;             ///< marking starts, and reaches ecn_probability
  std::optional<double> ecn_probability;             ///< at ecn_max, (0, 1]; above it every packet is marked
  int cnp_priority = 6;                              ///< of congestion notification packets
  std::optional<int> virtual_lanes;                  ///< InfiniBand, 1 to 15 data lanes; default 1
  std::optional<Bytes> vl_buffer;                    ///< input buffer of one virtual lane of one port
  std::optional<Duration> credit_update;             ///< least time between two credit updates of a lane
  DcqcnSpec dcqcn;
  SourceLocation location;
  std::map<std::string, SourceLocation> locations;  ///< where each given key was written

  [[nodiscard]] bool gives(const std::string& key) const { return locations.contains(key); }
};

}  // namespace fabricast
