// SPDX-License-Identifier: Apache-2.0
// Host buffers between ranks of one host: what each core copies, what is read from one process, what stays in a cache.
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

constexpr auto k_ucx = "mpi: open-mpi-ucx";

LoadedScenario inside(const std::string& workload, int ranks, const std::string& sizes,
                      const std::string& software = k_ucx, const std::string& adapter = "") {
  const auto devices = adapter.empty() ? "" : fmt::format("{{name: nic0, type: {}, below: socket0}}", adapter);
  return test::scenario(fmt::format(
      "schema: fabricast/scenario/1\nname: inside\ntopology:\n  schema: fabricast/topology/1\n  name: inside\n"
      "  hosts:\n    - {{name: n, count: 1, host: {{processor: xeon-emeraldrapids, sockets: 1, devices: [{}]}}}}\n"
      "software: {{{}}}\n"
      "workload: {{{}, ranks: {}, ranks_per_host: {}, buffers: [host, host], sizes: [{}]}}\n",
      devices, software, workload, ranks, ranks, sizes));
}

double value(const std::string& name) { return inside("benchmark: osu_latency", 2, "8 B").parameters.at(name).value; }

double time_us(const std::string& workload, int ranks, const std::string& size) {
  return test::run(inside(workload, ranks, size)).workloads[0].rows[0].time.us();
}

}  // namespace

TEST_CASE("every rank of an all-to-all inside a host copies what it gets with one core") {
  const double copy = value("mpi.shared_memory.copy_bandwidth");
  const double attach = value("mpi.shared_memory.attach_bandwidth");
  for (std::uint64_t seed = 0; seed < test::draws(30); ++seed) {
    CAPTURE(seed);
    test::Random random(seed);
    const int ranks = random.pick<int>({2, 3, 4, 6, 8, 16, 48});
    const auto bytes = static_cast<double>(std::int64_t{1} << random.pick<int>({8, 11, 14, 16, 18, 20, 22}));
    CAPTURE(ranks);
    CAPTURE(bytes);
    const auto algorithm = random.pick<std::string>({"auto", "linear", "pairwise"});
    const double time = time_us("benchmark: osu_alltoall, algorithm: " + algorithm, ranks, fmt::format("{} B", bytes));
    CHECK(time >= (ranks - 1) * bytes / std::max(copy, attach) * 1e6);
  }
  // Posted at once, messages that the cores of both sides copy take their turns: twice as many, twice as long.
  // Beside them each core copies its rank's own part.
  const auto bytes_us = [](int ranks) { return time_us("benchmark: osu_alltoall, algorithm: linear", ranks, "1 MiB"); };
  CHECK((bytes_us(9) - bytes_us(5)) / (bytes_us(5) - bytes_us(3)) == test::approx(2).epsilon(0.02));
}

TEST_CASE("what the children of a root read from its memory they read in turn") {
  // The root's memory stays as it is; a second reader meets the first one's pins.
  const double copy = value("mpi.shared_memory.copy_bandwidth");
  const double bytes = 1 << 20;
  for (const int ranks : {3, 5, 9, 17}) {
    CAPTURE(ranks);
    const double time = time_us("benchmark: osu_bcast, algorithm: linear", ranks, "1 MiB");
    CHECK(time == test::approx((ranks - 1) * bytes / copy * 1e6).epsilon(0.05));
  }
  CHECK(time_us("benchmark: osu_bcast, algorithm: linear", 2, "1 MiB") ==
        test::approx(time_us("benchmark: osu_latency", 2, "1 MiB")).epsilon(0.01));
  // What a rank passes on it has just written.
  const double attach = value("mpi.shared_memory.attach_bandwidth");
  const double tree = time_us("benchmark: osu_bcast, algorithm: binomial, statistic: max", 4, "1 MiB");
  CHECK(tree == test::approx((2 * bytes / copy + bytes / attach) * 1e6).epsilon(0.05));
}

