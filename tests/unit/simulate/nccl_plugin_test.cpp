// SPDX-License-Identifier: Apache-2.0
// NCCL's network plugin by name and release: what it sets by itself, which adapters it drives, and that nothing moves
// where nobody names one.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/refusals.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using test::row_at;
using test::us;

namespace {

const std::string k_sizes = "[8 B, 64 KiB, 1 MiB, 16 MiB, 256 MiB]";

bool says(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

/// `gpus` GPUs over hosts of a type of the catalogue.
LoadedScenario on(const std::string& host, int gpus, const std::string& nccl, const std::string& more = {},
                  const std::string& benchmark = "all_reduce_perf") {
  const std::string fabric = host.starts_with("aws-p5")   ? "aws-srd-400g, cable: 30 m, mtu: 8192 B"
                             : host.starts_with("aws")    ? "aws-srd, cable: 30 m, mtu: 8192 B"
                             : host.starts_with("google") ? "ethernet-400g-leaf, cable: 5 m, mtu: 9000 B"
                             : host.starts_with("hpe")    ? "rosetta, cable: 5 m"
                                                          : "qm9700, cable: 5 m";
  const auto topology = test::write_file(
      "plugin-topology.yaml", "schema: fabricast/topology/1\nname: t\nhosts: [{name: node, count: 8, type: " + host +
                                  "}]\nfabric: {single_switch: {switch: " + fabric + "}}\n");
  return test::scenario("schema: fabricast/scenario/1\nname: s\ntopology: " + topology + "\nsoftware: {" + more +
                        "nccl: {" + nccl + "}}\nworkload: {benchmark: " + benchmark +
                        ", gpus: " + std::to_string(gpus) + ", sizes: " + k_sizes + "}\n");
}

std::string ofi(const std::string& release, const std::string& nccl = "2.23") {
  return "version: \"" + nccl + "\", plugin: aws-ofi-nccl" +
         (release.empty() ? "" : ", plugin_version: \"" + release + "\"");
}

std::vector<std::string> protocols(const Prediction& prediction) {
  std::vector<std::string> out;
  for (const auto& row : prediction.workloads[0].rows) out.push_back(row.protocol);
  return out;
}

bool is_all_simple(const Prediction& prediction) {
  const auto all = protocols(prediction);
  return std::all_of(all.begin(), all.end(), [](const std::string& one) { return one == "simple"; });
}

std::vector<Duration> times(const Prediction& prediction) {
  std::vector<Duration> out;
  for (const auto& row : prediction.workloads[0].rows) out.push_back(row.time);
  return out;
}

/// What the result says was used of the plugin; empty: nothing is said.
std::string used(const Prediction& prediction) {
  for (const auto& setting : prediction.workloads[0].settings)
    if (setting.setting == "network plugin") return setting.used + ": " + setting.reason;
  return {};
}

bool assumes(const Prediction& prediction, const std::string& words) {
  const auto& all = prediction.workloads[0].assumptions;
  return std::any_of(all.begin(), all.end(), [&](const std::string& line) { return says(line, words); });
}

}  // namespace

TEST_CASE("from 1.6 on aws-ofi-nccl leaves NCCL no LL and LL128 on EFA, between hosts and inside one") {
  for (const auto* host : {"aws-p3dn", "aws-p4d"}) {
    for (const int gpus : {8, 16}) {
      CAPTURE(std::string(host));
      CAPTURE(gpus);
      for (const auto* release : {"1.2", "1.5.0"})
        CHECK_FALSE(is_all_simple(test::run(on(host, gpus, ofi(release, "2.16")))));
      for (const auto* release : {"1.6.0", "1.7.3", "1.9.2-aws", "v1.13.2-aws", "1.16", "1.21.1"}) {
        CAPTURE(std::string(release));
        CHECK(is_all_simple(test::run(on(host, gpus, ofi(release)))));
      }
    }
  }
  CHECK(assumes(test::run(on("aws-p4d", 16, ofi("1.5", "2.16"))), "NCCL_PROTO=simple"));
}

TEST_CASE("a plugin without a release changes nothing, nor does NCCL's own where it is used anyway") {
  for (const auto* benchmark : {"all_reduce_perf", "alltoall_perf", "broadcast_perf"}) {
    CAPTURE(std::string(benchmark));
    const auto at = [&](const std::string& host, const std::string& nccl, const std::string& more = "") {
      return times(test::run(on(host, 16, nccl, more, benchmark)));
    };
    CHECK(at("aws-p4d", ofi("")) == at("aws-p4d", "version: \"2.23\""));
    CHECK(at("google-a3-mega", "plugin: tcpxo") == at("google-a3-mega", ""));
    CHECK(at("hgx-h100-8", "plugin: internal") == at("hgx-h100-8", ""));
    CHECK(at("hgx-h100-8", "plugin: nccl-rdma-sharp") == at("hgx-h100-8", ""));
    CHECK(at("hgx-h100-8", "plugin: internal", "transport: tcp, ") == at("hgx-h100-8", "", "transport: tcp, "));
  }
  CHECK(used(test::run(on("hgx-h100-8", 16, ""))).empty());
  CHECK(says(used(test::run(on("aws-p4d", 16, ""))), "aws-ofi-nccl (efa)"));
}

TEST_CASE("a plugin that cannot drive the adapter, or not with this NCCL, is refused with the reason") {
  const auto of = [](const std::string& host, const std::string& nccl, const std::string& more = "") {
    return test::refusal_of(on(host, 16, nccl, more));
  };
  CHECK(says(of("aws-p4d", "plugin: internal"), "libfabric (efa) only"));
  CHECK(says(of("aws-p4d", "plugin: nccl-rdma-sharp"), "libfabric (efa) only"));
  CHECK(says(of("hgx-h100-8", "plugin: aws-ofi-nccl"), "efa and cxi"));
  CHECK(says(of("hgx-h100-8", "plugin: tcpxo"), "NCCL speaks verbs to it"));
  CHECK(says(of("google-a3-mega", "plugin: internal"), "by tcpxo only"));
  CHECK(says(of("aws-p4d", ofi(""), "transport: tcp, "), "over TCP"));
  CHECK(says(of("aws-p4d", ofi("1.12", "2.16")), "needs NCCL 2.17.1"));
  CHECK(says(of("aws-p4d", ofi("1.1.3", "2.19")), "does not load"));
  CHECK(says(of("aws-p4d", ofi("1.0")), "does not load"));
  CHECK(says(of("aws-p4d", ofi("1.0", "2.8")), "does not know efa-100g-gdr"));
  for (const auto* release : {"2.0", "0.9", "1.22", "new", "1", "1.x"})
    CHECK(says(of("aws-p4d", ofi(release)), "no rules of aws-ofi-nccl"));
  CHECK(of("aws-p4d", ofi("1.1.3", "2.9")).empty());
  const auto file = test::write_file(
      "without.yaml",
      "schema: fabricast/scenario/1\nname: s\ntopology: {schema: fabricast/topology/1, name: t, hosts: [{name: n, "
      "type: aws-p4d}]}\nsoftware: {nccl: {plugin_version: \"1.9\"}}\nworkload: {benchmark: all_reduce_perf}\n");
  const auto loaded = load_scenario(file);
  REQUIRE_FALSE(loaded);
  CHECK(says(render(loaded.error()), "beside plugin: auto"));
}

TEST_CASE("switches that reduce need the plugin that has them, where one is named") {
  const auto of = [](const std::string& plugin) {
    return test::refusal_of(on("dgx-a100", 16, "collnet: on, plugin: " + plugin));
  };
  const auto internal = of("internal");
  CHECK(says(internal, "nccl-rdma-sharp has"));
  CHECK_FALSE(says(of("nccl-rdma-sharp"), "nccl-rdma-sharp has"));
}

TEST_CASE("from 1.16 on aws-ofi-nccl gives NCCL larger buffers and chunks on p4d, not on p3dn") {
  const auto at = [](const std::string& host, const std::string& release, const std::string& benchmark) {
    return times(test::run(on(host, 16, ofi(release), "", benchmark)));
  };
  for (const auto* benchmark : {"all_reduce_perf", "alltoall_perf"}) {
    CAPTURE(std::string(benchmark));
    CHECK(at("aws-p4d", "1.15", benchmark) != at("aws-p4d", "1.16", benchmark));
    CHECK(at("aws-p3dn", "1.15", benchmark) == at("aws-p3dn", "1.16", benchmark));
  }
  CHECK(says(used(test::run(on("aws-p4d", 16, ofi("1.16")))), "NCCL_BUFFSIZE=8388608"));
  CHECK_FALSE(says(used(test::run(on("aws-p4d", 16, ofi("1.15")))), "NCCL_BUFFSIZE"));
}

TEST_CASE("the latency that the plugin reports is by release and type, and no NCCL before 2.12 reads it") {
  const auto of = [](const std::string& host, const std::string& release, const std::string& nccl) {
    return used(test::run(on(host, 16, ofi(release, nccl))));
  };
  CHECK_FALSE(says(of("aws-p4d", "1.4", "2.16"), "reports"));
  CHECK(says(of("aws-p4d", "1.5", "2.16"), "reports 150 us"));
  CHECK(says(of("aws-p4d", "1.7", "2.16"), "reports 75 us"));
  CHECK(says(of("aws-p3dn", "1.7", "2.16"), "reports 150 us"));
  CHECK_FALSE(says(of("aws-p4d", "1.7", "2.10"), "reports"));
}

TEST_CASE("more bytes take no less time, whatever the release") {
  for (const auto* host : {"aws-p3dn", "aws-p4d", "aws-p5"}) {
    for (const auto* release : {"1.5", "1.9", "1.13.2", "1.16", "1.21"}) {
      if (host == std::string("aws-p5") && release == std::string("1.5")) continue;
      for (const auto* benchmark : {"all_reduce_perf", "all_gather_perf", "alltoall_perf", "broadcast_perf"}) {
        CAPTURE(std::string(host));
        CAPTURE(std::string(release));
        CAPTURE(std::string(benchmark));
        const auto all =
            times(test::run(on(host, 32, ofi(release, release[2] == '5' ? "2.16" : "2.23"), "", benchmark)));
        CHECK(std::is_sorted(all.begin(), all.end()));
      }
    }
  }
}

TEST_CASE("over CXI a message above the provider's threshold is announced and read: two more ways of its hop") {
  const auto with_limit = [](const std::string& limit, const std::string& benchmark, const std::string& more = "") {
    const auto topology = test::write_file(
        "cxi-topology.yaml",
        "schema: fabricast/topology/1\nname: t\nhosts: [{name: node, count: 4, type: hpe-4a100-slingshot}]\nfabric: "
        "{single_switch: {switch: rosetta, cable: 5 m}}\nparameters: {slingshot-11.libfabric_eager_limit: {value: " +
            limit + ", source: FI_CXI_RDZV_THRESHOLD}}\n");
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
      if (says(one.name, what)) sum += one.time.us();
    return sum;
  };
  // 0.8 us of the adapters and 0.35 us of the switch, both twice, and cables and PCIe.
  const double added = term(with_limit("0 B", "sendrecv_perf"), "rendezvous");
  CHECK(added > 2 * (0.8 + 0.35));
  CHECK(added < 2 * (0.8 + 0.35 + 0.5));
}

TEST_CASE("over CXI a message inside the command is copied out of GPU memory first, one after the other") {
  const auto of = [](const std::string& limit, const std::string& software, int hosts) {
    const auto topology = test::write_file(
        "cxi-topology.yaml",
        "schema: fabricast/topology/1\nname: t\nhosts: [{name: node, count: 8, type: hpe-4a100-slingshot}]\nfabric: "
        "{single_switch: {switch: rosetta, cable: 5 m}}\nparameters: {slingshot-11.libfabric_immediate_limit: "
        "{value: " +
            limit + ", source: FI_CXI_DISABLE_NON_INJECT_MSG_IDC}}\n");
    const int ranks = 4 * hosts;
    return test::run(
        test::scenario("schema: fabricast/scenario/1\nname: s\ntopology: " + topology + "\nsoftware: {" + software +
                       "}\nworkload: {benchmark: alltoall_perf, gpus: " + std::to_string(ranks) + ", sizes: [" +
                       std::to_string(128 * ranks) + " B, " + std::to_string(256 * ranks) + " B]}\n"));
  };
  const std::string direct = "nccl: {gdr_level: phb}";
  const double copy_us = on("hpe-4a100-slingshot", 8, "").parameters.number("slingshot-11.libfabric_copy_time") * 1e6;
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
    const auto topology = test::write_file(
        "cxi-proxy.yaml",
        "schema: fabricast/topology/1\nname: t\nhosts: [{name: node, count: 16, type: hpe-4a100-slingshot}]\nfabric: "
        "{single_switch: {switch: rosetta, cable: 5 m}}\nparameters: {slingshot-11.libfabric_message_time: {value: " +
            time + ", source: test}}\n");
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
    const auto topology = test::write_file(
        "cxi-late.yaml",
        "schema: fabricast/topology/1\nname: t\nhosts: [{name: node, count: 8, type: hpe-4a100-slingshot}]\nfabric: "
        "{single_switch: {switch: rosetta, cable: 5 m}}\nparameters: {slingshot-11.libfabric_late_receive_time: "
        "{value: " +
            time + ", source: test}}\n");
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

TEST_CASE("Slingshot takes aws-ofi-nccl only, says what stands in and what sites set") {
  const auto of = [](const std::string& nccl, const std::string& more = "") {
    return on("hpe-4a100-slingshot", 8, nccl, more);
  };
  const auto prediction = test::run(of(""));
  REQUIRE(prediction.workloads[0].stand_ins.size() == 1);
  CHECK(says(prediction.workloads[0].stand_ins[0], "libfabric (cxi)"));
  CHECK(says(used(prediction), "aws-ofi-nccl (cxi)"));
  CHECK(assumes(prediction, "NCCL_NET_GDR_LEVEL=PHB"));
  CHECK_FALSE(assumes(test::run(of("gdr_level: phb")), "NCCL_NET_GDR_LEVEL=PHB"));
  CHECK(times(prediction) == times(test::run(of("plugin: aws-ofi-nccl, plugin_version: \"1.14\""))));
  CHECK(assumes(test::run(of("plugin: aws-ofi-nccl, plugin_version: \"1.9\"")), "meant for EFA only"));
  CHECK(says(test::refusal_of(of("plugin: internal")), "libfabric (cxi) only"));
  CHECK(test::refusal_of(of("plugin: internal", "transport: tcp, ")).empty());
}

TEST_CASE("on P5 LL and NVLink SHARP come with 1.7.3 and NCCL 2.18.5, on P5en with the first release that knows it") {
  const auto algorithms = [](const std::string& release, const std::string& nccl, const std::string& more = "") {
    std::string out;
    const auto prediction = test::run(on("aws-p5", 32, ofi(release, nccl) + more));
    for (const auto& row : prediction.workloads[0].rows) out += row.algorithm + " ";
    return out;
  };
  CHECK(is_all_simple(test::run(on("aws-p5", 32, ofi("1.7.2", "2.18.5")))));
  CHECK_FALSE(is_all_simple(test::run(on("aws-p5", 32, ofi("1.7.3", "2.18.5")))));
  CHECK_FALSE(is_all_simple(test::run(on("aws-p5en", 32, ofi("1.13")))));
  CHECK_FALSE(says(algorithms("1.7.2", "2.18.5"), "nvls"));
  CHECK(says(algorithms("1.7.3", "2.18.5"), "nvls"));
  CHECK(says(algorithms("1.7.3", "2.18"), "nvls"));
  CHECK_FALSE(says(algorithms("1.7.3", "2.18.3"), "nvls"));
  CHECK(says(algorithms("1.7.2", "2.18.5", ", nvls: on"), "nvls"));
  CHECK(says(test::refusal_of(on("aws-p5", 16, ofi("1.6", "2.18"))), "came with 1.7.0"));
  CHECK(says(test::refusal_of(on("aws-p5en", 16, ofi("1.12"))), "came with 1.13.0"));
}

TEST_CASE("P5 has no logs: the rules of the newest release hold and the stand-in is said") {
  for (const auto* host : {"aws-p5", "aws-p5en"}) {
    const auto prediction = test::run(on(host, 32, ""));
    CHECK(times(prediction) == times(test::run(on(host, 32, ofi("1.21", "2.28")))));
    REQUIRE(prediction.workloads[0].stand_ins.size() == 1);
    CHECK(says(prediction.workloads[0].stand_ins[0], "libfabric (efa)"));
    CHECK(says(used(prediction), host == std::string("aws-p5") ? "reports 75 us" : "reports 35 us"));
    CHECK(assumes(prediction, "by its regions of sizes and ranks"));
  }
  CHECK(says(used(test::run(on("aws-p5en", 32, ofi("1.14")))), "reports 75 us"));
}

TEST_CASE("the tuner of 1.16 and later takes LL128 on P5 where NCCL itself takes LL, what is forced stays forced") {
  const auto protocol = [](const std::string& nccl, int gpus, const std::string& more = "") {
    return test::run(on("aws-p5", gpus, nccl, "", "all_reduce_perf" + more)).workloads[0].rows[0].protocol;
  };
  CHECK(protocol(ofi("1.21", "2.28"), 32) == "ll128");
  CHECK(protocol("", 32) == "ll128");
  CHECK(protocol(ofi("1.15", "2.28"), 32) == "ll");
  CHECK(protocol(ofi("1.21", "2.28"), 16) == "ll");  // two hosts
  CHECK(protocol(ofi("1.21", "2.28"), 32, ", protocol: simple") == "simple");
}

TEST_CASE("a short message takes one of the joined adapters, by the release up to another size") {
  const auto rails_us = [](const std::string& release, const std::string& sizes) {
    auto loaded = on("aws-p5", 32, ofi(release, "2.20"));
    loaded.scenario.workloads[0].algorithm = "tree";
    loaded.scenario.workloads[0].protocol = "simple";
    const auto prediction = test::run(loaded);
    double sum = 0;
    for (const auto& term : row_at(prediction, sizes == "64 KiB" ? 64_KiB : 256_MiB).terms)
      if (says(term.name, "rails")) sum += term.time.us();
    return sum;
  };
  // Chunks of 64 KiB in one channel, of 512 KiB in many: an eighth, all, all; 8, 256 and 64 KiB of them on one.
  CHECK(rails_us("1.7.3", "64 KiB") < rails_us("1.7.4", "64 KiB"));
  CHECK(rails_us("1.7.4", "256 MiB") > 0);
  CHECK(rails_us("1.13", "256 MiB") < rails_us("1.7.4", "256 MiB"));
  CHECK(rails_us("1.7.3", "256 MiB") == 0);
}

TEST_CASE("larger chunks of NVLSTree come in two steps") {
  const auto at = [](const std::string& release) {
    auto loaded = on("aws-p5", 64, ofi(release, "2.22"));
    loaded.scenario.workloads[0].algorithm = "nvls_tree";
    return us(test::run(loaded), 256_MiB);
  };
  CHECK(at("1.7.4") != at("1.8"));
  CHECK(at("1.8") == at("1.9"));
  CHECK(at("1.9") != at("1.11"));
}
