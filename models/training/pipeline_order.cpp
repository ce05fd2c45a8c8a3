// SPDX-License-Identifier: Apache-2.0
#include "training/pipeline_order.hpp"

#include <algorithm>

namespace fabricast::models::training {

namespace {

/// The k-th pass: groups of p micro-batches go through all chunks.
PipelineTask task_at(int k, int stages, int interleave, bool is_backward) {
  const int round = stages * interleave;
  const int chunk = k % round / stages;
  const int batch = interleave == 1 ? k : k / round * stages + k % stages;
  return {is_backward ? interleave - 1 - chunk : chunk, batch, is_backward};
}

}  // namespace

std::vector<PipelineTask> pipeline_order(int stage, int stages, int micro_batches, int interleave) {
  const int total = micro_batches * interleave;
  const int ahead = interleave == 1 ? stages - stage - 1 : (stages - stage - 1) * 2 + (interleave - 1) * stages;
  const int warm_up = std::min(ahead, total);
  std::vector<PipelineTask> order;
  for (int k = 0; k < warm_up; ++k) order.push_back(task_at(k, stages, interleave, false));
  for (int k = warm_up; k < total; ++k) {
    order.push_back(task_at(k, stages, interleave, false));
    order.push_back(task_at(k - warm_up, stages, interleave, true));
  }
  for (int k = total - warm_up; k < total; ++k) order.push_back(task_at(k, stages, interleave, true));
  return order;
}

}  // namespace fabricast::models::training
