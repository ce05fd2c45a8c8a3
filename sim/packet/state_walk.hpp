// SPDX-License-Identifier: Apache-2.0
// One walk over the engine's state that can record it relative to the clock, compare it with a record, or move it on by
// whole periods. Every field is named once, with the role it has in a period:
//
//   same      decides what happens and must have the same value again (identifiers, byte counts, flags, maxima)
//   due       a time ahead: the same distance from the clock; what has passed counts as now
//   since     a time behind that is read later: the same distance from the clock, or not touched
//   stamp     a time behind that is only told: not compared; moves on if it was written during the period
//   counter   grows by the same amount in every period: not compared
//
// Words have 15 bits; larger values take several. A record is a sequence in which nothing can be mistaken for something
// else (lists end with a 0), so equal words are equal states.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "packet/event_queue.hpp"

namespace fabricast::packet {

/// A field as a part of a word.
constexpr std::uint64_t bits(auto value) { return static_cast<std::uint64_t>(value); }

class StateWalk {
 public:
  enum class Mode : std::uint8_t { record, compare, shift };

  /// `now`: the clock; `begin`: when the record was made; `periods`: by how many periods of now - begin to shift.
  StateWalk(Mode mode, std::vector<std::uint16_t>& words, Time now, Time begin, std::int64_t periods)
      : words_(words), now_(now), begin_(begin), periods_(periods), shift_(periods * (now - begin)), mode_(mode) {
    if (mode == Mode::record) words.clear();
  }

  [[nodiscard]] bool is_shift() const { return mode_ == Mode::shift; }
  [[nodiscard]] bool is_compare() const { return mode_ == Mode::compare; }
  [[nodiscard]] Time now() const { return now_; }
  [[nodiscard]] std::int64_t periods() const { return periods_; }
  [[nodiscard]] Time shift() const { return shift_; }
  /// Whether the walk can stop: the states differ, or the record is longer than `most_words`.
  [[nodiscard]] bool is_over() const { return differs_; }
  void limit(std::size_t most_words) { most_words_ = most_words; }
  /// To be called at the end of a comparison.
  [[nodiscard]] bool is_equal() const { return !differs_ && at_ == words_.size(); }
  /// Words written or read, and what was looked at besides; the price of the walk.
  [[nodiscard]] std::int64_t cost() const {
    return cost_ + static_cast<std::int64_t>(mode_ == Mode::record ? words_.size() : at_);
  }
  void look_at(std::int64_t things) { cost_ += things; }

  void same(std::uint64_t value) {
    if (mode_ == Mode::record) {
      put(value);
    } else if (get() != value && mode_ == Mode::compare) {
      differs_ = true;
    }
  }

  /// The same for an identifier, whose "none" is -1.
  void same_id(std::uint32_t identifier) { same(identifier + std::uint32_t{1}); }

  void due(Time& time) {
    const bool is_ahead = time > now_ && time != k_never;
    same(is_ahead ? static_cast<std::uint64_t>(time - now_) : time == k_never ? std::uint64_t{k_never} : 0);
    if (is_shift() && is_ahead) time += shift_;
  }

  void since(Time& time) {
    if (mode_ == Mode::record) return put(static_cast<std::uint64_t>(time));
    const auto before = static_cast<Time>(get());
    if (time == before) return;
    if (is_shift()) {
      time += shift_;
    } else if (time == k_never || before == k_never || now_ - time != begin_ - before) {
      differs_ = true;
    }
  }

  void stamp(Time& time) const {
    if (is_shift() && time > begin_ && time <= now_) time += shift_;
  }

  /// Gives how much the value grew in one period, but for a record.
  template <class T>
  T counter(T& value) {
    if (mode_ == Mode::record) {
      put(static_cast<std::uint64_t>(value));
      return {};
    }
    const T step = static_cast<T>(value - static_cast<T>(get()));
    if (is_shift()) value = static_cast<T>(value + step * static_cast<T>(periods_));
    return step;
  }

 private:
  static constexpr std::uint64_t k_more = 0x8000;

  void put(std::uint64_t value) {
    if (words_.size() >= most_words_) {
      differs_ = true;
      return;
    }
    for (; value >= k_more; value >>= 15) words_.push_back(static_cast<std::uint16_t>(value | k_more));
    words_.push_back(static_cast<std::uint16_t>(value));
  }

  std::uint64_t get() {
    std::uint64_t value = 0;
    for (int bit = 0; at_ < words_.size() && bit < 64; bit += 15) {
      const std::uint64_t word = words_[at_++];
      value |= (word & ~k_more) << bit;
      if (word < k_more) return value;
    }
    differs_ = true;
    return 0;
  }

  std::vector<std::uint16_t>& words_;
  Time now_;
  Time begin_;
  std::int64_t periods_;
  Time shift_;
  std::size_t at_ = 0;
  std::size_t most_words_ = SIZE_MAX;
  std::int64_t cost_ = 0;
  Mode mode_;
  bool differs_ = false;
};

}  // namespace fabricast::packet
