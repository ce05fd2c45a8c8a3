// SPDX-License-Identifier: Apache-2.0
// The vGPU manager's driver setting RmPVMRL [NVIDIA AI Enterprise vGPU guide, 7.3]:
//
//   0x00                 best effort
//   0x01, 0x11           equal, fixed share, strict round robin, default slice
//   0x03, 0x13           equal, fixed share, not strict, default slice
//   0x00TT00xx           slice of TT ms (1 to 30), not strict
//   0xAAFFF0xx           strict, FFF Hz (63 to 960), overrun paid back over AA rounds (1 to 60)
//
// Values beyond a range are brought back to its end, zero means the default, as the driver does.
#include <fmt/format.h>

#include <algorithm>

#include "fabricast/models/virtualization.hpp"

namespace fabricast::models {

using namespace literals;

namespace {

constexpr int k_default_averaging = 33;

}  // namespace

Duration default_vgpu_slice(int max_vgpus) { return max_vgpus > 8 ? 1_ms : 2_ms; }

Result<TimeSlicing> scheduler_from_rm_pvmrl(std::uint64_t value, int max_vgpus) {
  TimeSlicing scheduler;
  scheduler.slice = default_vgpu_slice(max_vgpus);
  scheduler.max_clients = max_vgpus;
  if (value == 0) return scheduler;
  const auto policy = static_cast<unsigned>(value & 0xfffU);
  if (value > 0xffffffffU || (policy != 0x01 && policy != 0x11 && policy != 0x03 && policy != 0x13)) {
    return tl::unexpected(Diagnostics{
        make_error(fmt::format("RmPVMRL {:#x} names no scheduler", value),
                   "the last digits are 00 (best effort), 01 (equal share) or 11 (fixed share); 03 and 13 are the same "
                   "without strict round robin, e.g. 0x00030001 for equal share with slices of 3 ms")});
  }
  scheduler.policy = (policy & 0x10U) != 0 ? SharePolicy::fixed_share : SharePolicy::equal_share;
  scheduler.is_strict = (policy & 0x02U) == 0;
  const auto averaging = static_cast<int>(value >> 24U & 0xffU);
  const auto frequency = static_cast<int>(value >> 12U & 0xfffU);
  const auto slice_ms = static_cast<int>(value >> 16U & 0xffU);
  const bool is_slice = averaging == 0 && (frequency & 0xf) == 0;
  if (is_slice) {
    if (slice_ms > 0) {
      scheduler.slice = std::min(slice_ms, 30) * 1_ms;
      scheduler.is_strict = false;
    }
    return scheduler;
  }
  scheduler.averaging = averaging == 0 ? k_default_averaging : std::min(averaging, 60);
  if (frequency > 0) scheduler.slice = from_seconds(1.0 / std::clamp(frequency, 63, 960));
  return scheduler;
}

}  // namespace fabricast::models
