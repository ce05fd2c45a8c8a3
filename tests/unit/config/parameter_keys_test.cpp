// SPDX-License-Identifier: Apache-2.0
// Every parameter is declared once, with its unit and legal range, and every device field has a range; a file, an
// inline parameter and --set are held to it, with the line and what to write instead.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <string_view>
#include <vector>

#include "base/parameter_keys.hpp"
#include "base/parameter_name.hpp"
#include "config/devices.hpp"
#include "config/schema.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {

bool says(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

std::string parameter_file(const std::string& entry) {
  return "schema: fabricast/parameters/1\nname: p\nparameters:\n  " + entry + "\n";
}

/// What a parameter file of one entry is refused with; empty when it is read.
std::string refusal(const std::string& entry) {
  const auto read = load_parameters(test::write_file("p.yaml", parameter_file(entry)));
  return read ? "" : test::shown(read.error());
}

}  // namespace

TEST_CASE("every shipped parameter and catalogue value lies in its range, and no number is bounded by accident") {
  const auto catalogue = load_whole_catalogue();
  REQUIRE(catalogue);
  for (const auto& row : catalogue->parameters.all()) {
    const auto& [name, parameter] = row;
    CAPTURE(row.first);
    CAPTURE(row.second.value);
    const auto range = range_of(name, parameter.dimension);
    CHECK(range.holds(parameter.value));
    CHECK(range.low >= 0);
    CHECK(std::isfinite(range.high));
    CHECK_FALSE(range.what.empty());
    if (parameter.dimension == Dimension::number) CHECK(range.is_declared);
  }
}

TEST_CASE("every field of every device kind has a range of its dimension") {
  for (const auto& kind : config::device_kinds()) {
    for (const auto& field : config::device_fields(kind)) {
      CAPTURE(kind);
      CAPTURE(field.name);
      const auto range = range_of("device." + std::string(field.name), field.dimension);
      CHECK(range.low < range.high);
      if (field.dimension == Dimension::number) CHECK(range.is_declared);
    }
  }
}

TEST_CASE("no parameter accepts what no machine has") {
  const auto catalogue = load_whole_catalogue();
  REQUIRE(catalogue);
  for (const auto& row : catalogue->parameters.all()) {
    const auto& [name, parameter] = row;
    CAPTURE(row.first);
    const auto range = range_of(name, parameter.dimension);
    for (const double value : {-1.0, -1e-9, 1e300, std::numeric_limits<double>::infinity(), std::nan("")})
      CHECK_FALSE(range.holds(value));
    const bool is_share = name.ends_with("_share") || name.ends_with("_efficiency");
    if (is_share) CHECK_FALSE(range.holds(98));
  }
}

TEST_CASE("the bounds themselves are legal and what lies just outside is not") {
  const auto share = range_of("connectx-6.payload_efficiency", Dimension::number);
  CHECK(share.holds(1));
  CHECK(share.holds(0.01));
  CHECK_FALSE(share.holds(1.0001));
  CHECK_FALSE(share.holds(0));
  const auto time = range_of("nccl.base_time.ring.ll", Dimension::time);
  CHECK(time.holds(0));
  CHECK(time.holds(10));
  CHECK_FALSE(time.holds(10.1));
  const auto rate = range_of("connectx-6.rate", Dimension::bandwidth);
  CHECK_FALSE(rate.holds(0));
  CHECK(rate.holds(1e3));
  CHECK(rate.holds(1e15));
  CHECK_FALSE(rate.holds(1.1e15));
  CHECK(range_of("mpi.open-mpi-ucx.flow_bandwidth", Dimension::bandwidth).holds(0));
  CHECK(range_of("migration.limit", Dimension::time).holds(100));
  CHECK(range_of("nccl.p2p_network_chunk", Dimension::bytes).low == 1);
  CHECK(to_string(rate, Dimension::bandwidth) == "1 kB/s to 1000 TB/s");
  CHECK(to_string(time, Dimension::time) == "0 s to 10 s");
  CHECK(to_string(share, Dimension::number) == "0.01 to 1");
}

