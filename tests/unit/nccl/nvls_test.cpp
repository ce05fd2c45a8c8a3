// SPDX-License-Identifier: Apache-2.0
// NVLink SHARP between hosts: whatever adapters the heads have and however many channels are left, a forecast or a
// message.
#include <algorithm>

#include "tests/support/random.hpp"
#include "tests/unit/nccl/hosts.hpp"

using namespace fabricast;
using test::cluster_of;
using test::PairedHost;
using test::Random;

namespace {

PairedHost random_host(Random& random) {
  PairedHost host;
  host.gpus = static_cast<int>(1 + random.next(8));
  const auto type = random.pick<std::string>({"connectx-7-ndr", "connectx-6-hdr"});
  for (auto count = random.next(static_cast<std::uint64_t>(host.gpus) + 1); count > 0; --count)
    host.hcas.push_back({type, random.pick<std::string>({"sw0", "sw1", "sw2", "sw3", "socket0", "socket1"})});
  return host;
}

}  // namespace

TEST_CASE("hosts with fewer HCAs than GPUs, or none, get a forecast or a message with NVLS automatic and on") {
  int forecast = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const auto host = random_host(random);
    CAPTURE(host.gpus);
    CAPTURE(host.hcas.size());
    const auto nccl = random.pick<std::string>({"{}", "{nvls: on}", "{nvls: on, version: \"2.18\"}"});
    const auto limit = random.pick<std::string>({"", ", channels: 1", ", channels: 3", ", channels: 32"});
    const auto algorithm = random.pick<std::string>({"", ", algorithm: nvls"});
    auto loaded = cluster_of(host, 2 + static_cast<int>(random.next(2)), nccl,
                             "{benchmark: all_reduce_perf, sizes: [1 KiB, 64 MiB]" + limit + algorithm + "}");
    if (random.next(3) == 0) loaded.scenario.software.transport = "tcp";
    const auto result = simulate(loaded.topology, loaded.scenario, loaded.parameters);
    if (!result) {
      CHECK_FALSE(result.error().empty());
      continue;
    }
    ++forecast;
    for (const auto& row : result->workloads[0].rows) CHECK(row.time.ps > 0);
  }
  CHECK(forecast > 30);
}

TEST_CASE("each HCA makes one GPU a head of NVLink SHARP between hosts, 2.28 and later need two") {
  struct Row {
    int gpus, hcas;
    std::string version, used, reason;
  };
  for (const auto& row : {Row{8, 8, "2.28", "on", "8 channels found at 40.0 GB/s, 48.0 between hosts"},
                          Row{8, 4, "2.28", "on", "4 channels found at 48.0 GB/s, 48.0 between hosts"},
                          Row{8, 2, "2.28", "on", "2 channels found at 48.0 GB/s, 48.0 between hosts"},
                          Row{8, 1, "2.27", "on", "1 channels found at 48.0 GB/s, 48.0 between hosts"},
                          Row{8, 1, "2.28", "off", "1 of n0's GPUs have an HCA of their own to reduce by, it needs 2"},
                          Row{4, 8, "2.28", "on", "4 channels found at 48.0 GB/s, 48.0 between hosts"}}) {
    PairedHost host{.gpus = row.gpus};
    for (int h = 0; h < row.hcas; ++h)
      host.hcas.push_back({"connectx-7-ndr", "sw" + std::to_string(h * row.gpus / 2 / row.hcas)});
    CAPTURE(row.gpus);
    CAPTURE(row.hcas);
    const auto prediction = test::run(cluster_of(host, 2, "{version: \"" + row.version + "\"}"));
    const auto& settings = prediction.workloads[0].settings;
    const auto nvls = std::ranges::find(settings, "nvls", &GivenUsed::setting);
    REQUIRE(nvls != settings.end());
    CHECK(nvls->used == row.used);
    CHECK(nvls->reason == row.reason);
  }
}
