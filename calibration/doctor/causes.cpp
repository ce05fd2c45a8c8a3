// SPDX-License-Identifier: Apache-2.0
// What goes wrong with clusters, as changes of their description. Priors: how often public threads name the cause.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "doctor/changes.hpp"
#include "fabricast/virtualization.hpp"

namespace fabricast::doctor {

namespace {

bool is_nccl(const Case& one) {
  return family_of(one.scenario.workloads.front().benchmark) == BenchmarkFamily::nccl_tests;
}

bool uses_devices(const Case& one) {
  const auto& workload = one.scenario.workloads.front();
  return is_nccl(one) || workload.send_buffer == BufferPlace::device || workload.receive_buffer == BufferPlace::device;
}

class Catalogue {
 public:
  Catalogue(const Case& one, bool tells_hosts) : one_(one), hosts_(num_hosts(one.spec)), tells_hosts_(tells_hosts) {}

  std::vector<Cause> all() {
    add_software();
    add_forced();
    add_guests();
    add_devices();
    add_fabric();
    return std::move(out_);
  }

 private:
  void add(std::string id, std::string title, std::string place, std::string fix, double prior,
           std::function<bool(Case&)> apply) {
    out_.push_back({std::move(id), std::move(title), std::move(place), std::move(fix), prior, std::move(apply), -1});
  }

  void add_software() {
    add("gpudirect-off", "GPUDirect RDMA is off",
        "every host: NCCL_NET_GDR_LEVEL, UCX's gdr transports, or the driver's module",
        "load nvidia_peermem (or use dmabuf), and unset NCCL_NET_GDR_LEVEL=LOC; NCCL's log must say GDRDMA", 1.5,
        [](Case& c) { return uses_devices(c) && put(c.scenario.software.gpudirect_rdma, false); });
    add("nv-peer-mem-missing", "nv_peer_mem (nvidia_peermem) is not loaded", "every host: kernel module",
        "modprobe nvidia_peermem", 1.2,
        [](Case& c) { return uses_devices(c) && put(c.scenario.software.nv_peer_mem, false); });
    add("p2p-off", "GPU peer access is off",
        "every host: NCCL_P2P_DISABLE, NCCL_P2P_LEVEL, the IOMMU or a VM's missing NVSwitches",
        "unset NCCL_P2P_DISABLE and NCCL_P2P_LEVEL; on a VM hand the NVSwitches over and open the fabric manager", 1.5,
        [](Case& c) { return is_nccl(c) && put(c.scenario.software.nccl_p2p, false); });
    add("shm-off", "shared memory is off", "every host: NCCL_SHM_DISABLE, or /dev/shm too small in a container",
        "unset NCCL_SHM_DISABLE; docker run --shm-size=1g --ipc=host", 0.8,
        [](Case& c) { return is_nccl(c) && put(c.scenario.software.nccl_shm, false); });
    add("p2p-shm-off", "peer access and shared memory are off", "every host: NCCL_P2P_DISABLE and NCCL_SHM_DISABLE",
        "unset both", 0.6, [](Case& c) {
          const bool p2p = put(c.scenario.software.nccl_p2p, false);
          return is_nccl(c) && (put(c.scenario.software.nccl_shm, false) || p2p);
        });
    add("tcp", "the network plugin or RDMA is missing: traffic goes over TCP",
        "every host: NCCL_IB_DISABLE, NCCL_NET, a missing net plugin or /dev/infiniband in the container",
        "unset NCCL_IB_DISABLE, install the provider's plugin (EFA, FasTrak), hand /dev/infiniband to the "
        "container; NCCL's log must say NET/IB",
        1.3, [](Case& c) { return put(c.scenario.software.transport, std::string("tcp")); });
    add("nvls-off", "NVLink SHARP is off", "every host: NCCL_NVLS_ENABLE, IMEX or fabric manager",
        "unset NCCL_NVLS_ENABLE=0; check `nvidia-smi topo -m` and the fabric manager", 0.8,
        [](Case& c) { return is_nccl(c) && put(c.scenario.software.nccl_nvls, NvlsSetting::off); });
    add("pxn-off", "PXN is off", "every host: NCCL_PXN_DISABLE", "unset NCCL_PXN_DISABLE", 0.4,
        [](Case& c) { return is_nccl(c) && put(c.scenario.software.nccl_pxn, std::optional(false)); });
    add("gdr-level-pix", "GPUDirect is allowed below one switch only", "every host: NCCL_NET_GDR_LEVEL=PIX",
        "set NCCL_NET_GDR_LEVEL=PXB, or SYS", 0.4,
        [](Case& c) { return is_nccl(c) && put(c.scenario.software.nccl_gdr_level, std::string("pix")); });
    add("gdr-level-sys", "GPUDirect is forced across processors", "every host: NCCL_NET_GDR_LEVEL=SYS",
        "unset NCCL_NET_GDR_LEVEL; use the adapter beside the GPU", 0.4,
        [](Case& c) { return is_nccl(c) && put(c.scenario.software.nccl_gdr_level, std::string("sys")); });
    add("gdrcopy-off", "gdrcopy is missing", "every host: gdrdrv",
        "modprobe gdrdrv, and give UCX its gdr_copy transport", 0.5,
        [](Case& c) { return !is_nccl(c) && uses_devices(c) && put(c.scenario.software.gdrcopy, false); });
  }

