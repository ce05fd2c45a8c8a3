// SPDX-License-Identifier: Apache-2.0
// Payload rate of a PCIe link: raw rate after line coding times TLP efficiency (4 P) / (4 (P + h) + 16), with P payload
// bytes per TLP, h bytes of header and framing, and one 16-byte group of DLLPs for every 4 TLPs.
// Source: the model of UCX (uct topo.c); line codes from the PCIe base specifications.
#include "base/assert.hpp"
#include "fabricast/topology.hpp"

namespace fabricast {

Bandwidth pcie_bandwidth(int generation, int width, int max_payload) {
  FABRICAST_ASSERT(generation >= 1 && generation <= 6 && width >= 1 && max_payload >= 1, "PCIe generation {} x{}",
                   generation, width);
  // GT/s per lane times code efficiency; generation 6 carries 236 of 256 bytes of a FLIT.
  constexpr double k_lane_gbit[] = {
      0, 2.5 * 0.8, 5 * 0.8, 8 * 128.0 / 130, 16 * 128.0 / 130, 32 * 128.0 / 130, 64 * 236.0 / 256};
  const double raw = k_lane_gbit[generation] * 0.125e9 * width;
  const double payload = 4.0 * max_payload;
  const double header = generation < 3 ? 24 : 26;
  return {raw * payload / (payload + 4 * header + 16)};
}

}  // namespace fabricast
