// SPDX-License-Identifier: Apache-2.0
// The packet engine behind scenarios: agreement with the fluid engine where nothing is congested, closed forms where it
// is, and what the report says.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <set>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

Prediction packets(const LoadedScenario& loaded, bool shortcuts = true) {
  SimulateOptions options;
  options.fidelity = Fidelity::packet;
  options.packet_shortcuts = shortcuts;
  return test::run(loaded, options);
}

Prediction packets(const std::string& name, const std::vector<Setting>& settings = {}) {
  return packets(test::shipped(name, settings));
}

/// Greatest relative difference between the engines over all rows.
double disagreement(const std::string& name, const std::vector<Setting>& settings = {}) {
  const auto loaded = test::shipped(name, settings);
  const auto fluid = test::run(loaded);
  const auto packet = packets(loaded);
  double most = 0;
  REQUIRE(fluid.workloads[0].rows.size() == packet.workloads[0].rows.size());
  for (std::size_t r = 0; r < fluid.workloads[0].rows.size(); ++r) {
    const auto a = static_cast<double>(fluid.workloads[0].rows[r].time.ps);
    const auto b = static_cast<double>(packet.workloads[0].rows[r].time.ps);
    CAPTURE(fluid.workloads[0].rows[r].size.value);
    CHECK(std::abs(b / a - 1) < 0.01);
    most = std::max(most, std::abs(b / a - 1));
  }
  return most;
}

const FlowTime& flow(const Row& row, const std::string& part) {
  for (const auto& one : row.flows) {
    if (one.name.find(part) != std::string::npos) return one;
  }
  FAIL("no such flow");
  return row.flows.front();
}

double seconds(const FlowTime& flow) { return flow.completion().seconds(); }

const Row& only_row(const Prediction& prediction) { return prediction.workloads[0].rows.at(0); }

}  // namespace

TEST_CASE("uncongested, packets take the time of the fluid engine within 1 %: point to point, host and device") {
  CHECK(disagreement("osu-latency-fdr-gpudirect.yaml") < 0.01);
  CHECK(disagreement("osu-latency-fdr-host.yaml") < 0.01);
  CHECK(disagreement("osu-bw-fdr-gpudirect.yaml") < 0.01);
  const std::vector<Setting> perftest{{"workload.benchmark", "ib_write_bw"}};
  CHECK(disagreement("osu-bw-fdr-gpudirect.yaml", perftest) < 0.01);
  CHECK(disagreement("osu-bw-fdr-gpudirect.yaml", {{"workload.benchmark", "osu_bibw"}}) < 0.01);
}

TEST_CASE("uncongested, packets take the time of the fluid engine within 1 %: collectives") {
  CHECK(disagreement("allreduce-dgx-a100-pair.yaml", {{"workload.sizes", "[1 KiB, 1 MiB, 64 MiB]"}}) < 0.01);
  CHECK(disagreement("traffic-ring-all-reduce-64.yaml", {{"topology.hosts.node.count", "8"}}) < 0.01);
  const std::vector<Setting> ring{{"workload.sizes", "[1 MiB, 64 MiB]"}, {"workload.algorithm", "ring"}};
  CHECK(disagreement("allreduce-dgx-a100-16.yaml", ring) < 0.01);
  CHECK(disagreement("allreduce-roce-sn2700.yaml", {{"workload.sizes", "[64 KiB, 16 MiB]"}}) < 0.01);
}

TEST_CASE(
    "two children of a tree send to one HCA: a packet that waits holds up those behind it unless lanes hold all") {
  const auto times = [](const std::string& lanes) {
    const auto loaded = test::scenario(
        "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: "
        "[{name: dgx, count: 4, type: dgx-a100}]\n  fabric: {fat_tree: {switch: qm8700, oversubscription: 1, cable: "
        "10 m, lossless: {vl_buffer: " +
        lanes + "}}}\nworkload: {benchmark: all_reduce_perf, sizes: [64 MiB], algorithm: tree, protocol: simple}\n");
    return std::pair(only_row(test::run(loaded)).time.seconds(), only_row(packets(loaded)).time.seconds());
  };
  const auto [bound, ample] = times("64 MiB");
  CHECK(ample == test::approx(bound).epsilon(0.01));
  CHECK(times("64 KiB").second > 1.02 * ample);
}

