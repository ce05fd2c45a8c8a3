// SPDX-License-Identifier: Apache-2.0
// Strong types for the three physical quantities that cross function boundaries: Bytes (int64), Duration (int64 ps)
// and Bandwidth (double, B/s), and the quantity grammar used in YAML and on the command line.
// Sums of Bytes and Duration are exact, so reruns are identical; rounding happens once, in transfer_time(). What does
// not fit stays visibly past the range and is refused where results are made (simulate()).
// GB = 1e9 B, GiB = 2^30 B, Gb/s = 1e9 bit/s, always.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

namespace fabricast {

/// Whole numbers that know when they are past their range: a sum, difference, product or quotient that does not fit, or
/// that has such a number in it, is `k_past_range`, as a NaN stays a NaN. It compares greater than all others. No
/// exception: these sums are also made inside callbacks of other people's engines.
namespace range {
inline constexpr std::int64_t k_past_range = std::numeric_limits<std::int64_t>::max();

constexpr bool is_past(std::int64_t a) { return a == k_past_range; }
constexpr std::int64_t sum(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  return __builtin_add_overflow(a, b, &out) || is_past(a) || is_past(b) ? k_past_range : out;
}
constexpr std::int64_t difference(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  return __builtin_sub_overflow(a, b, &out) || is_past(a) || is_past(b) ? k_past_range : out;
}
constexpr std::int64_t product(std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  return __builtin_mul_overflow(a, b, &out) || is_past(a) || is_past(b) ? k_past_range : out;
}
/// Towards zero; past the range when `b` is 0.
constexpr std::int64_t quotient(std::int64_t a, std::int64_t b) {
  return is_past(a) || b == 0 || (b == -1 && a == std::numeric_limits<std::int64_t>::min()) ? k_past_range : a / b;
}
/// Of a whole `number` that a double holds; past the range when it does not fit or is not a number.
constexpr std::int64_t whole(double number) {
  return number > -0x1p63 && number < 0x1p63 ? static_cast<std::int64_t>(number) : k_past_range;
}
}  // namespace range

/// A number of bytes, exact, up to 8 EiB. Message sizes, buffer sizes, memory.
struct Bytes {
  std::int64_t value = 0;

  constexpr auto operator<=>(const Bytes&) const = default;
  constexpr Bytes& operator+=(Bytes b) { return *this = *this + b; }
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {range::sum(a.value, b.value)}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return {range::difference(a.value, b.value)}; }
  friend constexpr Bytes operator*(Bytes a, std::int64_t n) { return {range::product(a.value, n)}; }
  friend constexpr Bytes operator*(std::int64_t n, Bytes a) { return {range::product(a.value, n)}; }

  /// True for what does not fit: the value means "more than 8 EiB".
  [[nodiscard]] constexpr bool is_past_range() const { return range::is_past(value); }
};

/// A span of simulated time in integer picoseconds. One byte at 800 Gb/s takes 10 ps; the range is +-106 days.
struct Duration {
  std::int64_t ps = 0;

  constexpr auto operator<=>(const Duration&) const = default;
  constexpr Duration& operator+=(Duration b) { return *this = *this + b; }
  friend constexpr Duration operator+(Duration a, Duration b) { return {range::sum(a.ps, b.ps)}; }
  friend constexpr Duration operator-(Duration a, Duration b) { return {range::difference(a.ps, b.ps)}; }
  friend constexpr Duration operator*(Duration a, std::int64_t n) { return {range::product(a.ps, n)}; }
  friend constexpr Duration operator*(std::int64_t n, Duration a) { return {range::product(a.ps, n)}; }
  friend constexpr Duration operator/(Duration a, std::int64_t n) { return {range::quotient(a.ps, n)}; }

  /// True for what does not fit: the value means "more than 106 days".
  [[nodiscard]] constexpr bool is_past_range() const { return range::is_past(ps); }

  /// The same span in seconds, for use inside one model's .cpp; infinite past the range, so that it stays there.
  [[nodiscard]] constexpr double seconds() const { return in(1e-12); }
  [[nodiscard]] constexpr double us() const { return in(1e-6); }

 private:
  [[nodiscard]] constexpr double in(double ps_per_unit) const {
    return is_past_range() ? std::numeric_limits<double>::infinity() : static_cast<double>(ps) * ps_per_unit;
  }
};

/// A rate in bytes per second; positive for links, 0 for "no capacity".
struct Bandwidth {
  double bytes_per_s = 0;

  constexpr auto operator<=>(const Bandwidth&) const = default;
  friend constexpr Bandwidth operator*(Bandwidth a, double f) { return {a.bytes_per_s * f}; }
  friend constexpr Bandwidth operator*(double f, Bandwidth a) { return {a.bytes_per_s * f}; }
  friend constexpr Bandwidth operator+(Bandwidth a, Bandwidth b) { return {a.bytes_per_s + b.bytes_per_s}; }
};

/// Seconds to the nearest picosecond; past the range when they do not fit (beyond 106 days, or not a number).
Duration from_seconds(double seconds);

/// Seconds to whole picoseconds, up, but not because of the last bits of a double; past the range as from_seconds().
Duration from_seconds_up(double seconds);

/// Bytes as a model counts them to the nearest whole one; past the range when they do not fit.
Bytes to_bytes(double bytes);

/// Time to move `size` at `rate`, rounded up to the next picosecond so that no prediction is below the physical bound.
/// Past the range for a rate of zero or less.
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
