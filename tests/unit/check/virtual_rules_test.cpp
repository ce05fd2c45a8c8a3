// SPDX-License-Identifier: Apache-2.0
// Every rule of virtual hosts both ways: the setting that breaks it is refused with its fix and source, the fixed one
// is not.
#include <fmt/format.h>

#include <cstdint>
#include <set>

#include "check/vm_setup.hpp"
#include "fabricast/check.hpp"
#include "fabricast/models/virtualization.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

struct Servers {
  std::string gpus = "v100-pcie-32";
  int gpu_count = 1;
  int hca_count = 1;
};

/// Two hosts whose GPUs and adapters share a PCIe switch, wearing `virtualization`.
std::string pair_of_hosts(const std::string& virtualization, const Servers& servers = {}) {
  std::string devices = "{name: sw0, kind: pcie_switch, below: socket0, pcie: gen3 x16}";
  for (int g = 0; g < servers.gpu_count; ++g)
    devices += fmt::format(", {{name: gpu{}, type: {}, below: sw0}}", g, servers.gpus);
  for (int h = 0; h < servers.hca_count; ++h)
    devices += fmt::format(", {{name: hca{}, type: connectx-5-100g, below: sw0}}", h);
  return fmt::format(
      "schema: fabricast/topology/1\nname: t\nhosts:\n  - {{name: n, count: 2, host: {{processor: xeon-skylake, "
      "devices: [{}]}}, virtualization: {}}}\nfabric:\n  single_switch: {{switch: sn2700}}\n",
      devices, virtualization);
}

struct Found {
  bool is_refused = false;
  std::string text;
  [[nodiscard]] bool says(const std::string& words) const { return text.find(words) != std::string::npos; }
};

Found findings(const std::string& virtualization, const Servers& servers = {}) {
  const auto loaded = test::topology(pair_of_hosts(virtualization, servers));
  const auto found = check_virtualization(loaded.topology, loaded.parameters, loaded.device_types);
  return {has_errors(found), render(found)};
}

/// The rule refuses `bad`, naming the fix and the source, and lets `good` pass.
void check_rule(const std::string& bad, const std::string& words, const std::string& good,
                const Servers& servers = {}) {
  CAPTURE(bad);
  const auto refused = findings(bad, servers);
  CAPTURE(refused.text);
  CHECK(refused.is_refused);
  CHECK(refused.says(words));
  CHECK(refused.says("source: "));
  const auto passed = findings(good, servers);
  CAPTURE(passed.text);
  CHECK_FALSE(passed.is_refused);
  CHECK_FALSE(passed.says(words));
}

/// The same for a rule that warns.
void check_doubt(const std::string& bad, const std::string& words, const std::string& good,
                 const Servers& servers = {}) {
  CAPTURE(bad);
  const auto doubted = findings(bad, servers);
  CAPTURE(doubted.text);
  CHECK_FALSE(doubted.is_refused);
  CHECK(doubted.says(words));
  CHECK_FALSE(findings(good, servers).says(words));
}

}  // namespace

TEST_CASE("bare metal and every one-word mode are feasible on a host with a GPU and an adapter") {
  for (const auto& mode : virtual_mode_names()) {
    CAPTURE(mode);
    const auto found = findings(mode, {"a100-pcie-40", 1, 1});
    CAPTURE(found.text);
    CHECK_FALSE(found.is_refused);
  }
}

