// SPDX-License-Identifier: Apache-2.0
#include "engine/packet_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "fabricast/lossless.hpp"

namespace fabricast::engine {

namespace {

std::string stop_name(packet::StopReason reason) {
  switch (reason) {
    case packet::StopReason::finished:
      return "finished";
    case packet::StopReason::time_limit:
      return "time limit";
    case packet::StopReason::interrupted:
      return "interrupted";
    case packet::StopReason::deadlock:
      return "deadlock";
    case packet::StopReason::stalled:
      return "stalled";
    case packet::StopReason::past_range:
      return "past range";
  }
  return "";
}

class ReportMaker {
 public:
  ReportMaker(const packet::Network& network, const packet::Results& results, const std::vector<std::string>& flows)
      : network_(network), results_(results), flows_(flows) {}

  FabricReport make() {
    FabricReport report;
    report.stop = stop_name(results_.stop);
    report.packets = results_.delivered_packets;
    report.engine = {results_.events, results_.trains, results_.train_packets};
    report.lossless_drops = results_.lossless_drops;
    report.lossy_drops = results_.lossy_drops;
    add_ports(report);
    for (const auto& pair : results_.queue_pairs) {
      report.notifications += pair.cnps;
      report.retransmitted += pair.retransmitted;
    }
    // Around a circle every flow waits for a queue it does not cross: nobody is more of a victim than the others.
    if (!results_.deadlock) add_victims(report);
    for (const auto& span : results_.pause_intervals)
      report.pause_spans.push_back({network_.link_name(span.paused.port), span.paused.traffic_class,
                                    network_.link_name(span.root), span.begin, span.end});
    for (const auto& edge : results_.pause_tree)
      report.pause_tree.push_back({place(edge.paused), place(edge.because), place(edge.root), edge.depth, edge.count});
    for (const auto& point : results_.queue_samples)
      report.queues.push_back(
          {point.time, network_.link_name(point.where.port), point.where.traffic_class, point.queue, point.rate});
    for (const auto& point : results_.flow_samples)
      report.rates.push_back({point.time, flow(point.queue_pair), point.goodput, point.allowed});
    if (results_.deadlock) {
      report.reason = results_.deadlock->reason;
      for (const auto& where : results_.deadlock->cycle) report.wait_cycle.push_back(place(where));
    }
    return report;
  }

 private:
  [[nodiscard]] std::string place(packet::PortClass where) const {
    return fmt::format("{} (priority {})", network_.link_name(where.port), where.traffic_class);
  }
  [[nodiscard]] std::string flow(packet::QueuePairId id) const { return flows_[packet::index(id)]; }

  void add_ports(FabricReport& report) const {
    for (std::size_t p = 0; p < results_.ports.size(); ++p) {
      for (int c = 0; c < packet::k_num_classes; ++c) {
        const auto& one = results_.ports[p][static_cast<std::size_t>(c)];
        report.pauses += one.pauses_sent;
        report.pause_frames += one.pause_frames;
        report.paused += one.paused;
        report.starved += one.starved;
        report.marked_packets += one.marked_packets;
        const bool is_quiet = one.sent_packets == 0 && one.pauses_sent == 0 && one.pauses_received == 0 &&
                              one.dropped_packets == 0 && one.max_ingress.value == 0;
        if (is_quiet) continue;
        report.ports.push_back({network_.link_name(static_cast<packet::PortId>(p)), c, one.is_lossless, one.sent,
                                one.max_queue, one.marked_packets, one.pauses_received, one.paused, one.starved,
                                one.pauses_sent, one.pause_frames, one.max_ingress, one.max_headroom, one.headroom,
                                one.dropped_packets});
      }
    }
  }

  /// Queue pairs of one flow are one victim: the longest pause counts.
  void add_victims(FabricReport& report) const {
    std::map<std::string, std::size_t> known;
    for (const auto& one : results_.victims) {
      const VictimFlow victim{flow(one.queue_pair), place(one.paused_at), place(one.root), one.paused};
      const auto [it, is_new] = known.try_emplace(victim.flow, report.victims.size());
      if (is_new) {
        report.victims.push_back(victim);
      } else if (victim.paused > report.victims[it->second].paused) {
        report.victims[it->second] = victim;
      }
    }
  }

  const packet::Network& network_;
  const packet::Results& results_;
  const std::vector<std::string>& flows_;
};

}  // namespace

FabricReport make_report(const packet::Network& network, const packet::Results& results,
                         const std::vector<std::string>& flow_names) {
  return ReportMaker(network, results, flow_names).make();
}

std::vector<std::string> assumptions_of_packets(const Topology& topology, const WorkloadPrediction& workload,
                                                bool has_tcp) {
  std::vector<std::string> out;
  const auto is_in_a_row = [](const Row& row) { return row.fabric && row.fabric->operations > 1; };
  if (std::ranges::any_of(workload.rows, is_in_a_row))
    out.emplace_back(
        "operations follow each other: senders that were told to slow down begin with the rate that is left to them, "
        "and the first one does not count");
  if (has_tcp) out.emplace_back("TCP travels as RDMA packets: its own windows and retransmissions are not modelled");
  if (!is_lossless(topology) && topology.num_hosts() > 1)
    out.emplace_back(topology.spec().fabric.lossless
                         ? "flow_control: drop: a full buffer drops packets, senders go back to them or time out"
                         : "the topology does not say how its switches are configured: PFC with shipped defaults");
  return out;
}

}  // namespace fabricast::engine
