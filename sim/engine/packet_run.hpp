// SPDX-License-Identifier: Apache-2.0
// Plans on the packet engine, under the executor (packet_backend.hpp).
//
// A repeat of a chain that runs alone and took exactly as long as the one before is not repeated: the engine is
// deterministic, so the rest takes as long (full_expansion switches this off, for tests).
#pragma once

#include <atomic>
#include <functional>
#include <vector>

#include "engine/job.hpp"
#include "fabricast/diagnostic.hpp"
#include "fabricast/fabric_report.hpp"
#include "fabricast/parameters.hpp"
#include "fabricast/scenario.hpp"

namespace fabricast::engine {

struct PacketOptions {
  std::uint64_t seed = 1;
  bool full_expansion = false;
  bool shortcuts = true;  ///< of the packet engine itself
  Duration sample_interval;
  bool record_pauses = false;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(double share_done)> progress;
};

struct PacketOutcome {
  std::vector<OperationTiming> timings;  ///< in the order of the jobs
  FabricReport report;
};

/// Runs the jobs together. `workloads[i]` says how the messages of jobs[i] travel. Faults: what the packet engine
/// cannot simulate, e.g. two kinds of routing at once.
Result<PacketOutcome> run_packets(const ParameterSet& parameters, const models::Resources& resources,
                                  const std::vector<Job>& jobs, const std::vector<const Workload*>& workloads,
                                  const PacketOptions& options);

}  // namespace fabricast::engine
