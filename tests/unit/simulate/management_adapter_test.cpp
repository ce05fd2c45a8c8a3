// SPDX-License-Identifier: Apache-2.0
// Servers have an adapter for management beside those of the fabric: what it is and where it stands changes nothing.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/support/clusters.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

struct Network {
  const char* adapter;
  const char* network;
  std::vector<std::string> beside;  ///< adapters for management on a network of their own
};

const std::vector<Network> k_networks{
    {"connectx-6-hdr", "qm8700", {"ethernet-25g", "ethernet-10g"}},
    {"connectx-7-ndr", "qm9700", {"ethernet-25g", "ethernet-10g"}},
    {"connectx-6-dx-200g", "sn3700", {"ethernet-25g", "ethernet-10g"}},
    {"slingshot-11", "rosetta", {"ethernet-25g"}},
    {"efa-100g-gdr", "aws-srd", {"ena-25g"}},
    {"connectx-4-lx-25g", "sn3700", {"ethernet-32g"}},
};

/// Two hosts of two GPUs and two adapters each. `management`: type of a further adapter, on the other network; `place`:
/// 0 before the others, 1 between them, 2 behind them.
LoadedScenario pair_of(const Network& fabric, const std::string& management, int place, const std::string& workload) {
  const std::string more =
      management.empty() ? ""
                         : fmt::format("{{name: mgmt0, type: {}, below: socket{}}}", management, place == 2 ? 1 : 0);
  const auto at = [&](int where) { return more.empty() || place != where ? std::string() : more; };
  const auto hca = [&](int i) {
    return fmt::format("{{name: hca{0}, type: {1}, below: socket{0}}}", i, fabric.adapter);
  };
  std::string devices =
      "{name: gpu0, type: a100-sxm4-40, below: socket0}, {name: gpu1, type: a100-sxm4-40, below: "
      "socket1}";
  for (const auto& one : {at(0), hca(0), at(1), hca(1), at(2)})
    if (!one.empty()) devices += ", " + one;
  std::string switches = fmt::format("{{name: s, type: {}}}", fabric.network), cables;
  for (const auto* host : {"n0", "n1"})
    for (int i = 0; i < 2; ++i) cables += fmt::format("{{from: {}.hca{}, to: s}}, ", host, i);
  if (!management.empty()) {
    switches += ", {name: m, type: sn2700}";
    cables += "{from: n0.mgmt0, to: m}, {from: n1.mgmt0, to: m}, ";
  }
  cables.resize(cables.size() - 2);
  return test::scenario(
      fmt::format("schema: fabricast/scenario/1\nname: t\ntopology:\n  schema: fabricast/topology/1\n  name: t\n"
                  "  hosts: [{{name: n, count: 2, host: {{processor: epyc-milan, devices: [{}]}}}}]\n"
                  "  fabric: {{list: {{switches: [{}], cables: [{}]}}}}\nworkload: {{{}}}\n",
                  devices, switches, cables, workload));
}

std::vector<std::string> used_adapters(const Prediction& prediction) {
  std::vector<std::string> out;
  for (const auto& row : prediction.workloads[0].rows) out.push_back(row.bottleneck);
  return out;
}

const std::vector<std::string> k_workloads{
    "benchmark: osu_latency, buffers: host, sizes: [8 B, 64 KiB, 4 MiB]",
    "benchmark: osu_latency, buffers: device, sizes: [8 B, 64 KiB, 4 MiB]",
    "benchmark: osu_bw, buffers: host, sizes: [8 B, 64 KiB, 4 MiB]",
    "benchmark: osu_mbw_mr, buffers: host, pairs: 2, sizes: [8 B, 4 MiB]",
    "benchmark: osu_allreduce, ranks: 8, ranks_per_host: 4, buffers: host, sizes: [8 B, 64 KiB, 4 MiB]",
    "benchmark: osu_allreduce, buffers: device, sizes: [8 B, 64 KiB, 4 MiB]",
    "benchmark: osu_alltoall, ranks: 8, ranks_per_host: 4, buffers: host, sizes: [8 B, 64 KiB]",
    "benchmark: ib_write_bw, sizes: [8 B, 64 KiB, 4 MiB]",
    "benchmark: all_reduce_perf, sizes: [8 B, 64 KiB, 64 MiB]",
    "benchmark: alltoall_perf, sizes: [8 B, 64 KiB, 64 MiB]",
    "benchmark: sendrecv_perf, sizes: [8 B, 64 MiB]"};

/// The same rows, or the same refusal.
void check_alike(const LoadedScenario& without, const LoadedScenario& with) {
  const auto expected = simulate(without.topology, without.scenario, without.parameters);
  const auto found = simulate(with.topology, with.scenario, with.parameters);
  REQUIRE(expected.has_value() == found.has_value());
  if (!expected) return;
  const auto& rows = expected->workloads[0].rows;
  REQUIRE(rows.size() == found->workloads[0].rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    CHECK(found->workloads[0].rows[i].time == rows[i].time);
    CHECK(found->workloads[0].rows[i].protocol == rows[i].protocol);
  }
  CHECK(used_adapters(*found) == used_adapters(*expected));
}

}  // namespace

