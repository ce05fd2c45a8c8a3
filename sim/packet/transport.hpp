// SPDX-License-Identifier: Apache-2.0
// What an HCA does: segmentation, headers, acknowledgements, go-back-N, windows, pacing by DCQCN, processing rates.
//
// DCQCN [Zhu et al., SIGCOMM 2015]. The receiver sends a CNP for a marked packet at most once per `cnp_interval` and
// queue pair. The sender keeps rates R_C, R_T and alpha: a CNP cuts R_T = R_C, R_C = R_C (1 - alpha/2), at most once
// per `decrease_interval`; alpha = (1-g) alpha + g when a CNP came during the last `alpha_interval`, else (1-g) alpha.
// Every `increase_timer` and every `byte_counter` bytes R_C = (R_T + R_C)/2, after `fast_recovery` such steps R_T +=
// additive, then hyper.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabricast/units.hpp"

namespace fabricast::packet {

struct DcqcnConfig {
  Duration cnp_interval{50'000'000};  ///< per queue pair at the receiver
  Duration alpha_interval{55'000'000};
  Duration decrease_interval{4'000'000};  ///< rate_reduce_monitor_period
  Duration increase_timer{55'000'000};
  Bytes byte_counter{10'000'000};  ///< 0 = no byte counter
  double g = 1.0 / 256;
  double initial_alpha = 1;
  int fast_recovery = 5;    ///< steps F
  Bandwidth additive{5e6};  ///< R_AI, 40 Mb/s
  Bandwidth hyper{50e6};    ///< R_HAI
  Bandwidth minimum{5e6};
  bool clamp_target = true;  ///< every cut sets R_T = R_C; else only the first of a series
};

struct TransportConfig {
  Bytes mtu{4096};         ///< payload per packet
  Bytes header{62};        ///< per data packet, inside the frame: Ethernet 18, IP 20, UDP 8, BTH 12, ICRC 4
  Bytes wire_gap{20};      ///< preamble and inter-frame gap: on the wire, not in buffers
  Bytes ack{66};           ///< frame of an acknowledgement: headers + AETH 4
  Bytes cnp{78};           ///< frame of a CNP: headers + 16 reserved
  Bytes read_request{78};  ///< headers + RETH 16
  int ack_class = -1;      ///< -1 = the class of the data
  int cnp_class = 6;
  std::uint32_t ack_every = 16;      ///< packets per acknowledgement; the last of a message always asks for one
  Bytes window{};                    ///< unacknowledged payload per queue pair; 0 = no limit
  std::uint32_t max_reads = 16;      ///< READ requests outstanding per queue pair
  Duration timeout{67'108'864'000};  ///< go-back-N without acknowledgement for this long (4.096 us x 2^14); 0 = never
  bool out_of_order = false;         ///< receiver places packets as they come (spraying, adaptive routing)
  std::string congestion_control = "none";  ///< a name of congestion_control_names(), packet/congestion.hpp
  DcqcnConfig dcqcn;                        ///< when it is "dcqcn"
};

/// The scheduling, losslessness and flow control of a host's port are those of the switch at the other end of its link.
struct HcaConfig {
  std::string name;
  TransportConfig transport;
  Duration packet_gap{};            ///< least time between two data packets sent by one port (1 / packet rate)
  Duration message_gap{};           ///< the same between two messages of one queue pair
  Bandwidth receive_rate{};         ///< drain into host memory (PCIe); 0 = never slower than the link
  Bytes receive_buffer{512 << 10};  ///< PFC: pauses its peer when less than the headroom is left
  Duration pause_response{};        ///< from receiving PAUSE to obeying it
  Duration send_latency{};          ///< from posting to the first packet
  Duration receive_latency{};       ///< from the last byte to the completion
};

/// Transports by name: "rocev2", "infiniband", "htsim-like" (4,000 B in 4,064 B, no DCQCN), "hpcc-ns3-like" (1,000 B in
/// 1,048 B, its DCQCN machine switched on). None for an unknown name.
std::optional<TransportConfig> transport_preset(std::string_view name);
std::vector<std::string> transport_preset_names();

}  // namespace fabricast::packet