TEST_CASE("a device file outside the range of a field is refused, the same range as of a parameter") {
  const auto refusal_of = [](const std::string& value) {
    const auto device = test::write_file(
        "d.yaml",
        "schema: fabricast/device/1\nname: my-hca\nkind: hca\nvalues:\n  rate: {value: 100 Gb/s, source: me}\n  "
        "pcie_generation: {value: 4, source: me}\n  pcie_width: {value: 16, source: me}\n  latency: {value: 0.6 us, "
        "source: me}\n  mtu: {value: 4096, source: me}\n  packet_header: {value: 30, source: me}\n  " +
            value + "\n");
    const auto file = test::write_file(
        "t.yaml", "schema: fabricast/topology/1\nname: t\ndevices: [" + device +
                      "]\nhosts: [{name: n, host: {processor: xeon-skylake, devices: [{name: hca0, type: my-hca, "
                      "below: socket0}]}}]\n");
    const auto read = load_topology(file);
    return read ? std::string() : test::shown(read.error());
  };
  CHECK(refusal_of("store_and_forward: {value: 2, source: me}") == "");
  CHECK(says(refusal_of("store_and_forward: {value: 2.1, source: me}"), "outside its range"));
  CHECK(says(refusal_of("socket_threads: {value: 17, source: me}"), "give a count: 0 to 16"));
  CHECK(says(refusal_of("plugin_tuner: {value: 2, source: me}"), "give 0 or 1"));
}

TEST_CASE("attributes that a kind of device does not have are refused, where they stand and with those that it has") {
  const auto refusal_of = [](const std::string& kind, const std::string& word) {
    const auto device = test::write_file(
        "d.yaml", "schema: fabricast/device/1\nname: mine\nkind: " + kind + "\nattributes: {" + word + "}\n");
    const auto file = test::write_file("t.yaml", "schema: fabricast/topology/1\nname: t\ndevices: [" + device +
                                                     "]\nhosts: [{name: n, host: {processor: xeon-skylake}}]\n");
    const auto read = load_topology(file);
    return read ? std::string() : test::shown(read.error());
  };
  // What the models look up: of which kinds, and a legal word.
  struct Known {
    std::set<std::string> kinds;
    std::string word;
  };
  const std::map<std::string, Known> all{{"vendor", {{"gpu", "processor"}, "amd"}},
                                         {"architecture", {{"gpu"}, "ampere"}},
                                         {"form", {{"gpu"}, "superchip"}},
                                         {"microarchitecture", {{"processor"}, "zen3"}},
                                         {"protocol", {{"hca", "network_switch", "switch_asic"}, "ethernet"}},
                                         {"driver", {{"hca"}, "mlx5"}},
                                         {"libfabric", {{"hca"}, "efa"}},
                                         {"nccl_plugin", {{"hca"}, "tcpxo"}},
                                         {"plugin_since", {{"hca"}, "1.7.0"}},
                                         {"line_protocols_since", {{"hca"}, "1.7.3"}},
                                         {"tuner", {{"hca"}, "p5"}},
                                         {"asic", {{"network_switch"}, "spectrum-2"}}};
  for (const auto& kind : config::device_kinds()) {
    CAPTURE(kind);
    for (const auto& one : all) {
      const auto& name = one.first;
      CAPTURE(name);
      const bool is_known = one.second.kinds.contains(kind);
      const auto found = refusal_of(kind, name + ": " + one.second.word);
      CHECK(says(found, "nothing reads the attribute '" + name + "' of a device of kind " + kind) == !is_known);
      if (!is_known) CHECK(says(found, "d.yaml:4:14"));
    }
    for (const auto& word : config::device_words(kind)) CHECK(all.contains(word));
  }
  CHECK(says(refusal_of("hca", "drivr: mlx5"), "did you mean 'driver'?"));
  CHECK(says(refusal_of("hca", "driver: mlx4"), "'mlx4'"));
}

