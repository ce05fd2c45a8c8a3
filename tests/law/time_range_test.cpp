// SPDX-License-Identifier: Apache-2.0
// Times are right or refused: whatever the rates, sizes, counts and starts, a result is never negative, never below
// what the wire needs, and never less than that of a smaller size. Past 106 days (packets: 53) it is refused with a
// message.
#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "tests/support/clusters.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using test::Random;

namespace {

/// SimGrid's clock is a double that goes on through all runs of a process: after 1e5 s its steps are 15 ps.
constexpr double k_clock = 1e-10;

constexpr double k_last_s = 9.2e6;

double log_uniform(Random& random, double low, double high) {
  return low * std::pow(high / low, static_cast<double>(random.next(1'000'001)) / 1e6);
}

std::string pair(double bits_per_s, const std::string& workloads) {
  return fmt::format(
      "schema: fabricast/scenario/1\nname: range\ntopology:\n  schema: fabricast/topology/1\n  name: range\n  hosts: "
      "[{{name: node, count: 2, type: dgx-1-v100}}]\n  fabric: {{single_switch: {{switch: sb7800, rate: {:.17g} "
      "b/s}}}}\n{}",
      bits_per_s, workloads);
}

struct Outcome {
  bool is_refused = false;
  double seconds = 0;
};

Outcome outcome(const std::string& yaml, std::size_t workload = 0, Fidelity fidelity = Fidelity::fluid) {
  const auto loaded = test::scenario(yaml);
  SimulateOptions options;
  options.fidelity = fidelity;
  const auto prediction = simulate(loaded.topology, loaded.scenario, loaded.parameters, options);
  if (!prediction) {
    const auto message = render(prediction.error());
    CAPTURE(message);
    CHECK(message.find("takes too long to count") != std::string::npos);
    CHECK(message.find("scenario.yaml:") != std::string::npos);
    return {true, 0};
  }
  const auto& row = prediction->workloads[workload].rows.back();
  CHECK(row.time.ps >= 0);
  // The fluid engine rounds up, but for a part in 1e9.
  CHECK(row.time + row.time / 500'000'000 + Duration{1} >= row.physical_bound);
  CHECK(row.low_time.ps >= 0);
  CHECK(row.low_time <= row.high_time);
  Duration sum;
  for (const auto& term : row.terms) sum += term.time;
  CHECK(sum == row.time);
  return {false, row.time.seconds()};
}

}  // namespace

TEST_CASE("a write over a cable of any rate takes what its bytes need, or is refused") {
  Random random(20);
  int refused = 0;
  double longest = 0;
  for (int i = 0; i < 60; ++i) {
    const double rate = log_uniform(random, 1, 1e11);
    const auto size = static_cast<std::int64_t>(log_uniform(random, 1, 9e18));
    CAPTURE(rate);
    CAPTURE(size);
    const auto out = outcome(pair(rate, fmt::format("workload: {{benchmark: ib_write_lat, sizes: [{} B]}}\n", size)));
    const auto wire = static_cast<double>(static_cast<long double>(size) * 8 / rate);
    refused += out.is_refused ? 1 : 0;
    if (out.is_refused) {
      CHECK(wire * 1.3 + 1 > k_last_s / 4);  // the end of the band is refused, too
    } else {
      CHECK(out.seconds >= wire * (1 - 1e-9));
      CHECK(out.seconds <= wire * 1.3 + 1e-3 + 8192 * 8 / rate);
    }
    longest = std::max(longest, out.seconds);
  }
  CHECK(refused > 5);
  CHECK(refused < 50);
  CHECK(longest > 100);
}

TEST_CASE("a larger size is never faster, up to the largest and past the range") {
  for (const auto* benchmark : {"ib_write_bw", "osu_bw", "osu_latency", "osu_allreduce", "osu_alltoall", "osu_bcast",
                                "all_reduce_perf", "alltoall_perf", "traffic, pattern: incast, senders: 1"}) {
    for (const double rate : {1.0, 1e11}) {
      CAPTURE(benchmark);
      CAPTURE(rate);
      double last = 0;
      bool was_refused = false;
      for (double size = 1e3; size < 9.2e18; size *= 2e3) {
        CAPTURE(size);
        const auto out =
            outcome(pair(rate, fmt::format("workload: {{benchmark: {}, sizes: [{:.0f} B]}}\n", benchmark, size)));
        CHECK_FALSE((was_refused && !out.is_refused));
        was_refused = out.is_refused;
        if (out.is_refused) continue;
        CHECK(out.seconds >= last);
        last = out.seconds;
      }
    }
  }
}

TEST_CASE("when a workload starts does not change what it takes, up to the last start that is counted") {
  const auto workloads = [](double start) {
    return fmt::format(
        "workloads:\n  - {{benchmark: osu_latency, sizes: [64 KiB]}}\n  - {{benchmark: osu_latency, sizes: [1 MiB], "
        "start: {:.17g} s}}\n",
        start);
  };
  const auto alone = outcome(pair(1e11, "workload: {benchmark: osu_latency, sizes: [1 MiB]}\n"));
  Random random(21);
  for (int i = 0; i < 12; ++i) {
    const double start = i == 0 ? 9.2e6 : log_uniform(random, 1e-3, 9.2e6);
    CAPTURE(start);
    const auto late = outcome(pair(1e11, workloads(start)), 1);
    REQUIRE_FALSE(late.is_refused);
    CHECK(std::abs(late.seconds - alone.seconds) <= k_clock);
  }
}

TEST_CASE("a long simulation leaves the next one as exact as the first") {
  const auto small =
      pair(1e11, "workloads:\n  - {benchmark: osu_bw, sizes: [1 MiB]}\n  - {benchmark: osu_bw, sizes: [64 KiB]}\n");
  const auto longest = outcome(small);
  for (int i = 0; i < 3; ++i) {
    outcome(pair(1e3,
                 "workloads:\n  - {benchmark: ib_write_bw, sizes: [1 GB], window: 1}\n  - {benchmark: ib_write_bw, "
                 "sizes: [100 MB], window: 1}\n"));
  }
  CHECK(std::abs(outcome(small).seconds - longest.seconds) <= k_clock);
}

TEST_CASE("packets over slow cables and of sizes past their numbers are counted or refused, too") {
  const auto traffic = [](double rate, double bytes, double start) {
    return pair(rate, fmt::format("workload: {{benchmark: traffic, flows: [{{name: one, from: node0, to: node1, bytes: "
                                  "{:.0f} B, start: {:.17g} s}}]}}\n",
                                  bytes, start));
  };
  Random random(22);
  for (int i = 0; i < 16; ++i) {
    const double rate = log_uniform(random, 8e3, 1e11);
    const double bytes = log_uniform(random, 1, 1e6);
    const double start = random.next(2) == 0 ? 0 : log_uniform(random, 1e-6, 9.2e6);
    CAPTURE(rate);
    CAPTURE(bytes);
    CAPTURE(start);
    const auto out = outcome(traffic(rate, bytes, start), 0, Fidelity::packet);
    const double wire = bytes * 8 / rate;
    if (out.is_refused) {
      CHECK(start + 2 * wire + 1 > 4.6e6);
    } else {
      CHECK(start + wire <= 4.62e6);
      CHECK(out.seconds >= start + wire * (1 - 1e-9));
    }
  }
  CHECK(outcome(traffic(1e11, 1e18, 0), 0, Fidelity::packet).is_refused);
  CHECK(outcome(traffic(1e11, 9.2e18, 0), 0, Fidelity::packet).is_refused);
}