  void add_forced() {
    for (const auto* protocol : {"ll", "ll128", "simple"})
      add(fmt::format("protocol-{}", protocol), fmt::format("protocol {} is forced", protocol),
          "every rank: NCCL_PROTO, a tuner file", "unset NCCL_PROTO", 0.7, [protocol](Case& c) {
            return is_nccl(c) && put(c.scenario.workloads.front().protocol, std::string(protocol));
          });
    for (const auto* algorithm : {"ring", "tree"})
      add(fmt::format("algorithm-{}", algorithm), fmt::format("algorithm {} is forced", algorithm),
          "every rank: NCCL_ALGO, a tuner file", "unset NCCL_ALGO", 0.6, [algorithm](Case& c) {
            return is_nccl(c) && put(c.scenario.workloads.front().algorithm, std::string(algorithm));
          });
    for (const int channels : {1, 2, 4, 8, 16})
      add(fmt::format("channels-{}", channels), fmt::format("{} channel{} only", channels, channels == 1 ? "" : "s"),
          "every rank: NCCL_MAX_NCHANNELS, NCCL_MAX_CTAS", "unset NCCL_MAX_NCHANNELS and NCCL_MAX_CTAS", 0.7,
          [channels](Case& c) {
            return is_nccl(c) && put(c.scenario.workloads.front().channels, std::optional(channels));
          });
    add("slow-launch", "kernels start late: processors at low clock, or launches from one thread",
        "every host: cpupower, C-states, hypervisor", "cpupower frequency-set -g performance; pin ranks", 0.6,
        slow_host_software);
    add("numa-balancing", "NUMA balancing moves the ranks' memory (simulated as the late launches that it causes)",
        "every host: kernel.numa_balancing", "sysctl kernel.numa_balancing=0; numactl for every rank", 0.5,
        slow_host_software);
  }

  /// What moves pages and processes about: every launch and every message waits for the host more often.
  static bool slow_host_software(Case& c) {
    std::vector<Parameter> scaled;
    for (const auto& [name, parameter] : c.parameters.all()) {
      const bool is_host = name.starts_with("cuda.") || name.ends_with(".launch_interval") ||
                           (name.starts_with("mpi.") && name.find("overhead") != std::string::npos);
      if (!is_host || parameter.dimension != Dimension::time) continue;
      scaled.push_back(parameter);
      for (auto* value : {&scaled.back().value, &scaled.back().low, &scaled.back().high}) *value *= 2;
    }
    for (auto& parameter : scaled) c.parameters.set(parameter);
    return !scaled.empty();
  }

