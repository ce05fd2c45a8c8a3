// SPDX-License-Identifier: Apache-2.0
// The precision in which the GPUs of a training workload compute what it asks for.
//
//   fp8    from compute capability 8.9 on; refused below
//   bf16   from 8.0 on; refused below when named: PyTorch's autocast and inference servers refuse it, convolutions have
//          no kernels, products are emulated at half of fp32's rate or less
//   tf32   from 8.0 on; below, libraries ignore the switch and compute in fp32
//   not named: bf16 from 8.0 on, fp16 where it has tensor cores (7.0), fp32 before
#pragma once

#include <string>

#include "fabricast/diagnostic.hpp"
#include "fabricast/parameters.hpp"
#include "fabricast/scenario.hpp"
#include "fabricast/topology.hpp"
#include "fabricast/training.hpp"

namespace fabricast::models {

struct UsedPrecision {
  Precision precision = Precision::bf16;
  std::string reason;  ///< why it is not what was named, or the usual default, in all layers; else empty
};

/// Whether fp8 is computed in the layer: the linear ones of blocks but the router [Transformer Engine, torchao's float8
/// with torchtitan's filter, DeepSeek-V3 3.3.1, vLLM]. All else stays in bf16.
bool takes_fp8(const NetworkLayer& layer);

/// Of the least capable GPU that takes part; a measured profile has its own.
UsedPrecision used_precision(const Topology& topology, const Workload& workload, const ParameterSet& parameters);

/// A named precision that a GPU which takes part does not have.
Diagnostics precision_faults(const Topology& topology, const Workload& workload, const ParameterSet& parameters);

}  // namespace fabricast::models