TEST_CASE("a parameter file outside a range is refused with its line, what was found and what to give") {
  const auto percent = refusal("connectx-6.payload_efficiency: {value: 98, source: me}");
  CHECK(says(percent, "p.yaml:4:"));
  CHECK(says(percent, "error: 'value' of 'connectx-6.payload_efficiency' is 98, outside its range"));
  CHECK(says(percent, "give a share above 0: 0.01 to 1; 98 % is written 0.98"));
  CHECK(says(refusal("nccl.payload_share.ll: {value: -1, source: me}"), "is -1, outside its range"));
  CHECK(says(refusal("nccl.shm_local_work.ll: {value: 1e300, source: me}"), "is 1e300, outside its range"));
  CHECK(says(refusal("nccl.base_time.ring.ll: {value: 20 s, source: me}"), "give a time: 0 s to 10 s"));
  CHECK(says(refusal("connectx-6.rate: {value: 0 B/s, source: me}"), "give a rate above 0"));
  CHECK(says(refusal("nccl.shm_local_work.ll: {value: 1, low: 0.5, high: 1e300, source: me}"),
             "'high' of 'nccl.shm_local_work.ll' is 1e300"));
  CHECK(says(refusal("anything.else: {value: 1e12, source: me}"), "outside its range"));
  CHECK(refusal("connectx-6.payload_efficiency: {value: 0.98, source: me}").empty());
  // A fit's interval may reach past the range.
  CHECK(refusal("nccl.nvlink_store_share.simple: {value: 0.95, low: 0.9, high: 1.02, source: fit}").empty());
}

TEST_CASE("a device file outside a range is refused with its line") {
  const std::string text =
      "schema: fabricast/device/1\nname: my-hca\nkind: hca\nvalues:\n  rate: {value: 100 Gb/s, source: own}\n"
      "  pcie_generation: {value: 4, source: own}\n  pcie_width: {value: 16, source: own}\n"
      "  latency: {value: 0.6 us, source: own}\n  mtu: {value: 4096, source: own}\n"
      "  packet_header: {value: 30, source: own}\n";
  const auto faults = [&](const std::string& line) {
    const auto device = load_device(test::write_file("d.yaml", text + "  " + line + "\n"));
    return device ? std::string() : test::shown(device.error());
  };
  CHECK(faults("payload_efficiency: {value: 0.9, source: own}").empty());
  CHECK(says(faults("payload_efficiency: {value: 98, source: own}"), "d.yaml:11:"));
  CHECK(says(faults("message_rate: {value: -3, source: own}"), "outside its range"));
  CHECK(says(faults("post_gap: {value: 100 s, source: own}"), "give a time"));
  CHECK(says(faults("ports: {value: 0, source: own}"), "give a count: 1 to 65536"));
}

namespace {

/// What a cluster says of a parameter file with one entry: its refusal, or its warnings.
std::string said_by_cluster(const std::string& entry) {
  const auto file = test::write_file("p.yaml", parameter_file(entry));
  const auto loaded = load_topology(std::string(FABRICAST_SOURCE_DIR) + "/topologies/hgx-a100.yaml", {file});
  return loaded ? "read: " + render(loaded->warnings) : test::shown(loaded.error());
}

/// A value that is legal in every dimension but the given one.
std::string of_another_unit(Dimension dimension) { return dimension == Dimension::time ? "1 kB" : "1 ms"; }

}  // namespace

TEST_CASE("a parameter says whether more of it is less time: rates and what is reached of one") {
  const auto shipped = load_shipped_parameters();
  REQUIRE(shipped);
  int rates = 0;
  for (const auto& row : shipped->all()) {
    const auto& name = row.first;
    const auto& parameter = row.second;
    CAPTURE(name);
    if (parameter.dimension == Dimension::time) CHECK_FALSE(parameter.is_rate);
    // That one scales a threshold.
    if (parameter.dimension == Dimension::bandwidth) CHECK(parameter.is_rate != name.ends_with("ecn_reference_rate"));
    if (name.ends_with("_efficiency") || name.ends_with(".port_share") || name.ends_with("_tflops"))
      CHECK(parameter.is_rate);
    rates += parameter.is_rate ? 1 : 0;
  }
  CHECK(rates > 100);
  for (const auto* name :
       {"nccl.tree_link_share", "host.both_sockets_share", "cuda.staged_copy_share", "nccl.pat_network_share",
        "nccl.shm_one_way_gain", "nccl.shm_both_ways_share", "nccl.nvlink_store_share.simple"})
    CHECK(shipped->at(name).is_rate);
  for (const auto* name : {"nccl.shm_local_work", "nccl.first_chunk", "virtualization.split_tax",
                           "training.exchange_slowdown", "lossless.pool_share", "dcqcn.g"})
    CHECK_FALSE(shipped->at(name).is_rate);
}

