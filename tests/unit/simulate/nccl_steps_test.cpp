// SPDX-License-Identifier: Apache-2.0
// Steps of NCCL inside a host, term by term against the equations of docs/MODELS.md computed by hand from the
// parameters of each forecast.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

struct Forecast {
  LoadedScenario scenario;
  Row row;

  /// A parameter of the GPU architecture, else of all; a name without its protocol where all share a value.
  [[nodiscard]] double value(const std::string& name) const {
    const auto shorter = name.substr(0, name.rfind('.'));
    return scenario.parameters.first_of({name + ".hopper", name, shorter + ".hopper", shorter}).value;
  }
  /// Sum of the terms whose name contains `words`; -1 when there is none.
  [[nodiscard]] double us(const std::string& words) const {
    double sum = -1;
    for (const auto& term : row.terms) {
      if (term.name.find(words) != std::string::npos) sum = std::max(sum, 0.0) + term.time.us();
    }
    return sum;
  }
};

Forecast forecast(const std::string& name, std::vector<Setting> settings) {
  auto scenario = test::shipped("validation/" + name + ".yaml", settings);
  const auto prediction = test::run(scenario);
  return {std::move(scenario), prediction.workloads[0].rows.at(0)};
}

Forecast forecast_with(const std::string& name, std::vector<Setting> settings, const std::string& parameter,
                       double value) {
  auto scenario = test::shipped("validation/" + name + ".yaml", settings);
  auto other = scenario.parameters.at(parameter);
  other.value = value;
  scenario.parameters.set(other);
  const auto prediction = test::run(scenario);
  return {std::move(scenario), prediction.workloads[0].rows.at(0)};
}

double at_most(double value, double limit) { return std::min(value, limit); }
/// The largest chunk of a ring's step.
double ring_chunk(const std::string& protocol) {
  return protocol == "ll" ? 32768 : (protocol == "ll128" ? 576000 : 2097152);
}

/// Work of a thread block, in steps of an all-reduce ring: what it does for one n-th of the bytes, and one step of its
/// own.
struct RingWork {
  double steps;
  double one;
};

/// By hand, in the time of a byte read and written: own bytes read, written, and bytes received or sent, each q
/// (Simple: 1, LL128 what is left of its step of one received, one sent, half read, half written). In all: all-reduce
/// n, n and 2 n - 2 each way; all-gather 1, n, n - 1; reduce-scatter n, 1, n - 1. The last primitive of a chunk sends
/// nothing.
RingWork work_of_ring(const Forecast& f, const std::string& benchmark, const std::string& protocol, double n) {
  const double read = f.value("nccl.read_share");
  const double write = 1 - read;
  const double unit = 1 / (1.5 * f.value("nccl.channel_bandwidth.simple"));
  const double q = 1 / f.value("nccl.channel_bandwidth." + protocol) / unit - 0.5;
  if (protocol == "simple") CHECK(q == test::approx(1));
  const auto time = [&](double reads, double writes, double received, double sent) {
    return ((reads + q * received) * read + (writes + q * sent) * write) / (0.5 + q);
  };
  if (benchmark == "all_reduce_perf")
    return {time(n, n, 2 * n - 2, 2 * n - 2), time(n, n - 1, 2 * n - 3, 2 * n - 2) / (2 * n - 2)};
  if (benchmark == "all_gather_perf") return {time(1, n, n - 1, n - 1), time(1, n - 1, n - 2, n - 1) / (n - 1)};
  return {time(n, 1, n - 1, n - 1), time(n - 1, 0, n - 2, n - 1) / (n - 1)};
}

}  // namespace

