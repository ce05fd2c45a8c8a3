// SPDX-License-Identifier: Apache-2.0
// Floors as `expect` wrote them, YAML or JSON (which is YAML, too).
#include <fmt/format.h>

#include <charconv>
#include <cmath>

#include "config/tree.hpp"
#include "fabricast/doctor.hpp"

namespace fabricast {

namespace {

/// A finite number above 0 under one of two keys, times the unit of each.
std::optional<double> number_at(const config::Node& node, const char* key, double unit, const char* other,
                                double other_unit) {
  for (const auto& [name, scale] : {std::pair(key, unit), std::pair(other, other_unit)}) {
    const auto* found = node.find(name);
    if (found == nullptr) continue;
    double value = 0;
    const auto& text = found->scalar;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    if (read.ec == std::errc{} && read.ptr == text.data() + text.size() && std::isfinite(value) && value >= 0)
      return value * scale;
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<Floor>> read_floors(std::string_view text, const std::string& name) {
  Diagnostics faults;
  const auto document = config::parse_yaml(name, std::string(text), faults);
  if (has_errors(faults)) return tl::unexpected(std::move(faults));
  const auto* schema = document.find("schema");
  const auto* list = document.find("floors");
  if (schema == nullptr || schema->scalar != "fabricast/floors/1" || list == nullptr)
    return tl::unexpected(Diagnostics{
        document.error("this is no file of floors", "`fabricast expect` writes one (schema: fabricast/floors/1)")});
  std::vector<Floor> out;
  for (const auto& one : list->items) {
    Floor floor;
    const auto* benchmark = one.find("benchmark");
    const auto known = benchmark == nullptr ? std::nullopt : benchmark_from_name(benchmark->scalar);
    const auto ranks = number_at(one, "ranks", 1, "ranks", 1), hosts = number_at(one, "hosts", 1, "hosts", 1),
               size = number_at(one, "size_bytes", 1, "size_bytes", 1);
    const auto expected = number_at(one, "expected_us", 1e-6, "expected_time_ps", 1e-12),
               slowest = number_at(one, "slowest_us", 1e-6, "slowest_time_ps", 1e-12);
    if (!known || !ranks || !hosts || !size || !expected || !slowest || *size > 9e18 || *ranks > 1e9 || *hosts > 1e9 ||
        *expected <= 0) {
      faults.push_back(one.error("a floor needs benchmark, hosts, ranks, size_bytes, expected and slowest time"));
      continue;
    }
    floor.benchmark = *known;
    floor.ranks = static_cast<int>(*ranks);
    floor.hosts = static_cast<int>(*hosts);
    floor.size = Bytes{static_cast<std::int64_t>(*size)};
    floor.expected = from_seconds(*expected);
    floor.slowest = from_seconds(*slowest);
    floor.expected_busbw = {number_at(one, "expected_GBps", 1e9, "expected_busbw_bytes_per_s", 1).value_or(0)};
    floor.lowest_busbw = {number_at(one, "floor_GBps", 1e9, "floor_busbw_bytes_per_s", 1).value_or(0)};
    if (const auto* reason = one.find("reason")) floor.reason = reason->scalar;
    out.push_back(std::move(floor));
  }
  if (!faults.empty()) return tl::unexpected(std::move(faults));
  return out;
}

}  // namespace fabricast
