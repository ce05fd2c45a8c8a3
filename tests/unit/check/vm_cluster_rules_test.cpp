// SPDX-License-Identifier: Apache-2.0
// VMs of several hosts together: PVRDMA among releases, clients of one remote GPU, workloads that no VM can run.
#include <fmt/format.h>

#include "fabricast/check.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;

TEST_CASE("PVRDMA of hosts with unlike releases is judged by the oldest, and by every adapter of a VM") {
  const auto said = [](const std::vector<std::string>& groups) {
    std::string hosts;
    for (std::size_t g = 0; g < groups.size(); ++g)
      hosts += fmt::format(
          "  - {{name: g{}, host: {{processor: xeon-skylake, devices: [{{name: hca0, type: connectx-5-100g, below: "
          "socket0}}, {{name: hca1, type: connectx-5-100g, below: socket0}}]}}{}}}\n",
          g, groups[g]);
    const auto loaded = test::topology("schema: fabricast/topology/1\nname: t\nhosts:\n" + hosts +
                                       "fabric: {single_switch: {switch: sn2700}}\n");
    return render(check_virtualization(loaded.topology, loaded.parameters, loaded.device_types));
  };
  const auto vm = [](const std::string& version, const std::string& devices) {
    return ", virtualization: {version: \"" + version + "\"}, vms: [{name: a, devices: {" + devices + "}}]";
  };
  const std::string words = "error: PVRDMA adapters on ESXi 6.5 reach PVRDMA adapters only, ";
  const auto native = vm("8.0 U3", "hca0: pvrdma");
  const auto old = vm("6.5", "hca0: pvrdma");
  CHECK(said({native, old}).find("reach PVRDMA adapters only") == std::string::npos);
  CHECK(said({native, ""}).find("reach PVRDMA adapters only") == std::string::npos);
  CHECK(said({native, old, ""}).find(words + "group 'g2' has none") != std::string::npos);
  CHECK(said({old, native, vm("7.0", "hca1: {vf: 1}")}).find(words + "VM 'g2/a' has none") != std::string::npos);
  // A VM with a virtual function too has PVRDMA all the same.
  CHECK(said({native, old, vm("8.0", "hca0: {vf: 1}, hca1: pvrdma")}).find("reach PVRDMA adapters only") ==
        std::string::npos);
}

TEST_CASE("a workload without GPUs because no VM holds one is told so, not to add hosts") {
  const auto loaded = test::scenario(
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: [{name: "
      "n, "
      "type: server-2s-broadwell-4p100, virtualization: {version: \"7.0\"}, vms: [{name: a}]}]\nworkload: {benchmark: "
      "gpu_step, gpus: 1, compute: 1 ms, sizes: [0 B]}\n");
  const auto text = render(check_scenario(loaded.topology, loaded.scenario, loaded.parameters));
  CHECK(text.find("hosts and VMs of topology 't' hold 0") != std::string::npos);
  CHECK(text.find("hand GPUs to VMs") != std::string::npos);
}

TEST_CASE("clients of a remote GPU are added up before they are refused") {
  const auto loaded = test::topology(
      "schema: fabricast/topology/1\nname: t\nhosts:\n  - {name: s, host: {processor: xeon-skylake, devices: [{name: "
      "gpu0, type: t4, below: socket0}, {name: hca0, type: connectx-5-100g, below: socket0}]}}\n  - {name: c, host: "
      "{processor: xeon-skylake, devices: [{name: hca0, type: connectx-5-100g, below: socket0}]}, virtualization: "
      "{hypervisor: kvm}, vms: [{name: a, count: 5, devices: {hca0: {vf: 1}, far: {remote: s.gpu0, share: 0.4}}}]}\n"
      "fabric: {single_switch: {switch: sn2700}}\n");
  CHECK(render(check_virtualization(loaded.topology, loaded.parameters, loaded.device_types))
            .find("clients ask for 2 of s.gpu0") != std::string::npos);
}
