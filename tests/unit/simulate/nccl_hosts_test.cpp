// SPDX-License-Identifier: Apache-2.0
// NCCL between hosts: where its buffers lie, what proxies and network plugins cost, what trees of hosts reach, and what
// an access-control setting of the switches takes away.
#include <algorithm>
#include <set>
#include <string>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using test::row_at;
using test::us;

namespace {

Prediction all_reduce(const std::string& name, std::vector<Setting> settings) {
  return test::run(test::shipped("validation/" + name + ".yaml", std::move(settings)));
}

}  // namespace

TEST_CASE("LL between hosts lies in host memory, so GPUDirect RDMA changes LL128 and not LL") {
  const auto v100 = [](const std::string& protocol, const std::string& gpudirect) {
    return us(all_reduce("v100-abci-8gpu-2node-edr2-allreduce-nccl2.8", {{"workload.algorithm", "ring"},
                                                                         {"workload.protocol", protocol},
                                                                         {"software.gpudirect_rdma", gpudirect},
                                                                         {"workload.sizes", "[64 KiB]"}}),
              64_KiB);
  };
  CHECK(v100("ll", "on") == v100("ll", "off"));
  CHECK(v100("ll128", "on") < v100("ll128", "off"));
}

TEST_CASE("what a network plugin adds to a message is paid on each of a tree's hops between hosts") {
  const auto scenario = test::shipped("validation/a100-aws-p4d-16gpu-2vm-efa4-allreduce-nccl2.9.yaml",
                                      {{"workload.sizes", "[8 B]"}, {"workload.algorithm", "tree"}});
  const double latency_us = scenario.parameters.number("efa-100g-gdr.plugin_latency") * 1e6;
  double paid_us = 0;
  const auto prediction = test::run(scenario);
  for (const auto& term : row_at(prediction, 8_B).terms) {
    if (term.parameter == "efa-100g-gdr.plugin_latency") paid_us += term.time.us();
  }
  CHECK(paid_us == test::approx(2 * latency_us).epsilon(1e-4));  // up the tree of two hosts and down
}

TEST_CASE(
    "over EFA one process that sends and receives paces its ring, rings that enter and leave by different ones pass "
    "more") {
  const auto bus_gb_per_s = [](const std::string& name, double bus_factor) {
    const auto prediction = all_reduce(name, {{"workload.sizes", "[512 MiB, 1 GiB]"}});
    return bus_factor * 512 * 1.048576 / (us(prediction, 1_GiB) - us(prediction, 512_MiB)) * 1e3;
  };
  const auto catalogue = test::shipped("validation/v100-aws-p3dn-2gpu-2vm-efa1-allreduce-nccl2.6.yaml").parameters;
  const double process = catalogue.number("efa-100g.plugin_process_bandwidth") * 1e-9;
  const double adapter = catalogue.number("efa-100g.plugin_bandwidth") * 1e-9;
  // Two ranks move as many bytes each way as they reduce; the thread block's own work hides behind the plugin.
  CHECK(bus_gb_per_s("v100-aws-p3dn-2gpu-2vm-efa1-allreduce-nccl2.6", 1) == test::approx(process).epsilon(0.01));
  CHECK(bus_gb_per_s("v100-aws-p3dn-16gpu-2vm-efa1-allreduce-nccl2.4", 30.0 / 16) ==
        test::approx(adapter).epsilon(0.01));
}

TEST_CASE("in all-to-all over EFA every process sends and receives, so its thread paces what goes to all other hosts") {
  const auto rate = [](const char* gpus, const char* per_host) {
    const auto prediction =
        all_reduce("v100-aws-p3dn-2gpu-2vm-efa1-allreduce-nccl2.6", {{"workload.benchmark", "alltoall_perf"},
                                                                     {"software.nccl.version", "2.7"},
                                                                     {"workload.gpus", gpus},
                                                                     {"workload.ranks_per_host", per_host},
                                                                     {"workload.sizes", "[512 MiB, 1 GiB]"}});
    return 512 * 1.048576 / (us(prediction, 1_GiB) - us(prediction, 512_MiB)) * 1e3;
  };
  const double process = test::shipped("validation/v100-aws-p3dn-2gpu-2vm-efa1-allreduce-nccl2.6.yaml")
                             .parameters.number("efa-100g.plugin_process_bandwidth") *
                         1e-9;
  // Half of the operation goes to the other host; with two processes per host each sends two quarters there.
  CHECK(rate("2", "1") == test::approx(2 * process).epsilon(0.02));
  CHECK(rate("4", "2") == test::approx(2 * process).epsilon(0.02));
}

