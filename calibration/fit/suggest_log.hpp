// SPDX-License-Identifier: Apache-2.0
// One measured table to the entry of a calibration file: what its header, its environment, the collector's lines and
// its name say of how it was taken; and in comments what they leave open.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fabricast/measurement.hpp"
#include "fabricast/topology.hpp"

namespace fabricast::fit {

/// `key: value` pairs in the order of writing.
using Keys = std::vector<std::pair<std::string, std::string>>;

struct SuggestedLog {
  std::string file;                   ///< as read
  std::vector<std::string> comments;  ///< lines above the entry, without '#'
  Keys workload;
  Keys nccl;                   ///< software.nccl
  Keys software;               ///< other software keys
  std::set<std::string> read;  ///< variables of the environment that these say, or whose value is the default
};

/// Entries of one table; several for copy timings and matrices. Empty for tables of programs that are not forecast.
std::vector<SuggestedLog> suggest_entries(const MeasuredLog& table, const Topology& topology);

/// `{a: b, c: d}`.
std::string flow_mapping(const Keys& keys);
/// The value of `software`, empty when nothing is to be said.
std::string software_text(const SuggestedLog& log);

/// Sets the value of a key, or adds it.
void set_key(Keys& keys, const std::string& key, const std::string& value);
[[nodiscard]] bool has_key(const Keys& keys, const std::string& key);

}  // namespace fabricast::fit
