// SPDX-License-Identifier: Apache-2.0
// The settings of NCCL, and where its other environment variables are said.
#include "config/nccl_schema.hpp"

#include <string>
#include <utility>
#include <vector>

#include "config/schema_parts.hpp"
#include "fabricast/nccl_variables.hpp"

namespace fabricast::config {

using namespace parts;

namespace {

/// [environment variable without NCCL_, in lower case] what to write instead, or why nothing.
std::vector<std::pair<std::string, std::string>> other_variables() {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& one : nccl_variables())
    if (!one.hint.empty()) out.emplace_back(one.name, one.hint);
  return out;
}

}  // namespace

SchemaPtr nccl_settings() {
  Schema schema = *mapping(
      "the NCCL settings",
      {{"version", text(), "major.minor[.patch]; default 2.28"},
       {"p2p", flag(), "peer-to-peer between GPUs (NCCL_P2P_DISABLE=0); default on"},
       {"shm", flag(), "shared memory (NCCL_SHM_DISABLE=0); default on"},
       {"nvls", any_of({flag(), choice({"auto"})}),
        "NVLink SHARP (NCCL_NVLS_ENABLE); default auto: on where GPUs, NVSwitches, release and VM allow it"},
       {"collnet", flag(),
        "the fabric's switches reduce: SHARP by the plugin of the InfiniBand stack (NCCL_COLLNET_ENABLE); default off"},
       {"symmetric_memory", flag(),
        "buffers lie in windows of symmetric memory (ncclCommWindowRegister with NCCL_WIN_COLL_SYMMETRIC, nccl-tests "
        "-R 2), for which NCCL has kernels of its own from 2.27 on; default off"},
       {"gdr_level", choice({"pix", "pxb", "phb", "sys"}),
        "farthest GPU an HCA reaches by GPUDirect RDMA (NCCL_NET_GDR_LEVEL); default pxb, from 2.27 on phb for GPUs on "
        "NVLink-C2C"},
       {"pxn", flag(), "GPUs send through HCAs of others (NCCL_PXN_DISABLE=0); default on from 2.12"},
       {"cross_nic", integer(0, 2),
        "0: a ring's channel leaves a host by the HCA it came in by; 1: by the one beside its last GPU; 2, the "
        "default: "
        "by another where that is faster, from 2.21 on in pairs of channels that swap theirs (NCCL_CROSS_NIC)"},
       {"p2p_pxn_level", integer(0, 2),
        "send and receive: 0 own HCA, 1 the peer's where near or over NVLink, 2 by the GPU beside "
        "it (NCCL_P2P_PXN_LEVEL); default 2"},
       {"ib_qps_per_connection", integer(1, 128),
        "queue pairs of a connection over verbs, each with a way of its own where the fabric hashes flows "
        "(NCCL_IB_QPS_PER_CONNECTION, from 2.10 on); default 1"},
       {"ib_split_data_on_qps", flag(),
        "every message over all of them, else message by message (NCCL_IB_SPLIT_DATA_ON_QPS, from 2.18 on); default on "
        "before 2.20, off since"},
       {"plugin", choice({"auto", "internal", "aws-ofi-nccl", "nccl-rdma-sharp", "tcpxo"}),
        "network plugin (NCCL_NET_PLUGIN); internal is NCCL's own; default auto: what reaches the adapters"},
       {"plugin_version", text(),
        "release of aws-ofi-nccl in quotes, 1.0 to 1.21: what it sets by itself; default: over EFA the one made for "
        "this NCCL"},
       {"socket_nthreads", integer(0, 16),
        "helper threads of a connection over TCP between hosts (NCCL_SOCKET_NTHREADS); default by the adapter's "
        "vendor: 0, the proxy itself"},
       {"nsocks_perthread", integer(1, 64),
        "sockets of each of them (NCCL_NSOCKS_PERTHREAD), 64 of a connection at most; default by the adapter's "
        "vendor: 1"}});
  schema.said_elsewhere = other_variables();
  schema.prefix = "nccl_";
  return make(std::move(schema));
}

}  // namespace fabricast::config
