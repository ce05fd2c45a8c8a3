// SPDX-License-Identifier: Apache-2.0
// Every key under `lossless:` acts or is refused: with two values of it the packet engine's result or check's verdict
// differs, under the flow control it belongs to; under the others, and beside keys that overrule it, it is an error.
#include <map>
#include <set>

#include "config/lossless_schema.hpp"
#include "fabricast/check.hpp"
#include "fabricast/lossless.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {

struct Acts {
  const char* control;  ///< flow control it belongs to
  const char* with;     ///< other keys it needs to matter
  const char* one;
  const char* other;
};

const std::map<std::string, Acts> k_keys{
    {"preset", {"pfc", "", "spectrum-1", "htsim-like"}},
    {"operating_system", {"pfc", "shared_buffer: 200 kB, ", "onyx", "sonic"}},
    {"flow_control", {"", "shared_buffer: 300 kB", "pfc", "drop"}},
    {"trust", {"pfc", "", "dscp", "pcp"}},
    {"marks", {"pfc", "", "{dscp: 26}", "{dscp: 0}"}},
    {"dscp_to_priority", {"pfc", "marks: {dscp: 10}, ", "{10: 3}", "{10: 2}"}},
    {"ports", {"pfc", "", "{leaf0: [3]}", "{leaf0: [4]}"}},
    {"pfc", {"pfc", "", "[3]", "[4]"}},
    {"headroom", {"pfc", "xoff: 60 kB, ", "auto", "2 KiB"}},
    {"xoff", {"pfc", "", "30 kB", "90 kB"}},
    {"xon", {"pfc", "xoff: 90 kB, ", "20 kB", "80 kB"}},
    {"resume_offset", {"pfc", "alpha: 0.01, ", "1 kB", "40 kB"}},
    {"alpha", {"pfc", "", "0.01", "0.02"}},
    {"reserved", {"pfc", "alpha: 0.01, ", "0 B", "50 kB"}},
    {"shared_buffer", {"pfc", "alpha: 0.01, ", "1 MB", "4 MB"}},
    {"pool_share", {"pfc", "alpha: 0.01, ", "0.1", "0.5"}},
    {"cell", {"pfc", "xoff: 60 kB, ", "96 B", "4096 B"}},
    {"port_mtu", {"pfc", "", "9100 B", "4000 B"}},
    {"lossless_mtu", {"pfc", "xoff: 60 kB, buffer_probe", "1500 B", "9000 B"}},
    {"pause_time", {"pfc", "xoff: 30 kB, ", "336 us", "1 us"}},
    {"weights", {"pfc", "", "{3: 50, 0: 50, 6: strict}", "{3: 50, 0: 50, 6: 10}"}},
    {"ecn", {"pfc", "", "{min: 20 kB, max: 90 kB}", "off"}},
    {"cnp_priority", {"pfc", "", "6", "3"}},
    {"virtual_lanes", {"credits", "", "1", "4"}},
    {"vl_buffer", {"credits", "", "9 KiB", "64 KiB"}},
    {"credit_update", {"credits", "vl_buffer: 9 KiB, ", "256 ns", "4 us"}},
    {"dcqcn", {"pfc", "", "{minimum_rate: 1 Mb/s}", "{minimum_rate: 20 Gb/s}"}},
};

const std::map<std::string, std::pair<const char*, const char*>> k_dcqcn_keys{
    {"g", {"0.01", "0.9"}},
    {"initial_alpha", {"0.1", "1"}},
    {"alpha_interval", {"1 us", "100 us"}},
    {"decrease_interval", {"4 us", "50 us"}},
    {"increase_interval", {"20 us", "300 us"}},
    {"byte_counter", {"100 kB", "10 MB"}},
    {"fast_recovery", {"1", "5"}},
    {"clamp_target", {"on", "off"}},
    {"additive_increase", {"5 Mb/s", "500 Mb/s"}},
    {"hyper_increase", {"50 Mb/s", "5 Gb/s"}},
    {"minimum_rate", {"1 Mb/s", "20 Gb/s"}},
    {"cnp_interval", {"4 us", "50 us"}}};

/// Two leaves and a trunk; everybody sends to one host, in two priorities.
std::string scenario_text(const std::string& lossless) {
  return "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: "
         "[{name: n, "
         "count: 8, type: server-1v100-cx4-100g}]\n  fabric:\n    leaf_spine: {switch: sn2700, leaf_ports: 5, "
         "oversubscription: 4, spines: 1, cable: 5 m, lossless: {" +
         lossless +
         "}}\nworkload:\n  benchmark: traffic\n  sizes: [600 kB]\n  flows: [{from: n1, to: n0}, {from: n2, to: n0}, "
         "{from: "
         "n4, to: n0}, {from: n5, to: n0, bytes: 3 MB}, {from: n6, to: n3}]\n" +
         (lossless.find("marks") == std::string::npos ? "  transport: {priority: 3}\n" : "");
}

