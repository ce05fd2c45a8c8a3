// SPDX-License-Identifier: Apache-2.0
// Strong types for the three physical quantities that cross function boundaries: Bytes (int64), Duration (int64 ps)
// and Bandwidth (double, B/s), and the quantity grammar used in YAML and on the command line.
// Sums of Bytes and Duration are exact, so reruns are identical; rounding happens once, in transfer_time().
// GB = 1e9 B, GiB = 2^30 B, Gb/s = 1e9 bit/s, always.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace fabricast {

/// A number of bytes, exact. Message sizes, buffer sizes, memory.
struct Bytes {
  std::int64_t value = 0;

  constexpr auto operator<=>(const Bytes&) const = default;
  constexpr Bytes& operator+=(Bytes b) {
    value += b.value;
    return *this;
  }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.value + b.value}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return {a.value - b.value}; }
  friend constexpr Bytes operator*(Bytes a, std::int64_t n) { return {a.value * n}; }
  friend constexpr Bytes operator*(std::int64_t n, Bytes a) { return {a.value * n}; }
};

/// A span of simulated time in integer picoseconds. One byte at 800 Gb/s takes 10 ps; the range is +-106 days.
struct Duration {
  std::int64_t ps = 0;

  constexpr auto operator<=>(const Duration&) const = default;
  constexpr Duration& operator+=(Duration b) {
    ps += b.ps;
    return *this;
  }
  friend constexpr Duration operator+(Duration a, Duration b) { return {a.ps + b.ps}; }
  friend constexpr Duration operator-(Duration a, Duration b) { return {a.ps - b.ps}; }
  friend constexpr Duration operator*(Duration a, std::int64_t n) { return {a.ps * n}; }
  friend constexpr Duration operator*(std::int64_t n, Duration a) { return {a.ps * n}; }

  /// The same span in seconds, for use inside one model's .cpp.
  [[nodiscard]] constexpr double seconds() const { return static_cast<double>(ps) * 1e-12; }
  [[nodiscard]] constexpr double us() const { return static_cast<double>(ps) * 1e-6; }
};

/// A rate in bytes per second; positive for links, 0 for "no capacity".
struct Bandwidth {
  double bytes_per_s = 0;

  constexpr auto operator<=>(const Bandwidth&) const = default;
  friend constexpr Bandwidth operator*(Bandwidth a, double f) { return {a.bytes_per_s * f}; }
  friend constexpr Bandwidth operator*(double f, Bandwidth a) { return {a.bytes_per_s * f}; }
  friend constexpr Bandwidth operator+(Bandwidth a, Bandwidth b) { return {a.bytes_per_s + b.bytes_per_s}; }
};

/// Seconds to the nearest picosecond; saturates at the ends of the range instead of overflowing.
Duration from_seconds(double seconds);

/// Time to move `size` at `rate`, rounded up to the next picosecond so that no prediction is below the physical bound.
/// A rate of zero or less gives the largest Duration.
Duration transfer_time(Bytes size, Bandwidth rate);

/// Average rate that moves `size` in `time`; zero when `time` is zero.
Bandwidth average_rate(Bytes size, Duration time);

/// What a quantity measures. `number` is a plain count or fraction and needs no unit in YAML.
enum class Dimension { bytes, time, bandwidth, number };

/// Name of a dimension as messages print it: "size", "time", "bandwidth", "number".
std::string_view to_string(Dimension dimension);

/// Outcome of reading a quantity: `ok`, or `error` with what was wrong and a `hint` with the fix (may be empty).
struct ParsedQuantity {
  bool ok = false;
  double value = 0;  ///< SI base unit: bytes, seconds, bytes per second, or the plain number
  std::string error;
  std::string hint;
};

/// Reads `number [space] unit`, e.g. `100 Gb/s`, `12.5 GB/s`, `1.3 us`, `64 KiB`, as a quantity of `dimension`.
/// b = bit, B = byte; k M G T are powers of 1000, Ki Mi Gi Ti of 1024. `Gbps` is read as `Gb/s`. Bare numbers other
/// than 0 and ambiguous spellings (`GBps`, `gb/s`, `KB`, `K`) are refused with a hint that names the possible readings.
ParsedQuantity parse_quantity(std::string_view text, Dimension dimension);

/// Three significant digits with a unit, for people: "64 KiB", "1.30 us", "12.5 GB/s".
std::string to_string(Bytes size);
std::string to_string(Duration time);
std::string to_string(Bandwidth rate);

namespace literals {
// NOLINTBEGIN(google-runtime-int): the standard fixes the parameter types of literal operators
constexpr Bytes operator""_B(unsigned long long n) { return {static_cast<std::int64_t>(n)}; }
constexpr Bytes operator""_KiB(unsigned long long n) { return {static_cast<std::int64_t>(n) << 10}; }
constexpr Bytes operator""_MiB(unsigned long long n) { return {static_cast<std::int64_t>(n) << 20}; }
constexpr Bytes operator""_GiB(unsigned long long n) { return {static_cast<std::int64_t>(n) << 30}; }
constexpr Duration operator""_ps(unsigned long long n) { return {static_cast<std::int64_t>(n)}; }
constexpr Duration operator""_ns(unsigned long long n) { return {static_cast<std::int64_t>(n) * 1'000}; }
constexpr Duration operator""_us(unsigned long long n) { return {static_cast<std::int64_t>(n) * 1'000'000}; }
constexpr Duration operator""_us(long double n) { return {static_cast<std::int64_t>(n * 1e6L + 0.5L)}; }
constexpr Duration operator""_ms(unsigned long long n) { return {static_cast<std::int64_t>(n) * 1'000'000'000}; }
constexpr Bandwidth operator""_Gbps(unsigned long long n) { return {static_cast<double>(n) * 0.125e9}; }
constexpr Bandwidth operator""_GBps(unsigned long long n) { return {static_cast<double>(n) * 1e9}; }
constexpr Bandwidth operator""_GBps(long double n) { return {static_cast<double>(n) * 1e9}; }
// NOLINTEND(google-runtime-int)
}  // namespace literals

}  // namespace fabricast
