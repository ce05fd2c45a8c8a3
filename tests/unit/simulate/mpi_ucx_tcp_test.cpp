// SPDX-License-Identifier: Apache-2.0
// UCX over TCP: who gets it, its switches between protocols, the pieces it cuts messages into, a core that takes
// in many streams, one stream of a cloud.
#include <fmt/format.h>

#include <string>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using test::us;

namespace {

Prediction over_tcp(const std::string& hca, const std::string& software, const std::string& workload) {
  return test::run(test::scenario(fmt::format(
      "schema: fabricast/scenario/1\nname: t\ntopology:\n  schema: fabricast/topology/1\n  name: t\n"
      "  hosts: [{{name: n, count: 2, host: {{processor: xeon-skylake, devices: [{{name: hca0, type: {}, below: "
      "socket0}}, {{name: gpu0, type: v100-pcie-16, below: socket0}}]}}}}]\n"
      "  fabric: {{single_switch: {{switch: sn2700}}}}\nsoftware: {{{}}}\nworkload: {{{}}}\n",
      hca, software, workload)));
}

std::string profile_of(const Prediction& prediction) {
  for (const auto& one : prediction.workloads[0].settings)
    if (one.setting == "profile") return one.used;
  return {};
}

constexpr auto k_ucx = "mpi: open-mpi-ucx";

}  // namespace

TEST_CASE("UCX over TCP is taken where UCX or its release is named, Open MPI's own transport where nobody says so") {
  for (const std::string benchmark : {"osu_latency", "osu_allreduce"}) {
    CAPTURE(benchmark);
    const auto used = [&](const std::string& hca, const std::string& software) {
      return profile_of(over_tcp(hca, software, "benchmark: " + benchmark + ", buffers: [host, host], sizes: [8 B]"));
    };
    CHECK(used("ethernet-25g", k_ucx) == "open-mpi-ucx-tcp");
    CHECK(used("ethernet-25g", "ucx: \"1.14\"") == "open-mpi-ucx-tcp");
    CHECK(used("connectx-5-100g", "mpi: open-mpi-ucx, transport: tcp") == "open-mpi-ucx-tcp");
    CHECK(used("connectx-5-100g", k_ucx) == "open-mpi-ucx");
    for (const std::string software : {"", "mpi: open-mpi-openib", "mpi: mpich", "mpi: open-mpi-openib, ucx: \"1.14\""})
      CHECK(used("ethernet-25g", software) == "tcp");
  }
}

TEST_CASE("a library whose messages over TCP no log taught says so, UCX's and those of others") {
  for (const std::string library :
       {"open-mpi-ucx", "mvapich2-gdr", "mpich", "intel-mpi", "open-mpi-ofi", "cray-mpich", "open-mpi-openib"}) {
    CAPTURE(library);
    for (const std::string benchmark : {"osu_latency", "osu_allreduce"}) {
      const auto result = over_tcp("ethernet-25g", "mpi: " + library,
                                   "benchmark: " + benchmark + ", buffers: [host, host], sizes: [8 B]");
      bool says = false;
      for (const auto& line : result.workloads[0].assumptions)
        says = says || line.find("no log taught their times") != std::string::npos;
      CHECK(says == (library != "open-mpi-openib"));
    }
  }
}

TEST_CASE("UCX keeps messages over TCP eager that Open MPI's transport announces, blocking sends up to 256 KiB") {
  const auto protocol = [](const std::string& software, const std::string& benchmark, int kib) {
    return over_tcp("ethernet-25g", software,
                    fmt::format("benchmark: {}, buffers: [host, host], sizes: [{} KiB]", benchmark, kib))
        .workloads[0]
        .rows[0]
        .protocol;
  };
  CHECK(protocol("", "osu_latency", 64) == "rendezvous");
  CHECK(protocol(k_ucx, "osu_latency", 128) == "eager");
  CHECK(protocol(k_ucx, "osu_latency", 256) == "rendezvous");
  // Windows: releases before 1.16 plan with the bytes alone, later ones with what every segment costs.
  CHECK(protocol("mpi: open-mpi-ucx, ucx: \"1.15\"", "osu_bw", 4096) == "eager");
  CHECK(protocol(k_ucx, "osu_bw", 128) == "eager");
  CHECK(protocol(k_ucx, "osu_bw", 256) == "rendezvous");
  CHECK(protocol("mpi: open-mpi-ucx, eager_limit: 16 KiB", "osu_bw", 32) == "rendezvous");
}

