// SPDX-License-Identifier: Apache-2.0
// How a switch buffers, pauses, marks and schedules: PFC over a shared buffer, or InfiniBand credits per virtual lane.
//
// PFC. Every frame is counted, in whole cells, against the (ingress port, class) it came in by, from its arrival until
// its transmission begins. The first `reserved` bytes of an ingress class are its own; above, it uses the shared pool
// up to
//   T = alpha x (pool - shared bytes in use)      (or the fixed `xoff`).
// When the count reaches reserved + T the class is XOFF: a PAUSE frame goes out and what still arrives is counted in
// the headroom; a frame that finds the headroom full is dropped, which in a lossless class is a fault of the
// configuration. XON follows when the headroom is empty and the count is at most reserved + T - `xon_offset`. A PAUSE
// frame waits for the frame on the wire, takes 84 byte times and the cable's delay; the peer obeys `pause_response`
// later.
//
// Credits. A sender may send a packet on a lane while FCTBS + blocks <= FCCL, in blocks of 64 B; the receiver grants
// FCCL = ABR + free blocks at most once per `credit_interval` and only when it changed [InfiniBand, vol. 1, 7.9].
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabricast/units.hpp"

namespace fabricast::packet {

/// Traffic classes of a port: Ethernet priorities or InfiniBand virtual lanes.
inline constexpr int k_num_classes = 8;

enum class FlowControl { none, pfc, credits };

/// Marks a packet when it leaves the egress queue of its class: never below `min`, always above `max`, in between with
/// a probability that rises to `max_probability`.
struct EcnConfig {
  bool enabled = false;
  Bytes min{};
  Bytes max{};
  double max_probability = 1;
};

/// One class on the egress side. Strict classes go first, higher class number first; the others share by `weight`
/// (bytes).
struct ClassConfig {
  bool lossless = false;  ///< PFC or credits act on it; a frame of a lossy class is dropped where it would pause
  bool strict = false;
  std::uint32_t weight = 1;
  EcnConfig ecn;
};

struct PfcConfig {
  double alpha = 1;               ///< of the dynamic threshold
  std::optional<Bytes> xoff;      ///< fixed threshold of the shared part instead of alpha
  Bytes xon_offset{2 * 1024};     ///< hysteresis
  std::optional<Bytes> headroom;  ///< per port and lossless class; none = worst_case_headroom() of each port
  double headroom_bandwidth_delays =
      0;                           ///< headroom = this x rate x delay of the port, when `headroom` is none and this > 0
  std::uint32_t pause_quanta = 0;  ///< time a PAUSE frame asks for, in 512 bit times (at most 65,535); 0 = until XON
  Duration refresh_interval{};     ///< PAUSE is repeated while XOFF lasts; 0 = half of the pause time
  Duration pause_response{};       ///< from receiving PAUSE to obeying it
  bool is_pause_out_of_band = false;  ///< PAUSE neither waits for a frame on the wire nor takes wire time (htsim)
  /// Doubles alpha with every doubling of a port's rate above `alpha_reference_rate` (HPCC); 0 = one alpha.
  Bandwidth alpha_reference_rate{};
};

struct CreditConfig {
  Bytes lane_buffer{16 * 1024};           ///< input buffer per port and lane
  Duration credit_interval{256'000};      ///< least time between two updates of one lane
  bool has_virtual_output_queues = true;  ///< else a packet whose egress is busy stops all behind it in its lane
  std::uint32_t input_speedup = 1;        ///< packets one input may send at the same time
  Duration turnaround{};                  ///< from a freed block to the update, at least
};

struct SwitchConfig {
  std::string name;
  FlowControl flow_control = FlowControl::pfc;
  bool cut_through = true;     ///< forwards from the header on, unless the egress is faster than the ingress
  Duration latency{};          ///< from the header (or the last byte, without cut-through) to the egress queue
  Bytes buffer{16 << 20};      ///< all packet memory: reserved, headroom and the shared pool, which is the rest
  std::optional<Bytes> pool;   ///< largest shared pool; never more than the rest
  Bytes reserved{};            ///< per port and class
  Bytes cell{1};               ///< frames occupy whole cells
  Bytes lossy_limit{1 << 20};  ///< largest egress queue of a lossy class
  PfcConfig pfc;
  CreditConfig credits;
  std::array<ClassConfig, k_num_classes> classes{};
};

/// Switches by name: "htsim-like", "hpcc-ns3-like" (class 3 is lossless, class 6, of CNPs, is strict), "infiniband"
/// (classes 0 to 3 are lossless lanes). None for an unknown name. ASICs are in the catalogue.
std::optional<SwitchConfig> switch_preset(std::string_view name);
std::vector<std::string> switch_preset_names();

}  // namespace fabricast::packet
