// SPDX-License-Identifier: Apache-2.0
// Key table of `virtualization:`, in a host group or for all hosts of a scenario.
#include <set>

#include "config/schema_parts.hpp"
#include "config/virtualization.hpp"
#include "fabricast/virtualization.hpp"

namespace fabricast::config {

using namespace parts;

namespace {

std::vector<Field> setting_fields() {
  const auto device = mapping("a device's mode",
                              {{"name", text(), "device of the host, e.g. hca1", true},
                               {"mode", choice({"passthrough", "vgpu", "mig", "sr-iov", "pvrdma", "vmxnet3", "virtio"}),
                                "how the VM gets this device", true}});
  const auto mmio = mapping("the MMIO settings", {{"use_64bit", flag(), "pciPassthru.use64bitMMIO; default on"},
                                                  {"size", size(), "pciPassthru.64bitMMIOSizeGB; default: enough"}});
  return {
      {"mode", choice(virtual_mode_names()), "the word that sets the devices' modes; required without `vms`"},
      {"hypervisor", choice({"esxi", "kvm", "cloud-hypervisor", "xen", "hyper-v"}), "default esxi"},
      {"version", text(), "release of ESXi in quotes, e.g. \"6.7 U1\"; default \"8.0\""},
      {"gpu", choice({"passthrough", "vgpu", "mig", "remote"}), "how VMs get GPUs; default: by the mode"},
      {"nic", choice({"passthrough", "sr-iov", "pvrdma", "vmxnet3", "virtio"}),
       "how VMs get adapters; default: by the mode"},
      {"devices", list(device), "single devices that differ"},
      {"vms_per_host", integer(1, 1024), "GPUs are dealt out in order; default 1"},
      {"vcpus", integer(1, 1024), "per VM; default: the cores shared out"},
      {"pinning", flag(), "every vCPU has a core of its own; default on"},
      {"numa", flag(), "VM, GPUs and adapters on one socket where possible; default on"},
      {"memory", size(), "of one VM"},
      {"memory_reservation", choice({"full", "partial", "none"}), "default full"},
      {"huge_pages", flag(), "guest memory in huge pages; default on"},
      {"latency_sensitivity", choice({"normal", "high"}), "default normal"},
      {"efi", flag(), "the VM boots by EFI; default on"},
      {"above_4g_decoding", flag(), "BIOS setting of the host; default on"},
      {"mmio", mmio, "64-bit MMIO space of the VM"},
      {"allow_p2p", flag(), "pciPassthru.allowP2P; default on"},
      {"acs", choice({"redirect", "direct_translated", "off"}),
       "access control of the PCIe switches; default direct_translated"},
      {"ats", flag(), "devices translate addresses themselves (ATS); default on"},
      {"translation", choice({"cached", "shared"}),
       "addresses of peer requests: cached by the devices, or translated by the root complexes of a socket; default "
       "shared on kvm and cloud-hypervisor, else cached"},
      {"guest_topology", choice({"shown", "hidden", "injected"}),
       "PCIe tree as the guest sees it; default hidden, as hypervisors build it unless told otherwise"},
      {"nvswitches", choice({"passthrough", "shared"}),
       "whether the VM with all GPUs holds the NVSwitches, or the host; NVLink SHARP needs the former; default "
       "passthrough"},
      {"container", flag(), "the application runs in a container in the VM; default off"},
      {"vhost", flag(), "virtio: a thread of the host's kernel moves packets; off: the emulator; default on"},
      {"mtu", mtu(), "of vmxnet3, virtio and remote GPU connections; default 9000"},
      {"rate_limit", quantity(Dimension::bandwidth), "of each virtual function; default none"},
      {"distributed_switch", text(), "name of the switch the VMs are attached to"},
      {"profile", any_of({text(), list(text())}),
       "vGPU or MIG profile, e.g. a100-20c or 2g.10gb; a list names several on one GPU; default: the whole GPU"},
      {"scheduler", choice({"best_effort", "equal_share", "fixed_share"}), "of vGPUs; default best_effort"},
      {"time_slice", quantity(Dimension::time), "of vGPUs; default 2 ms up to 8 vGPUs, 1 ms above"},
      {"busy_neighbours", integer(0, 64), "other vGPUs of each GPU that compute all the time; default 0"},
      {"host_memory", size(), "memory of the machine; VMs that reserve more are refused"},
      {"remote_sharing", choice({"refuse", "queue"}),
       "clients of one remote GPU that ask for more than all of it; default refuse"},
      {"firmware_functions", integer(0, 1024), "VFs each adapter port offers (NUM_OF_VFS); default: as many as it can"},
      {"vgpu_release", text(), "of the vGPU software in quotes; default \"17.0\""},
      {"ecc", flag(), "ECC of the GPUs; default off"},
      {"unified_memory", flag(), "enable_uvm of a vGPU; default off"},
      {"gpu_share", number(0.01, 1), "remote GPU: part of each GPU; default 1"},
      {"gpu_memory", size(), "remote GPU: memory limit; default: the share of it"},
      {"needs",
       list(choice({"migration", "ha", "drs", "drs-placement", "snapshot", "suspend", "clone", "hot-add",
                    "fault-tolerance", "sharing"})),
       "features you require of every VM; checked"}};
}

/// Settings of the host and its devices, which all its VMs share.
bool is_of_host(const std::string& key) {
  static const std::set<std::string> keys{"mode",
                                          "hypervisor",
                                          "version",
                                          "gpu",
                                          "nic",
                                          "vms_per_host",
                                          "devices",
                                          "acs",
                                          "ats",
                                          "rate_limit",
                                          "profile",
                                          "numa",
                                          "translation",
                                          "nvswitches",
                                          "above_4g_decoding",
                                          "firmware_functions",
                                          "host_memory",
                                          "remote_sharing",
                                          "scheduler",
                                          "time_slice",
                                          "vgpu_release",
                                          "busy_neighbours",
                                          "gpu_share",
                                          "gpu_memory",
                                          "ecc",
                                          "mtu"};
  return keys.count(key) > 0;
}

SchemaPtr port_group_schema() {
  return mapping("a port group",
                 {{"name", text(), "as the distributed switch calls it"},
                  {"vlan", integer(0, 4094), "0: untagged; VMs of others are not reached; default 0"},
                  {"shares", integer(1, 100), "of an uplink that VMs fill; default 50 (normal)"},
                  {"mtu", mtu(), "of software adapters in it; default 9000"},
                  {"priority", integer(0, 7), "PCP of tagged frames, read by `trust: pcp`; default 0"}});
}

SchemaPtr vm_device_schema() {
  const auto ways = choice({"passthrough", "vgpu", "mig", "sr-iov", "pvrdma", "vmxnet3", "virtio"});
  return any_of(
      {ways,
       mapping("a device of a VM",
               {{"mode", ways, "how the VM gets it"},
                {"vgpu", any_of({text(), list(text())}), "vGPU profile, e.g. a100-10c; a list: several of the card"},
                {"mig", any_of({text(), list(text())}), "MIG profile, e.g. 2g.10gb; a list: several of the card"},
                {"vf", integer(1, 127), "virtual functions of the adapter"},
                {"remote", text(), "host.gpu whose calls go over the network, e.g. node3.gpu1"},
                {"share", number(0.01, 1), "of the remote GPU; default 1"},
                {"memory", size(), "limit of the remote GPU's memory; default: the share of it"},
                {"rate_limit", quantity(Dimension::bandwidth), "of an adapter, each way; default none"},
                {"count", integer(1, 64), "devices, where the key is a catalogue name; default 1"}},
               {{"mode", "vgpu", "mig", "vf", "remote"}})});
}

}  // namespace

SchemaPtr vms_schema() {
  std::vector<Field> fields{
      {"name", text(), "VMs are called host/name, or host/name0, ... when count is above 1", true},
      {"count", integer(1, 256), "equal VMs on each host; default 1"},
      {"devices", free_mapping(vm_device_schema()),
       "device or catalogue name -> how the VM gets it: gpu0: passthrough, hca0: {vf: 1, rate_limit: 25 Gb/s}"},
      {"numa", any_of({text(), list(integer(0, 7))}),
       "sockets of its memory and vCPUs; default on: those of its devices; off: others"},
      {"hardware_version", integer(4, 30), "virtual hardware of ESXi; default: the newest of the release"},
      {"guest_os", choice({"linux", "windows"}), "default linux"},
      {"port_group", port_group_schema(), "network of its adapters"},
      {"cpu_shares", integer(1, 100'000), "of each vCPU when cores are short; default 1000"},
      {"cpu_load", number(0, 1), "part of the time each vCPU has work; default 1"},
      {"gpu_load", flag(), "its vGPUs compute while others do; default on"},
      {"dynamic_directpath", flag(), "passed-through devices assigned at power-on by vendor and model; default off"}};
  for (auto& field : setting_fields())
    if (!is_of_host(field.name)) fields.push_back(std::move(field));
  return list(mapping("a VM", std::move(fields)));
}

SchemaPtr virtualization_schema() {
  return any_of({choice(virtual_mode_names()), mapping("the virtualization", setting_fields())});
}

}  // namespace fabricast::config
