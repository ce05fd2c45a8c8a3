// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace fabricast::models {

/// Pseudo-random numbers in [0, 1) for simulated schedulers; the same for every run [Steele, Lea, Flood, OOPSLA 2014].
class SplitMix {
 public:
  explicit SplitMix(std::uint64_t seed) : state_(seed) {}
  double next() {
    state_ += 0x9e3779b97f4a7c15ULL;
    std::uint64_t z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
    return static_cast<double>((z ^ (z >> 31U)) >> 11U) * 0x1.0p-53;
  }

 private:
  std::uint64_t state_;
};

}  // namespace fabricast::models
