// SPDX-License-Identifier: Apache-2.0
// Laws of the three schedulers, and our own log of processes that share one H200.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "fabricast/load.hpp"
#include "fabricast/models/virtualization.hpp"
#include "tests/support/approx.hpp"
#include "tests/unit/sharing/measured_table.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using namespace fabricast::models;

namespace {

TimeSlicing scheduler(SharePolicy policy, int max_clients = 0) {
  TimeSlicing out;
  out.policy = policy;
  out.slice = 2_ms;
  out.switch_time = 100_us;
  out.max_clients = max_clients;
  return out;
}

TimeSlicing measured_scheduler() {
  const auto parameters = load_shipped_parameters();
  TimeSlicing out;
  out.slice = parameters->duration("gpu.time_slice");
  out.switch_time = parameters->duration("gpu.context_switch_time");
  return out;
}

std::vector<GpuClient> busy(int n, Duration kernel = 700_us) {
  std::vector<GpuClient> clients;
  for (int i = 0; i < n; ++i) clients.push_back({"vm" + std::to_string(i), kernel, {}, {}, 0});
  return clients;
}

}  // namespace

TEST_CASE("fixed share gives every vGPU 1/max of the GPU, alone or not") {
  for (const int max : {2, 4, 8}) {
    for (int n = 1; n <= max; ++n) {
      CAPTURE(max);
      CAPTURE(n);
      const auto shared = share_gpu(scheduler(SharePolicy::fixed_share, max), busy(n));
      for (const auto& one : shared.clients) CHECK(one.slot_share == test::approx(1.0 / max).epsilon(0.001));
    }
  }
}

TEST_CASE("a fixed-share vGPU alone needs no context switch and runs kernels in all of its slots") {
  const auto shares = share_gpu(scheduler(SharePolicy::fixed_share, 4), busy(1));
  CHECK(shares.clients[0].share == test::approx(0.25).epsilon(0.001));
  CHECK(shares.switching == 0);
  CHECK(shares.idle == test::approx(0.75).epsilon(0.001));
}

TEST_CASE("equal share gives n busy vGPUs 1/n of the GPU each") {
  for (const int n : {1, 2, 3, 5, 8}) {
    CAPTURE(n);
    const auto shares = share_gpu(scheduler(SharePolicy::equal_share), busy(n));
    for (const auto& one : shares.clients) CHECK(one.slot_share == test::approx(1.0 / n).epsilon(0.001));
    // One switch of 0.1 ms per slot of 2 ms, none when alone.
    CHECK(shares.switching == test::approx(n == 1 ? 0.0 : 0.05).epsilon(0.001));
  }
}

TEST_CASE("equal share wastes the slices of an idle vGPU, best effort gives them away") {
  auto clients = busy(2);
  clients.push_back({"idle", 1_us, 1000_ms, {}, 0});
  const auto equal = share_gpu(scheduler(SharePolicy::equal_share), clients);
  const auto best = share_gpu(scheduler(SharePolicy::best_effort), clients);
  CHECK(equal.clients[0].slot_share == test::approx(1.0 / 3).epsilon(0.005));
  CHECK(equal.idle == test::approx(1.0 / 3).epsilon(0.005));
  CHECK(best.clients[0].slot_share == test::approx(0.5).epsilon(0.005));
  CHECK(best.idle < 0.001);
}

TEST_CASE("best effort leaves a single busy client the whole GPU without switches") {
  const auto shares = share_gpu(scheduler(SharePolicy::best_effort), busy(1, 30_ms));
  CHECK(shares.clients[0].share == test::approx(1));
  CHECK(shares.clients[0].period == 30_ms);
  CHECK(shares.switching == 0);
}

