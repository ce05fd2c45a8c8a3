// SPDX-License-Identifier: Apache-2.0
// What NCCL 2.28 itself found and planned for described hosts (calibration/data/h200-2gpu-nccl-plans): channels, trees,
// latencies and bandwidths.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

#include "nccl/facts.hpp"
#include "tests/support/approx.hpp"
#include "tests/unit/nccl/hosts.hpp"

using namespace fabricast;
using namespace fabricast::models;
using namespace fabricast::models::nccl;

namespace {

struct Planned {
  double latency_us = 0, gb_per_s = 0;  ///< 0 GB/s: not allowed
};
struct Row {
  std::string collective;
  std::vector<Planned> columns;  ///< tree LL, LL128, Simple, ring the same; or PAT
};
struct Machine {
  std::string shape, processor;
  int speed_mb = 0, gpus = 0, hosts = 0;
  int channels = 0;
  double channel_gb_per_s = 0;
  bool are_equal = false, has_plain_trees = false;
  std::vector<Row> rows, pat;
};

std::vector<Machine> machines() {
  std::ifstream in(std::string(FABRICAST_SOURCE_DIR) + "/calibration/data/h200-2gpu-nccl-plans/plans.txt");
  const std::regex head(R"(# shape (\w+) speed (\d+) processor (\w+) gpus_per_host (\d+) hosts (\d+))");
  const std::regex pattern(R"(Pattern (\d), .*nChannels (\d+), bw ([\d.]+)/([\d.]+), .*sameChannels (\d))");
  const std::regex number(R"(([\d.]+)/ *([\d.]+) \|)");
  std::vector<Machine> out;
  std::smatch found;
  for (std::string line; std::getline(in, line);) {
    if (std::regex_search(line, found, head)) {
      out.push_back({found[1], found[3], std::stoi(found[2]), std::stoi(found[4]), std::stoi(found[5])});
    } else if (std::regex_search(line, found, pattern)) {
      auto& machine = out.back();
      if (found[1] == "4") {
        machine.channels = std::stoi(found[2]);
        machine.channel_gb_per_s = std::stod(found[4]);
        machine.are_equal = found[5] == "1";
      } else {
        machine.has_plain_trees = found[1] == "3";
      }
    } else if (const auto bar = line.find(" |"); bar != std::string::npos && !out.empty()) {
      Row row{line.substr(0, bar), {}};
      for (std::sregex_iterator one(line.begin(), line.end(), number), end; one != end; ++one)
        row.columns.push_back({std::stod((*one)[1]), std::stod((*one)[2])});
      (row.columns.size() > 3 ? out.back().rows : out.back().pat).push_back(row);
    }
  }
  return out;
}

/// GPUs below switches of their own, or in pairs, and HCAs where the shape has them.
test::Setup setup_of(const Machine& machine) {
  const bool is_shared = machine.shape == "pairs" || machine.shape == "half";
  const bool is_each = machine.shape == "each" || machine.shape == "pairs" || machine.shape == "far";
  const int hcas = is_each ? machine.gpus : machine.shape == "half" ? machine.gpus / 2 : machine.shape == "two" ? 2 : 1;
  std::string devices;
  for (int g = 0; g < machine.gpus; ++g) {
    const int below = is_shared ? g / 2 : g;
    if (!is_shared || g % 2 == 0)
      devices += fmt::format("{{name: sw{}, kind: pcie_switch, below: socket0, pcie: gen5 x16}}, ", below);
    devices += fmt::format("{{name: gpu{}, type: h200-sxm, below: sw{}, pcie: gen5 x16}}, ", g, below);
  }
  const std::string type = machine.speed_mb == 400000   ? "connectx-7-400g"
                           : machine.speed_mb == 200000 ? "connectx-7-200g"
                                                        : "connectx-6-dx-100g";
  for (int h = 0; h < hcas; ++h) {
    std::string below = machine.shape == "each" ? fmt::format("sw{}", h) : fmt::format("sw{}", is_shared ? h / 2 : 0);
    if (machine.shape == "beside" || machine.shape == "far") below = "socket0";
    devices += fmt::format("{{name: hca{}, type: {}, below: {}, pcie: gen5 x16}}, ", h, type, below);
  }
  const std::string links = machine.gpus > 1 ? ", nvlinks: [{from: gpus, to: nvs, links: 18}]" : "";
  if (machine.gpus > 1) devices += "{name: nvs, type: nvswitch-3}";
  return test::Setup(test::scenario(fmt::format(
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n    - "
      "{{name: n, count: {}, host: {{processor: {}, sockets: 1, devices: [{}]{}}}}}\n  fabric: {{single_switch: "
      "{{switch: sn5600, rate: {} Gb/s}}}}\nsoftware: {{nccl: {{version: \"2.28.9\", nvls: off}}}}\nworkload: "
      "{{benchmark: all_reduce_perf}}\n",
      machine.hosts, machine.processor == "amd" ? "epyc-genoa" : "xeon-sapphirerapids", devices, links,
      machine.speed_mb / 1000)));
}

std::optional<Collective> collective_of(const std::string& name) {
  if (name == "AllReduce") return Collective::all_reduce;
  if (name == "AllGather") return Collective::all_gather;
  if (name == "ReduceScatter") return Collective::reduce_scatter;
  if (name == "Broadcast") return Collective::broadcast;
  return name == "Reduce" ? std::optional(Collective::reduce) : std::nullopt;
}

/// NCCL prints tenths.
bool agrees(double ours, double printed) { return std::abs(ours - printed) <= 0.051 + 1e-3 * printed; }

Planned ours_of(CommunicatorFacts facts, Collective collective, Algorithm algorithm, Protocol protocol) {
  facts.collective = collective;
  const auto at = [&](std::int64_t gib) {
    return estimated_time_us(facts, collective, algorithm, protocol, Bytes{gib << 30});
  };
  if (at(0) < 0) return {};
  return {at(0), static_cast<double>(8LL << 30) / (at(16) - at(8)) * 1e-3};
}

}  // namespace

