// SPDX-License-Identifier: Apache-2.0
// All that a user can see of a run as one list of numbers, to compare runs; not how the engine got there (events,
// trains).
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "packet/simulation.hpp"

namespace fabricast::packet::testing {

class Fingerprint {
 public:
  explicit Fingerprint(const Results& results) {
    begin("totals");
    add(results.stop, results.now, results.packet_hops, results.delivered_packets, results.lossless_drops,
        results.lossy_drops);
    begin("messages");
    for (const auto& m : results.messages) add(m.bytes, m.posted, m.started, m.delivered, m.completed);
    begin("queue pairs");
    for (const auto& q : results.queue_pairs) add(q.delivered, q.packets, q.retransmitted, q.marked, q.cnps, q.rate);
    begin("ports");
    for (const auto& port : results.ports)
      for (const auto& entry : port) add_port(entry);
    begin("buffers");
    for (const auto used : results.max_switch_buffer) add(used);
    add_pauses(results);
    begin("queue samples");
    for (const auto& s : results.queue_samples) add_place(s.where), add(s.time, s.queue, s.rate);
    begin("flow samples");
    for (const auto& s : results.flow_samples) add(s.time, s.queue_pair, s.goodput, s.allowed);
    begin("deadlock");
    if (!results.deadlock) return;
    add(results.deadlock->time);
    for (const auto& place : results.deadlock->cycle) add_place(place);
  }

  /// Where two runs differ first; empty when they do not.
  [[nodiscard]] std::string difference(const Fingerprint& other) const {
    std::size_t section = 0;
    for (std::size_t i = 0; i < std::max(numbers_.size(), other.numbers_.size()); ++i) {
      while (section + 1 < sections_.size() && sections_[section + 1].begin <= i) ++section;
      const bool is_in_both = i < numbers_.size() && i < other.numbers_.size();
      if (is_in_both && numbers_[i] == other.numbers_[i]) continue;
      const auto& [name, begin] = sections_[section];
      return std::string(name) + " " + std::to_string(i - begin) +
             (is_in_both ? ": " + std::to_string(numbers_[i]) + ", " + std::to_string(other.numbers_[i]) : "");
    }
    return "";
  }

 private:
  struct Section {
    const char* name;
    std::size_t begin;
  };

  void begin(const char* section) { sections_.push_back({section, numbers_.size()}); }
  void add_port(const PortStatistics& p) {
    add(p.sent_packets, p.sent, p.max_queue, p.marked_packets, p.pauses_received, p.paused, p.starved, p.pauses_sent,
        p.pause_frames, p.max_ingress, p.max_overshoot, p.max_headroom, p.headroom, p.dropped_packets, p.dropped);
  }
  void add_pauses(const Results& results) {
    begin("pause tree");
    for (const auto& e : results.pause_tree) {
      add_place(e.paused), add_place(e.because), add_place(e.root);
      add(e.depth, e.count);
    }
    begin("victims");
    for (const auto& v : results.victims) add_place(v.paused_at), add_place(v.root), add(v.queue_pair, v.paused);
    begin("pause intervals");
    for (const auto& p : results.pause_intervals) add_place(p.paused), add(p.root, p.begin, p.end);
  }
  void add_place(const PortClass& place) { add(place.port, place.traffic_class); }

  template <class... Values>
  void add(Values... values) {
    (numbers_.push_back(number(values)), ...);
  }
  static std::int64_t number(Duration value) { return value.ps; }
  static std::int64_t number(Bytes value) { return value.value; }
  static std::int64_t number(Bandwidth value) { return std::bit_cast<std::int64_t>(value.bytes_per_s); }
  template <class T>
  static std::int64_t number(T value) {
    return static_cast<std::int64_t>(value);
  }

  std::vector<std::int64_t> numbers_;
  std::vector<Section> sections_;
};

}  // namespace fabricast::packet::testing
