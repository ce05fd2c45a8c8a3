// SPDX-License-Identifier: Apache-2.0
// Device data that no adapter reads: chunks through host memory, by the processor (gdrcopy) or the GPU's copy engine.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/parameter_name.hpp"
#include "mpi/flow_rates.hpp"
#include "mpi/transfer.hpp"
#include "paths/guest.hpp"

namespace fabricast::models::mpi {

/// One chunk of device data copied to or from a host bounce buffer, by gdrcopy or by the GPU's copy engine. The time of
/// the processor's own copy; none where the copy engine does it.
std::optional<Term> Transfers::add_bounce_copy(Message& message, const EndPoint& end, Bytes size, bool is_sender,
                                               double copy_rate) const {
  const double bytes = static_cast<double>(size.value);
  const auto& rate = is_sender ? gdrcopy_read(end) : gdrcopy_write(end);
  const auto& start = context_.parameters.at(is_sender ? "gdrcopy.read_time"_key : "gdrcopy.write_time"_key);
  // What the library does before gdrcopy moves eager device data it also does before a bounce copy.
  const auto& handling = of_processor(context_, end.gpu, "gdrcopy_overhead", own<"mpi.{}.device_overhead">());
  const double by_gdrcopy = start.value + bytes / rate.value;
  const auto& copy = context_.parameters.at("cuda.copy_overhead"_key);
  const double by_cuda = copy.value + bytes / copy_rate;
  const auto& name = context_.topology.device(end.gpu).name;
  if (profile_.uses_gdrcopy && handling.value + by_gdrcopy <= by_cuda) {
    message.terms.push_back(term("device buffer handling", handling.name));
    const auto& most = bytes / rate.value > start.value ? rate : start;
    message.terms.push_back(computed_term(fmt::format("gdrcopy {} {}", is_sender ? "from" : "to", name), by_gdrcopy,
                                          most.name, most.source));
    return message.terms.back();
  }
  message.terms.push_back(
      computed_term(fmt::format("CUDA copy {} {}", is_sender ? "from" : "to", name), by_cuda, copy.name, copy.source));
  return {};
}

/// Device data goes through host memory in chunks: copy out, send, copy in, overlapping.
Message Transfers::staged(const EndPoint& from, const EndPoint& to, Bytes size, std::uint64_t flow,
                          std::string reason) const {
  const auto host_from = from.in_host_memory();
  const auto host_to = to.in_host_memory();
  // Buffers of eager messages are registered with the adapter, not with CUDA: the driver copies through its own.
  const bool is_pageable = size <= profile_.staged_eager_limit;
  const bool is_cut = is_pageable && profile_.staged_segment.value > 0;
  const Bytes chunk = std::min(size, is_cut ? profile_.staged_segment : profile_.staging_chunk);
  auto out = host_or_direct(host_from, host_to, chunk, flow, false, false);
  out.reason = std::move(reason);
  out.is_rendezvous = true;
  std::vector<Crossing> crossings;
  bool uses_engine = false;
  Term copies;  ///< the longer of the two processors'
  out.protocol = is_pageable ? "staged eager" : "staged";
  const auto& by_driver_rate = of_processor(context_, from.memory, "pageable_bandwidth", "cuda.pageable_bandwidth"_key);
  const double pageable = by_driver_rate.value;
  const auto add_end = [&](const EndPoint& end, bool is_sender) {
    if (!end.is_device()) return;
    Route route;
    add_host_copy(context_, end.gpu, end.memory, is_sender, route);
    const double rate = bottleneck(context_, route.crossings);
    crossings.insert(crossings.end(), route.crossings.begin(), route.crossings.end());
    const auto own_copy = add_bounce_copy(out, end, chunk, is_sender, is_pageable ? std::min(rate, pageable) : rate);
    uses_engine = uses_engine || !own_copy;
    if (own_copy && own_copy->time > copies.time) copies = *own_copy;
    for (auto& term : remote_copy_terms(context_, end.gpu, end.hcas.front(), size))
      out.terms.push_back(std::move(term));
  };
  add_end(from, true);
  add_end(to, false);
  const double device_ends = (from.is_device() ? 1 : 0) + (to.is_device() ? 1 : 0);
  if (profile_.device_check.ps > 0)
    out.terms.push_back(term("memory of the buffer looked up", own<"mpi.{}.device_check">(), device_ends));
  // The processor waits for the copy of each segment.
  const auto engine_gap = context_.parameters["cuda.copy_overhead"_key];
  const auto later =
      is_cut ? from_seconds((std::ceil(static_cast<double>(size.value) / static_cast<double>(chunk.value)) - 1) *
                            engine_gap.seconds())
             : Duration{};
  if (is_cut && size > chunk) {
    const auto& copy = context_.parameters.at("cuda.copy_overhead"_key);
    out.terms.push_back(computed_term("later segments copied by the engine", later.seconds(), copy.name, copy.source));
    cap(out.flow, pageable, "copies of later segments", by_driver_rate.name);
  } else if (size > chunk) {
    const auto& per_chunk = context_.parameters.at("cuda.chunk_overhead"_key);
    const double chunks = std::ceil(static_cast<double>(size.value) / static_cast<double>(chunk.value));
    out.terms.push_back(computed_term(fmt::format("{:.0f} staging chunks", chunks), (chunks - 1) * per_chunk.value,
                                      per_chunk.name, per_chunk.source));
  }
  for (const auto& crossing : out.flow.crossings) crossings.push_back(crossing);
  // The chunk's own bytes are in the flow for all chunks together; stages overlap, so the slowest stage counts.
  out.flow.crossings = merged(std::move(crossings));
  out.flow.bytes =
      static_cast<double>(size.value) * (out.flow.bytes > 0 ? out.flow.bytes / static_cast<double>(chunk.value) : 1.0);
  // A message of one chunk is copied while the sender waits; more chunks, and those of a rendezvous over TCP, are
  // queued and overlap.
  const bool is_one_chunk =
      (is_cut || size < profile_.staging_chunk) && !(profile_.is_tcp && size > profile_.device_eager_limit);
  const auto staging_gap = context_.parameters.duration(own<"mpi.{}.staging_gap">());
  const auto copy_gap = std::max(staging_gap, engine_gap) + later;
  const auto copy_parameter =
      staging_gap > engine_gap ? own<"mpi.{}.staging_gap">() : std::string("cuda.copy_overhead"_key);
  const auto& device_gap = on_processor(own<"mpi.{}.device_message_gap">(), to.is_device() ? to : from);
  const auto by_driver = is_pageable ? from_seconds(static_cast<double>(size.value) / pageable) : Duration{};
  const auto by_processor = from_seconds(device_gap.value) + copies.time;
  // What is quicker for one message is not slower for many.
  const bool waits_for_engine = uses_engine || copy_gap + by_driver <= by_processor;
  out.gap = !is_one_chunk      ? profile_.rendezvous_gap + (uses_engine ? by_driver : Duration{})
            : waits_for_engine ? copy_gap + by_driver
                               : by_processor;
  const auto handled_by = copies.time.seconds() > device_gap.value ? copies.parameter : device_gap.name;
  out.gap_parameter = !is_one_chunk ? own<"mpi.{}.rendezvous_gap">() : waits_for_engine ? copy_parameter : handled_by;
  // One processor copies and runs TCP.
  if (is_one_chunk && profile_.is_tcp) {
    out.wire_gap = copy_gap;
    out.wire_gap_parameter = copy_parameter;
  }
  if (!is_one_chunk) {
    out.wire_gap = staging_gap;
    out.wire_gap_parameter = own<"mpi.{}.staging_gap">();
  }
  if (!is_one_chunk)
    cap(out.flow, profile_.staging_bandwidth.bytes_per_s, "pipelined staging", own<"mpi.{}.staging_bandwidth">());
  return out;
}

}  // namespace fabricast::models::mpi
