// SPDX-License-Identifier: Apache-2.0
// Lossless fabrics before anything runs: the settings every switch and HCA ends up with, the headroom each port needs,
// and whether the routes can deadlock. Equations and sources: docs/MODELS.md, "Lossless fabrics".
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fabricast/diagnostic.hpp"
#include "fabricast/lossless_spec.hpp"
#include "fabricast/parameters.hpp"
#include "fabricast/topology.hpp"

namespace fabricast {

// ---- headroom -----------------------------------------------------------------------------------------------------

/// What decides the headroom of one port and lossless priority.
struct HeadroomInput {
  Bandwidth rate;       ///< of the port
  double cable_m = 3;   ///< metres
  Bytes lossless_mtu;   ///< largest frame of the lossless class
  Bytes port_mtu;       ///< largest frame of any class: it may block the PAUSE
  Bytes cell;           ///< memory is given out in cells of this size
  Bytes mac_phy;        ///< data inside MAC and PHY of both ends
  Bytes peer_response;  ///< what the peer sends until it obeys
  Bytes pipeline;       ///< what the switch takes in before it can tell the peer to resume
};

/// Buffer of one port and priority as the vendor's calculation gives it, each part rounded up to 1 KiB.
struct Headroom {
  Bytes xoff;  ///< room behind XOFF
  Bytes xon;   ///< room below which XON is sent
  Bytes size;  ///< both
};

/// xoff = lossless_mtu + occupancy x (port_mtu + 2 x delay x rate + mac_phy + peer_response), occupancy = the memory a
/// stream of worst-size packets takes per byte: cell / 64 for cells above 128 B, else 2 cell / (1 + cell).
/// The vendor's own calculation [SONiC, buffer_headroom_mellanox.lua]; agrees with its SN2700 table within 2 KiB.
Headroom vendor_headroom(const HeadroomInput& input);

/// Least room behind XOFF that never loses a packet of `packet` bytes on the wire: 2 x delay x rate + 2 packets +
/// response.
Bytes least_headroom(const HeadroomInput& input, Bytes packet);

// ---- settings in use ----------------------------------------------------------------------------------------------

/// DCQCN as an HCA runs it; see DcqcnSpec.
struct DcqcnSettings {
  double g = 0;
  double initial_alpha = 1;
  Duration alpha_interval, decrease_interval, increase_interval, cnp_interval;
  Bytes byte_counter;
  int fast_recovery = 5;
  bool clamp_target = false;
  Bandwidth additive_increase, hyper_increase, minimum_rate;
};

/// What a lossless fabric's switches and HCAs run with, and where each value came from.
struct LosslessSettings {
  bool is_asked_for = false;     ///< the topology has a `lossless:` block
  std::string preset;            ///< in use; empty when neither topology nor switch names one
  std::string operating_system;  ///< of the switches, where alpha depends on it: onyx or sonic; else empty
  FlowControl flow_control = FlowControl::pfc;
  std::vector<int> pfc;  ///< lossless priorities of ports that say nothing of their own, ascending
  std::map<std::string, std::vector<int>> port_pfc;  ///< of the others, see LosslessSpec
  std::optional<int> marked;  ///< priority the switches give RDMA packets, where the topology says how these are marked
  Bytes buffer;               ///< packet memory of a switch
  Bytes shared_buffer;        ///< of it, for lossless classes before headroom and reserved
  bool is_headroom_auto = true;
  Bytes headroom;              ///< when not auto
  double headroom_delays = 0;  ///< headroom = this x rate x cable delay, where above 0
  bool is_static = false;      ///< thresholds xoff and xon instead of alpha
  Bytes xoff, xon;
  double alpha = 1;
  Bytes resume_offset;
  Bytes reserved;
  Bytes cell, port_mtu, lossless_mtu, mac_phy, peer_response, pipeline;
  Duration pause_time;
  std::map<int, double> weights;  ///< 0 = strict
  bool is_ecn_on = true;
  Bytes ecn_min, ecn_max;
  Bandwidth ecn_reference_rate;  ///< thresholds grow with the port rate above it; 0 = they do not
  double ecn_probability = 1;
  int cnp_priority = 6;
  int virtual_lanes = 1;
  Bytes vl_buffer;  ///< of one lane of a port; nobody gives one: as much as full rate over `longest_cable` needs
  Bytes generation_vl_buffer;  ///< what full rate over the longest cable of the switch's generation needs; 0: not known
  Duration credit_update;
};

/// Settings of the switches of one type: what the topology gives holds for all, the rest is the type's own.
LosslessSettings lossless_settings(const Topology& topology, const ParameterSet& parameters,
                                   const std::string& switch_type);
/// Those of the fabric's generated (or, in a list, first) switch type: for what holds for all, flow control, classes
/// and lanes.
LosslessSettings lossless_settings(const Topology& topology, const ParameterSet& parameters);

/// Settings of every switch, each type's found once. Holds references to both.
class SwitchSettings {
 public:
  SwitchSettings(const Topology& topology, const ParameterSet& parameters)
      : topology_(topology), parameters_(parameters) {}
  const LosslessSettings& of(const std::string& switch_type);
  /// Of the switch that a network link ends at, else of the one that it begins at.
  const LosslessSettings& of(const Link& link);

