// SPDX-License-Identifier: Apache-2.0
// Where a VM may migrate to: a place for each of its parts, the same hypervisor, vGPU release and ECC.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "fabricast/check.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/refusals.hpp"

using namespace fabricast;

namespace {

/// Two machines with an A100 each: VM a of the first holds `moved`, those of the second what `there` lists.
std::string two_machines(const std::string& settings, const std::string& moved, const std::vector<std::string>& there,
                         const std::string& other_settings = "") {
  const std::string host =
      "host: {processor: xeon-icelake, devices: [{name: gpu0, type: a100-pcie-40, below: socket0}, {name: hca0, type: "
      "connectx-5-100g, below: socket0}]}";
  std::string vms;
  for (std::size_t v = 0; v < there.size(); ++v)
    vms += fmt::format("{{name: t{}, devices: {{gpu0: {}}}}}, ", v, there[v]);
  return fmt::format(
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n    - "
      "{{name: s, {0}, virtualization: {1}, vms: [{{name: a, memory: 32 GiB, devices: {{gpu0: {2}, hca0: "
      "vmxnet3}}}}]}}\n    - {{name: d, {0}, virtualization: {3}, vms: [{4}{{name: x, devices: {{hca0: "
      "vmxnet3}}}}]}}\n  fabric: {{single_switch: {{switch: sn2700}}}}\nworkload: {{benchmark: vgpu_migration, sizes: "
      "[1 GiB], migration: {{vm: s/a, to: d, memory: 32 GiB, link: 100 Gb/s}}}}\n",
      host, settings, moved, other_settings.empty() ? settings : other_settings, vms);
}

/// Of a scenario that its reader takes.
std::string migration_refusal(const std::string& text) { return test::refusal_of(test::scenario(text)); }

}  // namespace

TEST_CASE("a migration finds a place on a card exactly where check lets the parts lie together") {
  const std::vector<std::string> ways{"{vgpu: a100-5c}",  "{vgpu: a100-10c}", "{vgpu: a100-20c}", "{vgpu: a100-20q}",
                                      "{vgpu: a100-40c}", "{mig: 1g.5gb}",    "{mig: 1g.5gb+me}", "{mig: 2g.10gb}",
                                      "{mig: 3g.20gb}",   "{mig: 4g.20gb}",   "{mig: 7g.40gb}"};
  int with_place = 0;
  int without = 0;
  for (const auto* settings :
       {"{version: \"8.0 U3\"}", "{version: \"8.0 U1\"}", "{version: \"8.0 U3\", scheduler: fixed_share}"}) {
    for (std::size_t seed = 0; seed < 60; ++seed) {
      std::vector<std::string> there;
      for (std::size_t i = 0; i < 1 + seed % 4; ++i) there.push_back(ways[(seed * (i + 3) + i * i + seed / 11) % 11]);
      const auto moved = ways[(seed * 7 + 2) % 11];
      // What is there must be legal by itself, or the run is refused for that.
      const auto is_legal = [&](const std::vector<std::string>& held) {
        const auto loaded = test::scenario(two_machines(settings, moved, held));
        return !has_errors(check_virtualization(loaded.topology, loaded.parameters, loaded.device_types));
      };
      if (!is_legal(there)) continue;
      const auto refusal = migration_refusal(two_machines(settings, moved, there));
      auto together = there;
      together.push_back(moved);
      CAPTURE(settings);
      CAPTURE(moved);
      CAPTURE(fmt::format("{}", fmt::join(there, " ")));
      CAPTURE(refusal);
      CHECK(is_legal(together) == refusal.empty());
      if (!refusal.empty()) CHECK(refusal.find("have no place for the") != std::string::npos);
      ++(refusal.empty() ? with_place : without);
    }
  }
  CHECK(with_place > 10);
  CHECK(without > 10);
}

TEST_CASE("several parts of one card in a VM of the destination fill that card") {
  const auto refused = [](const std::string& moved, const std::string& there) {
    return migration_refusal(two_machines("{version: \"8.0 U3\"}", moved, {there})).find("no place for") !=
           std::string::npos;
  };
  CHECK(refused("{mig: 4g.20gb}", "{mig: [3g.20gb, 3g.20gb]}"));
  CHECK(refused("{mig: 3g.20gb}", "{mig: [1g.5gb, 1g.5gb, 1g.5gb, 1g.5gb, 1g.5gb]}"));
  CHECK_FALSE(refused("{mig: 3g.20gb}", "{mig: [2g.10gb, 1g.5gb, 1g.5gb]}"));
  CHECK(refused("{vgpu: a100-20c}", "{vgpu: [a100-20c, a100-20c]}"));
  CHECK_FALSE(refused("{vgpu: a100-10c}", "{vgpu: [a100-10c, a100-10c]}"));
}

TEST_CASE("parts of several cards may change places at the destination") {
  // 4g.20gb goes to the second card, which holds 3g.20gb; 3g.20gb to the first, beside 4g.20gb.
  const auto refusal = [](const std::string& second) {
    const std::string host =
        "host: {processor: xeon-icelake, devices: [{name: gpu0, type: a100-pcie-40, below: socket0}, {name: gpu1, "
        "type: "
        "a100-pcie-40, below: socket1}, {name: hca0, type: connectx-5-100g, below: socket0}]}, virtualization: "
        "{version: "
        "\"8.0 U3\"}";
    return migration_refusal(fmt::format(
        "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n    - "
        "{{name: s, {0}, vms: [{{name: a, memory: 32 GiB, devices: {{gpu0: {{mig: 4g.20gb}}, gpu1: {{mig: 3g.20gb}}, "
        "hca0: vmxnet3}}}}]}}\n    - {{name: d, {0}, vms: [{{name: t0, devices: {{gpu0: {{mig: 4g.20gb}}}}}}, {{name: "
        "t1, devices: {{gpu1: {{mig: {1}}}}}}}, {{name: x, devices: {{hca0: vmxnet3}}}}]}}\n  fabric: {{single_switch: "
        "{{switch: sn2700}}}}\nworkload: {{benchmark: vgpu_migration, sizes: [1 GiB], migration: {{vm: s/a, to: d, "
        "memory: 32 GiB, link: 100 Gb/s}}}}\n",
        host, second));
  };
  CHECK(refusal("3g.20gb") == "");
  CHECK(refusal("4g.20gb").find("no place for") != std::string::npos);
}

TEST_CASE("a migration needs a destination of the same hypervisor, vGPU release and ECC") {
  const auto to = [](const std::string& other) {
    return migration_refusal(
        two_machines("{version: \"8.0 U3\", vgpu_release: \"17.0\"}", "{vgpu: a100-10c}", {"{vgpu: a100-10c}"}, other));
  };
  CHECK(to("").empty());
  CHECK(to("{hypervisor: kvm}").find("'d' runs kvm, VM 's/a' runs on esxi") != std::string::npos);
  CHECK(to("{version: \"8.0 U3\", vgpu_release: \"16.2\"}").find("'d' has vGPU 16.2") != std::string::npos);
  CHECK(to("{version: \"8.0 U3\", vgpu_release: \"17.0\", ecc: on}").find("'d' has ECC on, the host of VM 's/a' off") !=
        std::string::npos);
}
