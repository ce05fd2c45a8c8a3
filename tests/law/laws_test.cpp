// SPDX-License-Identifier: Apache-2.0
// Laws that hold for every cluster: checked over random ones. A seed gives a cluster; a failing seed is printed.
#include <algorithm>
#include <cmath>

#include "fabricast/models/planner.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using test::Random;

namespace {

struct HostDescription {
  std::string name, processor;
  std::vector<std::string> lines;  ///< devices in the order they are listed
  std::vector<std::string> nvlinks;
};

struct Cluster {
  int hosts = 1;
  int gpus_per_host = 1;
  HostDescription host;
  std::string fabric, workload, software;

  [[nodiscard]] std::string yaml() const {
    std::string out =
        "schema: fabricast/scenario/1\nname: law\ntopology:\n  schema: fabricast/topology/1\n  name: law\n  hosts:\n   "
        " - name: " +
        host.name + "\n      count: " + std::to_string(hosts) + "\n      host:\n        processor: " + host.processor +
        "\n        devices:\n";
    for (const auto& line : host.lines) out += "          - " + line + "\n";
    if (!host.nvlinks.empty()) out += "        nvlinks:\n";
    for (const auto& line : host.nvlinks) out += "          - " + line + "\n";
    if (hosts > 1) out += "  fabric:\n    " + fabric + "\n";
    return out + "software: " + software + "\nworkload: " + workload + "\n";
  }
};

Cluster random_cluster(std::uint64_t seed, const std::string& gpu_prefix = "gpu", const std::string& host_name = "n") {
  Random random(seed);
  Cluster cluster;
  cluster.hosts = static_cast<int>(1 + random.next(4));
  cluster.gpus_per_host = static_cast<int>(1 + random.next(6));
  cluster.host.name = host_name;
  cluster.host.processor = random.pick<std::string>({"xeon-skylake", "xeon-broadwell", "epyc-rome", "xeon-icelake"});
  const auto gpu_type =
      random.pick<std::string>({"v100-sxm2-16", "a100-sxm4-40", "p100-pcie-16", "a100-pcie-40", "h100-sxm"});
  const auto hca_type = random.pick<std::string>({"connectx-5-edr", "connectx-6-hdr", "connectx-4-edr"});
  const bool has_switches = random.next(2) == 0;
  std::vector<std::string> switches;
  if (has_switches) {
    switches = {"{name: sw0, kind: pcie_switch, below: socket0, pcie: gen3 x16}",
                "{name: sw1, kind: pcie_switch, below: socket1, pcie: gen4 x16}"};
  }
  std::vector<std::string> devices;
  for (int g = 0; g < cluster.gpus_per_host; ++g) {
    const auto socket = std::to_string(random.next(2));
    devices.push_back("{name: " + gpu_prefix + std::to_string(g) + ", type: " + gpu_type +
                      ", below: " + (has_switches ? "sw" : "socket") + socket + "}");
  }
  const int hcas = static_cast<int>(1 + random.next(2));
  for (int h = 0; h < hcas; ++h)
    devices.push_back("{name: hca" + std::to_string(h) + ", type: " + hca_type +
                      ", below: " + (has_switches ? "sw" : "socket") + std::to_string(h) + "}");
  cluster.host.lines = switches;
  cluster.host.lines.insert(cluster.host.lines.end(), devices.begin(), devices.end());
  if (gpu_type.find("sxm") != std::string::npos && cluster.gpus_per_host > 1 && random.next(2) == 0) {
    cluster.host.lines.push_back("{name: nvs, type: nvswitch-2}");
    cluster.host.nvlinks.push_back("{from: gpus, to: nvs, links: 6}");
  }
  cluster.fabric =
      random.pick<std::string>({"single_switch: {switch: qm9700}", "fat_tree: {switch: qm8700, leaf_ports: 4}",
                                "leaf_spine: {switch: sn2700, leaf_ports: 6, oversubscription: 2}"});
  cluster.software =
      random.pick<std::string>({"{nccl: {version: \"2.8\"}}", "{nccl: {version: \"2.18\", p2p: off}}",
                                "{gpudirect_rdma: off}", "{mpi: mvapich2-gdr}", "{mpi: open-mpi-openib}"});
  cluster.workload = random.pick<std::string>(
      {"{benchmark: all_reduce_perf, algorithm: ring, protocol: simple}",
       "{benchmark: all_reduce_perf, algorithm: tree, protocol: ll128}",
       "{benchmark: all_reduce_perf, algorithm: ring, protocol: ll}", "{benchmark: all_gather_perf, protocol: simple}",
       "{benchmark: broadcast_perf, protocol: simple}", "{benchmark: alltoall_perf, protocol: simple}",
       "{benchmark: sendrecv_perf, protocol: simple}", "{benchmark: osu_allreduce, algorithm: ring}",
       "{benchmark: osu_allreduce, algorithm: recursive_doubling}", "{benchmark: osu_alltoall, algorithm: pairwise}",
       "{benchmark: osu_bcast, algorithm: binomial}", "{benchmark: osu_latency}", "{benchmark: ib_write_lat}"});
  return cluster;
}

std::vector<Row> rows_of(const std::string& yaml) { return test::run(test::scenario(yaml)).workloads[0].rows; }

constexpr std::uint64_t k_seeds = 150;

}  // namespace