TEST_CASE("an adapter for management, first or last, carries nothing of MPI, NCCL or perftest") {
  for (const auto& fabric : k_networks) {
    for (const auto& workload : k_workloads) {
      const auto without = pair_of(fabric, "", 0, workload);
      for (const auto& management : fabric.beside) {
        for (int place = 0; place < 3; ++place) {
          const std::string on = fabric.adapter;
          CAPTURE(on);
          CAPTURE(management);
          CAPTURE(place);
          CAPTURE(workload);
          check_alike(without, pair_of(fabric, management, place, workload));
        }
      }
    }
  }
}

TEST_CASE("MPI takes the fastest adapters with RDMA, however near a slower one is") {
  for (const auto& workload : k_workloads) {
    if (workload.find("_perf") != std::string::npos) continue;  // NCCL drops no slower ones
    for (const std::string slower : {"connectx-4-lx-25g", "connectx-5-100g"}) {
      for (int place = 0; place < 3; ++place) {
        CAPTURE(workload);
        CAPTURE(slower);
        CAPTURE(place);
        check_alike(pair_of(k_networks[0], "", 0, workload), pair_of(k_networks[0], slower, place, workload));
      }
    }
  }
}

TEST_CASE("a host that takes no part changes nothing, listed first or last, whatever its adapter carries") {
  for (const auto& fabric : k_networks) {
    for (const std::string workload : {"benchmark: osu_latency, devices: [n0.memory0, n1.memory0], sizes: [8 B, 4 MiB]",
                                       "benchmark: osu_bw, buffers: device, sizes: [8 B, 4 MiB]",
                                       "benchmark: osu_allreduce, buffers: device, sizes: [8 B, 64 KiB]",
                                       "benchmark: all_reduce_perf, sizes: [8 B, 64 MiB]"}) {
      const std::string on = fabric.adapter;
      CAPTURE(on);
      CAPTURE(workload);
      const auto cluster = [&](int login) {  // 0: none, 1: first, 2: last
        const auto host = fmt::format(
            "{{name: login, count: 1, host: {{processor: epyc-milan, devices: [{{name: hca0, type: {}, "
            "below: socket0}}]}}}}",
            fabric.beside.front());
        const auto computes = fmt::format(
            "{{name: n, count: 2, host: {{processor: epyc-milan, devices: [{{name: gpu0, type: "
            "a100-sxm4-40, below: socket0}}, {{name: hca0, type: {}, below: socket0}}]}}}}",
            fabric.adapter);
        return test::scenario(
            fmt::format("schema: fabricast/scenario/1\nname: t\ntopology:\n  schema: fabricast/topology/1\n  name: t\n "
                        " hosts: [{}]\n"
                        "  fabric: {{list: {{switches: [{{name: s, type: {}}}{}], cables: [{{from: n0.hca0, to: s}}, "
                        "{{from: n1.hca0, to: "
                        "s}}{}]}}}}\nworkload: {{{}}}\n",
                        login == 0   ? computes
                        : login == 1 ? host + ", " + computes
                                     : computes + ", " + host,
                        fabric.network, login == 0 ? "" : ", {name: m, type: sn2700}",
                        login == 0 ? "" : ", {from: login.hca0, to: m}", workload));
      };
      check_alike(cluster(0), cluster(1));
      check_alike(cluster(0), cluster(2));
    }
  }
}

TEST_CASE("traffic patterns begin and end at adapters of the fabric") {
  for (const std::string what : {"pattern: incast", "flows: [{from: n0, to: n1}]"}) {
    CAPTURE(what);
    const auto traffic = "benchmark: traffic, " + what + ", sizes: [1 MiB]";
    check_alike(pair_of(k_networks[2], "", 0, traffic), pair_of(k_networks[2], "ethernet-25g", 0, traffic));
  }
}

TEST_CASE("where every adapter is without RDMA messages go over TCP as before") {
  const auto plain = test::run(test::scenario(
      "schema: fabricast/scenario/1\nname: t\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: [{name: "
      "n, "
      "count: 2, host: {processor: epyc-milan, devices: [{name: a, kind: hca, type: ethernet-10g, below: socket0}, "
      "{name: b, kind: hca, type: ethernet-25g, below: socket1}]}}]\n  fabric: {single_switch: {switch: sn2700}}\n"
      "workload: {benchmark: osu_latency, sizes: [8 B]}\n"));
  for (const auto& one : plain.workloads[0].settings)
    if (one.setting == "profile") CHECK(one.used == "tcp");
  CHECK(test::us(plain, 8_B) > 10);
}