TEST_CASE("a latency-sensitive VM waits at most for the n-1 slices of the others, and for its own context") {
  for (const auto policy : {SharePolicy::best_effort, SharePolicy::equal_share}) {
    for (const int n : {2, 4, 8}) {
      CAPTURE(n);
      CAPTURE(to_string(policy));
      auto clients = busy(n - 1, 50_ms);
      // 50 us of work every 31 ms, give or take 90 %, meets the turns of the others at every phase.
      clients.push_back({"latency-sensitive", 50_us, 31_ms, {}, 0.9});
      const auto one = share_gpu(scheduler(policy), clients).clients.back();
      const auto bound = (n - 1) * 2_ms + 100_us;
      // Equal share: work that comes when too little of the own slot is left to load the context waits that bit more.
      const auto late = policy == SharePolicy::equal_share ? 100_us : 0_us;
      CHECK(one.worst_wait <= bound + late);
      CHECK(one.worst_wait.seconds() > 0.9 * bound.seconds());
    }
  }
}

TEST_CASE("shares, context switches and idle time add up to the elapsed time") {
  auto clients = busy(2, 900_us);
  clients.push_back({"half", 3_ms, 3_ms, {}, 0.5});
  for (const auto policy : {SharePolicy::best_effort, SharePolicy::equal_share, SharePolicy::fixed_share}) {
    CAPTURE(to_string(policy));
    const auto shares = share_gpu(scheduler(policy, 4), clients);
    CHECK(shares.busy + shares.switching + shares.idle == test::approx(1));
    double sum = 0;
    for (const auto& one : shares.clients) sum += one.slot_share;
    CHECK(sum == test::approx(shares.busy + shares.switching));
    CHECK(shares.busy > 0);
  }
}

TEST_CASE("short kernels of n synchronous clients have a period of n kernels and n switches") {
  for (const int n : {2, 3, 4, 8}) {
    CAPTURE(n);
    auto clients = busy(n, 200_us);
    for (auto& client : clients) client.pause = 9_us;
    const auto shared = share_gpu(scheduler(SharePolicy::best_effort), clients);
    for (const auto& one : shared.clients) CHECK(one.period == n * (200_us + 100_us));
  }
}

TEST_CASE("a kernel longer than a slice pays one switch per slice") {
  auto clients = busy(2, 19_ms);
  for (auto& client : clients) client.pause = 9_us;
  // A slice of 2 ms holds 1.9 ms of kernel: ten slices each.
  const auto shared = share_gpu(scheduler(SharePolicy::best_effort), clients);
  for (const auto& one : shared.clients) {
    CHECK(one.period == 2 * (19_ms + 10 * 100_us));
    CHECK(one.switches_per_operation == test::approx(10).epsilon(0.01));
  }
}

