// SPDX-License-Identifier: Apache-2.0
// The channels that NCCL's search finds between hosts, against cases worked through by hand from its source.
#include "nccl/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "nccl/channels.hpp"
#include "nccl/mesh.hpp"
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
  return test::graph_of(Setup(cluster_of(host, 2, nccl))).channels.size();
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

TEST_CASE("eight B200 with eight NDR ports: eight channels at 48 GB/s, 16 after doubling, alone 16 at 45, 32 after") {
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

TEST_CASE("between hosts channels of a mesh share no NVLink while there is a way that none has taken") {
  struct Case {
    const char *host, *network;
  };
  // Four channels of 12 GB/s over P100's links of 18, one each; over V100's of 20, one or two each.
  for (const Case one :
       {Case{"dgx-1-p100", "sb7800"}, Case{"dgx-1-v100", "sb7800"}, Case{"hpe-4a100-slingshot", "rosetta"}}) {
    CAPTURE(one.host);
    const Setup setup(test::scenario(fmt::format(
        "schema: fabricast/scenario/1\nname: s\ntopology: {{schema: fabricast/topology/1, name: t, hosts: [{{name: n, "
        "type: {}, count: 2}}], fabric: {{single_switch: {{switch: {}}}}}}}\nworkload: {{benchmark: "
        "all_reduce_perf}}\n",
        one.host, one.network)));
    const auto search = search_with_network(setup.context, setup.gpus());
    const auto lanes = direct_lanes(setup.loaded->topology, setup.gpus());
    REQUIRE(search.orders.size() > 1);
    std::map<std::pair<int, int>, int> uses;
    for (const auto& order : search.orders)
      for (std::size_t i = 0; i + 1 < order.size(); ++i) {
        const auto from = static_cast<std::size_t>(order[i]);
        const auto to = static_cast<std::size_t>(order[i + 1]);
        CHECK(++uses[{order[i], order[i + 1]}] * search.speed <= lanes[from][to] * 20.0 + 1e-6);
      }
  }
}

TEST_CASE("over NVSwitches a GPU hands on to its neighbour, and channels that begin apart stay apart") {
  // NCCL's own log of a DGX A100: 0 7 6 5 4 3 2 1; the other GPU below the switch ends it.
  const auto search = found({.hcas = beside_gpus("connectx-7-ndr", 8)});
  CHECK(search.orders.at(0) == std::vector{0, 7, 6, 5, 4, 3, 2, 1});
  CHECK(search.orders.at(1) == std::vector{1, 2, 3, 4, 5, 6, 7, 0});
  for (std::size_t place = 0; place < 8; ++place) {
    std::set<int> there;
    for (const auto& order : search.orders) there.insert(order[place]);
    CHECK(there.size() == search.orders.size());
  }
  // Without PXN and GPUDirect RDMA, too.
  for (const auto& order : found({.hcas = beside_gpus("connectx-7-ndr", 8)}, "{pxn: off, gdr_level: pix}").orders)
    CHECK((order.back() - order.front() == 1 || order.front() - order.back() == 1));
  // GPUs of one socket are equally far from an adapter on its root port: a chain goes down and ends at the neighbour
  // above.
  const auto far = found({.hcas = {{"connectx-7-ndr", "socket0"}}});
  REQUIRE_FALSE(far.orders.empty());
  CHECK(far.orders.at(0) == std::vector{0, 7, 6, 5, 4, 3, 2, 1});
  for (const auto& order : far.orders) CHECK(order.back() == order.front() + 1);
}

TEST_CASE("with NCCL_CROSS_NIC=1 a ring leaves by the adapter of its last GPU, without it by the one it came in by") {
  const PairedHost host{.hcas = beside_gpus("connectx-7-ndr", 8)};
  for (const auto* release : {"2.18", "2.28"}) {
    CAPTURE(release);
    const auto version = fmt::format("version: \"{}\"", release);
    const auto any = found(host, "{" + version + ", cross_nic: 1}");
    const auto own = found(host, "{" + version + "}");
    REQUIRE(any.hcas.size() == 8);
    CHECK(any.do_cross);
    CHECK_FALSE(own.do_cross);
    for (std::size_t c = 0; c < any.hcas.size(); ++c) {
      CHECK(any.hcas_out[c] == (any.hcas[c] + 1) % 8);
      CHECK(own.hcas_out[c] == own.hcas[c]);
      // Each GPU has the adapter of its own number.
      CHECK(any.orders[c].front() == any.hcas[c]);
      CHECK(any.orders[c].back() == any.hcas_out[c]);
    }
    CHECK(any.are_swapped == (std::string(release) == "2.28"));
  }
}

TEST_CASE("no HCA and no GPU slot carries more channels than NCCL grants it, and no HCA more than its rate") {
  test::Random random(7);
  for (int round = 0; round < 120; ++round) {
    CAPTURE(round);
    PairedHost host{.gpus = static_cast<int>(1 + random.next(8))};
    const auto count = 1 + random.next(8);
    for (std::uint64_t h = 0; h < count; ++h)
      host.hcas.push_back({random.pick<std::string>({"connectx-5-edr", "connectx-6-hdr", "connectx-7-ndr"}),
                           random.pick<std::string>({"sw0", "sw1", "sw2", "sw3", "socket0", "socket1"})});
    const int setting = round % 3;
    const bool is_old = round % 2 == 1;
    const Setup setup(
        cluster_of(host, 2, fmt::format("{{version: \"{}\", cross_nic: {}}}", is_old ? "2.18" : "2.28", setting)));
    const HostNics nics(setup.context, setup.gpus());
    const double inside = search_alone(setup.context, setup.gpus()).inside;
    const auto placed = place_channels(nics, network_speeds(is_old ? 218 : 228, 90), inside, Joint::nvswitches);
    REQUIRE_FALSE(placed.channels.empty());
    const bool is_paired = placed.do_cross && !is_old && setting == 2 && placed.channels.size() % 2 == 0;
    std::vector<double> rates(nics.hcas().size(), 0), into(nics.gpus().size(), 0), out(nics.gpus().size(), 0);
    auto rates_out = rates;
    for (std::size_t c = 0; c < placed.channels.size(); ++c) {
      const auto& one = placed.channels[c];
      if (is_paired) CHECK(one.hca_out == placed.channels[c ^ 1U].hca);
      if (setting == 0) CHECK(one.hca_out == one.hca);
      rates[one.hca] += placed.speed;
      rates_out[one.hca_out] += placed.speed;
      into[one.first] += placed.speed;
      out[nics.ring_sender(one.last, one.hca_out)] += placed.speed;
    }
    for (std::size_t h = 0; h < rates.size(); ++h) {
      CHECK(rates[h] <= nics.rate_gb_per_s(h) + 1e-9);
      CHECK(rates_out[h] <= nics.rate_gb_per_s(h) + 1e-9);
    }
    for (std::size_t g = 0; g < into.size(); ++g) {
      CHECK(into[g] <= nics.slot_gb_per_s(g) + 1e-9);
      CHECK(out[g] <= nics.slot_gb_per_s(g) + 1e-9);
    }
    if (nics.gpus().size() > 1) CHECK(placed.speed * static_cast<double>(placed.channels.size()) <= inside + 1e-9);
  }
}

namespace {

/// Four A100 in four NUMA domains of an EPYC, an adapter in two of them.
test::Setup across_domains(const char* release, const char* more = "") {
  return test::Setup(test::scenario(fmt::format(
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n    - "
      "{{name: n, count: 4, host: {{processor: epyc-milan-nps4, sockets: 4, devices: ["
      "{{name: gpu0, type: a100-sxm4-40, below: socket3, pcie: gen4 x16}}, "
      "{{name: gpu1, type: a100-sxm4-40, below: socket2, pcie: gen4 x16}}, "
      "{{name: gpu2, type: a100-sxm4-40, below: socket1, pcie: gen4 x16}}, "
      "{{name: gpu3, type: a100-sxm4-40, below: socket0, pcie: gen4 x16}}, "
      "{{name: hca0, type: slingshot-11, below: socket0, pcie: gen4 x16}}, "
      "{{name: hca1, type: slingshot-11, below: socket2, pcie: gen4 x16}}], nvlinks: ["
      "{{from: gpu0, to: gpu1, links: 4}}, {{from: gpu0, to: gpu2, links: 4}}, {{from: gpu0, to: gpu3, links: 4}}, "
      "{{from: gpu1, to: gpu2, links: 4}}, {{from: gpu1, to: gpu3, links: 4}}, {{from: gpu2, to: gpu3, links: 4}}]"
      "}}}}\n  fabric: {{single_switch: {{switch: rosetta, cable: 5 m}}}}\nsoftware: {{transport: tcp, nccl: "
      "{{version: \"{}\"{}}}}}\nworkload: {{benchmark: all_reduce_perf}}\n",
      release, more)));
}

}  // namespace

TEST_CASE("between NUMA domains of AMD: before 2.19 without limit, then 16 GB/s, from 2.21 on channels swap HCAs") {
  const auto search = [](const char* release, const char* more = "") {
    const auto setup = across_domains(release, more);
    return search_with_network(setup.context, setup.gpus());
  };
  const auto free = search("2.18");
  CHECK(free.speed == 24);
  CHECK(free.hcas == std::vector<int>{0, 1});
  CHECK(free.hcas_out == free.hcas);
  // Each HCA's own GPU receives, another sends.
  CHECK(free.orders[0].front() == 3);
  CHECK(free.orders[1].front() == 1);
  CHECK(free.orders[0].back() != 3);
  CHECK(free.orders[1].back() != 1);
  const auto limited = search("2.20", ", cross_nic: 0");
  CHECK(limited.speed == 12);
  CHECK(limited.hcas.size() == 4);
  CHECK(limited.hcas_out == limited.hcas);
  // By any HCA: its own domain's GPUs receive and send.
  const auto any = search("2.20");
  CHECK(any.do_cross);
  CHECK(any.speed == 24);
  CHECK(any.hcas == std::vector<int>{0, 1});
  CHECK(any.hcas_out == std::vector<int>{1, 0});
  // 24 GB/s, as no way crosses domains: in by the first HCA and its GPU, out by the second one's, and back.
  const auto swapped = search("2.21");
  CHECK(swapped.are_swapped);
  CHECK(swapped.speed == 24);
  CHECK(swapped.hcas == std::vector<int>{0, 1});
  CHECK(swapped.hcas_out == std::vector<int>{1, 0});
  CHECK(swapped.orders[0].front() == 3);
  CHECK(swapped.orders[0].back() == 1);
  CHECK(swapped.orders[1].front() == 1);
  CHECK(swapped.orders[1].back() == 3);
}

TEST_CASE("where channels swap HCAs every second host has them in each other's place: connections join equal HCAs") {
  const auto setup = across_domains("2.21");
  const auto& topology = setup.loaded->topology;
  const auto hosts = group_by_host(topology, topology.devices(DeviceKind::gpu));
  const auto graph = search_channels(setup.context, hosts);
  REQUIRE(graph.channels.size() == 4);
  for (const auto& channel : graph.channels) {
    for (std::size_t h = 0; h < hosts.size(); ++h) {
      const auto& next = channel[(h + 1) % hosts.size()];
      CHECK(topology.device(channel[h].hca_out).ordinal == topology.device(next.hca).ordinal);
      CHECK(topology.device(channel[h].sender).ordinal == topology.device(next.order.front()).ordinal);
    }
  }
}
