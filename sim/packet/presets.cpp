// SPDX-License-Identifier: Apache-2.0
// Simulators that we run beside, an InfiniBand switch, and transports, by name. Sources stand beside the values; [R]
// marks values recalled from a data sheet. Ethernet ASICs are in the catalogue alone (models/catalogue/asics).

#include "packet/buffer.hpp"
#include "packet/transport.hpp"

namespace fabricast::packet {

using namespace fabricast::literals;

namespace {

// htsim: XOFF and XON at 15 and 12 packets of 4,000 B, no shared buffer, PAUSE on a pipe of its own, one class.
SwitchConfig htsim_like() {
  SwitchConfig config;
  config.name = "htsim-like";
  config.cut_through = false;
  config.buffer = {std::int64_t{1} << 40};
  config.pfc.xoff = 60'000_B;
  config.pfc.xon_offset = 12'000_B;
  config.pfc.headroom = 8'000'000_B;
  config.pfc.is_pause_out_of_band = true;
  config.classes[3].lossless = true;
  config.classes[6].strict = true;
  return config;
}

// HPCC ns-3, switch-mmu.cc: alpha 1/8 at the NIC's rate, 4 KiB reserved per port, XON 3 KiB below, headroom 3 C d, RED
// at 400/1600 KB with 0.2 at 100 Gb/s.
SwitchConfig hpcc_ns3_like() {
  SwitchConfig config;
  config.name = "hpcc-ns3-like";
  config.cut_through = false;
  config.buffer = 32_MiB;
  config.reserved = 4_KiB;
  config.pfc.alpha = 0.125;
  config.pfc.alpha_reference_rate = 100_Gbps;
  config.pfc.xon_offset = 3_KiB;
  config.pfc.headroom_bandwidth_delays = 3;
  config.classes[3] = {true, false, 1, {true, {400'000}, {1'600'000}, 0.2}};
  config.classes[6].strict = true;
  return config;
}

// Buffers of 64 KiB per port over 4 lanes, updates every 256 ns, an input that serves three outputs at a time, 50 + 50
// ns: the Mellanox flit simulator's defaults.
SwitchConfig infiniband_switch() {
  SwitchConfig config;
  config.name = "infiniband";
  config.flow_control = FlowControl::credits;
  config.latency = 100_ns;
  config.cell = 64_B;
  config.credits.lane_buffer = 16_KiB;
  config.credits.credit_interval = 256_ns;
  config.credits.input_speedup = 3;
  for (int lane = 0; lane < 4; ++lane) config.classes[static_cast<std::size_t>(lane)].lossless = true;
  config.classes[6].lossless = true;
  config.classes[6].strict = true;
  return config;
}

// ConnectX-4 and later [DOC-2790; the DOCA page; time and byte reset, AI and HAI are R].
DcqcnConfig connectx_dcqcn() {
  DcqcnConfig dcqcn;
  dcqcn.cnp_interval = 4_us;
  dcqcn.alpha_interval = 1_us;
  dcqcn.decrease_interval = 4_us;
  dcqcn.increase_timer = 300_us;
  dcqcn.byte_counter = {32767 * 64};
  dcqcn.g = 5.0 / 1024;  // g = 1019 of 1024 is the weight of the past
  dcqcn.fast_recovery = 1;
  dcqcn.additive = {5e6 / 8};
  dcqcn.hyper = {50e6 / 8};
  dcqcn.minimum = {1e6 / 8};
  dcqcn.clamp_target = false;  // clamp_tgt_rate 0, clamp_tgt_rate_after_time_inc 1
  return dcqcn;
}

// HPCC ns-3, config and rdma-hw.cc: every mark is echoed, one recovery step, no byte counter.
DcqcnConfig hpcc_dcqcn() {
  DcqcnConfig dcqcn;
  dcqcn.cnp_interval = {};
  dcqcn.alpha_interval = 1_us;
  dcqcn.decrease_interval = 4_us;
  dcqcn.increase_timer = 900_us;
  dcqcn.byte_counter = {};
  dcqcn.g = 1.0 / 256;
  dcqcn.fast_recovery = 1;
  dcqcn.additive = {50e6 / 8};
  dcqcn.hyper = {100e6 / 8};
  dcqcn.minimum = {100e6 / 8};
  dcqcn.clamp_target = false;
  return dcqcn;
}

}  // namespace

std::optional<SwitchConfig> switch_preset(std::string_view name) {
  if (name == "htsim-like") return htsim_like();
  if (name == "hpcc-ns3-like") return hpcc_ns3_like();
  if (name == "infiniband") return infiniband_switch();
  return std::nullopt;
}

std::vector<std::string> switch_preset_names() { return {"htsim-like", "hpcc-ns3-like", "infiniband"}; }

std::optional<TransportConfig> transport_preset(std::string_view name) {
  TransportConfig transport;
  if (name == "rocev2") {
    transport.congestion_control = "dcqcn";
    transport.dcqcn = connectx_dcqcn();
  } else if (name == "infiniband") {
    // LRH 8, BTH 12, ICRC 4, VCRC 2, and 4 B of packet delimiters on the wire.
    transport.header = 26_B;
    transport.wire_gap = 4_B;
    transport.ack = 30_B;
    transport.cnp = 42_B;
    transport.read_request = 42_B;
  } else if (name == "htsim-like") {
    transport.mtu = 4000_B;
    transport.header = 64_B;
    transport.wire_gap = 0_B;
    transport.ack = 64_B;
    transport.ack_every = 1;
  } else if (name == "hpcc-ns3-like") {
    transport.mtu = 1000_B;
    transport.header = 48_B;
    transport.wire_gap = 0_B;
    transport.ack = 60_B;
    transport.ack_every = 1;
    transport.ack_class = 6;
    transport.congestion_control = "dcqcn";
    transport.dcqcn = hpcc_dcqcn();
  } else {
    return std::nullopt;
  }
  return transport;
}

std::vector<std::string> transport_preset_names() { return {"rocev2", "infiniband", "htsim-like", "hpcc-ns3-like"}; }

}  // namespace fabricast::packet
