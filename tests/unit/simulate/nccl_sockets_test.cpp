// SPDX-License-Identifier: Apache-2.0
// NCCL over sockets inside a host: how it sees GPUs that it reaches by an interface only, headers and data, host
// threads of a VM that does not see its sockets.
#include <fmt/format.h>

#include <algorithm>
#include <random>
#include <utility>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using test::row_at;
using test::us;

namespace {

Prediction over_sockets(const std::string& name, std::vector<Setting> settings) {
  return test::run(test::shipped("validation/" + name + "-all_reduce-tcp-socket.yaml", std::move(settings)));
}

}  // namespace

TEST_CASE("GPUs that reach each other by an interface only are a slow network to NCCL: it leaves LL at 16 and 32 KiB") {
  const auto protocol = [](const std::string& name, const char* size) {
    return over_sockets(name, {{"workload.sizes", std::string("[") + size + "]"}}).workloads[0].rows[0].protocol;
  };
  // Where both measured tables jump: 41.6 to 69.5 us with two GPUs, 149 to 322 us with four.
  CHECK(protocol("h200vm-2gpu", "8 KiB") == "ll");
  CHECK(protocol("h200vm-2gpu", "16 KiB") == "simple");
  CHECK(protocol("h200vm-4gpu", "16 KiB") == "ll");
  CHECK(protocol("h200vm-4gpu", "32 KiB") == "simple");
}

TEST_CASE("a message above 128 B follows its header over a socket: one more pass of the kernel per hop") {
  const auto prediction = over_sockets("h200vm2-2gpu", {{"workload.sizes", "[64 B, 128 B, 256 B]"}});
  const auto scenario = test::shipped("validation/h200vm2-2gpu-all_reduce-tcp-socket.yaml");
  const double data_us = scenario.parameters.number("nccl.socket_data_time") * 1e6;
  // Two ranks: half of the operation per message, doubled by LL's flags, and two hops.
  const double before = us(prediction, 128_B) - us(prediction, 64_B);
  CHECK(us(prediction, 256_B) - us(prediction, 128_B) == test::approx(2 * before + 2 * data_us).epsilon(0.01));
}

TEST_CASE("host threads take longer in a VM that spans sockets without seeing them, not in one that is shown them") {
  const auto large = [](const std::string& name, const std::string& guest_topology) {
    const auto prediction =
        over_sockets(name, {{"workload.sizes", "[64 MiB, 128 MiB]"},
                            {"topology.hosts.node.virtualization",
                             "{mode: passthrough, hypervisor: kvm, guest_topology: " + guest_topology + "}"}});
    return us(prediction, 128_MiB) - us(prediction, 64_MiB);
  };
  const double factor =
      test::shipped("validation/h200vm-2gpu-all_reduce-tcp-socket.yaml").parameters.number("host.scattered_threads");
  CHECK(large("h200vm-2gpu", "hidden") / large("h200vm-2gpu", "shown") == test::approx(factor).epsilon(0.02));
  CHECK(large("h200vm2-2gpu", "hidden") / large("h200vm2-2gpu", "shown") == test::approx(1).epsilon(0.001));
}

TEST_CASE("over loopback the proxy threads limit, and the thread blocks' own work hides behind them") {
  const auto prediction = over_sockets("h200vm2-2gpu", {{"workload.sizes", "[64 MiB, 128 MiB]"}});
  const double channel = test::shipped("validation/h200vm2-2gpu-all_reduce-tcp-socket.yaml")
                             .parameters.number("nccl.loopback_channel_bandwidth");
  const double rate = 64 * 1048576 / ((us(prediction, 128_MiB) - us(prediction, 64_MiB)) * 1e-6);
  CHECK(rate == test::approx(2 * channel).epsilon(0.03));  // two channels; the rest are hops of later loops
}