/// What a user sees: flows, counters, drops, and what check says; or the refusal.
std::string seen(const std::string& lossless) {
  const auto loaded = load_scenario(test::write_file("keys.yaml", scenario_text(lossless)));
  if (!loaded) return "refused: " + render(loaded.error());
  SimulateOptions options;
  options.fidelity = Fidelity::packet;
  const auto prediction = simulate(loaded->topology, loaded->scenario, loaded->parameters, options);
  if (!prediction) return "refused: " + render(prediction.error());
  const auto& row = prediction->workloads[0].rows.at(0);
  std::string out;
  for (const auto& flow : row.flows) out += std::to_string(flow.end.ps) + " " + std::to_string(flow.priority) + "\n";
  out += std::to_string(row.fabric->pauses) + " " + std::to_string(row.fabric->pause_frames) + " " +
         std::to_string(row.fabric->lossless_drops) + " " + std::to_string(row.fabric->lossy_drops) + "\n";
  for (const auto& port : row.fabric->ports)
    out += std::to_string(port.max_ingress.value) + " " + std::to_string(port.headroom.value) + "\n";
  for (const auto& one : check_lossless(loaded->topology, loaded->parameters, &loaded->scenario))
    out += one.message + "\n";
  return out;
}

bool is_refused(const std::string& text) { return text.rfind("refused", 0) == 0; }

std::string with(const Acts& acts, const std::string& key, const std::string& value) {
  std::string more = acts.with;
  if (const auto probe = more.find("buffer_probe"); probe != std::string::npos) more.erase(probe);
  std::string out = std::string(acts.control).empty() ? "" : std::string("flow_control: ") + acts.control + ", ";
  out += more;
  if (!out.empty() && out.back() != ' ') out += ", ";
  return out + key + ": " + value;
}

}  // namespace

TEST_CASE("a DSCP is a whole number from 0 to 63") {
  const auto said = [](const std::string& dscp) {
    return seen("flow_control: pfc, marks: {dscp: 10}, dscp_to_priority: {" + dscp + ": 3}");
  };
  for (const auto* dscp : {"10", "0", "63"}) CHECK_FALSE(is_refused(said(dscp)));
  for (const auto* dscp : {"64", "-1", "3.7", "1e30", "-1e300", "x"}) {
    CAPTURE(std::string(dscp));
    CHECK(said(dscp).find("is no DSCP") != std::string::npos);
  }
}

TEST_CASE("every key under lossless acts: two values of it give two results or verdicts") {
  const auto schema = config::lossless_schema();
  std::set<std::string> keys;
  for (const auto& field : schema->fields) keys.insert(field.name);
  for (const auto& [key, acts] : k_keys) CHECK(keys.contains(key));
  for (const auto& key : keys) {
    CAPTURE(key);
    REQUIRE(k_keys.contains(key));
    const auto& acts = k_keys.at(key);
    const auto one = seen(with(acts, key, acts.one));
    const auto other = seen(with(acts, key, acts.other));
    CAPTURE(one);
    CHECK_FALSE(is_refused(one));
    CHECK_FALSE(is_refused(other));
    CHECK(one != other);
  }
}

TEST_CASE("every key of DCQCN acts, with PFC and in a fabric that drops") {
  const auto schema = config::lossless_schema();
  for (const auto& field : schema->fields) {
    if (field.name != "dcqcn") continue;
    CHECK(field.schema->fields.size() == k_dcqcn_keys.size());
    for (const auto& row : k_dcqcn_keys) {
      const auto& key = row.first;
      const auto& values = row.second;
      for (const std::string control : {"pfc", "drop"}) {
        CAPTURE(key);
        CAPTURE(control);
        const auto text = [&](const char* value) {
          // An increase often enough, so that every stage is reached within the messages.
          std::string pace = key == "increase_interval" ? "" : "increase_interval: 20 us, ";
          if (key != "byte_counter") pace += "byte_counter: 100 kB, ";
          return seen("flow_control: " + control + ", ecn: {min: 20 kB, max: 90 kB}, dcqcn: {" + pace + key + ": " +
                      value + "}");
        };
        const auto one = text(values.first);
        CAPTURE(one);
        CHECK_FALSE(is_refused(one));
        CHECK(one != text(values.second));
      }
    }
  }
}