TEST_CASE("the settings that come with TCPXO leave NCCL Simple at every size, unless the user forces a protocol") {
  const auto protocols = [](const std::string& forced) {
    std::set<std::string> used;
    const auto prediction = all_reduce("h100-gcp-a3mega-16gpu-2vm-tcpxo-allreduce-nccl2.21",
                                       {{"workload.protocol", forced}, {"workload.sizes", "[8 B, 1 MiB, 1 GiB]"}});
    for (const auto& row : prediction.workloads[0].rows) used.insert(row.protocol);
    return used;
  };
  CHECK(protocols("auto") == std::set<std::string>{"simple"});
  CHECK(protocols("ll") == std::set<std::string>{"ll"});
}

TEST_CASE("the buffers that TCPXO sets double the first chunk that fills a tree: it grows up to 1 MiB per channel") {
  auto scenario = test::shipped("validation/h100-gcp-a3mega-16gpu-2vm-tcpxo-allreduce-nccl2.21.yaml",
                                {{"workload.sizes", "[8 MiB, 16 MiB]"}});
  const auto growth = [&](const char* buffer_bytes) {
    auto buffer = scenario.parameters.at("gvnic-200g.plugin_buffer_size");
    buffer.value = std::stod(buffer_bytes);
    scenario.parameters.set(buffer);
    const auto prediction = test::run(scenario);
    return us(prediction, 16_MiB) - us(prediction, 8_MiB);
  };
  // 16 channels: 8 MiB are a chunk of 512 KiB each. NCCL's own 4 MiB end there, 8 MiB fill the tree with twice as much.
  CHECK(growth("8388608") > 5 * growth("4194304"));
}

TEST_CASE("a connection in the middle of a tree of hosts sends each chunk twice: half the rate") {
  const auto last = [](int gpus) {
    const auto prediction =
        all_reduce("a100-abci-64gpu-8node-hdr4-allreduce-nccl2.8", {{"workload.gpus", std::to_string(gpus)},
                                                                    {"workload.algorithm", "tree"},
                                                                    {"workload.protocol", "ll128"},
                                                                    {"workload.sizes", "[512 MiB, 1 GiB]"}});
    return us(prediction, 1_GiB) - us(prediction, 512_MiB);
  };
  // The second half of 1 GiB on two hosts and on eight; chunks have their largest size on both.
  CHECK(last(64) / last(16) == test::approx(2).epsilon(0.02));
}

TEST_CASE("switches that redirect peers leave two HCAs of a socket what its root complexes translate") {
  const auto busbw = [](const std::string& acs) {
    const auto prediction = all_reduce("a100-abci-16gpu-2node-hdr4-allreduce-nccl2.8",
                                       {{"topology.hosts.node.virtualization", "{mode: bare-metal, acs: " + acs + "}"},
                                        {"workload.algorithm", "ring"},
                                        {"workload.protocol", "simple"},
                                        {"workload.sizes", "[8 GiB]"}});
    return row_at(prediction, 8_GiB).busbw.bytes_per_s * 1e-9;
  };
  CHECK(busbw("redirect") == test::approx(2 * 19).epsilon(0.03));
  CHECK(busbw("off") > 90);
}

TEST_CASE("broadcast of LL does not wait for the network: two hosts take as long as one") {
  const auto at = [](const std::string& gpus) {
    return us(all_reduce("v100-abci-8gpu-2node-edr2-broadcast-nccl2.8",
                         {{"workload.gpus", gpus}, {"workload.sizes", "[8 B]"}}),
              8_B);
  };
  CHECK(at("8") == test::approx(at("4")).epsilon(0.02));  // published logs: 5.1 and 5.2 us
}

TEST_CASE("broadcast of LL over two channels waits for the network: a rank late in one holds up the other") {
  const auto at = [](const std::string& channels) {
    return us(
        all_reduce("v100-abci-8gpu-2node-edr2-broadcast-nccl2.8",
                   {{"workload.channels", channels}, {"workload.protocol", "ll"}, {"workload.sizes", "[64 KiB]"}}),
        64_KiB);
  };
  CHECK(at("2") > 1.2 * at("1"));  // published log: 16 us at 32 KiB over one channel, 34 us at 64 KiB over two
}

