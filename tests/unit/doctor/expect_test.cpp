// SPDX-License-Identifier: Apache-2.0
// Floors of a healthy cluster catch a loss of 15 % and let scatter pass; the tuner file follows the grammar of the
// plugin that reads it; exports are read back.
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

#include "fabricast/export.hpp"
#include "fabricast/import.hpp"
#include "tests/support/approx.hpp"
#include "tests/unit/doctor/logs.hpp"

using namespace fabricast;
using namespace fabricast::test;

namespace {

MeasuredLog log_of(const std::string& topology, double loss, unsigned seed) {
  auto paths = planted_logs(topology, "dgx", {{"benchmark: all_reduce_perf", 16, 0}}, {}, 0.03, seed);
  auto log = read_log(paths[0]);
  REQUIRE(log);
  for (auto& row : log->rows) row.time = from_seconds(row.time.seconds() / (1 - loss));
  return *log;
}

/// As ext-tuner/example/plugin.c of NCCL reads a line: at most 255 characters, 8 to 10 fields by strtok.
struct PluginRow {
  std::string collective, algorithm, protocol;
  unsigned long long min = 0, max = 0;
  int channels = 0, nodes = 0, ranks = 0, pipe = -1, registered = -1;
};
std::vector<PluginRow> plugin_rows(const std::string& text) {
  std::vector<PluginRow> out;
  for (std::size_t begin = 0; begin < text.size();) {
    const auto end = text.find('\n', begin);
    auto line = text.substr(begin, end - begin);
    begin = end == std::string::npos ? text.size() : end + 1;
    CHECK(line.size() < 255);
    if (line.empty() || line[0] == '#') continue;
    std::vector<std::string> fields;
    for (char* token = std::strtok(line.data(), ","); token != nullptr; token = std::strtok(nullptr, ","))
      fields.emplace_back(token);
    REQUIRE(fields.size() >= 8);
    REQUIRE(fields.size() <= 10);
    PluginRow row{fields[0],
                  fields[3],
                  fields[4],
                  std::strtoull(fields[1].c_str(), nullptr, 10),
                  std::strtoull(fields[2].c_str(), nullptr, 10),
                  std::atoi(fields[5].c_str()),
                  std::atoi(fields[6].c_str()),
                  std::atoi(fields[7].c_str())};
    if (fields.size() > 8) row.pipe = std::atoi(fields[8].c_str());
    if (fields.size() > 9) row.registered = std::atoi(fields[9].c_str());
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace

TEST_CASE("floors catch a loss of 15 % and let healthy runs pass") {
  const auto topology = topology_file("dgx-a100-pair.yaml");
  ExpectOptions options;
  options.benchmarks = {Benchmark::all_reduce_perf};
  const auto expectations = expect(topology, options);
  REQUIRE(expectations);
  for (unsigned seed = 0; seed < 20; ++seed) {
    CHECK(!check_floors(log_of(topology, 0, seed), expectations->floors).is_missed);
    CHECK(check_floors(log_of(topology, 0.15, seed), expectations->floors).is_missed);
  }
  for (const auto& text : {expectations_yaml(*expectations), expectations_json(*expectations)}) {
    const auto back = read_floors(text, "floors");
    REQUIRE_MESSAGE(back, (back ? "" : render(back.error())));
    REQUIRE(back->size() == expectations->floors.size());
    CHECK(back->front().slowest.us() == test::approx(expectations->floors.front().slowest.us()).epsilon(1e-4));
    CHECK(check_floors(log_of(topology, 0.15, 3), *back).is_missed);
  }
  const auto rules = superbench_rules(*expectations);
  CHECK(rules.find("nccl-bw.*/allreduce_134217728_busbw") != std::string::npos);
  CHECK(!read_floors("schema: fabricast/floors/1\nfloors: [{benchmark: all_reduce_perf}]\n", "x"));
  CHECK(!read_floors("a: b\n", "x"));
}

TEST_CASE("a log that does not say its ranks is of the whole cluster, one of other hosts has no floor") {
  const auto topology = topology_file("dgx-a100-pair.yaml");
  ExpectOptions options;
  options.benchmarks = {Benchmark::all_reduce_perf};
  const auto floors = expect(topology, options)->floors;
  auto log = log_of(topology, 0, 1);
  REQUIRE(log.header.num_ranks == 16);
  const auto whole = check_floors(log, floors);
  log.header.num_hosts = 1;
  CHECK(check_floors(log, floors).num_rows == 0);
  log.header.num_hosts.reset();
  log.header.num_ranks.reset();
  const auto open = check_floors(log, floors);
  CHECK(open.num_rows == whole.num_rows);
  CHECK(open.num_below == whole.num_below);
  REQUIRE(!open.lines.empty());
  CHECK(open.lines[0].find("does not say its number of ranks: 16 are taken") != std::string::npos);
}

TEST_CASE("a scenario's floors are those of its own workload and software, at the sizes asked for") {
  const auto path = std::filesystem::temp_directory_path() / fmt::format("fabricast-expect-{}.yaml", getpid());
  const auto floors = [&](const char* software) {
    std::ofstream(path) << fmt::format(
        "schema: fabricast/scenario/1\nname: s\ntopology: \"{}\"\n{}workload: {{benchmark: all_gather_perf, gpus: "
        "8}}\n",
        topology_file("dgx-a100-pair.yaml"), software);
    ExpectOptions options;
    options.sizes = {Bytes{3 << 20}, Bytes{1 << 30}};
    const auto expectations = expect(path.string(), options);
    REQUIRE_MESSAGE(expectations, (expectations ? "" : render(expectations.error())));
    return expectations->floors;
  };
  const auto plain = floors(""), slow = floors("software: {nccl: {p2p: off}}\n");
  std::filesystem::remove(path);
  REQUIRE(plain.size() == 2);
  CHECK(plain[0].benchmark == Benchmark::all_gather_perf);
  CHECK(plain[0].ranks == 8);
  CHECK(plain[0].size == Bytes{3 << 20});
  CHECK(plain[1].size == Bytes{1 << 30});
  CHECK(slow[1].expected > plain[1].expected);
}

TEST_CASE("a head node without GPUs before the others has no floor and changes none") {
  const auto path = std::filesystem::temp_directory_path() / fmt::format("fabricast-head-{}.yaml", getpid());
  const auto floors = [&](const char* head) {
    std::ofstream(path) << "schema: fabricast/topology/1\nname: t\nhosts:\n"
                        << head
                        << "  - {name: node, count: 2, type: dgx-a100}\n"
                           "fabric: {single_switch: {switch: qm8700, cable: 5 m}}\n";
    ExpectOptions options;
    options.benchmarks = {Benchmark::all_reduce_perf};
    options.sizes = {Bytes{1 << 20}};
    const auto expectations = expect(path.string(), options);
    REQUIRE_MESSAGE(expectations, (expectations ? "" : render(expectations.error())));
    return expectations->floors;
  };
  const auto with_head = floors("  - {name: head, count: 1, type: azure-hbv3}\n"), without = floors("");
  std::filesystem::remove(path);
  REQUIRE(without.size() == 4);  // 2, 4 and 8 GPUs of a host, 16 of two
  REQUIRE(with_head.size() == without.size());
  for (std::size_t i = 0; i < without.size(); ++i) {
    CHECK(with_head[i].ranks == without[i].ranks);
    CHECK(with_head[i].hosts == without[i].hosts);
    CHECK(with_head[i].expected.us() == test::approx(without[i].expected.us()).epsilon(1e-9));
  }
}

TEST_CASE("floors of hosts with different numbers of GPUs are of the ranks that these hosts have") {
  const auto path = std::filesystem::temp_directory_path() / fmt::format("fabricast-unlike-{}.yaml", getpid());
  std::ofstream(path) << "schema: fabricast/topology/1\nname: t\nhosts:\n"
                         "  - {name: small, count: 2, type: server-1v100-cx4-100g}\n"
                         "  - {name: big, count: 2, type: dgx-1-v100}\n"
                         "fabric: {single_switch: {switch: sn2700}}\n";
  ExpectOptions options;
  options.benchmarks = {Benchmark::all_reduce_perf};
  options.sizes = {Bytes{1 << 20}};
  const auto expectations = expect(path.string(), options);
  std::filesystem::remove(path);
  REQUIRE_MESSAGE(expectations, (expectations ? "" : render(expectations.error())));
  std::vector<std::pair<int, int>> counts;
  for (const auto& floor : expectations->floors) counts.emplace_back(floor.hosts, floor.ranks);
  CHECK(counts == std::vector<std::pair<int, int>>{{2, 2}, {4, 18}});
}

TEST_CASE("the tuner file is one that the plugin reads") {
  const std::vector<TunerChoice> choices{{{8}, "", "", -1},
                                         {{1024}, "tree", "ll", -1},
                                         {{4096}, "tree", "ll", -1},
                                         {{65536}, "ring", "ll128", 8},
                                         {{1 << 20}, "", "", -1}};
  const auto rows = plugin_rows(nccl_tuner_file("allreduce", choices, 2, 16, {"a comment"}));
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].collective == "allreduce");
  CHECK(rows[0].algorithm == "tree");
  CHECK(rows[0].min <= 1024);
  CHECK(rows[0].max >= 4096);
  CHECK(rows[0].min > 8);
  CHECK(rows[1].min == rows[0].max + 1);
  CHECK(rows[1].max < (1 << 20));
  CHECK(rows[1].channels == 8);
  CHECK(rows[1].nodes == 2);
  CHECK(rows[1].ranks == 16);
  CHECK(rows[1].registered == -1);
}

TEST_CASE("what is exported is imported again as the same cluster") {
  for (const auto* name : {"dgx-a100-16.yaml", "hgx-h100-ndr.yaml", "irregular-list.yaml"}) {
    CAPTURE(name);
    const auto loaded = load_topology(topology_file(name));
    REQUIRE(loaded);
    const auto net = ib_net_file(loaded->topology);
    REQUIRE(net);
    const auto xml = nccl_topology_xml(loaded->topology, 0, loaded->parameters);
    const auto imported = import_cluster({{"net", *net, SourceRole::fabric, ""}, {"xml", xml, SourceRole::host, ""}});
    REQUIRE(imported);
    const auto path = std::filesystem::temp_directory_path() / fmt::format("fabricast-again-{}.yaml", getpid());
    std::ofstream(path) << imported->yaml;
    const auto again = load_topology(path.string());
    std::filesystem::remove(path);
    REQUIRE_MESSAGE(again, (again ? "" : render(again.error())));
    CHECK(again->topology.num_hosts() == loaded->topology.num_hosts());
    CHECK(again->topology.devices(DeviceKind::hca).size() == loaded->topology.devices(DeviceKind::hca).size());
    CHECK(again->topology.devices(DeviceKind::network_switch).size() ==
          loaded->topology.devices(DeviceKind::network_switch).size());
    CHECK(again->topology.num_links() - again->topology.first_network_link() ==
          loaded->topology.num_links() - loaded->topology.first_network_link());
    CHECK(again->topology.count(DeviceKind::gpu, 0) == loaded->topology.count(DeviceKind::gpu, 0));
    for (const bool is_yaml : {false, true}) {
      const auto slurm = slurm_topology(loaded->topology, is_yaml);
      REQUIRE(slurm);
      const auto placed =
          import_cluster({{"xml", xml, SourceRole::host, ""}, {"slurm", *slurm, SourceRole::placement, ""}});
      REQUIRE_MESSAGE(placed, (placed ? "" : render(placed.error())));
      // The switch above the leaves by its name, or a tier where it stands for several.
      CHECK((placed->yaml.find("core") != std::string::npos || placed->yaml.find("tiers: 2") != std::string::npos));
    }
  }
}

TEST_CASE("the file for a VM keeps the tree, with the guest's addresses, and nothing that NCCL finds itself") {
  const auto loaded = load_topology(topology_file("hgx-h100-ndr.yaml"));
  REQUIRE(loaded);
  const auto xml = nccl_topology_xml(loaded->topology, 0, loaded->parameters);
  const auto guest =
      guest_topology_xml({{"xml", xml, SourceRole::host, ""}}, {"0000:05:00.0=0000:0b:00.0", "0d:00.0=0c:00.0"});
  REQUIRE(guest);
  CHECK(guest->yaml.find("busid=\"0000:0b:00.0\" class=\"0x030200\"") != std::string::npos);
  CHECK(guest->yaml.find("busid=\"0000:0c:00.0\" class=\"0x020700\"") != std::string::npos);
  for (const auto* gone : {"<gpu", "<nic", "<nvlink", "0000:05:00.0"})
    CHECK(guest->yaml.find(gone) == std::string::npos);
  const auto again = import_cluster({{"guest", guest->yaml, SourceRole::host, ""}}, {"x", 0, "h100-sxm", ""});
  CHECK(again);
  CHECK(!guest_topology_xml({{"xml", xml, SourceRole::host, ""}}, {}));
  CHECK(!guest_topology_xml({{"xml", xml, SourceRole::host, ""}}, {"nonsense"}));
}
