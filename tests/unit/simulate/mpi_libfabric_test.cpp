// SPDX-License-Identifier: Apache-2.0
// MPI libraries and the adapters that they can reach: by libfabric's providers, by verbs, or not at all; and how EFA's
// provider moves what is too long to be sent at once.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using test::us;

namespace {

LoadedScenario pair_of(const std::string& host, const std::string& network, const std::string& software,
                       const std::string& workload, const std::string& more = "") {
  return test::scenario(
      fmt::format("schema: fabricast/scenario/1\nname: t\ntopology:\n  schema: fabricast/topology/1\n  name: t\n"
                  "  hosts: [{{name: n, count: 2, type: {}}}]\n  fabric: {{single_switch: {{switch: {}}}}}\n"
                  "{}software: {{{}}}\nworkload: {{{}}}\n",
                  host, network, more, software, workload));
}

/// Host memory over EFA.
Row latency_over_efa(const std::string& host, std::int64_t bytes, const std::string& parameters = "") {
  const auto more = parameters.empty() ? "" : "  parameters: {" + parameters + "}\n";
  const auto loaded = pair_of(host, host == "aws-p5" ? "aws-srd-400g" : "aws-srd", "mpi: open-mpi-ofi",
                              fmt::format("benchmark: osu_latency, buffers: host, sizes: [{} B]", bytes), more);
  return test::run(loaded).workloads[0].rows[0];
}

double windows_us(const Row& row) {
  double sum = 0;
  for (const auto& term : row.terms)
    if (term.name.find("granted by the receiver") != std::string::npos) sum += term.time.us();
  return sum;
}

constexpr std::int64_t k_window = 278 * 1024;  // 32 packets of some 8.9 kB
constexpr std::int64_t k_packet = 8192;        // the first of them, in the announcement

}  // namespace

TEST_CASE("over EFA without reads the receiver grants one window of 32 packets after the other") {
  // A message of one window, to the byte, and what the second one adds.
  const double one = windows_us(latency_over_efa("aws-p3dn", k_packet + k_window));
  CHECK(windows_us(latency_over_efa("aws-p3dn", 64 * 1024)) == 0);  // sent at once
  CHECK(one > 0);
  CHECK(windows_us(latency_over_efa("aws-p3dn", 64 * 1024 + 1)) == test::approx(one));
  CHECK(windows_us(latency_over_efa("aws-p3dn", k_packet + k_window + 1)) == test::approx(2 * one));
  CHECK(windows_us(latency_over_efa("aws-p3dn", 4 << 20)) == test::approx(15 * one));
  // The grant is a message without data, the window's first packet one of a packet.
  const double packet = latency_over_efa("aws-p3dn", k_packet).time.us();
  CHECK(one == test::approx(latency_over_efa("aws-p3dn", 0).time.us() + packet).epsilon(0.05));
  // FI_EFA_TX_MIN_CREDITS=64.
  CHECK(
      windows_us(latency_over_efa("aws-p3dn", 4 << 20, "efa-100g.libfabric_window: {value: 556 KiB, source: test}")) ==
      test::approx(8 * one));
}

TEST_CASE("a window's latency is hidden where many messages are under way") {
  const auto rate = [](const std::string& benchmark) {
    return test::run(pair_of("aws-p3dn", "aws-srd", "mpi: open-mpi-ofi",
                             "benchmark: " + benchmark + ", buffers: host, sizes: [4 MiB]"))
        .workloads[0]
        .rows[0]
        .time.us();
  };
  CHECK(rate("osu_latency") > 2 * rate("osu_bw"));
}

