// SPDX-License-Identifier: Apache-2.0
// Key table of `virtualization:`, in a host group or for all hosts of a scenario.
#include "config/schema_parts.hpp"
#include "config/virtualization.hpp"
#include "fabricast/virtualization.hpp"

namespace fabricast::config {

using namespace parts;

SchemaPtr virtualization_schema() {
  const auto mode = choice(virtual_mode_names());
  const auto device = mapping("a device's mode",
                              {{"name", text(), "device of the host, e.g. hca1", true},
                               {"mode", choice({"passthrough", "vgpu", "mig", "sr-iov", "pvrdma", "vmxnet3", "virtio"}),
                                "how the VM gets this device", true}});
  const auto mmio = mapping("the MMIO settings", {{"use_64bit", flag(), "pciPassthru.use64bitMMIO; default on"},
                                                  {"size", size(), "pciPassthru.64bitMMIOSizeGB; default: enough"}});
  const auto full = mapping(
      "the virtualization",
      {{"mode", mode, "the word that sets the devices' modes", true},
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
       {"guest_topology", choice({"shown", "hidden", "injected"}), "PCIe tree as the guest sees it; default shown"},
       {"nvswitches", choice({"passthrough", "shared"}),
        "whether the VM with all GPUs holds the NVSwitches, or the host; NVLink SHARP needs the former; default "
        "passthrough"},
       {"container", flag(), "the application runs in a container in the VM; default off"},
       {"mtu", mtu(), "of vmxnet3, virtio and remote GPU connections; default 9000"},
       {"rate_limit", quantity(Dimension::bandwidth), "of each virtual function; default none"},
       {"distributed_switch", text(), "name of the switch the VMs are attached to"},
       {"profile", any_of({text(), list(text())}),
        "vGPU or MIG profile, e.g. a100-20c or 2g.10gb; a list names several on one GPU; default: the whole GPU"},
       {"scheduler", choice({"best_effort", "equal_share", "fixed_share"}), "of vGPUs; default best_effort"},
       {"time_slice", quantity(Dimension::time), "of vGPUs; default 2 ms up to 8 vGPUs, 1 ms above"},
       {"busy_neighbours", integer(0, 64), "other vGPUs of each GPU that compute all the time; default 0"},
       {"vgpu_release", text(), "of the vGPU software in quotes; default \"17.0\""},
       {"ecc", flag(), "ECC of the GPUs; default off"},
       {"unified_memory", flag(), "enable_uvm of a vGPU; default off"},
       {"gpu_share", number(0.01, 1), "remote GPU: part of each GPU; default 1"},
       {"gpu_memory", size(), "remote GPU: memory limit; default: the share of it"},
       {"needs", list(choice({"migration", "ha", "drs", "snapshot", "sharing"})), "features you require; checked"}});
  return any_of({mode, full});
}

}  // namespace fabricast::config
