// SPDX-License-Identifier: Apache-2.0
// Values of device types while a topology is built: `<type>.<field>` parameters, with a diagnostic at the place of use
// for unknown types and missing or absurd values. Each fault of a type is reported once, at its first use.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fabricast/diagnostic.hpp"
#include "fabricast/parameters.hpp"
#include "fabricast/topology.hpp"

namespace fabricast::topology {

/// "did you mean 'x'?" or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

class DeviceValues {
 public:
  DeviceValues(const ParameterSet& parameters, const std::vector<DeviceType>& types, Diagnostics& diagnostics);

  /// True when `type` is a known type of `kind` (gpu, hca, network_switch, ...); else reports it.
  bool check_type(const std::string& type, std::string_view kind, const SourceLocation& location);

  [[nodiscard]] std::optional<double> find(std::string_view type, std::string_view field) const;
  [[nodiscard]] double value_or(std::string_view type, std::string_view field, double fallback) const;
  [[nodiscard]] Duration duration_or(std::string_view type, std::string_view field, Duration fallback) const;
  /// A value that must exist and be above zero; reported and replaced by 1 when it is not. Silent for unknown types.
  double required(const std::string& type, const std::string& field, const SourceLocation& location);
  /// Like required(), but zero is allowed and the replacement is 0.
  Duration required_duration(const std::string& type, const std::string& field, const SourceLocation& location);

  void report(Diagnostic diagnostic) { diagnostics_.push_back(std::move(diagnostic)); }
  void error(const SourceLocation& location, std::string message, std::string hint = {});
  [[nodiscard]] std::size_t num_faults() const { return diagnostics_.size(); }

 private:
  [[nodiscard]] const DeviceType* find_type(const std::string& type) const;
  [[nodiscard]] bool has_any_value(const std::string& type) const;
  /// True when the missing value `type.field` is to be reported: a known type, and not reported before.
  bool is_first_report(const std::string& type, const std::string& field);
  void report_missing(const std::string& type, const std::string& field, const char* example,
                      const SourceLocation& location);

  const ParameterSet& parameters_;
  const std::vector<DeviceType>& types_;
  Diagnostics& diagnostics_;
  std::set<std::string> reported_;
  /// Types and fields are few, cables and switches that ask for them many.
  mutable std::map<std::string, std::map<std::string, std::optional<double>, std::less<>>, std::less<>> known_;
};

}  // namespace fabricast::topology
