// SPDX-License-Identifier: Apache-2.0
// Numbers that look random and are functions of their arguments alone, so that the order of events does not matter.
#pragma once

#include <cstdint>

namespace fabricast::packet {

/// Finaliser of splitmix64.
constexpr std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// Uniform in [0, 1).
constexpr double uniform(std::uint64_t seed, std::uint64_t a, std::uint64_t b) {
  const std::uint64_t x = seed * 0x9e3779b97f4a7c15ULL + a * 0xbf58476d1ce4e5b9ULL + b * 0x94d049bb133111ebULL;
  return static_cast<double>(mix(x) >> 11) * 0x1p-53;
}

}  // namespace fabricast::packet
