// SPDX-License-Identifier: Apache-2.0
// The compatibility matrix, cell by cell. Each floor and limit: just below it is refused (or warned of, where its
// source is recall), at it accepted, generated from the data. And every cell is noticed: with its value changed some
// set-up of tests/validation/vm_setups.txt gets another verdict than the table says.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "fabricast/check.hpp"
#include "fabricast/gpudirect_software.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {

std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(" \t");
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::vector<std::string> cut(const std::string& text, char by) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, by);) out.push_back(trimmed(part));
  return out;
}

std::string devices(const std::string& words, const std::string& prefix, int& count) {
  std::string out;
  for (const auto& word : cut(words, ',')) {
    if (word == "-" || word == "nvlink") continue;
    const auto times = word.find(" x ");
    const int number = times == std::string::npos ? 1 : std::stoi(word);
    const auto type = times == std::string::npos ? word : word.substr(times + 3);
    for (int i = 0; i < number; ++i)
      out += fmt::format("{{name: {}{}, type: {}, below: socket0}}, ", prefix, count++, type);
  }
  return out;
}

std::string scenario_of(const std::string& gpus, const std::string& adapters, const std::string& network,
                        const std::string& settings, const std::string& vms) {
  int num_gpus = 0;
  int num_adapters = 0;
  const bool is_server = gpus.starts_with("host ");
  auto held = is_server ? "" : devices(gpus, "gpu", num_gpus) + devices(adapters, "hca", num_adapters);
  if (!held.empty()) held.resize(held.size() - 2);
  const auto server =
      is_server ? "type: " + gpus.substr(5) : fmt::format("host: {{processor: xeon-skylake, devices: [{}]}}", held);
  return fmt::format(
      "schema: fabricast/scenario/1\nname: t\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n    - "
      "{{name: n, count: {}, {}{}{}}}\n{}workload: {{benchmark: osu_latency, sizes: [8 B]}}\n",
      network == "-" ? 1 : 2, server, settings == "-" ? "" : ", virtualization: " + settings,
      vms == "-" ? "" : ", vms: " + vms,
      network == "-" ? "" : "  fabric: {single_switch: {switch: " + network + "}}\n");
}

/// One line of vm_setups.txt, loaded.
struct SetUp {
  std::string place;
  std::string verdict, words;
  LoadedScenario loaded;
  std::set<std::string, std::less<>> read;  ///< cells its verdict rests on
};

std::string said_of(const LoadedScenario& loaded, const ParameterSet& parameters, bool& is_refused) {
  const auto found = check_virtualization(loaded.topology, parameters, loaded.device_types);
  is_refused = has_errors(found);
  return render(found) + virtual_features(loaded.topology, parameters);
}

bool is_as_told(const SetUp& one, const ParameterSet& parameters) {
  bool is_refused = false;
  const auto text = said_of(one.loaded, parameters, is_refused);
  return is_refused == (one.verdict == "refused") && (one.words.empty() || text.find(one.words) != std::string::npos);
}

SetUp set_up(const std::string& place, const std::string& line) {
  const auto part = cut(line, '|');
  auto loaded = load_scenario(test::write_file("setup.yaml", scenario_of(part[1], part[2], part[3], part[4], part[5])));
  if (!loaded) FAIL(place << ": " << render(loaded.error()));
  SetUp one{place, part[0], part[6], std::move(*loaded), {}};
  one.loaded.parameters.collect_reads(&one.read);
  bool is_refused = false;
  said_of(one.loaded, one.loaded.parameters, is_refused);
  one.loaded.parameters.collect_reads(nullptr);
  return one;
}

const std::vector<SetUp>& set_ups() {
  static const std::vector<SetUp> all = [] {
    std::vector<SetUp> out;
    for (const auto* name : {"vm_setups.txt", "vm_matrix_setups.txt"}) {
      std::ifstream in(std::string(FABRICAST_SOURCE_DIR) + "/tests/validation/" + name);
      int number = 0;
      for (std::string line; std::getline(in, line);) {
        ++number;
        if (!line.empty() && line[0] != '#') out.push_back(set_up(fmt::format("{}:{}", name, number), line));
      }
    }
    return out;
  }();
  return all;
}

bool is_cell(const std::string& name) {
  for (const auto* prefix : {"support.", "esxi.", "mig_placement."})
    if (name.rfind(prefix, 0) == 0) return true;
  return false;
}

/// Cells of software that GPUDirect RDMA needs: of a job, not of a VM. The last test has them.
bool is_of_gpudirect(const std::string& name) {
  return name.find("gpudirect") != std::string::npos || name.ends_with(".ofed_first");
}

