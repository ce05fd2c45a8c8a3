// SPDX-License-Identifier: Apache-2.0
// A shipped machine, written as NCCL and ibnetdiscover print it and imported again, forecasts to the picosecond what
// the shipped file does. No source says how long cables are: the importer takes 3 m, and so does the shipped file here.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "base/adapter_numbers.hpp"
#include "fabricast/export.hpp"
#include "fabricast/simulate.hpp"
#include "tests/unit/import/captures.hpp"

using namespace fabricast;
using namespace fabricast::test;

namespace {

struct Shipped {
  std::string name;
  std::vector<Setting> settings;  ///< cables of 3 m
};

std::vector<Duration> times_on(const std::string& topology, const std::string& workload,
                               const std::vector<Setting>& settings) {
  const auto loaded = load_scenario_text(
      "s.yaml",
      fmt::format("schema: fabricast/scenario/1\nname: s\ntopology: \"{}\"\nworkload: {{{}, sizes: [8 B, 64 KiB, 1 "
                  "MiB, 128 MiB]}}\n",
                  topology, workload),
      {}, settings);
  REQUIRE_MESSAGE(loaded, (loaded ? "" : render(loaded.error())));
  SimulateOptions options;
  options.with_terms = false;
  const auto prediction = simulate(loaded->topology, loaded->scenario, loaded->parameters, options);
  REQUIRE_MESSAGE(prediction, (prediction ? "" : render(prediction.error())));
  std::vector<Duration> out;
  for (const auto& row : prediction->workloads.front().rows) out.push_back(row.time);
  return out;
}

/// A topology in a file as long as the value lives.
class TopologyFile {
 public:
  explicit TopologyFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() / fmt::format("fabricast-types-{}.yaml", getpid())) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  TopologyFile(const TopologyFile&) = delete;
  TopologyFile& operator=(const TopologyFile&) = delete;
  ~TopologyFile() { std::filesystem::remove(path_); }
  [[nodiscard]] std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace

TEST_CASE("two hosts of every type of the catalogue forecast the same when they come back from NCCL's dump") {
  // What a dump cannot know: access control of PCIe switches, NUMA nodes without devices, and who made Aries.
  const std::set<std::string> unknowable{"abci-a100", "server-epyc-a100-hdr-sys", "pizdaint-xc50"};
  int compared = 0;
  for (const auto& file : std::filesystem::directory_iterator(FABRICAST_SOURCE_DIR "/models/catalogue/hosts")) {
    const auto type = file.path().stem().string();
    if (unknowable.contains(type) || type.find("nvl72") != std::string::npos) continue;
    CAPTURE(type);
    const auto shipped = [&](int count, const std::string& fabric) {
      return fmt::format("schema: fabricast/topology/1\nname: t\nhosts: [{{name: node, count: {}, type: {}}}]\n{}",
                         count, type, fabric);
    };
    const auto loaded = load_topology(TopologyFile(shipped(1, "")).path());
    REQUIRE_MESSAGE(loaded, (loaded ? "" : render(loaded.error())));
    if (loaded->topology.count(DeviceKind::gpu, 0) == 0 || loaded->topology.count(DeviceKind::hca, 0) == 0) continue;
    ImportOptions options;
    options.count = 2;
    const auto xml = nccl_topology_xml(loaded->topology, 0, loaded->parameters);
    const auto imported = import_cluster({{"xml", xml, SourceRole::host, ""}}, options);
    REQUIRE_MESSAGE(imported, (imported ? "" : render(imported.error())));
    const auto fabric = imported->yaml.find("fabric:\n");
    REQUIRE(fabric != std::string::npos);
    const auto workload = "benchmark: all_reduce_perf";
    const auto again = times_on(TopologyFile(imported->yaml).path(), workload, {});
    CHECK(again == times_on(TopologyFile(shipped(2, imported->yaml.substr(fabric))).path(), workload, {}));
    ++compared;
  }
  CHECK(compared > 50);
}

TEST_CASE("the switch above a scheduler's leaves stands for a tier where its ports are too few for their uplinks") {
  const auto shipped = std::string(FABRICAST_SOURCE_DIR) + "/topologies/dgx-a100-16.yaml";
  const auto loaded = load_topology(shipped);
  REQUIRE(loaded);
  const auto xml = nccl_topology_xml(loaded->topology, 0, loaded->parameters);
  for (const bool is_yaml : {false, true}) {
    CAPTURE(is_yaml);
    const auto placement = slurm_topology(loaded->topology, is_yaml);
    REQUIRE(placement);
    const auto imported =
        import_cluster({{"xml", xml, SourceRole::host, ""}, {"slurm", *placement, SourceRole::placement, ""}});
    REQUIRE_MESSAGE(imported, (imported ? "" : render(imported.error())));
    const auto again = times_on(TopologyFile(imported->yaml).path(), "benchmark: all_reduce_perf", {});
    const auto once = times_on(shipped, "benchmark: all_reduce_perf", {});
    CHECK(again.back().seconds() < 1.02 * once.back().seconds());  // 128 MiB
    CHECK(again.back().seconds() > 0.98 * once.back().seconds());
  }
}

TEST_CASE("shipped machines that are exported and imported forecast the same") {
  const Setting short_cable{"topology.fabric.single_switch.cable", "3 m"};
  const std::vector<Shipped> all{{"dgx-1-v100-pair", {short_cable}},
                                 {"dgx-2-pair", {short_cable}},
                                 {"dgx-a100-pair", {short_cable}},
                                 {"h200-cx7x4-pair", {short_cable}},
                                 {"hgx-h100-xe9680", {short_cable}}};
  for (const auto& one : all) {
    CAPTURE(one.name);
    const auto shipped = std::string(FABRICAST_SOURCE_DIR) + "/topologies/" + one.name + ".yaml";
    const auto loaded = load_topology(shipped);
    REQUIRE(loaded);
    const auto net = ib_net_file(loaded->topology);
    REQUIRE(net);
    const auto xml = nccl_topology_xml(loaded->topology, 0, loaded->parameters);
    const auto imported = import_cluster({{"net", *net, SourceRole::fabric, ""}, {"xml", xml, SourceRole::host, ""}});
    REQUIRE_MESSAGE(imported, (imported ? "" : render(imported.error())));
    const auto path = std::filesystem::temp_directory_path() / fmt::format("fabricast-round-{}.yaml", getpid());
    std::ofstream(path, std::ios::binary) << imported->yaml;
    for (const auto* workload : {"benchmark: all_reduce_perf", "benchmark: alltoall_perf", "benchmark: osu_latency"}) {
      CAPTURE(workload);
      CHECK(times_on(path.string(), workload, {}) == times_on(shipped, workload, one.settings));
    }
    std::filesystem::remove(path);
  }
}

TEST_CASE("sockets without devices are exported and imported again, for MPI ranks lie on them") {
  for (const auto* name : {"qdr-cx3-pair", "a100-pcie-hdr-sys-pair", "fdr-kepler-pair", "cx6-hdr-pair"}) {
    CAPTURE(name);
    const auto shipped = load_topology(std::string(FABRICAST_SOURCE_DIR) + "/topologies/" + name + ".yaml");
    REQUIRE(shipped);
    const auto xml = nccl_topology_xml(shipped->topology, 0, shipped->parameters);
    const auto imported = import_cluster({{"xml", xml, SourceRole::host, ""}});
    REQUIRE_MESSAGE(imported, (imported ? "" : render(imported.error())));
    const auto path = std::filesystem::temp_directory_path() / fmt::format("fabricast-sockets-{}.yaml", getpid());
    std::ofstream(path, std::ios::binary) << imported->yaml;
    const auto again = load_topology(path.string());
    std::filesystem::remove(path);
    REQUIRE(again);
    CHECK(again->topology.count(DeviceKind::socket, 0) == shipped->topology.count(DeviceKind::socket, 0));
    CHECK(again->topology.count(DeviceKind::memory, 0) == shipped->topology.count(DeviceKind::memory, 0));
  }
}

TEST_CASE("an InfiniBand listing is written of InfiniBand alone, and the refusal names what is on the fabric") {
  int written = 0, refused = 0;
  for (const auto& file : std::filesystem::directory_iterator(FABRICAST_SOURCE_DIR "/topologies")) {
    if (file.path().extension() != ".yaml") continue;
    const auto loaded = load_topology(file.path().string());
    REQUIRE(loaded);
    const auto& topology = loaded->topology;
    if (topology.first_network_link() == topology.num_links() || topology.num_links() > 100'000) continue;
    CAPTURE(file.path().filename().string());
    const auto net = ib_net_file(topology);
    if (!topology.devices(DeviceKind::network_switch).empty()) CHECK(net.has_value() == topology.is_infiniband());
    if (net) {
      ++written;
      continue;
    }
    ++refused;
    CHECK(net.error().front().message.find("is not InfiniBand, which ibnetdiscover lists: ") != std::string::npos);
  }
  CHECK(written > 5);
  CHECK(refused > 5);
}

TEST_CASE("an imported mesh of switches says that nothing names its routing, a tree does not") {
  const auto note = [](const std::string& name) {
    const auto loaded = load_topology(std::string(FABRICAST_SOURCE_DIR) + "/topologies/" + name + ".yaml");
    REQUIRE(loaded);
    const auto listing = ib_net_file(loaded->topology);
    REQUIRE(listing);
    const auto imported = import_cluster({{"net", *listing, SourceRole::fabric, ""}});
    REQUIRE_MESSAGE(imported, (imported ? "" : render(imported.error())));
    return imported->yaml.find("how packets are routed") != std::string::npos;
  };
  for (const std::string mesh : {"dragonfly-72", "torus-4x4x4"}) CHECK_MESSAGE(note(mesh), mesh);
  for (const std::string tree : {"dgx-a100-pair", "dgx-a100-16", "cx6-hdr-pair"}) CHECK_MESSAGE(!note(tree), tree);
}

TEST_CASE("every adapter that is written has the numbers that its family is read by") {
  for (const auto& one : devices::k_adapter_numbers) {
    CAPTURE(one.family);
    const auto written = devices::adapter_numbers(one.family);
    CHECK(written.family == std::string(one.family));
    const auto* read = devices::adapter_of(written.vendor, written.device);
    REQUIRE(read != nullptr);
    // Some are told apart by more than their numbers.
    const bool is_shared = written.device == 0x1021 || written.device == 0x0042;
    CHECK((is_shared || read->family == std::string(one.family)));
  }
  CHECK(devices::adapter_numbers("connectx-3-pro-40g").device == 0x1007);
  CHECK(devices::adapter_numbers("connectx-6-dx-100g").device == 0x101d);
  CHECK(devices::adapter_numbers("connectx-7-bond-2x200").driver == std::string("mlx5_bond_"));
  CHECK(devices::adapter_numbers("aries").vendor == 0);
}

TEST_CASE("a host that is imported without its network plans inside as the cabled one: plugins set what they set") {
  for (const std::string name : {"aws-p4d", "aws-p3dn", "aws-p5", "dgx-a100-pair"}) {
    CAPTURE(name);
    const auto shipped = std::string(FABRICAST_SOURCE_DIR) + "/topologies/" + name + ".yaml";
    const auto loaded = load_topology(shipped);
    REQUIRE(loaded);
    const auto xml = nccl_topology_xml(loaded->topology, 0, loaded->parameters);
    const auto imported = import_cluster({{"xml", xml, SourceRole::host, ""}});
    REQUIRE_MESSAGE(imported, (imported ? "" : render(imported.error())));
    const TopologyFile file(imported->yaml);
    for (const std::string workload : {"benchmark: all_reduce_perf, gpus: 8", "benchmark: alltoall_perf, gpus: 8"})
      CHECK(times_on(file.path(), workload, {}) == times_on(shipped, workload, {}));
  }
}
