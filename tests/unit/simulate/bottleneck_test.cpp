// SPDX-License-Identifier: Apache-2.0
// What a bandwidth test names as its bottleneck, and how far its band reaches: large messages wait for the narrowest
// thing they cross, small ones for their posting; nobody is faster than a limit that was set. What any row names takes
// most of its time.
#include <algorithm>
#include <filesystem>

#include "tests/support/clusters.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using test::row_at;

namespace {

std::string pair_of(const std::string& host, const std::string& vms, const std::string& workload) {
  return "schema: fabricast/scenario/1\nname: test\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n"
         "    - {name: node, count: 2, type: " +
         host + vms + "}\n  fabric: {single_switch: {switch: sn2700}}\nworkload: {" + workload + "}\n";
}

bool is_of_transfers(const Term& term) {
  return term.name.starts_with("transfer over ") || term.name.starts_with("sharing ") ||
         term.name.starts_with("gaps between") || term.parameter == "topology";
}

/// Nothing takes longer than what is named: a term, or the transfers, which a link or limit holds.
void check_named(const Row& row) {
  CAPTURE(row.bottleneck);
  CAPTURE(row.size.value);
  Duration transfers;
  const Term* longest = nullptr;
  for (const auto& term : row.terms) {
    if (is_of_transfers(term)) transfers += term.time;
    if (!is_of_transfers(term) && (longest == nullptr || term.time > longest->time)) longest = &term;
  }
  if (longest == nullptr || longest->time <= transfers) return;
  CHECK_FALSE(row.bottleneck.empty());
  CHECK(longest->name.find(row.bottleneck) != std::string::npos);
}

}  // namespace

TEST_CASE("what a row names as its bottleneck takes most of its time") {
  for (const auto* name :
       {"allreduce-hgx-h100-64.yaml", "allreduce-dgx-a100-pair.yaml", "allreduce-beside-compute.yaml",
        "allreduce-no-vcpu-left.yaml", "allreduce-slingshot-32.yaml", "osu-latency-fdr-host.yaml",
        "osu-latency-fdr-no-gpudirect.yaml", "osu-allreduce-dragonfly.yaml", "what-if-p2p-on.yaml",
        "what-if-virtualization-tcp.yaml", "training-virtualization-tcp.yaml", "training-qwen3-30b-16.yaml"}) {
    CAPTURE(name);
    const auto prediction = test::run(test::shipped(name));
    for (const auto& row : prediction.workloads[0].rows) check_named(row);
  }
  const auto latency = test::run(test::shipped("osu-latency-fdr-host.yaml"));
  CHECK(row_at(latency, 0_B).bottleneck == "HCA processing, both sides");
  CHECK(row_at(latency, 4_MiB).bottleneck == "packets sent by node0.hca0");
  const auto beside = test::run(test::shipped("allreduce-beside-compute.yaml"));
  CHECK(beside.workloads[0].rows.front().bottleneck.find("time slices") != std::string::npos);
}

TEST_CASE("jobs that are alike and end together are held by the same link") {
  const auto prediction = test::run(test::shipped("two-jobs.yaml"));
  const auto& first = prediction.workloads[0].rows;
  const auto& second = prediction.workloads[1].rows;
  for (std::size_t i = 0; i < first.size(); ++i) {
    CHECK(first[i].time == second[i].time);
    CHECK(first[i].bottleneck == "packets sent by node0.hca0");
    CHECK(second[i].bottleneck == first[i].bottleneck);
  }
}

TEST_CASE("large messages of every shipped bandwidth test name what they cross, not the gaps between them") {
  int tests = 0;
  for (const auto* folder : {"scenarios", "scenarios/validation", "scenarios/blind"}) {
    for (const auto& file : std::filesystem::directory_iterator(std::string(FABRICAST_SOURCE_DIR) + "/" + folder)) {
      if (file.path().extension() != ".yaml" || file.path().filename().string().find("_bw") == std::string::npos)
        continue;
      const auto name = file.path().lexically_relative(std::string(FABRICAST_SOURCE_DIR) + "/scenarios").string();
      CAPTURE(name);
      const auto loaded = test::shipped(name, {{"workload.sizes", "[4 MiB]"}});
      const auto prediction = test::run(loaded);
      const auto& row = row_at(prediction, 4_MiB);
      CHECK(row.bottleneck != "one connection with its gaps");
      CHECK_FALSE(row.bottleneck.empty());
      ++tests;
    }
  }
  CHECK(tests > 10);
}

TEST_CASE("messages of a few bytes wait for their posting") {
  const auto prediction = test::run(
      test::scenario(pair_of("server-1a100-cx6dx", "", "benchmark: osu_bw, buffers: host, sizes: [1 B, 4 MiB]")));
  CHECK(row_at(prediction, 1_B).bottleneck == "posting messages");
  CHECK(row_at(prediction, 4_MiB).bottleneck != "one connection with its gaps");
}

TEST_CASE("while the message rate stays the same with the size, posting is the bottleneck") {
  const auto prediction = test::run(test::shipped("validation/hdr-cx6-2node-ib_write_bw.yaml"));
  int posting = 0;
  const auto& rows = prediction.workloads[0].rows;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    CAPTURE(rows[i].size.value);
    const bool is_flat = rows[i].time == rows[i - 1].time;
    CHECK((rows[i].bottleneck == "posting messages") == is_flat);
    posting += is_flat ? 1 : 0;
  }
  CHECK(posting > 5);
}

TEST_CASE("a virtual function's rate limit is named, and no band reaches beyond it") {
  for (const double limit : {1.0, 25.0, 60.0}) {
    const auto vms =
        ", virtualization: {hypervisor: kvm}, vms: [{name: a, devices: {gpu0: passthrough, hca0: {vf: 1, "
        "rate_limit: " +
        std::to_string(limit) + " Gb/s}}}]";
    for (const auto* benchmark : {"osu_bw", "ib_write_bw"}) {
      CAPTURE(limit);
      CAPTURE(benchmark);
      const auto prediction = test::run(test::scenario(pair_of(
          "server-1a100-cx6dx", vms, "benchmark: " + std::string(benchmark) + ", buffers: host, sizes: [4 MiB]")));
      const auto& row = row_at(prediction, 4_MiB);
      CHECK(row.bottleneck.find("virtual function") != std::string::npos);
      const double messages = static_cast<double>((4_MiB).value);
      CHECK(row.low_time.seconds() >= messages * 0.999 / (limit * 0.125e9));
    }
  }
}

TEST_CASE("ranks in host order are an assumption only where nobody named their GPUs") {
  const auto assumes_order = [](const std::string& workload) {
    const auto prediction = test::run(test::scenario(pair_of("server-1a100-cx6dx", "", workload)));
    return std::ranges::count(prediction.workloads[0].assumptions, "ranks are placed on GPUs in host order") > 0;
  };
  for (const auto* workload :
       {"benchmark: all_reduce_perf, sizes: [8 B]", "benchmark: gpu_step, compute: 1 ms, sizes: [8 B]",
        "benchmark: training, network: resnet-50, batch_per_gpu: 64"}) {
    CAPTURE(workload);
    CHECK(assumes_order(workload));
    CHECK_FALSE(assumes_order(std::string(workload) + ", devices: [node1, node0]"));
  }
}