/// Other values that must not go unnoticed: flags turned round, numbers made smaller and larger.
std::vector<double> other_values(const std::string& name, double value) {
  if (name.ends_with(".vgpu") || name.ends_with(".mig") || name.ends_with(".pvrdma") ||
      name.ends_with(".esxi_several") || name.ends_with(".esxi_passthrough"))
    return {1 - value};
  if (name.ends_with(".nvlink_vgpu")) return {value == 0 ? 1.0 : 0.0};
  if (name.rfind("mig_placement.", 0) == 0 && name.ends_with(".starts")) return {0};
  // Starts alone keep instances within the compute slices: more of them changes nothing.
  if (name.rfind("mig_placement.", 0) == 0) return {value - 1};
  if (name.ends_with("_capability")) return {0, 200};
  const bool is_release = name.find("_first") != std::string::npos || name.find("_last") != std::string::npos;
  return is_release ? std::vector<double>{0, 9999} : std::vector<double>{0, 1e9};
}

}  // namespace

TEST_CASE("set-ups at the edges of the matrix get their verdicts") {
  for (const auto& one : set_ups()) {
    CAPTURE(one.place);
    if (is_as_told(one, one.loaded.parameters)) continue;
    bool is_refused = false;
    FAIL_CHECK(one.verdict << ", '" << one.words << "': " << said_of(one.loaded, one.loaded.parameters, is_refused));
  }
}

TEST_CASE("every cell of the compatibility matrix is noticed by a set-up when its value changes" *
          doctest::test_suite("long")) {
  const auto& all = set_ups();
  REQUIRE(all.size() > 180);
  const auto& parameters = all.front().loaded.parameters;
  std::size_t cells = 0;
  for (const auto& [name, parameter] : parameters.all()) {
    if (!is_cell(name) || is_of_gpudirect(name)) continue;
    ++cells;
    const auto& key = name;  // clang 14 captures no structured binding
    for (const double value : other_values(name, parameter.value)) {
      auto other = parameter;
      other.value = value;
      const bool is_noticed = std::any_of(all.begin(), all.end(), [&](const SetUp& one) {
        if (!one.read.contains(key)) return false;
        auto changed = one.loaded.parameters;
        changed.set(other);
        return !is_as_told(one, changed);
      });
      if (!is_noticed) FAIL_CHECK(name << " = " << value << " instead of " << parameter.value << " goes unnoticed");
    }
  }
  CHECK(cells > 150);
}