  void add_guests() {
    const auto is_guest = [](const Virtualization& v) { return v.is_virtual(); };
    add("acs-redirect", "PCIe access control redirects peer requests to the root complex",
        "every host: ACSCtl ReqRedir+ of the switches' downstream ports",
        "bare metal: switch ACS off (setpci, BIOS); virtual: DirectTrans+ with ATS", 1.5, [](Case& c) {
          return uses_devices(c) && change_worn(c, [](Virtualization& v) {
                   return v.redirects_peers() ? false : put(v.acs, AcsMode::redirect);
                 });
        });
    add("translation-shared", "peer requests wait for the root complexes to translate their addresses",
        "every VM: devices that keep no translations (ATS without cached translations)",
        "adapters and firmware that cache translations, huge pages below the guest, fewer adapters per socket", 0.8,
        [is_guest](Case& c) {
          return change_worn(
              c, [&](Virtualization& v) { return is_guest(v) && put(v.translation, PeerTranslation::shared); });
        });
    add("ats-off", "address translation service is off",
        "every host: ATSCtl Enable- of the adapters, the guest's IOMMU without iotlb",
        "switch ATS on in the adapter (mlxconfig ATS_ENABLED=1) and the hypervisor", 1.2, [is_guest](Case& c) {
          return change_worn(c, [&](Virtualization& v) { return is_guest(v) && put(v.has_ats, false); });
        });
    add("hidden-topology", "the guest does not see the PCIe tree", "every VM: buses of the guest",
        "show switches to the guest, or inject a topology (`fabricast export nccl-topo --vm`)", 1.2,
        [is_guest](Case& c) {
          return change_worn(
              c, [&](Virtualization& v) { return is_guest(v) && put(v.guest_topology, GuestTopology::hidden); });
        });
    add("numa-off", "memory and virtual CPUs are not kept on one NUMA node (NUMA balancing moves them)",
        "every VM: numatune, kernel.numa_balancing",
        "pin memory to the node of the devices; sysctl kernel.numa_balancing=0", 0.8, [is_guest](Case& c) {
          return change_worn(c, [&](Virtualization& v) { return is_guest(v) && put(v.is_numa_aligned, false); });
        });
    add("pinning-off", "virtual CPUs are not pinned", "every VM: cputune", "pin every virtual CPU to a core of its own",
        0.8, [is_guest](Case& c) {
          return change_worn(c, [&](Virtualization& v) { return is_guest(v) && put(v.is_pinned, false); });
        });
    add("huge-pages-off", "no huge pages", "every VM: memoryBacking", "back the VM with huge pages", 0.5,
        [is_guest](Case& c) {
          return change_worn(c, [&](Virtualization& v) { return is_guest(v) && put(v.has_huge_pages, false); });
        });
  }

  /// The same change in every host, and in each host alone.
  void add_placed(const std::string& id, const std::string& title, const std::string& device, const std::string& fix,
                  double prior, const std::function<bool(Case&, HostSpec&)>& change) {
    add(id, title, fmt::format("{} of every host", device), fix, prior, [change](Case& c) {
      bool has = false;
      for (auto& group : c.spec.hosts) has = change(c, group.host) || has;
      return has;
    });
    if (hosts_ < 2 || hosts_ > 64) return;
    // Logs that all hosts took part in do not tell them apart: one stands for all.
    const int tried = tells_hosts_ ? std::min(hosts_, 16) : 1;
    for (int host = 0; host < tried; ++host) {
      const auto where = tells_hosts_
                             ? fmt::format("{}.{}", host_name(one_.spec, host), device)
                             : fmt::format("{} of one host (logs of single hosts or pairs would say which)", device);
      add(id + "-one", title + " in one host", where, fix, prior * 0.7 / tried, [change, host](Case& c) {
        return split_groups(c.spec) && change(c, c.spec.hosts[static_cast<std::size_t>(host)].host);
      });
      out_.back().host = host;
    }
  }

