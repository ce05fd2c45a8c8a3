// SPDX-License-Identifier: Apache-2.0
// The benchmark's own table of one workload, without what surrounds it.
#pragma once

#include <string>

#include "fabricast/result.hpp"
#include "report/report.hpp"

namespace fabricast::report {

/// `is_whole`: no interrupt cut it short; only then has it nccl-tests' closing lines.
std::string workload_table(const WorkloadPrediction& workload, const Workload& asked, bool is_whole = true);

/// False when packets did not get through: interrupted, deadlocked or stalled. Such a row has no time to show.
bool is_finished(const Row& row);
/// A comment line in place of a row that did not finish.
std::string unfinished_line(const Row& row);

/// A line that names the sizes outside the range of a fit; empty when there are none.
std::string extrapolation_note(const WorkloadPrediction& workload);
/// A list: version, engine, seed, input files and settings.
std::string provenance_html(const Provenance& provenance);
/// What every stream of the last row's step does, one track each; empty without a timeline.
std::string timeline_picture(const WorkloadPrediction& workload);
std::string training_table(const WorkloadPrediction& workload);
std::string sharing_table(const WorkloadPrediction& workload);
/// "21 .. 24"; two ends that are printed alike are one value.
std::string range_text(const std::string& low, const std::string& high);
/// The row's label, or its size when it has none.
std::string row_name(const Row& row);

}  // namespace fabricast::report
