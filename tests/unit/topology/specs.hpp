// SPDX-License-Identifier: Apache-2.0
// Topologies written as values, with round numbers: what a test computes by hand must not depend on the catalogue.
//
// gpu: gen3 x16, NVLink 25 GB/s per link at efficiency 0.96. hca: gen3 x16, 12.5 GB/s. cpu: memory 100 GB/s, sockets
// 20 GB/s and 100 ns apart, root complex 40 GB/s and 50 ns. sw8: 8 ports of 12.5 GB/s, 100 ns.
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fabricast/topology.hpp"

namespace fabricast::test {

inline ParameterSet round_values() {
  ParameterSet values;
  const std::vector<std::pair<std::string, double>> all = {{"gpu.pcie_generation", 3},
                                                           {"gpu.pcie_width", 16},
                                                           {"gpu.nvlink_link_bandwidth", 25e9},
                                                           {"gpu.nvlink_efficiency", 0.96},
                                                           {"hca.pcie_generation", 3},
                                                           {"hca.pcie_width", 16},
                                                           {"hca.rate", 12.5e9},
                                                           {"cpu.memory_bandwidth", 100e9},
                                                           {"cpu.socket_bandwidth", 20e9},
                                                           {"cpu.socket_latency", 100e-9},
                                                           {"cpu.root_complex_bandwidth", 40e9},
                                                           {"cpu.root_complex_latency", 50e-9},
                                                           {"cpu.pcie_generation", 3},
                                                           {"cpu.max_payload", 256},
                                                           {"nvs.latency", 200e-9},
                                                           {"sw8.ports", 8},
                                                           {"sw8.rate", 12.5e9},
                                                           {"sw8.latency", 100e-9},
                                                           {"sw64.ports", 64},
                                                           {"sw64.rate", 25e9},
                                                           {"sw64.latency", 100e-9},
                                                           {"pcie.switch_latency", 125e-9}};
  for (const auto& [name, value] : all) {
    Parameter parameter;
    parameter.name = name;
    parameter.value = parameter.low = parameter.high = value;
    parameter.source = "round number of a test";
    values.set(parameter);
  }
  return values;
}

/// `sw8` and `sw64` are InfiniBand unless `ethernet`.
inline std::vector<DeviceType> round_types(bool ethernet = false) {
  const std::map<std::string, std::string> protocol{{"protocol", ethernet ? "ethernet" : "infiniband"}};
  return {{"gpu", "gpu", "", {}, ""},
          {"hca", "hca", "", {}, ""},
          {"cpu", "processor", "", {}, ""},
          {"nvs", "nvswitch", "", {}, ""},
          {"sw8", "network_switch", "", protocol, ""},
          {"sw64", "network_switch", "", protocol, ""}};
}

inline SourceLocation at_line(int line) { return {"t.yaml", line, 1}; }

/// A device of the type named like its kind; `line` is where its faults are reported.
inline DeviceSpec device(const std::string& name, DeviceKind kind, const std::string& below, int line = 1) {
  DeviceSpec spec;
  spec.name = name;
  spec.kind = kind;
  if (kind == DeviceKind::gpu) spec.type = "gpu";
  if (kind == DeviceKind::hca) spec.type = "hca";
  if (kind == DeviceKind::nvswitch) spec.type = "nvs";
  spec.below = below;
  spec.location = at_line(line);
  return spec;
}

inline NvlinkSpec nvlink(const std::string& from, const std::string& to, int links, int line = 1) {
  return {from, to, links, at_line(line)};
}

inline HostSpec host(std::vector<DeviceSpec> devices, std::vector<NvlinkSpec> nvlinks = {}) {
  HostSpec spec;
  spec.processor = "cpu";
  spec.devices = std::move(devices);
  spec.nvlinks = std::move(nvlinks);
  return spec;
}

/// A host with `num_hcas` HCAs, half of them below each socket.
inline HostSpec hca_host(int num_hcas) {
  std::vector<DeviceSpec> devices;
  for (int h = 0; h < num_hcas; ++h)
    devices.push_back(device("hca" + std::to_string(h), DeviceKind::hca, 2 * h < num_hcas ? "socket0" : "socket1"));
  return host(std::move(devices));
}

inline TopologySpec cluster(int count, HostSpec one, FabricSpec fabric = {}) {
  TopologySpec spec;
  spec.name = "t";
  spec.file = "t.yaml";
  fabric.location = at_line(9);
  spec.fabric = std::move(fabric);
  spec.hosts.push_back({"n", count, std::move(one), at_line(2)});
  return spec;
}

inline FabricSpec fabric(FabricKind kind, const std::string& switch_type = "sw8") {
  FabricSpec spec;
  spec.kind = kind;
  spec.switch_type = switch_type;
  return spec;
}

inline Topology built(const TopologySpec& spec, bool ethernet = false) {
  auto topology = build_topology(spec, round_values(), round_types(ethernet));
  if (!topology) FAIL(render(topology.error()));
  return std::move(*topology);
}

/// The messages of a description that cannot be built, each as `line: message (notes)`.
inline std::vector<std::string> faults_of(const TopologySpec& spec, const ParameterSet& values = round_values()) {
  const auto topology = build_topology(spec, values, round_types());
  std::vector<std::string> texts;
  if (topology) return texts;
  for (const auto& fault : topology.error()) {
    auto text = std::to_string(fault.location.line) + ": " + fault.message;
    for (const auto& note : fault.notes) text += " (" + note.text + ")";
    texts.push_back(text);
  }
  return texts;
}

inline DeviceId hca_of(const Topology& topology, int host_number, int ordinal = 0) {
  return topology.device_in_host(host_number, DeviceKind::hca, ordinal);
}

/// Names of the devices a route passes, ends included.
inline std::vector<std::string> stations(const Topology& topology, const std::vector<LinkId>& links) {
  std::vector<std::string> names;
  for (const auto link : links) {
    if (names.empty()) names.push_back(topology.device(topology.link(link).from).name);
    names.push_back(topology.device(topology.link(link).to).name);
  }
  return names;
}

}  // namespace fabricast::test
