// SPDX-License-Identifier: Apache-2.0
// Send and receive: channels of a pair and chunks over the network, by release and number of ranks, against NCCL's
// rules worked out by hand.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {

/// The only row of a workload on hosts over one fabric.
Row row_of(const std::string& hosts, const std::string& workload, const std::string& software = "") {
  return test::run(
             test::scenario(fmt::format(
                 "schema: fabricast/scenario/1\nname: test\ntopology:\n  schema: fabricast/topology/1\n  name: t\n"
                 "  hosts: [{}]\n  fabric: {{leaf_spine: {{switch: qm9700}}}}\n{}workload: {{{}}}\n",
                 hosts, software, workload)))
      .workloads[0]
      .rows.at(0);
}

/// Send and receive between neighbours on equal hosts of a catalogue type.
struct Pairs {
  const char* type;
  int hosts, per_host;
  const char* version;
  const char* size;

  [[nodiscard]] Row row() const {
    return row_of(fmt::format("{{name: node, count: {}, type: {}}}", hosts, type),
                  fmt::format("benchmark: sendrecv_perf, gpus: {}, ranks_per_host: {}, sizes: [{}]", hosts * per_host,
                              per_host, size),
                  fmt::format("software: {{nccl: {{version: \"{}\"}}}}\n", version));
  }
};

/// Channels of a pair, which its slowest one is named after.
int channels(const Pairs& pairs) {
  const auto row = pairs.row();
  for (const auto& term : row.terms) {
    int found = 0;
    if (std::sscanf(term.name.c_str(), "slowest of %d channels", &found) == 1) return found;
  }
  return 0;
}

double forwarded_us(const Pairs& pairs) {
  const auto row = pairs.row();
  for (const auto& term : row.terms)
    if (term.name.find("store and forward") != std::string::npos) return term.time.us();
  return 0;
}

}  // namespace

TEST_CASE("a pair of ranks has as many channels over the network as its release gives it, fewer with many ranks") {
  struct Expected {
    Pairs pairs;
    int channels;
  };
  for (const auto& one : {
           // Two ranks, four channels: all fit. Parts of 16 KiB until 2.19, of 64 KiB then.
           Expected{{"hgx-h100-8", 2, 1, "2.19", "16 KiB"}, 1},
           Expected{{"hgx-h100-8", 2, 1, "2.19", "32 KiB"}, 2},
           Expected{{"hgx-h100-8", 2, 1, "2.20", "64 KiB"}, 1},
           Expected{{"hgx-h100-8", 2, 1, "2.20", "128 KiB"}, 2},
           // Eight adapters of 25 GB/s, 16 channels. One for a pair until 2.11, then two; from 2.29 on 25 / 14.
           Expected{{"dgx-a100", 2, 8, "2.11", "64 MiB"}, 1},
           Expected{{"dgx-a100", 2, 8, "2.18", "64 MiB"}, 2},
           Expected{{"dgx-a100", 2, 8, "2.28", "64 MiB"}, 2},
           Expected{{"dgx-a100", 2, 8, "2.29", "64 MiB"}, 2},
           // 50 GB/s / 14.
           Expected{{"hgx-h100-8", 2, 8, "2.28", "64 MiB"}, 2},
           Expected{{"hgx-h100-8", 2, 8, "2.29", "64 MiB"}, 4},
           // 16 ranks with two each are more than 16: one until a part is more than a chunk of 128 KiB.
           Expected{{"dgx-a100", 2, 8, "2.19", "128 KiB"}, 1},
           Expected{{"dgx-a100", 2, 8, "2.19", "256 KiB"}, 2},
           Expected{{"dgx-a100", 2, 8, "2.20", "128 KiB"}, 1},
           Expected{{"dgx-a100", 2, 8, "2.20", "256 KiB"}, 2},
           // 32 ranks with two are four times 16, 40 are more.
           Expected{{"dgx-a100", 4, 8, "2.19", "64 MiB"}, 2},
           Expected{{"dgx-a100", 5, 8, "2.19", "64 MiB"}, 1},
           Expected{{"dgx-a100", 4, 8, "2.28", "64 MiB"}, 2},
           Expected{{"dgx-a100", 5, 8, "2.28", "64 MiB"}, 1},
           // Every eighth of 32 ranks with four channels: 16; of 40: 20.
           Expected{{"hgx-h100-8", 4, 8, "2.29", "64 MiB"}, 4},
           Expected{{"hgx-h100-8", 5, 8, "2.29", "64 MiB"}, 2},
       }) {
    CAPTURE(one.pairs.type);
    CAPTURE(one.pairs.version);
    CAPTURE(one.pairs.hosts);
    CAPTURE(one.pairs.size);
    CHECK(channels(one.pairs) == one.channels);
  }
}