TEST_CASE("one key declares each shipped parameter, with its dimension, and each key something that is read") {
  const auto shipped = load_shipped_parameters();
  REQUIRE(shipped);
  std::set<std::string_view> used;
  for (const auto& row : shipped->all()) {
    CAPTURE(row.first);
    const auto* key = key_of(row.first);
    REQUIRE(key != nullptr);
    CHECK(key->dimension == row.second.dimension);
    used.insert(key->pattern);
  }
  for (const auto& key : parameter_keys()) {
    CAPTURE(key.pattern);
    CHECK_FALSE(key.meaning.empty());
    // What `calibrate` writes into its file, and what eager frameworks take as otherwise unless told.
    const bool is_never_shipped = key.pattern.starts_with("model.") || key.pattern.starts_with("training.eager_");
    if (!is_never_shipped) CHECK(used.contains(key.pattern));
  }
}

TEST_CASE("the expressions of the JSON Schema name what the keys declare, and no more" * doctest::test_suite("long")) {
  const auto catalogue = load_whole_catalogue();
  REQUIRE(catalogue);
  std::vector<std::pair<std::regex, std::string>> expressions;
  const auto schema = nlohmann::json::parse(json_schema("parameters"));
  for (const auto& [pattern, value] : schema["properties"]["parameters"]["patternProperties"].items())
    expressions.emplace_back(std::regex(pattern), pattern);
  REQUIRE(expressions.size() == parameter_keys().size());
  for (const auto& row : catalogue->parameters.all()) {
    CAPTURE(row.first);
    const bool is_named =
        std::ranges::any_of(expressions, [&](const auto& one) { return std::regex_search(row.first, one.first); });
    CHECK(is_named == (key_of(row.first) != nullptr));
  }
}

TEST_CASE("a shipped parameter is refused in another unit, and misspelt it is a warning" *
          doctest::test_suite("long")) {
  const auto shipped = load_shipped_parameters();
  REQUIRE(shipped);
  std::set<std::string_view> seen;
  for (const auto& row : shipped->all()) {
    const auto& [name, parameter] = row;
    if (!seen.insert(key_of(name)->pattern).second) continue;  // one of each family
    CAPTURE(row.first);
    const auto wrong = said_by_cluster(name + ": {value: " + of_another_unit(parameter.dimension) + ", source: me}");
    CHECK(says(wrong, "a " + std::string(to_string(parameter.dimension)) + " is expected"));
    // A letter more in its second part: no key is called so.
    auto misspelt = name;
    misspelt.insert(misspelt.find('.') + 1, "q");
    const bool is_free = key_of(misspelt) != nullptr;  // of a family, release or profile that users name
    const auto said = said_by_cluster(misspelt + ": {value: 0, source: me}");
    if (!is_free) CHECK(says(said, "no model reads '" + misspelt + "'"));
  }
}

TEST_CASE("values of devices: only fields of their kind, only devices that exist") {
  CHECK(said_by_cluster("h100-sxm.memory_bandwidth: {value: 3 TB/s, source: me}") == "read: ");
  CHECK(says(said_by_cluster("h100-sxm.memory_bandwidth: {value: 3 us, source: me}"), "a bandwidth is expected"));
  CHECK(says(said_by_cluster("h100-sxm.memory_bandwith: {value: 3 TB/s, source: me}"),
             "did you mean 'h100-sxm.memory_bandwidth'?"));
  CHECK(says(said_by_cluster("h100-sxm.message_rate: {value: 1e8, source: me}"), "a gpu has no field 'message_rate'"));
  CHECK(says(said_by_cluster("h100-sxn.memory_bandwidth: {value: 3 TB/s, source: me}"),
             "no device type is called 'h100-sxn'"));
  CHECK(said_by_cluster("sn2700.alpha_onyx: {value: 4, source: me}") == "read: ");
  for (const auto& kind : config::device_kinds()) {
    for (const auto& field : config::device_fields(kind)) {
      CAPTURE(kind);
      CAPTURE(field.name);
      const auto devices = config::DeviceLibrary::shipped_names();
      const auto device = std::ranges::find(devices, kind, config::DeviceLibrary::shipped_kind);
      REQUIRE(device != devices.end());
      const auto wrong = said_by_cluster(*device + "." + field.name + ": {value: " + of_another_unit(field.dimension) +
                                         ", source: me}");
      CHECK(says(wrong, "is expected"));
    }
  }
}

