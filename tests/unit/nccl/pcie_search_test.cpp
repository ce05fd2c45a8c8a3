// SPDX-License-Identifier: Apache-2.0
// Channels of GPUs that PCIe joins, against cases worked through by hand from NCCL's source, and laws on random hosts.
#include "nccl/pcie_search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "nccl/channels.hpp"
#include "nccl/search.hpp"
#include "paths/guest.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/random.hpp"
#include "tests/unit/nccl/hosts.hpp"

using namespace fabricast;
using namespace fabricast::models;
using namespace fabricast::models::nccl;
using test::Setup;

namespace {

/// GPUs on root ports of one or two sockets, or in pairs below switches.
struct Host {
  std::string processor = "xeon-icelake", gpu = "a100-pcie-80", pcie = "gen4 x16";
  int gpus = 4, sockets = 1;
  bool has_switches = false;
  std::string virtualization;
};

Setup setup_of(const Host& host, const std::string& nccl = "{}") {
  std::string devices;
  for (int s = 0; s < host.sockets; ++s)
    devices += fmt::format("{{name: rc{0}, kind: root_complex, below: socket{0}}}, ", s);
  const auto socket_of = [&](int g) { return g * host.sockets / host.gpus; };
  for (int g = 0; g < host.gpus; ++g) {
    if (host.has_switches && g % 2 == 0)
      devices +=
          fmt::format("{{name: sw{}, kind: pcie_switch, below: rc{}, pcie: {}}}, ", g / 2, socket_of(g), host.pcie);
    const auto below = host.has_switches ? fmt::format("sw{}", g / 2) : fmt::format("rc{}", socket_of(g));
    devices += fmt::format("{{name: gpu{}, type: {}, below: {}, pcie: {}}}, ", g, host.gpu, below, host.pcie);
  }
  return Setup(test::scenario(fmt::format(
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n"
      "    - {{name: n, count: 1, {}host: {{processor: {}, sockets: {}, devices: [{}]}}}}\nsoftware: {{nccl: {}}}\n"
      "workload: {{benchmark: all_reduce_perf}}\n",
      host.virtualization.empty() ? "" : "virtualization: " + host.virtualization + ", ", host.processor, host.sockets,
      devices, nccl)));
}

struct Found {
  std::size_t channels = 0;
  double speed = 0;
};
Found found(const Host& host, const std::string& nccl = "{}") {
  const auto setup = setup_of(host, nccl);
  const auto graph = search_channels(setup.context, group_by_host(setup.loaded->topology, setup.gpus()));
  return {graph.channels.size(), graph.channel_gb_per_s};
}

void check(const Found& one, std::size_t channels, double speed) {
  CHECK(one.channels == channels);
  CHECK(one.speed == test::approx(speed));
}

const Host k_hopper{.processor = "xeon-emeraldrapids", .gpu = "h100-pcie", .pcie = "gen5 x16"};

}  // namespace

TEST_CASE("below one switch a ring has the slot's speed, on Intel's root ports 5/6 of it, 3/4 until 2.8") {
  const Host pair{.gpu = "v100-pcie-32", .pcie = "gen3 x16", .gpus = 2, .has_switches = true};
  check(found(pair, "{version: \"2.21\"}"), 2, 12);
  Host ports = pair;
  ports.has_switches = false;
  check(found(ports, "{version: \"2.21\"}"), 2, 10);
  check(found(ports, "{version: \"2.8\"}"), 2, 9);
  ports.processor = "epyc-milan";
  check(found(ports, "{version: \"2.21\"}"), 2, 12);
}

TEST_CASE("generation 5: on Intel one ring at 40 GB/s becomes two at 20, on AMD two fit at 24, all are doubled") {
  check(found(k_hopper), 4, 20);
  Host amd = k_hopper;
  amd.processor = "epyc-genoa";
  check(found(amd), 4, 24);
  check(found(k_hopper, "{version: \"2.17\"}"), 4, 20);  // 33 once is less than 20 twice
}

