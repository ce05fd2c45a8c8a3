// SPDX-License-Identifier: Apache-2.0
// The collectives of one group of GPUs inside a step: what NCCL plans for each (so that peer access, sockets, network,
// virtual adapters and NVLink SHARP follow), and what they cost the GPU beside them.
//
// A collective takes multiprocessors and memory bandwidth from compute beside it:
//
//   compute takes 1 + f m / M times as long,   m = 4 (all-reduce) or 2 times bytes / time alone,   M = memory bandwidth
//
// f: `training.exchange_slowdown`. A ring reads and writes each byte about four times [own measurement of nine
// NVLink-exchanged steps; training-steps, section 4].
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fabricast/models/planner.hpp"

namespace fabricast::models::training {

class Communicator {
 public:
  /// GPUs of the group in rank order. Faults of NCCL's planner, e.g. of the network between hosts.
  static Result<Communicator> make(const PlanContext& context, const Workload& workload,
                                   const std::vector<DeviceId>& gpus);

  /// Appends `operation` of `size` bytes on `stream`; returns the index of its last node. What waits for it is called
  /// `name`; it slows compute on device `slowed`, -1 = none.
  int append(Program& program, Benchmark operation, Bytes size, const std::vector<int>& after, int stream,
             const std::string& name, int slowed) const;
  [[nodiscard]] Duration time_alone(Benchmark operation, Bytes size) const;
  [[nodiscard]] const OperationPlan& plan(Benchmark operation, Bytes size) const;
  [[nodiscard]] const Planner& planner(Benchmark operation) const;
  [[nodiscard]] int size() const { return size_; }
  /// How much longer compute takes beside it, as a share; `time`: how long it lasts.
  [[nodiscard]] double slowdown(Benchmark operation, Bytes size) const;
  [[nodiscard]] double slowdown(Benchmark operation, Bytes size, Duration time) const;

 private:
  Communicator(const PlanContext& context, const Workload& workload, const std::vector<DeviceId>& gpus);

  std::shared_ptr<const PlanContext> context_;  ///< a pointer, so that it can be assigned
  Workload workload_;
  int size_ = 1;
  double memory_bandwidth_ = 1;
  mutable std::map<Benchmark, std::unique_ptr<Planner>> planners_;
  mutable std::map<std::pair<Benchmark, std::int64_t>, OperationPlan> plans_;
};

/// Appends a planned operation on `stream`; returns the index of its last node. Its flows slow compute on device
/// `first` of `slowed` by the share `second`, unless that is below 0.
int append_operation(Program& program, const OperationPlan& plan, const std::vector<int>& after, int stream,
                     const std::string& name, std::pair<int, double> slowed);

/// Of chains that run at the same time, node beside node: the slowest flow alone, or the fullest resource; what a node
/// does after its flows (sums) waits for either.
Duration time_together(const Resources& resources, const std::vector<const OperationPlan*>& plans);

}  // namespace fabricast::models::training
