// SPDX-License-Identifier: Apache-2.0
// The pending events: a 4-ary heap of 16-byte entries ordered by (time, code). The code holds kind and number of what
// the event is about, so simultaneous events have an order that does not depend on when they were scheduled.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
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
  std::uint64_t code;

  [[nodiscard]] EventKind kind() const { return static_cast<EventKind>(code >> 32); }
  [[nodiscard]] std::uint32_t id() const { return static_cast<std::uint32_t>(code); }
};

/// Memory that begins at a cache line.
template <typename T>
struct LineAllocator {
  using value_type = T;
  LineAllocator() = default;
  template <typename U>
  explicit LineAllocator(const LineAllocator<U>&) {}
  T* allocate(std::size_t n) { return static_cast<T*>(::operator new (n * sizeof(T), std::align_val_t{64})); }
  void deallocate(T* memory, std::size_t) { ::operator delete (memory, std::align_val_t{64}); }
  bool operator==(const LineAllocator&) const = default;
};

class EventQueue {
 public:
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] std::size_t size() const { return size_ - (has_hole_ ? 1U : 0U); }

  void push(Time time, EventKind kind, std::uint32_t id) {
    const Event event{time, static_cast<std::uint64_t>(kind) << 32 | id};
    if (has_hole_) {
      has_hole_ = false;
      sink(event);
      return;
    }
    std::size_t at = size_++;
    if (heap_.size() < k_root + size_ + 4) heap_.resize(2 * heap_.size(), k_last);
    while (at > 0) {
      const std::size_t parent = (at - 1) / 4;
      if (!before(event, heap_[k_root + parent])) break;
      heap_[k_root + at] = heap_[k_root + parent];
      at = parent;
    }
    heap_[k_root + at] = event;
  }

  [[nodiscard]] const Event& next() {
    close_hole();
    return heap_[k_root];
  }

  /// Takes the next event. Its place is kept open for the first event pushed while it is handled.
  Event pop() {
    close_hole();
    has_hole_ = true;
    return heap_[k_root];
  }

  /// The four events of which one is the next after the one just popped; behind the last one they are k_last.
  [[nodiscard]] const Event* soon() const { return &heap_[k_root + 1]; }

  /// Position of the earliest of four events; compiles to no branch, because none could be foretold.
  static std::size_t earliest(const Event* four) {
    const std::size_t left = before(four[1], four[0]) ? 1 : 0;
    const std::size_t right = before(four[3], four[2]) ? 3 : 2;
    return before(four[right], four[left]) ? right : left;
  }

  static constexpr Event k_last{k_never, UINT64_MAX};

 private:
  // The root's place makes every four siblings share a cache line.
  static constexpr std::size_t k_root = 3;

  static bool before(const Event& a, const Event& b) {
    return (static_cast<Key>(a.time) << 64 | a.code) < (static_cast<Key>(b.time) << 64 | b.code);
  }

  void close_hole() {
    if (!has_hole_) return;
    has_hole_ = false;
    --size_;
    const Event last = heap_[k_root + size_];
    heap_[k_root + size_] = k_last;
    if (size_ > 0) sink(last);
  }

  // Puts `event` at the root and lets it sink to its place. Places behind the end hold k_last.
  void sink(const Event event) {
    std::size_t at = 0;
    for (;;) {
      const std::size_t first = 4 * at + 1;
      if (first >= size_) break;
      const std::size_t least = first + earliest(&heap_[k_root + first]);
      if (!before(heap_[k_root + least], event)) break;
      heap_[k_root + at] = heap_[k_root + least];
      at = least;
    }
    heap_[k_root + at] = event;
  }

  __extension__ using Key = unsigned __int128;

  std::vector<Event, LineAllocator<Event>> heap_ = std::vector<Event, LineAllocator<Event>>(64, k_last);
  std::size_t size_ = 0;
  bool has_hole_ = false;
};

}  // namespace fabricast::packet
