// SPDX-License-Identifier: Apache-2.0
#include "config/parameter_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "base/parameter_keys.hpp"
#include "base/text.hpp"
#include "config/devices.hpp"
#include "config/schema.hpp"

namespace fabricast::config {

namespace {

class Check {
 public:
  explicit Check(const std::vector<DeviceType>* types) : types_(types) {}

  void look_at(const Parameter& given) {
    const auto dot = std::min(given.name.find('.'), given.name.size());
    const auto layer = given.name.substr(0, dot);
    const auto rest = given.name.substr(std::min(dot + 1, given.name.size()));
    if (is_software_layer(layer))
      look_at_software(given);
    else
      look_at_device(given, layer, rest);
  }

  [[nodiscard]] Diagnostics take() { return std::move(faults_); }

 private:
  void look_at_software(const Parameter& given) {
    const auto* key = key_of(given.name);
    if (key != nullptr) return compare(given, key->dimension);
    std::vector<std::string> names;
    for (const auto& [name, unused] : shipped().all()) names.push_back(name);
    const auto near = nearest_name(given.name, names);
    warn(given, fmt::format("no model reads '{}'", given.name),
         near.empty() ? "`fabricast list keys` prints every name there is" : fmt::format("did you mean '{}'?", near));
  }

  void look_at_device(const Parameter& given, const std::string& device, const std::string& field) {
    const auto kind = kind_of(device);
    if (kind.empty()) {
      if (types_ == nullptr) return;
      auto names = DeviceLibrary::shipped_names();
      for (const auto& type : *types_) names.push_back(type.name);
      const auto near = nearest_name(device, names);
      const auto hint = near.empty() ? "`fabricast list devices` prints the catalogue"
                                     : fmt::format("did you mean '{}.{}'?", near, field);
      return warn(given, fmt::format("no model reads '{}': no device type is called '{}'", given.name, device), hint);
    }
    for (const auto* fields : fields_of(kind))
      for (const auto& one : *fields)
        if (one.name == field) return compare(given, one.dimension);
    std::vector<std::string> names;
    for (const auto* fields : fields_of(kind))
      for (const auto& one : *fields) names.emplace_back(one.name);
    const auto near = nearest_name(field, names);
    warn(given, fmt::format("no model reads '{}': a {} has no field '{}'", given.name, kind, field),
         near.empty() ? fmt::format("`fabricast schema device` lists the fields of a {}", kind)
                      : fmt::format("did you mean '{}.{}'?", device, near));
  }

  void compare(const Parameter& given, Dimension expected) {
    if (expected == given.dimension || given.value == 0) return;
    auto fault = make_error_at(given.location, fmt::format("'{}' is a {}, a {} is expected", given.name,
                                                           to_string(given.dimension), to_string(expected)));
    fault.notes.push_back({"write the value with its unit, as `fabricast list parameters` shows it", {}});
    faults_.push_back(std::move(fault));
  }

  void warn(const Parameter& given, std::string message, std::string hint) {
    auto fault = make_error_at(given.location, std::move(message));
    fault.severity = Severity::warning;
    fault.notes.push_back({std::move(hint), {}});
    faults_.push_back(std::move(fault));
  }

  [[nodiscard]] std::string kind_of(const std::string& device) const {
    if (types_ != nullptr) {
      const auto own = std::ranges::find(*types_, device, &DeviceType::name);
      if (own != types_->end()) return own->kind;
    }
    return DeviceLibrary::shipped_kind(device);
  }

  /// A switch takes its packet memory's values from its ASIC, or has them itself.
  static std::vector<const std::vector<DeviceField>*> fields_of(const std::string& kind) {
    if (kind == "network_switch") return {&device_fields(kind), &device_fields("switch_asic")};
    return {&device_fields(kind)};
  }

  const ParameterSet& shipped() {
    if (!shipped_) shipped_ = shipped_parameters(ignored_);
    return *shipped_;
  }

  const std::vector<DeviceType>* types_;
  std::optional<ParameterSet> shipped_;
  Diagnostics ignored_;
  Diagnostics faults_;
};

}  // namespace

Diagnostics check_declared(const ParameterSet& given, const std::vector<DeviceType>* types) {
  Check check(types);
  for (const auto& [name, parameter] : given.all()) check.look_at(parameter);
  return check.take();
}

}  // namespace fabricast::config
