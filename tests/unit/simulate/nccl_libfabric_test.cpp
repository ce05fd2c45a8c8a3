// SPDX-License-Identifier: Apache-2.0
// NCCL over libfabric's CXI provider (Slingshot-11): announced messages, messages inside the command, the proxy's time
// for each, receives that come too late.
#include <string>
#include <vector>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using test::row_at;
using test::us;

namespace {

/// A topology of 16 hosts of four A100, where the parameter `slingshot-11.libfabric_<name>` is `value`.
std::string cxi(const std::string& name, const std::string& value) {
  return test::write_file(
      "cxi-topology.yaml",
      "schema: fabricast/topology/1\nname: t\nhosts: [{name: node, count: 16, type: hpe-4a100-slingshot}]\nfabric: "
      "{single_switch: {switch: rosetta, cable: 5 m}}\nparameters: {slingshot-11.libfabric_" +
          name + ": {value: " + value + ", source: test}}\n");
}

std::vector<Duration> times(const Prediction& prediction) {
  std::vector<Duration> out;
  for (const auto& row : prediction.workloads[0].rows) out.push_back(row.time);
  return out;
}

}  // namespace

TEST_CASE("over CXI a message above the provider's threshold is announced and read: two more ways of its hop") {
  const auto with_limit = [](const std::string& limit, const std::string& benchmark, const std::string& more = "") {
    const auto topology = cxi("eager_limit", limit);
    return test::run(test::scenario("schema: fabricast/scenario/1\nname: s\ntopology: " + topology + "\nsoftware: {" +
                                    more + "nccl: {gdr_level: phb}}\nworkload: {benchmark: " + benchmark +
                                    ", gpus: 16, protocol: simple, sizes: [1 KiB, 64 KiB, 64 MiB]}\n"));
  };
  for (const auto* benchmark : {"all_reduce_perf", "all_gather_perf", "broadcast_perf", "alltoall_perf"}) {
    CAPTURE(std::string(benchmark));
    const auto all = with_limit("0 B", benchmark);
    const auto usual = with_limit("16 KiB", benchmark);
    const auto none = with_limit("1 GiB", benchmark);
    for (const auto size : {1_KiB, 64_KiB, 64_MiB}) {
      CHECK(us(all, size) >= us(usual, size));
      CHECK(us(usual, size) >= us(none, size));
    }
    CHECK(us(usual, 1_KiB) == us(none, 1_KiB));
    CHECK(us(all, 1_KiB) > us(none, 1_KiB));
    CHECK(us(usual, 64_MiB) > us(none, 64_MiB));
    // Sockets know no provider.
    CHECK(times(with_limit("0 B", benchmark, "transport: tcp, ")) ==
          times(with_limit("1 GiB", benchmark, "transport: tcp, ")));
  }
  // One host after the other, each hop a cable, a switch and an adapter pair there and back.
  const auto term = [](const Prediction& prediction, const char* what) {
    double sum = 0;
    for (const auto& one : row_at(prediction, 64_MiB).terms)
      if (one.name.find(what) != std::string::npos) sum += one.time.us();
    return sum;
  };
  // 0.8 us of the adapters and 0.35 us of the switch, both twice, and cables and PCIe.
  const double added = term(with_limit("0 B", "sendrecv_perf"), "rendezvous");
  CHECK(added > 2 * (0.8 + 0.35));
  CHECK(added < 2 * (0.8 + 0.35 + 0.5));
}

TEST_CASE("over CXI a message inside the command is copied out of GPU memory first, one after the other") {
  const auto of = [](const std::string& limit, const std::string& software, int hosts) {
    const auto topology = cxi("immediate_limit", limit);
    const int ranks = 4 * hosts;
    return test::run(
        test::scenario("schema: fabricast/scenario/1\nname: s\ntopology: " + topology + "\nsoftware: {" + software +
                       "}\nworkload: {benchmark: alltoall_perf, gpus: " + std::to_string(ranks) + ", sizes: [" +
                       std::to_string(128 * ranks) + " B, " + std::to_string(256 * ranks) + " B]}\n"));
  };
  const std::string direct = "nccl: {gdr_level: phb}";
  const auto any = test::scenario("schema: fabricast/scenario/1\nname: s\ntopology: " + cxi("immediate_limit", "0 B") +
                                  "\nworkload: {benchmark: alltoall_perf, gpus: 8}\n");
  const double copy_us = any.parameters.number("slingshot-11.libfabric_copy_time") * 1e6;
  for (const int hosts : {2, 4, 8}) {
    CAPTURE(hosts);
    const auto with = of("192 B", direct, hosts);
    const auto without = of("0 B", direct, hosts);
    const auto at = [&](const Prediction& prediction, int bytes) { return us(prediction, Bytes{bytes * 4 * hosts}); };
    // A GPU sends to the four of every other host.
    CHECK(at(with, 128) - at(without, 128) == test::approx(4 * (hosts - 1) * copy_us).epsilon(0.02));
    CHECK(at(with, 256) == at(without, 256));
    // Staged messages lie in host memory already.
    CHECK(at(of("192 B", "nccl: {gdr_level: pix}", hosts), 128) == at(of("0 B", "nccl: {gdr_level: pix}", hosts), 128));
    CHECK(at(of("192 B", "transport: tcp", hosts), 128) == at(of("0 B", "transport: tcp", hosts), 128));
  }
}

