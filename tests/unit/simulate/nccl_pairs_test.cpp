// SPDX-License-Identifier: Apache-2.0
// Send and receive: channels of a pair and chunks over the network, by release and number of ranks, against NCCL's
// rules worked out by hand.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/parameter_name.hpp"
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

/// Of the first term whose name contains `words`; 0 where there is none.
double term_us(const Row& row, const std::string& words) {
  for (const auto& term : row.terms)
    if (term.name.find(words) != std::string::npos) return term.time.us();
  return 0;
}

/// Channels of a pair, which its slowest one is named after.
int channels(const Pairs& pairs) {
  const auto row = pairs.row();
  for (const auto& term : row.terms) {
    int found = 0;
    if (std::sscanf(term.name.c_str(), "slowest of %d channels", &found) == 1) return found;
  }
  return 0;
}

double forwarded_us(const Pairs& pairs) { return term_us(pairs.row(), "store and forward"); }

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
           // One opens as soon as a part is not enough.
           Expected{{"hgx-h100-8", 2, 1, "2.19", "16388 B"}, 2},
           Expected{{"hgx-h100-8", 2, 1, "2.21", "65540 B"}, 2},
           Expected{{"hgx-h100-8", 2, 1, "2.28", "64 KiB"}, 1},
           Expected{{"hgx-h100-8", 2, 1, "2.28", "65540 B"}, 2},
           Expected{{"dgx-a100", 2, 8, "2.28", "128 KiB"}, 1},
           Expected{{"dgx-a100", 2, 8, "2.28", "131076 B"}, 2},
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
  // With two channels the bytes of one count until 2.21, then those of both.
  const auto of_two = [](const char* size, const char* version) {
    return forwarded_us({"hgx-h100-8", 2, 1, version, size}) / forwarded_us({"hgx-h100-8", 2, 1, version, "64 MiB"});
  };
  CHECK(of_two("1 MiB", "2.21") == test::approx(0.5).epsilon(1e-3));
  CHECK(of_two("2 MiB", "2.21") == test::approx(1).epsilon(1e-3));
  CHECK(of_two("1 MiB", "2.28") == test::approx(1).epsilon(1e-3));
}

TEST_CASE("until 2.21 parts of a pair are whole but for the last one, then they are equal") {
  // Two channels: 64 and 32 KiB of 96 KiB take what 64 and 64 KiB do; 48 and 48 KiB take less.
  const auto transfer_us = [](const char* version, const char* size) {
    return term_us(Pairs{"hgx-h100-8", 2, 1, version, size}.row(), "transfer over");
  };
  CHECK(transfer_us("2.21", "96 KiB") == test::approx(transfer_us("2.21", "128 KiB")).epsilon(1e-3));
  CHECK(transfer_us("2.28", "96 KiB") == test::approx(0.75 * transfer_us("2.28", "128 KiB")).epsilon(1e-3));
}

TEST_CASE("peers near an adapter and far from it are served at once: the slower way's slices count, not both") {
  const auto held_us = [](const std::string& place_of_first) {
    const auto host =
        "{name: n, count: 2, host: {processor: xeon-icelake, devices: [{name: sw0, kind: pcie_switch, below: socket0, "
        "pcie: gen4 x16}, {name: hca0, type: connectx-6-hdr, below: sw0}, {name: gpu0, type: a100-pcie-40, below: " +
        place_of_first + "}, {name: gpu1, type: a100-pcie-40, below: socket0}]}}";
    return term_us(row_of(host, "benchmark: alltoall_perf, sizes: [16 MiB]"), "store and forward");
  };
  CHECK(held_us("sw0") > 0);
  CHECK(held_us("sw0") <= held_us("socket0"));
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
  // Half of 1 GiB over one NDR port of 50 GB/s; over eight less than what the thread blocks of a round send.
  const double one_port = 0.5 * (1 << 30) / 50e9 * 1e6;
  CHECK(time("gather_perf") > one_port);
  CHECK(time("gather_perf") < 1.15 * one_port);
  CHECK(time("scatter_perf") < 0.7 * one_port);
}

TEST_CASE("a scatter leaves the root that is written: a GPU with fewer NVLinks takes longer") {
  const auto time = [](int root) {
    return row_of("{name: h100, type: hgx-h100-8}, {name: a100, type: dgx-a100}",
                  fmt::format("benchmark: scatter_perf, root: {}, sizes: [1 GiB]", root),
                  "software: {nccl: {version: \"2.11\"}}\n")  // pairs that share no channels
        .time.us();
  };
  CHECK(time(8) > 1.2 * time(0));
}

