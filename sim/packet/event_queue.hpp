// SPDX-License-Identifier: Apache-2.0
// The pending events: a 4-ary heap of 16-byte entries ordered by (time, code). The code holds kind and number of what
// the event is about, so simultaneous events have an order that does not depend on when they were scheduled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fabricast::packet {

/// Picoseconds since the start of the simulation.
using Time = std::int64_t;
inline constexpr Time k_never = INT64_MAX;

/// What happens, in the order in which simultaneous events happen.
enum class EventKind : std::uint32_t {
  pause_arrival,   ///< id = port that receives a PAUSE or credit frame
  packet_arrival,  ///< id = port that receives the head (cut-through) or the end of a packet
  receive_done,    ///< id = host port whose memory took a packet
  port_ready,      ///< id = port that may send
  input_free,      ///< id = egress port of a credit switch whose packet has left its input
  credit_due,      ///< id = port x classes + class that may send a credit update
  pace,            ///< id = queue pair whose next packet is due
  pause_expiry,    ///< id = port x classes + class
  pause_refresh,   ///< id = port x classes + class
  message_done,    ///< id = message whose delivery is told after the receive latency
  timer,           ///< id = the caller's timer
  timeout,         ///< id = queue pair
  sample,
  watch,  ///< looks for deadlocks
};

struct Event {
  Time time;
  std::uint32_t code;

  [[nodiscard]] EventKind kind() const { return static_cast<EventKind>(code >> 28); }
  [[nodiscard]] std::uint32_t id() const { return code & 0x0fff'ffff; }
};

class EventQueue {
 public:
  [[nodiscard]] bool empty() const { return heap_.size() <= (has_hole_ ? 1U : 0U); }
  [[nodiscard]] std::size_t size() const { return heap_.size() - (has_hole_ ? 1U : 0U); }

  void push(Time time, EventKind kind, std::uint32_t id) {
    const Event event{time, static_cast<std::uint32_t>(kind) << 28 | id};
    if (has_hole_) {
      has_hole_ = false;
      sink(event);
      return;
    }
    heap_.push_back(event);
    std::size_t at = heap_.size() - 1;
    while (at > 0) {
      const std::size_t parent = (at - 1) / 4;
      if (!before(event, heap_[parent])) break;
      heap_[at] = heap_[parent];
      at = parent;
    }
    heap_[at] = event;
  }

  [[nodiscard]] const Event& next() {
    close_hole();
    return heap_.front();
  }

  /// Takes the next event. Its place is kept open for the first event pushed while it is handled.
  Event pop() {
    close_hole();
    has_hole_ = true;
    return heap_.front();
  }

 private:
  static bool before(const Event& a, const Event& b) {
    return a.time < b.time || (a.time == b.time && a.code < b.code);
  }

  void close_hole() {
    if (!has_hole_) return;
    has_hole_ = false;
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(last);
  }

  // Puts `event` at the root and lets it sink to its place.
  void sink(const Event event) {
    const std::size_t size = heap_.size();
    std::size_t at = 0;
    for (;;) {
      const std::size_t first = 4 * at + 1;
      if (first >= size) break;
      std::size_t least = first;
      const std::size_t end = first + 4 < size ? first + 4 : size;
      for (std::size_t child = first + 1; child < end; ++child)
        if (before(heap_[child], heap_[least])) least = child;
      if (!before(heap_[least], event)) break;
      heap_[at] = heap_[least];
      at = least;
    }
    heap_[at] = event;
  }

  std::vector<Event> heap_;
  bool has_hole_ = false;
};

}  // namespace fabricast::packet