TEST_CASE("over CXI the proxy needs its time for every message: the more peers, the longer, and nothing else moves") {
  const auto of = [](const std::string& time, const std::string& software, int hosts, const char* benchmark) {
    const auto topology = cxi("message_time", time);
    const auto ranks = std::to_string(4 * hosts);
    const auto prediction = test::run(test::scenario(
        "schema: fabricast/scenario/1\nname: s\ntopology: " + topology + "\nsoftware: {" + software +
        "}\nworkload: {benchmark: " + benchmark + ", gpus: " + ranks + ", sizes: [" + ranks + " KiB]}\n"));
    return us(prediction, Bytes{4 * hosts * 1024});
  };
  // A GPU sends to the four of every other host and receives from them; a hop takes at least as long.
  for (const int hosts : {4, 8, 16}) {
    CAPTURE(hosts);
    const double messages = 2 * 4 * (hosts - 1);
    CHECK(of("6 us", "", hosts, "alltoall_perf") - of("4 us", "", hosts, "alltoall_perf") ==
          test::approx(2 * messages).epsilon(0.01));
  }
  CHECK(of("2 us", "", 2, "alltoall_perf") < of("2 us", "", 4, "alltoall_perf"));
  CHECK(of("1 ns", "", 2, "alltoall_perf") == of("0 s", "", 2, "alltoall_perf"));  // behind the hop itself
  CHECK(of("6 us", "transport: tcp", 4, "alltoall_perf") == of("0 s", "transport: tcp", 4, "alltoall_perf"));
  CHECK(of("6 us", "", 4, "all_reduce_perf") > of("0 s", "", 4, "all_reduce_perf"));
}

TEST_CASE("over CXI several rings come in upon receivers that have not posted, which copy every message") {
  const auto of = [](const std::string& time, const std::string& more, int hosts, std::int64_t bytes) {
    const auto topology = cxi("late_receive_time", time);
    const auto prediction = test::run(test::scenario("schema: fabricast/scenario/1\nname: s\ntopology: " + topology +
                                                     "\nworkload: {gpus: " + std::to_string(4 * hosts) + ", sizes: [" +
                                                     std::to_string(bytes) + " B], " + more + "}\n"));
    return us(prediction, Bytes{bytes});
  };
  const std::string ring = "benchmark: all_gather_perf, algorithm: ring, protocol: ";
  const std::int64_t mib = 1 << 20;
  // Each of 31 steps of eight hosts is two slices of Simple and one of LL; of four channels a GPU takes in two.
  const auto per_us = [&](const std::string& more, int hosts, std::int64_t bytes) {
    return (of("60 us", more, hosts, bytes) - of("40 us", more, hosts, bytes)) / 20;
  };
  CHECK(per_us(ring + "simple, channels: 4", 8, 8 * mib) == test::approx(31 * 2 * 2).epsilon(0.01));
  CHECK(per_us(ring + "simple, channels: 4", 2, 8 * mib) == test::approx(7 * 2 * 2).epsilon(0.01));
  CHECK(per_us(ring + "ll, channels: 4", 8, mib) == test::approx(31 * 2).epsilon(0.01));
  CHECK(per_us("benchmark: all_reduce_perf, algorithm: ring, protocol: simple, channels: 4", 8, 8 * mib) ==
        test::approx(62 * 2 * 2).epsilon(0.01));
  // For seven messages of LL a receiver has posted; one ring keeps pace; trees and TCP know no such thing.
  CHECK(per_us(ring + "ll, channels: 4", 2, mib) == 0);
  CHECK(per_us(ring + "simple, channels: 1", 8, 8 * mib) == 0);
  CHECK(per_us("benchmark: all_reduce_perf, algorithm: tree, protocol: simple", 8, 8 * mib) == 0);
  // All-to-all: announced messages only, with more peers than are served at once or more messages than are posted for.
  CHECK(per_us("benchmark: alltoall_perf", 8, 32 * 8 * 1024) == 0);
  CHECK(per_us("benchmark: alltoall_perf", 8, 32 * mib) > 0);
  CHECK(per_us("benchmark: alltoall_perf", 2, 2 * mib) == 0);
  CHECK(per_us("benchmark: alltoall_perf", 2, 16 * mib) > 0);
  // Once the wire takes longer nothing of it is seen.
  CHECK(of("8 us", ring + "simple, channels: 4", 8, 256 * mib) ==
        of("0 s", ring + "simple, channels: 4", 8, 256 * mib));
}
