// SPDX-License-Identifier: Apache-2.0
// Messages between two ranks of one host: docs/MODELS.md, "Point to point".
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/parameter_name.hpp"
#include "mpi/cache.hpp"
#include "mpi/flow_rates.hpp"
#include "mpi/transfer.hpp"
#include "paths/guest.hpp"

namespace fabricast::models::mpi {

/// Data follow a header in shared memory, so loads from the GPU are not aligned: at most the rate seen of those.
const Parameter& Transfers::gdrcopy_read_inside(const EndPoint& end) const {
  const auto& aligned = gdrcopy_read(end);
  const auto& unaligned = context_.parameters.at("mpi.shared_memory.gdrcopy_read_bandwidth"_key);
  return aligned.value <= unaligned.value ? aligned : unaligned;
}

/// The sender's processor reads a small device message by gdrcopy into shared memory, the receiver's writes it out.
void Transfers::add_eager_inside(Message& message, const EndPoint& from, const EndPoint& to, Bytes size) const {
  const auto& read = gdrcopy_read_inside(from);
  const auto bytes = static_cast<double>(size.value);
  message.sender_copies = from_seconds(bytes / read.value);
  message.receiver_copies = from_seconds(bytes / gdrcopy_write(to).value);
  message.protocol = "eager, gdrcopy";
  message.gap_parameter = "mpi.shared_memory.device_gap"_key;
  message.gap = context_.parameters["mpi.shared_memory.device_gap"_key];
  message.wire_gap = message.gap;
  for (const auto* end : {&from, &to}) add_device_handling(message, *end, true);
  message.terms.push_back(term("gdrcopy from the GPU", "gdrcopy.read_time"_key));
  message.terms.push_back(term("gdrcopy to the GPU", "gdrcopy.write_time"_key));
  cap(message.flow, read.value, "gdrcopy from the GPU", read.name);
}

/// Without gdrcopy UCX packs and unpacks a short message of device buffers by copies of the GPUs' engines through its
/// own buffers, each of which the processor waits for.
void Transfers::add_eager_by_engines(Message& message, const EndPoint& from, Bytes size) const {
  const auto& copy = context_.parameters.at("cuda.copy_overhead"_key);
  const auto& pageable = of_processor(context_, from.memory, "pageable_bandwidth", "cuda.pageable_bandwidth"_key);
  message.protocol = "eager, CUDA copies";
  message.terms.push_back(term("CUDA copy from the GPU", copy.name));
  message.terms.push_back(term("CUDA copy to the GPU", copy.name));
  message.sender_copies = message.receiver_copies =
      from_seconds(copy.value + static_cast<double>(size.value) / pageable.value);
  message.gap = message.wire_gap = message.sender_copies;
  message.gap_parameter = copy.name;
  cap(message.flow, pageable.value / 2, "copies out of one GPU and into the other", pageable.name);
}

/// A short message of host buffers lies in the queue itself; up to the size of its elements each line more crosses
/// between the cores, then it lies beside the queue.
Term Transfers::shared_memory_software(const EndPoint& from, bool is_of_host, Bytes size) const {
  const auto& parameters = context_.parameters;
  const auto& full =
      of_processor(context_, from.memory, "shared_memory_overhead",
                   profile_.has_old_ucx ? "mpi.shared_memory.overhead.ucx1.7"_key : "mpi.shared_memory.overhead"_key);
  const double saving = std::min(full.value, parameters.at("mpi.shared_memory.short_saving"_key).value);
  const double element = parameters.at("mpi.shared_memory.short_limit"_key).value;
  const double filled = is_of_host ? std::min(1.0, static_cast<double>(size.value) / element) : 1;
  return computed_term("MPI software, shared memory", full.value - (1 - filled) * saving, full.name, full.source);
}

/// Chunks are copied out of one GPU and into the other; the second copy of a chunk overlaps the first one of the next,
/// so the first chunk pays both. The library notices a device message no sooner than one it sends by CUDA IPC, and each
/// message of a window starts a copy of its own.
void Transfers::add_staged_inside(Message& message, const EndPoint& from, const EndPoint& to, Bytes size,
                                  Route& route) const {
  const double together = add_staged_copy(context_, from.gpu, to.gpu, from.memory, route);
  const auto& handling = context_.parameters.at(own<"mpi.{}.cuda_ipc_overhead">());
  const auto& copy = context_.parameters.at("cuda.copy_overhead"_key);
  message.protocol = "staged";
  message.is_rendezvous = true;
  message.terms.push_back(term("copy to host memory", handling.value > copy.value ? handling.name : copy.name));
  message.terms.push_back(term("copy from host memory", copy.name));
  const double chunk = static_cast<double>(std::min(size, profile_.staging_chunk).value);
  const auto& share = context_.parameters.at("cuda.staged_copy_share"_key);
  const double alone = bottleneck(context_, route.crossings);
  message.terms.push_back(computed_term("first chunk in host memory", chunk / alone, share.name, share.source));
  if (size > profile_.staging_chunk) {
    const double chunks = std::ceil(static_cast<double>(size.value) / chunk);
    message.terms.push_back(term(fmt::format("{:.0f} staging chunks", chunks), "cuda.chunk_overhead"_key, chunks - 1));
  }
  cap(message.flow, together, "copies through host memory", share.name);
  cap(message.flow, profile_.staging_bandwidth.bytes_per_s, "pipelined staging", own<"mpi.{}.staging_bandwidth">());
  const auto staging_gap = context_.parameters.duration(own<"mpi.{}.staging_gap">());
  message.wire_gap = std::max(staging_gap, from_seconds(copy.value));
  message.wire_gap_parameter = staging_gap == message.wire_gap ? own<"mpi.{}.staging_gap">() : copy.name;
  if (message.wire_gap > message.gap) {
    message.gap = message.wire_gap;
    message.gap_parameter = message.wire_gap_parameter;
  }
}

/// Eager, or where nobody may read another's memory: the sender's core copies pieces into shared memory, the receiver's
/// out of it, one piece apart. Else, in a rendezvous, the receiver's core copies from the sender's memory. What another
/// core has written comes at the rate of lines between cores; what a benchmark never writes again lies in the copying
/// core's own cache, where it fits with its copy. Several that read one process at once pin the same pages: they are no
/// faster than copies between cores.
void Transfers::add_core_copies(Message& message, const EndPoint& from, Bytes size, bool is_kept) const {
  const auto& parameters = context_.parameters;
  const auto bytes = static_cast<double>(size.value);
  const auto& between = of_processor(
      context_, from.memory, "shared_memory_copy_bandwidth",
      profile_.has_old_ucx ? "mpi.shared_memory.copy_bandwidth.ucx1.7"_key : "mpi.shared_memory.copy_bandwidth"_key);
  const auto cap_at = [&](double rate, const Parameter& owner) {
    message.flow.rate_cap = rate;
    message.flow.cap_name = "memory copy of one core";
    message.flow.cap_parameter = owner.name;
  };
  const bool is_eager = size <= profile_.inside_eager_limit;
  const auto& usual = parameters.at("mpi.shared_memory.rendezvous"_key);
  const auto& rendezvous = parameters.at(profile_.inside_rendezvous);
  if (!is_eager) message.terms.push_back(term("rendezvous inside the host", rendezvous.name));
  message.is_rendezvous = !is_eager && profile_.may_attach;
  if (!message.is_rendezvous) {
    const double piece = std::min(bytes, static_cast<double>(profile_.inside_segment.value));
    cap_at(between.value * bytes / (bytes + piece), between);
    // Where the sides do not overlap both cores are held until both copies are done.
    const double held = !is_eager && profile_.copies_whole ? 2 : 1;
    message.sender_copies = message.receiver_copies = from_seconds(held * bytes / between.value);
    message.window_rate = between.value / held;
    // In a window nothing hides what a message takes that lies beside the queue, and a core that handles it copies
    // before or after.
    if (bytes > parameters.at("mpi.shared_memory.short_limit"_key).value)
      message.gap = std::max(message.gap, shared_memory_software(from, true, Bytes{0}).time);
    message.wire_gap = message.gap;
    // A library whose rendezvous takes long works on it at both sides.
    if (!is_eager) message.wire_gap += from_seconds(std::max(0.0, rendezvous.value - usual.value) / 2);
    return;
  }
  message.wire_gap = parameters["mpi.shared_memory.rendezvous"_key];
  message.wire_gap_parameter = "mpi.shared_memory.rendezvous"_key;
  // Of old UCX, and of a processor that has a rate of its own, the copies alone are known: attached memory is taken to
  // be slower or faster in proportion.
  const auto& attached = parameters.at("mpi.shared_memory.attach_bandwidth"_key);
  const double fresh = attached.value * between.value / parameters.at("mpi.shared_memory.copy_bandwidth"_key).value;
  cap_at(fresh, attached);
  if (is_kept && !profile_.has_old_ucx) {
    // What a core moves to and from memory, it copies in its cache; beyond it each byte is read and written.
    const auto& cache = of_processor(context_, from.memory, "core_cache", "mpi.core_cache"_key);
    const auto& memory = parameters.at("mpi.core_memory_bandwidth"_key);
    const double kept = memory.value / (1 + share_beyond_cache(2 * bytes, cache.value));
    if (kept > fresh) cap_at(kept, memory);
  }
  message.receiver_copies = from_seconds(bytes / message.flow.rate_cap);
  message.shared_read = from_seconds(bytes / std::min(message.flow.rate_cap, std::max(fresh, between.value)));
}

/// Processes that share a GPU: read and written in the same memory.
void Transfers::add_copy_inside_gpu(Message& out, DeviceId gpu) const {
  const auto& type = context_.topology.device(gpu).type;
  out.terms.push_back(term("CUDA IPC handling", own<"mpi.{}.cuda_ipc_overhead">()));
  const auto architecture = std::string(context_.topology.attribute(type, "architecture"));
  const auto& turn = context_.parameters.first_of(
      {named<"cuda.process_switch.{}">(architecture), std::string("cuda.process_switch"_key)});
  out.terms.push_back(term("the GPU turns to the other process", turn.name));
  out.protocol = "cuda ipc, same GPU";
  out.is_rendezvous = true;
  const double share = context_.parameters["cuda.device_copy_share"_key];
  cap(out.flow, share * device_value(context_, gpu, "memory_bandwidth") / 2, "GPU memory, read and write",
      type + ".memory_bandwidth");
}

/// Between two GPUs of a host: short messages through host memory, long ones by peer access where there is any.
void Transfers::add_way_between_gpus(Message& out, const EndPoint& from, const EndPoint& to, Bytes size,
                                     Route& route) const {
  const auto path = context_.topology.path_in_host(from.gpu, to.gpu);
  const auto gate = peer_gate_of(context_, from.gpu, path && path->uses_nvlink);
  const bool is_near = gate.is_open && path && is_peer_path(context_, from.gpu, to.gpu, *path);
  const bool has_eager = profile_.uses_gdrcopy || profile_.unpacks_by_engine;
  if (has_eager && size <= context_.parameters["mpi.shared_memory.device_eager_limit"_key]) {
    if (profile_.uses_gdrcopy)
      add_eager_inside(out, from, to, size);
    else
      add_eager_by_engines(out, from, size);
    add_host_copy(context_, from.gpu, from.memory, true, route);
    add_host_copy(context_, to.gpu, from.memory, false, route);
  } else if (context_.software.nccl_p2p && is_near) {
    out.wire_gap = context_.parameters["mpi.cuda_ipc.window_gap"_key];
    out.terms.push_back(term("CUDA IPC handling", own<"mpi.{}.cuda_ipc_overhead">()));
    out.protocol = path->uses_nvlink ? "cuda ipc over NVLink" : "cuda ipc over PCIe";
    out.is_rendezvous = true;
    add_dma(context_, *path, false, route);
  } else {
    out.reason = gate.is_open ? "no peer-to-peer path between the GPUs" : gate.reason;
    add_staged_inside(out, from, to, size, route);
  }
}

/// Shared memory, CUDA IPC over NVLink or PCIe, or copies through host memory, inside one host.
Message Transfers::within_host(const EndPoint& from, const EndPoint& to, Bytes size, bool is_kept) const {
  Message out;
  // Adapters have no part in it: of short messages each side does half of what one takes.
  const auto shortest = shared_memory_software(from, true, Bytes{0});
  out.gap = out.side = shortest.time / 2;
  out.gap_parameter = shortest.parameter;
  out.terms.push_back(shared_memory_software(from, !from.is_device() && !to.is_device(), size));
  if (!profile_.inside_overhead.empty()) {
    const auto& own = context_.parameters.at(profile_.inside_overhead);
    const double usual = context_.parameters.at("mpi.shared_memory.overhead"_key).value;
    out.terms.push_back(
        computed_term("the library's progress", std::max(0.0, own.value - usual), own.name, own.source));
  }
  out.protocol = "shared memory";
  out.flow.bytes = static_cast<double>(size.value);
  if (size.value == 0) return out;
  if (from.is_device() && to.is_device() && from.gpu == to.gpu) {
    add_copy_inside_gpu(out, from.gpu);
    return out;
  }
  if (from.is_device() || to.is_device()) {
    out.gap_parameter = "mpi.cuda_ipc.gap"_key;
    out.gap = context_.parameters["mpi.cuda_ipc.gap"_key];
  }
  Route route;
  if (from.is_device() && to.is_device()) {
    add_way_between_gpus(out, from, to, size, route);
  } else if (from.is_device() || to.is_device()) {
    out.terms.push_back(term("copy between GPU and host memory", "cuda.copy_overhead"_key));
    out.protocol = "cuda copy";
    if (from.is_device()) {
      add_host_copy(context_, from.gpu, to.memory, true, route);
    } else {
      add_host_copy(context_, to.gpu, from.memory, false, route);
    }
  } else {
    add_core_copies(out, from, size, is_kept);
    add_dram(context_, from.memory, 5, route);
  }
  out.terms.push_back(
      computed_term("links inside the host", route.latency.seconds(), "topology", "link and forwarding latencies"));
  out.flow.crossings = merged(std::move(route.crossings));
  return out;
}

}  // namespace fabricast::models::mpi