 private:
  const Topology& topology_;
  const ParameterSet& parameters_;
  std::map<std::string, LosslessSettings> of_type_;
};

/// Priorities that PFC is set to at the port of `device` towards `neighbour`, ascending.
std::vector<int> port_priorities(const Topology& topology, const LosslessSettings& settings, DeviceId device,
                                 DeviceId neighbour);
/// Priorities that are lossless on a cable: those of both of its ends. A priority of one end alone is lossy there.
std::vector<int> cable_priorities(const Topology& topology, const LosslessSettings& settings, const Link& link);

/// Priority (PFC) or virtual lane (credits) that messages travel in: what the flow asks for, then the workload, then
/// what its packets are marked with, then the first lossless one. Service levels are dealt out over the data lanes,
/// level modulo lanes, as subnet managers do.
int priority_in_use(const LosslessSettings& settings, std::optional<int> workload, std::optional<int> flow = {});
/// The same of what adapter `sender` sends: frames of a VM carry the priority of its port group, where switches trust
/// it.
int priority_in_use(const Topology& topology, const LosslessSettings& settings, DeviceId sender,
                    std::optional<int> workload, std::optional<int> flow = {});

/// True when packets change virtual lanes on their way, against deadlock: credits with two lanes or more on a torus or
/// dragonfly without up-down routing. Every message then starts in lane 0.
bool has_lane_rule(const Topology& topology, const LosslessSettings& settings);

/// Virtual lanes that a message passes on its way: all where its route is fixed (`ecmp`) and changes them against
/// deadlock, else one. Packets that choose ports one by one (`is_per_packet`: spray, adaptive) keep to their lane.
int lanes_on_routes(const Topology& topology, const LosslessSettings& settings, bool is_per_packet);

/// DCQCN settings of one HCA type in this topology.
DcqcnSettings dcqcn_settings(const Topology& topology, const ParameterSet& parameters, const std::string& hca_type);

/// True when links stop instead of dropping: InfiniBand, or an Ethernet fabric with a `lossless:` block of pfc or
/// credits.
bool is_lossless(const Topology& topology);

/// Headroom of ports of one switch type with one rate and cable length, for tables.
struct PortHeadroom {
  std::string switch_type;
  Bandwidth rate;
  double cable_m = 0;
  int num_ports = 0;    ///< switch ports of this kind in the topology
  Headroom vendor;      ///< the vendor's formula
  Bytes configured;     ///< behind XOFF, in use
  Bytes needed;         ///< least_headroom
  std::string example;  ///< "leaf0 <- node0.hca0"
  int most_on_one_switch = 0;
  std::string switch_name;  ///< where most of them are
};
/// Every kind of switch port of a PFC fabric, by switch type, slowest and shortest first. Empty with credits.
std::vector<PortHeadroom> port_headrooms(const Topology& topology, const ParameterSet& parameters);

/// Headroom in use of a port that receives over `link`.
Bytes headroom_of(const LosslessSettings& settings, const Link& link);

// ---- credits ------------------------------------------------------------------------------------------------------

/// What a lane's buffer makes of a link that ends at a switch: the sender may have so much on its way and in the buffer
/// until the credits for it are back.
struct CreditRoundTrip {
  LinkId link;
  double share = 1;  ///< of the rate that credits allow, at most 1
  Bytes buffer;      ///< of a lane
  Bytes needed;      ///< for the full rate: round trip, forwarding and credit update at the link's rate, and a packet
};
/// `settings`: of the switch that `link` ends at; `packet`: payload of the largest.
CreditRoundTrip credit_round_trip(const Topology& topology, const LosslessSettings& settings, const Link& link,
                                  Bytes packet);
/// The link that its credits slow down most; nothing when none is.
std::optional<CreditRoundTrip> slowest_credits(const Topology& topology, const ParameterSet& parameters,
                                               SwitchSettings& switches);
/// Payload of the largest packet that any adapter on the fabric sends.
Bytes largest_payload(const Topology& topology, const ParameterSet& parameters);

// ---- deadlock -----------------------------------------------------------------------------------------------------

/// A buffer a packet waits in: the receiving end of a link, one virtual lane of it.
struct LinkBuffer {
  LinkId link;
  int lane = 0;
  friend auto operator<=>(const LinkBuffer&, const LinkBuffer&) = default;
};

/// The cyclic buffer dependencies of all routes.
struct DeadlockReport {
  bool is_analysed = false;
  std::string reason;  ///< why a proof was not needed, or not possible
  int num_buffers = 0;
  int num_dependencies = 0;
  int priority = -1;              ///< whose circle it is, of those asked for; -1 = whatever travels
  std::vector<LinkBuffer> cycle;  ///< each waits for the next, the last for the first; empty = cannot deadlock
};

/// Buffers (links x lanes) depend on each other when some route leaves one for the other; without a cycle nobody can
/// wait for himself [Dally & Seitz 1987]. Trees need no search. `num_lanes`: lanes_on_routes(). The routes are all that
/// a flow by its hash, or a packet by queues or turns, may take: the same links, one lane or several. `lossy`: network
/// links whose full buffer drops: nobody waits for it, and it holds nobody back.
DeadlockReport find_buffer_cycle(const Topology& topology, int num_lanes, const std::set<LinkId>& lossy = {});

/// Network links on which packets of `priority` are dropped by a full buffer: not both of their ends have PFC for it.
std::set<LinkId> lossy_links(const Topology& topology, const LosslessSettings& settings, int priority);

/// find_buffer_cycle() of each of `priorities` (PFC) over the cables that protect it: the first circle, or else what
/// was searched of all of them. Priorities do not wait for each other; credits hold packets back on every link.
DeadlockReport find_deadlock(const Topology& topology, const LosslessSettings& settings,
                             const std::set<int>& priorities, int num_lanes);

/// "leaf0 -> leaf1 -> leaf2 -> leaf0 (lane 0)".
std::string describe_cycle(const Topology& topology, const DeadlockReport& report);

}  // namespace fabricast
