// SPDX-License-Identifier: Apache-2.0
// Messages over TCP between hosts: what a connection of a cloud's adapter keeps up, and device data that go through
// host memory.
#include "tests/support/clusters.hpp"

#include "tests/support/approx.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using test::us;

namespace {

constexpr auto k_window = 64;

/// Time of a whole window of osu_bw, in microseconds.
double window_us(const Prediction& prediction, Bytes size) { return k_window * us(prediction, size); }

Prediction osu_bw(const std::string& buffers, const std::string& sizes) {
  return test::run(test::shipped("validation/tcp-google-n1v100-2vm-osu_bw-" + buffers + ".yaml",
                                 {{"workload.sizes", "[" + sizes + "]"}}));
}

}  // namespace

TEST_CASE("a connection between cloud VMs slows after its burst: windows of 8 MiB are below it, longer ones beyond") {
  const auto parameters = test::shipped("validation/tcp-google-n1v100-2vm-osu_bw-HH.yaml").parameters;
  const double fast = parameters.number("ethernet-32g.connection_bandwidth");
  const double slow = parameters.number("ethernet-32g.connection_sustained_bandwidth");
  const auto prediction = osu_bw("HH", "64 KiB, 128 KiB, 1 MiB, 2 MiB");
  const double before = 4 * 1048576 / ((window_us(prediction, 128_KiB) - window_us(prediction, 64_KiB)) * 1e-6);
  const double after = 64 * 1048576 / ((window_us(prediction, 2_MiB) - window_us(prediction, 1_MiB)) * 1e-6);
  CHECK(before == test::approx(fast).epsilon(0.02));
  CHECK(after == test::approx(slow).epsilon(0.02));
}

TEST_CASE("one message of 4 MiB is no longer than the burst, so a ping-pong never slows") {
  const auto prediction = test::run(
      test::shipped("validation/tcp-google-n1v100-2vm-osu_latency-HH.yaml", {{"workload.sizes", "[2 MiB, 4 MiB]"}}));
  const double fast = test::shipped("validation/tcp-google-n1v100-2vm-osu_latency-HH.yaml")
                          .parameters.number("ethernet-32g.connection_bandwidth");
  CHECK(2 * 1048576 / ((us(prediction, 4_MiB) - us(prediction, 2_MiB)) * 1e-6) == test::approx(fast).epsilon(0.01));
}

TEST_CASE("device messages over TCP are pipelined from the rendezvous on, at the rate of their staging") {
  const auto parameters = test::shipped("validation/tcp-google-n1v100-2vm-osu_bw-DD.yaml").parameters;
  const double staging = parameters.number("mpi.tcp.staging_bandwidth");
  const double gap_us = parameters.number("mpi.tcp.staging_gap") * 1e6;
  const auto prediction = osu_bw("DD", "64 KiB");
  CHECK(us(prediction, 64_KiB) == test::approx(gap_us + 65536 / staging * 1e6).epsilon(0.05));
}

TEST_CASE("MPI over adapters without RDMA runs over TCP though nobody says so, and perftest is refused") {
  const auto on = [](const std::string& hca, const std::string& more) {
    return test::scenario(
        "schema: fabricast/scenario/1\nname: t\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: "
        "[{name: n, count: 2, host: {processor: xeon-skylake, devices: [{name: hca0, type: " +
        hca + ", below: socket0}]}}]\n  fabric: {single_switch: {switch: sn2700}}\n" + more);
  };
  for (const auto* hca : {"ethernet-32g", "ethernet-25g", "ethernet-10g"}) {
    CAPTURE(hca);
    for (const auto* benchmark : {"osu_latency", "osu_bw", "osu_allreduce", "osu_bcast"}) {
      CAPTURE(benchmark);
      const auto workload = std::string("workload: {benchmark: ") + benchmark + ", sizes: [8 B, 64 KiB, 4 MiB]}\n";
      const auto unnamed = test::run(on(hca, workload)),
                 named = test::run(on(hca, "software: {transport: tcp}\n" + workload));
      for (const auto size : {8_B, 64_KiB, 4_MiB}) CHECK(us(unnamed, size) == us(named, size));
    }
    const auto perftest = on(hca, "workload: {benchmark: ib_write_bw}\n");
    const auto refused = simulate(perftest.topology, perftest.scenario, perftest.parameters);
    REQUIRE_FALSE(refused.has_value());
    CHECK(test::shown(refused.error()).find("carries TCP only") != std::string::npos);
  }
  // With RDMA nothing changes.
  const std::string latency = "workload: {benchmark: osu_latency, sizes: [8 B]}\n";
  CHECK(us(test::run(on("connectx-5-100g", latency)), 8_B) < 0.5 * us(test::run(on("ethernet-25g", latency)), 8_B));
}