namespace {

/// Of H200 in one host behind NVSwitches: 24 channels, 32 for sends and receives.
Row inside(const std::string& benchmark, int gpus, const std::string& size, const char* version = "2.28",
           const std::string& more = "", const std::string& nccl = "") {
  return test::run(
             test::scenario(fmt::format(
                 "schema: fabricast/scenario/1\nname: test\ntopology:\n  schema: fabricast/topology/1\n  name: t\n"
                 "  hosts: [{{name: n, type: hgx-h200-8}}]\nsoftware: {{nccl: {{version: \"{}\"{}}}}}\n"
                 "workload: {{benchmark: {}, gpus: {}, sizes: [{}]{}}}\n",
                 version, nccl, benchmark, gpus, size, more)))
      .workloads[0]
      .rows.at(0);
}

std::string channels_term(const Row& row) {
  for (const auto& term : row.terms)
    if (term.name.find("slowest of") != std::string::npos) return term.name;
  return "";
}

}  // namespace

TEST_CASE("a pair takes LL up to 16 KiB, from 2.22 to 2.28 for each channel that it may have") {
  const auto protocol = [](const char* version, int gpus, const std::string& size) {
    return inside("sendrecv_perf", gpus, size, version).protocol;
  };
  for (const int gpus : {2, 4, 8}) {
    CAPTURE(gpus);
    for (const auto* version : {"2.14", "2.21", "2.29"}) {
      CAPTURE(version);
      CHECK(protocol(version, gpus, "16 KiB") == "ll");
      CHECK(protocol(version, gpus, "16388 B") == "simple");
    }
    CHECK(protocol("2.13", gpus, "8 B") == "simple");
    for (const auto* version : {"2.22", "2.28"}) {
      CAPTURE(version);
      CHECK(protocol(version, gpus, "512 KiB") == "ll");
      CHECK(protocol(version, gpus, "524292 B") == "simple");
    }
  }
  CHECK(inside("alltoall_perf", 4, "2 MiB").protocol == "ll");
  CHECK(inside("alltoall_perf", 4, "2097168 B").protocol == "simple");
  // Two channels through host memory; none of LL over a network.
  const auto apart = [](const char* size) {
    return inside("sendrecv_perf", 2, size, "2.28", "", ", p2p: off").protocol;
  };
  CHECK(apart("32 KiB") == "ll");
  CHECK(apart("32772 B") == "simple");
  CHECK(row_of("{name: node, count: 2, type: hgx-h200-8}",
               "benchmark: sendrecv_perf, gpus: 2, ranks_per_host: 1, sizes: [8 B]")
            .protocol == "simple");
}

TEST_CASE("parts of LL are an eighth of its buffer's step from 2.22 to 2.28, of Simple's before and after") {
  // Sixteen channels for a pair of two ranks.
  CHECK(channels_term(inside("sendrecv_perf", 2, "64 KiB")) == "slowest of 8 channels");
  CHECK(channels_term(inside("sendrecv_perf", 2, "512 KiB")) == "slowest of 16 channels");
  CHECK(channels_term(inside("sendrecv_perf", 2, "16 KiB", "2.21")) == "slowest of 1 channels");
  CHECK(channels_term(inside("sendrecv_perf", 2, "512 KiB", "2.29")) == "slowest of 8 channels");
  CHECK(channels_term(inside("sendrecv_perf", 2, "512 KiB", "2.28", ", protocol: simple")) == "slowest of 8 channels");
}

TEST_CASE("a thread block that sends and receives moves three quarters of what it moves in a ring, of LL half") {
  const auto us = [](const std::string& benchmark, int gpus, const std::string& protocol, const char* size) {
    return inside(benchmark, gpus, size, "2.28", ", channels: 1, launch: graph, protocol: " + protocol).time.us();
  };
  const auto rate = [&](const std::string& benchmark, int gpus, const std::string& protocol) {
    const double more = us(benchmark, gpus, protocol, "256 MiB") - us(benchmark, gpus, protocol, "128 MiB");
    return (128 << 20) / more / 1e3;  // GB/s
  };
  const auto& values = test::shipped("allreduce-hgx-h100-64.yaml").parameters;
  const double simple = values["nccl.channel_bandwidth.simple.hopper"_key].bytes_per_s / 1e9;
  const double ll = values["nccl.channel_bandwidth.ll.hopper"_key].bytes_per_s / 1e9;
  CHECK(rate("sendrecv_perf", 2, "simple") == test::approx(simple * 3 / 4).epsilon(1e-3));
  CHECK(rate("sendrecv_perf", 2, "ll") == test::approx(ll / 2).epsilon(1e-3));
  // One channel of all: its block copies the rank's own part too. Of n parts of Simple n - 1 count twice, of LL every
  // part has as many threads; what a byte of the buffer takes.
  CHECK(rate("alltoall_perf", 2, "simple") == test::approx(2 * simple * 3 / 4 / 1.5).epsilon(1e-3));
  CHECK(rate("alltoall_perf", 4, "simple") == test::approx(4 * simple * 3 / 4 / 3.5).epsilon(1e-3));
  CHECK(rate("alltoall_perf", 2, "ll") == test::approx(2 * ll / 2 / 2).epsilon(1e-3));
  CHECK(rate("alltoall_perf", 4, "ll") == test::approx(4 * ll / 2 / 4).epsilon(1e-3));
}

