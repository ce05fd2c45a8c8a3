// SPDX-License-Identifier: Apache-2.0
// Windows of messages: what the one core of a rank does for messages both ways, which windows end with a reply, what
// queue pairs of one posting thread change.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

struct Place {
  std::string host, network;
  std::vector<std::string> libraries;
};

const std::vector<Place>& places() {
  static const std::vector<Place> all{
      {"azure-hc", "switch: sb7800", {"", "mpi: open-mpi-openib", "mpi: mvapich2-gdr", "mpi: mpich", "ucx: \"1.7\""}},
      {"azure-hbv3", "switch: qm8700", {"", "mpi: mpich", "mpi: intel-mpi", "transport: tcp"}},
      {"dgx-a100", "switch: qm8700", {"", "mpi: mvapich2-gdr"}},
      {"aws-p3dn", "switch: aws-srd, mtu: 8192 B", {"", "mpi: mpich"}},
      {"hpe-4a100-slingshot", "switch: rosetta", {"", "mpi: mpich"}}};
  return all;
}

LoadedScenario pair(const Place& place, const std::string& software, const std::string& workload) {
  return test::scenario(
      fmt::format("schema: fabricast/scenario/1\nname: windows\ntopology:\n  schema: fabricast/topology/1\n  name: w\n"
                  "  hosts: [{{name: n, count: 2, type: {}}}]\n  fabric:\n    single_switch: {{{}}}\n"
                  "software: {{{}}}\nworkload: {{{}}}\n",
                  place.host, place.network, software, workload));
}

std::vector<Row> rows(const Place& place, const std::string& software, const std::string& workload) {
  return test::run(pair(place, software, workload)).workloads[0].rows;
}

/// Of a message, whichever way it goes.
double us_of(const Place& place, const std::string& software, const std::string& workload) {
  return rows(place, software, workload)[0].time.us();
}

constexpr auto k_exchange = "posting messages and taking in others";

const Place k_hdr{"dgx-a100", "switch: qm8700", {}};

}  // namespace

TEST_CASE("messages both ways are at most twice as many as one way, never fewer, and short ones far from twice") {
  for (std::uint64_t seed = 0; seed < test::draws(40); ++seed) {
    CAPTURE(seed);
    test::Random random(seed);
    const auto place = random.pick(places());
    const auto software = random.pick(place.libraries);
    const auto ends = random.pick<std::string>({"", ", ranks_per_host: 2"});
    CAPTURE(place.host);
    CAPTURE(software);
    CAPTURE(ends);
    const auto of = [&](const std::string& benchmark) {
      return rows(place, software,
                  "benchmark: " + benchmark +
                      ", buffers: [host, host], sizes: [1 B, 64 B, 129 B, 1 KiB, 4 KiB, 16 KiB, "
                      "64 KiB, 1 MiB]" +
                      ends);
    };
    const auto one_way = of("osu_bw"), both = of("osu_bibw"), alone = of("osu_latency");
    for (std::size_t i = 0; i < both.size(); ++i) {
      CAPTURE(both[i].size.value);
      const double ratio = one_way[i].time.seconds() / both[i].time.seconds();
      CHECK(ratio >= 0.999);
      // One way a reply of one latency ends each window of 64.
      CHECK(ratio <= 2.001 * (1 + alone[0].time.seconds() / 64 / (2 * both[i].time.seconds())));
      if (both[i].size <= 64_B) CHECK(ratio < 1.6);
    }
  }
}

TEST_CASE("a core that posts a message and takes one in needs its gap for each") {
  for (const auto& place : places()) {
    CAPTURE(place.host);
    auto loaded = pair(place, "", "benchmark: osu_bibw, buffers: [host, host], sizes: [8 B]");
    const auto before = test::run(loaded).workloads[0].rows[0];
    const auto posting = std::ranges::find_if(before.terms, [](const Term& term) { return term.name == k_exchange; });
    REQUIRE(posting != before.terms.end());
    for (const std::string processor : {"", ".epyc-milan"}) {
      if (!loaded.parameters.contains(posting->parameter + processor)) continue;
      auto gap = loaded.parameters.at(posting->parameter + processor);
      gap.value = 50e-6;
      loaded.parameters.set(gap);
    }
    const double exchange = 2 * test::run(loaded).workloads[0].rows[0].time.us();
    CHECK(exchange > 98);
    CHECK(exchange <= 100.001);
  }
}

TEST_CASE("nobody answers a window of osu_bibw") {
  for (const auto& place : places()) {
    CAPTURE(place.host);
    const auto at = [&](const std::string& benchmark) {
      return us_of(place, "", "benchmark: " + benchmark + ", buffers: [host, host], sizes: [1 B]");
    };
    const double alone = at("osu_latency");  // the connection's pause after a message is not part of it
    CHECK(2 * at("osu_bibw, window: 1") == test::approx(alone).epsilon(0.08));
    CHECK(at("osu_bw, window: 1") == test::approx(2 * alone).epsilon(0.08));
    CHECK(at("osu_mbw_mr, window: 1") == test::approx(at("osu_bw, window: 1")));
  }
}

TEST_CASE("one thread of perftest posts no faster to many queue pairs, which fill each other's gaps") {
  for (const std::string benchmark : {"ib_write_bw", "ib_send_bw", "ib_read_bw"}) {
    CAPTURE(benchmark);
    const auto at = [&](const std::string& more) {
      return rows(k_hdr, "", "benchmark: " + benchmark + ", buffers: [host, host], sizes: [2 B, 4 KiB, 1 MiB]" + more);
    };
    const auto deep = at(", window: 128");
    for (const int queue_pairs : {2, 8, 64, 4096}) {
      const auto many = at(fmt::format(", window: 128, queue_pairs: {}", queue_pairs));
      for (std::size_t i = 0; i < many.size(); ++i) {
        CHECK(many[i].time <= deep[i].time);
        CHECK(many[i].time.seconds() >= at(", window: 128, queue_pairs: 4096")[0].time.seconds());
      }
      if (benchmark != "ib_read_bw") CHECK(many[0].time == deep[0].time);
    }
  }
}

TEST_CASE("perftest's thread posts writes both ways as fast as one way, and takes sends in beside its own") {
  const auto at = [](const std::string& benchmark, const std::string& more) {
    return us_of(k_hdr, "", "benchmark: " + benchmark + ", buffers: [host, host], sizes: [2 B]" + more);
  };
  CHECK(2 * at("ib_write_bw", ", bidirectional: true") == test::approx(at("ib_write_bw", "")));
  CHECK(at("ib_send_bw", ", bidirectional: true") == test::approx(at("ib_send_bw", "")));
}

TEST_CASE(
    "inside a host short messages are as many both ways as one way, and a copy between GPUs is started by one core") {
  const auto us_inside = [](const std::string& workload) {
    return us_of({"dgx-a100", "switch: qm8700", {}}, "", workload + ", ranks_per_host: 2");
  };
  for (const std::string size : {"1 B", "8 B", "64 B"}) {
    const auto at = [&](const std::string& benchmark) {
      return us_inside("benchmark: " + benchmark + ", buffers: [host, host], sizes: [" + size + "]");
    };
    CHECK(at("osu_bibw") == test::approx(at("osu_bw")).epsilon(0.12));
  }
  const auto copied = [&](const std::string& benchmark) {
    return us_inside("benchmark: " + benchmark + ", buffers: [device, device], sizes: [64 KiB]");
  };
  CHECK(copied("osu_bibw") < 0.7 * copied("osu_bw"));
  CHECK(copied("osu_bibw") >= 0.499 * copied("osu_bw"));
}