TEST_CASE("who names no MPI library gets the one of the adapters, a version is one of Open MPI") {
  const auto library = [](const std::string& host, const std::string& network, const std::string& software) {
    const auto prediction =
        test::run(test::scenario("schema: fabricast/scenario/1\nname: t\ntopology:\n  schema: fabricast/topology/1\n  "
                                 "name: t\n  hosts: [{name: n, "
                                 "count: 2, type: " +
                                 host + "}]\n  fabric: {single_switch: {switch: " + network + "}}\n" + software +
                                 "workload: {benchmark: osu_allreduce, sizes: [8 B]}\n"));
    for (const auto& one : prediction.workloads[0].settings)
      if (one.setting == "profile") return one.used;
    return std::string();
  };
  CHECK(library("dgx-a100", "qm8700", "") == "open-mpi-ucx");
  CHECK(library("aws-p4d", "aws-srd", "") == "open-mpi-ofi");
  CHECK(library("hpe-4a100-slingshot", "rosetta", "") == "cray-mpich-cxi");
  CHECK(library("pizdaint-xc50", "aries-router", "") == "cray-mpich");
  CHECK(library("hpe-4a100-slingshot", "rosetta", "software: {mpi_version: \"4.1\"}\n") == "cray-mpich-cxi");
  CHECK(library("aws-p4d", "aws-srd", "software: {mpi: open-mpi-ucx, ucx: \"1.18\"}\n") == "open-mpi-ucx");
}

TEST_CASE("an adapter of the user's that says its protocol is EFA's, or its provider, is one for MPI and NCCL alike") {
  const auto used = [](const std::string& attributes, const std::string& benchmark) {
    test::write_file("own-hca.yaml",
                     "schema: fabricast/device/1\nname: own-hca\nkind: hca\nattributes: " + attributes +
                         "\nvalues:\n  rate: {value: 100 Gb/s, source: t}\n  ports: {value: 1, source: t}\n  "
                         "pcie_generation: {value: 4, source: t}\n  pcie_width: {value: 16, source: t}\n  latency: "
                         "{value: 12 us, source: t}\n  mtu: {value: 8192, source: t}\n  packet_header: {value: 110, "
                         "source: t}\n");
    const auto topology = test::write_file(
        "own-cluster.yaml",
        "schema: fabricast/topology/1\nname: t\ndevices: [own-hca.yaml]\nhosts:\n  - name: n\n    count: 2\n    "
        "host:\n      processor: epyc-rome\n      devices: [{name: hca0, type: own-hca, below: socket0, pcie: gen4 "
        "x16}, {name: gpu0, type: a100-sxm4-40, below: socket0, pcie: gen4 x16}]\nfabric: {single_switch: {switch: "
        "aws-srd}}\n");
    const auto scenario = test::scenario("schema: fabricast/scenario/1\nname: s\ntopology: " + topology +
                                         "\nworkload: {benchmark: " + benchmark + ", sizes: [8 B]}\n");
    const auto prediction = simulate(scenario.topology, scenario.scenario, scenario.parameters);
    if (!prediction) return test::shown(prediction.error());
    for (const auto& one : prediction->workloads[0].settings)
      if (one.setting == (benchmark == "osu_allreduce" ? "profile" : "network plugin")) return one.used;
    return std::string();
  };
  for (const std::string attributes : {"{protocol: efa}", "{protocol: efa, libfabric: efa}", "{libfabric: efa}"}) {
    CAPTURE(attributes);
    CHECK(used(attributes, "osu_allreduce") == "open-mpi-ofi");
    CHECK(used(attributes, "all_reduce_perf").find("(efa)") != std::string::npos);
    CHECK(used(attributes, "ib_write_bw").find("has SRD and datagrams only") != std::string::npos);
  }
  CHECK(used("{protocol: infiniband}", "osu_allreduce") == "open-mpi-ucx");
  CHECK(used("{protocol: infiniband}", "all_reduce_perf").find("(efa)") == std::string::npos);
}

TEST_CASE("MPI over Google's gVNIC is TCP whatever NCCL's plugin does there, perftest wants verbs") {
  const auto shipped = [](const char* topology, const char* benchmark, const char* software) {
    return test::scenario(std::string("schema: fabricast/scenario/1\nname: t\ntopology: ") + FABRICAST_SOURCE_DIR +
                          "/topologies/" + topology + ".yaml\n" + software + "workload: {benchmark: " + benchmark +
                          ", sizes: [8 B]}\n");
  };
  const auto unnamed = test::run(shipped("google-a3-mega", "osu_latency", ""));
  CHECK(us(unnamed, 8_B) ==
        us(test::run(shipped("google-a3-mega", "osu_latency", "software: {transport: tcp}\n")), 8_B));
  for (const auto& [topology, said] : {std::pair{"google-a3-mega", "carries TCP only"},
                                       {"polaris", "has libfabric only"},
                                       {"aws-p4d", "has SRD and datagrams only"},
                                       {"pizdaint", "has libfabric only"}}) {
    const std::string name = topology;
    CAPTURE(name);
    const auto asked = shipped(topology, "ib_write_lat", "");
    const auto refused = simulate(asked.topology, asked.scenario, asked.parameters);
    REQUIRE_FALSE(refused.has_value());
    CHECK(test::shown(refused.error()).find(said) != std::string::npos);
  }
}