TEST_CASE("adapters with reads take messages of 1 MiB whole, without a core, shorter ones go by windows") {
  for (const std::string host : {"aws-p4d", "aws-p5"}) {
    CAPTURE(host);
    const auto below = latency_over_efa(host, (1 << 20) - 1), read = latency_over_efa(host, 1 << 20);
    CHECK(windows_us(below) > 0);
    CHECK(windows_us(read) == 0);
    CHECK(us(read, "rendezvous control messages") ==
          test::approx(2 * latency_over_efa(host, 0).time.us()).epsilon(0.02));
    // One adapter of 100 Gb/s moves the rest, also where the NCCL plugin joins several.
    const double more = latency_over_efa(host, 64 << 20).time.us() - latency_over_efa(host, 32 << 20).time.us();
    CHECK((32 << 20) / more < 12'500);
    CHECK((32 << 20) / more > 11'000);
  }
}

TEST_CASE(
    "over EFA with reads a GPU's message of up to 300 KiB goes at once, and the receiver's adapter copies it in") {
  const auto row = [](std::int64_t bytes, const std::string& buffers, const std::string& software = "") {
    return test::run(pair_of("aws-p4d", "aws-srd", software,
                             fmt::format("benchmark: osu_latency, buffers: {}, sizes: [{} B]", buffers, bytes)))
        .workloads[0]
        .rows[0];
  };
  CHECK(row(300 << 10, "device").protocol == "eager gdr");
  CHECK(row((300 << 10) + 1, "device").protocol == "rendezvous gdr");
  CHECK(row(16 << 10, "device", "eager_limit: 8 KiB").protocol == "rendezvous gdr");
  const auto short_one = row(8, "device"), longer = row(64 << 10, "device");
  CHECK(us(short_one, "copied to the GPU by the adapter") == test::approx(8.597));
  CHECK(us(longer, "copied to the GPU by the adapter") == test::approx(8.597));
  CHECK(us(row(8, "[host, host]"), "copied to the GPU by the adapter") == 0);
  CHECK(us(short_one, "device buffer handling") == 0);
  // One way or the other: the mean of both directions has half of it.
  CHECK(row(8, "[device, host]").time.us() == test::approx(0.5 * (short_one.time.us() + row(8, "host").time.us())));
  // Packets follow each other as those of host memory.
  CHECK(longer.time.us() > row(64 << 10, "host").time.us() - 0.1);
}

TEST_CASE("over EFA a longer message takes longer, but where its data begin to be read") {
  test::Random random(12);
  for (int i = 0; i < static_cast<int>(test::draws(40)); ++i) {
    const auto size =
        static_cast<std::int64_t>(std::uint64_t{1} << random.next(24)) + static_cast<std::int64_t>(random.next(1000));
    const auto more = size + 1 + static_cast<std::int64_t>(random.next(static_cast<std::uint64_t>(size)));
    CAPTURE(size);
    CAPTURE(more);
    CHECK(latency_over_efa("aws-p3dn", more).time >= latency_over_efa("aws-p3dn", size).time);
    if (size >= 1 << 20 || more < 1 << 20)
      CHECK(latency_over_efa("aws-p4d", more).time >= latency_over_efa("aws-p4d", size).time);
  }
}

namespace {

struct Fabric {
  const char* host;
  const char* network;
};

const std::map<std::string, Fabric> k_fabrics{{"InfiniBand", {"dgx-a100", "qm8700"}},
                                              {"Slingshot", {"hpe-4a100-slingshot", "rosetta"}},
                                              {"Aries", {"pizdaint-xc50", "aries-router"}},
                                              {"EFA", {"aws-p4d", "aws-srd"}}};

/// The profile whose values messages take, or why they take none.
std::string carrier(const std::string& fabric, const std::string& software, const std::string& benchmark) {
  const auto& [host, network] = k_fabrics.at(fabric);
  const auto loaded =
      pair_of(host, network, software, "benchmark: " + benchmark + ", buffers: [host, host], sizes: [8 B]");
  const auto prediction = simulate(loaded.topology, loaded.scenario, loaded.parameters);
  if (!prediction) return test::shown(prediction.error());
  for (const auto& one : prediction->workloads[0].settings)
    if (one.setting == "profile") return one.used;
  return "no profile";
}

}  // namespace

TEST_CASE("libraries over libfabric take what the adapters' provider takes, others are refused where they cannot run") {
  // Of each library: what carries its messages over InfiniBand, Slingshot-11, Aries and EFA; empty: it does not run.
  const std::map<std::string, std::map<std::string, std::string>> expected{
      {"open-mpi-ofi",
       {{"InfiniBand", "open-mpi-ucx"},
        {"Slingshot", "cray-mpich-cxi"},
        {"Aries", "cray-mpich"},
        {"EFA", "open-mpi-ofi"}}},
      {"open-mpi-ucx", {{"InfiniBand", "open-mpi-ucx"}, {"Slingshot", ""}, {"Aries", "open-mpi-ucx"}, {"EFA", ""}}},
      {"open-mpi-openib", {{"InfiniBand", "open-mpi-openib"}, {"Slingshot", ""}, {"Aries", ""}, {"EFA", ""}}},
      {"mvapich2-gdr", {{"InfiniBand", "mvapich2-gdr"}, {"Slingshot", "cray-mpich-cxi"}, {"Aries", ""}, {"EFA", ""}}},
      {"cray-mpich",
       {{"InfiniBand", "cray-mpich"},
        {"Slingshot", "cray-mpich-cxi"},
        {"Aries", "cray-mpich"},
        {"EFA", "open-mpi-ofi"}}},
      {"mpich",
       {{"InfiniBand", "open-mpi-ucx"},
        {"Slingshot", "cray-mpich-cxi"},
        {"Aries", "cray-mpich"},
        {"EFA", "open-mpi-ofi"}}}};
  for (const auto& library : expected) {
    for (const auto& fabric : library.second) {
      const auto name = library.first, on = fabric.first;
      CAPTURE(name);
      CAPTURE(on);
      for (const std::string benchmark : {"osu_latency", "osu_allreduce"}) {
        const auto used = carrier(on, "mpi: " + name, benchmark);
        if (!fabric.second.empty()) {
          CHECK(used == fabric.second);
          continue;
        }
        CHECK(used.find("error: " + name + " ") != std::string::npos);
        CHECK(used.find("scenario.yaml:8:12: error") != std::string::npos);  // where it was written
        CHECK(used.find("open-mpi-ofi") != std::string::npos);               // what runs
      }
    }
  }
}

TEST_CASE("UCX reaches EFA from 1.18 on, a version of Open MPI alone is one over the adapters' provider") {
  CHECK(carrier("EFA", "mpi: open-mpi-ucx, ucx: \"1.17\"", "osu_latency").find("this is 1.17") != std::string::npos);
  CHECK(carrier("EFA", "mpi: open-mpi-ucx, ucx: \"1.18\"", "osu_latency") == "open-mpi-ucx");
  CHECK(carrier("Slingshot", "mpi_version: \"5.0\"", "osu_allreduce") == "cray-mpich-cxi");
  // Over TCP, and between ranks of a host, any library runs.
  CHECK(carrier("Slingshot", "mpi: open-mpi-ucx, transport: tcp", "osu_latency") == "open-mpi-ucx-tcp");
  CHECK(carrier("Slingshot", "mpi: open-mpi-openib, transport: tcp", "osu_latency") == "tcp");
  const auto inside = pair_of("hpe-4a100-slingshot", "rosetta", "mpi: open-mpi-ucx",
                              "benchmark: osu_latency, ranks_per_host: 2, buffers: [host, host], sizes: [8 B]");
  CHECK(simulate(inside.topology, inside.scenario, inside.parameters).has_value());
}

TEST_CASE("ranks that outnumber a host's GPUs need a way to each other, too") {
  const auto spread = test::scenario(
      "schema: fabricast/scenario/1\nname: t\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: [{name: "
      "n, count: 2, host: {processor: xeon-skylake, devices: [{name: gpu0, type: v100-pcie-16, below: socket0}]}}]\n"
      "  fabric: {single_switch: {switch: sn2700}}\n"
      "workload: {benchmark: osu_allreduce, ranks: 8, buffers: [host, host], sizes: [8 B]}\n");
  const auto refused = simulate(spread.topology, spread.scenario, spread.parameters);
  REQUIRE_FALSE(refused.has_value());
  CHECK(test::shown(refused.error()).find("no network path") != std::string::npos);
}

TEST_CASE("whatever library is named, a short message over the same adapters takes about as long") {
  for (const auto& fabric : k_fabrics) {
    const auto on = fabric.first;
    CAPTURE(on);
    const auto [host, network] = fabric.second;
    double least = 1e9, most = 0;
    for (const std::string software :
         {"", "mpi: open-mpi-ucx", "mpi: open-mpi-openib", "mpi: open-mpi-ofi", "mpi: mvapich2-gdr", "mpi: cray-mpich",
          "mpi: mpich", "mpi: intel-mpi", "mpi_version: \"4.1\"", "mpi_version: \"5.0\""}) {
      const auto loaded =
          pair_of(host, network, software, "benchmark: osu_latency, buffers: [host, host], sizes: [8 B]");
      const auto prediction = simulate(loaded.topology, loaded.scenario, loaded.parameters);
      if (!prediction) continue;
      const double time = us(*prediction, 8_B);
      least = std::min(least, time);
      most = std::max(most, time);
    }
    CHECK(most < 1.5 * least);
  }
}