  void add_devices() {
    const auto& shape = one_.spec.hosts.front().host;
    const int hcas = count(shape, DeviceKind::hca);
    const auto every = [](DeviceKind kind, int divisor, int generation) {
      return [=](Case& c, HostSpec& host) {
        bool has = false;
        for (auto& device : host.devices)
          has = (device.kind == kind && train_narrow(c, device, divisor, generation)) || has;
        return has;
      };
    };
    const auto first = [](DeviceKind kind, int divisor, int generation) {
      return [=](Case& c, HostSpec& host) {
        auto* device = nth(host, kind, 0);
        return device != nullptr && train_narrow(c, *device, divisor, generation);
      };
    };
    const std::string reseat = "reseat the card or riser, look at LnkSta in `lspci -vv`, and at the slot in the BIOS";
    add_placed("hca-narrow", "adapters trained at half their lanes", "all adapters", reseat, 0.9,
               every(DeviceKind::hca, 2, 0));
    if (hcas > 1)
      add_placed("hca0-narrow", "one adapter trained at half its lanes", "hca0", reseat, 0.9,
                 first(DeviceKind::hca, 2, 0));
    add_placed("hca-gen3", "adapters run at PCIe 3", "all adapters", reseat, 0.7, every(DeviceKind::hca, 1, 3));
    add_placed("gpu-narrow", "GPUs trained at half their lanes", "all GPUs", reseat, 0.7, every(DeviceKind::gpu, 2, 0));
    add_placed("gpu0-narrow", "one GPU trained at half its lanes", "gpu0", reseat, 0.7, first(DeviceKind::gpu, 2, 0));
    add("pcie-gen3", "all links run at PCIe 3, or NCCL reads them so from the text of its topology file",
        "every host: LnkSta, or link_speed without ' PCIe' in NCCL_TOPO_FILE",
        "write link_speed=\"32.0 GT/s PCIe\"; else look at the slots in the BIOS (`fabricast import` shows both)", 0.8,
        [](Case& c) {
          bool has = false;
          for (auto& group : c.spec.hosts) {
            for (auto& device : group.host.devices) {
              const bool is_link = device.kind == DeviceKind::gpu || device.kind == DeviceKind::hca ||
                                   device.kind == DeviceKind::pcie_switch;
              has = (is_link && train_narrow(c, device, 1, 3)) || has;
            }
          }
          return has;
        });
    add_placed("wrong-socket", "adapters (or the ranks that use them) sit on the other processor",
               "the first processor's adapters",
               "use the adapter beside the GPU: NCCL_IB_HCA, UCX_NET_DEVICES, numactl", 0.9,
               [](Case&, HostSpec& host) { return swap_sockets(host); });
    if (hcas > 1) {
      add_placed("rail-down", "one adapter is down", fmt::format("hca{}", hcas - 1),
                 "ibstat, cable and switch port; NCCL_IB_HCA must name it", 1.2,
                 [hcas](Case&, HostSpec& host) { return remove_hca(host, hcas - 1); });
      add_placed("rails-half", "half of the adapters are used", "every second adapter",
                 "NCCL_IB_HCA must name all of them", 0.7, [hcas](Case&, HostSpec& host) {
                   bool has = false;
                   for (int i = hcas - 1; i > 0; i -= 2) has = remove_hca(host, i) || has;
                   return has;
                 });
      add_placed("crossed-rails", "two adapters are cabled to each other's rail",
                 fmt::format("hca0 and hca{}", hcas - 1), "swap the cables of the two", 0.6,
                 [hcas](Case&, HostSpec& host) { return swap_hcas(host, 0, hcas - 1); });
    }
    add_slow();
  }

  void add_slow() {
    // Half, a quarter: an older speed, one lane of four. A tenth, as 1 Gb/s of 10, is a rate of Ethernet alone.
    for (const auto& [id, share] : {std::pair("port-80", 0.8), std::pair("port-half", 0.5),
                                    std::pair("port-quarter", 0.25), std::pair("port-tenth", 0.1)}) {
      add_placed(id, fmt::format("adapter ports carry {:.0f} % of their rate", 100 * share), "all adapters",
                 "look at the port's width and speed (`ibstat`, `ibdiagnet`, `ethtool`), symbol errors, rate limits",
                 0.5, [share = share](Case& c, HostSpec& host) {
                   bool has = false;
                   for (auto& device : host.devices) {
                     if (device.kind != DeviceKind::hca || (share < 0.2 && !is_ethernet(c, device))) continue;
                     clone_type(c, device, {{"rate", share}});
                     has = true;
                   }
                   return has;
                 });
    }
    for (const double share : {0.8, 0.6}) {
      add_placed(share > 0.7 ? "slow-gpu-80" : "slow-gpu-60",
                 fmt::format("one GPU is slow: {:.0f} % of its memory and NVLink", 100 * share), "gpu0",
                 "nvidia-smi -q -d PERFORMANCE,ECC: clocks, throttling, row remapping; reset or replace it", 0.6,
                 [share](Case& c, HostSpec& host) {
                   auto* gpu = nth(host, DeviceKind::gpu, 0);
                   if (gpu == nullptr) return false;
                   clone_type(c, *gpu, {{"memory_bandwidth", share}, {"nvlink_efficiency", share}});
                   return true;
                 });
    }
    add_placed("nvlinks-lost", "half of one GPU's NVLinks are down", "gpu0",
               "nvidia-smi nvlink -s; reseat or replace the board", 0.6, [](Case&, HostSpec& host) {
                 bool has = false;
                 const auto* gpu = nth(host, DeviceKind::gpu, 0);
                 for (auto& link : host.nvlinks) {
                   if (gpu == nullptr || (link.from != gpu->name && link.to != gpu->name) || link.links < 2) continue;
                   link.links /= 2;
                   has = true;
                 }
                 return has;
               });
  }

