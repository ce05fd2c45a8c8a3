// SPDX-License-Identifier: Apache-2.0
// Tables of the packet engine as RFC 4180 files: flows, ports, pauses and their spans, queues, rates.
#include <fmt/format.h>

#include "report/csv_field.hpp"
#include "report/report.hpp"

namespace fabricast::report {

namespace {

template <typename Line>
std::string table(const Document& document, const std::string& header, const Line& line) {
  std::string out = "workload,size_bytes," + header + "\r\n";
  for (const auto& workload : document.prediction.workloads) {
    for (const auto& row : workload.rows)
      line(row, fmt::format("{},{}", csv_field(workload.name), row.size.value), out);
  }
  return out;
}

std::string flows_csv(const Document& document) {
  return table(document, "flow,priority,bytes,start_ps,end_ps,completion_ps,alone_ps",
               [](const Row& row, const std::string& head, std::string& out) {
                 for (const auto& one : row.flows) {
                   const bool is_done = one.end.ps >= 0;
                   out += fmt::format("{},{},{},{},{},{},{},{}\r\n", head, csv_field(one.name), one.priority,
                                      one.bytes.value, one.start.ps, is_done ? std::to_string(one.end.ps) : "",
                                      is_done ? std::to_string(one.completion().ps) : "", one.alone.ps);
                 }
               });
}

std::string ports_csv(const Document& document) {
  return table(
      document,
      "port,priority,is_lossless,sent_bytes,max_queue_bytes,marked_packets,pauses_received,paused_ps,starved_ps,"
      "pauses_sent,pause_frames,max_ingress_bytes,headroom_used_bytes,headroom_bytes,dropped_packets",
      [](const Row& row, const std::string& head, std::string& out) {
        if (!row.fabric) return;
        for (const auto& one : row.fabric->ports)
          out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}\r\n", head, csv_field(one.link),
                             one.priority, one.is_lossless ? 1 : 0, one.sent.value, one.max_queue.value,
                             one.marked_packets, one.pauses_received, one.paused.ps, one.starved.ps, one.pauses_sent,
                             one.pause_frames, one.max_ingress.value, one.headroom_used.value, one.headroom.value,
                             one.dropped_packets);
      });
}

std::string pauses_csv(const Document& document) {
  return table(document, "paused,because,root,depth,count",
               [](const Row& row, const std::string& head, std::string& out) {
                 if (!row.fabric) return;
                 for (const auto& one : row.fabric->pause_tree)
                   out += fmt::format("{},{},{},{},{},{}\r\n", head, csv_field(one.paused), csv_field(one.because),
                                      csv_field(one.root), one.depth, one.count);
               });
}

std::string spans_csv(const Document& document) {
  return table(document, "port,priority,root,begin_ps,end_ps",
               [](const Row& row, const std::string& head, std::string& out) {
                 if (!row.fabric) return;
                 for (const auto& one : row.fabric->pause_spans)
                   out += fmt::format("{},{},{},{},{},{}\r\n", head, csv_field(one.link), one.priority,
                                      csv_field(one.root), one.begin.ps, one.end.ps);
               });
}

std::string queues_csv(const Document& document) {
  return table(document, "time_ps,port,priority,queue_bytes,rate_bytes_per_s",
               [](const Row& row, const std::string& head, std::string& out) {
                 if (!row.fabric) return;
                 for (const auto& one : row.fabric->queues)
                   out += fmt::format("{},{},{},{},{},{:.17g}\r\n", head, one.time.ps, csv_field(one.link),
                                      one.priority, one.queue.value, one.rate.bytes_per_s);
               });
}

std::string rates_csv(const Document& document) {
  return table(document, "time_ps,flow,goodput_bytes_per_s,allowed_bytes_per_s",
               [](const Row& row, const std::string& head, std::string& out) {
                 if (!row.fabric) return;
                 for (const auto& one : row.fabric->rates)
                   out += fmt::format("{},{},{},{:.17g},{:.17g}\r\n", head, one.time.ps, csv_field(one.flow),
                                      one.goodput.bytes_per_s, one.allowed.bytes_per_s);
               });
}

}  // namespace

std::vector<NamedText> fabric_csv(const Document& document) {
  return {{"flows", flows_csv(document)}, {"ports", ports_csv(document)},   {"pauses", pauses_csv(document)},
          {"spans", spans_csv(document)}, {"queues", queues_csv(document)}, {"rates", rates_csv(document)}};
}

}  // namespace fabricast::report