TEST_CASE("two jobs that share HCAs take the time of the fluid engine within 1 %") {
  CHECK(disagreement("two-jobs.yaml") < 0.01);
  CHECK(disagreement("two-jobs-same-gpus.yaml") < 0.01);
}

TEST_CASE("an interrupted packet run has the flows and counters of what happened so far") {
  std::atomic<bool> stop = false;
  double last = 0;
  SimulateOptions options;
  options.fidelity = Fidelity::packet;
  options.stop = &stop;
  options.progress = [&](double share) {
    CHECK(share >= last);
    last = share;
    if (share > 0.1) stop = true;
  };
  const auto prediction =
      test::run(test::shipped("traffic-permutation-128.yaml", {{"workload.sizes", "[8 MB]"}}), options);
  CHECK(prediction.is_interrupted);
  const auto& row = only_row(prediction);
  CHECK(row.fabric->stop == "interrupted");
  CHECK(row.fabric->packets > 1000);
  CHECK(row.flows.size() == 128);
  CHECK(std::any_of(row.flows.begin(), row.flows.end(), [](const FlowTime& one) { return one.end.ps < 0; }));
}

// The HCA's own 0.8 us per message stand where that simulator waits 1 us for an acknowledgement.
TEST_CASE("a ring all-reduce of 64 MiB on 8 and 64 hosts is within 3 % of ideal and of a packet simulator's figures") {
  for (const auto& [hosts, peer_ms] : {std::pair("8", 4.931), std::pair("64", 5.803)}) {
    const auto ring = packets("traffic-ring-all-reduce-64.yaml", {{"topology.hosts.node.count", hosts}});
    CHECK(only_row(ring).time.us() / 1000 == test::approx(peer_ms).epsilon(0.03));
    const double n = std::stod(hosts);
    // 82 bytes around every 4096; 25 GB/s; two cables of 0.5 us per step.
    const double ideal_ms = 2 * (n - 1) * (67'108'864 / n * (4096 + 82) / 4096 / 25e6 + 1e-3);
    CHECK(only_row(ring).time.us() / 1000 == test::approx(ideal_ms).epsilon(0.03));
    CHECK(only_row(ring).fabric->lossless_drops == 0);
  }
}

TEST_CASE("incast of N hosts lasts as long as N messages take on one link, and nobody gets less than the others") {
  for (const auto* senders : {"2", "4", "7"}) {
    const auto row =
        only_row(packets("traffic-incast-roce.yaml", {{"workload.senders", senders}, {"workload.sizes", "[20 MB]"}}));
    const double n = std::stod(senders);
    // 82 bytes around every 4096; 12.5 GB/s.
    const double law = n * std::ceil(20e6 / 4096) * (82 + 20e6 / std::ceil(20e6 / 4096)) / 12.5e9;
    CHECK(row.time.seconds() == test::approx(law).epsilon(0.001));
    CHECK(row.fabric->lossless_drops == 0);
    double least = 1e9;
    double most = 0;
    for (const auto& one : row.flows) {
      least = std::min(least, seconds(one));
      most = std::max(most, seconds(one));
    }
    CHECK(least > 0.9 * most);
  }
}

TEST_CASE("the victim of a trunk is paused with the guilty, named, and goes free with DCQCN") {
  const auto pfc = only_row(packets("traffic-victim-pfc.yaml"));
  const auto dcqcn = only_row(packets("traffic-victim-dcqcn.yaml"));
  // While all send, each of the three trunk flows gets a sixth of the link, each local one a third.
  CHECK(seconds(flow(pfc, "local")) == test::approx(3 * 10e6 / 12.25e9).epsilon(0.05));
  CHECK(seconds(flow(pfc, "victim")) > 0.95 * seconds(flow(pfc, "trunk")));
  CHECK(seconds(flow(dcqcn, "victim")) < 0.6 * seconds(flow(pfc, "victim")));
  REQUIRE(pfc.fabric->victims.size() == 1);
  CHECK(pfc.fabric->victims[0].flow.find("victim") != std::string::npos);
  CHECK(pfc.fabric->victims[0].root.find("leaf0 -> node0.hca0") == 0);
  CHECK(dcqcn.fabric->victims.empty());
  CHECK(dcqcn.fabric->notifications > 0);
  CHECK(pfc.fabric->notifications == 0);
}

