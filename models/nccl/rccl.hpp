// SPDX-License-Identifier: Apache-2.0
// RCCL, AMD's fork of NCCL, on GPUs of CDNA 3 (MI300X) and CDNA 4 (MI355X): what it decides otherwise than NCCL. Hosts
// whose eight GPUs are all joined take their rings, and their ways between hosts, from tables; a tuning model of the
// architecture chooses algorithm and protocol, ranges of bytes the protocol between hosts; schedules of MSCCL, in which
// every GPU sends to all others at once, come first inside such a host. All else is NCCL's: transports, steps,
// adapters.
//
// Source: ROCm/rccl src/graph/rome_models.cc, search.cc, connect.cc, tuning.cc, src/rccl_wrap.cc, src/enqueue.cc,
// src/misc/msccl and tools/msccl-algorithms (2.22 to 2.27; gfx950 from 2.26 on). PCIe, MI200 and older GPUs have other
// rules.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "fabricast/models/planner.hpp"
#include "nccl/channels.hpp"
#include "nccl/search.hpp"
#include "nccl/tuning.hpp"

namespace fabricast::models::nccl {

/// Whose rules hold for the collectives of a GPU.
Library library_of(const PlanContext& context, DeviceId gpu);

/// Whether the user wrote a setting of `software.nccl`.
bool is_set(const Software& software, const std::string& key);

/// Of a GPU of AMD; nothing where RCCL's rules for its architecture are not modelled.
std::optional<AmdGeneration> generation_of(const PlanContext& context, DeviceId gpu);

/// Why a workload that asks for collectives of GPUs is refused: GPUs of a vendor, or of an architecture of AMD, whose
/// library is not modelled, or of two in one cluster; settings and releases that RCCL does not have for them. Empty:
/// nothing is wrong.
Diagnostics library_faults(const PlanContext& context, const Workload& workload);

/// From how many ranks on RCCL takes PXN: 64, on CDNA 4 32.
std::size_t ranks_with_pxn(const PlanContext& context, DeviceId gpu);
/// Software with the settings that RCCL makes itself: PXN from so many ranks on. Nothing where the user's hold.
std::optional<Software> own_software(const PlanContext& context, const std::vector<DeviceId>& ranks);
/// `context` with them; they must outlive it.
PlanContext with_software(const PlanContext& context, const Software& software);

/// Whether RCCL has MSCCL's schedules for these ranks: all eight of one host, until 2.20 a process each.
bool has_schedules(const PlanContext& context, const Workload& workload, const ChannelGraph& graph, int hosts);

namespace rccl {

/// GB/s that RCCL plans with for one Infinity Fabric link (topo.h, GFX94X_XGMI_WIDTH, and GFX95X_XGMI_WIDTH, though
/// CDNA 4 has links of a fifth more).
constexpr double k_link_gb_per_s = 48;

/// Eight GPUs, each joined with each by one link.
bool is_full_mesh(const Topology& topology, const std::vector<DeviceId>& gpus);

/// The 28 rings of a full mesh without other hosts, by position; every link carries four each way.
std::vector<std::vector<int>> rings();

/// The way of channel `c` through the full mesh of host `host` of `hosts`: it comes in by the adapter beside the first
/// GPU and leaves by the one beside the last. Every second host has it the other way round and the last two of an odd
/// number others, so that a ring's connections join equal adapters.
std::vector<int> way(std::size_t c, std::size_t host, std::size_t hosts);

/// The search for the channels of one host, alone or among several.
HostSearch search(const PlanContext& context, const std::vector<DeviceId>& gpus, bool is_alone);

/// Channels of a communicator, as many times those of the search. CDNA 3: 32 for two GPUs of a host, 24 for four, else
/// twice. CDNA 4: four times, between hosts at most 64.
std::size_t copies_of_channels(AmdGeneration generation, std::size_t found, std::size_t gpus_of_host,
                               std::size_t hosts);

/// How many times `nccl.p2p_network_chunk` a chunk of send and receive between hosts has: from 2.26 on four times from
/// 64 ranks on; on CDNA 4 twice from 16, four times from 32 (src/rccl_wrap.cc).
int steps_of_p2p_chunk(const CommunicatorFacts& facts);

/// RCCL's estimate in microseconds; negative when the combination is disabled.
double estimated_time_us(const CommunicatorFacts& facts, Collective collective, Algorithm algorithm, Protocol protocol,
                         Bytes size);
Choice choose(const CommunicatorFacts& facts, Collective collective, Bytes size, std::optional<Algorithm> algorithm,
              std::optional<Protocol> protocol);
ChannelUse channel_use(const CommunicatorFacts& facts, const Choice& choice, Bytes size, int max_channels);

/// A schedule of MSCCL for eight GPUs of one host.
struct Schedule {
  Protocol protocol = Protocol::ll;
  int rounds = 1;    ///< 1: every GPU sends all it has to every other; 2: an eighth, which comes back reduced
  int channels = 2;  ///< of a pair of GPUs
};
/// The one for `size` bytes of float32; nothing where there is none.
std::optional<Schedule> schedule_of(Collective collective, Bytes size);
/// The same where these ranks have schedules.
std::optional<Schedule> schedule(const CommunicatorFacts& facts, Collective collective, Bytes size);

}  // namespace rccl

}  // namespace fabricast::models::nccl
