// SPDX-License-Identifier: Apache-2.0
// The pending events in the order of (time, code). The code holds kind and number of what the event is about, so
// simultaneous events have an order that does not depend on when they were scheduled.
//
// Events of the next 4 us lie in a wheel of 4,096 slots of 1.024 ns, unordered; a slot is sorted when its time comes
// [R. Brown, Calendar queues, CACM 31, 1988]. Later ones (timers, long cables) lie in a heap and stay there: the next
// event is the earlier of the two fronts.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
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
  friend bool operator<(const Event& a, const Event& b) {
    return (static_cast<Key>(a.time) << 64 | a.code) < (static_cast<Key>(b.time) << 64 | b.code);
  }

 private:
  __extension__ using Key = unsigned __int128;
};

class EventQueue {
 public:
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }

  void push(Time time, EventKind kind, std::uint32_t id) {
    const Event event{time, static_cast<std::uint64_t>(kind) << 32 | id};
    ++size_;
    const std::int64_t slot = time >> k_slot_bits;
    if (slot <= opened_) {
      insert_opened(event);
    } else if (slot < opened_ + k_slots) {
      put(static_cast<std::size_t>(slot % k_slots), event);
    } else {
      late_.push_back(event);
      std::push_heap(late_.begin(), late_.end(), is_later);
    }
  }

  [[nodiscard]] const Event& next() {
    if (at_ == open_.size()) open_slot();
    return is_late_first() ? late_.front() : open_[at_];
  }

  Event pop() {
    const Event event = next();
    --size_;
    if (is_late_first()) {
      std::pop_heap(late_.begin(), late_.end(), is_later);
      late_.pop_back();
      turn_to(event.time >> k_slot_bits);
    } else {
      ++at_;
    }
    return event;
  }

  /// Calls `visit` with every pending event, in no order.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& event : soon()) visit(event);
    for (const auto first : first_)
      for (auto entry = first; entry != k_nothing; entry = entries_[entry].next) visit(entries_[entry].event);
    for (const auto& event : late_) visit(event);
  }

  /// Replaces all pending events; none is earlier than `now`.
  void assign(std::span<const Event> all, Time now) {
    open_.clear();
    at_ = 0;
    size_ = 0;
    groups_ = 0;
    used_.fill(0);
    std::ranges::fill(first_, k_nothing);
    entries_.clear();
    free_ = k_nothing;
    late_.clear();
    opened_ = now >> k_slot_bits;
    for (const auto& event : all) push(event.time, event.kind(), event.id());
  }

  /// Events that follow the one just popped, as far as they are sorted.
  [[nodiscard]] std::span<const Event> soon() const { return {open_.data() + at_, open_.size() - at_}; }

 private:
  static constexpr int k_slot_bits = 10;
  static constexpr std::int64_t k_slots = 4096;
  static constexpr std::uint32_t k_nothing = 0xffff'ffff;

  struct Entry {
    Event event{};
    std::uint32_t next = k_nothing;
  };

  static bool is_later(const Event& a, const Event& b) { return b < a; }

  [[nodiscard]] bool is_late_first() const {
    return !late_.empty() && (at_ == open_.size() || late_.front() < open_[at_]);
  }

  void put(std::size_t slot, const Event& event) {
    std::uint32_t entry = free_;
    if (entry == k_nothing) {
      entry = static_cast<std::uint32_t>(entries_.size());
      entries_.emplace_back();
    } else {
      free_ = entries_[entry].next;
    }
    entries_[entry] = {event, first_[slot]};
    first_[slot] = entry;
    used_[slot / 64] |= std::uint64_t{1} << slot % 64;
    groups_ |= std::uint64_t{1} << slot / 64;
  }

  void insert_opened(const Event& event) {
    std::size_t place = open_.size();
    open_.push_back(event);
    for (; place > at_ && event < open_[place - 1]; --place) open_[place] = open_[place - 1];
    open_[place] = event;
  }

  // Sorts the events of the next slot that has any. None is left when only late ones remain.
  void open_slot() {
    open_.clear();
    at_ = 0;
    if (groups_ == 0) return;
    const auto from = static_cast<std::size_t>((opened_ + 1) % k_slots);
    const std::size_t slot = next_used(from);
    opened_ += 1 + static_cast<std::int64_t>((slot + k_slots - from) % k_slots);
    std::uint32_t entry = first_[slot];
    first_[slot] = k_nothing;
    used_[slot / 64] &= ~(std::uint64_t{1} << slot % 64);
    if (used_[slot / 64] == 0) groups_ &= ~(std::uint64_t{1} << slot / 64);
    while (entry != k_nothing) {
      open_.push_back(entries_[entry].event);
      const std::uint32_t following = entries_[entry].next;
      entries_[entry].next = free_;
      free_ = entry;
      entry = following;
    }
    // The last one pushed came first; what was pushed earlier is mostly due earlier.
    std::reverse(open_.begin(), open_.end());
    sort_opened();
  }

  void sort_opened() {
    if (open_.size() > 32) {
      std::sort(open_.begin(), open_.end());
      return;
    }
    for (std::size_t i = 1; i < open_.size(); ++i) {
      const Event event = open_[i];
      std::size_t place = i;
      for (; place > 0 && event < open_[place - 1]; --place) open_[place] = open_[place - 1];
      open_[place] = event;
    }
  }

  // A late event took the clock to `slot`: makes that the opened one, so that what is pushed for later goes to the
  // wheel.
  void turn_to(std::int64_t slot) {
    if (slot == opened_) return;
    const std::int64_t before = opened_;
    opened_ = slot;
    if (slot > before) return;  // the wheel is empty
    std::vector<Event> rest(open_.begin() + static_cast<std::ptrdiff_t>(at_), open_.end());
    open_.clear();
    at_ = 0;
    for (const auto& event : rest) {
      const std::int64_t own = event.time >> k_slot_bits;
      if (own <= opened_) {
        insert_opened(event);
      } else {
        put(static_cast<std::size_t>(own % k_slots), event);
      }
    }
  }

  /// The first used slot from `from` on, round the wheel.
  [[nodiscard]] std::size_t next_used(std::size_t from) const {
    const std::size_t group = from / 64;
    if (const auto here = used_[group] >> from % 64; here != 0)
      return from + static_cast<std::size_t>(std::countr_zero(here));
    // Groups behind `group`, then those from 0 to it.
    const auto behind = group == 63 ? 0 : groups_ & ~std::uint64_t{0} << (group + 1);
    const auto found = static_cast<std::size_t>(std::countr_zero(behind != 0 ? behind : groups_));
    return found * 64 + static_cast<std::size_t>(std::countr_zero(used_[found]));
  }

  std::vector<Event> open_;  ///< of the opened slot and before, in order from `at_` on
  std::size_t at_ = 0;
  std::int64_t opened_ = -1;  ///< number of the opened slot
  std::size_t size_ = 0;
  std::uint64_t groups_ = 0;                        ///< bit per word of `used_`
  std::array<std::uint64_t, k_slots / 64> used_{};  ///< bit per slot
  std::vector<std::uint32_t> first_ = std::vector<std::uint32_t>(k_slots, k_nothing);
  std::vector<Entry> entries_;
  std::uint32_t free_ = k_nothing;
  std::vector<Event> late_;  ///< heap
};

}  // namespace fabricast::packet