namespace {

/// Two hosts with `gpus` GPUs each, and as many 200 Gb/s adapters.
LoadedScenario two_hosts(int gpus, const std::string& transport, const std::string& benchmark, const std::string& sizes,
                         const std::string& parameters = {}) {
  std::string devices;
  for (int i = 0; i < gpus; ++i)
    devices += "        - {name: gpu" + std::to_string(i) + ", type: a100-pcie-40, below: socket0, pcie: gen4 x16}\n" +
               "        - {name: hca" + std::to_string(i) +
               ", type: connectx-6-200g, below: socket0, pcie: gen4 x16}\n";
  const auto file = test::write_file(
      "sockets-topology.yaml",
      "schema: fabricast/topology/1\nname: pair\nhosts:\n  - name: node\n    count: 2\n    host:\n      processor: "
      "epyc-milan\n      sockets: 1\n      devices:\n" +
          devices + "fabric:\n  single_switch: {switch: sn3700, cable: 2 m}\n");
  std::vector<std::string> files;
  if (!parameters.empty())
    files.push_back(test::write_file("sockets-parameters.yaml",
                                     "schema: fabricast/parameters/1\nname: sockets\nparameters:\n" + parameters));
  const auto path = test::write_file(
      "sockets-scenario.yaml", "schema: fabricast/scenario/1\nname: sockets\ntopology: " + file +
                                   "\nsoftware: {transport: " + transport + "}\nworkload: {benchmark: " + benchmark +
                                   ", gpus: " + std::to_string(2 * gpus) +
                                   ", launch: process_per_gpu, sizes: " + sizes + "}\n");
  auto loaded = load_scenario(path, files, {});
  if (!loaded) FAIL(render(loaded.error()));
  return std::move(*loaded);
}

std::string helpers(int threads, int sockets) {
  return "  connectx-6-200g.socket_threads: {value: " + std::to_string(threads) +
         ", source: \"NCCL_SOCKET_NTHREADS\"}\n  connectx-6-200g.sockets_per_thread: {value: " +
         std::to_string(sockets) + ", source: \"NCCL_NSOCKS_PERTHREAD\"}\n";
}

/// Of an all-reduce of one GPU in each host, beyond its latencies.
double bytes_per_second(const std::string& parameters = {}) {
  const auto prediction = test::run(two_hosts(1, "tcp", "all_reduce_perf", "[256 MiB, 512 MiB]", parameters));
  return 256 * 1048576 / ((us(prediction, 512_MiB) - us(prediction, 256_MiB)) * 1e-6);
}

}  // namespace

TEST_CASE("between hosts each channel is one TCP stream, and one thread copies what all of them send and receive") {
  const auto loaded = two_hosts(1, "tcp", "all_reduce_perf", "[512 MiB]");
  const auto value = [&](const char* name) { return loaded.parameters.number(name); };
  const int channels = test::run(loaded).workloads[0].rows[0].channels;
  // The one GPU of a host sends and receives every channel, in slices of 1 MiB.
  const double message = value("nccl.socket_message_time") + value("nccl.socket_data_time") / 2;
  const double byte = value("nccl.socket_both_ways_cost") / value("nccl.socket_thread_bandwidth") + message / 1048576;
  CHECK(bytes_per_second() ==
        test::approx(std::min(channels * value("mpi.tcp.flow_bandwidth"), 1 / (2 * byte))).epsilon(0.02));
}

TEST_CASE("over TCP more bytes never take less time, also where NCCL halves the chunks of a tree") {
  std::mt19937 dice(11);  // NOLINT: the same draws every time
  for (const auto* benchmark : {"all_reduce_perf", "all_gather_perf", "alltoall_perf", "broadcast_perf"}) {
    for (const int gpus : {1, 2, 4}) {
      std::string sizes;
      double size = 64;
      while (size < 64 * 1048576) {
        sizes += (sizes.empty() ? "[" : ", ") + std::to_string(static_cast<long>(size / 64) * 64) + " B";
        size *= 1.1 + static_cast<double>(dice() % 100) / 100;
      }
      const auto prediction = test::run(two_hosts(gpus, "tcp", benchmark, sizes + "]"));
      const auto& rows = prediction.workloads[0].rows;
      for (std::size_t i = 1; i < rows.size(); ++i) {
        CAPTURE(std::string(benchmark));
        CAPTURE(gpus);
        CAPTURE(rows[i].size.value);
        // NCCL's own choice of algorithm and protocol may be the worse one.
        if (rows[i].algorithm == rows[i - 1].algorithm && rows[i].protocol == rows[i - 1].protocol)
          CHECK(rows[i].time >= rows[i - 1].time);
      }
    }
  }
}

TEST_CASE("a slower thread, or one that minds both directions more, never makes TCP faster") {
  const std::string sizes = "[64 B, 64 KiB, 1 MiB, 64 MiB]";
  const auto thread = [](double gb_per_s, double cost) {
    return fmt::format(
        "  nccl.socket_thread_bandwidth: {{value: {} GB/s, source: t}}\n  nccl.socket_both_ways_cost: {{value: {}, "
        "source: t}}\n",
        gb_per_s, cost);
  };
  for (const auto* benchmark : {"all_reduce_perf", "all_gather_perf", "alltoall_perf"}) {
    for (const int gpus : {1, 4}) {
      const auto usual = test::run(two_hosts(gpus, "tcp", benchmark, sizes, thread(4, 1.2)));
      const auto slow = test::run(two_hosts(gpus, "tcp", benchmark, sizes, thread(3, 1.2)));
      const auto torn = test::run(two_hosts(gpus, "tcp", benchmark, sizes, thread(4, 1.4)));
      for (std::size_t i = 0; i < usual.workloads[0].rows.size(); ++i) {
        CAPTURE(std::string(benchmark));
        CAPTURE(gpus);
        CAPTURE(i);
        CHECK(slow.workloads[0].rows[i].time >= usual.workloads[0].rows[i].time);
        CHECK(torn.workloads[0].rows[i].time >= usual.workloads[0].rows[i].time);
      }
    }
  }
}

