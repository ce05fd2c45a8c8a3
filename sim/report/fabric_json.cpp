// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "report/fabric_tables.hpp"
#include "report/json_parts.hpp"

namespace fabricast::report {

namespace {

Json flow_json(const FlowTime& flow) {
  Json out{{"name", flow.name}, {"priority", flow.priority}, {"bytes", flow.bytes.value}, {"start_ps", flow.start.ps}};
  out["end_ps"] = flow.end.ps < 0 ? Json(nullptr) : Json(flow.end.ps);
  out["completion_ps"] = flow.end.ps < 0 ? Json(nullptr) : Json(flow.completion().ps);
  out["alone_ps"] = flow.alone.ps;
  return out;
}

Json port_json(const PortCounters& port) {
  return {{"port", port.link},
          {"priority", port.priority},
          {"is_lossless", port.is_lossless},
          {"sent_bytes", port.sent.value},
          {"max_queue_bytes", port.max_queue.value},
          {"marked_packets", port.marked_packets},
          {"pauses_received", port.pauses_received},
          {"paused_ps", port.paused.ps},
          {"starved_ps", port.starved.ps},
          {"pauses_sent", port.pauses_sent},
          {"pause_frames", port.pause_frames},
          {"max_ingress_bytes", port.max_ingress.value},
          {"headroom_used_bytes", port.headroom_used.value},
          {"headroom_bytes", port.headroom.value},
          {"dropped_packets", port.dropped_packets}};
}

Json fabric_json(const FabricReport& fabric) {
  Json out{{"flow_control", fabric.flow_control},
           {"lossless_priorities", fabric.lossless},
           {"stop", fabric.stop},
           {"reason", fabric.reason},
           {"wait_cycle", fabric.wait_cycle},
           {"operations", fabric.operations},
           {"packets", fabric.packets},
           {"pauses", fabric.pauses},
           {"pause_frames", fabric.pause_frames},
           {"paused_ps", fabric.paused.ps},
           {"starved_ps", fabric.starved.ps},
           {"lossless_drops", fabric.lossless_drops},
           {"lossy_drops", fabric.lossy_drops},
           {"marked_packets", fabric.marked_packets},
           {"notifications", fabric.notifications},
           {"retransmitted_packets", fabric.retransmitted},
           {"engine",
            {{"events", fabric.engine.events},
             {"trains", fabric.engine.trains},
             {"train_packets", fabric.engine.train_packets}}}};
  for (const auto* key : {"ports", "victims", "pause_tree", "pause_spans", "queues", "rates"}) out[key] = Json::array();
  for (const auto& port : fabric.ports) out["ports"].push_back(port_json(port));
  for (const auto& one : fabric.victims)
    out["victims"].push_back(
        {{"flow", one.flow}, {"paused_at", one.paused_at}, {"root", one.root}, {"paused_ps", one.paused.ps}});
  for (const auto& one : fabric.pause_tree)
    out["pause_tree"].push_back({{"paused", one.paused},
                                 {"because", one.because},
                                 {"root", one.root},
                                 {"depth", one.depth},
                                 {"count", one.count}});
  for (const auto& one : fabric.pause_spans)
    out["pause_spans"].push_back({{"port", one.link},
                                  {"priority", one.priority},
                                  {"root", one.root},
                                  {"begin_ps", one.begin.ps},
                                  {"end_ps", one.end.ps}});
  for (const auto& one : fabric.queues)
    out["queues"].push_back({{"time_ps", one.time.ps},
                             {"port", one.link},
                             {"priority", one.priority},
                             {"queue_bytes", one.queue.value},
                             {"rate_bytes_per_s", one.rate.bytes_per_s}});
  for (const auto& one : fabric.rates)
    out["rates"].push_back({{"time_ps", one.time.ps},
                            {"flow", one.flow},
                            {"goodput_bytes_per_s", one.goodput.bytes_per_s},
                            {"allowed_bytes_per_s", one.allowed.bytes_per_s}});
  return out;
}

void add_process_name(int process, const std::string& name, Json& events) {
  events.push_back({{"name", "process_name"}, {"ph", "M"}, {"pid", process}, {"args", {{"name", name}}}});
}

void add_thread_name(int process, int thread, const std::string& name, Json& events) {
  events.push_back(
      {{"name", "thread_name"}, {"ph", "M"}, {"pid", process}, {"tid", thread}, {"args", {{"name", name}}}});
  // Viewers sort by name otherwise.
  events.push_back({{"name", "thread_sort_index"},
                    {"ph", "M"},
                    {"pid", process},
                    {"tid", thread},
                    {"args", {{"sort_index", thread}}}});
}

/// A track per paused port, after the flows; a slice per pause, named after the queue it came from.
void add_pauses(const FabricReport& fabric, int process, int first_thread, Json& events) {
  std::map<std::pair<std::string, int>, int> track;
  for (const auto& one : fabric.pause_spans) {
    const auto next = first_thread + static_cast<int>(track.size());
    const auto [it, is_new] = track.try_emplace({one.link, one.priority}, next);
    if (is_new) add_thread_name(process, next, fmt::format("stopped: {} priority {}", one.link, one.priority), events);
    events.push_back({{"name", fmt::format("stopped by {}", one.root)},
                      {"cat", "pause"},
                      {"ph", "X"},
                      {"ts", one.begin.us()},
                      {"dur", (one.end - one.begin).us()},
                      {"pid", process},
                      {"tid", it->second}});
  }
}

}  // namespace

void add_fabric_json(const Row& row, Json& out) {
  if (!row.flows.empty()) {
    out["jain_index"] = jain_index(row.flows);
    out["flows"] = Json::array();
    for (const auto& flow : row.flows) out["flows"].push_back(flow_json(flow));
  }
  if (row.fabric) out["fabric"] = fabric_json(*row.fabric);
}

void add_fabric_trace(const Row& row, int process, Json& events) {
  if (row.flows.empty() && !row.fabric) return;
  add_process_name(process, fmt::format("fabric at {}", to_string(row.size)), events);
  int thread = 1;
  for (const auto& flow : row.flows) {
    add_thread_name(process, thread, flow.name, events);
    if (flow.end.ps >= 0) {
      events.push_back({{"name", flow.name},
                        {"cat", "flow"},
                        {"ph", "X"},
                        {"ts", flow.start.us()},
                        {"dur", flow.completion().us()},
                        {"pid", process},
                        {"tid", thread},
                        {"args", {{"bytes", flow.bytes.value}, {"priority", flow.priority}}}});
    }
    ++thread;
  }
  if (!row.fabric) return;
  add_pauses(*row.fabric, process, thread, events);
  for (const auto& one : row.fabric->queues) {
    events.push_back({{"name", fmt::format("{} priority {}", one.link, one.priority)},
                      {"cat", "queue"},
                      {"ph", "C"},
                      {"ts", one.time.us()},
                      {"pid", process},
                      {"args", {{"queue_bytes", one.queue.value}, {"Gbps", one.rate.bytes_per_s * 8e-9}}}});
  }
  for (const auto& one : row.fabric->rates) {
    events.push_back(
        {{"name", fmt::format("rate of {}", one.flow)},
         {"cat", "rate"},
         {"ph", "C"},
         {"ts", one.time.us()},
         {"pid", process},
         {"args",
          {{"goodput_Gbps", one.goodput.bytes_per_s * 8e-9}, {"allowed_Gbps", one.allowed.bytes_per_s * 8e-9}}}});
  }
}

}  // namespace fabricast::report
