// SPDX-License-Identifier: Apache-2.0
// What is wrong with one VM is said of that VM and points at its line, wherever it stands among the others.
#include <fmt/format.h>

#include <algorithm>

#include "fabricast/check.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;

TEST_CASE("a finding of one VM among others names it and points into its entry") {
  struct Case {
    const char* keys;
    const char* message;
  };
  int found = 0;
  for (const auto& row : std::vector<Case>{
           {"devices: {gpu%: passthrough}, vcpus: 1000", "1000 vCPUs of one VM"},
           {"devices: {net0: vmxnet3}, memory: 3 TiB, memory_reservation: none", "a VM of 3 TiB on a machine of 1 TiB"},
           {"devices: {gpu%: passthrough}, memory: 64 TiB", "a VM of 64 TiB"},
           {"devices: {gpu%: passthrough}, needs: [migration]", "migration is required"},
           {"devices: {gpu%: passthrough}, needs: [fault-tolerance]", "fault-tolerance is required"},
           {"devices: {gpu%: passthrough}, mmio: {size: 1 GiB}", "MMIO"},
           {"devices: {gpu%: passthrough}, efi: off", "boots by BIOS"},
           {"devices: {gpu%: {mig: [3g.20gb, 4g.20gb, 1g.5gb]}}", "do not fit together"},
           {"devices: {gpu%: {vgpu: [a100-10c, a100-20c]}}", "vGPUs of 2 sizes"},
           {"devices: {hca0: pvrdma}, guest_os: windows", "no driver for Windows"},
           {"devices: {hca0: pvrdma}, hardware_version: 11", "needs hardware version 13"},
           {"devices: {hca0: {vf: 40}}", "passed-through devices"}}) {
    for (int place = 0; place < 3; ++place) {
      std::string text =
          "schema: fabricast/topology/1\nname: t\nhosts:\n  - name: node\n    count: 2\n    type: "
          "server-2s-rome-4a100\n"
          "    virtualization: {hypervisor: esxi, version: \"7.0\", host_memory: 1 TiB}\n    vms:\n";
      for (int vm = 0; vm < 3; ++vm) {
        std::string keys = vm == place ? row.keys : "devices: {gpu%: passthrough}, vcpus: 4";
        if (const auto at = keys.find('%'); at != std::string::npos) keys.replace(at, 1, std::to_string(vm));
        text += fmt::format("      - {{name: vm{}, {}}}\n", vm, keys);
      }
      text += "fabric: {single_switch: {switch: sn2700}}\n";
      const auto loaded = test::topology(text);
      const auto all = check_all(loaded);
      const auto one = std::ranges::find_if(
          all, [&](const Diagnostic& d) { return d.message.find(row.message) != std::string::npos; });
      CAPTURE(text);
      CAPTURE(test::shown(all));
      CAPTURE(row.message);
      CHECK(one != all.end());
      if (one == all.end()) continue;
      CHECK(one->message.find(fmt::format("VM 'vm{}'", place)) != std::string::npos);
      CHECK(one->location.line == 9 + place);
      ++found;
    }
  }
  CHECK(found == 36);
}