TEST_CASE("peer access switched off takes nothing from the links, but neighbours below a switch share its way up") {
  check(found(k_hopper, "{p2p: off}"), 4, 20);
  const Host pairs{.processor = "epyc-milan", .gpu = "a100-pcie-80", .pcie = "gen4 x16", .has_switches = true};
  check(found(pairs, "{version: \"2.18\"}"), 4, 12);  // 2 x 12 of 24 is more than 20
  check(found(pairs, "{version: \"2.18\", p2p: off}"), 2, 12);
}

TEST_CASE("a ring over two sockets has what NCCL plans for the way between them") {
  Host host{.sockets = 2, .has_switches = true};
  for (const auto& [processor, version, speed] :
       std::vector<std::tuple<const char*, const char*, double>>{{"xeon-icelake", "2.17", 9},
                                                                 {"xeon-icelake", "2.18", 10},
                                                                 {"epyc-milan", "2.18", 12},
                                                                 {"epyc-milan", "2.19", 15}}) {
    host.processor = processor;
    CHECK(found(host, fmt::format("{{version: \"{}\"}}", version)).speed == test::approx(speed));
  }
}

TEST_CASE("a guest that is not shown the tree plans with the GPUs' own slots") {
  Host host = k_hopper;
  host.gpus = 8;
  host.sockets = 2;
  host.has_switches = true;
  host.virtualization = "{mode: passthrough, hypervisor: kvm, guest_topology: hidden}";
  check(found(host), 4, 20);
  host.virtualization.clear();
  // Shown, two GPUs share the way up from their switch: 48 / 2.4.
  check(found(host, "{p2p: off}"), 2, 20);
}

TEST_CASE("GPUs on AMD's root ports have peer access, more than two until 2.22, on Intel's not but in 2.6 to 2.8") {
  const auto kind = [](const char* processor, const char* version, int gpus) {
    const auto setup =
        setup_of({.processor = processor, .gpus = 4, .sockets = 2}, fmt::format("{{version: \"{}\"}}", version));
    return kind_in_host(setup.context, setup.gpus()[0], setup.gpus()[1], gpus);
  };
  CHECK(kind("epyc-milan", "2.22", 4) == TransportKind::pcie);
  CHECK(kind("epyc-milan", "2.23", 4) == TransportKind::host_memory);
  CHECK(kind("epyc-milan", "2.23", 2) == TransportKind::pcie);
  CHECK(kind("xeon-icelake", "2.6", 4) == TransportKind::pcie);
  CHECK(kind("xeon-icelake", "2.8", 4) == TransportKind::pcie);
  CHECK(kind("xeon-icelake", "2.9", 4) == TransportKind::host_memory);
  CHECK(kind("xeon-broadwell", "2.6", 4) == TransportKind::host_memory);
  const auto across = setup_of({.gpus = 2, .sockets = 2}, "{version: \"2.8\"}");
  CHECK(kind_in_host(across.context, across.gpus()[0], across.gpus()[1], 2) == TransportKind::host_memory);
}

TEST_CASE("a guest that shows one NUMA node stages all GPUs in one memory, others in the memory of their socket") {
  for (const bool is_hidden : {true, false}) {
    Host host{.gpus = 8, .sockets = 2};
    host.virtualization =
        fmt::format("{{mode: passthrough, hypervisor: kvm, guest_topology: {}}}", is_hidden ? "hidden" : "shown");
    const auto setup = setup_of(host);
    const auto first = staging_memory(setup.context, setup.gpus().front());
    CHECK((first == staging_memory(setup.context, setup.gpus().back())) == is_hidden);
    CHECK(setup.loaded->topology.local_memory(setup.gpus().front()) !=
          setup.loaded->topology.local_memory(setup.gpus().back()));
  }
}

