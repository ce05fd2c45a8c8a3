// SPDX-License-Identifier: Apache-2.0
#include "config/lossless_schema.hpp"

#include "config/schema_parts.hpp"

namespace fabricast::config {

using namespace parts;
using T = Schema::Type;

namespace {

constexpr auto k_bytes = Dimension::bytes;
constexpr auto k_time = Dimension::time;
constexpr auto k_rate = Dimension::bandwidth;
constexpr auto k_number = Dimension::number;

SchemaPtr dcqcn() {
  return mapping(
      "the DCQCN settings",
      {{"g", number(1e-6, 1), "weight of a new mark in alpha"},
       {"initial_alpha", number(0, 1), "alpha of a new flow"},
       {"alpha_interval", quantity(Dimension::time), "alpha decays when no CNP came for so long"},
       {"decrease_interval", quantity(Dimension::time), "least time between two rate cuts"},
       {"increase_interval", quantity(Dimension::time), "timer of rate increases"},
       {"byte_counter", size(), "bytes sent per byte-counter increase"},
       {"fast_recovery", integer(1, 1000), "increases before additive increase starts"},
       {"clamp_target", flag(), "every cut lowers the target rate too; default: only the first of a series"},
       {"additive_increase", quantity(Dimension::bandwidth), "rate step of additive increase"},
       {"hyper_increase", quantity(Dimension::bandwidth), "rate step of hyper increase"},
       {"minimum_rate", quantity(Dimension::bandwidth), "a flow is never slower"},
       {"cnp_interval", quantity(Dimension::time), "least time between two CNPs of a receiver for one flow"}});
}

}  // namespace

SchemaPtr lossless_schema() {
  const auto ecn = mapping("the ECN settings", {{"min", size(), "marking starts at this queue"},
                                                {"max", size(), "above it every packet is marked"},
                                                {"probability", number(0, 1), "share marked at `max`; default 1"}});
  return mapping(
      "the lossless settings",
      {{"preset", text(), "ASIC of the catalogue: spectrum-1 to -4, trident-2, tomahawk, htsim-like, hpcc-ns3-like"},
       {"operating_system", choice({"onyx", "sonic"}),
        "of the switches, decides alpha on Spectrum (Onyx 8, SONiC 128); default: Onyx where it runs"},
       {"flow_control", choice({"pfc", "credits", "drop"}), "default: credits for InfiniBand switches, else pfc"},
       {"trust", choice({"dscp", "pcp"}), "what gives a packet its priority: layer 3 or the VLAN tag; default dscp"},
       {"marks",
        mapping("the marks of RDMA packets", {{"dscp", integer(0, 63), "of the IP header; default 0"},
                                              {"pcp", integer(0, 7), "of the VLAN tag; default 0"},
                                              {"vlan", integer(0, 4094), "0: untagged, there is no PCP"}}),
        "what adapters write into RDMA packets; trust makes the priority of it; default: the first lossless one"},
       {"dscp_to_priority", free_mapping(integer(0, 7)), "DSCP -> priority; default: its upper three bits"},
       {"ports", free_mapping(list(integer(0, 7))),
        "switch, host.hca or one port by both ends (leaf0/host.hca0) -> lossless priorities there, where they differ "
        "from `pfc`"},
       {"pfc", list(integer(0, 7)), "lossless priorities; default [3]"},
       {"headroom", make({.type = T::size_or_auto}),
        "bytes per port and lossless priority behind XOFF, or auto: the vendor's formula; default: preset, else auto"},
       {"xoff", size(), "static threshold of a port and priority, instead of alpha"},
       {"xon", size(), "a static threshold's port resumes below it"},
       {"resume_offset", size(), "resume so far below a dynamic threshold"},
       {"alpha", number(1e-4, 1024), "dynamic threshold = alpha x free shared memory"},
       {"reserved", size(), "per port and priority"},
       {"shared_buffer", size(), "lossless pool; default: pool_share of the packet memory"},
       {"pool_share", number(0, 1), "share of the packet memory in the lossless pool; default 0.5"},
       {"cell", size(), "memory is given out in cells"},
       {"port_mtu", size(), "largest frame of any class; default 9100 B"},
       {"lossless_mtu", size(), "largest lossless frame in the headroom formula; default 1500 B"},
       {"pause_time", quantity(Dimension::time), "how long one PAUSE stops the peer; default 336 us"},
       {"weights", free_mapping(make({.type = T::weight})),
        "share of each priority 0 to 7, or strict; default: the CNP priority strict, the others equal"},
       {"ecn", any_of({flag(), ecn}),
        "marking: off, or thresholds; default 150 kB to 1500 kB with pfc, and with drop beside dcqcn"},
       {"cnp_priority", integer(0, 7), "priority of congestion notifications; default 6"},
       {"virtual_lanes", integer(1, 15), "InfiniBand data lanes; default 1"},
       {"vl_buffer", size(), "input buffer of one lane of a port; default 64 KiB"},
       {"credit_update", quantity(Dimension::time), "least time between credit updates; default 256 ns"},
       {"dcqcn", dcqcn(), "rate control of the HCAs; default: the HCA's"}});
}

SchemaPtr flow_list_schema() {
  return list(mapping("a flow", {{"name", text(), "default: from -> to"},
                                 {"from", text(), "a host, or host.hcaN", true},
                                 {"to", text(), "a host, or host.hcaN", true},
                                 {"bytes", size(), "default: the size of the row"},
                                 {"start", quantity(Dimension::time), "default 0 s"},
                                 {"priority", integer(0, 7), "default: the workload's"}}));
}

SchemaPtr transport_schema() {
  return mapping(
      "the transport",
      {{"verb", choice({"write", "send", "read"}), "RDMA operation; default write"},
       {"congestion_control", choice({"auto", "none", "dcqcn"}), "default auto: dcqcn where Ethernet switches mark"},
       {"routing", choice({"auto", "ecmp", "spray", "adaptive"}),
        "per flow by hash, per packet in turn, or per packet by the queues; default auto: adaptive in trees whose "
        "`routing` is, else ecmp"},
       {"priority", integer(0, 7), "default: the fabric's first lossless priority, lane 0 with credits"},
       {"window", size(), "unacknowledged bytes per queue pair; default: no limit"}});
}

std::vector<DeviceField> dcqcn_fields() {
  return {{"dcqcn_g", k_number, "weight of a new mark in alpha"},
          {"dcqcn_initial_alpha", k_number, "alpha of a new flow"},
          {"dcqcn_alpha_interval", k_time, "alpha decays when no CNP came for so long"},
          {"dcqcn_decrease_interval", k_time, "least time between two rate cuts"},
          {"dcqcn_increase_interval", k_time, "timer of rate increases"},
          {"dcqcn_byte_counter", k_bytes, "bytes sent per byte-counter increase"},
          {"dcqcn_fast_recovery", k_number, "increases before additive increase starts"},
          {"dcqcn_clamp_target", k_number, "1: every cut lowers the target rate too"},
          {"dcqcn_additive_increase", k_rate, "rate step of additive increase"},
          {"dcqcn_hyper_increase", k_rate, "rate step of hyper increase"},
          {"dcqcn_minimum_rate", k_rate, "a flow is never slower"},
          {"dcqcn_cnp_interval", k_time, "least time between two CNPs of a receiver for one flow"}};
}

std::vector<DeviceField> asic_fields() {
  std::vector<DeviceField> fields{
      {"buffer", k_bytes, "packet memory that one port can use"},
      {"cell", k_bytes, "memory is given out in cells"},
      {"pool_share", k_number, "share of the memory in the lossless pool"},
      {"alpha", k_number, "dynamic threshold = alpha x free shared memory"},
      {"alpha_onyx", k_number, "the same under Onyx"},
      {"alpha_sonic", k_number, "the same under SONiC"},
      {"reserved", k_bytes, "per port and priority"},
      {"resume_offset", k_bytes, "resume so far below the dynamic threshold"},
      {"xoff", k_bytes, "static threshold instead of alpha; 0 = none"},
      {"xon", k_bytes, "resume below it, static thresholds"},
      {"headroom", k_bytes, "per port and lossless priority; 0 = the vendor's formula"},
      {"headroom_delays", k_number, "headroom = this x rate x cable delay; 0 = not so"},
      {"port_mtu", k_bytes, "largest frame of any class"},
      {"lossless_mtu", k_bytes, "largest lossless frame in the headroom formula"},
      {"mac_phy", k_bytes, "data inside MAC and PHY of both ends"},
      {"peer_response", k_bytes, "what the peer sends until it obeys a PAUSE"},
      {"pipeline", k_bytes, "what the switch takes in before it can resume"},
      {"pause_time", k_time, "how long one PAUSE stops the peer"},
      {"ecn_min", k_bytes, "marking starts at this queue"},
      {"ecn_max", k_bytes, "above it every packet is marked"},
      {"ecn_probability", k_number, "share marked at ecn_max"},
      {"ecn_reference_rate", k_rate, "thresholds are for this port rate and grow with it; 0 = fixed"}};
  for (const auto& field : dcqcn_fields()) fields.push_back(field);
  return fields;
}

}  // namespace fabricast::config
