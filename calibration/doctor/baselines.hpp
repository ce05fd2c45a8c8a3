// SPDX-License-Identifier: Apache-2.0
// Healthy runs: what `expect` takes for floors and the doctor for expected times.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "doctor/case.hpp"

namespace fabricast::doctor {

/// The time that healthy runs have for something, and where it stands: "healthy.log:12".
struct HealthyTime {
  double seconds = 0;
  std::string place;
};
/// The middle one of several, of an even number the slower; nothing of none.
std::optional<HealthyTime> middle(std::vector<HealthyTime> times);
/// All rows of `size` of a table.
std::vector<HealthyTime> rows_of_size(const MeasuredLog& table, const std::string& path, Bytes size);

/// "all_reduce_perf, 16 ranks on 2 hosts, 8 B to 128 MiB".
std::string what_of(const MeasuredLog& table);
/// A healthy log that nothing is compared with is an error: it would change nothing. `must` agree: "benchmark and
/// size".
Diagnostic unused_baseline(const std::string& path, const std::string& must, const std::vector<std::string>& has,
                           const std::vector<std::string>& wanted);

/// Gives the rows of `patients` the times of `baselines` of the same benchmark, ranks, hosts and size; between two
/// sizes of a baseline at most a factor of 4 apart, what it takes over its forecast, on logarithmic scales. What the
/// words of a log and of its baseline both say explains no difference and is taken from the log. One error per file
/// whose tables serve no row.
Diagnostics cover(std::vector<Patient>& patients, const std::vector<Patient>& baselines,
                  const std::vector<std::string>& paths);

}  // namespace fabricast::doctor
