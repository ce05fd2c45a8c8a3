// SPDX-License-Identifier: Apache-2.0
// The channels that NCCL's search finds between hosts, against cases worked through by hand from its source.
#include "nccl/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "nccl/channels.hpp"
#include "tests/support/random.hpp"
#include "tests/unit/nccl/hosts.hpp"

using namespace fabricast;
using namespace fabricast::models;
using namespace fabricast::models::nccl;
using test::beside_gpus;
using test::cluster_of;
using test::HcaAt;
using test::PairedHost;
using test::Setup;

namespace {

HostSearch found(const PairedHost& host, const std::string& nccl = "{}") {
  const Setup setup(cluster_of(host, 2, nccl));
  return search_with_network(setup.context, setup.gpus());
}

std::map<int, int> channels_by_hca(const HostSearch& search) {
  std::map<int, int> out;
  for (const int hca : search.hcas) ++out[hca];
  return out;
}

std::size_t doubled(const PairedHost& host, const std::string& nccl = "{}") {
  const Setup setup(cluster_of(host, 2, nccl));
  return search_channels(setup.context,
                         group_by_host(setup.loaded->topology, setup.context.topology.devices(DeviceKind::gpu)))
      .channels.size();
}

PairedHost a100(int gpus, std::vector<HcaAt> hcas) {
  return {.gpus = gpus,
          .hcas = std::move(hcas),
          .gpu = "a100-sxm4-40",
          .processor = "epyc-rome",
          .pcie = "gen4 x16",
          .nvlinks = 12};
}

}  // namespace

TEST_CASE("eight H100 with eight NDR ports: eight channels at 45 GB/s, 16 after doubling") {
  const PairedHost host{.hcas = beside_gpus("connectx-7-ndr", 8)};
  const auto search = found(host);
  CHECK(search.hcas.size() == 8);
  CHECK(search.speed == 45);  // 8 x 48 is more than the 360 GB/s of NVLink
  CHECK(channels_by_hca(search).size() == 8);
  CHECK(doubled(host) == 16);
}

TEST_CASE("eight B200 with eight NDR ports: eight channels at 48 GB/s, 16 after doubling; alone 16 at 45, 32 after") {
  const PairedHost host{.hcas = beside_gpus("connectx-7-ndr", 8), .gpu = "b200-sxm"};
  const auto search = found(host);
  CHECK(search.hcas.size() == 8);
  CHECK(search.speed == 48);
  CHECK(doubled(host) == 16);
  const Setup alone(cluster_of(host, 1, "{}"));
  const auto graph = search_channels(
      alone.context, group_by_host(alone.loaded->topology, alone.context.topology.devices(DeviceKind::gpu)));
  CHECK(graph.channel_gb_per_s == 45);
  CHECK(graph.channels.size() == 32);
}

TEST_CASE("no more channels are searched than half of what the release has") {
  const PairedHost host{.hcas = beside_gpus("connectx-5-edr", 24)};
  for (const auto& row :
       std::vector<std::pair<std::string, std::size_t>>{{"2.4", 8}, {"2.14", 16}, {"2.24", 16}, {"2.27", 24}}) {
    CAPTURE(row.first);
    CHECK(found(host, fmt::format("{{version: \"{}\"}}", row.first)).hcas.size() == row.second);
  }
}

TEST_CASE("eight H100 with four NDR ports: four channels at 48 GB/s become eight at 24, 16 after doubling") {
  const PairedHost host{.hcas = beside_gpus("connectx-7-ndr", 4)};
  const auto search = found(host);
  CHECK(search.hcas.size() == 8);
  CHECK(search.speed == 24);
  for (const auto& [hca, channels] : channels_by_hca(search)) CHECK(channels == 2);
  CHECK(doubled(host) == 16);
}

