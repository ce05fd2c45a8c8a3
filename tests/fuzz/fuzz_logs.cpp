// SPDX-License-Identifier: Apache-2.0
// Any text as a log of nccl-tests, OSU, perftest and the others: every table that is found holds finite numbers.
#include <cmath>
#include <cstdint>
#include <string_view>

#include "base/assert.hpp"
#include "fabricast/measurement.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fabricast;
  const auto logs = read_logs_text({reinterpret_cast<const char*>(data), size}, "fuzz.log");
  if (!logs) {
    FABRICAST_ASSERT(!render(logs.error()).empty(), "refused without a reason");
    return 0;
  }
  for (const auto& log : *logs) {
    (void)render(log.warnings);
    for (const auto bytes : sizes_of(log)) FABRICAST_ASSERT(bytes.value >= 0, "a row of {} B", bytes.value);
    for (const auto& row : log.rows) {
      FABRICAST_ASSERT(row.size.value >= 0 && row.time.ps >= 0, "a row of {} B takes {} ps", row.size.value,
                       row.time.ps);
      FABRICAST_ASSERT(!row.time.is_past_range(), "a row takes longer than can be counted");
    }
  }
  return 0;
}
