// SPDX-License-Identifier: Apache-2.0
#include "fabricast/parameters.hpp"

#include <cmath>

#include "base/assert.hpp"

namespace fabricast {

std::string_view to_string(Confidence confidence) {
  switch (confidence) {
    case Confidence::high:
      return "high";
    case Confidence::medium:
      return "medium";
    case Confidence::low:
      return "low";
    case Confidence::assumed:
      return "assumed";
    case Confidence::fitted:
      return "fitted";
    case Confidence::read_off:
      return "read_off";
  }
  return "";
}

void ParameterSet::set(Parameter parameter) {
  auto name = parameter.name;
  parameters_.insert_or_assign(std::move(name), std::move(parameter));
}

void ParameterSet::merge(const ParameterSet& other) {
  for (const auto& [name, parameter] : other.parameters_) parameters_.insert_or_assign(name, parameter);
}

const Parameter* ParameterSet::find(std::string_view name) const {
  const auto it = parameters_.find(name);
  if (it == parameters_.end()) return nullptr;
  if (reads_ != nullptr) reads_->insert(it->first);
  return &it->second;
}

const Parameter* ParameterSet::find(std::string_view type, std::string_view field) const {
  std::string name;
  name.reserve(type.size() + 1 + field.size());
  return find(name.append(type).append(1, '.').append(field));
}

double ParameterSet::value_or(std::string_view name, double otherwise) const {
  const auto* parameter = find(name);
  return parameter == nullptr ? otherwise : parameter->value;
}

double ParameterSet::value_or(std::string_view type, std::string_view field, double otherwise) const {
  const auto* parameter = find(type, field);
  return parameter == nullptr ? otherwise : parameter->value;
}

const Parameter& ParameterSet::at(std::string_view name) const {
  const auto* parameter = find(name);
  FABRICAST_ASSERT(parameter != nullptr, "parameter '{}' does not exist", name);
  return *parameter;
}

Bytes ParameterSet::bytes(std::string_view name) const { return {std::llround(at(name).value)}; }

const Parameter& ParameterSet::first_of(const std::vector<std::string>& names) const {
  for (const auto& name : names) {
    if (const auto* parameter = find(name)) return *parameter;
  }
  return at(names.empty() ? "" : names.back());
}

}  // namespace fabricast
