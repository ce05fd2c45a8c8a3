// SPDX-License-Identifier: Apache-2.0
// The quantity grammar: number, at most one space, unit. See units.hpp.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/text.hpp"
#include "fabricast/units.hpp"

namespace fabricast {

namespace {

struct Unit {
  std::string_view name;
  Dimension dimension;
  double factor;
};

constexpr double k_kibi = 1024.0;

constexpr std::array k_units{
    Unit{"B", Dimension::bytes, 1},
    Unit{"kB", Dimension::bytes, 1e3},
    Unit{"MB", Dimension::bytes, 1e6},
    Unit{"GB", Dimension::bytes, 1e9},
    Unit{"TB", Dimension::bytes, 1e12},
    Unit{"KiB", Dimension::bytes, k_kibi},
    Unit{"MiB", Dimension::bytes, k_kibi* k_kibi},
    Unit{"GiB", Dimension::bytes, k_kibi* k_kibi* k_kibi},
    Unit{"TiB", Dimension::bytes, k_kibi* k_kibi* k_kibi* k_kibi},
    Unit{"ps", Dimension::time, 1e-12},
    Unit{"ns", Dimension::time, 1e-9},
    Unit{"us", Dimension::time, 1e-6},
    Unit{"\xC2\xB5s", Dimension::time, 1e-6},
    Unit{"ms", Dimension::time, 1e-3},
    Unit{"s", Dimension::time, 1},
    Unit{"b/s", Dimension::bandwidth, 0.125},
    Unit{"kb/s", Dimension::bandwidth, 0.125e3},
    Unit{"Mb/s", Dimension::bandwidth, 0.125e6},
    Unit{"Gb/s", Dimension::bandwidth, 0.125e9},
    Unit{"Tb/s", Dimension::bandwidth, 0.125e12},
    Unit{"Mbps", Dimension::bandwidth, 0.125e6},
    Unit{"Gbps", Dimension::bandwidth, 0.125e9},
    Unit{"Tbps", Dimension::bandwidth, 0.125e12},
    Unit{"B/s", Dimension::bandwidth, 1},
    Unit{"kB/s", Dimension::bandwidth, 1e3},
    Unit{"MB/s", Dimension::bandwidth, 1e6},
    Unit{"GB/s", Dimension::bandwidth, 1e9},
    Unit{"TB/s", Dimension::bandwidth, 1e12},
    Unit{"KiB/s", Dimension::bandwidth, k_kibi},
    Unit{"MiB/s", Dimension::bandwidth, k_kibi* k_kibi},
    Unit{"GiB/s", Dimension::bandwidth, k_kibi* k_kibi* k_kibi},
};

std::string_view examples(Dimension dimension) {
  switch (dimension) {
    case Dimension::bytes:
      return "'64 KiB' or '1 MB'";
    case Dimension::time:
      return "'1.3 us' or '130 ns'";
    case Dimension::bandwidth:
      return "'100 Gb/s' or '12.5 GB/s'";
    case Dimension::number:
      return "a plain number such as 0.91";
  }
  return "";
}

/// Both readings of a unit whose case or form is ambiguous.
std::string ambiguous_hint(std::string_view number, std::string_view unit, Dimension dimension) {
  const auto small = lower(unit);
  if (dimension == Dimension::bytes && (small == "byte" || small == "bytes"))
    return fmt::format("did you mean '{} B'?", number);
  if (small == "gt/s") return "PCIe speed is given as generation and lanes: `pcie: gen3 x16`";
  if (dimension == Dimension::bandwidth && !small.empty()) {
    const char prefix = small[0];
    if (prefix == 'k' || prefix == 'm' || prefix == 'g' || prefix == 't') {
      const char upper = prefix == 'k' ? 'k' : static_cast<char>(prefix - 'a' + 'A');
      return fmt::format("write '{} {}B/s' for bytes or '{} {}b/s' for bits", number, upper, number, upper);
    }
  }
  if (dimension == Dimension::bytes && !small.empty()) {
    const char prefix = small[0];
    if (prefix == 'k' || prefix == 'm' || prefix == 'g' || prefix == 't') {
      const char upper = static_cast<char>(prefix - 'a' + 'A');
      return fmt::format("write '{} {}iB' for powers of 1024 or '{} {}B' for powers of 1000", number, upper, number,
                         prefix == 'k' ? 'k' : upper);
    }
  }
  for (const auto& known : k_units) {
    if (known.dimension == dimension && lower(known.name) == small)
      return fmt::format("did you mean '{} {}'?", number, known.name);
  }
  return fmt::format("write {}", examples(dimension));
}

}  // namespace

std::string_view to_string(Dimension dimension) {
  switch (dimension) {
    case Dimension::bytes:
      return "size";
    case Dimension::time:
      return "time";
    case Dimension::bandwidth:
      return "bandwidth";
    case Dimension::number:
      return "number";
  }
  return "";
}

ParsedQuantity parse_quantity(std::string_view text, Dimension dimension) {
  const auto refuse = [&](std::string error, std::string hint) {
    return ParsedQuantity{false, 0, std::move(error), std::move(hint)};
  };
  double number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool looks_like_a_word =
      !text.empty() && ((text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z'));
  if (parsed.ec == std::errc::result_out_of_range)
    return refuse(fmt::format("'{}' is out of range for a {}", text, to_string(dimension)), {});
  if (parsed.ec != std::errc{} || looks_like_a_word || !std::isfinite(number)) {
    return refuse(fmt::format("'{}' is no {}", text, to_string(dimension)),
                  fmt::format("write {}", examples(dimension)));
  }
  const std::string_view digits(text.data(), static_cast<std::size_t>(parsed.ptr - text.data()));
  std::string_view unit(parsed.ptr, static_cast<std::size_t>(text.data() + text.size() - parsed.ptr));
  if (!unit.empty() && unit[0] == ' ') unit.remove_prefix(1);
  if (number < 0 && dimension != Dimension::number)
    return refuse(fmt::format("'{}' is negative, a {} is not", text, to_string(dimension)), {});
  if (unit.empty()) {
    if (dimension == Dimension::number || number == 0) return {true, number, {}, {}};
    return refuse(fmt::format("'{}' has no unit, a {} needs one", text, to_string(dimension)),
                  fmt::format("write {}", examples(dimension)));
  }
  if (dimension == Dimension::number)
    return refuse(fmt::format("'{}' has a unit, a plain number is expected", text), fmt::format("write {}", digits));
  for (const auto& known : k_units) {
    if (known.name != unit) continue;
    if (known.dimension != dimension) {
      return refuse(
          fmt::format("'{}' is a {}, a {} is expected", text, to_string(known.dimension), to_string(dimension)),
          fmt::format("write {}", examples(dimension)));
    }
    const double value = number * known.factor;
    const double largest = dimension == Dimension::time ? 9.2e6 : 9.2e18;
    if (value > largest) return refuse(fmt::format("'{}' is out of range for a {}", text, to_string(dimension)), {});
    return {true, value, {}, {}};
  }
  return refuse(fmt::format("'{}' has the unknown unit '{}'", text, unit), ambiguous_hint(digits, unit, dimension));
}

namespace {

/// Three significant digits, trailing zeros kept, no exponent in the usual range.
std::string three_digits(double value) {
  if (value >= 999.5 || value == 0) return fmt::format("{:.0f}", value);
  const int before = value >= 99.95 ? 0 : (value >= 9.995 ? 1 : (value >= 0.9995 ? 2 : 3));
  return fmt::format("{:.{}f}", value, before);
}

}  // namespace

std::string to_string(Bytes size) {
  const double bytes = static_cast<double>(size.value);
  constexpr std::array<std::string_view, 5> k_names{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  double scaled = bytes;
  while (scaled >= 1024 && unit + 1 < k_names.size()) {
    scaled /= 1024;
    ++unit;
  }
  if (scaled == std::floor(scaled)) return fmt::format("{:.0f} {}", scaled, k_names[unit]);
  if (unit == 1 && size.value < 1'000'000) return fmt::format("{} B", size.value);
  return fmt::format("{} {}", three_digits(scaled), k_names[unit]);
}

std::string to_string(Duration time) {
  const double ps = static_cast<double>(time.ps);
  const double magnitude = std::abs(ps);
  const auto print = [&](double factor, std::string_view unit) {
    return fmt::format("{}{} {}", ps < 0 ? "-" : "", three_digits(magnitude / factor), unit);
  };
  if (magnitude < 1e3) return fmt::format("{} ps", time.ps);
  if (magnitude < 1e6) return print(1e3, "ns");
  if (magnitude < 1e9) return print(1e6, "us");
  if (magnitude < 1e12) return print(1e9, "ms");
  return print(1e12, "s");
}

std::string to_string(Bandwidth rate) {
  const double r = rate.bytes_per_s;
  if (r < 1e3) return fmt::format("{} B/s", three_digits(r));
  if (r < 1e6) return fmt::format("{} kB/s", three_digits(r / 1e3));
  if (r < 1e9) return fmt::format("{} MB/s", three_digits(r / 1e6));
  if (r < 1e12) return fmt::format("{} GB/s", three_digits(r / 1e9));
  return fmt::format("{} TB/s", three_digits(r / 1e12));
}

}  // namespace fabricast