TEST_CASE("the pause tree leads from the congested port over the spine to the senders") {
  const auto row = only_row(packets("traffic-victim-pfc.yaml"));
  std::set<std::string> stopped;
  for (const auto& edge : row.fabric->pause_tree) {
    if (edge.root.find("leaf0 -> node0.hca0") == 0) stopped.insert(edge.paused.substr(0, edge.paused.find(" (")));
  }
  for (const auto* link : {"node1.hca0 -> leaf0", "node2.hca0 -> leaf0", "spine0 -> leaf0", "leaf1 -> spine0"})
    CHECK(stopped.count(link) == 1);
}

TEST_CASE("headroom below the round trip loses packets of a lossless class, derived headroom loses none") {
  const auto little = only_row(packets("traffic-headroom-too-small.yaml"));
  CHECK(little.fabric->lossless_drops > 0);
  CHECK(little.fabric->retransmitted > 0);
  const auto enough = only_row(
      packets("traffic-headroom-too-small.yaml", {{"topology.fabric.single_switch.lossless.headroom", "auto"}}));
  CHECK(enough.fabric->lossless_drops == 0);
  CHECK(enough.time < little.time);
  for (const auto& port : enough.fabric->ports) CHECK(port.headroom_used <= port.headroom);
}

TEST_CASE("a circle of switches deadlocks and says who waits for whom, up-down routing finishes") {
  const auto stuck = only_row(packets("traffic-deadlock.yaml"));
  CHECK(stuck.fabric->stop == "deadlock");
  CHECK(stuck.fabric->wait_cycle.size() == 5);
  CHECK(stuck.flows[0].end.ps < 0);
  const auto free = only_row(packets("traffic-deadlock.yaml", {{"topology.fabric.list.routing", "up_down"}}));
  CHECK(free.fabric->is_finished());
  for (const auto& one : free.flows) CHECK(one.end.ps > 0);
}

namespace {

// Five switches in a circle with an InfiniBand host each, who sends two on; two packets per lane.
Row circle_of_lanes(const std::string& lanes) {
  const auto loaded = test::scenario(
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: circle\n  hosts: "
      "[{name: "
      "node, count: 5, type: server-2s-rome-1a100}]\n  fabric:\n    torus: {switch: qm8700, dimensions: [5], cable: 5 "
      "m, "
      "lossless: {virtual_lanes: " +
      lanes +
      ", vl_buffer: 8 KiB}}\nworkload:\n  benchmark: traffic\n  sizes: [4 MB]\n  flows: [{from: node0, to: node2}, "
      "{from: "
      "node1, to: node3}, {from: node2, to: node4}, {from: node3, to: node0}, {from: node4, to: node1}]\n");
  return only_row(packets(loaded));
}

}  // namespace

TEST_CASE("a torus with one lane deadlocks packet by packet, with two it does not: as check says") {
  const auto stuck = circle_of_lanes("1");
  CHECK(stuck.fabric->stop == "deadlock");
  CHECK(stuck.fabric->wait_cycle.size() == 5);
  const auto free = circle_of_lanes("2");
  CHECK(free.fabric->is_finished());
  CHECK(free.fabric->lossless_drops == 0);
  const auto in_lane = [&](int lane) {
    return std::count_if(free.fabric->ports.begin(), free.fabric->ports.end(),
                         [&](const PortCounters& port) { return port.priority == lane && port.sent > 1_MiB; });
  };
  CHECK(in_lane(0) > 0);
  CHECK(in_lane(1) > 0);
}

TEST_CASE("service levels are dealt out over the virtual lanes") {
  const auto level_5 = [](const std::string& lanes) {
    return only_row(
        packets("traffic-permutation-128.yaml",
                {{"workload.sizes", "[100 kB]"},
                 {"workload.transport.priority", "5"},
                 {"topology.fabric.fat_tree.lossless", "{flow_control: credits, virtual_lanes: " + lanes + "}"}}));
  };
  for (const auto& [lanes, lane] : {std::pair("1", 0), std::pair("2", 1), std::pair("4", 1)}) {
    const auto row = level_5(lanes);
    CHECK(row.flows[0].priority == lane);
    CHECK(row.fabric->is_finished());
    for (const auto& port : row.fabric->ports) {
      CHECK(port.priority == lane);
      CHECK(port.is_lossless);
    }
  }
}

