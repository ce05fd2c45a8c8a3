// SPDX-License-Identifier: Apache-2.0
#include "engine/switch_config.hpp"

#include <algorithm>
#include <cmath>

namespace fabricast::engine {

namespace {

constexpr std::uint32_t k_most_quanta = 65'535;
constexpr double k_quantum_bytes = 64;  ///< 512 bit times

void set_pfc(packet::PfcConfig& pfc, const LosslessSettings& settings, Bandwidth fastest) {
  pfc.alpha = settings.alpha;
  pfc.xoff.reset();
  if (settings.is_static) pfc.xoff = settings.xoff;
  pfc.xon_offset = settings.is_static ? settings.xoff - settings.xon : settings.resume_offset;
  pfc.headroom.reset();
  if (!settings.is_headroom_auto) pfc.headroom = settings.headroom;
  pfc.headroom_bandwidth_delays = settings.headroom_delays;
  if (is_simulator(settings.preset)) return;
  pfc.pause_response = transfer_time(settings.peer_response, fastest);
  const double quanta = settings.pause_time.seconds() * fastest.bytes_per_s / k_quantum_bytes;
  // Far above what a frame can say: the pause is latched.
  pfc.pause_quanta = quanta > 2.0 * k_most_quanta
                         ? 0
                         : static_cast<std::uint32_t>(std::min<double>(k_most_quanta, std::max(1.0, quanta)));
}

void set_classes(packet::SwitchConfig& config, const LosslessSettings& settings, Bandwidth fastest) {
  const double scale =
      settings.ecn_reference_rate.bytes_per_s > 0 ? fastest.bytes_per_s / settings.ecn_reference_rate.bytes_per_s : 1;
  const auto scaled = [&](Bytes bytes) { return Bytes{std::llround(static_cast<double>(bytes.value) * scale)}; };
  for (int c = 0; c < packet::k_num_classes; ++c) {
    auto& one = config.classes[static_cast<std::size_t>(c)];
    one = {};
    const bool is_pfc = std::find(settings.pfc.begin(), settings.pfc.end(), c) != settings.pfc.end();
    if (settings.flow_control == FlowControl::pfc) one.lossless = is_pfc;
    if (settings.flow_control == FlowControl::credits) one.lossless = c < std::max(1, settings.virtual_lanes);
    if (const auto weight = settings.weights.find(c); weight != settings.weights.end()) {
      one.strict = weight->second == 0;
      if (!one.strict) one.weight = static_cast<std::uint32_t>(std::max(1.0, std::round(weight->second)));
    }
    const bool may_mark = settings.flow_control == FlowControl::drop ? c != settings.cnp_priority : is_pfc;
    if (settings.is_ecn_on && may_mark)
      one.ecn = {true, scaled(settings.ecn_min), scaled(settings.ecn_max), settings.ecn_probability};
  }
}

}  // namespace

bool is_simulator(const std::string& preset) { return preset == "htsim-like" || preset == "hpcc-ns3-like"; }

packet::SwitchConfig switch_config(const LosslessSettings& settings, Bandwidth fastest) {
  const bool is_credits = settings.flow_control == FlowControl::credits;
  packet::SwitchConfig config;
  if (is_simulator(settings.preset)) config = *packet::switch_preset(settings.preset);
  if (is_credits) config = *packet::switch_preset("infiniband");
  config.name = settings.preset;
  config.flow_control =
      is_credits ? packet::FlowControl::credits
                 : (settings.flow_control == FlowControl::pfc ? packet::FlowControl::pfc : packet::FlowControl::none);
  config.buffer = settings.buffer;
  config.pool = settings.shared_buffer;
  config.reserved = settings.reserved;
  config.cell = is_credits ? Bytes{64} : settings.cell;
  config.credits.lane_buffer = settings.vl_buffer;
  config.credits.credit_interval = settings.credit_update;
  set_pfc(config.pfc, settings, fastest);
  set_classes(config, settings, fastest);
  return config;
}

}  // namespace fabricast::engine
