// SPDX-License-Identifier: Apache-2.0
// Several queue pairs of NCCL's connections: each takes a way of its own where a fabric hashes flows, in both engines.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using test::us;

namespace {

bool says(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

/// Eight hosts of one GPU and one adapter, two below each leaf.
LoadedScenario on(const std::string& fabric, const std::string& nccl, const std::string& workload) {
  const std::string hca = says(fabric, "qm8700") ? "connectx-6-hdr" : "connectx-6-200g";
  const auto topology = test::write_file(
      "pairs-topology.yaml",
      "schema: fabricast/topology/1\nname: t\nhosts:\n  - name: node\n    count: 8\n    host:\n      processor: "
      "epyc-milan\n      sockets: 1\n      devices: [{name: sw0, kind: pcie_switch, below: socket0, pcie: gen4 x16}, "
      "{name: gpu0, type: a100-pcie-40, below: sw0, pcie: gen4 x16}, {name: hca0, type: " +
          hca + ", below: sw0, pcie: gen4 x16}]\nfabric: " + fabric + "\n");
  return test::scenario("schema: fabricast/scenario/1\nname: s\ntopology: " + topology + "\nsoftware: {nccl: {" + nccl +
                        "}}\nworkload: {" + workload + "}\n");
}

const std::string k_clos = "{leaf_spine: {switch: sn3700, leaf_ports: 8, spines: 4, oversubscription: 1, cable: 2 m}}";
const std::string k_switch = "{single_switch: {switch: sn3700, cable: 2 m}}";
const std::string k_infiniband = "{single_switch: {switch: qm8700, cable: 2 m}}";

std::string pairs(int count, const std::string& more = "") {
  return "ib_qps_per_connection: " + std::to_string(count) + more;
}

/// Mean over ways that the hash picks.
double mean_us(const LoadedScenario& loaded, Bytes size, Fidelity fidelity = Fidelity::fluid) {
  constexpr int k_seeds = 6;
  double sum = 0;
  for (int seed = 1; seed <= k_seeds; ++seed) {
    SimulateOptions options;
    options.seed = static_cast<std::uint64_t>(seed);
    options.fidelity = fidelity;
    sum += us(test::run(loaded, options), size);
  }
  return sum / k_seeds;
}

std::vector<Duration> times(const LoadedScenario& loaded) {
  const auto prediction = test::run(loaded);
  std::vector<Duration> out;
  for (const auto& row : prediction.workloads[0].rows) out.push_back(row.time);
  return out;
}

bool is_idle(const LoadedScenario& loaded, const std::string& words) {
  const auto prediction = test::run(loaded);
  const auto& all = prediction.workloads[0].assumptions;
  return std::any_of(all.begin(), all.end(), [&](const std::string& line) {
    return says(line, "ib_qps_per_connection changes no time") && says(line, words);
  });
}

}  // namespace

TEST_CASE("where flows are hashed over spines more queue pairs collide less, up to the fabric without collisions") {
  for (const std::string benchmark : {"all_reduce_perf", "all_gather_perf", "broadcast_perf"}) {
    CAPTURE(benchmark);
    // Sixteen ports of every host below one leaf, each with a channel's flow to the next.
    const auto at = [&](int count) {
      return mean_us(
          test::shipped("allreduce-roce-sn3700.yaml", {{"workload.benchmark", benchmark},
                                                       {"workload.algorithm", "ring"},
                                                       {"workload.protocol", "simple"},
                                                       {"workload.sizes", "[256 MiB]"},
                                                       {"software.nccl.ib_qps_per_connection", std::to_string(count)}}),
          256_MiB);
    };
    const double one = at(1);
    const double many = at(16);
    CHECK(at(4) < 0.99 * one);
    CHECK(many < at(4));
    // No more than one flow of each port ever meets: the ports themselves.
    CHECK(many > 0.5 * one);
  }
  const std::string workload = "benchmark: alltoall_perf, sizes: [256 MiB]";
  const double one = mean_us(on(k_clos, pairs(1), workload), 256_MiB);
  const double many = mean_us(on(k_clos, pairs(16), workload), 256_MiB);
  const double none = mean_us(on(k_switch, pairs(1), workload), 256_MiB);
  CHECK(many < 0.99 * one);
  CHECK(many > 0.99 * none);
  CHECK(many < none + 0.6 * (one - none));
}

TEST_CASE("the packet engine gives every queue pair its own route") {
  const auto at = [](int count) {
    return mean_us(on(k_clos, pairs(count), "benchmark: alltoall_perf, sizes: [32 MiB]"), 32_MiB, Fidelity::packet);
  };
  const double one = at(1);
  CHECK(at(4) < 0.99 * one);
  // Every queue pair ends with a packet that is not full.
  CHECK(at(16) < 1.02 * at(4));
}

TEST_CASE("message by message fewer messages than queue pairs leave some idle, split, every message takes all") {
  const auto at = [](const std::string& split, int count, const std::string& size) {
    return mean_us(on(k_clos, pairs(count, split), "benchmark: alltoall_perf, sizes: [" + size + "]"),
                   size == "64 KiB" ? 64_KiB : 256_MiB);
  };
  const std::string on_all = ", ib_split_data_on_qps: on";
  const std::string in_turn = ", ib_split_data_on_qps: off";
  CHECK(at(in_turn, 8, "64 KiB") == test::approx(at("", 1, "64 KiB")).epsilon(1e-9));
  CHECK(at(on_all, 8, "64 KiB") < at(in_turn, 8, "64 KiB"));
  CHECK(at(on_all, 8, "256 MiB") == test::approx(at(in_turn, 8, "256 MiB")).epsilon(1e-9));
  // What NCCL does by itself changed with 2.20.
  CHECK(at(", version: \"2.19\"", 8, "64 KiB") == at(on_all + ", version: \"2.19\"", 8, "64 KiB"));
  CHECK(at(", version: \"2.20\"", 8, "64 KiB") == at(in_turn + ", version: \"2.20\"", 8, "64 KiB"));
}

TEST_CASE("more bytes take no less time with several queue pairs") {
  const std::string sizes = ", protocol: simple, sizes: {from: 1 KiB, to: 256 MiB, factor: 2}";
  for (const auto* benchmark : {"all_reduce_perf, algorithm: ring", "all_reduce_perf, algorithm: tree",
                                "broadcast_perf", "alltoall_perf", "sendrecv_perf"}) {
    for (const auto* split : {", ib_split_data_on_qps: on", ", ib_split_data_on_qps: off"}) {
      CAPTURE(std::string(benchmark));
      CAPTURE(std::string(split));
      const auto all = times(on(k_clos, pairs(4, split), "benchmark: " + std::string(benchmark) + sizes));
      CHECK(std::is_sorted(all.begin(), all.end()));
    }
  }
}

TEST_CASE("where all queue pairs take one way nothing changes and the result says so") {
  for (const auto* benchmark : {"all_reduce_perf", "alltoall_perf"}) {
    const auto workload = "benchmark: " + std::string(benchmark) + ", sizes: [1 KiB, 64 MiB]";
    CHECK(times(on(k_infiniband, pairs(8), workload)) == times(on(k_infiniband, "", workload)));
    CHECK(times(on(k_switch, pairs(8), workload)) == times(on(k_switch, "", workload)));
    CHECK(is_idle(on(k_infiniband, pairs(8), workload), "InfiniBand routes by destination"));
    CHECK(is_idle(on(k_switch, pairs(8), workload), "one way"));
    CHECK_FALSE(is_idle(on(k_clos, pairs(8), workload), ""));
  }
}

TEST_CASE("releases of NCCL without several queue pairs, or without the choice between both ways, are refused") {
  const auto refusal = [](const std::string& nccl) {
    const auto file = test::write_file(
        "pairs-refused.yaml",
        "schema: fabricast/scenario/1\nname: s\ntopology: {schema: fabricast/topology/1, name: t, hosts: [{name: n, "
        "type: dgx-a100}]}\nsoftware: {nccl: {" +
            nccl + "}}\nworkload: {benchmark: all_reduce_perf}\n");
    const auto loaded = load_scenario(file);
    return loaded ? std::string() : render(loaded.error());
  };
  CHECK(says(refusal("version: \"2.9\", ib_qps_per_connection: 2"), "it came with 2.10"));
  CHECK(refusal("version: \"2.9\", ib_qps_per_connection: 1").empty());
  CHECK(says(refusal("version: \"2.17\", ib_qps_per_connection: 2, ib_split_data_on_qps: off"), "it came with 2.18"));
  CHECK(refusal("version: \"2.18\", ib_qps_per_connection: 2, ib_split_data_on_qps: off").empty());
}