namespace {

const std::vector<int> k_esxi{550, 600, 650, 670, 671, 672, 673, 700, 701, 702, 703, 800, 801, 802, 803, 900};

std::string release_text(int code) {
  return fmt::format("\"{}.{}{}\"", code / 100, code / 10 % 10, code % 10 > 0 ? fmt::format(" U{}", code % 10) : "");
}
int esxi_before(int code) { return *std::prev(std::lower_bound(k_esxi.begin(), k_esxi.end(), code)); }

/// A catalogue GPU of each model that the matrix names: some set-up has it.
std::string gpu_of(const std::string& model) {
  for (const auto& one : set_ups())
    for (const auto& type : one.loaded.device_types)
      if (type.kind == "gpu" && type.name.substr(0, type.name.find('-')) == model) return type.name;
  return "";
}

std::string verdict(const std::string& gpus, const std::string& settings, const std::string& vm) {
  const auto loaded =
      load_scenario(test::write_file("floor.yaml", scenario_of(gpus, "-", "-", settings, "[{name: a, " + vm + "}]")));
  if (!loaded) return "fault: " + render(loaded.error());
  return render(check_virtualization(loaded->topology, loaded->parameters, loaded->device_types));
}

bool has(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

}  // namespace

TEST_CASE("a GPU's vGPU is doubted or refused just below its first releases and above its last, and accepted at them") {
  const auto& loaded = set_ups().front().loaded;
  int floors = 0;
  for (const auto& [name, cell] : loaded.parameters.all()) {
    const auto part = cut(name, '.');
    if (part.size() != 3 || part[0] != "support") continue;
    const auto gpu = gpu_of(part[1]);
    if (gpu.empty()) continue;
    const auto cell_name = name;
    CAPTURE(cell_name);
    const int code = static_cast<int>(cell.value);
    const std::string vgpu = "devices: {gpu0: vgpu}";
    const auto on_esxi = [&](int release) { return verdict(gpu, "{version: " + release_text(release) + "}", vgpu); };
    const auto with = [&](int release) { return verdict(gpu, "{vgpu_release: " + release_text(release) + "}", vgpu); };
    if (part[2] == "esxi_vgpu_first") {
      CHECK(has(on_esxi(esxi_before(code)), "needs ESXi"));
      CHECK_FALSE(has(on_esxi(code), "needs ESXi"));
    } else if (part[2] == "vgpu_first") {
      CHECK(has(with(code - 10), "does not know the"));
      CHECK_FALSE(has(with(code), "does not know the"));
    } else if (part[2] == "vgpu_last") {
      CHECK(has(with(code + 1), "has dropped the"));
      CHECK_FALSE(has(with(code), "has dropped the"));
    } else {
      continue;
    }
    ++floors;
  }
  CHECK(floors > 30);
}

TEST_CASE("what ESXi's releases allow a VM is allowed, one more is refused") {
  const auto& loaded = set_ups().front().loaded;
  int limits = 0;
  for (const auto& [name, cell] : loaded.parameters.all()) {
    const auto part = cut(name, '.');
    if (part[0] != "esxi") continue;
    const auto cell_name = name;
    CAPTURE(cell_name);
    const auto settings = "{version: " + release_text(std::stoi(part[1])) + ", vgpu_release: \"16.0\"}";
    const int most = static_cast<int>(cell.value);
    const auto of = [&](int value) {
      if (part[2] == "hardware_version")
        return verdict("t4", settings, fmt::format("hardware_version: {}, devices: {{gpu0: passthrough}}", value));
      if (part[2] == "memory_gb")
        return verdict("t4", settings, fmt::format("memory: {} GiB, devices: {{gpu0: passthrough}}", value));
      if (part[2] == "vcpus")
        return verdict("t4", settings, fmt::format("vcpus: {}, devices: {{gpu0: passthrough}}", value));
      const auto way = part[2] == "vgpus" ? "{vgpu: t4-16c, count: 1}" : "{mode: passthrough, count: 1}";
      std::string devices = way;
      devices.replace(devices.find("count: 1"), 8, fmt::format("count: {}", std::min(value, 64)));
      // The schema counts to 64 of one type: two types for more.
      const auto more =
          value > 64 ? fmt::format(", p40: {{mode: passthrough, count: {}}}", std::min(64, value - 64)) : std::string();
      const auto rest = value > 128 ? std::string(", l4: passthrough") : std::string();
      return verdict(
          fmt::format("{} x t4{}{}", std::min(value, 64),
                      value > 64 ? fmt::format(", {} x p40", std::min(64, value - 64)) : "", value > 128 ? ", l4" : ""),
          settings, "devices: {t4: " + devices + more + rest + "}");
    };
    const auto refused = [&](const std::string& text) {
      return has(text, "allows") || has(text, "has up to") || has(text, "allow");
    };
    CHECK(refused(of(most + 1)));
    CHECK_FALSE(refused(of(most)));
    ++limits;
  }
  CHECK(limits >= 60);
}

TEST_CASE("below the floors of GPUDirect RDMA device messages are staged, at them not, and check says the same") {
  const auto text = [](const std::string& hca, const std::string& key, const std::string& version) {
    return fmt::format(
        "schema: fabricast/scenario/1\nname: t\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n    - "
        "{{name: n, count: 2, host: {{processor: xeon-skylake, devices: [{{name: sw, kind: pcie_switch, below: "
        "socket0}}, {{name: gpu0, type: p100-pcie-16, below: sw}}, {{name: hca0, type: {}, below: sw}}]}}}}\n  fabric: "
        "{{single_switch: {{switch: {}}}}}\nsoftware: {{mpi: open-mpi-openib, gpudirect_rdma: on, {}: "
        "\"{}\"}}\nworkload: {{benchmark: osu_latency, buffers: device, sizes: [4 KiB]}}\n",
        hca, hca.find("100g") != std::string::npos ? "sn2700" : "sb7800", key, version);
  };
  const auto words = [](int code) {
    return code % 10 == 0 ? fmt::format("{}.{}", code / 100, code / 10 % 10)
                          : fmt::format("{}.{}.{}", code / 100, code / 10 % 10, code % 10);
  };
  const std::map<std::string, std::string> adapters{
      {"connectx-3", "connectx-3-fdr"}, {"connect-ib", "connect-ib"},         {"connectx-4", "connectx-4-edr"},
      {"connectx-5", "connectx-5-edr"}, {"connectx-6", "connectx-6-dx-100g"}, {"connectx-7", "connectx-7-ndr"}};
  const auto parameters = test::shipped("osu-latency-fdr-gpudirect.yaml").parameters;
  int floors = 0;
  for (const auto& [name, parameter] : parameters.all()) {
    if (!is_of_gpudirect(name) || !is_cell(name)) continue;
    const auto cell_name = name;
    CAPTURE(cell_name);
    ++floors;
    const auto family = cut(name, '.')[1];
    const bool is_ofed = name.ends_with(".ofed_first");
    const auto key = is_ofed ? "ofed" : name.find("cuda") != std::string::npos ? "cuda" : "mpi_version";
    const auto hca = is_ofed ? adapters.at(family) : std::string("connectx-4-edr");
    const auto at = [&](int code) {
      const auto loaded = test::scenario(text(hca, key, words(code)));
      const auto run = test::run(loaded);
      const auto said = render(check_scenario(loaded.topology, loaded.scenario, loaded.parameters));
      const bool is_warned = said.find("has no GPUDirect RDMA") != std::string::npos;
      const bool is_staged = run.workloads[0].rows[0].protocol.find("gdr") == std::string::npos;
      CHECK(is_warned == is_staged);
      return is_staged;
    };
    const int floor = static_cast<int>(parameter.value);
    CHECK_FALSE(at(floor));
    CHECK(at(floor - (floor % 10 == 0 ? 10 : 1)));
  }
  CHECK(floors == 8);
}
