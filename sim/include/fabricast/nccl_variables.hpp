// SPDX-License-Identifier: Apache-2.0
// Environment variables of NCCL: the key or parameter that stands for each, or why none does [NVIDIA, NCCL user guide,
// environment variables]. What answers them under `software.nccl` and what `calibrate --suggest` says of those of a log
// is this one table.
#pragma once

#include <span>
#include <string_view>

namespace fabricast {

struct NcclVariable {
  std::string_view name;     ///< without NCCL_, in lower case
  std::string_view hint;     ///< what to write; empty = the key of `software.nccl` of its name
  bool is_timeless = false;  ///< changes no time that is modelled
  int since = 0;             ///< NCCL 2.<since> is the first that reads it; 0 = all that are known
};

/// By no order.
std::span<const NcclVariable> nccl_variables();

/// Of "NCCL_ALGO"; null for other names.
const NcclVariable* nccl_variable(std::string_view variable);

}  // namespace fabricast
