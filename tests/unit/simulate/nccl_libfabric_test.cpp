// SPDX-License-Identifier: Apache-2.0
// NCCL over libfabric's providers. CXI (Slingshot-11): announced messages, messages inside the command, the proxy's
// time for each, receives that come too late. EFA: what is announced, copied into GPUs, read back.
#include <string>
#include <utility>
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

/// Of Slingshot-11, the sending and the receiving one together.
double adapters_us() {
  return test::shipped("blind/pico-lumi-mpi-collectives.yaml").parameters.number("slingshot-11.latency") * 1e6;
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
  // The adapters and 0.35 us of the switch, both twice, and cables and PCIe.
  const double added = term(with_limit("0 B", "sendrecv_perf"), "rendezvous");
  CHECK(added > 2 * (adapters_us() + 0.35));
  CHECK(added < 2 * (adapters_us() + 0.35 + 0.5));
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
    const auto topology = cxi("receive_copy_time", time);
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

namespace {

/// A validation scenario with other settings.
Prediction shipped(const std::string& name, std::vector<Setting> settings) {
  return test::run(test::shipped("validation/" + name + ".yaml", std::move(settings)));
}

/// us of a row that name `parameter`.
double us_of(const Prediction& prediction, Bytes size, const std::string& parameter) {
  double sum = 0;
  for (const auto& term : row_at(prediction, size).terms)
    if (term.parameter == parameter) sum += term.time.us();
  return sum;
}

/// One way of a message between two VMs: switches and adapters; not cables and PCIe.
double one_way_us(const std::string& name, const std::string& adapter) {
  const auto scenario = test::shipped("validation/" + name + ".yaml");
  return (scenario.parameters.number("aws-srd.latency") + scenario.parameters.number(adapter + ".latency")) * 1e6;
}

}  // namespace

TEST_CASE("over EFA a message of more than 64 KiB asks its receiver first, one out of a GPU's memory always") {
  const auto run = [](const std::string& name, const std::string& protocol, const std::string& size) {
    return shipped(
        name, {{"workload.algorithm", "ring"}, {"workload.protocol", protocol}, {"workload.sizes", "[" + size + "]"}});
  };
  // Two ranks, two hops: header, answer and data are three passes where one was. p3dn stages through host memory.
  const std::string p3dn = "v100-aws-p3dn-2gpu-2vm-efa1-allreduce-nccl2.6";
  const std::string host = "efa-100g.libfabric_eager_limit";
  CHECK(us_of(run(p3dn, "simple", "64 MiB"), 64_MiB, host) ==
        test::approx(2 * 2 * one_way_us(p3dn, "efa-100g")).epsilon(0.05));
  CHECK(us_of(run(p3dn, "simple", "64 KiB"), 64_KiB, host) == 0);
  CHECK(us_of(run(p3dn, "ll", "64 KiB"), 64_KiB, host) == 0);
  // LL leaves from host memory with GPUDirect RDMA, too; LL128 and Simple from the GPU. Each pass has the software's
  // time.
  const std::string p4d = "a100-aws-p4d-16gpu-2vm-efa4-allreduce-nccl2.8";
  const std::string gpu = "efa-100g-gdr.libfabric_gpu_eager_limit";
  const std::string software = "efa-100g-gdr.plugin_latency";
  const double software_us = test::shipped("validation/" + p4d + ".yaml").parameters.number(software) * 1e6;
  CHECK(us_of(run(p4d, "ll", "1 KiB"), 1_KiB, gpu) == 0);
  CHECK(us_of(run(p4d, "ll", "1 KiB"), 1_KiB, software) == test::approx(3.75 * software_us).epsilon(1e-4));
  for (const auto* protocol : {"ll128", "simple"}) {
    CAPTURE(std::string(protocol));
    const auto prediction = run(p4d, protocol, "1 KiB");
    CHECK(us_of(prediction, 1_KiB, gpu) == test::approx(3.75 * 2 * one_way_us(p4d, "efa-100g-gdr")).epsilon(0.05));
    CHECK(us_of(prediction, 1_KiB, software) == test::approx(3.75 * 3 * software_us).epsilon(1e-4));
  }
}

TEST_CASE("over EFA what comes at once is copied into the receiver's GPU, the parts of a ring in turn") {
  const auto run = [](const std::string& gpudirect, const std::string& protocol, const std::string& size) {
    return shipped("a100-aws-p4d-16gpu-2vm-efa4-allreduce-nccl2.8", {{"software.gpudirect_rdma", gpudirect},
                                                                     {"workload.protocol", protocol},
                                                                     {"workload.sizes", "[" + size + "]"}});
  };
  const std::string copy = "efa-100g-gdr.libfabric_receive_copy_time";
  const double once =
      test::shipped("validation/a100-aws-p4d-16gpu-2vm-efa4-allreduce-nccl2.8.yaml").parameters.number(copy) * 1e6;
  // 64 threads with a line of 8 B of data each: 512 B are the first rank's part, 1 KiB those of two, and so on.
  CHECK(us_of(run("on", "ll", "8 B"), 8_B, copy) == test::approx(3.75 * once).epsilon(1e-4));
  CHECK(us_of(run("on", "ll", "512 B"), 512_B, copy) == test::approx(3.75 * once).epsilon(1e-4));
  CHECK(us_of(run("on", "ll", "1 KiB"), 1_KiB, copy) == test::approx(4.75 * once).epsilon(1e-4));
  CHECK(us_of(run("on", "ll", "2 KiB"), 2_KiB, copy) == test::approx(6.75 * once).epsilon(1e-4));
  // All parts: at least one copy for every message of a connection.
  CHECK(us(run("on", "ll", "8 KiB"), 8_KiB) > 30 * once);
  CHECK(us_of(run("off", "ll", "8 KiB"), 8_KiB, copy) == 0);
  CHECK(us_of(run("on", "ll128", "8 KiB"), 8_KiB, copy) == 0);
}

TEST_CASE("GPUDirect RDMA over libfabric reads back what Simple wrote, before Hopper") {
  const auto flush_us = [](const std::string& host, const std::string& protocol, const std::string& gpudirect) {
    const auto prediction = test::run(test::scenario(
        "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: [{name: "
        "node, count: 2, type: " +
        host + "}]\n  fabric: {single_switch: {switch: rosetta, cable: 5 m}}\nsoftware: {gpudirect_rdma: " + gpudirect +
        ", nccl: {version: '2.27', gdr_level: phb}}\nworkload: {benchmark: all_reduce_perf, gpus: 2, ranks_per_host: "
        "1, "
        "algorithm: ring, protocol: " +
        protocol + ", sizes: [1 KiB]}\n"));
    double sum = 0;
    for (const auto& term : row_at(prediction, 1_KiB).terms)
      if (term.name.find("flush") != std::string::npos) sum += term.time.us();
    return sum;
  };
  // Two hops of two ranks, each there and back by an adapter.
  CHECK(flush_us("hpe-4a100-slingshot", "simple", "on") == test::approx(2 * 2 * adapters_us()).epsilon(1e-3));
  CHECK(flush_us("hpe-4a100-slingshot", "ll", "on") == 0);
  CHECK(flush_us("hpe-4a100-slingshot", "simple", "off") == 0);
  CHECK(flush_us("hpe-4gh200-slingshot", "simple", "on") == 0);
}
