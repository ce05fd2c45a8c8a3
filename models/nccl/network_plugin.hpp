// SPDX-License-Identifier: Apache-2.0
// The network plugin by which NCCL reaches adapters between hosts, and what its releases make of NCCL's own settings:
// protocols that they forbid, a latency that they report to NCCL's planning, sizes of buffers and chunks, NVLink SHARP.
// What a plugin costs is the adapter's (transports/plugin.cpp).
//
// Source: aws/aws-ofi-nccl RELEASENOTES.md, doc/efa-env-var.md, src/platform-aws (releases 1.0 to 1.21).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fabricast/models/planner.hpp"
#include "fabricast/result.hpp"

namespace fabricast::models::nccl {

/// 10000 x major + 100 x minor + patch of "1.13.2", "v1.13.2-aws"; 0 where that is no release.
int plugin_release_number(std::string_view text);

/// A plugin on adapters of one type.
struct NetworkPlugin {
  std::string name;               ///< internal, aws-ofi-nccl, nccl-rdma-sharp, tcpxo
  std::string provider;           ///< of libfabric: efa, cxi; empty without it
  int release = 0;                ///< plugin_release_number; 0: not stated, over EFA one from before its rules
  bool sends_runts = false;       ///< over EFA, messages out of a GPU's memory up to `libfabric_runt`
  bool is_simple_only = false;    ///< it sets NCCL_PROTO=simple
  std::string why_no_nvls;        ///< it sets NCCL_NVLS_ENABLE=0; empty: it does not
  double reported_latency_s = 0;  ///< of a message, to NCCL's planning
  double buffer_size = 0;         ///< NCCL_BUFFSIZE, bytes; 0: NCCL's own
  double p2p_chunk = 0;           ///< NCCL_P2P_NET_CHUNKSIZE, bytes; 0: NCCL's own
  double one_rail_bytes = 0;      ///< of a message that one of several joined adapters carries, at most
  std::string tuner;              ///< regions by which it chooses (tuner_regions.hpp); empty: NCCL's own tables
  double nvls_tree_chunk = 0;     ///< NCCL_NVLSTREE_MAX_CHUNKSIZE, bytes; 0: NCCL's own
};

/// The plugin of `hca` as the scenario names it, else by which programs reach such an adapter. Value -1: no adapter.
NetworkPlugin network_plugin(const PlanContext& context, DeviceId hca);

/// A plugin that cannot drive the adapter, or not with this NCCL; releases that are not known.
Diagnostics plugin_faults(const PlanContext& context, const Workload& workload, const std::vector<DeviceId>& hcas);

/// What is taken of it, for the settings of a result; empty where nobody names one and NCCL's own is used.
std::vector<GivenUsed> plugin_settings(const PlanContext& context, const NetworkPlugin& plugin, DeviceId hca);

/// What of its release is not modelled.
std::vector<std::string> plugin_assumptions(const PlanContext& context, const NetworkPlugin& plugin, DeviceId hca,
                                            int num_hosts);

/// Queue pairs of a connection of NCCL's by `hca` (NCCL_IB_QPS_PER_CONNECTION); 1 where it does not speak verbs, and
/// where all of them take one way.
int queue_pairs_of(const PlanContext& context, DeviceId hca);

/// Every message goes over all queue pairs (NCCL_IB_SPLIT_DATA_ON_QPS): NCCL's default until 2.19.
bool splits_over_queue_pairs(const Software& software);

/// What follows "changes no time" of `ib_qps_per_connection` and `ib_split_data_on_qps`.
std::string why_queue_pairs_unread(const PlanContext& context, std::string_view key);

/// What follows "changes no time" of the keys `plugin` and `plugin_version`; empty where they change something.
/// `asks_for_collnet`: the workload reduces and CollNet is on.
std::string why_plugin_unread(const PlanContext& context, std::string_view key, bool crosses_hosts,
                              bool asks_for_collnet);

}  // namespace fabricast::models::nccl