TEST_CASE("A100 with HDR ports: a channel of 24 GB/s each, of 12 GB/s where NCCL takes the slots for generation 3") {
  const auto search = found(a100(8, beside_gpus("connectx-6-hdr", 4)), "{version: \"2.18\"}");
  CHECK(search.hcas.size() == 4);
  CHECK(search.speed == 24);
  const auto old = found(a100(8, beside_gpus("connectx-6-hdr", 4)), "{version: \"2.8\"}");
  CHECK(old.hcas.size() == 4);
  CHECK(old.speed == 12);
}

TEST_CASE("one faster HCA among eight keeps the seven others: two channels of 24 GB/s more") {
  auto hcas = beside_gpus("connectx-6-hdr", 8);
  hcas[3].type = "connectx-7-ndr";
  const auto search = found({.hcas = hcas});
  CHECK(search.speed == 24);
  CHECK(search.hcas.size() == 9);
  auto by_hca = channels_by_hca(search);
  CHECK(by_hca.size() == 8);
  CHECK(by_hca[3] == 2);  // 50 GB/s: 24 and 24
  CHECK(by_hca[2] == 1);
}

TEST_CASE("a slower HCA gets no channel while the others give more without it") {
  auto hcas = beside_gpus("connectx-7-ndr", 4);
  hcas.push_back({"connectx-5-edr", "sw0"});
  // 4 x 48; at 12 GB/s 16 channels of the four and one more would be 17 x 12 = 204, but 12 / 48 is below .49.
  const auto by_hca = channels_by_hca(found({.hcas = hcas}));
  CHECK(by_hca.size() == 4);
  CHECK_FALSE(by_hca.contains(4));
}

TEST_CASE("HCAs on root ports get no channel while one hangs below the GPUs' switches") {
  auto hcas = beside_gpus("connectx-6-hdr", 4);
  hcas.push_back({"connectx-6-hdr", "socket0"});
  const auto search = found({.hcas = hcas});
  CHECK(search.hcas.size() == 4);
  CHECK_FALSE(channels_by_hca(search).contains(4));
}

TEST_CASE(
    "HCAs on root ports get the channels where no other is there, those of another socket only without one near") {
  const std::vector<HcaAt> both{{"connectx-6-hdr", "socket0"}, {"connectx-6-hdr", "socket1"}};
  CHECK(channels_by_hca(found(a100(8, both))).size() == 2);
  // With GPUs on socket 0 only, the HCA of socket 1 is SYS away.
  const auto near = channels_by_hca(found(a100(4, both)));
  CHECK(near.size() == 1);
  CHECK(near.contains(0));
  CHECK(channels_by_hca(found(a100(4, {{"connectx-6-hdr", "socket1"}}))).size() == 1);
}

TEST_CASE("HCAs beside GPUs that do not take part get no channel") {
  const Setup setup(cluster_of({.hcas = beside_gpus("connectx-7-ndr", 8)}, 2));
  const auto gpus = setup.gpus();
  const auto search = search_with_network(setup.context, {gpus[0], gpus[1]});
  const auto by_hca = channels_by_hca(search);
  CHECK(by_hca.size() == 2);
  CHECK(by_hca.contains(0));
  CHECK(by_hca.contains(1));
}

TEST_CASE("one GPU per host has channels as fast as its slot, whatever the number of HCAs") {
  const Setup setup(cluster_of({.hcas = beside_gpus("connectx-7-ndr", 8)}, 2));
  const auto search = search_with_network(setup.context, {setup.gpus()[0]});
  CHECK(search.speed * static_cast<double>(search.hcas.size()) == 48);
  CHECK(channels_by_hca(search).size() == 1);
}

TEST_CASE("an HCA as wide as several channels carries several") {
  const auto search = found(a100(2, {{"connectx-6-hdr", "sw0"}}), "{version: \"2.28\"}");
  CHECK(search.hcas.size() == 1);
  CHECK(search.speed == 24);
}

