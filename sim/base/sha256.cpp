// SPDX-License-Identifier: Apache-2.0
#include "base/sha256.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace fabricast {

namespace {

/// First 32 bits of the fractional part of a root of the n-th prime, as the standard defines its constants.
std::uint32_t root_bits(int prime, bool cube) {
  const long double root = cube ? cbrtl(static_cast<long double>(prime)) : sqrtl(static_cast<long double>(prime));
  return static_cast<std::uint32_t>((root - floorl(root)) * 4294967296.0L);
}

struct Constants {
  std::array<std::uint32_t, 64> round{};
  std::array<std::uint32_t, 8> start{};
  Constants() {
    std::size_t count = 0;
    for (int n = 2; count < 64; ++n) {
      bool is_prime = true;
      for (int d = 2; d * d <= n; ++d) is_prime = is_prime && n % d != 0;
      if (!is_prime) continue;
      round[count] = root_bits(n, true);
      if (count < 8) start[count] = root_bits(n, false);
      ++count;
    }
  }
};

std::uint32_t rotate(std::uint32_t x, int n) { return (x >> n) | (x << (32 - n)); }

void add_block(std::array<std::uint32_t, 8>& hash, const unsigned char* block, const Constants& constants) {
  std::array<std::uint32_t, 64> w{};
  for (std::size_t i = 0; i < 16; ++i) {
    w[i] = static_cast<std::uint32_t>(block[4 * i]) << 24 | static_cast<std::uint32_t>(block[4 * i + 1]) << 16 |
           static_cast<std::uint32_t>(block[4 * i + 2]) << 8 | block[4 * i + 3];
  }
  for (std::size_t i = 16; i < 64; ++i) {
    const auto s0 = rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const auto s1 = rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = hash;
  for (std::size_t i = 0; i < 64; ++i) {
    const auto t1 =
        h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + constants.round[i] + w[i];
    const auto t2 = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g;
    g = f;
    f = e;
    e = d + t1;
    d = c;
    c = b;
    b = a;
    a = t1 + t2;
  }
  const std::array<std::uint32_t, 8> sum{a, b, c, d, e, f, g, h};
  for (std::size_t i = 0; i < 8; ++i) hash[i] += sum[i];
}

}  // namespace

std::string sha256(std::string_view text) {
  static const Constants constants;
  auto hash = constants.start;
  std::string padded(text);
  padded.push_back('\x80');
  while (padded.size() % 64 != 56) padded.push_back('\0');
  const auto bits = static_cast<std::uint64_t>(text.size()) * 8;
  for (int shift = 56; shift >= 0; shift -= 8) padded.push_back(static_cast<char>(bits >> shift));
  for (std::size_t at = 0; at < padded.size(); at += 64)
    add_block(hash, reinterpret_cast<const unsigned char*>(padded.data()) + at, constants);
  std::string hex;
  for (const auto word : hash) hex += fmt::format("{:08x}", word);
  return hex;
}

std::string sha256_of_text(std::string_view text) {
  return sha256(text.starts_with("\xEF\xBB\xBF") ? text.substr(3) : text);
}

std::optional<std::string> sha256_of_file(const std::string& path) {
  std::error_code code;
  if (!std::filesystem::is_regular_file(path, code)) return std::nullopt;
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  return sha256_of_text(std::string{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()});
}

}  // namespace fabricast
