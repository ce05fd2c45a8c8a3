// SPDX-License-Identifier: Apache-2.0
// Shares stay within (0, 1]; times may be 0 and are no longer than a person waits for a benchmark's row; rates lie
// between a serial line and all memories of a rack; sizes below 2^60 B. Numbers have no unit that bounds them: each
// is declared by name.
#include "base/parameter_keys.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <vector>

#include "base/parameter_match.hpp"
#include "base/parameter_table_software.hpp"
#include "base/parameter_table_system.hpp"

namespace fabricast {

namespace {

using namespace parameter_table;

struct FieldRange {
  std::string_view field;
  Dimension dimension;
  ParameterRange range;
};

/// The range of values of devices that their dimension alone does not bound; config/device_fields.cpp declares the
/// fields themselves.
constexpr std::array k_fields{
    FieldRange{"payload_efficiency", N, k_efficiency},
    FieldRange{"nvlink_efficiency", N, k_efficiency},
    FieldRange{"host_copy_efficiency", N, k_efficiency},
    FieldRange{"pool_share", N, k_share},
    FieldRange{"ecn_probability", N, k_share_or_none},
    FieldRange{"dcqcn_initial_alpha", N, k_share_or_none},
    FieldRange{"dcqcn_g", N, k_share},
    FieldRange{"dcqcn_clamp_target", N, k_switch},
    FieldRange{"dcqcn_fast_recovery", N, count(0, 1000)},
    FieldRange{"alpha", N, k_threshold_factor},
    FieldRange{"alpha_onyx", N, k_threshold_factor},
    FieldRange{"alpha_sonic", N, k_threshold_factor},
    FieldRange{"headroom_delays", N, k_factor},
    FieldRange{"store_and_forward", N, declared(0, 2, "a factor")},
    FieldRange{"plugin_store_and_forward", N, k_factor},
    FieldRange{"plugin_line_store_and_forward", N, k_factor},
    FieldRange{"plugin_simple_only", N, k_switch},
    FieldRange{"plugin_tuner", N, k_switch},
    FieldRange{"rails", N, count(1, 64)},
    FieldRange{"rdma", N, k_switch},
    FieldRange{"multicast", N, k_switch},
    FieldRange{"sharp", N, k_switch},
    FieldRange{"sms", N, count(1, 10000)},
    FieldRange{"copy_engines", N, count(1, 64)},
    FieldRange{"cores", N, count(1, 4096)},
    FieldRange{"socket_threads", N, count(0, 16)},
    FieldRange{"sockets_per_thread", N, count(1, 64)},
    FieldRange{"ports", N, count(1, 65536)},
    FieldRange{"port_split", N, count(1, 8)},
    FieldRange{"longest_cable", N, declared(1, 1e5, "metres")},
    FieldRange{"nvlink_links", N, count(1, 36)},
    FieldRange{"pcie_generation", N, declared(1, 6, "a generation")},
    FieldRange{"pcie_width", N, declared(1, 32, "lanes")},
    FieldRange{"compute_capability", N, declared(10, 1000, "10 x major + minor")},
    FieldRange{"fp16_tflops", N, declared_rate(0.001, 1e6, "a rate of 1e12/s")},
    FieldRange{"fp32_tflops", N, declared_rate(0.001, 1e6, "a rate of 1e12/s")},
    FieldRange{"fp64_tflops", N, declared_rate(0.001, 1e6, "a rate of 1e12/s")},
    FieldRange{"tensor_tflops", N, declared_rate(0.001, 1e6, "a rate of 1e12/s")},
    FieldRange{"tdp_watts", N, declared(1, 1e5, "watts")},
    FieldRange{"message_rate", N, declared_rate(1000, 1e12, "messages per second")},
    FieldRange{"mtu", N, declared(64, 65536, "bytes")},
    FieldRange{"default_mtu", N, declared(64, 65536, "bytes")},
    FieldRange{"packet_header", N, declared(0, 65536, "bytes")},
    FieldRange{"max_payload", N, declared(64, 4096, "bytes")},
    FieldRange{"ecn_reference_rate", R, declared(0, 1e15, "a rate, 0 for fixed thresholds")},
    FieldRange{"plugin_buffer_size", B, k_part_size},
    FieldRange{"plugin_p2p_chunk", B, k_part_size},
    FieldRange{"plugin_nvls_tree_chunk", B, k_part_size},
    FieldRange{"cell", B, declared(1, 1e6, "a size above 0")},
};

ParameterRange by_dimension(Dimension dimension) {
  switch (dimension) {
    case Dimension::time:
      return {0, 10, "a time", false};
    case Dimension::bandwidth:
      return {1e3, 1e15, "a rate above 0", false, true};
    case Dimension::bytes:
      return {0, 1.2e18, "a size", false};
    case Dimension::number:
      return {0, 1e9, "a number", false};
  }
  return {};
}

/// The largest unit in which the value is 1 or more.
std::string in_units(double value, std::string_view base, const std::array<std::string_view, 5>& prefixes) {
  std::size_t i = 0;
  while (value >= 1000 && i + 1 < prefixes.size()) {
    value /= 1000;
    ++i;
  }
  return fmt::format("{:.6g} {}{}", value, prefixes[i], base);
}

std::string quantity(double value, Dimension dimension) {
  constexpr std::array<std::string_view, 5> k_prefixes{"", "k", "M", "G", "T"};
  switch (dimension) {
    case Dimension::time:
      return fmt::format("{:.6g} s", value);
    case Dimension::bandwidth:
      return in_units(value, "B/s", k_prefixes);
    case Dimension::bytes:
      return in_units(value, "B", k_prefixes);
    case Dimension::number:
      break;
  }
  return fmt::format("{:.6g}", value);
}

struct LayerKey {
  const ParameterKey* key;
  std::string_view start;  ///< of the pattern, up to its first part: most keys differ from a name here
};
using Keys = std::vector<LayerKey>;

const std::map<std::string_view, Keys>& by_layer() {
  static const auto layers = [] {
    std::map<std::string_view, Keys> out;
    for (const auto& key : parameter_keys())
      out[key.pattern.substr(0, key.pattern.find_first_of(".["))].push_back(
          {&key, key.pattern.substr(0, key.pattern.find_first_of("{["))});
    return out;
  }();
  return layers;
}

}  // namespace

std::span<const ParameterKey> parameter_keys() {
  static const auto all = [] {
    std::vector<ParameterKey> keys(k_software_keys.begin(), k_software_keys.end());
    keys.insert(keys.end(), k_system_keys.begin(), k_system_keys.end());
    return keys;
  }();
  return all;
}

const ParameterKey* key_of(std::string_view name) {
  const auto keys = by_layer().find(name.substr(0, name.find('.')));
  if (keys == by_layer().end()) return nullptr;
  const auto found = std::ranges::find_if(
      keys->second, [&](const auto& one) { return name.starts_with(one.start) && matches(one.key->pattern, name); });
  return found == keys->second.end() ? nullptr : found->key;
}

std::string_view words_of_part(std::string_view part) {
  const auto* found = part_of(part);
  return found == nullptr ? std::string_view{} : found->words;
}

std::string part_expression(std::string_view part) {
  const auto* found = part_of(part);
  if (found == nullptr) return {};
  if (found->is_open) return found->may_hold_dots ? "[-_.A-Za-z0-9]+" : "[-_A-Za-z0-9]+";
  std::string words(found->words);
  for (auto at = words.find(", "); at != std::string::npos; at = words.find(", ")) words.replace(at, 2, "|");
  return "(" + words + ")";
}

bool is_software_layer(std::string_view layer) { return by_layer().contains(layer); }

ParameterRange range_of(const ParameterKey& key) {
  return key.range.what.empty() ? by_dimension(key.dimension) : key.range;
}

ParameterRange range_of(std::string_view name, Dimension dimension) {
  if (const auto* key = key_of(name); key != nullptr && key->dimension == dimension) return range_of(*key);
  const auto field = name.substr(std::min(name.find('.') + 1, name.size()));
  const auto found = std::ranges::find_if(
      k_fields, [&](const FieldRange& one) { return one.field == field && one.dimension == dimension; });
  return found == k_fields.end() ? by_dimension(dimension) : found->range;
}

std::string to_string(const ParameterRange& range, Dimension dimension) {
  return fmt::format("{} to {}", quantity(range.low, dimension), quantity(range.high, dimension));
}

}  // namespace fabricast
