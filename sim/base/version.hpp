// SPDX-License-Identifier: Apache-2.0
// Releases of software as users write them: "2.21.5", "4.1", "12".
#pragma once

#include <cstdio>
#include <string>
#include <tuple>

namespace fabricast {

/// `version` (major[.minor[.patch]], parts left out are 0) is older than the three numbers; what is no version, the
/// empty text too, is not: where nothing is said, the newest is meant.
inline bool is_older(const std::string& version, int major, int minor, int patch = 0) {
  int own_major = 0;
  int own_minor = 0;
  int own_patch = 0;
  if (std::sscanf(version.c_str(), "%d.%d.%d", &own_major, &own_minor, &own_patch) < 1) return false;
  return std::tuple(own_major, own_minor, own_patch) < std::tuple(major, minor, patch);
}

}  // namespace fabricast
