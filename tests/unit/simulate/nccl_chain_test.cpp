// SPDX-License-Identifier: Apache-2.0
// Broadcast and reduce over hosts, of which nccl-tests queues many: hosts work on different ones at the same time.
#include <fmt/format.h>

#include <random>
#include <string>
#include <vector>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

struct Case {
  std::string hosts = "dgx-a100";
  std::string release = "2.21";
  std::string benchmark = "broadcast_perf";
  std::string how;  ///< further keys of the workload, each after ", "
  std::string size = "1 MiB";
  std::string fabric = "{fat_tree: {switch: qm8700, tiers: 2, oversubscription: 1}}";
};

double seconds(const Case& one, int hosts) {
  const auto prediction = test::run(test::scenario(fmt::format(
      "schema: fabricast/scenario/1\nname: t\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: [{{name: "
      "node, count: {}, type: {}}}]\n{}software: {{nccl: {{version: \"{}\"}}}}\nworkload: {{benchmark: {}, sizes: "
      "[{}]{}}}\n",
      hosts, one.hosts, hosts > 1 ? "  fabric: " + one.fabric + "\n" : "", one.release, one.benchmark, one.size,
      one.how)));
  return prediction.workloads.at(0).rows.at(0).time.seconds();
}

}  // namespace

TEST_CASE("where channels pass all ranks in one order, a host more costs half of its way over all that are queued") {
  std::mt19937 random(7);
  const auto pick = [&](const std::vector<std::string>& from) { return from[random() % from.size()]; };
  for (int drawn = 0; drawn < 40; ++drawn) {
    Case one;
    one.hosts = pick({"server-1a100-cx6dx", "server-1p100-cx3", "dgx-a100"});
    const bool is_large = one.hosts == "dgx-a100";
    one.release = pick({"2.12", "2.18", "2.21", "2.28"});
    one.benchmark = pick({"broadcast_perf", "reduce_perf"});
    one.size = pick({"64 KiB", "512 KiB", "3 MiB"});
    one.how = std::string(", protocol: simple, channels: ") + (is_large ? "1" : "2");
    one.fabric = is_large ? "{single_switch: {switch: qm8700}}" : "{single_switch: {switch: sn2700}}";
    CAPTURE(one.hosts);
    CAPTURE(one.release);
    CAPTURE(one.benchmark);
    CAPTURE(one.size);
    const int hosts = 2 + static_cast<int>(random() % 2);
    CAPTURE(hosts);
    auto alone = one;
    alone.how += ", iterations: 1";
    const double once = seconds(alone, hosts + 2) - seconds(alone, hosts);
    REQUIRE(once > 0);
    const double queued = seconds(one, hosts + 2) - seconds(one, hosts);
    CHECK(queued > 0.02 * once);
    CHECK(queued < 0.06 * once);
    // Until 2.10 nccl-tests tells the time of the root alone.
    one.release = "2.10";
    CHECK(seconds(one, hosts + 2) == test::approx(seconds(one, hosts)).epsilon(0.03));
  }
}

TEST_CASE(
    "where channels come into hosts at several GPUs, a queued broadcast waits for most of the way over all hosts") {
  // Slope over hosts: (E - 1) / E of the way, with E = 1, 2 and more GPUs of a DGX A100 at which channels come in.
  const auto slope = [](int channels) {
    const Case one{"dgx-a100",
                   "2.18",
                   "broadcast_perf",
                   ", protocol: simple, channels: " + std::to_string(channels),
                   std::to_string(64 * channels) + " KiB",
                   "{single_switch: {switch: qm8700}}"};
    auto alone = one;
    alone.how += ", iterations: 1";
    return (seconds(one, 5) - seconds(one, 3)) / (seconds(alone, 5) - seconds(alone, 3));
  };
  CHECK(slope(1) == test::approx(0.025).epsilon(0.05));
  CHECK(slope(2) == test::approx(0.5 + 0.5 * 0.025).epsilon(0.05));
  CHECK(slope(8) > 0.7);
  CHECK(slope(8) < 0.95);
}

TEST_CASE("one message of a connection is on its way at a time: ranks behind a slow network wait for it") {
  const auto plain = [](const char* release) {
    return Case{"aws-p4d",
                release,
                "broadcast_perf",
                ", channels: 1, protocol: ll",
                "1 KiB",
                "{single_switch: {switch: aws-srd, cable: 30 m, mtu: 8192 B}}\n"
                "  parameters: {efa-100g-gdr.plugin_latency: {value: 46.5 us, source: test}}"};
  };
  // A slow plugin takes 55 us a message with the copy into the GPU; the root's own kernels take 8.
  CHECK(seconds(plain("2.10"), 2) < 10e-6);
  CHECK(seconds(plain("2.21"), 2) > 30e-6);
  CHECK(seconds(plain("2.21"), 2) < 50e-6);
  // Half of the ranks of two hosts, three quarters of those of four.
  CHECK(seconds(plain("2.21"), 4) > 1.3 * seconds(plain("2.21"), 2));
  CHECK(seconds(plain("2.21"), 32) < 1.1 * seconds(plain("2.21"), 16));
}
