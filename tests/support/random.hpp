// SPDX-License-Identifier: Apache-2.0
// Numbers for random test cases: the same on every machine for the same seed.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <vector>

namespace fabricast::test {

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FABRICAST_IS_SANITIZED 1
#endif
#endif
#ifdef FABRICAST_IS_SANITIZED
inline constexpr std::uint64_t k_share_of_draws = 5;
#else
inline constexpr std::uint64_t k_share_of_draws = 1;
#endif

/// How many of `all` random cases a law takes: a fifth under sanitizers, where each takes many times as long.
constexpr std::uint64_t draws(std::uint64_t all) { return (all + k_share_of_draws - 1) / k_share_of_draws; }

/// FABRICAST_SEED: another set of random cases for every law, to look for what those of 0, the default, do not show.
inline std::uint64_t other_cases() {
  static const char* const text = std::getenv("FABRICAST_SEED");
  static const std::uint64_t value = text == nullptr ? 0 : std::strtoull(text, nullptr, 10);
  return value;
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_((seed + (other_cases() << 20)) * 0x9e3779b97f4a7c15ULL + 1) {}
  std::uint64_t next(std::uint64_t below) {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return (state_ >> 33) % below;
  }
  template <typename T>
  T pick(const std::vector<T>& from) {
    return from[next(from.size())];
  }

 private:
  std::uint64_t state_;
};

}  // namespace fabricast::test