TEST_CASE("a ring pays every hop of its first loop, a share of later ones, and bytes at the rate of its channels") {
  for (const auto* benchmark : {"all_reduce_perf", "all_gather_perf", "reduce_scatter_perf"}) {
    for (const auto* protocol : {"ll", "ll128", "simple"}) {
      for (const double size : {64e3, 67108864.0}) {
        CAPTURE(benchmark);
        CAPTURE(protocol);
        CAPTURE(size);
        const std::string p = protocol;
        const bool is_reduce = std::string(benchmark) == "all_reduce_perf";
        const auto f = forecast("h200vm-4gpu-all_reduce",
                                {{"workload.benchmark", benchmark},
                                 {"workload.algorithm", "ring"},
                                 {"workload.protocol", p},
                                 {"workload.channels", "1"},
                                 {"workload.launch", "thread_per_gpu"},
                                 {"workload.sizes", "[" + std::to_string(static_cast<int>(size)) + " B]"}});
        const double step = size / 4;
        const double steps = is_reduce ? 6 : 3;
        const double chunk = at_most(ring_chunk(p), step);
        const double loops = std::ceil(step / ring_chunk(p));
        // Lines of LL are passed on as they come.
        const double paid = p == "ll" ? 1 : 1 + (loops - 1) * f.value("nccl.later_loops." + p);
        const double hops = steps * paid;
        const double hop = std::max(f.value("nccl.hop_time.ring." + p + ".nvlink"), 500e-9);  // links and switch
        CHECK(f.us("over nvlink") == test::approx(hops * hop * 1e6).epsilon(1e-4));
        if (p == "ll") {
          const double lines = 512 * 8;  // bytes
          const double beyond = steps * f.value("nccl.first_line.ll") * at_most(lines, step) +
                                (steps + 1) * (std::ceil(step / lines) - 1) * lines;
          CHECK(f.us("transfer") == test::approx(beyond / f.value("nccl.channel_bandwidth.ll") * 1e6).epsilon(1e-4));
          CHECK(f.us("chunks that follow") == test::approx(steps * f.value("nccl.step_overhead.ll") * 1e6));
          CHECK(f.us("larger chunks") < 0);
        } else {
          CHECK(f.us("larger chunks") == test::approx(hops * f.value("nccl.hop_ramp_time." + p) * chunk /
                                                      (chunk + f.value("nccl.hop_ramp_bytes." + p)) * 1e6)
                                             .epsilon(1e-4));
          const auto copies = work_of_ring(f, benchmark, p, 4);
          const double bytes = step * copies.steps + f.value("nccl.first_chunk." + p) * chunk * copies.one;
          CHECK(f.us("transfer") == test::approx(bytes / f.value("nccl.channel_bandwidth." + p) * 1e6).epsilon(1e-4));
        }
        CHECK(f.us("kernel start") == test::approx(f.value("nccl.base_time.ring." + p) * 1e6));
      }
    }
  }
}

TEST_CASE("the slowest of several channels counts in every hop, and thread blocks start one after the other") {
  const auto hopper = forecast("h200vm-4gpu-all_reduce-ring-ll", {{"workload.sizes", "[64 MiB]"}});
  CHECK(hopper.us("slowest of 24") ==
        test::approx(6 * hopper.value("nccl.channel_skew.ll") * std::log2(24) * 1e6).epsilon(1e-4));
  const auto ampere = [](const char* algorithm, const char* protocol) {
    return forecast("a100-oci-bm-8gpu-1node-nvswitch-allreduce", {{"workload.algorithm", algorithm},
                                                                  {"workload.protocol", protocol},
                                                                  {"workload.channels", "8"},
                                                                  {"workload.sizes", "[256 MiB]"}});
  };
  const auto start = [](const Forecast& f, const std::string& name) {
    return 7 * f.scenario.parameters.number(name) * 1e6;
  };
  const auto simple = ampere("ring", "simple");
  CHECK(simple.us("start of 8") == test::approx(start(simple, "nccl.channel_start.ampere")));
  CHECK(simple.us("start of the protocol on 8") == test::approx(start(simple, "nccl.channel_start.ring.ampere")));
  const auto ll = ampere("ring", "ll");
  CHECK(ll.us("start of 8") == test::approx(start(ll, "nccl.channel_start.ampere")));
  CHECK(ll.us("start of the protocol") < 0);
  const auto tree = ampere("tree", "ll128");
  CHECK(tree.us("start of 8") == test::approx(start(tree, "nccl.channel_start.ampere")));
}

TEST_CASE("of few bytes the first chunks of LL hold all: a line per thread until 2.19, 16 bytes since") {
  // Eight A100, 14 steps: what follows the first chunk twice round.
  const auto following = [](const char* release, const char* size) {
    return forecast("a100-oci-bm-8gpu-1node-nvswitch-allreduce", {{"workload.algorithm", "ring"},
                                                                  {"workload.protocol", "ll"},
                                                                  {"software.nccl.version", release},
                                                                  {"workload.sizes", size}})
        .us("chunks that follow");
  };
  const auto parameters = test::shipped("validation/a100-oci-bm-8gpu-1node-nvswitch-allreduce.yaml").parameters;
  const double old = parameters.number("nccl.step_overhead.ll.nccl2.9") * 1e6;
  const double young = parameters.number("nccl.step_overhead.ll.ampere") * 1e6;
  for (const auto& [size, chunks] : std::vector<std::pair<const char*, int>>{
           {"[8 B]", 1}, {"[512 B]", 1}, {"[1 KiB]", 2}, {"[2 KiB]", 4}, {"[4 KiB]", 8}, {"[1 MiB]", 8}}) {
    CHECK(following("2.8", size) == test::approx(2 * (chunks - 1) * old));
    CHECK(following("2.19", size) == test::approx(2 * (chunks - 1) * young));
  }
  for (const auto& [size, chunks] : std::vector<std::pair<const char*, int>>{
           {"[8 B]", 1}, {"[32 B]", 2}, {"[64 B]", 4}, {"[128 B]", 8}, {"[512 B]", 8}})
    CHECK(following("2.27", size) == test::approx(2 * (chunks - 1) * young));
}

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
      const double first = at_most(4096 * share, bytes);
      const double work = 14 * number(f, first_line) * first + (bytes - first) / share;
      CHECK(f.us("transfer") == test::approx(work / number(f, "nccl.channel_bandwidth.ll") * 1e6).epsilon(1e-3));
      const bool is_old = std::string(release) == "2.8";
      CHECK(f.us("the root turns round") == test::approx(is_old ? number(f, "nccl.tree_turn.ll.nccl2.9") * 1e6 : -1));
    }
  }
}