TEST_CASE("every time is at least the physical bound, and its terms add up to it exactly") {
  for (std::uint64_t seed = 0; seed < test::draws(k_seeds); ++seed) {
    CAPTURE(seed);
    for (const auto& row : rows_of(random_cluster(seed).yaml())) {
      CAPTURE(row.size.value);
      CHECK(row.time >= row.physical_bound);
      CHECK(row.low_time <= row.time);
      CHECK(row.time <= row.high_time);
      Duration sum;
      for (const auto& term : row.terms) sum += term.time;
      CHECK(sum == row.time);
    }
  }
}

TEST_CASE("with packets, too, bound, fast edge, time and slow edge are in order") {
  for (std::uint64_t seed = 0; seed < test::draws(30); ++seed) {
    CAPTURE(seed);
    const auto loaded = test::scenario(random_cluster(seed).yaml(), {{"workload.sizes", "[1 KiB, 256 KiB]"}});
    SimulateOptions options;
    options.fidelity = Fidelity::packet;
    const auto prediction = test::run(loaded, options);
    for (const auto& row : prediction.workloads[0].rows) {
      CAPTURE(row.size.value);
      CHECK(row.physical_bound <= row.low_time);
      CHECK(row.low_time <= row.time);
      CHECK(row.time <= row.high_time);
    }
  }
}

namespace {

/// Bytes that each of `hosts` hosts with `each` ranks must send, whatever the algorithm, for S = `size`.
double least_sent(const std::string& benchmark, double size, int hosts, int each) {
  const double h = hosts;
  const double n = hosts * each;
  if (benchmark == "all_reduce_perf" || benchmark == "osu_allreduce") return 2 * (h - 1) / h * size;
  if (benchmark == "all_gather_perf" || benchmark == "reduce_scatter_perf") return (h - 1) / h * size;
  if (benchmark == "osu_allgather") return size * each;                   // its own blocks leave it
  if (benchmark == "alltoall_perf") return size / n * each * (n - each);  // S is what a rank sends in all
  if (benchmark == "osu_alltoall") return size * each * (n - each);       // S is a block
  if (benchmark == "osu_reduce_scatter") return (h - 1) / h * size;
  return 0;
}

}  // namespace

