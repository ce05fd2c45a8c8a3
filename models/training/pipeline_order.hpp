// SPDX-License-Identifier: Apache-2.0
// Who computes what next in a pipeline of p stages with m micro-batches: 1F1B, and interleaved with v chunks per stage
// as Megatron-LM orders them (schedules.py: forward_backward_pipelining_without_interleaving, ..._with_interleaving).
//
//   bubble / ideal time = (p - 1) / (v m)
#pragma once

#include <vector>

namespace fabricast::models::training {

struct PipelineTask {
  int chunk = 0;  ///< of the stage; virtual stage = chunk x p + stage
  int batch = 0;
  bool is_backward = false;

  friend bool operator==(const PipelineTask&, const PipelineTask&) = default;
};

/// In the order in which `stage` computes them. With interleave above 1, micro_batches is a multiple of stages.
std::vector<PipelineTask> pipeline_order(int stage, int stages, int micro_batches, int interleave);

}  // namespace fabricast::models::training