TEST_CASE("channels, trees, latencies and bandwidths are those that NCCL planned for described hosts") {
  const auto all = machines();
  REQUIRE(all.size() == 72);
  int compared = 0;
  for (const auto& machine : all) {
    const auto setup = setup_of(machine);
    const auto graph = test::graph_of(setup);
    INFO(machine.shape << ", " << machine.speed_mb << " Mb/s, " << machine.processor << ", " << machine.gpus
                       << " GPUs per host, " << machine.hosts << " hosts");
    CHECK(graph.graph_channels == machine.channels);
    CHECK(graph.channel_gb_per_s == test::approx(machine.channel_gb_per_s));
    CHECK(graph.has_equal_channels == machine.are_equal);
    CHECK(graph.has_plain_trees == machine.has_plain_trees);
    const auto facts = facts_of(
        setup.context, group_by_host(setup.context.topology, setup.context.topology.devices(DeviceKind::gpu)), graph);
    for (const auto& row : machine.rows) {
      const auto collective = collective_of(row.collective).value();
      for (const auto algorithm : {Algorithm::tree, Algorithm::ring}) {
        if (algorithm == Algorithm::tree && collective != Collective::all_reduce) continue;
        for (const auto protocol : {Protocol::ll, Protocol::ll128, Protocol::simple}) {
          const auto& planned =
              row.columns[(algorithm == Algorithm::ring ? 3U : 0U) + static_cast<std::size_t>(protocol)];
          const auto ours = ours_of(facts, collective, algorithm, protocol);
          INFO(row.collective << " " << to_string(algorithm) << " " << to_string(protocol) << ": " << ours.latency_us
                              << " us, " << ours.gb_per_s << " GB/s, NCCL " << planned.latency_us << ", "
                              << planned.gb_per_s);
          ++compared;
          CHECK(agrees(ours.gb_per_s, planned.gb_per_s));
          if (planned.gb_per_s > 0) CHECK(agrees(ours.latency_us, planned.latency_us));
        }
      }
    }
  }
  CHECK(compared == 72 * 18);
}
