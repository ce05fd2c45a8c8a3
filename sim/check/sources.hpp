// SPDX-License-Identifier: Apache-2.0
// Sources that several rules stand on, as findings print them.
#pragma once

namespace fabricast::check {

inline constexpr const char* k_gpu_guide = "VMware, GPUs in vSphere 6.7, 2019";
inline constexpr const char* k_vgpu_guide = "NVIDIA vGPU documentation";

}  // namespace fabricast::check
