// SPDX-License-Identifier: Apache-2.0
#include "readers/json_values.hpp"

#include <cmath>

#include "readers/text.hpp"

namespace fabricast::readers {

using nlohmann::json;

std::optional<double> number_of(const json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end()) return std::nullopt;
  if (it->is_number()) {
    const auto value = it->get<double>();
    return std::isfinite(value) ? std::optional(value) : std::nullopt;
  }
  if (!it->is_string()) return std::nullopt;
  const auto printed = parse_printed(trim(it->get_ref<const std::string&>()));
  return printed ? std::optional(printed->value) : std::nullopt;
}

std::optional<int> int_of(const json& object, const char* key) {
  const auto value = number_of(object, key);
  constexpr double k_largest_int = 2e9;
  if (!value || std::abs(*value) > k_largest_int) return std::nullopt;
  return static_cast<int>(*value);
}

std::optional<Bytes> bytes_of(const json& object, const char* key) {
  const auto value = number_of(object, key);
  constexpr double k_largest_size = 9e18;
  if (!value || *value < 0 || *value > k_largest_size) return std::nullopt;
  return Bytes{std::llround(*value)};
}

std::string text_of(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? std::string(trim(it->get_ref<const std::string&>())) : std::string{};
}

const json& object_of(const json& object, const char* key) {
  static const json k_none = json::object();
  const auto it = object.find(key);
  return it != object.end() && it->is_object() ? *it : k_none;
}

}  // namespace fabricast::readers
