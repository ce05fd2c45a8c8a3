// SPDX-License-Identifier: Apache-2.0
// What one GPU computes in a step, and when each gradient is ready: from a measured profile, or from a network by a
// roofline (roofline.hpp).
#pragma once

#include <string>
#include <vector>

#include "fabricast/models/planner.hpp"
#include "fabricast/training.hpp"

namespace fabricast::models::training {

struct StepWork {
  Duration forward, backward, optimizer;  ///< of one micro-batch; the optimiser once per step
  Duration launch;                        ///< part of forward and backward in which the GPU waits for the host
  std::vector<GradientTensor> tensors;    ///< as they become ready, after backward began
  int buffers = 0;                        ///< tensors that are broadcast before every forward pass
  Bytes buffer_bytes;
  Bytes gradient_bytes;           ///< fp32
  std::string compute_parameter;  ///< that the times rest on, for terms and the band
  std::string compute_source;
  std::string optimizer_parameter;
};

/// The profile's times. Hooks lengthen its parts, so they are brought to what the step leaves beside the optimiser; the
/// batch scales them.
StepWork work_of_profile(const TrainingProfile& profile, int batch_per_gpu);

/// Pairs of weight and bias of the same size are norms; in a network without embedding they are batch norms, each with
/// mean, variance and a count that data parallelism broadcasts.
int batch_norms(const std::vector<GradientTensor>& tensors);

}  // namespace fabricast::models::training
