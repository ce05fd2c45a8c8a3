// SPDX-License-Identifier: Apache-2.0
// Every number a model uses is a named parameter with a unit, a source and, where known, an interval. Device data-sheet
// values are parameters too: `<device>.<field>`, e.g. `v100-sxm2-16.nvlink_link_bandwidth`. Software values start with
// the layer that owns them: `nccl.`, `mpi.`, `cuda.`, `verbs.`, `tcp.`, `pcie.`. No parameter belongs to a cluster, a
// cluster size or a file: that is what lets a fit on a small cluster forecast a big one.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fabricast/diagnostic.hpp"
#include "fabricast/units.hpp"

namespace fabricast {

/// How far a value can be trusted. `high`: read in the named source; `medium`: second-hand or one noisy measurement;
/// `low`: recall or extrapolation; `assumed`: nobody has published it; `fitted`: estimated from measurements by a fit
/// that names its calibration; `read_off`: taken from one system's log without a fit, so that other systems may differ.
enum class Confidence { high, medium, low, assumed, fitted, read_off };

std::string_view to_string(Confidence confidence);

/// One sourced number in SI base units (bytes, seconds, bytes per second, or a plain number).
struct Parameter {
  std::string name;
  double value = 0;
  Dimension dimension = Dimension::number;
  double low = 0;   ///< lower end of the 80 % interval; equal to `value` when no interval is known
  double high = 0;  ///< upper end of the 80 % interval
  Confidence confidence = Confidence::medium;
  std::string source;  ///< page, paper, log or fit the value comes from
  SourceLocation location;
  bool is_rate = false;  ///< or what is reached of one: more of it is less time

  [[nodiscard]] bool has_interval() const { return low < high; }
};

/// The name of a declared parameter; reading it gives what its dimension says. base/parameter_name.hpp makes them.
template <Dimension D, class Text>
struct ParameterName {
  Text text;
  operator std::string_view() const { return text; }          // NOLINT: a name goes wherever names go
  operator std::string() const { return std::string(text); }  // NOLINT
};

/// An ordered set of parameters by name. Later sets override earlier ones (shipped, then --parameters, then --set).
class ParameterSet {
 public:
  /// Adds or replaces.
  void set(Parameter parameter);
  /// Adds or replaces every parameter of `other`.
  void merge(const ParameterSet& other);

  [[nodiscard]] const Parameter* find(std::string_view name) const;
  /// `<type>.<field>` of a device type.
  [[nodiscard]] const Parameter* find(std::string_view type, std::string_view field) const;
  [[nodiscard]] bool contains(std::string_view name) const { return find(name) != nullptr; }
  /// The value of a parameter, in SI base units, or `otherwise` where there is none.
  [[nodiscard]] double value_or(std::string_view name, double otherwise) const;
  [[nodiscard]] double value_or(std::string_view type, std::string_view field, double otherwise) const;
  /// The value of a parameter that must exist; a missing one is a fault of ours.
  [[nodiscard]] const Parameter& at(std::string_view name) const;

  [[nodiscard]] double number(std::string_view name) const { return at(name).value; }
  [[nodiscard]] double seconds(std::string_view name) const { return at(name).value; }
  [[nodiscard]] Bytes bytes(std::string_view name) const;
  [[nodiscard]] Duration duration(std::string_view name) const { return from_seconds(at(name).value); }
  [[nodiscard]] Bandwidth bandwidth(std::string_view name) const { return {at(name).value}; }

  /// The value as a double (plain number), Duration, Bandwidth or Bytes.
  template <Dimension D, class Text>
  [[nodiscard]] auto operator[](const ParameterName<D, Text>& name) const {
    if constexpr (D == Dimension::time) return duration(name.text);
    if constexpr (D == Dimension::bandwidth) return bandwidth(name.text);
    if constexpr (D == Dimension::bytes) return bytes(name.text);
    if constexpr (D == Dimension::number) return number(name.text);
  }

  /// The first of `names` that exists, most specific first; the last must exist.
  [[nodiscard]] const Parameter& first_of(const std::vector<std::string>& names) const;

  [[nodiscard]] const std::map<std::string, Parameter, std::less<>>& all() const { return parameters_; }

  /// Names of existing parameters that are asked for are added to `names`, until nullptr is given. For calibration: it
  /// varies only what a forecast reads.
  void collect_reads(std::set<std::string, std::less<>>* names) { reads_ = names; }

 private:
  std::set<std::string, std::less<>>* reads_ = nullptr;
  std::map<std::string, Parameter, std::less<>> parameters_;
};

/// What a device type is; the numbers are parameters named `<name>.<field>`.
struct DeviceType {
  std::string name;
  std::string kind;                               ///< gpu, hca, network_switch, nvswitch, processor, host
  std::string description;                        ///< one line for `fabricast list devices`
  std::map<std::string, std::string> attributes;  ///< words rather than numbers: architecture, vendor, protocol
  std::string origin;                             ///< file the entry was read from
};

}  // namespace fabricast