TEST_CASE("helper threads take the copies over, and more streams are never slower") {
  double before = bytes_per_second();
  for (const auto& [threads, sockets] : std::vector<std::pair<int, int>>{{1, 1}, {2, 1}, {2, 2}, {4, 4}}) {
    const double rate = bytes_per_second(helpers(threads, sockets));
    CHECK(rate >= 0.999 * before);
    before = rate;
  }
  CHECK(before > 2 * bytes_per_second());
}

TEST_CASE("NCCL's keys for sockets do what the counts of an adapter's vendor do, for 64 sockets at most") {
  const auto time = [](const std::string& software, const std::string& parameters) {
    return us(test::run(two_hosts(1, "tcp" + software, "all_reduce_perf", "[512 MiB]", parameters)), 512_MiB);
  };
  const auto keys = [](int threads, int sockets) {
    return ", nccl: {socket_nthreads: " + std::to_string(threads) + ", nsocks_perthread: " + std::to_string(sockets) +
           "}";
  };
  CHECK(time(keys(2, 2), "") == time("", helpers(2, 2)));
  CHECK(time(keys(2, 2), helpers(4, 4)) == time("", helpers(2, 2)));
  CHECK(time(keys(2, 2), "") < time("", ""));
  CHECK(time(keys(0, 8), "") == time("", ""));
  CHECK(time(keys(16, 64), "") == time(keys(16, 4), ""));
}

TEST_CASE("more helper threads or more sockets are never slower, and never faster than the wire") {
  std::mt19937 dice(7);  // NOLINT: the same draws every time
  const auto time = [](const char* benchmark, int threads, int sockets) {
    const auto keys = fmt::format(", nccl: {{socket_nthreads: {}, nsocks_perthread: {}}}", threads, sockets);
    return us(test::run(two_hosts(1, "tcp" + keys, benchmark, "[64 MiB]")), 64_MiB);
  };
  const double wire_us = 64 * 1048576 / 25e9 * 1e6;  // 200 Gb/s one way
  for (int draw = 0; draw < 12; ++draw) {
    const int threads = static_cast<int>(dice() % 12);
    const int sockets = 1 + static_cast<int>(dice() % 12);
    const int more_threads = threads + static_cast<int>(dice() % 4);
    // 64 sockets are shared out in whole numbers per thread: more threads may leave some of them out.
    const int more_sockets = sockets + static_cast<int>(dice() % 8);
    CAPTURE(threads);
    CAPTURE(sockets);
    CAPTURE(more_threads);
    CAPTURE(more_sockets);
    for (const auto* benchmark : {"all_reduce_perf", "sendrecv_perf"}) {
      const double usual = time(benchmark, threads, sockets);
      CHECK(time(benchmark, threads, more_sockets) <= usual);
      if (more_threads * sockets <= 64) CHECK(time(benchmark, more_threads, sockets) <= usual);
      CHECK(usual >= wire_us);
    }
  }
}

TEST_CASE(
    "without the keys NCCL goes by the adapter's vendor: Amazon 2 threads of 8 sockets, Google 4 of 1, others none") {
  const auto time = [](const std::string& host, const std::string& keys) {
    const std::string network =
        host == "aws-p4d" ? "aws-srd, cable: 30 m, mtu: 8192 B" : "ethernet-400g-leaf, cable: 5 m, mtu: 9000 B";
    const auto topology = test::write_file(
        "vendors.yaml", "schema: fabricast/topology/1\nname: t\nhosts: [{name: n, count: 2, type: " + host +
                            "}]\nfabric: {single_switch: {switch: " + network + "}}\n");
    return us(test::run(test::scenario("schema: fabricast/scenario/1\nname: s\ntopology: " + topology +
                                       "\nsoftware: {transport: tcp, nccl: {" + keys +
                                       "}}\nworkload: {benchmark: all_reduce_perf, gpus: 2, ranks_per_host: 1, "
                                       "sizes: [256 MiB]}\n")),
              256_MiB);
  };
  const auto keys = [](int threads, int sockets) {
    return fmt::format("socket_nthreads: {}, nsocks_perthread: {}", threads, sockets);
  };
  CHECK(time("aws-p4d", "") == time("aws-p4d", keys(2, 8)));
  CHECK(time("aws-p4d", "") < time("aws-p4d", keys(0, 1)));
  CHECK(time("google-a3-mega", "") == time("google-a3-mega", keys(4, 1)));
  CHECK(time("google-a3-mega", "") < time("google-a3-mega", keys(0, 1)));
  CHECK(time("hpe-4a100-slingshot", "") == time("hpe-4a100-slingshot", keys(0, 1)));
}