TEST_CASE("the HCA's neighbour receives, another GPU sends: the other below the switch, with PXN any handed over") {
  const auto two = found({.hcas = beside_gpus("connectx-7-ndr", 4)});
  for (std::size_t c = 0; c < two.orders.size(); ++c) {
    const int pair = two.hcas[c];
    CHECK(two.orders[c].front() / 2 == pair);
    CHECK(two.orders[c].back() / 2 == pair);
    CHECK(two.orders[c].front() != two.orders[c].back());
    CHECK(two.senders[c] == two.orders[c].back());
  }
  // One GPU per switch: the last GPU of a chain is far from the HCA.
  const Setup setup(cluster_of({.hcas = beside_gpus("connectx-7-ndr", 4)}, 2));
  const auto gpus = setup.gpus();
  const auto search = search_with_network(setup.context, {gpus[0], gpus[2], gpus[4], gpus[6]});
  for (std::size_t c = 0; c < search.orders.size(); ++c) {
    CHECK(search.orders[c].front() == search.hcas[c]);
    CHECK(search.senders[c] == search.orders[c].front());
    CHECK(search.orders[c].back() != search.orders[c].front());
  }
}

TEST_CASE("speeds between nodes by release") {
  const auto has = [](int version, int capability, double speed) {
    const auto& speeds = network_speeds(version, capability);
    return std::find(speeds.begin(), speeds.end(), speed) != speeds.end();
  };
  CHECK(network_speeds(206, 70).front() == 24);
  CHECK(network_speeds(207, 70).front() == 42);
  CHECK_FALSE(has(207, 70, 30));
  CHECK(has(208, 80, 30));
  CHECK(network_speeds(210, 80).front() == 48);
  CHECK_FALSE(has(215, 80, 28));
  CHECK(has(216, 80, 28));
  CHECK_FALSE(has(217, 90, 40));
  CHECK(has(218, 90, 40));
  CHECK_FALSE(has(218, 90, 22));
  CHECK(has(219, 90, 22));
  CHECK_FALSE(has(228, 80, 45));
  for (const int version : {205, 206, 207, 208, 210, 216, 218, 219, 228}) {
    for (const int capability : {70, 80, 90}) {
      const auto& speeds = network_speeds(version, capability);
      CHECK(std::is_sorted(speeds.rbegin(), speeds.rend()));
      CHECK(speeds.back() == .12);
    }
  }
}

TEST_CASE("no HCA and no GPU slot carries more channels than NCCL grants it, and no HCA more than its rate") {
  test::Random random(7);
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    PairedHost host{.gpus = static_cast<int>(1 + random.next(8))};
    const auto count = 1 + random.next(8);
    for (std::uint64_t h = 0; h < count; ++h)
      host.hcas.push_back({random.pick<std::string>({"connectx-5-edr", "connectx-6-hdr", "connectx-7-ndr"}),
                           random.pick<std::string>({"sw0", "sw1", "sw2", "sw3", "socket0", "socket1"})});
    const Setup setup(cluster_of(host, 2));
    const HostNics nics(setup.context, setup.gpus());
    const double inside = search_alone(setup.context, setup.gpus()).inside;
    const auto placed = place_channels(nics, network_speeds(228, 90), inside);
    REQUIRE_FALSE(placed.channels.empty());
    std::vector<double> rates(nics.hcas().size(), 0), into(nics.gpus().size(), 0), out(nics.gpus().size(), 0);
    for (const auto& one : placed.channels) {
      rates[one.hca] += placed.speed;
      into[one.first] += placed.speed;
      out[nics.ring_sender(one.last, one.hca)] += placed.speed;
    }
    for (std::size_t h = 0; h < rates.size(); ++h) CHECK(rates[h] <= nics.rate_gb_per_s(h) + 1e-9);
    for (std::size_t g = 0; g < into.size(); ++g) {
      CHECK(into[g] <= nics.slot_gb_per_s(g) + 1e-9);
      CHECK(out[g] <= nics.slot_gb_per_s(g) + 1e-9);
    }
    if (nics.gpus().size() > 1) CHECK(placed.speed * static_cast<double>(placed.channels.size()) <= inside + 1e-9);
  }
}
