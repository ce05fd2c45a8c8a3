// SPDX-License-Identifier: Apache-2.0
// Flow control belongs to a cable: where its two ends are not set to the same priorities it is lossy, and only there.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "fabricast/check.hpp"
#include "fabricast/lossless.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;

namespace {

/// Everybody sends to n0 over one spine; small switches, so that buffers fill.
std::string incast(const std::string& ports) {
  return "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: "
         "[{name: n, count: 8, type: server-1v100-cx4-100g}]\n  fabric:\n    leaf_spine: {switch: sn2700, leaf_ports: "
         "5, "
         "oversubscription: 4, spines: 1, cable: 5 m, lossless: {ecn: off, shared_buffer: 200 kB, ports: {" +
         ports +
         "}}}\nworkload: {benchmark: traffic, pattern: incast, senders: 7, sizes: [600 kB], transport: {priority: "
         "3}}\n";
}

struct Seen {
  std::set<std::string> lossy;     ///< links at whose end a priority is not protected
  std::set<std::string> dropping;  ///< where packets were lost
  std::uint64_t drops = 0;
};

Seen seen(const LoadedScenario& loaded) {
  SimulateOptions options;
  options.fidelity = Fidelity::packet;
  const auto run = test::run(loaded, options);
  const auto& fabric = *run.workloads[0].rows.at(0).fabric;
  Seen out;
  out.drops = fabric.unmeant_drops();
  CHECK(fabric.lossless_drops == 0);
  for (const auto& port : fabric.ports) {
    if (port.priority != 3) continue;
    if (!port.is_lossless) out.lossy.insert(port.link);
    if (port.dropped_packets > 0) out.dropping.insert(port.link);
  }
  return out;
}

std::string mismatches(const LoadedScenario& loaded) {
  std::string out;
  for (const auto& one : check_lossless(loaded.topology, loaded.parameters, &loaded.scenario)) {
    if (one.message.find("flow control disagrees") != std::string::npos) out += one.message + "\n";
  }
  return out;
}

}  // namespace

TEST_CASE("a mismatched port loses packets at its own cable and nowhere else") {
  const auto sound = seen(test::scenario(incast("leaf0: [3]")));
  CHECK(sound.lossy.empty());
  CHECK(sound.drops == 0);
  // What n2 sends arrives at leaf0's port towards n2; the adapter's priority counts as much as the switch's.
  for (const auto* ports : {"n2.hca0: []", "n2.hca0: [4]", "leaf0/n2.hca0: [5]"}) {
    CAPTURE(ports);
    const auto loaded = test::scenario(incast(ports));
    const auto found = seen(loaded);
    for (const auto& link : found.lossy) CHECK((link == "leaf0 -> n2.hca0" || link == "n2.hca0 -> leaf0"));
    CHECK(found.dropping == std::set<std::string>{"leaf0 -> n2.hca0"});
    CHECK(found.drops > 0);
    CHECK(mismatches(loaded).find("n2.hca0") != std::string::npos);
  }
}

TEST_CASE("random port settings: packets are lost only where the ends of a cable differ, and check names each") {
  const std::vector<std::string> names{"leaf0",   "leaf1",         "spine0",      "n1.hca0",
                                       "n5.hca0", "leaf0/n3.hca0", "leaf1/spine0"};
  for (std::uint64_t seed = 0; seed < test::draws(24); ++seed) {
    CAPTURE(seed);
    test::Random random(seed);
    std::map<std::string, std::string> ports;
    for (std::uint64_t n = random.next(3); n < 3; ++n)
      ports[random.pick(names)] = random.pick<std::string>({"[3]", "[3, 4]", "[4]", "[]"});
    std::string text;
    for (const auto& [name, own] : ports) text += (text.empty() ? "" : ", ") + name + ": " + own;
    CAPTURE(text);
    const auto loaded = test::scenario(incast(text));
    const auto settings = lossless_settings(loaded.topology, loaded.parameters);
    std::set<std::string> lossy;
    bool differs = false;
    for (int l = loaded.topology.first_network_link(); l < loaded.topology.num_links(); ++l) {
      const auto link = loaded.topology.link(LinkId{l});
      const auto one = port_priorities(loaded.topology, settings, link.from, link.to);
      differs = differs || one != port_priorities(loaded.topology, settings, link.to, link.from);
      const auto both = cable_priorities(loaded.topology, settings, link);
      if (std::find(both.begin(), both.end(), 3) == both.end())
        lossy.insert(loaded.topology.device(link.from).name + " -> " + loaded.topology.device(link.to).name);
    }
    const auto found = seen(loaded);
    for (const auto& link : found.lossy) CHECK(lossy.contains(link));
    for (const auto& link : found.dropping) CHECK(lossy.contains(link));
    CHECK((mismatches(loaded) != "") == differs);
  }
}