TEST_CASE("the fast edge of a band is never beyond the adapters of a host, for every collective and number of hosts") {
  for (const std::string benchmark :
       {"all_reduce_perf", "all_gather_perf", "reduce_scatter_perf", "broadcast_perf", "alltoall_perf", "osu_allreduce",
        "osu_allgather", "osu_alltoall", "osu_reduce_scatter", "osu_bcast"}) {
    for (const int hosts : {2, 3, 4, 7}) {
      for (const int adapters : {1, 4}) {
        CAPTURE(benchmark);
        CAPTURE(hosts);
        CAPTURE(adapters);
        std::string devices;
        for (int i = 0; i < 4; ++i) {
          const auto below = "socket" + std::to_string(i / 2);
          devices += "{name: gpu" + std::to_string(i) + ", type: a100-sxm4-40, below: " + below + "}, ";
          if (i < adapters)
            devices += "{name: hca" + std::to_string(i) + ", type: connectx-6-hdr, below: " + below + "}, ";
        }
        const auto rows = rows_of(
            "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: "
            "[{name: n, count: " +
            std::to_string(hosts) + ", host: {processor: epyc-rome, devices: [" + devices +
            "{name: nvs, type: nvswitch-2}], nvlinks: [{from: gpus, to: nvs, links: 12}]}}]\n  fabric: {single_switch: "
            "{switch: qm8700}}\nworkload: {benchmark: " +
            benchmark + ", sizes: [64 KiB, 64 MiB, 4 GiB]" + (benchmark.starts_with("osu") ? ", buffers: device" : "") +
            "}\n");
        for (const auto& row : rows) {
          const double least = least_sent(benchmark, static_cast<double>(row.size.value), hosts, 4) / (adapters * 25e9);
          CHECK(row.low_time.seconds() >= 0.999999 * least);
          CHECK(row.physical_bound <= row.low_time);
          CHECK(row.low_time <= row.time);
          // A chain or tree sends the whole message over one adapter at least.
          if (benchmark == "broadcast_perf" || benchmark == "osu_bcast")
            CHECK(row.low_time.seconds() >= 0.999999 * static_cast<double>(row.size.value) / (adapters * 25e9));
        }
        if (benchmark == "all_reduce_perf" && rows.back().algorithm == "ring") {
          const double n = 4 * hosts;
          CHECK(rows.back().physical_bound.seconds() >=
                0.999 * 2 * (n - 1) / n * static_cast<double>(rows.back().size.value) / (adapters * 25e9));
        }
      }
    }
  }
}

TEST_CASE("more bytes are never faster while algorithm, protocol and channels stay the same") {
  for (std::uint64_t seed = 0; seed < test::draws(k_seeds); ++seed) {
    CAPTURE(seed);
    const auto rows = rows_of(random_cluster(seed).yaml());
    for (std::size_t i = 1; i < rows.size(); ++i) {
      const bool is_same_plan = rows[i].algorithm == rows[i - 1].algorithm &&
                                rows[i].protocol == rows[i - 1].protocol && rows[i].channels == rows[i - 1].channels;
      if (!is_same_plan) continue;
      CAPTURE(rows[i].size.value);
      CHECK(rows[i].time >= rows[i - 1].time);
    }
  }
}

TEST_CASE("renaming devices and hosts changes no time") {
  for (std::uint64_t seed = 0; seed < test::draws(k_seeds); ++seed) {
    CAPTURE(seed);
    const auto plain = rows_of(random_cluster(seed).yaml());
    const auto renamed = rows_of(random_cluster(seed, "accelerator", "zebra").yaml());
    REQUIRE(plain.size() == renamed.size());
    for (std::size_t i = 0; i < plain.size(); ++i) CHECK(plain[i].time == renamed[i].time);
  }
}

TEST_CASE("listing switches before or after what hangs below them changes no time") {
  for (std::uint64_t seed = 0; seed < test::draws(k_seeds); ++seed) {
    CAPTURE(seed);
    auto cluster = random_cluster(seed);
    const auto plain = rows_of(cluster.yaml());
    std::stable_partition(cluster.host.lines.begin(), cluster.host.lines.end(),
                          [](const std::string& line) { return line.find("pcie_switch") == std::string::npos; });
    const auto reordered = rows_of(cluster.yaml());
    for (std::size_t i = 0; i < plain.size(); ++i) CHECK(plain[i].time == reordered[i].time);
  }
}

TEST_CASE("the same scenario gives the same prediction twice") {
  for (std::uint64_t seed = 0; seed < test::draws(40); ++seed) {
    CAPTURE(seed);
    const auto yaml = random_cluster(seed).yaml();
    const auto first = rows_of(yaml);
    const auto second = rows_of(yaml);
    for (std::size_t i = 0; i < first.size(); ++i) {
      CHECK(first[i].time == second[i].time);
      CHECK(first[i].bottleneck == second[i].bottleneck);
      CHECK(first[i].low_time == second[i].low_time);
    }
  }
}