TEST_CASE("TCP is never faster than RDMA on the same adapters") {
  const std::string sizes = "[64 B, 4 KiB, 256 KiB, 16 MiB, 256 MiB]";
  for (const auto* benchmark :
       {"all_reduce_perf", "all_gather_perf", "broadcast_perf", "alltoall_perf", "sendrecv_perf"}) {
    for (const int gpus : {1, 2, 4}) {
      const auto tcp = test::run(two_hosts(gpus, "tcp", benchmark, sizes));
      const auto rdma = test::run(two_hosts(gpus, "rdma", benchmark, sizes));
      for (std::size_t i = 0; i < tcp.workloads[0].rows.size(); ++i) {
        CAPTURE(std::string(benchmark));
        CAPTURE(gpus);
        CAPTURE(i);
        CHECK(tcp.workloads[0].rows[i].time >= rdma.workloads[0].rows[i].time);
      }
    }
  }
}

TEST_CASE("a short all-to-all over TCP pays a message to and from each peer, one after the other") {
  const auto time = [](int gpus) { return us(test::run(two_hosts(gpus, "tcp", "alltoall_perf", "[64 B]")), 64_B); };
  const auto scenario = test::shipped("validation/h200vm2-2gpu-all_reduce-tcp-socket.yaml");
  const double message = scenario.parameters.number("nccl.socket_message_time") * 1e6;
  // 2 and 8 messages over the network. A kernel's own round trip takes as long as some of them.
  CHECK(time(4) > 8 * message);
  CHECK(time(4) - time(1) > 4 * message);
}

TEST_CASE("trees over TCP: an inner host's thread serves three others, twice what a thread of two hosts does") {
  const auto bytes_per_second = [](int hosts) {
    const auto topology =
        test::write_file("tree-topology.yaml",
                         "schema: fabricast/topology/1\nname: t\nhosts: [{name: n, type: dgx-a100, count: 16}]\n"
                         "fabric: {rail_optimized: {switch: qm9700, rails: 8, cable: 5 m}}\n");
    const auto prediction = test::run(test::scenario(
        "schema: fabricast/scenario/1\nname: s\ntopology: " + topology +
        "\nsoftware: {transport: tcp}\nworkload: {benchmark: all_reduce_perf, launch: process_per_gpu, gpus: " +
        std::to_string(8 * hosts) + ", sizes: [256 MiB, 512 MiB], algorithm: tree, protocol: simple}\n"));
    return 256 * 1048576 / ((us(prediction, 512_MiB) - us(prediction, 256_MiB)) * 1e-6);
  };
  const double pair = bytes_per_second(2);
  CHECK(bytes_per_second(4) == test::approx(pair / 2).epsilon(0.02));
  CHECK(bytes_per_second(16) == test::approx(pair / 2).epsilon(0.02));
  CHECK(bytes_per_second(3) < pair);
  CHECK(bytes_per_second(3) > bytes_per_second(4));
}

TEST_CASE("whatever the algorithm, a host sends over TCP no more than the proxy threads of its GPUs copy") {
  for (const int hosts : {2, 3, 4, 8}) {
    for (const auto* algorithm : {"auto", "ring", "tree", "nvls_tree"}) {
      CAPTURE(hosts);
      CAPTURE(algorithm);
      const auto file =
          test::write_file("threads-topology.yaml",
                           "schema: fabricast/topology/1\nname: t\nhosts: [{name: n, type: hgx-h100-8, "
                           "count: " +
                               std::to_string(hosts) + "}]\nfabric: {single_switch: {switch: qm9700, cable: 5 m}}\n");
      const auto loaded = test::scenario("schema: fabricast/scenario/1\nname: s\ntopology: " + file +
                                         "\nsoftware: {transport: tcp}\nworkload: {benchmark: all_reduce_perf, launch: "
                                         "process_per_gpu, sizes: [64 MiB, 1 GiB], algorithm: " +
                                         std::string(algorithm) + "}\n");
      const double thread = loaded.parameters.number("nccl.socket_thread_bandwidth");
      const auto prediction = test::run(loaded);
      for (const auto& row : prediction.workloads[0].rows) {
        CAPTURE(row.size.value);
        // Every host gives what it has reduced once and gets the result once.
        const double bytes = 2.0 * static_cast<double>(row.size.value) * (hosts - 1) / hosts;
        CHECK(bytes / row.time.seconds() <= 8 * thread);
      }
    }
  }
}
