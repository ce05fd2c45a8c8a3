// SPDX-License-Identifier: Apache-2.0
// What NCCL's tuning model changed from release to release: latencies in microseconds, bandwidths in GB/s.
// Source: NVIDIA/nccl src/graph/tuning.cc from 2.5 to 2.29.
#pragma once

#include <array>
#include <cstddef>

#include "nccl/tuning.hpp"

namespace fabricast::models::nccl {

/// Where a hop goes, as NCCL counts it.
enum class HopLink { nvlink, pcie, net };

/// Start of an operation over trees or rings.
double base_latency(int version, Algorithm algorithm, Protocol protocol);
/// One hop of it.
double hop_latency(int version, HopLink link, Algorithm algorithm, Protocol protocol);

/// Start of NVLink SHARP, and one hop of its trees between nodes.
double nvls_latency(int version);
double nvls_tree_hop_latency(int version);
/// Once to the fabric's switches, which reduce, and back.
double nvls_collnet_latency();

/// Least upper bound of all channels together: 235 for Ampere in 2.7 to 2.17, 370 for Hopper in 2.17.
double bus_limit(const CommunicatorFacts& facts);
/// Of LL: inside a node by GPU, between nodes by processor.
double ll_limit(const CommunicatorFacts& facts);
/// Part of a ring's bandwidth that LL and LL128 keep.
double ring_share(const CommunicatorFacts& facts, Collective collective, Protocol protocol);
/// Most that LL128 gets over all channels of a ring, or of a tree.
double ring_ll128_limit(const CommunicatorFacts& facts, Collective collective);
double tree_ll128_limit(const CommunicatorFacts& facts, Collective collective);
/// Part of a ring's bandwidth that trees keep, and the most they get.
double tree_share(const CommunicatorFacts& facts);
double tree_limit(const CommunicatorFacts& facts, Protocol protocol);
/// Factor on trees whose inner nodes meet the network by one GPU, from 2.18 on.
double plain_tree_share(const CommunicatorFacts& facts);
/// Network hops of one round of a ring: from 2.12 to 2.22 an all-reduce counts the one that closes it.
double ring_inter_steps(const CommunicatorFacts& facts, Collective collective);
/// Part of that which LL128 keeps.
double tree_ll128_share(const CommunicatorFacts& facts);

/// Algorithm bandwidth of NVLink SHARP.
double nvls_bandwidth(const CommunicatorFacts& facts);

/// Factor on a tree's bandwidth at a size.
double tree_correction(Protocol protocol, Bytes size);
/// The same on NVLSTree's: only with Blackwell on x86 processors, as on a tree of Simple.
double nvls_tree_correction(const CommunicatorFacts& facts, Bytes size);
/// Factor on the latency of a ring of Simple between nodes, from some size on.
double ring_plateau(const CommunicatorFacts& facts, Bytes size);

}  // namespace fabricast::models::nccl
