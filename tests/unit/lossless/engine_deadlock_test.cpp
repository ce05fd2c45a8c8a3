// SPDX-License-Identifier: Apache-2.0
// What check says of deadlock against what the packet engine does, and against a list of all routes: over random small
// fabrics, flow controls, ports without PFC, lanes and ways to choose ports, nothing stops that check called free, and
// nothing is accused without a circle of buffers that hold packets back.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "fabricast/check.hpp"
#include "fabricast/lossless.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;
using fabricast::test::Random;

namespace {

struct Case {
  std::string kind;
  std::string routing;  ///< of packets
  bool is_up_down = false;
  std::string text;
};

std::string number(std::uint64_t value) { return std::to_string(value); }

/// Where random_ports() goes, a comment of YAML's that ends with its line.
const std::string k_ports = " #ports\n";

/// Some cables where one end, or both, pause nothing or other priorities.
std::string random_ports(Random& random, const Topology& topology) {
  std::map<std::string, std::string> ports;
  const auto first = topology.first_network_link();
  for (std::uint64_t n = random.next(5); n > 0; --n) {
    const auto at = random.next(static_cast<std::uint64_t>(topology.num_links() - first));
    const auto link = topology.link(LinkId{first + static_cast<int>(at)});
    const auto ends = std::pair{topology.device(link.from).name, topology.device(link.to).name};
    const auto own = random.pick<std::string>({"[]", "[4]", "[3, 4]"});
    ports[ends.first + "/" + ends.second] = own;
    if (random.next(2) == 0) ports[ends.second + "/" + ends.first] = own;
  }
  std::string out;
  for (const auto& [port, own] : ports) out += (out.empty() ? "" : ", ") + port + ": " + own;
  return ", ports: {" + out + "}";
}

void choose_ports(Random& random, std::string& text) {
  const auto at = text.find(k_ports);
  if (at == std::string::npos) return;
  const auto ports = random.next(3) > 0 ? "" : random_ports(random, test::scenario(text).topology);
  text.replace(at, k_ports.size(), ports);
}

/// Switches in a circle with chords, one host each.
std::string random_graph(Random& random, const std::string& type, std::uint64_t hosts, const std::string& more) {
  std::string switches;
  std::string cables;
  const auto cable = [&](const std::string& from, const std::string& to) {
    cables += (cables.empty() ? "" : ", ") + ("{from: " + from + ", to: " + to + "}");
  };
  for (std::uint64_t s = 0; s < hosts; ++s) {
    switches += (s > 0 ? ", " : "") + ("{name: s" + number(s) + ", type: " + type + "}");
    cable("n" + number(s) + ".hca0", "s" + number(s));
    cable("s" + number(s), "s" + number((s + 1) % hosts));
  }
  if (hosts > 5 && random.next(2) == 0) cable("s0", "s" + number(hosts / 2));
  return "list: {switches: [" + switches + "], cables: [" + cables + "]" + more + "}";
}

std::string fabric(Random& random, Case& out, std::uint64_t& hosts) {
  const bool is_ethernet = random.next(2) == 0;
  const std::string type = is_ethernet ? "sn2700" : "qm8700";
  out.is_up_down = random.next(5) == 0;
  const auto lanes = 1 + random.next(3);
  const std::string lossless = is_ethernet ? "lossless: {xoff: 16 kB, xon: 12 kB" + k_ports + "}"
                                           : "lossless: {virtual_lanes: " + number(lanes) + ", vl_buffer: 9 KiB}";
  const std::string more = ", " + lossless + (out.is_up_down ? ", routing: up_down" : "");
  out.kind = random.pick<std::string>({"torus", "torus", "dragonfly", "dragonfly", "list", "leaf_spine"});
  if (out.kind == "torus") {
    const auto dimensions = random.pick<std::string>({"[4]", "[5]", "[6]", "[4, 4]", "[5, 3]"});
    hosts =
        dimensions.size() == 3 ? static_cast<std::uint64_t>(dimensions[1] - '0') : (dimensions == "[4, 4]" ? 16U : 15U);
    return "torus: {switch: " + type + ", dimensions: " + dimensions + more + "}";
  }
  if (out.kind == "dragonfly") {
    const auto routers = 2 + random.next(2);
    hosts = (routers + 1) * routers * 2;
    return "dragonfly: {switch: " + type + ", groups: " + number(routers + 1) +
           ", routers_per_group: " + number(routers) + ", hosts_per_router: 2, global_links: 1" + more + "}";
  }
  if (out.kind == "list") {
    hosts = 4 + random.next(5);
    return random_graph(random, type, hosts, more);
  }
  hosts = 8;
  return "leaf_spine: {switch: " + type + ", leaf_ports: 4, oversubscription: 1" + more + "}";
}

Case random_case(std::uint64_t seed) {
  Random random(seed);
  Case out;
  std::uint64_t hosts = 0;
  const auto made = fabric(random, out, hosts);
  out.routing = random.pick<std::string>({"ecmp", "spray", "adaptive"});
  std::string flows;
  // Every host to those some places on: what goes round a ring goes round in a circle.
  for (std::uint64_t host = 0; host < hosts; ++host)
    for (const auto far : {std::uint64_t{2}, hosts / 2, 1 + random.next(hosts - 1)})
      flows +=
          (flows.empty() ? "" : ", ") + ("{from: n" + number(host) + ", to: n" + number((host + far) % hosts)) + "}";
  out.text =
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: "
      "[{name: n, count: " +
      number(hosts) + ", type: server-2s-rome-1a100}]\n  fabric:\n    " + made +
      "\nworkload:\n  benchmark: traffic\n  sizes: [120 kB]\n  flows: [" + flows +
      "]\n  transport: {congestion_control: none, routing: " + out.routing + "}\n";
  choose_ports(random, out.text);
  return out;
}

/// Links of every route, one by one, that hold packets of `priority` back, each with those it may wait for.
std::map<LinkId, std::set<LinkId>> waits(const Topology& topology, const LosslessSettings& settings, int priority) {
  std::map<LinkId, std::set<LinkId>> out;
  const auto holds = [&](LinkId link) {
    const auto both = cable_priorities(topology, settings, topology.link(link));
    return std::find(both.begin(), both.end(), priority) != both.end();
  };
  const auto hcas = topology.devices(DeviceKind::hca);
  for (const auto from : hcas) {
    for (const auto to : hcas) {
      if (from == to) continue;
      for (const auto& route : topology.equal_cost_routes(from, to, 4096)) {
        for (std::size_t i = 0; i + 1 < route.size(); ++i)
          if (holds(route[i]) && holds(route[i + 1])) out[route[i]].insert(route[i + 1]);
      }
    }
  }
  return out;
}

/// Takes away who waits for nobody that waits; what is left waits in a circle.
bool has_circle(std::map<LinkId, std::set<LinkId>> left) {
  for (bool is_smaller = true; is_smaller;) {
    is_smaller =
        std::erase_if(left, [&](const auto& one) {
          return std::none_of(one.second.begin(), one.second.end(), [&](LinkId link) { return left.contains(link); });
        }) > 0;
  }
  return !left.empty();
}

bool warns(const LoadedScenario& loaded) {
  for (const auto& one : check_lossless(loaded.topology, loaded.parameters, &loaded.scenario))
    if (one.message.find("can deadlock") != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("no run deadlocks that check called free, whatever the fabric, its lanes and who chooses ports") {
  std::map<std::string, int> stopped;
  std::map<std::string, int> free;
  std::map<std::string, int> accused;
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    const auto given = random_case(seed);
    CAPTURE(given.text);
    const auto loaded = test::scenario(given.text);
    SimulateOptions options;
    options.fidelity = Fidelity::packet;
    const auto prediction = test::run(loaded, options);
    const auto& report = *prediction.workloads[0].rows.at(0).fabric;
    const bool is_accused = warns(loaded);
    if (report.stop != "finished") {
      CHECK(report.stop == "deadlock");
      CHECK(is_accused);
      ++stopped[given.routing];
      ++stopped[given.kind];
    }
    if (given.is_up_down || given.kind == "leaf_spine") CHECK_FALSE(is_accused);
    if (given.text.find("ports:") != std::string::npos) ++(is_accused ? accused : free)["ports"];
    const auto text = describe_lossless(loaded.topology, loaded.parameters, &loaded.scenario);
    CAPTURE(text);
    CHECK((text.find("none;") != std::string::npos) == !is_accused);
    if (!is_accused) ++free[given.kind];
    if (!is_accused) ++free[given.routing];
  }
  for (const std::string kind : {"ecmp", "spray", "adaptive", "torus", "dragonfly", "list"}) {
    CAPTURE(kind);
    CHECK(stopped[kind] > 0);
    CHECK(free[kind] > 0);
  }
  CHECK(free["ports"] > 0);
  CHECK(accused["ports"] > 0);
}

TEST_CASE("check accuses routes exactly where a circle of lossless buffers is on them, whatever ports have no PFC") {
  int saved = 0;    // by a lossy cable
  int accused = 0;  // with some
  for (std::uint64_t seed = 1; seed <= test::draws(400); ++seed) {
    const auto given = random_case(seed);
    if (given.text.find("ports:") == std::string::npos) continue;
    CAPTURE(given.text);
    const auto loaded = test::scenario(given.text);
    auto settings = lossless_settings(loaded.topology, loaded.parameters);
    const bool expected = has_circle(waits(loaded.topology, settings, 3));
    CHECK(warns(loaded) == expected);
    // Priority 4 too, where nobody says what travels.
    const bool any = expected || has_circle(waits(loaded.topology, settings, 4));
    const auto said = render(check_lossless(loaded.topology, loaded.parameters));
    CHECK((said.find("can deadlock") != std::string::npos) == any);
    settings.port_pfc.clear();
    if (!expected && has_circle(waits(loaded.topology, settings, 3))) ++saved;
    if (expected && said.find("flow control disagrees") != std::string::npos) ++accused;
  }
  CHECK(saved > 0);
  CHECK(accused > 0);
}

TEST_CASE("an adaptive dragonfly deadlocks with the lanes that keep hashed routes free, and check says so of both") {
  const auto loaded = [](const std::string& routing) {
    return test::scenario(
        "schema: fabricast/scenario/1\nname: s\ntopology: " + std::string(FABRICAST_SOURCE_DIR) +
        "/topologies/dragonfly-72.yaml\nworkload:\n  benchmark: traffic\n  pattern: permutation\n  sizes: [1 MB]\n  "
        "transport: {routing: " +
        routing + "}\n");
  };
  const auto hashed = loaded("ecmp");
  CHECK_FALSE(warns(hashed));
  const auto text = describe_lossless(hashed.topology, hashed.parameters);
  CHECK(text.find("deadlock with ecmp: none") != std::string::npos);
  CHECK(text.find("deadlock with spray or adaptive routing: possible") != std::string::npos);
  for (const auto* routing : {"spray", "adaptive"}) {
    const auto chosen = loaded(routing);
    CHECK(warns(chosen));
    const auto faults = check_lossless(chosen.topology, chosen.parameters, &chosen.scenario);
    CHECK(render(faults).find("use `routing: up_down`, or `transport: {routing: ecmp}`") != std::string::npos);
  }
}
