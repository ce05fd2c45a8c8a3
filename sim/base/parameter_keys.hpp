// SPDX-License-Identifier: Apache-2.0
// Every parameter is declared once: its name, dimension, legal range, meaning, and by which parts of its name it may be
// more exact. What reads parameters from files, fits them, prints them and writes their schema follows from this table
// (docs/PARAMETERS.md is printed from it).
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fabricast/units.hpp"

namespace fabricast {

struct ParameterRange {
  double low = 0, high = 0;  ///< SI base units; both may be reached
  std::string_view what;     ///< as messages call it: "a share above 0"
  bool is_declared = false;  ///< by name; else by its dimension alone
  bool is_of_rate = false;   ///< more of it is less time
  [[nodiscard]] bool holds(double value) const { return low <= value && value <= high; }
};

/// One parameter, or a family of them. A part of a name in braces stands for one of its owner's words, see
/// `words_of_part`; one in square brackets may be left out: the more exact name is looked up first, then the name
/// without it. `nccl.hop_time.{algorithm}.{protocol}.{transport}[.{architecture}]` declares
/// `nccl.hop_time.ring.ll.shm` and `nccl.hop_time.ring.ll.shm.hopper`.
struct ParameterKey {
  std::string_view pattern;
  Dimension dimension = Dimension::number;
  ParameterRange range;  ///< empty `what`: the dimension's own
  std::string_view meaning;
};

/// All declared keys but those of devices (`<device>.<field>`), layer by layer.
std::span<const ParameterKey> parameter_keys();

/// The key that declares `name`, nullptr when none does.
const ParameterKey* key_of(std::string_view name);

/// What may stand in a braced part: words one after the other ("ring, tree, ..."), or what it names ("a GPU
/// architecture") where users add their own.
std::string_view words_of_part(std::string_view part);

/// The same as a regular expression (ECMA 262).
std::string part_expression(std::string_view part);

/// The first part of a name that is not a device's: nccl, mpi, host ...
bool is_software_layer(std::string_view layer);

/// A key's range, or its dimension's.
ParameterRange range_of(const ParameterKey& key);

/// The range of `name`: `<layer>.<...>` or `<device>.<field>`.
ParameterRange range_of(std::string_view name, Dimension dimension);

/// "0.001 to 1", "0 s to 10 s", "1 kB/s to 1000 TB/s": in the unit of the dimension.
std::string to_string(const ParameterRange& range, Dimension dimension);

}  // namespace fabricast
