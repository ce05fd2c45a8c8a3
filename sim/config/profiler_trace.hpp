// SPDX-License-Identifier: Apache-2.0
// A profile of one GPU from a trace of PyTorch's profiler (Chrome trace events, per kernel):
//
//   kernels      of one step, by the CPU event that launched them (`correlation`): in `Optimizer.step#...`, in
//                `autograd::engine::evaluate_function...`, else forward
//   backward     from the end of the last forward kernel to the end of the last backward kernel; optimiser likewise;
//                forward is what they leave of the step, waits for the host included
//   step         from the first kernel of a `ProfilerStep#N` to the first of the next; of several the median one
//   a gradient   at its `torch::autograd::AccumulateGrad` (elements from `Input Dims`) ready when every kernel launched
//                before has ended
//
// [PyTorch, torch.profiler, export_chrome_trace; field names as Kineto writes them]. Bytes are counted in fp32.
#pragma once

#include <string>

#include "fabricast/training.hpp"

namespace fabricast::config {

/// Whether a text is JSON: a trace, where a profile may also be a table.
bool looks_like_trace(const std::string& text);

/// Precision and batch are not in a trace: the caller sets them.
Result<TrainingProfile> parse_profiler_trace(const std::string& file, const std::string& text);

}  // namespace fabricast::config