  void add_fabric() {
    if (one_.spec.fabric.kind == FabricKind::none) return;
    add("pfc-off", "priority flow control is off", "every switch and adapter: lossless priority",
        "mlnx_qos -i DEV --pfc 0,0,0,1,0,0,0,0 and the same priority on every switch port; trust DSCP", 0.5,
        [](Case& c) {
          auto& lossless = c.spec.fabric.lossless;
          if (!lossless) lossless = LosslessSpec{};
          return put(lossless->flow_control, std::optional(FlowControl::drop));
        });
    add_leaves();
    for (const int mtu : {256, 512, 1024, 2048})
      add(fmt::format("mtu-{}", mtu), fmt::format("the path MTU is {} bytes", mtu), "one end or a switch on the way",
          "set the MTU of ports and switches alike (ibv_devinfo active_mtu)", 0.6, [mtu](Case& c) {
            if (c.spec.fabric.mtu <= mtu) return false;
            c.spec.fabric.mtu = mtu;
            return true;
          });
    // The deep ones are what fabrics that pause or lose packets leave (flow control that no engine of flows shows).
    for (const double factor : {2.0, 4.0, 8.0, 16.0})
      add(fmt::format("congested-{:.0f}", factor),
          fmt::format("leaves have 1/{:.0f} of their way up (links down, or other traffic)", factor),
          "cables between leaf and spine switches",
          "iblinkinfo: missing or slow uplinks; adaptive routing; flow control and ECMP of RoCE; look for the other "
          "job",
          factor > 4 ? 0.4 : 0.7, [factor](Case& c) { return take_uplinks(c, factor); });
  }

  /// Hosts stay below their leaves: what is gone are ports to the switches above.
  static bool take_uplinks(Case& c, double factor) {
    auto& fabric = c.spec.fabric;
    const bool is_two_tier = fabric.kind == FabricKind::leaf_spine || fabric.kind == FabricKind::rail_optimized;
    if (is_two_tier || fabric.kind == FabricKind::fat_tree) {
      const auto* all = c.parameters.find(fabric.switch_type + ".ports");
      const double ports = fabric.leaf_ports > 0 ? fabric.leaf_ports : all != nullptr ? all->value : 0;
      const double before = fabric.oversubscription;
      if (is_two_tier && ports > 0)
        fabric.leaf_ports = std::max(2, static_cast<int>(std::lround(ports * (before + 1 / factor) / (1 + before))));
      fabric.oversubscription = before * factor;
      return true;
    }
    bool has = false;
    for (auto& cable : fabric.cables) {
      const bool is_between = cable.from.find('.') == std::string::npos && cable.to.find('.') == std::string::npos;
      if (!is_between || cable.count < static_cast<int>(factor)) continue;
      cable.count /= static_cast<int>(factor);
      has = true;
    }
    return has;
  }

  /// One leaf has lost half of its way up: pairs with a host below it are slow.
  void add_leaves() {
    const auto topology = build_topology(one_.spec, one_.parameters, one_.types);
    if (!topology || !topology->can_lose_links()) return;
    const auto leaves = leaves_with_uplinks(*topology);
    if (leaves.size() < 2) return;
    const auto tried = std::min<std::size_t>(leaves.size(), tells_hosts_ ? 8 : 1);
    for (std::size_t i = 0; i < tried; ++i)
      add("leaf-uplinks", "one leaf has half of its way up (congested leaf pair)",
          tells_hosts_ ? fmt::format("{}: its cables to other switches", leaves[i])
                       : "one leaf (logs of pairs of hosts would say which)",
          "iblinkinfo: missing or slow uplinks of the leaf; the other job that crosses it",
          0.5 / static_cast<double>(tried), [leaf = leaves[i]](Case& c) { return put(c.weak_leaf, leaf); });
  }

  const Case& one_;
  int hosts_;
  bool tells_hosts_;
  std::vector<Cause> out_;
};

}  // namespace

std::vector<Cause> causes_for(const Case& one, bool tells_hosts) { return Catalogue(one, tells_hosts).all(); }

}  // namespace fabricast::doctor
