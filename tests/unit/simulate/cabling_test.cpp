// SPDX-License-Identifier: Apache-2.0
// Hosts of which not every HCA is cabled, or not to the same network.
#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {

/// Two hosts with two GPUs and two HCAs, cabled by hand.
LoadedScenario pair(const std::string& cables, const std::string& workload, const std::string& hca = "connectx-6-hdr",
                    const std::string& second = "socket1") {
  return test::scenario(
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n"
      "    - {name: n, count: 2, host: {processor: epyc-rome, devices: [{name: gpu0, type: a100-pcie-40, below: "
      "socket0},"
      " {name: gpu1, type: a100-pcie-40, below: socket1}, {name: hca0, type: " +
      hca + ", below: socket0}, {name: hca1, type: " + hca + ", below: " + second +
      "}]}}\n  fabric:\n    list:\n      switches: [{name: a, type: "
      "qm8700}, {name: b, type: qm8700}]\n      cables: [" +
      cables + "]\nworkload: {" + workload + ", sizes: [1 MiB]}\n");
}

const char* const k_benchmarks[] = {"benchmark: all_reduce_perf, algorithm: ring",
                                    "benchmark: all_reduce_perf, algorithm: tree",
                                    "benchmark: alltoall_perf",
                                    "benchmark: sendrecv_perf",
                                    "benchmark: osu_allreduce, buffers: device",
                                    "benchmark: osu_latency, buffers: device"};

const std::string k_first = "{from: n0.hca0, to: a}, {from: n1.hca0, to: a}";

}  // namespace

TEST_CASE("HCAs without a cable carry nothing") {
  for (const auto* benchmark : k_benchmarks) {
    CAPTURE(benchmark);
    // Cables end at the first HCA of one host and the second of the other.
    const auto loaded = pair("{from: n0.hca0, to: a}, {from: n1.hca1, to: a}", benchmark);
    const auto prediction = test::run(loaded);
    CHECK(prediction.workloads[0].rows[0].time > Duration{0});
    const auto gpus = loaded.topology.devices(DeviceKind::gpu);
    for (const auto gpu : gpus) {
      const auto hcas = loaded.topology.hcas_by_distance(gpu);
      REQUIRE(hcas.size() == 1);
      CHECK(loaded.topology.is_cabled(hcas[0]));
    }
  }
}

TEST_CASE("a second cabled HCA is used by NCCL") {
  const std::string both = k_first + ", {from: n0.hca1, to: a}, {from: n1.hca1, to: a}";
  const auto time = [](const std::string& cables, const std::string& hca) {
    return test::run(pair(cables,
                          "benchmark: all_gather_perf, devices: [n0.gpu0, n1.gpu0], protocol: simple, channels: 2", hca,
                          "socket0"))
        .workloads[0]
        .rows[0]
        .time;
  };
  CHECK(time(both, "connectx-5-edr") < time(k_first, "connectx-5-edr"));
}

TEST_CASE("HCAs of networks that do not meet are a fault of the topology, told with their names") {
  const auto loaded = pair(k_first + ", {from: n0.hca1, to: b}, {from: n1.hca1, to: b}", "benchmark: alltoall_perf");
  const auto prediction = simulate(loaded.topology, loaded.scenario, loaded.parameters, {});
  REQUIRE_FALSE(prediction);
  const auto text = test::shown(prediction.error());
  CHECK(text.find("scenario.yaml:12:11: error: no network path from HCA 'n0.hca0' to HCA 'n1.hca1'") == 0);
  CHECK(text.find("note: connect all HCAs that take part by switches") != std::string::npos);
  // A ring stays in its rail.
  CHECK(simulate(loaded.topology, pair(k_first, "benchmark: all_reduce_perf, algorithm: ring").scenario,
                 loaded.parameters, {}));
}