TEST_CASE("auto says where packets would change the answer, and is silent where they would not") {
  const auto automatic = [](const std::string& name, const std::vector<Setting>& settings = {}) {
    SimulateOptions options;
    options.fidelity = Fidelity::automatic;
    const auto prediction = test::run(test::shipped(name, settings), options);
    std::string all;
    for (const auto& one : prediction.workloads[0].assumptions) all += one + "\n";
    return all;
  };
  CHECK(automatic("traffic-incast-roce.yaml").find("is asked for 7.0 times its rate") != std::string::npos);
  CHECK(automatic("traffic-ring-all-reduce-64.yaml").find("no link is oversubscribed") != std::string::npos);
  // InfiniBand: an all-to-all over an oversubscribed tree, and an all-reduce of two hosts.
  const auto shuffle = automatic("what-if-oversubscribed.yaml", {{"workload.sizes", "[16 MiB]"}});
  CHECK(shuffle.find("where credits run out") != std::string::npos);
  CHECK(automatic("allreduce-dgx-a100-pair.yaml").find("no link is oversubscribed") != std::string::npos);
  // RoCE without a word about its switches: judged by the defaults that the packet engine would take.
  const auto silent = automatic("allreduce-roce-sn2700.yaml", {{"workload.sizes", "[8 MiB]"}});
  CHECK(silent.find("the topology does not say how its switches are configured") != std::string::npos);
  // TCP is not RDMA.
  const auto tcp =
      automatic("allreduce-roce-sn2700.yaml", {{"workload.sizes", "[8 MiB]"}, {"software.transport", "tcp"}});
  CHECK(tcp.find("no link is oversubscribed") != std::string::npos);
}

TEST_CASE("TCP on the packet engine is said to travel as RDMA") {
  const auto prediction = packets(
      test::shipped("allreduce-roce-sn2700.yaml", {{"workload.sizes", "[64 KiB]"}, {"software.transport", "tcp"}}));
  const auto& all = prediction.workloads[0].assumptions;
  CHECK(std::any_of(all.begin(), all.end(), [](const auto& one) { return one.find("TCP travels as RDMA") == 0; }));
}

TEST_CASE("several queue pairs, READ, spraying and adaptive routing carry the same bytes") {
  for (const auto& settings : std::vector<std::vector<Setting>>{{{"workload.queue_pairs", "4"}},
                                                                {{"workload.transport.verb", "read"}},
                                                                {{"workload.transport.routing", "spray"}},
                                                                {{"workload.transport.routing", "adaptive"}}}) {
    auto all = settings;
    all.push_back({"workload.sizes", "[500 kB]"});
    const auto row = only_row(packets("traffic-permutation-128.yaml", all));
    CAPTURE(settings[0].path);
    CAPTURE(settings[0].value);
    CHECK(row.fabric->is_finished());
    CHECK(row.fabric->lossless_drops == 0);
    CHECK(row.fabric->packets >= 128 * 123);
    for (const auto& one : row.flows) CHECK(one.completion() >= one.alone - 1_us);
  }
}

TEST_CASE("spraying removes the collisions of hashed routes") {
  const auto hashed = only_row(packets("traffic-permutation-128.yaml"));
  const auto sprayed = only_row(packets("traffic-permutation-128.yaml", {{"workload.transport.routing", "spray"}}));
  CHECK(sprayed.time.seconds() < 0.6 * hashed.time.seconds());
}

TEST_CASE("the same command gives the same numbers, with and without the engine's shortcuts") {
  const auto loaded = test::shipped("traffic-victim-pfc.yaml", {{"workload.sizes", "[1 MB]"}});
  const auto first = only_row(packets(loaded));
  const auto again = only_row(packets(loaded));
  const auto plain = only_row(packets(loaded, false));
  for (std::size_t f = 0; f < first.flows.size(); ++f) {
    CHECK(first.flows[f].end == again.flows[f].end);
    CHECK(first.flows[f].end == plain.flows[f].end);
  }
  CHECK(first.fabric->pauses == plain.fabric->pauses);
}

