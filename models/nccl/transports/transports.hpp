// SPDX-License-Identifier: Apache-2.0
// What each transport adds to the steps of an algorithm and how far it limits their rate: NVLink stores, host memory,
// network adapters with their plugins, sockets. Equations: docs/models/nccl.md.
#pragma once

#include <limits>
#include <optional>
#include <string_view>

#include "nccl/algorithms/algorithm.hpp"

namespace fabricast::models::nccl {

// NVLink: nvlink.cpp.
/// Bytes per second of a flow that its slowest NVLink carries; infinite without.
struct NvlinkLimit {
  double rate = std::numeric_limits<double>::infinity();
  int resource = -1;
};
/// Where thread blocks reach `share` (0 to 1) of what a link carries.
NvlinkLimit slowest_nvlink(const Resources& resources, const Flow& flow, double share);
/// Blocks come upon a link when they do, not in step: of its rate and theirs the sum of a negative power.
void add_contention(Flow& flow, NvlinkLimit& limit, double power);
/// Thread blocks reach less of an NVLink with their stores (or NVLink SHARP operations) than a copy engine does.
void limit_nvlink_stores(Flow& flow, const Steps& steps);
/// Bytes per second of the flow that they reach of its NVLinks; infinite without.
double rate_of_stores(const Flow& flow, const Steps& steps);

// Host memory: host_memory.cpp.
/// Bytes per second and the parameter it comes from.
struct BlockRate {
  double value = 0;
  std::string_view name;
};
/// The slowest link of a GPU of the host on its way to memory; empty where none has such a way.
std::optional<LinkId> slowest_way_to_memory(const PlanContext& context, int host);
/// What a thread block moves through host memory.
BlockRate host_memory_rate(const Operation& op);
/// Hops whose slots stay in the processor's last-level cache do not load its memory, and thread blocks read them
/// faster.
void keep_slots_in_cache(Flow& flow, const Steps& steps);
/// Thread blocks wait for what they read over PCIe, the longer the nearer all of them are to what the link carries.
void queue_reads(Flow& flow, const Steps& steps);
/// Takes the thread blocks' own copies out of the flow as far as others use that time; `rate_of_block` is what they
/// move without waiting for reads.
void hide_local_work(Flow& flow, const Steps& steps, double rate_of_block);
/// When the GPUs of both sockets work through host memory, each memory gives less than alone.
void limit_host_memories(Flow& flow, const Steps& steps);

// Peer-to-peer over PCIe: pcie.cpp.
/// A PCIe link carries less each way while GPUs send and receive over it at once.
void limit_pcie_links(Flow& flow, const Steps& steps);

// Sockets: sockets.cpp.
/// Sockets between processes of one host.
bool is_loopback(const Operation& op, TransportKind kind);
double socket_data_time(const Steps& steps);
double socket_message_time(const Steps& steps);
/// Inside a host: of the rate that a proxy thread reaches alone between two ranks.
double loopback_speed(const Steps& steps);
/// What the processor leaves to host threads, at most 1.
double socket_thread_speed(const Operation& op);
/// At which the last slice of a flow arrives.
double slice_rate(const Flow& flow, const Hops& hops, const Steps& steps);
void limit_sockets(Flow& flow, const Steps& steps);

// NCCL's network plugins on adapters without verbs: plugin.cpp.
bool has_plugin(const Operation& op, const Hops& hops);
/// Bytes of a connection's buffer for Simple (NCCL_BUFFSIZE), and how many times NCCL's own that is.
double buffer_size(const Operation& op);
double buffer_factor(const Operation& op);
/// Bytes of a chunk of send and receive between hosts, no more than a step of the buffer (NCCL_P2P_NET_CHUNKSIZE).
double network_chunk_of_pairs(const Operation& op);
void add_plugin(Flow& flow, const Hops& hops, const Steps& steps);
void add_rails(Flow& flow, const Hops& hops, const Steps& steps);
void add_immediate_copies(Flow& flow, const Hops& hops, const Steps& steps);
void add_rendezvous(Flow& flow, const Hops& hops, const Steps& steps);
void add_flush(Flow& flow, const Hops& hops, const Steps& steps);
void add_copies_into_gpu(Flow& flow, const Hops& hops, const Steps& steps);
void limit_plugin(Flow& flow, const Steps& steps);
/// It comes after all other latencies.
void add_waits_for_copies(Flow& flow, const Steps& steps);
/// Slices arrive as fast as without it: it comes after what they wait for.
void limit_late_receivers(Flow& flow, const Steps& steps);
/// Where the thread of one process is the slowest part, other slices of Simple keep it busy while one is collected.
bool is_paced_by_process(const Flow& flow, const Hops& hops, const Steps& steps);

// Between hosts: network.cpp.
/// What a core needs at least for each message that it posts, sent or received: by sockets, by libfabric, by verbs.
double message_time(const Hops& hops, const Steps& steps);
/// What says so.
const Parameter& message_parameter(const Hops& hops, const Steps& steps);
/// What the proxy of the busiest process spends on the messages that meet while a chunk makes one hop.
double proxy_time(const Hops& hops, const Steps& steps);
/// Loops of a step that pay hops of this kind.
double paid_loops(const Hops& hops, const Steps& steps);
/// The proxy sends a slice when all of it lies in its buffer, and the GPU at the other end sees it when all of it has
/// arrived: what `count` hops of the kind add.
Term store_and_forward_term(const Flow& flow, const Hops& hops, const Steps& steps, double count);
void add_store_and_forward(Flow& flow, const Steps& steps);
/// One core checks all lines of LL that a process sends: nothing is done before it is. It comes after all latencies.
void limit_line_checks(Flow& flow, const Steps& steps);
void limit_network_channels(Flow& flow, const Steps& steps);
/// Thread blocks do their local work while a limit below `before`, the flow's rate alone before it, holds the bytes up.
void hide_work_behind_limit(Flow& flow, const Steps& steps, double before);

}  // namespace fabricast::models::nccl
