// SPDX-License-Identifier: Apache-2.0
// Steps of NCCL inside a host, term by term against the equations of docs/MODELS.md computed by hand from the
// parameters of each forecast.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/support/approx.hpp"
#include "tests/support/terms.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using test::forecast;
using test::Forecast;
using test::forecast_with;

namespace {

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

TEST_CASE("a kernel of several thread blocks takes longer than one of a single block, once, and not on Hopper") {
  const auto ring = [](const char* name, const char* release, const char* channels) {
    return forecast(name, {{"workload.protocol", "ll"},
                           {"workload.channels", channels},
                           {"software.nccl.version", release},
                           {"workload.sizes", "[64 KiB]"}})
        .us("start of a second channel");
  };
  const auto* ampere = "a100-oci-bm-8gpu-1node-nvswitch-allreduce";
  const double second = test::shipped(std::string("validation/") + ampere + ".yaml")
                            .parameters.number("nccl.second_channel_start.ampere") *
                        1e6;
  for (const auto* release : {"2.8", "2.19", "2.27"}) {
    CAPTURE(std::string(release));
    CHECK(ring(ampere, release, "1") < 0);
    for (const auto* channels : {"2", "3", "24"}) CHECK(ring(ampere, release, channels) == test::approx(second));
  }
  CHECK(ring("v100-abci-4gpu-1node-allreduce-nccl2.8", "2.8", "2") > 0);
  CHECK(ring("h200vm-4gpu-all_reduce", "2.28", "2") == 0);
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

TEST_CASE("from 2.22 on thread blocks fetch no work, before 2.10 rings of LL128 start twice, those of Simple always") {
  struct Release {
    const char* version;
    bool fetches;
    bool is_old;
  };
  for (const auto& release : std::vector<Release>{{"2.8", true, true},
                                                  {"2.9", true, true},
                                                  {"2.10", true, false},
                                                  {"2.19", true, false},
                                                  {"2.21", true, false},
                                                  {"2.22", false, false},
                                                  {"2.29", false, false}}) {
    const std::string version = release.version;
    CAPTURE(version);
    for (const auto* protocol : {"ll", "ll128", "simple"}) {
      CAPTURE(protocol);
      const auto f = forecast("a100-oci-bm-8gpu-1node-nvswitch-allreduce", {{"workload.algorithm", "ring"},
                                                                            {"workload.protocol", protocol},
                                                                            {"workload.channels", "8"},
                                                                            {"software.nccl.version", version},
                                                                            {"workload.sizes", "[256 MiB]"}});
      CHECK((f.us("start of 8") > 0) == release.fetches);
      const auto p = std::string(protocol);
      CHECK((f.us("start of the protocol") > 0) == (p == "simple" || (p == "ll128" && release.is_old)));
      if (p == "ll128" && release.is_old) CHECK(f.us("start of the protocol on 8") == test::approx(f.us("start of 8")));
    }
  }
}

TEST_CASE("a chain of LL128 reaches of NVLinks what Simple does, a ring of it a share of its own before Hopper") {
  const auto transfer = [](const char* name, const char* parameter, double share) {
    return forecast_with(name, {{"workload.protocol", "ll128"}, {"workload.sizes", "[64 MiB]"}}, parameter, share)
        .us("transfer");
  };
  constexpr auto lines = "nccl.nvlink_store_share.ll128", simple = "nccl.nvlink_store_share.simple";
  const auto* chain = "v100-abci-4gpu-1node-broadcast-nccl2.8";
  CHECK(transfer(chain, lines, 0.3) == test::approx(transfer(chain, lines, 0.6)));
  CHECK(transfer(chain, simple, 0.3) == test::approx(2 * transfer(chain, simple, 0.6)).epsilon(1e-2));
  const auto* ring = "v100-abci-4gpu-1node-allreduce-nccl2.8";
  CHECK(transfer(ring, lines, 0.3) > 1.8 * transfer(ring, lines, 0.6));
  CHECK(transfer(ring, simple, 0.3) == test::approx(transfer(ring, simple, 0.6)));
  const auto* hopper = "h200vm-4gpu-all_reduce-ring-ll128";
  CHECK(transfer(hopper, lines, 0.3) == test::approx(transfer(hopper, lines, 0.6)));
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
                                             // Half or three quarters of the blocks; sums have twice as many bytes
                                             // on their way as copies and move half as many again.
                                             {"reduce_scatter_perf", "2.7", 6.5, 2.6},
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
