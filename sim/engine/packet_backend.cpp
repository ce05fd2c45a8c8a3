// SPDX-License-Identifier: Apache-2.0
#include "engine/packet_backend.hpp"

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"
#include "engine/host_limits.hpp"
#include "engine/packet_demand.hpp"
#include "fabricast/models/payload.hpp"

namespace fabricast::engine {

namespace {

using models::Flow;

/// Pieces in which flows beside the fabric ask for what they share inside a host.
constexpr double k_most_pieces = 1024;
constexpr double k_least_piece = 4096;  ///< a packet: turns are as long as those of flows on the fabric

packet::Verb verb_of(const Workload& workload) {
  const auto& verb = workload.transport.verb;
  return verb == "read" ? packet::Verb::read : (verb == "send" ? packet::Verb::send : packet::Verb::write);
}

}  // namespace

PacketBackend::PacketBackend(const PacketInput& input, PacketPairs& pairs, const packet::Network& network,
                             const packet::Options& options)
    : input_(input), topology_(input.resources.topology()), pairs_(pairs), simulation_(network, options) {
  add_host_paths();
}

void PacketBackend::add_host_paths() {
  host_paths_ = make_host_paths(input_.parameters, input_.resources, input_.jobs);
  std::vector<packet::StageId> stages;
  for (const double rate : host_paths_.capacities) stages.push_back(simulation_.add_stage(Bandwidth{rate}));
  path_ids_.push_back(packet::HostPathId::none);
  for (std::size_t p = 1; p < host_paths_.paths.size(); ++p) {
    packet::HostPath path;
    for (const auto& use : host_paths_.paths[p].send) path.send.push_back({stages[use.stage], use.times});
    for (const auto& use : host_paths_.paths[p].receive) path.receive.push_back({stages[use.stage], use.times});
    path_ids_.push_back(simulation_.add_host_path(path));
  }
}

std::vector<std::size_t> PacketBackend::starting_order(const models::Node& node) const {
  return engine::starting_order(topology_, node);
}

void PacketBackend::leave_out(const models::Node& node, std::int64_t repeats) {
  left_out_bytes_ += payload_of(node) * static_cast<double>(repeats);
}

void PacketBackend::run(std::function<void(FlowRef)> on_end) {
  on_end_ = std::move(on_end);
  simulation_.on_delivered([this](const packet::Completion& done) {
    auto& transfer = transfers_[done.tag];
    if (--transfer.messages_left == 0) on_end_(FlowRef(transfer.flow));
  });
  simulation_.run();
}

void PacketBackend::start_flow(FlowRef ref, Duration wait) {
  const auto& flow = flow_of(ref);
  if (flow.bytes <= 0) return after(wait + flow.latency, [this, ref] { on_end_(ref); });
  if (!is_on_fabric(topology_, flow)) return after(wait + flow.latency, [this, ref] { pass_host(ref, 0); });
  const auto id = transfers_.size();
  transfers_.push_back({ref, 0});
  const auto before = std::max(Duration{}, flow.latency - fabric_latency(flow));
  const auto begin = now() + wait + before + wait_for_receiver(ref);
  for (std::size_t l = 0; l < flow.legs.size(); ++l) post_leg(id, l, begin);
}

/// A flow beside the fabric from byte `from` on: piece by piece through what it crosses, as far as others use it too.
void PacketBackend::pass_host(FlowRef ref, double from) {
  const double bytes = flow_of(ref).bytes;
  if (from >= bytes) return on_end_(ref);
  const auto path = path_of(ref, 0);
  const auto& stages = host_paths_.paths[path].send;
  const bool is_alone =
      std::ranges::none_of(stages, [&](const auto& use) { return host_paths_.is_shared[use.stage] != 0; });
  const double piece = is_alone ? bytes : std::max(k_least_piece, bytes / k_most_pieces);
  const double until = std::min(bytes, from + piece);
  simulation_.at(simulation_.pass(path_ids_[path], until - from), [this, ref, until] { pass_host(ref, until); });
}

/// Cables and switches on the longest leg, and what a first packet waits for there: the packets pay it themselves.
Duration PacketBackend::fabric_latency(const Flow& flow) const {
  Duration longest;
  for (const auto& leg : flow.legs) {
    const auto path = topology_.path_between_hcas(leg.from, leg.to, leg.flow);
    FABRICAST_ASSERT(path.has_value(), "no route for a leg of a flow");
    const double wait = models::whole_packet_wait(topology_, path->links);
    const double frame = models::first_frame(topology_, input_.parameters, topology_.device(leg.from).type, flow.bytes);
    longest = std::max(longest, path->latency + from_seconds(wait * frame));
  }
  return longest;
}

/// Bytes that arrive faster than the receiving host takes them are in memory as late as if the sender had been as slow.
/// The first packet would be there sooner.
Duration PacketBackend::wait_for_receiver(FlowRef ref) const {
  const auto& flow = flow_of(ref);
  const auto& stages = host_paths_.paths[path_of(ref, 0)];
  if (flow.legs.size() != 1 || stages.receive.empty()) return {};
  double arrival = host_paths_.slowest(stages.send);
  for (const auto& crossing : flow.crossings) {
    if (is_network_limit(input_.resources, crossing.resource))
      arrival = std::max(arrival, crossing.times / input_.resources.capacity(crossing.resource));
  }
  const double first = std::min(
      flow.bytes, packet_payload(topology_.spec().fabric, input_.parameters, topology_.device(flow.legs[0].from).type));
  return from_seconds(first * std::max(0.0, host_paths_.slowest(stages.receive) - arrival));
}

/// The leg's bytes over its queue pairs.
void PacketBackend::post_leg(std::size_t id, std::size_t leg, Duration begin) {
  const auto ref = transfers_[id].flow;
  const auto& flow = flow_of(ref);
  const auto bytes = range::whole(std::ceil(flow.bytes * flow.legs[leg].times));
  const auto& pairs = pairs_.of(simulation_, ref.part, flow, flow.legs[leg]);
  const auto n = static_cast<std::int64_t>(pairs.size());
  for (std::int64_t q = 0; q < n; ++q) {
    const auto share = part(bytes, q + 1, n) - part(bytes, q, n);
    if (share == 0) continue;
    ++transfers_[id].messages_left;
    packet::Message message;
    message.queue_pair = pairs[static_cast<std::size_t>(q)];
    message.bytes = {share};
    message.verb = verb_of(*input_.workloads[ref.part]);
    message.start = begin;
    message.tag = id;
    message.path = path_ids_[path_of(ref, leg)];
    simulation_.post(message);
  }
}

}  // namespace fabricast::engine
