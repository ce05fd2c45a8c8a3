// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "config/tree.hpp"
#include "fabricast/diagnostic.hpp"
#include "fabricast/scenario.hpp"

namespace fabricast::config {

/// OSU's tests of several pairs: rank i exchanges with rank i + ranks / 2.
bool pairs_its_ranks(Benchmark benchmark);

/// The value of a workload's key; null where it is not given, or where the benchmark does not read it.
const Node* find_read(const Node& workload, const char* key, Benchmark benchmark);

/// Warnings for keys that the benchmark does not read: they change nothing. Keys of traffic, training and sharing are
/// refused elsewhere.
Diagnostics warn_of_unread_keys(const Node& workload, Benchmark benchmark);

/// Warnings for `start` where it moves no workload against another: one runs alone, or all start together.
Diagnostics warn_of_idle_starts(const std::vector<const Node*>& workloads);

}  // namespace fabricast::config
