// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "report/fabric_tables.hpp"
#include "report/tables.hpp"

namespace fabricast::report {

namespace {

/// Lines of each table in text output; JSON and CSV have all.
constexpr std::size_t k_most_flows = 64;
constexpr std::size_t k_most_ports = 12;
constexpr std::size_t k_most_edges = 24;

double goodput(const FlowTime& flow) {
  const double seconds = flow.completion().seconds();
  return flow.end.ps < 0 || seconds <= 0 ? 0 : static_cast<double>(flow.bytes.value) / seconds;
}

std::string more_line(std::size_t shown, std::size_t all) {
  return all > shown ? fmt::format("#   ... {} more in JSON and CSV\n", all - shown) : "";
}

std::string flow_line(const FlowTime& flow, std::size_t width) {
  if (flow.end.ps < 0)
    return fmt::format("{:<{}}  {:>8}  {:>12}  {:>12.3f}  {:>14}\n", flow.name, width, flow.priority, flow.bytes.value,
                       flow.start.us(), "not finished");
  const double slowdown =
      flow.alone.ps > 0 ? static_cast<double>(flow.completion().ps) / static_cast<double>(flow.alone.ps) : 1;
  return fmt::format("{:<{}}  {:>8}  {:>12}  {:>12.3f}  {:>14.3f}  {:>12.3f}  {:>8.2f}  {:>8.2f}\n", flow.name, width,
                     flow.priority, flow.bytes.value, flow.start.us(), flow.completion().us(), flow.alone.us(),
                     slowdown, goodput(flow) * 8e-9);
}

std::string summary_line(const Row& row) {
  std::vector<double> times;
  for (const auto& flow : row.flows) {
    if (flow.end.ps >= 0) times.push_back(flow.completion().us());
  }
  if (times.empty()) return "";
  std::sort(times.begin(), times.end());
  double sum = 0;
  for (const double t : times) sum += t;
  const auto at = [&](double share) {
    return times[std::min(times.size() - 1, static_cast<std::size_t>(share * static_cast<double>(times.size())))];
  };
  const auto which = times.size() == row.flows.size()
                         ? fmt::format("{} flows: makespan {:.3f} us", times.size(), row.time.us())
                         : fmt::format("{} of {} flows finished", times.size(), row.flows.size());
  return fmt::format(
      "# {}; completion mean {:.3f}, median {:.3f}, 99 % {:.3f}, last {:.3f} us; Jain "
      "{:.4f}\n",
      which, sum / static_cast<double>(times.size()), at(0.5), at(0.99), times.back(), jain_index(row.flows));
}

/// The receiving side of a port: "leaf0 <- spine1".
std::string receiving(const std::string& link) {
  const auto arrow = link.find(" -> ");
  return arrow == std::string::npos ? link : link.substr(0, arrow) + " <- " + link.substr(arrow + 4);
}

using Ports = std::vector<const PortCounters*>;

template <typename IsMeant, typename Weight>
Ports worst_first(const FabricReport& fabric, const IsMeant& is_meant, const Weight& weight) {
  Ports ports;
  for (const auto& port : fabric.ports) {
    if (is_meant(port)) ports.push_back(&port);
  }
  std::stable_sort(ports.begin(), ports.end(), [&](const auto* a, const auto* b) { return weight(*a) > weight(*b); });
  return ports;
}

std::size_t name_width(const Ports& ports) {
  std::size_t width = std::string("ports that receive").size();
  for (std::size_t p = 0; p < ports.size() && p < k_most_ports; ++p) width = std::max(width, ports[p]->link.size());
  return width;
}

/// What ports send: how long they were stopped, their queues, their marks.
std::string egress_rows(const FabricReport& fabric) {
  const auto is_meant = [](const PortCounters& port) {
    return port.pauses_received + port.marked_packets > 0 || port.starved.ps > 0;
  };
  const auto ports = worst_first(fabric, is_meant, [](const PortCounters& port) {
    return std::tuple(port.paused + port.starved, port.marked_packets, port.max_queue);
  });
  if (ports.empty()) return "";
  const auto width = name_width(ports);
  std::string out = fmt::format("#   {:<{}}  {:>8}  {:>7}  {:>12}  {:>13}  {:>12}  {:>8}\n", "ports that send", width,
                                "priority", "stopped", "stopped(us)", "no credit(us)", "queue max(B)", "marked");
  for (std::size_t p = 0; p < ports.size() && p < k_most_ports; ++p) {
    const auto& one = *ports[p];
    out += fmt::format("#   {:<{}}  {:>8}  {:>7}  {:>12.3f}  {:>13.3f}  {:>12}  {:>8}\n", one.link, width, one.priority,
                       one.pauses_received, one.paused.us(), one.starved.us(), one.max_queue.value, one.marked_packets);
  }
  return out + more_line(k_most_ports, ports.size());
}

/// What ports receive: what they buffered and lost, and how often they stopped their peer.
std::string ingress_rows(const FabricReport& fabric) {
  const auto is_meant = [](const PortCounters& port) { return port.pauses_sent + port.dropped_packets > 0; };
  const auto ports = worst_first(fabric, is_meant, [](const PortCounters& port) {
    return std::tuple(port.dropped_packets, port.pauses_sent, port.max_ingress);
  });
  if (ports.empty()) return "";
  const auto width = name_width(ports);
  std::string out =
      fmt::format("#   {:<{}}  {:>8}  {:>7}  {:>13}  {:>16}  {:>11}  {:>8}\n", "ports that receive", width, "priority",
                  "pauses", "buffer max(B)", "headroom used(B)", "of these(B)", "dropped");
  for (std::size_t p = 0; p < ports.size() && p < k_most_ports; ++p) {
    const auto& one = *ports[p];
    out += fmt::format("#   {:<{}}  {:>8}  {:>7}  {:>13}  {:>16}  {:>11}  {:>8}\n", receiving(one.link), width,
                       one.priority, one.pauses_sent, one.max_ingress.value, one.headroom_used.value,
                       one.headroom.value, one.dropped_packets);
  }
  return out + more_line(k_most_ports, ports.size());
}

std::string tree_rows(const FabricReport& fabric) {
  if (fabric.pause_tree.empty()) return "";
  std::string out = "#   who paused whom, from the congested queue:\n";
  std::string root;
  std::size_t shown = 0;
  for (const auto& edge : fabric.pause_tree) {
    if (shown++ == k_most_edges) break;
    if (edge.root != root) out += fmt::format("#     {}\n", edge.root);
    root = edge.root;
    out += fmt::format("#     {:>{}}{}, {} time{}\n", "stopped ", 8 + 2 * edge.depth, edge.paused, edge.count,
                       edge.count == 1 ? "" : "s");
  }
  return out + more_line(k_most_edges, fabric.pause_tree.size());
}

std::string victim_rows(const FabricReport& fabric) {
  std::string out;
  for (std::size_t v = 0; v < fabric.victims.size() && v < k_most_flows; ++v) {
    const auto& one = fabric.victims[v];
    out += fmt::format("#   victim: {} was held {:.3f} us at {}, though it does not use {}\n", one.flow,
                       one.paused.us(), one.paused_at, one.root);
  }
  return out + more_line(k_most_flows, fabric.victims.size());
}

std::string stop_rows(const FabricReport& fabric) {
  if (fabric.is_finished()) return "";
  std::string out =
      fmt::format("#   stopped: {}{}\n", fabric.stop,
                  fabric.reason.empty() || !fabric.wait_cycle.empty() ? "" : fmt::format("; {}", fabric.reason));
  for (std::size_t i = 0; i < fabric.wait_cycle.size(); ++i)
    out += fmt::format("#     {} waits for {}\n", fabric.wait_cycle[i],
                       fabric.wait_cycle[(i + 1) % fabric.wait_cycle.size()]);
  return out;
}

/// Traffic that PFC should have protected and did not.
std::string unmeant_rows(const FabricReport& fabric) {
  std::map<int, std::uint64_t> drops;
  std::string out;
  for (const auto& port : fabric.ports) {
    if (fabric.unmeant_drops() == 0 || port.is_lossless || port.dropped_packets == 0) continue;
    if (std::ranges::find(fabric.lossless, port.priority) == fabric.lossless.end()) {
      drops[port.priority] += port.dropped_packets;
    } else {
      out += fmt::format(
          "#   priority {} is lossy at {}: PFC is not set at both ends, a full buffer dropped {} packets that came in "
          "there\n",
          port.priority, port.link, port.dropped_packets);
    }
  }
  for (const auto& [priority, packets] : drops)
    out += fmt::format("#   priority {} is not lossless (PFC acts on {}): full buffers dropped {} of its packets\n",
                       priority, fmt::join(fabric.lossless, ", "), packets);
  return out;
}

bool is_eventful(const FabricReport& fabric) {
  return fabric.pauses + fabric.lossless_drops + fabric.lossy_drops + fabric.marked_packets > 0 ||
         fabric.starved.ps > 0 || !fabric.is_finished();
}

}  // namespace

double jain_index(const std::vector<FlowTime>& flows) {
  double sum = 0;
  double squares = 0;
  for (const auto& flow : flows) {
    sum += goodput(flow);
    squares += goodput(flow) * goodput(flow);
  }
  return squares > 0 ? sum * sum / (static_cast<double>(flows.size()) * squares) : 1;
}

std::string traffic_table(const WorkloadPrediction& workload) {
  std::string out;
  for (const auto& row : workload.rows) {
    const bool is_stopped = !is_finished(row);
    out += is_stopped ? fmt::format("# {} of {} B: not finished, {} after {:.3f} us\n", row.algorithm, row.size.value,
                                    row.fabric->stop, row.time.us())
                      : fmt::format("# {} of {} B: {:.3f} us ({:.3f} to {:.3f})\n", row.algorithm, row.size.value,
                                    row.time.us(), row.low_time.us(), row.high_time.us());
    if (row.flows.empty()) continue;
    std::size_t width = 6;
    for (std::size_t f = 0; f < row.flows.size() && f < k_most_flows; ++f)
      width = std::max(width, row.flows[f].name.size());
    out += fmt::format("# {:<{}}  {:>8}  {:>12}  {:>12}  {:>14}  {:>12}  {:>8}  {:>8}\n", "flow", width - 2, "priority",
                       "bytes", "start(us)", "completion(us)", "alone(us)", "slowdown", "Gb/s");
    for (std::size_t f = 0; f < row.flows.size() && f < k_most_flows; ++f) out += flow_line(row.flows[f], width);
    out += more_line(k_most_flows, row.flows.size()) + summary_line(row);
  }
  return out;
}

const Row* eventful_row(const WorkloadPrediction& workload) {
  const Row* most = nullptr;
  const auto weight = [](const FabricReport& one) {
    return std::tuple(!one.is_finished(), one.lossless_drops, one.pauses, one.starved, one.marked_packets);
  };
  for (const auto& row : workload.rows) {
    if (row.fabric && (most == nullptr || weight(*row.fabric) >= weight(*most->fabric))) most = &row;
  }
  return most;
}

std::string fabric_table(const WorkloadPrediction& workload) {
  const Row* most = eventful_row(workload);
  if (most == nullptr) return "";
  if (!is_eventful(*most->fabric)) return "# fabric: no pauses, no waits for credits, no marks, no drops\n";
  std::string out = "# fabric:\n";
  for (const auto& row : workload.rows) {
    if (!row.fabric || !is_eventful(*row.fabric)) continue;
    const auto& fabric = *row.fabric;
    out += fmt::format(
        "#   {} B{}: {} packets, {} pauses ({:.3f} us, all ports together{}){}, {} marked, {} notifications, "
        "{} lossless drops{}\n",
        row.size.value, fabric.operations > 1 ? fmt::format(", {} operations", fabric.operations) : "", fabric.packets,
        fabric.pauses, fabric.paused.us(), fabric.pauses > 0 ? fmt::format(", {} frames", fabric.pause_frames) : "",
        fabric.starved.ps > 0 ? fmt::format(", {:.3f} us without credits", fabric.starved.us()) : "",
        fabric.marked_packets, fabric.notifications, fabric.lossless_drops,
        fabric.lossy_drops > 0 ? fmt::format(", {} lossy drops", fabric.lossy_drops) : "");
    out += unmeant_rows(fabric);
  }
  if (workload.rows.size() > 1) out += fmt::format("#   at {} B:\n", most->size.value);
  const auto& fabric = *most->fabric;
  return out + stop_rows(fabric) + egress_rows(fabric) + ingress_rows(fabric) + tree_rows(fabric) + victim_rows(fabric);
}

}  // namespace fabricast::report