TEST_CASE("rings take no more than the links have, and as much at one of NCCL's speeds as fits") {
  test::Random random(11);
  for (int round = 0; round < 300; ++round) {
    const int version = random.pick<int>({206, 207, 208, 212, 216, 218, 221, 228});
    const int capability = random.pick<int>({60, 70, 80, 90, 100});
    const auto& speeds = speeds_in_host(version, capability);
    REQUIRE(std::is_sorted(speeds.rbegin(), speeds.rend()));
    const double slot = random.pick<double>({6, 12, 24, 48, 96});
    const PcieRings rings{slot, slot / random.pick<double>({1, 1.2, 2, 2.4, 4})};
    const auto placed = place_rings(rings, speeds, 16);
    CAPTURE(version);
    CAPTURE(capability);
    CAPTURE(rings.most);
    CHECK(placed.count >= 1);
    CHECK(std::find(speeds.begin(), speeds.end(), placed.speed) != speeds.end());
    if (rings.most >= speeds.back()) CHECK(placed.count * placed.speed <= rings.most * 1.01);
    // No speed above .49 of the one taken gives more.
    for (const double speed : speeds)
      if (speed > .49 * placed.speed && speed <= rings.most)
        CHECK(std::min(16.0, std::floor(rings.most / speed + 1e-9)) * speed <= placed.count * placed.speed + 1e-9);
  }
}

TEST_CASE("buffers in host memory are the receiver's, between hosts LL leaves by host memory and arrives on the GPU") {
  const auto setup = setup_of({.gpus = 2, .sockets = 2});
  const auto& topology = setup.loaded->topology;
  const auto route = route_in_host(setup.context, setup.gpus()[0], setup.gpus()[1], 2);
  REQUIRE(route.kind == TransportKind::host_memory);
  const auto touches = [&](DeviceId memory) {
    return std::ranges::any_of(route.crossings, [&](const Crossing& crossing) {
      if (!setup.context.resources.is_link(crossing.resource))
        return setup.context.resources.device(crossing.resource) == memory;
      const auto link = topology.link(LinkId{crossing.resource});
      return link.from == memory || link.to == memory;
    });
  };
  CHECK(touches(topology.local_memory(setup.gpus()[1])));
  CHECK_FALSE(touches(topology.local_memory(setup.gpus()[0])));
  const Setup pair(test::cluster_of({.hcas = test::beside_gpus("connectx-7-ndr", 8)}, 2));
  const auto gpu = pair.gpus().front();
  const auto hca = pair.loaded->topology.devices(DeviceKind::hca, 0).front();
  CHECK(sender_segment(pair.context, gpu, gpu, hca, {Buffers::host}).kind == TransportKind::network_staged);
  CHECK(sender_segment(pair.context, gpu, gpu, hca).kind == TransportKind::network);
  CHECK(receiver_segment(pair.context, hca, gpu).kind == TransportKind::network);
}

TEST_CASE("adapters read a GPU from before Ampere that has no NVLink only where it is alone in its host") {
  for (const auto* type : {"v100-pcie-16", "p100-pcie-16", "t4", "v100-sxm2-16", "a100-pcie-40"}) {
    CAPTURE(type);
    const bool has_nvlink = std::string(type) == "v100-sxm2-16";
    test::PairedHost host{.gpus = 1, .hcas = {{"connectx-6-hdr", "sw0"}}, .gpu = type, .has_nvswitch = false};
    if (has_nvlink) host = {.gpus = 2, .hcas = host.hcas, .gpu = type, .nvlinks = 6};
    const Setup pair(test::cluster_of(host, 2));
    const auto gpu = pair.gpus().front();
    const auto hca = pair.loaded->topology.devices(DeviceKind::hca, 0).front();
    const bool is_read_among_others = has_nvlink || std::string(type) == "a100-pcie-40";
    CHECK(sender_segment(pair.context, gpu, gpu, hca, {.gpus_of_host = 1}).kind == TransportKind::network);
    CHECK((sender_segment(pair.context, gpu, gpu, hca, {.gpus_of_host = 4}).kind == TransportKind::network) ==
          is_read_among_others);
  }
}