TEST_CASE("a parameter of another dimension than the shipped one is refused, an unknown one is a warning") {
  const auto load = [](const std::string& entry) {
    const auto file = test::write_file("p.yaml", parameter_file(entry));
    const auto topology = std::string(FABRICAST_SOURCE_DIR) + "/topologies/hgx-a100.yaml";
    return load_topology(topology, {file});
  };
  const auto wrong = load("nccl.base_time.ring.ll: {value: 6.6, source: me}");
  REQUIRE_FALSE(wrong);
  CHECK(says(test::shown(wrong.error()), "'nccl.base_time.ring.ll' is a number, a time is expected"));
  const auto more_exact = load("nccl.base_time.ring.ll.blackwell: {value: 6.6 GB/s, source: me}");
  REQUIRE_FALSE(more_exact);
  CHECK(says(test::shown(more_exact.error()), "a time is expected"));
  const auto misspelt = load("nccl.base_tyme.ring.ll: {value: 6.6 us, source: me}");
  REQUIRE(misspelt);
  CHECK(says(render(misspelt->warnings), "no model reads 'nccl.base_tyme.ring.ll'"));
  CHECK(says(render(misspelt->warnings), "did you mean 'nccl.base_time.ring.ll'?"));
  const auto fine = load("nccl.base_time.ring.ll.blackwell: {value: 6.6 us, source: me}");
  REQUIRE(fine);
  CHECK(fine->warnings.empty());
}

TEST_CASE("names in the program are declared, and reading one gives its dimension") {
  using parameter_table::declared_by;
  using parameter_table::is_stem;
  static_assert(declared_by("host.smt_speed") != nullptr && is_stem("nccl.hop_time.ring"));
  CHECK((declared_by("host.smt_speed") != nullptr && declared_by("host.smt_sped") == nullptr));
  CHECK((declared_by("nccl.hop_time.ring.ll.shm") != nullptr));
  CHECK((declared_by("nccl.hop_time.ring.ll.shm.hopper") != nullptr));
  CHECK((declared_by("nccl.hop_time.ring.ll.usb") == nullptr));
  CHECK((declared_by("nccl.hop_time.ring.ll") == nullptr));
  CHECK((declared_by("mpi.{}.message_gap") != nullptr && declared_by("mpi.{}.message_gaps") == nullptr));
  CHECK((declared_by("mpi.{}.message_gap.{}") != nullptr));
  CHECK((is_stem("nccl.hop_time") && is_stem("nccl.hop_time.ring") && is_stem("nccl.shm_local_work")));
  CHECK((!is_stem("nccl.hop_tim") && !is_stem("nccl.shm_local_works") && !is_stem("nccl.hop_time.")));
  static_assert(std::is_same_v<decltype(ParameterSet()["gpu.time_slice"_key]), Duration>);
  static_assert(std::is_same_v<decltype(ParameterSet()["mpi.tcp.flow_bandwidth"_key]), Bandwidth>);
  static_assert(std::is_same_v<decltype(ParameterSet()["mpi.shared_memory.posted_eager_limit"_key]), Bytes>);
  static_assert(std::is_same_v<decltype(ParameterSet()["host.smt_speed"_key]), double>);
  ParameterSet set;
  Parameter gap{"mpi.verbs.message_gap", 3e-7, Dimension::time};
  set.set(gap);
  CHECK(set[named<"mpi.{}.message_gap">("verbs")] == Duration{300'000});
}