TEST_CASE(
    "from 2.22 on thread blocks fetch no work, nor have rings of LL128 a start of their own, those of Simple do") {
  for (const auto& release : std::vector<std::pair<const char*, bool>>{{"2.8", true},
                                                                       {"2.12", true},
                                                                       {"2.19", true},
                                                                       {"2.21", true},
                                                                       {"2.22", false},
                                                                       {"2.27", false},
                                                                       {"2.29", false}}) {
    const auto& [version, fetches] = release;
    CAPTURE(release.first);
    for (const auto* protocol : {"ll", "ll128", "simple"}) {
      CAPTURE(protocol);
      const auto f = forecast("a100-oci-bm-8gpu-1node-nvswitch-allreduce", {{"workload.algorithm", "ring"},
                                                                            {"workload.protocol", protocol},
                                                                            {"workload.channels", "8"},
                                                                            {"software.nccl.version", version},
                                                                            {"workload.sizes", "[256 MiB]"}});
      CHECK((f.us("start of 8") > 0) == fetches);
      const auto p = std::string(protocol);
      CHECK((f.us("start of the protocol") > 0) == (p == "simple" || (p == "ll128" && fetches)));
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
  // Simple: the first chunk of 512 KiB fills the pipeline hop by hop, the rest follows.
  const auto f = tree("simple", 4, "2.28");
  const double rate = f.value("nccl.channel_bandwidth.simple");
  CHECK(f.us("filling the pipeline") == test::approx(6 * 524288 / rate * 1e6).epsilon(1e-4));
  // A middle rank receives, reduces and sends up, receives, copies and sends down: three reads and three writes, where
  // a step of a ring has 1.5 of each. Two ranks: the root does all of it at once, two of each.
  CHECK(f.us("transfer") == test::approx((67108864 - 524288) / (rate / 2) * 1e6).epsilon(1e-4));
  const auto two = tree("simple", 2, "2.28");
  CHECK(two.us("transfer") == test::approx((67108864 - 524288) / (rate * 1.5 / 2) * 1e6).epsilon(1e-4));
}

TEST_CASE("what a thread block copies inside its GPU goes at its own rate, however slow the links are") {
  // 24 channels share an NVLink: six steps at what it gives, the last receive, a read and a write, at the block's own.
  for (const double share : {0.96, 0.3}) {
    const auto f = forecast_with("h200vm-4gpu-all_reduce-ring-simple", {{"workload.sizes", "[8 GiB]"}},
                                 "nccl.nvlink_store_share.simple.hopper", share);
    const double step = 8589934592.0 / 4 / 24;
    const double link = f.scenario.parameters.number("h200-sxm.nvlink_link_bandwidth") * 18 *
                        f.scenario.parameters.number("h200-sxm.nvlink_efficiency") / 24;
    const double local = 1 / 1.5 / f.value("nccl.channel_bandwidth.simple");
    CHECK(f.us("transfer") == test::approx(step * (6 / (share * link) + local) * 1e6).epsilon(2e-3));
  }
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

TEST_CASE("in a chain of LL every thread passes on its lines one after the other") {
  // One channel, 16 KiB: 2,048 lines of 8 bytes. 4 ranks, 8 bytes x 4 a thread: 512 threads, 4 lines each.
  const auto f = forecast("h200vm-4gpu-broadcast", {{"workload.protocol", "ll"},
                                                    {"workload.channels", "1"},
                                                    {"workload.launch", "thread_per_gpu"},
                                                    {"workload.sizes", "[16 KiB]"}});
  CHECK(f.us("lines per thread") == test::approx((4 - 1) * f.value("nccl.thread_loop_time.ll") * 1e6).epsilon(1e-4));
  const double bytes = 16384 + f.value("nccl.first_chunk.ll") * 16384;
  CHECK(f.us("transfer") == test::approx(bytes / f.value("nccl.channel_bandwidth.chain.ll") * 1e6).epsilon(1e-4));
}

TEST_CASE("stores reach a share of an NVLink, trees less of it than rings, NVLink SHARP a share of its own") {
  const auto f = forecast("h100-8gpu-1node-nvls-allreduce", {{"workload.sizes", "[1 GiB]"}});
  CHECK(f.row.algorithm == "nvls");
  const double port = f.scenario.parameters.number("h100-sxm.nvlink_link_bandwidth") * 18 *
                      f.scenario.parameters.number("h100-sxm.nvlink_efficiency");
  CHECK(f.us("transfer") ==
        test::approx(1073741824.0 * 9 / 8 / (port * f.value("nccl.nvlink_store_share.nvls")) * 1e6).epsilon(1e-3));
  const auto ring = forecast("h200vm-4gpu-all_reduce-ring-simple", {{"workload.sizes", "[8 GiB]"}});
  const auto tree = forecast("h200vm-4gpu-all_reduce-tree-simple", {{"workload.sizes", "[8 GiB]"}});
  const double link = ring.scenario.parameters.number("h200-sxm.nvlink_link_bandwidth") * 18 *
                      ring.scenario.parameters.number("h200-sxm.nvlink_efficiency");
  const double reached = ring.value("nccl.nvlink_store_share.simple") * link;
  const double step = 8589934592.0 / 4;
  const double local = step / 24 / 1.5 / ring.value("nccl.channel_bandwidth.simple");
  CHECK(ring.us("transfer") == test::approx((6 * step / reached + local) * 1e6).epsilon(2e-3));
  // Up and down every edge of a chain: S both ways over the links of a middle rank, in and out.
  CHECK(tree.us("transfer") ==
        test::approx(2 * 8589934592.0 / (reached * tree.value("nccl.tree_link_share")) * 1e6).epsilon(5e-3));
}

TEST_CASE(
    "blocks of ranks that nccl-tests does not cut at 16 bytes move slower, in the releases and collectives it is so "
    "for") {
  const auto seconds = [](const std::string& benchmark, const std::string& release, int gpus, int bytes,
                          const char* more = "") {
    const auto prediction = test::run(test::scenario(fmt::format(
        "schema: fabricast/scenario/1\nname: t\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: "
        "[{{name: "
        "node, count: 1, type: dgx-2}}]\nsoftware: {{nccl: {{version: \"{}\"}}}}\nworkload: {{benchmark: {}, gpus: {}, "
        "protocol: simple, channels: 2, sizes: [{} B]{}}}\n",
        release, benchmark, gpus, bytes, more)));
    return prediction.workloads.at(0).rows.at(0).time.seconds();
  };
  std::mt19937 random(3);
  for (int drawn = 0; drawn < 60; ++drawn) {
    const int gpus = std::uniform_int_distribution(2, 16)(random);
    const int elements = std::uniform_int_distribution(200'000, 4'000'000)(random) * gpus;
    const bool is_aligned = elements / gpus % 4 == 0;
    CAPTURE(gpus);
    CAPTURE(elements);
    struct Case {
      const char* benchmark;
      const char* release;
      double most;
      double least;
    };
    // Beside the next multiple of 16 bytes, which takes at least as long by its bytes.
    const int whole = (elements / gpus + 3) / 4 * 4 * gpus;
    for (const auto& one : std::vector<Case>{{"all_gather_perf", "2.8", 1.9, 1.08},
                                             {"reduce_scatter_perf", "2.8", 1.9, 1.08},
                                             // Half or three quarters of the blocks.
                                             {"reduce_scatter_perf", "2.7", 9, 3.5},
                                             // A rank's own block, one of n - 1 steps.
                                             {"all_gather_perf", "2.7", 1 + 11.0 / (gpus - 1), 1 + 5.0 / (gpus - 1)},
                                             {"alltoall_perf", "2.23", 1.9, 1},
                                             {"all_gather_perf", "2.17", 1, 1},
                                             {"alltoall_perf", "2.25", 1, 1},
                                             {"all_reduce_perf", "2.8", 1, 1},
                                             {"broadcast_perf", "2.8", 1, 1}}) {
      CAPTURE(one.benchmark);
      CAPTURE(one.release);
      const double ratio = seconds(one.benchmark, one.release, gpus, 4 * elements) /
                           seconds(one.benchmark, one.release, gpus, 4 * whole);
      CHECK(ratio < (is_aligned ? 1 : one.most) + 0.001);
      CHECK(ratio > (is_aligned ? 1 : one.least) - 0.001);
    }
  }
  // How many operations are queued does not cut the blocks.
  const int elements = 12 * 65'537;
  CHECK(seconds("all_gather_perf", "2.8", 12, 4 * elements, ", iterations: 1") ==
        seconds("all_gather_perf", "2.8", 12, 4 * elements));
}