TEST_CASE("from 2.12 on short parts of pairs go over the network in quarters and halves of a chunk") {
  const auto ratio = [](const char* size, const char* version) {
    // One channel at any size: 40 ranks.
    return forwarded_us({"dgx-a100", 5, 8, version, size}) / forwarded_us({"dgx-a100", 5, 8, version, "64 MiB"});
  };
  for (const auto* version : {"2.12", "2.18", "2.28"}) {
    CAPTURE(version);
    CHECK(ratio("16 KiB", version) == test::approx(16.0 / 128).epsilon(1e-3));
    CHECK(ratio("64 KiB", version) == test::approx(32.0 / 128).epsilon(1e-3));
    CHECK(ratio("256 KiB", version) == test::approx(64.0 / 128).epsilon(1e-3));
    CHECK(ratio("1 MiB", version) == test::approx(1).epsilon(1e-3));
  }
  CHECK(ratio("64 KiB", "2.11") == test::approx(0.5).epsilon(1e-3));
  CHECK(ratio("256 KiB", "2.11") == test::approx(1).epsilon(1e-3));
}

namespace {

double us_of(const std::string& host, int hosts, const std::string& workload) {
  return row_of(fmt::format("{{name: node, count: {}, type: {}}}", hosts, host), workload).time.us();
}

}  // namespace

TEST_CASE("a gather and a scatter take no longer than an all-to-all, and no less than the root's part over its port") {
  for (const auto* host : {"hgx-h100-8", "dgx-1-v100", "server-2s-skylake-8v100"}) {
    for (const int hosts : {1, 2}) {
      for (const auto* size : {"8 B", "64 KiB", "8 MiB", "1 GiB"}) {
        CAPTURE(host);
        CAPTURE(hosts);
        CAPTURE(size);
        const auto time = [&](const std::string& benchmark) {
          return us_of(host, hosts, fmt::format("benchmark: {}, sizes: [{}]", benchmark, size));
        };
        const double all = time("alltoall_perf");
        CHECK(time("gather_perf") <= all * (1 + 1e-9));
        CHECK(time("scatter_perf") <= all * (1 + 1e-9));
      }
    }
  }
  // Eight H100: seven eighths of 1 GiB over 18 NVLinks of 25 GB/s into GPU 0, or out of it.
  const double bound = 7.0 / 8 * (1 << 30) / 450e9 * 1e6;
  for (const auto* benchmark : {"gather_perf", "scatter_perf"}) {
    const double time = us_of("hgx-h100-8", 1, fmt::format("benchmark: {}, sizes: [1 GiB]", benchmark));
    CHECK(time > bound);
    CHECK(time < 1.4 * bound);
  }
}

TEST_CASE("with PXN a gather comes in by the root's one HCA, a scatter leaves by those of all the receivers") {
  const auto time = [](const char* benchmark) {
    return us_of("hgx-h100-8", 2, fmt::format("benchmark: {}, sizes: [1 GiB]", benchmark));
  };
  // Half of 1 GiB over one NDR port of 50 GB/s; over eight less than what leaves GPU 0 by its NVLinks.
  const double one_port = 0.5 * (1 << 30) / 50e9 * 1e6;
  CHECK(time("gather_perf") > one_port);
  CHECK(time("gather_perf") < 1.15 * one_port);
  CHECK(time("scatter_perf") < 0.4 * one_port);
}

TEST_CASE("a scatter leaves the root that is written: a GPU with fewer NVLinks takes longer") {
  const auto time = [](int root) {
    return row_of("{name: h100, type: hgx-h100-8}, {name: a100, type: dgx-a100}",
                  fmt::format("benchmark: scatter_perf, root: {}, sizes: [1 GiB]", root))
        .time.us();
  };
  CHECK(time(8) > 1.2 * time(0));
}