TEST_CASE("a key that belongs to another flow control is refused, with the place and the way out") {
  for (const auto& row : k_keys) {
    const auto& [key, acts] = row;
    CAPTURE(row.first);
    const std::set<std::string> also_drop{"shared_buffer", "pool_share",   "cell",  "weights",
                                          "ecn",           "cnp_priority", "dcqcn", "preset"};
    const std::set<std::string> also_credits{"weights"};  // of lanes
    if (key == "flow_control") continue;
    for (const std::string control : {"pfc", "credits", "drop"}) {
      if (control == acts.control || (control == "drop" && also_drop.contains(key)) ||
          (control == "credits" && also_credits.contains(key)))
        continue;
      CAPTURE(control);
      const std::string before = key == "xon" ? "xoff: 90 kB, " : "";
      const auto text = seen("flow_control: " + control + ", " + before + key + ": " + acts.one);
      CAPTURE(text);
      CHECK(is_refused(text));
      CHECK(text.find("'" + key + "' does nothing with `flow_control: " + control + "`") != std::string::npos);
      CHECK(text.find("keys.yaml:8:") != std::string::npos);
    }
  }
  CHECK(is_refused(seen("flow_control: credits, weights: {3: 50}")));
}

TEST_CASE("keys that act in a fabric that drops") {
  const std::string drop = "flow_control: drop, ";
  for (const auto& row : std::vector<std::pair<std::string, std::string>>{
           {"shared_buffer: 200 kB", "shared_buffer: 400 kB"},
           {"pool_share: 0.01", "pool_share: 0.02"},
           {"shared_buffer: 200 kB, cell: 96 B", "shared_buffer: 200 kB, cell: 4096 B"},
           {"ecn: {min: 20 kB, max: 90 kB}", "ecn: off"},
           {"preset: spectrum-1, pool_share: 0.05", "preset: tomahawk, pool_share: 0.05"}}) {
    const auto& [one, other] = row;
    CAPTURE(row.first);
    const auto text = seen(drop + one);
    CAPTURE(text);
    CHECK_FALSE(is_refused(text));
    CHECK(text != seen(drop + other));
  }
}

TEST_CASE("keys that overrule each other are refused together") {
  for (const auto* pair :
       {"ecn: off, dcqcn: {g: 0.1}", "shared_buffer: 1 MB, pool_share: 0.5", "xoff: 60 kB, resume_offset: 1 kB",
        "headroom: 40 kB, lossless_mtu: 4096 B", "preset: htsim-like, pause_time: 1 us",
        "alpha: 8, operating_system: onyx", "xoff: 60 kB, operating_system: onyx",
        "preset: trident-2, operating_system: sonic", "preset: spectrum-4, operating_system: onyx"}) {
    CAPTURE(pair);
    CHECK(is_refused(seen(pair)));
  }
}

TEST_CASE("alpha is that of the switch's operating system, named by check") {
  const auto shown = [](const std::string& lossless) {
    const auto loaded = test::scenario(scenario_text(lossless));
    return describe_lossless(loaded.topology, loaded.parameters);
  };
  CHECK(shown("pfc: [3]").find("alpha 8 (onyx) x free memory") != std::string::npos);
  CHECK(shown("operating_system: sonic").find("alpha 128 (sonic) x free memory") != std::string::npos);
  CHECK(shown("alpha: 2").find("alpha 2 x free memory") != std::string::npos);
  CHECK(shown("preset: spectrum-4").find("alpha 128 (sonic)") != std::string::npos);  // Onyx does not run there
  CHECK(shown("preset: trident-2").find("alpha 8 x free") != std::string::npos);
  CHECK(shown("flow_control: drop").find("PFC") == std::string::npos);
  CHECK(shown("flow_control: drop").find("lossless priorities") == std::string::npos);
}

TEST_CASE("traffic in a priority without PFC is told by check, in the result and not taken for lossless") {
  const auto loaded = test::scenario(scenario_text("pfc: [4], shared_buffer: 300 kB, ecn: off"));
  const auto faults = render(check_lossless(loaded.topology, loaded.parameters, &loaded.scenario));
  CHECK(faults.find("traffic travels in priority 3, and PFC acts on 4: full buffers will drop its packets") !=
        std::string::npos);
  SimulateOptions options;
  options.fidelity = Fidelity::packet;
  const auto mismatched = test::run(loaded, options);
  const auto& report = *mismatched.workloads[0].rows.at(0).fabric;
  CHECK(report.lossy_drops > 0);
  CHECK(report.unmeant_drops() == report.lossy_drops);
  const auto meant = test::run(test::scenario(scenario_text("flow_control: drop, shared_buffer: 300 kB")), options);
  CHECK(meant.workloads[0].rows.at(0).fabric->lossy_drops > 0);
  CHECK(meant.workloads[0].rows.at(0).fabric->unmeant_drops() == 0);
  for (const auto& one : meant.workloads[0].assumptions) CHECK(one.find("PFC") == std::string::npos);
}