TEST_CASE("between hosts up to eight peers of a host share the channels of their round") {
  const auto& values = test::shipped("allreduce-hgx-h100-64.yaml").parameters;
  const double block = values["nccl.channel_bandwidth.simple.hopper"_key].bytes_per_s / 1e9 * 3 / 4;
  // Parts of 32 and 64 KiB, on one channel each; of `hosts` rounds the own part takes half of a part.
  const auto rate = [](int hosts, const char* version) {
    const auto us = [&](int kib) {
      return row_of(fmt::format("{{name: node, count: {}, type: hgx-h100-8}}", hosts),
                    fmt::format("benchmark: alltoall_perf, sizes: [{} KiB]", kib * 8 * hosts),
                    fmt::format("software: {{nccl: {{version: \"{}\"}}}}\n", version))
          .time.us();
    };
    return 32 * 1024 * 8 * hosts / (us(64) - us(32)) / 1e3;  // GB/s
  };
  for (const int hosts : {2, 3}) {
    CAPTURE(hosts);
    const double peers = 8 * hosts - 0.5;
    CHECK(rate(hosts, "2.28") < hosts * block * 8 * hosts / peers * 1.001);
    CHECK(rate(hosts, "2.28") > 0.6 * hosts * block);
  }
}

TEST_CASE("a pair's first chunk is sent before any is put down, at the link's share while all channels send") {
  const auto added = [](const char* size, const char* more) {
    return term_us(inside("sendrecv_perf", 2, size, "2.28", more), "first chunk sent");
  };
  // One channel: both halves of its threads move 512 KiB at 37 GB/s one after the other, 21 GB/s at once.
  const double chunk = 512 * 1024;
  const auto& values = test::shipped("allreduce-hgx-h100-64.yaml").parameters;
  const double both = 4 / (3 * values["nccl.channel_bandwidth.simple.hopper"_key].bytes_per_s);
  const double alone = 1 / values["nccl.channel_bandwidth.half.hopper"_key].bytes_per_s;
  CHECK(added("64 MiB", ", channels: 1") == test::approx(chunk * (2 * alone - both) * 1e6).epsilon(0.05));
  // Sixteen would send 600 GB/s; the link lets pass less than 450.
  CHECK(added("64 MiB", "") > chunk * (16 / 450e9 + alone - 1.2 * both) * 1e6);
  CHECK(added("64 MiB", "") > 1.5 * added("64 MiB", ", channels: 1"));
  CHECK(term_us(inside("gather_perf", 4, "64 MiB"), "first chunk sent") == 0);
}

TEST_CASE("an all-to-all waits for the last of its peers to start, unless a graph or one thread starts them all") {
  const auto added = [](int gpus, const char* launch, const char* benchmark = "alltoall_perf") {
    return term_us(inside(benchmark, gpus, "256 B", "2.28", std::string(", launch: ") + launch), "peers to start");
  };
  const double skew = test::shipped("allreduce-hgx-h100-64.yaml").parameters["nccl.start_skew"_key].us();
  CHECK(added(8, "process_per_gpu") == test::approx(skew * std::log2(7)).epsilon(1e-6));
  CHECK(added(4, "thread_per_gpu") == test::approx(skew * std::log2(3)).epsilon(1e-6));
  CHECK(added(2, "process_per_gpu") == 0);
  CHECK(added(8, "graph") == 0);
  CHECK(added(8, "one_thread") == 0);
  CHECK(added(8, "process_per_gpu", "sendrecv_perf") == 0);
}

TEST_CASE("a pair's time never falls as it sends more, but where NCCL leaves LL") {
  for (const auto* host : {"hgx-h200-8", "dgx-a100", "dgx-1-v100", "server-2s-skylake-8v100"}) {
    for (const auto* version : {"2.11", "2.18", "2.22", "2.28", "2.29"}) {
      for (const auto* benchmark : {"sendrecv_perf", "alltoall_perf", "gather_perf"}) {
        CAPTURE(host);
        CAPTURE(version);
        CAPTURE(benchmark);
        const auto rows =
            test::run(test::scenario(fmt::format(
                          "schema: fabricast/scenario/1\nname: test\ntopology:\n  schema: fabricast/topology/1\n"
                          "  name: t\n  hosts: [{{name: n, type: {}}}]\nsoftware: {{nccl: {{version: \"{}\"}}}}\n"
                          "workload: {{benchmark: {}, gpus: 8, sizes: {{from: 8 B, to: 1 GiB, factor: 2}}}}\n",
                          host, version, benchmark)))
                .workloads[0]
                .rows;
        for (std::size_t i = 1; i < rows.size(); ++i) {
          CAPTURE(rows[i].size.value);
          const bool leaves = rows[i].protocol != rows[i - 1].protocol;
          // NCCL does so late: a root of eight through host memory over PCIe 3.0 takes twice as long just before.
          CHECK(rows[i].time.us() >= (leaves ? 0.5 : 1 - 1e-9) * rows[i - 1].time.us());
        }
      }
    }
  }
}