TEST_CASE("terms of a packet row add up to its time, and time series are sampled when asked for") {
  SimulateOptions options;
  options.fidelity = Fidelity::packet;
  options.sample_interval = 10_us;
  const auto row = only_row(test::run(test::shipped("traffic-victim-pfc.yaml"), options));
  Duration sum;
  for (const auto& term : row.terms) sum += term.time;
  CHECK(sum == row.time);
  CHECK(row.fabric->queues.size() > 100);
  Bytes deepest;
  for (const auto& point : row.fabric->queues) deepest = std::max(deepest, point.queue);
  CHECK(deepest > 100_KiB);
  CHECK(row.fabric->rates.size() > 100);
}

TEST_CASE("workloads that run together must agree on what holds for the whole fabric") {
  const auto loaded =
      test::scenario("schema: fabricast/scenario/1\nname: s\ntopology: " + std::string(FABRICAST_SOURCE_DIR) +
                     "/topologies/roce-sn2700.yaml\nworkloads:\n"
                     "  - {benchmark: traffic, pattern: incast, transport: {routing: ecmp}}\n"
                     "  - {benchmark: traffic, pattern: permutation, transport: {routing: spray}}\n");
  SimulateOptions options;
  options.fidelity = Fidelity::packet;
  const auto refused = simulate(loaded.topology, loaded.scenario, loaded.parameters, options);
  REQUIRE_FALSE(refused);
  CHECK(test::shown(refused.error()).find("different transports") != std::string::npos);
}

TEST_CASE("patterns that the topology has no room for, and ends that do not exist, are refused with the reason") {
  const auto refused = [](const std::vector<Setting>& settings) {
    const auto loaded = test::shipped("traffic-flows-two-classes.yaml", settings);
    const auto made = simulate(loaded.topology, loaded.scenario, loaded.parameters, {});
    REQUIRE_FALSE(made);
    return test::shown(made.error());
  };
  CHECK(refused({{"workload.flows.backup.from", "node9"}}).find("'node9' is no host or HCA on the fabric") !=
        std::string::npos);
  CHECK(refused({{"workload.flows.backup.from", "node0"}}).find("a flow from 'node0' to itself") != std::string::npos);
  const auto loaded = test::shipped("traffic-victim-pfc.yaml", {{"workload.senders", "9"}});
  const auto made = simulate(loaded.topology, loaded.scenario, loaded.parameters, {});
  REQUIRE_FALSE(made);
  CHECK(test::shown(made.error()).find("10 hosts behind the trunk") != std::string::npos);
}

TEST_CASE("packets go as the fabric's switches route, unless the transport says otherwise") {
  // A permutation over leaves: hashes put several flows on one cable.
  const auto time = [](const std::string& fabric, const std::string& transport) {
    const auto loaded = test::scenario(
        "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: [{name: "
        "n, count: 32, host: {processor: epyc-rome, devices: [{name: hca0, type: connectx-6-200g, below: socket0}]}}]\n"
        "  fabric: {leaf_spine: {switch: sn3700, leaf_ports: 8" +
        fabric + "}}\nworkload: {benchmark: traffic, pattern: permutation, sizes: [1 MB]" + transport + "}\n");
    return test::run(loaded, {.fidelity = Fidelity::packet}).workloads[0].rows[0].time;
  };
  const auto chosen = time(", routing: adaptive", "");
  CHECK(chosen == time(", routing: adaptive", ", transport: {routing: adaptive}"));
  CHECK(chosen == time("", ", transport: {routing: adaptive}"));
  CHECK(time(", routing: adaptive", ", transport: {routing: ecmp}") == time("", ""));
  CHECK(chosen.seconds() < 0.8 * time("", "").seconds());
}

TEST_CASE("workloads together may name the routing that others have from the fabric") {
  const auto run = [](const std::string& routing) {
    const std::string one = "{benchmark: traffic, pattern: permutation, sizes: [64 kB]";
    const auto loaded = test::scenario(
        "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n"
        "  name: t\n  hosts: [{name: n, count: 8, host: {processor: epyc-rome, devices: "
        "[{name: hca0, type: connectx-6-200g, below: socket0}]}}]\n  fabric: {leaf_spine: "
        "{switch: sn3700, leaf_ports: 8}}\nworkloads:\n  - " +
        one + "}\n  - " + one + ", transport: {routing: " + routing + "}}\n");
    return simulate(loaded.topology, loaded.scenario, loaded.parameters, {.fidelity = Fidelity::packet});
  };
  CHECK(run("ecmp").has_value());
  CHECK(!run("spray").has_value());
}
