// SPDX-License-Identifier: Apache-2.0
// Trees of NCCL, term by term against the equations of docs/MODELS.md computed by hand from the parameters of each
// forecast.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/approx.hpp"
#include "tests/support/terms.hpp"

using namespace fabricast;
using test::forecast;
using test::Forecast;
using test::forecast_with;

TEST_CASE("a generation whose trees have taught nothing takes its rings' hop by NCCL's ratio of both") {
  const auto hop_us = [](const char* algorithm) {
    return forecast("h200vm-2gpu-all_reduce-tree-simple",
                    {{"workload.algorithm", algorithm}, {"workload.protocol", "simple"}, {"workload.sizes", "[8 B]"}})
               .us("2 hops over nvlink") /
           2;
  };
  const auto parameters = test::shipped("validation/h200vm-2gpu-all_reduce-tree-simple.yaml").parameters;
  const auto us = [&](const char* name) { return parameters.number(name) * 1e6; };
  CHECK(hop_us("ring") == test::approx(us("nccl.hop_time.ring.simple.nvlink.hopper")));
  const double ratio = us("nccl.hop_time.tree.simple.nvlink") / us("nccl.hop_time.ring.simple.nvlink");
  CHECK(hop_us("tree") == test::approx(ratio * us("nccl.hop_time.ring.simple.nvlink.hopper")));
  // On A100 rings taught none either: NCCL's own figures.
  const auto of_a100 = [](const char* algorithm) {
    return forecast("a100-oci-bm-8gpu-1node-nvswitch-allreduce", {{"workload.algorithm", algorithm},
                                                                  {"workload.protocol", "simple"},
                                                                  {"workload.gpus", "2"},
                                                                  {"workload.sizes", "[8 B]"}})
               .us("2 hops over nvlink") /
           2;
  };
  CHECK(of_a100("tree") == test::approx(us("nccl.hop_time.tree.simple.nvlink")));
  CHECK(of_a100("ring") == test::approx(us("nccl.hop_time.ring.simple.nvlink")));
}

TEST_CASE("a tree of LL starts as a ring does, holds a line in every hop, and turns round at its root before 2.10") {
  const auto tree = [](const char* release, const char* size) {
    return forecast("a100-abci-16gpu-2node-hdr4-allreduce-nccl2.8", {{"workload.algorithm", "tree"},
                                                                     {"workload.protocol", "ll"},
                                                                     {"workload.channels", "1"},
                                                                     {"software.nccl.version", release},
                                                                     {"workload.sizes", size}});
  };
  const auto number = [&](const Forecast& f, const std::string& name) { return f.scenario.parameters.number(name); };
  for (const auto& first_line_of : std::vector<std::pair<const char*, const char*>>{
           {"2.8", "nccl.first_line.ll.nccl2.9"}, {"2.10", "nccl.first_line.ll"}}) {
    const auto& [release, first_line] = first_line_of;
    CAPTURE(first_line_of.first);
    for (const auto& [size, bytes] :
         std::vector<std::pair<const char*, double>>{{"[1 KiB]", 1024}, {"[64 KiB]", 65536}}) {
      const auto f = tree(release, size);
      CHECK(f.us("kernel start") == test::approx(number(f, "nccl.base_time.ring.ll.ampere") * 1e6));
      CHECK(f.us("over nvlink") == test::approx(14 * number(f, "nccl.hop_time.tree.ll.nvlink") * 1e6));
      // All threads up, then down; since 2.10 five of 16 warps down while the others go up.
      const double share = std::string(release) == "2.8" ? 0.5 : 5.0 / 16 * number(f, "nccl.tree_link_share");
      const double first = std::min<double>(4096 * share, bytes);
      const double work = 14 * number(f, first_line) * first + (bytes - first) / share;
      CHECK(f.us("transfer") == test::approx(work / number(f, "nccl.channel_bandwidth.ll") * 1e6).epsilon(1e-3));
      const bool is_old = std::string(release) == "2.8";
      CHECK(f.us("the root turns round") == test::approx(is_old ? number(f, "nccl.tree_turn.ll.nccl2.9") * 1e6 : -1));
    }
  }
}