TEST_CASE("the shortcuts of the engine give the times of full expansion") {
  for (std::uint64_t seed = 0; seed < test::draws(60); ++seed) {
    CAPTURE(seed);
    const auto yaml = random_cluster(seed).yaml();
    CAPTURE(yaml);
    const auto loaded = test::scenario(yaml, {{"workload.sizes", "[64 KiB, 4 MiB]"}});
    const auto fast = test::run(loaded);
    SimulateOptions options;
    options.full_expansion = true;
    const auto slow = test::run(loaded, options);
    for (std::size_t i = 0; i < fast.workloads[0].rows.size(); ++i) {
      const auto difference = fast.workloads[0].rows[i].time - slow.workloads[0].rows[i].time;
      // Each round is rounded up to a picosecond once.
      CHECK(std::abs(difference.ps) <= 64);
    }
  }
}

TEST_CASE("a ring all-reduce sends 2(n-1)/n of the message over every NVLink direction it uses") {
  for (const int n : {2, 3, 4, 8}) {
    CAPTURE(n);
    const auto loaded = test::shipped(
        "allreduce-dgx-a100-pair.yaml",
        {{"workload.gpus", std::to_string(n)}, {"workload.algorithm", "ring"}, {"workload.protocol", "simple"}});
    models::Resources resources(loaded.topology);
    models::PlanContext context{
        loaded.topology, loaded.scenario.software, loaded.parameters, resources, 1, false, true};
    const auto planner = models::make_planner(context, loaded.scenario.workloads[0]);
    REQUIRE(planner);
    const auto plan = (*planner)->plan(1_GiB);
    const auto& flow = plan.program.nodes[0].flows[0];
    int used = 0;
    for (const auto& crossing : flow.crossings) {
      if (!resources.is_link(crossing.resource) ||
          loaded.topology.link_kind(LinkId{crossing.resource}) != LinkKind::nvlink)
        continue;
      ++used;
      CHECK(flow.payload * crossing.times == test::approx(2.0 * (n - 1) / n * 1073741824.0));
    }
    CHECK(used == 2 * n);  // out of and into every GPU
  }
}

TEST_CASE("a faster network is never slower") {
  // One rank per host: messages between hosts that go faster leave copies inside a host less of its memory meanwhile.
  for (const auto* benchmark : {"all_reduce_perf, algorithm: ring, protocol: simple", "osu_latency",
                                "osu_allreduce, algorithm: ring, ranks: 2, ranks_per_host: 1"}) {
    CAPTURE(benchmark);
    const auto at = [&](const char* rate) {
      return rows_of(
          "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: "
          "[{name: n, count: 2, type: dgx-1-v100}]\n  fabric:\n    single_switch: {switch: sb7800, rate: " +
          std::string(rate) + "}\nworkload: {benchmark: " + benchmark + "}\n");
    };
    const auto slow = at("25 Gb/s");
    const auto fast = at("100 Gb/s");
    for (std::size_t i = 0; i < slow.size(); ++i) CHECK(fast[i].time <= slow[i].time);
    CHECK(fast.back().time < slow.back().time);
  }
}

TEST_CASE("UCX is never faster without gdrcopy") {
  for (std::uint64_t seed = 0; seed < test::draws(20); ++seed) {
    CAPTURE(seed);
    auto cluster = random_cluster(seed);
    cluster.hosts = 2;
    for (const auto* benchmark : {"osu_latency", "osu_bw", "osu_bibw"}) {
      CAPTURE(benchmark);
      const auto with = [&](const char* gdrcopy) {
        cluster.software = "{mpi: open-mpi-ucx, gpudirect_rdma: on, gdrcopy: " + std::string(gdrcopy) + "}";
        cluster.workload = "{benchmark: " + std::string(benchmark) +
                           ", gpus: 2, ranks_per_host: 1, buffers: [device, device], sizes: {from: 1 B, to: 4 MiB}}";
        return rows_of(cluster.yaml());
      };
      const auto without = with("off"), fast = with("on");
      for (std::size_t i = 0; i < fast.size(); ++i) CHECK(fast[i].time <= without[i].time);
    }
  }
}
