// SPDX-License-Identifier: Apache-2.0
// What packets carry: each transport its own where the fabric names no `mtu`.
#include <algorithm>
#include <cmath>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {

double payload(const std::string& type, std::optional<int> mtu = std::nullopt) {
  static const auto catalogue = load_whole_catalogue();
  FabricSpec fabric;
  fabric.mtu = mtu;
  return packet_payload(fabric, catalogue->parameters, type);
}

LoadedScenario pair(const std::string& more, const std::string& benchmark = "iperf3") {
  return test::scenario(
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: [{name: "
      "n, "
      "count: 2, host: {processor: epyc-rome, sockets: 1, devices: [{name: nic0, type: ethernet-25g, below: "
      "socket0}]}}]\n  fabric: {single_switch: {switch: ethernet-25g-tor" +
      more + "}}\nworkload: {benchmark: " + benchmark + "}\n");
}

}  // namespace

TEST_CASE("packets carry what their transport has by itself, or what the fabric's mtu leaves of it") {
  for (const auto* type : {"connectx-7-ndr", "connectx-6-hdr", "connectx-7-400g", "connectx-4-lx-25g"})
    CHECK(payload(type) == 4096);
  for (const auto* type : {"efa-100g", "efa-2x200g", "gvnic-200g"}) CHECK(payload(type) == 8192);
  for (const auto* type : {"ethernet-10g", "ethernet-25g"}) CHECK(payload(type) == 1448);
  CHECK(payload("ethernet-32g") == 1408);
  CHECK(payload("ena-25g") == 8948);
  CHECK(payload("slingshot-11") == 2048);
  CHECK(payload("aries") == 64);
  CHECK(payload("no-such-adapter") == 0);
  for (const int mtu : {300, 1023, 1024, 1448, 1500, 4096, 8192, 8948, 9000}) {
    CAPTURE(mtu);
    // RDMA has path MTUs, others any size.
    CHECK(payload("connectx-7-400g", mtu) == std::min(4096.0, std::exp2(std::floor(std::log2(mtu)))));
    CHECK(payload("ethernet-25g", mtu) == std::min(8948, mtu));
    CHECK(payload("efa-100g", mtu) == std::min(8192, mtu));
    CHECK(payload("aries", mtu) == 64);
  }
}

TEST_CASE("TCP over plain Ethernet runs with frames of 1500 B unless the fabric names others, and says so") {
  const auto busbw = [](const std::string& more) {
    return test::run(pair(more)).workloads[0].rows.back().algbw.bytes_per_s;
  };
  CHECK(busbw("") == busbw(", mtu: 1448 B"));
  CHECK(busbw("") < 0.98 * busbw(", mtu: 8948 B"));
  const auto says = [](const std::string& more) {
    const auto all = test::run(pair(more)).workloads[0].assumptions;
    return std::ranges::find(all, "packets of ethernet-25g carry 1448 B: the fabric names no `mtu`") != all.end();
  };
  CHECK(says(""));
  CHECK_FALSE(says(", mtu: 1448 B"));
}

TEST_CASE("one flow over adapters with few bytes around a packet is as fast in packets as in the fluid engine") {
  const auto loaded = test::scenario(
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: [{name: "
      "n, "
      "count: 2, type: pizdaint-xc50}]\n  fabric: {single_switch: {switch: aries-router}}\nworkload: {benchmark: "
      "traffic, sizes: [4 MB], flows: [{from: n0, to: n1}]}\n");
  for (const double header : {0.0, 1.0, 3.099, 19.0, 20.0, 21.0, 60.0}) {
    CAPTURE(header);
    auto own = loaded;
    auto parameter = own.parameters.at("aries.packet_header");
    parameter.value = header;
    own.parameters.set(parameter);
    SimulateOptions options;
    const auto fluid = test::run(own, options).workloads[0].rows.at(0).time.seconds();
    options.fidelity = Fidelity::packet;
    CHECK(test::run(own, options).workloads[0].rows.at(0).time.seconds() == test::approx(fluid).epsilon(0.01));
  }
}
