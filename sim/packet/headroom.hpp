// SPDX-License-Identifier: Apache-2.0
// How much headroom a lossless class needs so that nothing is dropped after XOFF.
#pragma once

#include "fabricast/units.hpp"
#include "packet/network.hpp"

namespace fabricast::packet {

/// Signal speed in cable, m/s [SONiC buffer_headroom_mellanox.lua].
inline constexpr double k_cable_speed = 1.98e8;

/// Propagation delay of `meters` of cable.
Duration cable_delay(double meters);

/// Longest time a port of this rate may take to obey PAUSE: 802.3 Annex 31B.3.7 in quanta of 512 bit times, as encoded
/// in SONiC's table for 10 to 800 Gb/s; rates between two entries take the next faster one.
Duration pause_response_limit(Bandwidth rate);

/// Input of the vendor's formula for Spectrum switches.
struct SpectrumHeadroomInput {
  Bandwidth rate;
  double cable_m = 5;
  Bytes port_mtu{9100};
  Bytes lossless_mtu{1500};
  Bytes cell{96};  ///< 96 Spectrum, 144 Spectrum-2 and -3, 192 Spectrum-4
  Bytes pipeline_latency{19 * 1024};
  Bytes mac_phy{819};             ///< 0.8 KiB
  Bytes peer_response{3891};      ///< 3.8 KiB; pause_response_limit(rate) x rate in newer releases
  double small_packet_share = 1;  ///< share of packets that waste most of their cells
  bool is_eight_lane = false;
};

struct SpectrumHeadroom {
  Bytes xon;   ///< XON threshold = pipeline latency
  Bytes xoff;  ///< space behind XOFF
  Bytes size;  ///< xon + xoff
};

/// xoff = ceil1K(lossless_mtu + f (port_mtu + 2 cable rate / c + mac_phy + peer_response)), f = share-weighted waste of
/// cells [SONiC buffer_headroom_mellanox.lua]. Agrees with the fixed SN2700 table within 2 KiB.
SpectrumHeadroom spectrum_headroom(const SpectrumHeadroomInput& input);

/// Most bytes that can arrive at `port` after it decided to pause: 2 d C + frame finishing there + frame that PAUSE
/// waits for
/// + PAUSE itself + response x C, in whole cells. `frame` = the largest, without preamble and gap.
Bytes worst_case_headroom(const Network& network, PortId port, Bytes frame);

/// Largest data frame of all HCAs, without preamble and gap.
Bytes largest_frame(const Network& network);

/// Headroom per lossless class that `port` works with: its own, its configuration's, or worst_case_headroom().
Bytes headroom_of(const Network& network, PortId port);

}  // namespace fabricast::packet
