// SPDX-License-Identifier: Apache-2.0
#include "topology/device_values.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fabricast::topology {

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const auto name = nearest_name(word, candidates);
  return name.empty() ? std::string{} : fmt::format("did you mean '{}'?", name);
}

DeviceValues::DeviceValues(const ParameterSet& parameters, const std::vector<DeviceType>& types,
                           Diagnostics& diagnostics)
    : parameters_(parameters), types_(types), diagnostics_(diagnostics) {}

const DeviceType* DeviceValues::find_type(const std::string& type) const {
  const auto it = std::ranges::find(types_, type, &DeviceType::name);
  return it == types_.end() ? nullptr : &*it;
}

bool DeviceValues::has_any_value(const std::string& type) const {
  const auto prefix = type + ".";
  const auto it = parameters_.all().lower_bound(prefix);
  return it != parameters_.all().end() && it->first.starts_with(prefix);
}

bool DeviceValues::check_type(const std::string& type, std::string_view kind, const SourceLocation& location) {
  if (const auto* found = find_type(type)) {
    if (found->kind == kind) return true;
    if (reported_.insert(fmt::format("{} as {}", type, kind)).second) {
      error(location,
            fmt::format("'{}' is a device of kind '{}', expected a device of kind '{}'", type, found->kind, kind));
    }
    return false;
  }
  if (has_any_value(type)) return true;
  if (!reported_.insert(fmt::format("{} as {}", type, kind)).second) return false;
  std::vector<std::string> names;
  for (const auto& candidate : types_) {
    if (candidate.kind == kind) names.push_back(candidate.name);
  }
  if (type.empty()) {
    error(location, fmt::format("no device type given, expected the name of a device of kind '{}'", kind));
  } else {
    error(location, fmt::format("unknown device type '{}', expected a device of kind '{}'", type, kind),
          did_you_mean(type, names));
  }
  return false;
}

std::optional<double> DeviceValues::find(std::string_view type, std::string_view field) const {
  auto of_type = known_.find(type);
  if (of_type == known_.end()) of_type = known_.try_emplace(std::string(type)).first;
  const auto known = of_type->second.find(field);
  if (known != of_type->second.end()) return known->second;
  const auto* parameter = parameters_.find(type, field);
  const auto value = parameter == nullptr ? std::nullopt : std::optional(parameter->value);
  return of_type->second.try_emplace(std::string(field), value).first->second;
}

double DeviceValues::value_or(std::string_view type, std::string_view field, double fallback) const {
  return find(type, field).value_or(fallback);
}

Duration DeviceValues::duration_or(std::string_view type, std::string_view field, Duration fallback) const {
  const auto seconds = find(type, field);
  return seconds ? from_seconds(*seconds) : fallback;
}

bool DeviceValues::is_first_report(const std::string& type, const std::string& field) {
  const bool is_known = find_type(type) != nullptr || has_any_value(type);
  return is_known && reported_.insert(type + "." + field).second;
}

void DeviceValues::report_missing(const std::string& type, const std::string& field, const char* example,
                                  const SourceLocation& location) {
  const auto* known = find_type(type);
  const auto file = known == nullptr || known->origin.empty() ? std::string{} : fmt::format(" ({})", known->origin);
  error(location, fmt::format("device type '{}'{} has no '{}', which is needed here", type, file, field),
        fmt::format("add `{}: {{value: {}, source: data sheet}}` to its values, or set the parameter '{}.{}'", field,
                    example, type, field));
}

double DeviceValues::required(const std::string& type, const std::string& field, const SourceLocation& location) {
  const auto value = find(type, field);
  if (value && *value > 0) return *value;
  if (is_first_report(type, field)) {
    if (value) {
      error(location, fmt::format("'{}.{}' is {}, expected a value above 0", type, field, *value));
    } else {
      report_missing(type, field, field == "ports" ? "40" : "100 GB/s", location);
    }
  }
  return 1;
}

Duration DeviceValues::required_duration(const std::string& type, const std::string& field,
                                         const SourceLocation& location) {
  const auto value = find(type, field);
  if (value && *value >= 0) return from_seconds(*value);
  if (is_first_report(type, field)) {
    if (value) {
      error(location, fmt::format("'{}.{}' is {} s, expected 0 or more", type, field, *value));
    } else {
      report_missing(type, field, "100 ns", location);
    }
  }
  return {0};
}

void DeviceValues::error(const SourceLocation& location, std::string message, std::string hint) {
  report(make_error_at(location, std::move(message), std::move(hint)));
}

}  // namespace fabricast::topology