TEST_CASE("a larger message inside a host is never faster in OSU's tests of pairs") {
  for (const std::string benchmark : {"osu_latency", "osu_bw", "osu_bibw"}) {
    for (const std::string library : {"", k_ucx, "mpi: open-mpi-openib", "mpi: open-mpi-ofi", "mpi: cray-mpich",
                                      "mpi: open-mpi-ucx, ucx: \"1.7\""}) {
      CAPTURE(benchmark);
      CAPTURE(library);
      double before = 0;
      const auto rows = test::run(inside("benchmark: " + benchmark, 2,
                                         "1 B, 8 B, 100 B, 129 B, 1 KiB, 4 KiB, 8191 B, 16 KiB, 64 KiB, 128 KiB, "
                                         "262143 B, 1 MiB, 2 MiB, 4 MiB, 64 MiB",
                                         library))
                            .workloads[0]
                            .rows;
      for (const auto& row : rows) {
        CAPTURE(row.size.value);
        CHECK(row.time.us() >= before);
        before = row.time.us();
      }
    }
  }
}

TEST_CASE("copies of both sides overlap in a window, not in one message, and one core makes them both ways") {
  const double copy = value("mpi.shared_memory.copy_bandwidth");
  const double bytes = 8192;
  const double one = time_us("benchmark: osu_latency", 2, "8 KiB") - time_us("benchmark: osu_latency", 2, "129 B");
  CHECK(one == test::approx(2 * (bytes - 129) / copy * 1e6).epsilon(0.01));
  // Beside the copies each core handles the message.
  const auto of_window = [&](const std::string& benchmark) {
    return bytes / test::run(inside("benchmark: " + benchmark, 2, "8 KiB")).workloads[0].rows[0].algbw.bytes_per_s;
  };
  const double handled = value("mpi.shared_memory.overhead") - value("mpi.shared_memory.short_saving");
  CHECK(of_window("osu_bw") == test::approx(handled + bytes / copy).epsilon(0.03));
  CHECK(2 * of_window("osu_bibw") == test::approx(handled + 2 * bytes / copy).epsilon(0.03));
}

TEST_CASE("buffers that nobody writes stay in the core's cache while they fit in it") {
  const double memory = value("mpi.core_memory_bandwidth");
  const auto slope = [](double from, double to) {
    return (to - from) /
           (time_us("benchmark: osu_latency", 2, fmt::format("{} B", to)) -
            time_us("benchmark: osu_latency", 2, fmt::format("{} B", from))) *
           1e6;
  };
  CHECK(slope(524288, 1048576) == test::approx(memory).epsilon(0.01));
  CHECK(slope(64 << 20, 128 << 20) == test::approx(memory / 2).epsilon(0.01));
}

TEST_CASE("ranks of one host exchange as fast whatever its adapter and transport") {
  const auto times = [](const std::string& benchmark, int ranks, const std::string& sizes, const std::string& software,
                        const std::string& adapter) {
    std::vector<double> out;
    const auto forecast = test::run(inside("benchmark: " + benchmark, ranks, sizes, software, adapter));
    for (const auto& row : forecast.workloads[0].rows) out.push_back(row.time.us());
    return out;
  };
  const std::vector<std::string> adapters{"", "connectx-6-hdr", "efa-100g", "slingshot-11", "ethernet-25g"};
  for (std::uint64_t seed = 0; seed < test::draws(30); ++seed) {
    CAPTURE(seed);
    test::Random random(seed);
    const auto benchmark =
        random.pick<std::string>({"osu_latency", "osu_bw", "osu_bibw", "osu_mbw_mr", "osu_allreduce", "osu_alltoall"});
    const int ranks = benchmark == "osu_latency" || benchmark == "osu_bw" || benchmark == "osu_bibw"
                          ? 2
                          : random.pick<int>({2, 4, 8, 16});
    const auto adapter = random.pick(adapters);
    CAPTURE(benchmark);
    CAPTURE(ranks);
    CAPTURE(adapter);
    // What every Open MPI copies twice.
    const std::string sizes = "4 B, 64 B, 256 B, 1 KiB, 2 KiB";
    const auto usual = times(benchmark, ranks, sizes, "", "");
    for (const std::string software : {k_ucx, "mpi: open-mpi-openib", "mpi: open-mpi-ofi", "transport: tcp"}) {
      CAPTURE(software);
      CHECK(times(benchmark, ranks, sizes, software, adapter) == usual);
    }
    // The same transport inside a host, below another between hosts.
    const std::string larger = "4 KiB, 16 KiB, 64 KiB, 1 MiB";
    const auto of_ob1 = times(benchmark, ranks, larger, "", "");
    CHECK(times(benchmark, ranks, larger, "mpi: open-mpi-openib", adapter) == of_ob1);
    CHECK(times(benchmark, ranks, larger, "transport: tcp", adapter) == of_ob1);
    CHECK(times(benchmark, ranks, larger, k_ucx, adapter) == times(benchmark, ranks, larger, k_ucx, ""));
  }
}