TEST_CASE("broadcast of LL takes longer the more ranks there are, because a channel has fewer threads for a message") {
  const auto at = [](const std::string& gpus, const std::string& size, Bytes bytes) {
    return us(all_reduce("v100-abci-64gpu-16node-edr2-allreduce-nccl2.8", {{"workload.benchmark", "broadcast_perf"},
                                                                           {"workload.gpus", gpus},
                                                                           {"workload.sizes", "[" + size + "]"}}),
              bytes);
  };
  CHECK(at("8", "8 B", 8_B) == test::approx(at("64", "8 B", 8_B)));
  // 512 lines of 8 bytes by 64 threads on 8 and 64 ranks, 4,096 lines by 512 and by 64 threads.
  CHECK(at("8", "4 KiB", 4_KiB) == test::approx(at("64", "4 KiB", 4_KiB)));
  CHECK(at("64", "32 KiB", 32_KiB) > 1.5 * at("8", "32 KiB", 32_KiB));
}

TEST_CASE("NCCL uses LL128 and GPUDirect RDMA where HCAs hang below the GPUs' switches, further with gdr_level") {
  const auto run = [](const std::string& level) {
    return all_reduce("v100-abci-8gpu-2node-edr2-allreduce-nccl2.8",
                      {{"workload.algorithm", "ring"},
                       {"software.nccl", "{version: \"2.8\", gdr_level: " + level + "}"},
                       {"workload.sizes", "[1 MiB, 1 GiB]"}});
  };
  const auto busbw = [](const Prediction& prediction) { return row_at(prediction, 1_GiB).busbw.bytes_per_s * 1e-9; };
  CHECK(row_at(run("phb"), 1_MiB).protocol == "simple");
  CHECK(busbw(run("phb")) == test::approx(2 * 10.2).epsilon(0.03));  // peer reads through the root complex
  CHECK(busbw(run("pxb")) > 22);                                     // host memory fills the HCAs
}

TEST_CASE("NCCL before 2.9 takes HCAs in PCIe 4 slots for PCIe 3") {
  const auto channels = [](const std::string& version) {
    const auto prediction = all_reduce("a100-abci-16gpu-2node-hdr4-allreduce-nccl2.8",
                                       {{"software.nccl.version", version}, {"workload.sizes", "[8 B]"}});
    std::string found;
    for (const auto& setting : prediction.workloads[0].settings)
      if (setting.setting == "channels") found = setting.used + " " + setting.reason;
    return found;
  };
  CHECK(channels("2.8").find("4 found at 12.0 GB/s") != std::string::npos);
  CHECK(channels("2.9").find("4 found at 24.0 GB/s") != std::string::npos);
}

namespace {

/// Eight sizes on `hosts` DGX A100, whose adapters hang below the GPUs' switches.
Prediction on_dgx(const std::string& benchmark, const std::string& software, int hosts, int gpus_per_host) {
  const auto topology =
      test::write_file("dgx-topology.yaml",
                       "schema: fabricast/topology/1\nname: t\nhosts: [{name: n, type: dgx-a100, count: 8}]\n"
                       "fabric: {rail_optimized: {switch: qm9700, rails: 8, cable: 5 m}}\n");
  return test::run(test::scenario("schema: fabricast/scenario/1\nname: s\ntopology: " + topology + "\nsoftware: {" +
                                  software + "}\nworkload: {benchmark: " + benchmark +
                                  ", launch: process_per_gpu, gpus: " + std::to_string(hosts * gpus_per_host) +
                                  ", ranks_per_host: " + std::to_string(gpus_per_host) +
                                  ", sizes: [4 KiB, 16 KiB, 64 KiB, 256 KiB, 1 MiB, 4 MiB, 16 MiB, 64 MiB]}\n"));
}

bool takes_ll128(const Prediction& prediction) {
  return std::ranges::any_of(prediction.workloads[0].rows, [](const auto& row) { return row.protocol == "ll128"; });
}

}  // namespace

TEST_CASE("without GPUDirect RDMA an adapter counts as far wherever it hangs: no LL128 between hosts") {
  for (const auto* benchmark : {"all_reduce_perf", "all_gather_perf", "broadcast_perf"}) {
    for (const int hosts : {2, 8}) {
      CAPTURE(std::string(benchmark));
      CAPTURE(hosts);
      CHECK(takes_ll128(on_dgx(benchmark, "gpudirect_rdma: on", hosts, 8)));
      CHECK_FALSE(takes_ll128(on_dgx(benchmark, "gpudirect_rdma: off", hosts, 8)));
      CHECK_FALSE(takes_ll128(on_dgx(benchmark, "transport: tcp", hosts, 8)));
    }
  }
}