TEST_CASE("a tree pays its way up and down once, and some threads of a middle rank send up, others down") {
  const auto tree = [](const std::string& protocol, int gpus, const char* release) {
    return forecast("h200vm-4gpu-all_reduce-tree-" + protocol, {{"workload.gpus", std::to_string(gpus)},
                                                                {"workload.channels", "1"},
                                                                {"workload.launch", "thread_per_gpu"},
                                                                {"software.nccl.version", release},
                                                                {"workload.sizes", "[64 MiB]"}});
  };
  // Five of 16 warps of LL, six of 20 of LL128 send down: a line costs three accesses to memory, at the end two.
  for (const int gpus : {2, 4}) {
    for (const std::string p : {"ll", "ll128"}) {
      CAPTURE(p + std::to_string(gpus));
      const auto f = tree(p, gpus, "2.28");
      const double hop = std::max(f.value("nccl.hop_time.tree." + p + ".nvlink"), 500e-9);
      CHECK(f.us("over nvlink") == test::approx(2 * (gpus - 1) * hop * 1e6).epsilon(1e-4));
      const double down = p == "ll" ? 5.0 / 16 * f.value("nccl.tree_link_share") : 6.0 / 20;
      const double rate = f.value("nccl.channel_bandwidth." + p) * down * (gpus == 2 ? 1.5 : 1);
      CHECK(f.us("transfer") == test::approx(67108864 / rate * 1e6).epsilon(1e-4));
    }
  }
  const auto old = tree("ll", 2, "2.8");  // all threads up, then down
  const double turned = 0.6 * old.value("nccl.channel_bandwidth.ll");
  CHECK(old.us("transfer") == test::approx(67108864 / turned * 1e6).epsilon(1e-3));
  // Simple: the first chunk of 512 KiB fills the pipeline hop by hop and is put down, a read and a write; the rest
  // follows.
  const auto f = tree("simple", 4, "2.28");
  const double rate = f.value("nccl.channel_bandwidth.simple");
  CHECK(f.us("filling the pipeline") == test::approx((6 + 1 / 1.5) * 524288 / rate * 1e6).epsilon(1e-4));
  // A middle rank receives, reduces and sends up, receives, copies and sends down: three reads and three writes, where
  // a step of a ring has 1.5 of each. Two ranks: the root does all of it at once, two of each, as much as the leaf, and
  // both wait for each other.
  CHECK(f.us("transfer") == test::approx((67108864 - 524288) / (rate / 2) * 1e6).epsilon(1e-4));
  const auto two = tree("simple", 2, "2.28");
  CHECK(two.us("filling the pipeline") == test::approx((2 + 1 / 1.5) * 524288 / rate * 1e6).epsilon(1e-4));
  const double in_turn = two.value("nccl.tree_link_share");
  CHECK(two.us("transfer") == test::approx((67108864 - 524288) / (rate * 1.5 / 2 * in_turn) * 1e6).epsilon(1e-4));
}

TEST_CASE("what goes up a tree waits for what goes down through host memory too, rings do not") {
  const auto transfer = [](const char* name, double share) {
    return forecast_with(name, {{"workload.sizes", "[256 MiB]"}}, "nccl.tree_link_share", share).us("transfer");
  };
  // Lines of LL by thread blocks, Simple by what links carry both ways.
  const auto* lines = "h200vm3-2gpu-all_reduce-p2poff-tree-ll";
  CHECK(transfer(lines, 0.4) == test::approx(2 * transfer(lines, 0.8)).epsilon(1e-2));
  const auto* simple = "h200vm3-2gpu-all_reduce-p2poff-tree-simple";
  CHECK(transfer(simple, 0.4) > 1.7 * transfer(simple, 0.8));
  const auto* ring = "h200vm3-2gpu-all_reduce-p2poff-ring-simple";
  CHECK(transfer(ring, 0.4) == test::approx(transfer(ring, 0.8)));
}

TEST_CASE("trees reach a share of the link between adapter and switch, rings all of it") {
  // 16 channels over four adapters of 400 Gb/s: four share one.
  const auto transfer = [](const char* algorithm, double share) {
    return forecast_with(
               "h200-16gpu-2node-cx7x4-baremetal-allreduce",
               {{"workload.algorithm", algorithm}, {"workload.protocol", "simple"}, {"workload.sizes", "[1 GiB]"}},
               "nccl.tree_link_share", share)
        .us("transfer");
  };
  CHECK(transfer("tree", 0.4) == test::approx(2 * transfer("tree", 0.8)).epsilon(1e-3));
  CHECK(transfer("tree", 0.8) == test::approx(transfer("tree", 1) / 0.8).epsilon(0.02));
  CHECK(transfer("ring", 0.4) == test::approx(transfer("ring", 0.8)));
}

TEST_CASE("a tree over hosts whose GPUs meet by sockets pays every hop of their chain") {
  const auto f = forecast("h100-16gpu-2node-ndr8-baremetal-allreduce", {{"workload.algorithm", "tree"},
                                                                        {"workload.protocol", "ll"},
                                                                        {"software.nccl.p2p", "off"},
                                                                        {"software.nccl.shm", "off"},
                                                                        {"workload.sizes", "[8 B]"}});
  CHECK(f.us("14 hops over socket") > 0);
  CHECK(f.us("2 hops over network_staged") > 0);
}