TEST_CASE("64-bit MMIO space is the next power of two strictly above the sum of BARs") {
  CHECK(mmio_space(32_GiB).value == (64_GiB).value);
  CHECK(mmio_space(31_GiB).value == (32_GiB).value);
  CHECK(mmio_space(Bytes{17'230'200'832}).value == (32_GiB).value);  // one P100 with its three BARs
  // One V100 with a 32 GiB window needs 64; so do two P100 with 16 GiB each.
  check_rule("{mode: passthrough, mmio: {size: 32 GiB}}", "need 64 GiB of 64-bit MMIO space, the VM has 32 GiB",
             "{mode: passthrough, mmio: {size: 64 GiB}}");
  check_rule("{mode: passthrough, mmio: {size: 32 GiB}}", "2 x p100-pcie-16 need 64 GiB",
             "{mode: passthrough, mmio: {size: 64 GiB}}", {"p100-pcie-16", 2, 1});
}

TEST_CASE("large BARs need 64-bit MMIO, EFI and above-4G decoding, a T4 with a small window needs none of them") {
  check_rule("{mode: passthrough, mmio: {use_64bit: off}}", "pciPassthru.use64bitMMIO", "passthrough");
  check_rule("{mode: passthrough, efi: off}", "cannot map the BARs", "{mode: passthrough, efi: on}");
  check_rule("{mode: passthrough, above_4g_decoding: off}", "above-4G decoding", "passthrough");
  CHECK_FALSE(findings("{mode: passthrough, efi: off, above_4g_decoding: off, mmio: {use_64bit: off}}", {"t4", 1, 1})
                  .is_refused);
}

TEST_CASE("devices with DMA into the guest need all of its memory reserved") {
  check_rule("{mode: passthrough, memory_reservation: partial}", "not fully reserved",
             "{mode: passthrough, memory_reservation: full}");
  check_rule("{mode: sr-iov, memory_reservation: none}", "not fully reserved", "sr-iov");
  check_rule("{mode: vgpu, nic: vmxnet3, memory_reservation: none}", "not fully reserved",
             "{mode: vgpu, nic: vmxnet3}");
}

TEST_CASE("latency sensitivity high needs a core for each vCPU and full reservation") {
  check_rule("{mode: passthrough, latency_sensitivity: high, pinning: off}", "needs a core for each vCPU",
             "{mode: passthrough, latency_sensitivity: high}");
  check_rule("{mode: tcp, gpu: vgpu, vms_per_host: 4, vcpus: 48, latency_sensitivity: high}",
             "latency sensitivity high needs a core for each",
             "{mode: tcp, gpu: vgpu, vms_per_host: 4, vcpus: 8, latency_sensitivity: high}");
}

TEST_CASE("a passed-through GPU or adapter belongs to one VM") {
  check_rule("{mode: sr-iov, vms_per_host: 4}", "4 VMs share 2 passed-through GPUs", "{mode: sr-iov, vms_per_host: 2}",
             {"t4", 2, 1});
  check_rule("{mode: passthrough, vms_per_host: 2}", "2 VMs share 1 passed-through adapter; each belongs to one VM",
             "{mode: passthrough, nic: sr-iov, vms_per_host: 2}", {"t4", 2, 1});
}

TEST_CASE("a VM takes only so many devices, by release") {
  check_rule("{mode: passthrough, version: \"7.0\"}", "a VM gets 17 passed-through devices, ESXi 7.0 allows 16",
             "{mode: passthrough, version: \"8.0\"}", {"t4", 16, 1});
  check_rule("{mode: vgpu, version: \"6.7\"}", "a VM gets 2 vGPUs, ESXi 6.7 allows 1",
             "{mode: vgpu, version: \"6.7 U3\"}", {"v100-pcie-32", 2, 1});
}

TEST_CASE("peer access of passed-through devices begins with ESXi 6.7 and allowP2P") {
  check_rule("{mode: passthrough, version: \"6.5\", allow_p2p: on}", "needs ESXi 6.7, this is 6.5",
             "{mode: passthrough, version: \"6.7\", allow_p2p: on}");
  check_doubt("{mode: passthrough, version: \"6.5\"}", "staged through host memory", "passthrough");
  check_doubt("{mode: passthrough, allow_p2p: off}", "set pciPassthru.allowP2P", "passthrough");
}

TEST_CASE("all vGPUs of one GPU share a profile, except where sizes may be mixed") {
  check_rule("{mode: vgpu, profile: [v100-16c, v100-8c]}", "2 sizes on one v100-pcie-32",
             "{mode: vgpu, profile: [v100-16c, v100-16c]}");
  check_rule("{mode: vgpu, profile: [a100-20c, a100-10c]}", "2 sizes on one a100-pcie-40",
             "{mode: vgpu, version: \"8.0 U3\", profile: [a100-20c, a100-10c]}", {"a100-pcie-40", 1, 1});
  check_rule("{mode: vgpu, scheduler: fixed_share, profile: [a100-20c, a100-10c]}",
             "do not work with the fixed share scheduler", "{mode: vgpu, scheduler: fixed_share, profile: a100-20c}",
             {"a100-pcie-40", 1, 1});
}

TEST_CASE("profiles exist, and their number and sizes fit one GPU") {
  const Servers a100{"a100-pcie-40", 1, 1};
  check_rule("{mode: vgpu, profile: a100-30c}", "GPU a100-pcie-40 has no profile 'a100-30c'",
             "{mode: vgpu, profile: a100-20c}", a100);
  check_rule("{mode: vgpu, profile: a100-20c, vms_per_host: 3}",
             "3 vGPUs of a100-40.20c on one a100-pcie-40, it holds 2",
             "{mode: vgpu, profile: a100-20c, vms_per_host: 2}", a100);
  check_rule("{mode: mig, profile: 3g.20gb, vms_per_host: 3}", "on one a100-pcie-40, it holds 2",
             "{mode: mig, profile: 3g.20gb, vms_per_host: 2}", a100);
  check_rule("{mode: vgpu, profile: [a100-20c, a100-20c, a100-10c]}", "profiles of 50 GB together on GPU a100-pcie-40",
             "{mode: vgpu, version: \"8.0 U3\", profile: [a100-20c, a100-10c, a100-10c]}", a100);
}

TEST_CASE("a vGPU release before 9.0 needs ECC off") {
  check_rule("{mode: vgpu, vgpu_release: \"8.1\", ecc: on}", "needs ECC switched off",
             "{mode: vgpu, vgpu_release: \"9.0\", ecc: on}");
  CHECK_FALSE(findings("{mode: vgpu, vgpu_release: \"8.1\", ecc: off}").is_refused);
}

TEST_CASE("a DGX server has no vGPU, and vSphere no supported passthrough behind NVSwitches") {
  const auto said = [](const std::string& server, const std::string& virtualization) {
    const auto loaded = test::topology("schema: fabricast/topology/1\nname: t\nhosts: [{name: n, type: " + server +
                                       ", virtualization: " + virtualization + "}]\n");
    const auto found = check_virtualization(loaded.topology, loaded.parameters, loaded.device_types);
    return Found{has_errors(found), render(found)};
  };
  const auto dgx = said("dgx-a100", "{mode: vgpu}");
  CHECK(dgx.is_refused);
  CHECK(dgx.says("no vGPU software for dgx-a100"));
  CHECK(dgx.says("source: "));
  CHECK_FALSE(said("hgx-a100-8", "{mode: vgpu}").is_refused);
  CHECK_FALSE(said("dgx-a100", "{mode: passthrough, hypervisor: kvm}").is_refused);
  const auto vsphere = said("hgx-a100-8", "passthrough");
  CHECK_FALSE(vsphere.is_refused);
  CHECK(
      vsphere.says("no supported passthrough of GPUs behind NVSwitches; esxi is taken because no hypervisor is named"));
  // A named hypervisor or release is no guess.
  for (const auto* named : {"{mode: passthrough, hypervisor: esxi}", "{mode: passthrough, version: \"8.0 U2\"}"}) {
    const auto refused = said("hgx-a100-8", named);
    CHECK(refused.is_refused);
    CHECK(refused.says("vSphere has no supported passthrough of GPUs behind NVSwitches"));
    CHECK(refused.says("source: NVIDIA AI Enterprise 8.0"));
  }
  CHECK_FALSE(said("hgx-a100-8", "{mode: passthrough, hypervisor: kvm}").says("behind NVSwitches"));
  CHECK_FALSE(said("hgx-a100-4", "passthrough").says("behind NVSwitches"));
}

TEST_CASE("GPUs that NVLink joins need no PCIe path between them, and an adapter no second GPU") {
  const auto said = [](const std::string& server, const std::string& vms) {
    const auto loaded = test::topology("schema: fabricast/topology/1\nname: t\nhosts: [{name: n, type: " + server +
                                       ", virtualization: {hypervisor: kvm}, vms: [" + vms + "]}]\n");
    return render(check_virtualization(loaded.topology, loaded.parameters, loaded.device_types)) +
           virtual_features(loaded.topology, loaded.parameters);
  };
  const std::string staged = "staged through host memory";
  const auto four = [](const std::string& type, const std::string& more = "") {
    return "{name: a" + more + ", devices: {" + type + ": {mode: passthrough, count: 4}}}";
  };
  const auto hgx = said("hgx-h100-8", four("h100-sxm"));
  CHECK(hgx.find(staged) == std::string::npos);
  CHECK(hgx.find("GPU peer access yes  over NVLink") != std::string::npos);
  const auto pcie = said("server-2s-broadwell-4p100", four("p100-pcie-16"));
  CHECK(pcie.find("the driver does not find the switch that joins the GPUs: device messages are " + staged) !=
        std::string::npos);
  CHECK(pcie.find("GPU peer access no") != std::string::npos);
  const auto one = said("server-2s-broadwell-4p100", "{name: a, devices: {gpu0: passthrough, hca0: passthrough}}");
  CHECK(one.find("joins the GPUs") == std::string::npos);
}

TEST_CASE("MIG exists on Ampere and later data-centre GPUs") {
  check_rule("mig", "GPU v100-pcie-32 has no MIG", "vgpu");
  CHECK_FALSE(findings("mig", {"a100-pcie-40", 1, 1}).is_refused);
}

TEST_CASE("a required migration, HA, DRS, snapshot or sharing is refused where the mode forbids it") {
  for (const auto* need : {"migration", "ha", "drs", "snapshot"}) {
    CAPTURE(need);
    check_rule(fmt::format("{{mode: passthrough, needs: [{}]}}", need), "ties the VM to its host",
               fmt::format("{{mode: vgpu, version: \"8.0 U2\", nic: vmxnet3, needs: [{}]}}", need));
  }
  check_rule("{mode: sr-iov, gpu: vgpu, needs: [migration]}", "a virtual function ties the VM to its host",
             "{mode: pvrdma, gpu: vgpu, needs: [migration]}");
  check_rule("{mode: vgpu, nic: vmxnet3, version: \"6.7\", needs: [migration]}",
             "vMotion with a vGPU needs ESXi 6.7 U1",
             "{mode: vgpu, nic: vmxnet3, version: \"6.7 U1\", needs: [migration]}");
  check_rule("{mode: vgpu, nic: vmxnet3, unified_memory: on, needs: [migration]}", "unified memory blocks migration",
             "{mode: vgpu, nic: vmxnet3, needs: [migration]}");
  check_rule("{mode: passthrough, needs: [sharing]}", "a passed-through GPU belongs to one VM",
             "{mode: vgpu, profile: v100-16c, needs: [sharing]}");
}

TEST_CASE("PVRDMA needs ESXi 6.5 or QEMU, and one distributed switch for all VMs") {
  check_rule("{mode: pvrdma, hypervisor: xen}", "xen has no PVRDMA adapter", "{mode: pvrdma, hypervisor: kvm}");
  check_rule("{mode: pvrdma, version: \"6.0\"}", "PVRDMA needs ESXi 6.5", "{mode: pvrdma, version: \"6.5\"}");
  const auto two_groups = [](const std::string& second) {
    const auto host = [](const std::string& name, const std::string& vds) {
      return "  - {name: " + name +
             ", host: {processor: xeon-skylake, devices: [{name: hca0, type: connectx-5-100g, below: socket0}]}, "
             "virtualization: {mode: pvrdma, distributed_switch: " +
             vds + "}}\n";
    };
    const auto loaded = test::topology("schema: fabricast/topology/1\nname: t\nhosts:\n" + host("a", "dvs1") +
                                       host("b", second) + "fabric:\n  single_switch: {switch: sn2700}\n");
    return render(check_virtualization(loaded.topology, loaded.parameters, loaded.device_types));
  };
  CHECK(two_groups("dvs2").find(
            "error: PVRDMA adapters of group 'a' and group 'b' are on different distributed switches") !=
        std::string::npos);
  CHECK(two_groups("dvs1").empty());
}

TEST_CASE("PVRDMA before native endpoints reaches PVRDMA only, hosts without RDMA are no peers") {
  const auto beside = [](const std::string& adapter, const std::string& version) {
    const std::string processor = "host: {processor: xeon-skylake, devices: [{name: hca0, type: ";
    const auto loaded =
        test::topology("schema: fabricast/topology/1\nname: t\nhosts:\n  - {name: n, count: 2, " + processor +
                       "connectx-5-100g, below: socket0}]}, virtualization: {version: \"" + version +
                       "\"}, vms: [{name: a, devices: {hca0: pvrdma}}]}\n  - {name: m, " + processor + adapter +
                       ", below: socket0}]}}\nfabric:\n  single_switch: {switch: sn2700}\n");
    return has_errors(check_virtualization(loaded.topology, loaded.parameters, loaded.device_types));
  };
  CHECK(beside("connectx-5-100g", "6.7"));
  CHECK_FALSE(beside("connectx-5-100g", "7.0 U1"));
  CHECK_FALSE(beside("ethernet-25g", "6.7"));
}

TEST_CASE("what costs peer bandwidth is named: ACS, ATS, a hidden tree, no common switch") {
  check_doubt("{mode: passthrough, acs: redirect}", "ACS redirects peer requests", "passthrough");
  check_doubt("{mode: bare-metal, acs: redirect}", "ACS redirects peer requests", "bare-metal");
  check_doubt("{mode: passthrough, ats: off}", "without ATS the root complex translates", "passthrough");
  check_doubt("{mode: passthrough, hypervisor: kvm, guest_topology: hidden}", "takes all devices for equally far",
              "{mode: passthrough, hypervisor: kvm, guest_topology: injected}");
  const auto apart = test::topology(
      "schema: fabricast/topology/1\nname: t\nhosts:\n  - {name: n, host: {processor: xeon-skylake, devices: [{name: "
      "gpu0, type: t4, below: socket0}, {name: hca0, type: connectx-5-100g, below: socket0}]}, virtualization: "
      "passthrough}\n");
  CHECK(render(check_virtualization(apart.topology, apart.parameters, apart.device_types))
            .find("no PCIe switch joins gpu0") != std::string::npos);
  CHECK_FALSE(findings("passthrough").says("no PCIe switch joins"));
}

TEST_CASE("small pages, unaligned memory, overcommitted cores and a small MTU are doubted") {
  check_doubt("{mode: passthrough, huge_pages: off}", "4 KiB pages", "passthrough");
  check_doubt("{mode: passthrough, pinning: off}", "latencies vary with the load", "passthrough");
  check_doubt("{mode: passthrough, numa: off}", "copies cross the sockets", "passthrough");
  check_doubt("{mode: tcp, gpu: vgpu, vms_per_host: 8, vcpus: 32}", "vCPUs wait for a core",
              "{mode: tcp, gpu: vgpu, vms_per_host: 2, vcpus: 8}");
  check_doubt("{mode: tcp, mtu: 1500}", "each packet costs processor time", "tcp");
  check_doubt("{mode: remote-gpu, mtu: 4096}", "below 4 KB on servers and 8 KB on clients", "remote-gpu");
}

TEST_CASE("a client of remote GPUs needs as much memory as it uses on them, and no more than they have") {
  check_rule("{mode: remote-gpu, memory: 16 GiB}", "a VM of 16 GiB shadows 32 GiB of remote GPU memory",
             "{mode: remote-gpu, memory: 48 GiB}");
  check_rule("{mode: remote-gpu, memory: 8 GiB, gpu_share: 0.5}", "shadows 16 GiB",
             "{mode: remote-gpu, memory: 16 GiB, gpu_share: 0.5}");
  check_rule("{mode: remote-gpu, gpu_memory: 64 GiB}", "64 GiB asked of GPU v100-pcie-32 with 32 GiB",
             "{mode: remote-gpu, gpu_memory: 8 GiB}");
}

TEST_CASE("the overview says which features remain under each mode, and why others do not") {
  const auto overview = [](const std::string& virtualization) {
    const auto loaded = test::topology(pair_of_hosts(virtualization));
    return virtual_features(loaded.topology, loaded.parameters);
  };
  CHECK(overview("bare-metal").empty());
  const auto passthrough = overview("passthrough");
  CHECK(passthrough.find("2 x n, passthrough on esxi 8.0") != std::string::npos);
  CHECK(passthrough.find("migration       no   a passed-through GPU ties the VM to its host") != std::string::npos);
  CHECK(passthrough.find("GPUDirect RDMA  yes") != std::string::npos);
  const auto vgpu = overview("{mode: vgpu, nic: vmxnet3, profile: v100-8c}");
  CHECK(vgpu.find("migration       yes") != std::string::npos);
  CHECK(vgpu.find("GPU sharing     yes") != std::string::npos);
  CHECK(vgpu.find("GPUDirect RDMA  no   vmxnet3 carries TCP only") != std::string::npos);
}

namespace {

/// Sets of instances to which, as they lie, nothing can be added; every way to lay them out is tried.
void lay_out(const std::vector<models::MigKind>& kinds, std::uint32_t used, int compute, int slots,
             const ParameterSet& parameters, std::multiset<std::pair<int, int>>& chosen,
             std::set<std::multiset<std::pair<int, int>>>& full) {
  bool is_full = true;
  for (const auto& kind : kinds) {
    const auto* starts = parameters.find(fmt::format("mig_placement.{}.{}g{}.starts", slots, kind.compute, kind.slots));
    for (int s = 0; starts != nullptr && s + kind.slots <= slots; ++s) {
      const auto own = ((1U << static_cast<unsigned>(kind.slots)) - 1) << static_cast<unsigned>(s);
      const bool may_start = (static_cast<unsigned>(starts->value) >> static_cast<unsigned>(s) & 1U) != 0;
      if (!may_start || (used & own) != 0 || kind.compute > compute) continue;
      is_full = false;
      const auto added = chosen.insert({kind.compute, kind.slots});
      lay_out(kinds, used | own, compute - kind.compute, slots, parameters, chosen, full);
      chosen.erase(added);
    }
  }
  if (is_full) full.insert(chosen);
}

std::size_t full_sets(const std::vector<models::MigKind>& kinds, int slots, const ParameterSet& parameters) {
  std::multiset<std::pair<int, int>> chosen;
  std::set<std::multiset<std::pair<int, int>>> full;
  lay_out(kinds, 0, slots == 8 ? 7 : slots, slots, parameters, chosen, full);
  for (const auto& set : full) {
    std::vector<models::MigKind> instances;
    for (const auto& [compute, memory] : set) instances.push_back({compute, memory});
    CHECK(models::can_place(instances, slots, parameters));
  }
  return full.size();
}

}  // namespace

TEST_CASE("MIG instances fit a card in 14 full sets, 38 with double-memory instances, an A30 in 4") {
  const auto shipped = load_shipped_parameters();
  REQUIRE(shipped);
  std::vector<models::MigKind> kinds{{1, 1}, {2, 2}, {3, 4}, {4, 4}, {7, 8}};
  CHECK(full_sets(kinds, 8, *shipped) == 14);
  kinds.push_back({1, 2});
  CHECK(full_sets(kinds, 8, *shipped) == 38);
  CHECK(full_sets({{1, 1}, {2, 2}, {4, 4}}, 4, *shipped) == 4);
  CHECK_FALSE(models::can_place({{4, 4}, {4, 4}}, 8, *shipped));
  CHECK_FALSE(models::can_place(std::vector<models::MigKind>(8, {1, 1}), 8, *shipped));
}
