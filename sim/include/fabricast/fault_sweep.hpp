// SPDX-License-Identifier: Apache-2.0
// Faults of one design: what it still delivers with a dead cable, adapter, leaf, switch or host, or a slow GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fabricast/sweep.hpp"

namespace fabricast {

/// What breaks: link (any cable), hca (an adapter's cables), leaf (a switch that hosts are cabled to), switch (any),
/// host, slow_gpu (a GPU that is slower by `slower`).
enum class FaultKind { link, hca, leaf, any_switch, host, slow_gpu };
std::string_view to_string(FaultKind kind);

struct FaultClass {
  FaultKind kind = FaultKind::link;
  double slower = 0;  ///< slow_gpu: share of its rate that is lost, (0, 1)
};
/// Reads `link|hca|slow-gpu:10%`; on failure `fault` says why.
std::vector<FaultClass> fault_classes_from(const std::string& text, std::string& fault);

struct FaultPlan {
  std::vector<FaultClass> classes;
  int simultaneous = 1;  ///< faults at once; more than one are drawn at random
  int samples = 200;     ///< of simultaneous faults
  std::uint64_t seed = 1;
  double target = 0.95;  ///< goodput asked for, share of the fault-free one
  Metric metric;
};

/// One fault, or several at once.
struct FaultResult {
  std::size_t index = 0;
  std::string name;
  int count = 1;
  double goodput = 1;     ///< share of the fault-free figure
  int lost_hosts = 0;     ///< that the job had to leave, because no route is left or they are broken
  int drained_hosts = 0;  ///< hosts to replace by spares so that the fault is not felt
  std::string note;
};

struct FaultReport {
  std::string name;
  std::string version;
  Metric metric;
  double fault_free = 0;
  FaultPlan plan;
  std::vector<FaultResult> cases;  ///< by number
  double worst = 1, tenth = 1, median = 1, mean = 1;
  std::size_t worst_case = 0;  ///< place in `cases`
  double share_at_target = 1;  ///< of all faults that keep the target
  int spares = 0;              ///< hosts that let every fault keep the target
  std::vector<std::string> assumptions;
  std::vector<std::pair<std::string, std::string>> inputs;
  bool is_interrupted = false;
};

/// Simulates every fault of a design in `jobs` processes. Faults of the design itself come back as diagnostics.
Result<FaultReport> sweep_faults(const SweepPlan& plan, const DesignResult& design, const FaultPlan& faults,
                                 const TaskOptions& options, const std::function<void(double share)>& progress);

}  // namespace fabricast