TEST_CASE("a client that hardly ever computes changes nothing for the others, and keeps its own period") {
  auto clients = busy(2, 300_us);
  clients.insert(clients.begin(), {"rare", 1_ms, 900'000_ms, {}, 0});
  const auto shares = share_gpu(scheduler(SharePolicy::best_effort), clients);
  CHECK(shares.clients[0].period.seconds() == test::approx(900.001));
  CHECK(shares.clients[1].slot_share == test::approx(0.5).epsilon(0.01));
  CHECK(shares.clients[2].period.seconds() > 0);
}

TEST_CASE("kernels of thousands of slices still give their period") {
  const auto shares = share_gpu(scheduler(SharePolicy::best_effort), busy(2, 9'500_ms));
  // 1.9 ms of kernel in each slice of 2 ms, half of the slices.
  CHECK(shares.clients[0].period.seconds() == test::approx(9.5 * 2 * 2 / 1.9).epsilon(0.001));
}

TEST_CASE("longer slices waste less on switches and make others wait longer") {
  auto fine = scheduler(SharePolicy::equal_share);
  auto coarse = fine;
  coarse.slice = 8_ms;
  auto clients = busy(3, 40_ms);
  clients.push_back({"latency-sensitive", 50_us, 11_ms, {}, 0.5});
  const auto a = share_gpu(fine, clients);
  const auto b = share_gpu(coarse, clients);
  CHECK(b.switching < a.switching);
  CHECK(b.clients[3].worst_wait > a.clients[3].worst_wait);
}

TEST_CASE("strict round robin takes an overrun back from later turns, the other one does not") {
  auto strict = scheduler(SharePolicy::equal_share);
  strict.averaging = 1;
  strict.preemption_granularity = 1'500_us;
  auto loose = strict;
  loose.is_strict = false;
  std::vector<GpuClient> clients{{"coarse", 60_ms, {}, {}, 0}, {"fine", 100_us, {}, {}, 0}};
  const auto with = share_gpu(strict, clients);
  const auto without = share_gpu(loose, clients);
  CHECK(without.clients[0].slot_share > 0.55);
  CHECK(std::abs(with.clients[0].slot_share - 0.5) < std::abs(without.clients[0].slot_share - 0.5) / 2);
}

TEST_CASE("more kernel time never ends sooner, whatever shares the GPU") {
  for (const auto policy : {SharePolicy::best_effort, SharePolicy::equal_share, SharePolicy::fixed_share}) {
    for (const auto pause : {10_us, 500_us, 3_ms}) {
      CAPTURE(to_string(policy));
      CAPTURE(pause.ps);
      Duration before;
      for (Duration operation = 20_us; operation < 20_ms; operation = from_seconds(operation.seconds() * 1.1)) {
        const auto wait = slice_wait(scheduler(policy, 4), operation, {{"neighbour", 1_ms, pause, {}, 0.5}});
        const auto now = operation + wait.wait + wait.switching;
        CHECK(now >= before);
        CHECK(now >= operation);
        before = now;
      }
    }
  }
}

TEST_CASE("one slice and one switch cost reproduce the log of 1 and 2 processes on one H200 within 5 %") {
  const auto rows = test::read_table("h200-8gpu-nvswitch-passthrough-vm/gpu-time-slicing.tsv");
  REQUIRE(rows.size() == 12);
  const auto parameters = load_shipped_parameters();
  REQUIRE(parameters);
  const auto gap = parameters->duration("gpu.launch_gap");
  std::map<std::string, double> alone_us;
  for (const auto& row : rows) {
    if (row.at("processes") == "1") alone_us[row.at("kernel_iterations")] = test::number(row, "p50_us");
  }
  for (const auto& row : rows) {
    const int processes = std::stoi(row.at("processes"));
    CAPTURE(row.at("kernel_iterations"));
    CAPTURE(processes);
    // The length of a kernel is a property of the program: its period alone less the launch gap.
    const auto kernel = from_seconds(alone_us.at(row.at("kernel_iterations")) * 1e-6) - gap;
    auto clients = busy(processes, kernel);
    for (auto& client : clients) client.pause = gap;
    const auto one = share_gpu(measured_scheduler(), clients).clients[0];
    CHECK(one.period.us() == test::approx(test::number(row, "p50_us")).epsilon(0.05));
    const double measured_share = test::number(row, "rate_per_s") * kernel.seconds();
    CHECK(one.share == test::approx(measured_share).epsilon(0.05));
  }
}

TEST_CASE("the same slices reproduce all-reduces beside a computing process within 15 % median") {
  const auto rows = test::read_table("h200-2gpu-nvswitch-passthrough-vm/all-reduce-beside-compute-on-the-same-gpu.tsv");
  REQUIRE(rows.size() == 24);
  const auto parameters = load_shipped_parameters();
  REQUIRE(parameters);
  const auto gap = parameters->duration("gpu.launch_gap");
  // The same all-reduces alone, from nccl-tests/h200vm2-2gpu-all_reduce-threads.txt.
  const std::map<std::string, double> alone_us{{"1024", 6.81},    {"8192", 7.22},     {"65536", 7.71},
                                               {"524288", 10.76}, {"4194304", 35.28}, {"33554432", 144.92}};
  std::vector<double> errors;
  for (const auto& row : rows) {
    CAPTURE(row.at("size_bytes"));
    CAPTURE(row.at("neighbour_kernel_us"));
    const auto batch = from_seconds(10 * alone_us.at(row.at("size_bytes")) * 1e-6);
    const auto kernel = from_seconds(test::number(row, "neighbour_kernel_us") * 1e-6) - gap;
    const auto extra = slice_wait(measured_scheduler(), batch, {{"compute", kernel, gap, {}, 0}});
    const double predicted = (batch + extra.wait + extra.switching).us() / 10;
    errors.push_back(std::abs(predicted / test::number(row, "time_us_mean_of_10") - 1));
    CHECK(errors.back() < 0.15);
  }
  std::sort(errors.begin(), errors.end());
  CHECK(errors[errors.size() / 2] < 0.05);
}
