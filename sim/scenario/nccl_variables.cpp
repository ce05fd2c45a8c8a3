// SPDX-License-Identifier: Apache-2.0
#include "fabricast/nccl_variables.hpp"

#include <algorithm>
#include <array>

namespace fabricast {

namespace {

constexpr std::string_view k_by_topology =
    "the adapters of the topology are those that NCCL may use: remove others from its hosts";
constexpr std::string_view k_channels = "write 'channels' in the workload, NCCL's least and most number of them";
constexpr std::string_view k_pair_channels = "not modelled, pairs open the channels that NCCL's own rule gives";
constexpr std::string_view k_registered = "not modelled, buffers are not registered without 'symmetric_memory'";
constexpr std::string_view k_own = "not modelled, NCCL's own default holds";
constexpr std::string_view k_timeless = "leave it out, it changes no time that is modelled";

constexpr NcclVariable timeless(std::string_view name) { return {name, k_timeless, true}; }

constexpr std::array k_variables{
    // Keys of the same name.
    NcclVariable{"cross_nic", ""},
    NcclVariable{"p2p_pxn_level", "", false, 12},
    NcclVariable{"ib_qps_per_connection", "", false, 10},
    NcclVariable{"ib_split_data_on_qps", "", false, 18},
    NcclVariable{"socket_nthreads", ""},
    NcclVariable{"nsocks_perthread", ""},
    // Other keys.
    NcclVariable{"algo", "write 'algorithm' in the workload"},
    NcclVariable{"proto", "write 'protocol' in the workload"},
    NcclVariable{"min_nchannels", k_channels},
    NcclVariable{"max_nchannels", k_channels},
    NcclVariable{"min_ctas", k_channels},
    NcclVariable{"max_ctas", k_channels},
    NcclVariable{"p2p_disable", "write 'p2p: off'"},
    NcclVariable{"p2p_level", "peer access is NCCL's own by distance and release, or none with 'p2p: off'"},
    NcclVariable{"shm_disable", "write 'shm: off'"},
    NcclVariable{"nvls_enable", "write 'nvls: on' or 'nvls: off'"},
    NcclVariable{"collnet_enable", "write 'collnet: on'"},
    NcclVariable{"pxn_disable", "write 'pxn: off'"},
    NcclVariable{"net_gdr_level", "write 'gdr_level'"},
    NcclVariable{"net_plugin", "write 'plugin'"},
    NcclVariable{"net", "write 'transport: tcp' (Socket) or 'transport: rdma' (IB) beside 'nccl'"},
    NcclVariable{"ib_disable", "write 'transport: tcp' beside 'nccl'"},
    // The topology.
    NcclVariable{"ib_hca", k_by_topology},
    NcclVariable{"socket_ifname", k_by_topology, true},
    NcclVariable{"ib_merge_nics", "an adapter of two ports is one device, e.g. connectx-7-bond-2x200"},
    NcclVariable{"ib_adaptive_routing", "write 'routing: adaptive' in the topology's fabric"},
    NcclVariable{"mnnvl_enable",
                 "GPUs of one NVLink domain are one host, e.g. gb200-nvl72, or hosts of their own, e.g. "
                 "gb200-nvl4-tray"},
    NcclVariable{"topo_file", "write it as a topology: fabricast import nccl-topo"},
    // Parameters.
    NcclVariable{"buffsize", "write a size under 'parameters' of the topology: 'nccl.buffer_size'"},
    NcclVariable{"nvls_chunksize", "write a size under 'parameters' of the topology: 'nccl.chunk.nvls'"},
    NcclVariable{"p2p_net_chunksize", "write a size under 'parameters' of the topology: 'nccl.p2p_network_chunk'"},
    NcclVariable{"p2p_ll_threshold", "write a size under 'parameters' of the topology: 'nccl.p2p_ll_limit'"},
    // Not modelled.
    NcclVariable{"launch_mode", k_own},
    NcclVariable{"ll_buffsize", k_own},
    NcclVariable{"ll128_buffsize", k_own},
    NcclVariable{"nthreads", k_own},
    NcclVariable{"ll128_nthreads", k_own},
    NcclVariable{"tree_threshold", k_own},
    NcclVariable{"ll_threshold", k_own},
    NcclVariable{"net_gdr_read", k_own},
    NcclVariable{"net_gdr_c2c", k_own},
    NcclVariable{"net_shared_buffers", k_own},
    NcclVariable{"alloc_p2p_net_ll_buffers", k_own},
    NcclVariable{"nvb_disable", k_own},
    NcclVariable{"shm_use_cuda_memcpy", k_own},
    NcclVariable{"p2p_use_cuda_memcpy", k_own},
    NcclVariable{"p2p_direct_disable", k_own},
    NcclVariable{"ib_pci_relaxed_ordering", k_own},
    NcclVariable{"ib_ar_threshold", k_own},
    NcclVariable{"netdevs_policy", k_own},
    NcclVariable{"cta_policy", k_own},
    NcclVariable{"nvls_nchannels", k_own},
    NcclVariable{"nchannels_per_net_peer", k_pair_channels},
    NcclVariable{"min_p2p_nchannels", k_pair_channels},
    NcclVariable{"max_p2p_nchannels", k_pair_channels},
    NcclVariable{"graph_register", k_registered},
    NcclVariable{"local_register", k_registered},
    // What starts a job, names things or prints.
    timeless("debug"),
    timeless("debug_file"),
    timeless("debug_subsys"),
    timeless("topo_dump_file"),
    timeless("graph_dump_file"),
    timeless("comm_id"),
    timeless("conf_file"),
    timeless("ib_gid_index"),
    timeless("ib_timeout"),
    timeless("ib_retry_cnt"),
    timeless("socket_family"),
    timeless("dmabuf_enable"),
    timeless("ignore_cpu_affinity"),
    timeless("set_thread_name"),
};

constexpr std::string_view k_prefix = "NCCL_";

/// NCCL's names are ASCII.
constexpr char upper(char letter) {
  return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter;
}

}  // namespace

std::span<const NcclVariable> nccl_variables() { return k_variables; }

const NcclVariable* nccl_variable(std::string_view variable) {
  if (!variable.starts_with(k_prefix)) return nullptr;
  const auto name = variable.substr(k_prefix.size());
  const auto found = std::ranges::find_if(
      k_variables, [&](const NcclVariable& one) { return std::ranges::equal(one.name, name, {}, upper); });
  return found == k_variables.end() ? nullptr : &*found;
}

}  // namespace fabricast
