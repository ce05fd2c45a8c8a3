// SPDX-License-Identifier: Apache-2.0
// NCCL's network plugin by name and release: what it sets by itself, which adapters it drives, and that nothing moves
// where nobody names one.
#include <algorithm>
#include <string>
#include <utility>
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
  CHECK(says(used(test::run(on("aws-p4d", 16, "version: \"2.10\""))), "aws-ofi-nccl (efa)"));
}

TEST_CASE("where no release is stated the one made for this NCCL rules on EFA, and the result says which") {
  for (const auto* host : {"aws-p3dn", "aws-p4d", "aws-p5"}) {
    CAPTURE(std::string(host));
    for (const auto& made : {std::pair{"2.18", "1.7.3"},
                             {"2.19", "1.8"},
                             {"2.21", "1.9.2"},
                             {"2.23", "1.13.2"},
                             {"2.25", "1.13.2"},
                             {"2.27", "1.16.3"},
                             {"2.28", "1.21"}}) {
      const std::string nccl = made.first;
      CAPTURE(nccl);
      const auto prediction = test::run(on(host, 32, "version: \"" + nccl + "\""));
      CHECK(times(prediction) == times(test::run(on(host, 32, ofi(made.second, nccl)))));
      CHECK(says(used(prediction), "made for NCCL " + nccl));
    }
  }
  // Before 2.12 no plugin sets what NCCL reads; on an adapter that came later the first that knows it rules.
  CHECK_FALSE(says(used(test::run(on("aws-p4d", 16, "version: \"2.10\""))), "made for"));
  CHECK_FALSE(is_all_simple(test::run(on("aws-p4d", 16, "version: \"2.10\""))));
  CHECK(times(test::run(on("aws-p5", 16, "version: \"2.16\""))) ==
        times(test::run(on("aws-p5", 16, ofi("1.7", "2.16")))));
}

TEST_CASE("from 1.8 on the begin of a message leaves a GPU at once over EFA, and is copied at the other end") {
  const auto of = [](const char* release, const char* what) {
    const auto prediction = test::run(on("aws-p4d", 16, ofi(release, "2.18")));
    double sum = 0;
    for (const auto& term : row_at(prediction, 64_KiB).terms)
      if (says(term.name, what)) sum += term.time.us();
    return sum;
  };
  CHECK(of("1.7.4", "rendezvous") > 0);
  CHECK(of("1.8", "rendezvous") == 0);
  CHECK(of("1.7.4", "copies into GPU") == 0);
  CHECK(of("1.8", "copies into GPU") > 0);
  CHECK(of("1.8", "flush") == of("1.7.4", "flush"));
  CHECK(assumes(test::run(on("aws-p4d", 16, ofi("1.8", "2.18"))), "at once up to 300 KiB"));
  CHECK(assumes(test::run(on("aws-p4d", 16, ofi("1.7.4", "2.18"))), "announced and read at any size"));
  for (const auto* host : {"aws-p3dn", "aws-p5"})
    CHECK_FALSE(assumes(test::run(on(host, 16, ofi("1.8", "2.18"))), "out of GPU memory"));
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

TEST_CASE("larger chunks of NVLSTree come in two steps, the second where they are not shortened") {
  const auto at = [](const std::string& release, Bytes size) {
    auto loaded = on("aws-p5", 64, ofi(release, "2.22"));
    loaded.scenario.workloads[0].algorithm = "nvls_tree";
    loaded.scenario.workloads[0].sizes = {size};
    return us(test::run(loaded), size);
  };
  CHECK(at("1.7.4", 256_MiB) != at("1.8", 256_MiB));
  CHECK(at("1.8", 256_MiB) == at("1.9", 256_MiB));
  // 128 channels and heads with fewer than 16 chunks of 256 KiB each have 128 KiB.
  CHECK(at("1.9", 256_MiB) == at("1.11", 256_MiB));
  CHECK(at("1.9", 512_MiB) < at("1.11", 512_MiB));
}
