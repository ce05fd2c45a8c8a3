// SPDX-License-Identifier: Apache-2.0
// Laws of perftest on defaults: it posts verbs itself, so that every message goes through an adapter, in one host too,
// and GPU memory is never copied; bands of bandwidth tests grow with the message as times do.
#include <algorithm>
#include <filesystem>
#include <set>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/refusals.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

const std::vector<std::string> k_verbs{"ib_write_lat", "ib_write_bw", "ib_send_lat",
                                       "ib_send_bw",   "ib_read_lat", "ib_read_bw"};

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& file : std::filesystem::directory_iterator(std::string(FABRICAST_SOURCE_DIR) + folder))
    if (file.path().extension() == ".yaml") names.push_back(file.path().stem().string());
  std::ranges::sort(names);
  return names;
}

std::string one_host(const std::string& host, const std::string& work) {
  return "schema: fabricast/scenario/1\nname: law\ntopology:\n  schema: fabricast/topology/1\n  name: law\n  hosts: "
         "[{name: n, type: " +
         host + "}]\nworkload: {benchmark: " + work + "}\n";
}

bool has(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

/// Bytes per second of the fastest adapter of the host.
double fastest_adapter(const LoadedScenario& loaded) {
  double rate = 0;
  for (const auto hca : loaded.topology.devices(DeviceKind::hca))
    rate = std::max(rate, loaded.parameters.number(loaded.topology.device(hca).type + ".rate"));
  return rate;
}

/// What no message of perftest does.
void check_ways(const LoadedScenario& loaded, const Prediction& prediction) {
  const double limit = fastest_adapter(loaded);
  for (const auto& row : prediction.workloads[0].rows) {
    CAPTURE(row.size.value);
    CHECK(row.algbw.bytes_per_s <= limit * 1.0001);
    bool has_adapter = false;
    for (const auto& term : row.terms) {
      CAPTURE(term.name);
      CHECK_FALSE(has(term.parameter, "cuda."));
      CHECK_FALSE(has(term.parameter, "mpi.shared_memory"));
      has_adapter = has_adapter || has(term.name, "HCA processing");
    }
    CHECK(has_adapter);
  }
}

struct Known {
  bool is_set = false;
  Duration time, low, high;
};

/// A larger message takes no less, and neither end of its band lies below the smaller one's. 2 %: bands of unlike
/// limits.
void check_growth(const Prediction& prediction) {
  Known last;
  for (const auto& row : prediction.workloads[0].rows) {
    CAPTURE(row.size.value);
    if (last.is_set && row.time >= last.time) {
      CHECK(row.low_time.seconds() >= 0.98 * last.low.seconds());
      CHECK(row.high_time.seconds() >= 0.98 * last.high.seconds());
    }
    last = {true, row.time, row.low_time, row.high_time};
  }
}

}  // namespace

TEST_CASE("perftest in one host goes through its adapter, on every host of the catalogue, or says why not") {
  std::set<std::string> refused;
  int num_run = 0;
  for (const auto& host : names_in("/models/catalogue/hosts")) {
    CAPTURE(host);
    for (const auto& benchmark : k_verbs) {
      CAPTURE(benchmark);
      for (const auto* buffers : {"host", "device"}) {
        CAPTURE(std::string(buffers));
        const auto text = one_host(host, benchmark + ", buffers: " + buffers + ", sizes: [2 B, 64 KiB, 8 MiB]");
        if (const auto why = test::refusal_of(text); !why.empty()) {
          CHECK(has(why, "= note: "));
          refused.insert(host);
          continue;
        }
        const auto loaded = test::scenario(text);
        check_ways(loaded, test::run(loaded));
        ++num_run;
      }
    }
  }
  CHECK(num_run > 400);
  CHECK(refused.contains("h200-8gpu-vm"));  // without adapter
  CHECK_FALSE(refused.contains("dgx-a100"));
}

TEST_CASE("perftest reads GPU memory from across the sockets, and where it cannot it does not start") {
  const std::vector<Setting> device{{"workload.buffers", "device"}};
  for (const auto* name : {"a100-pcie-hdr-sys-pair", "fdr-kepler-pair-cross-socket"}) {
    const std::string topology = name;
    CAPTURE(topology);
    const auto with = [&](const std::string& software) {
      return test::scenario("schema: fabricast/scenario/1\nname: t\ntopology: " + std::string(FABRICAST_SOURCE_DIR) +
                            "/topologies/" + topology + ".yaml\n" + software +
                            "workload: {benchmark: ib_write_lat, buffers: device}\n");
    };
    const auto loaded = with("");
    const auto prediction = test::run(loaded);
    check_ways(loaded, prediction);
    CHECK(test::row_at(prediction, 1_MiB).protocol == "eager gdr");
    CHECK(has(test::refusal_of(with("software: {gpudirect_rdma: off}\n")), "registers GPU memory"));
    CHECK(has(test::refusal_of(with("software: {nv_peer_mem: not loaded}\n")), "nv_peer_mem is not loaded"));
  }
}

TEST_CASE("sixteen reads of a queue pair are under way, writes as many as the queue holds") {
  const auto over = [](const std::string& benchmark, const std::string& more) {
    return test::run(
        test::scenario("schema: fabricast/scenario/1\nname: t\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  "
                       "hosts: [{name: n, "
                       "count: 2, type: dgx-a100}]\n  fabric: {single_switch: {switch: qm8700, cable: 100 "
                       "km}}\nworkload: {benchmark: " +
                       benchmark + ", sizes: [4 KiB]" + more + "}\n"));
  };
  const auto written = test::us(over("ib_write_bw", ""), 4_KiB);
  const auto read = test::us(over("ib_read_bw", ""), 4_KiB);
  CHECK(read / written == test::approx(128.0 / 16).epsilon(0.05));
  CHECK(test::us(over("ib_read_bw", ", window: 8"), 4_KiB) / read == test::approx(2).epsilon(0.05));
  CHECK(read / test::us(over("ib_read_bw", ", queue_pairs: 4"), 4_KiB) == test::approx(4).epsilon(0.05));
}

TEST_CASE("both ends of a bandwidth test's band grow with the message where its time does") {
  for (const auto* name : {"cx6-hdr-pair", "qdr-cx3-pair", "cx4-edr-pair", "hgx-h100-ndr", "hgx-b300-4", "azure-hbv3",
                           "leaf-spine-roce-8", "aws-p4d", "p100-25g-quad"}) {
    const std::string topology = name;
    CAPTURE(topology);
    for (const auto* work : {"ib_write_bw", "ib_read_bw, bidirectional: on", "ib_send_bw, queue_pairs: 4", "osu_bw",
                             "osu_bibw", "osu_mbw_mr"}) {
      const std::string benchmark = work;
      CAPTURE(benchmark);
      const auto loaded =
          test::scenario("schema: fabricast/scenario/1\nname: t\ntopology: " + std::string(FABRICAST_SOURCE_DIR) +
                         "/topologies/" + topology + ".yaml\nworkload: {benchmark: " + benchmark + "}\n");
      if (!test::refusal_of(loaded).empty()) continue;
      check_growth(test::run(loaded));
    }
  }
}