TEST_CASE("where nobody may read another's memory both cores copy, a message by itself and in a window") {
  const double copy = value("mpi.shared_memory.copy_bandwidth");
  for (const std::string software : {k_ucx, "mpi: open-mpi-openib", "mpi: open-mpi-ofi"}) {
    CAPTURE(software);
    const auto rows = [&](const std::string& benchmark, const std::string& attach) {
      return test::run(inside("benchmark: " + benchmark, 2, "64 B, 2 KiB, 16 MiB, 32 MiB",
                              software + ", cross_memory_attach: " + attach))
          .workloads[0]
          .rows;
    };
    const auto with = rows("osu_latency", "on"), without = rows("osu_latency", "off");
    CHECK(with[0].time == without[0].time);
    CHECK(with[1].time == without[1].time);
    CHECK((without[3].time - without[2].time).seconds() == test::approx((16 << 20) / copy).epsilon(0.01));
    // One way the copies of both sides overlap; both ways each core makes them one after the other.
    CHECK(rows("osu_bw", "off")[3].algbw.bytes_per_s == test::approx(copy).epsilon(0.03));
    CHECK(rows("osu_bibw", "off")[3].algbw.bytes_per_s == test::approx(copy).epsilon(0.03));
  }
  const auto of_cray = [&](const std::string& attach) {
    return test::run(inside("benchmark: osu_latency", 2, "1 MiB", "mpi: cray-mpich, cross_memory_attach: " + attach))
        .workloads[0]
        .rows[0]
        .time;
  };
  CHECK(of_cray("on") == of_cray("off"));
}

TEST_CASE("MPICH's progress takes time for a message by itself, its rendezvous for those of a window, too") {
  const auto row = [](const std::string& benchmark, const std::string& size, const std::string& software) {
    return test::run(inside("benchmark: " + benchmark, 2, size, software)).workloads[0].rows[0];
  };
  const double progress = value("mpi.mpich.inside_overhead") - value("mpi.shared_memory.overhead");
  const double rendezvous = value("mpi.mpich.inside_rendezvous") - value("mpi.shared_memory.rendezvous");
  const double copy = value("mpi.shared_memory.copy_bandwidth");
  for (const std::string size : {"8 B", "8 KiB"}) {
    CAPTURE(size);
    const double more = (row("osu_latency", size, "mpi: mpich").time -
                         row("osu_latency", size, "mpi: open-mpi-openib, eager_limit: 1 MiB").time)
                            .seconds();
    CHECK(more == test::approx(progress).epsilon(0.01));
    CHECK(
        row("osu_bw", size, "mpi: mpich").algbw.bytes_per_s ==
        test::approx(row("osu_bw", size, "mpi: open-mpi-openib, eager_limit: 1 MiB").algbw.bytes_per_s).epsilon(0.12));
  }
  const double bytes = 1 << 20;
  const double each = bytes / row("osu_bw", "1 MiB", "mpi: mpich").algbw.bytes_per_s;
  CHECK(each > rendezvous / 2 + 2 * bytes / copy);
  CHECK(each == test::approx(rendezvous / 2 + 2 * bytes / copy).epsilon(0.03));
  // Both ways the cores take turns: each holds for four copies.
  CHECK(row("osu_bibw", "16 MiB", "mpi: mpich").algbw.bytes_per_s == test::approx(copy / 2).epsilon(0.03));
}

TEST_CASE("a rank's host decides who copies: Open MPI's own transports without adapters, UCX with one that has verbs") {
  const auto eager = [](const std::string& software, const std::string& adapter) {
    return test::run(inside("benchmark: osu_latency", 2, "64 KiB", software, adapter)).workloads[0].rows[0].time;
  };
  CHECK(eager("", "") == eager("mpi: open-mpi-openib", ""));
  CHECK(eager("", "ethernet-25g") == eager("", ""));
  CHECK(eager("", "connectx-6-hdr") == eager(k_ucx, ""));
  CHECK(eager("", "") != eager(k_ucx, ""));
  // Who names UCX's release uses UCX.
  CHECK(eager("ucx: \"1.13\"", "") == eager("mpi: open-mpi-ucx, ucx: \"1.13\"", ""));
}