TEST_CASE("before 1.16 UCX sends a GPU's data over TCP in pieces of 8 KiB, each copied by the engine for itself") {
  const auto window_us = [](const std::string& software, int kib) {
    return over_tcp("ethernet-25g", software,
                    fmt::format("benchmark: osu_bw, buffers: [device, device], sizes: [{} KiB]", kib))
        .workloads[0]
        .rows[0]
        .time.us();
  };
  const std::string old = "mpi: open-mpi-ucx, gdrcopy: off, ucx: \"1.15\"", usual = "mpi: open-mpi-ucx, gdrcopy: off";
  const double copy_us =
      test::shipped("validation/tcp-google-n1v100-2vm-osu_bw-HH.yaml").parameters.number("cuda.copy_overhead") * 1e6;
  for (const int kib : {64, 256, 1024, 4096}) {
    CAPTURE(kib);
    CHECK(window_us(old, kib) > kib / 8 * copy_us);
    CHECK(window_us(usual, kib) < 0.6 * window_us(old, kib));  // announced, in fragments of 512 KiB
    CHECK(window_us(old + ", device_eager_limit: 8 KiB", kib) == test::approx(window_us(usual, kib)).epsilon(0.02));
  }
}

TEST_CASE("over TCP a rank takes in what many send to it no faster than its core takes in one stream") {
  const auto prediction = [](const std::string& software, const std::string& workload, int ranks, int kib) {
    return test::run(test::scenario(
        fmt::format("schema: fabricast/scenario/1\nname: t\ntopology:\n  schema: fabricast/topology/1\n  name: t\n"
                    "  hosts: [{{name: n, count: {}, host: {{processor: xeon-icelake, devices: [{{name: hca0, type: "
                    "connectx-6-dx-100g, below: socket0}}]}}}}]\n"
                    "  fabric: {{single_switch: {{switch: sn3700}}}}\nsoftware: {{transport: tcp, {}}}\n"
                    "workload: {{{}, ranks: {}, ranks_per_host: 1, buffers: [host, host], sizes: [{} KiB, {} KiB]}}\n",
                    ranks, software, workload, ranks, kib, 2 * kib)));
  };
  const double stream =
      test::shipped("validation/tcp-google-n1v100-2vm-osu_bw-HH.yaml").parameters.number("mpi.tcp.flow_bandwidth");
  for (const std::string library : {"open-mpi-openib", "open-mpi-ucx", "mpich"}) {
    CAPTURE(library);
    for (const int ranks : {4, 16, 32}) {
      CAPTURE(ranks);
      for (const int kib : {64, 512, 4096}) {
        CAPTURE(kib);
        const auto linear = prediction("mpi: " + library, "benchmark: osu_alltoall, algorithm: linear", ranks, kib);
        for (const auto& row : linear.workloads[0].rows)
          CHECK(row.time.us() >= (ranks - 1) * static_cast<double>(row.size.value) / stream * 1e6);
      }
    }
  }
  // A longer block never takes less time: 32 KiB is eager, 64 KiB is announced.
  const auto rows =
      prediction("mpi: open-mpi-openib", "benchmark: osu_alltoall, algorithm: linear", 16, 32).workloads[0].rows;
  CHECK(rows[1].time > rows[0].time);
}

TEST_CASE("one stream between two VMs of a cloud is as fast as the cloud lets one be, whatever library sends") {
  // UCX 1.6.1 on two p3.16xlarge of AWS, 25 Gb/s: osu_bw 1,227 to 1,244 MB/s (openucx/ucx issue 4221).
  for (const std::string software : {"mpi: open-mpi-ucx, ucx: \"1.6\"", "mpi: open-mpi-openib"}) {
    CAPTURE(software);
    const auto result = test::run(test::scenario(
        fmt::format("schema: fabricast/scenario/1\nname: t\ntopology: {}/topologies/aws-p3.yaml\nsoftware: {{{}}}\n"
                    "workload: {{benchmark: osu_bw, buffers: [host, host], ranks: 2, ranks_per_host: 1, sizes: [512 "
                    "KiB, 4 MiB]}}\n",
                    FABRICAST_SOURCE_DIR, software)));
    CHECK(524288 / us(result, 512_KiB) == test::approx(1227).epsilon(0.03));
    CHECK(4194304 / us(result, 4_MiB) == test::approx(1244).epsilon(0.03));
  }
}
