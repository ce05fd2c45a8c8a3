// SPDX-License-Identifier: Apache-2.0
// Any bytes as a trace: read as GOAL, Chakra's protobuf or JSON; what is accepted is replayed when it is small, and
// takes as long twice.
#include <cstdint>
#include <string>

#include "base/assert.hpp"
#include "fabricast/load.hpp"
#include "fabricast/replay.hpp"

namespace {

constexpr std::size_t k_most_ranks = 8;
constexpr std::size_t k_most_ops = 200;

const fabricast::LoadedScenario& cluster() {
  static const auto loaded =
      fabricast::load_scenario(std::string(FABRICAST_SOURCE_DIR) + "/scenarios/allreduce-dgx-a100-pair.yaml");
  FABRICAST_ASSERT(loaded.has_value(), "{}", fabricast::render(loaded.error()));
  return *loaded;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fabricast;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto trace = read_trace({{"fuzz", text}});
  if (!trace) {
    FABRICAST_ASSERT(!render(trace.error()).empty(), "refused without a reason");
    return 0;
  }
  std::size_t ops = 0;
  for (const auto& rank : trace->ranks) ops += rank.size();
  if (trace->ranks.size() > k_most_ranks || ops > k_most_ops) return 0;
  const auto once = replay(cluster().topology, cluster().parameters, *trace);
  if (!once) {
    FABRICAST_ASSERT(!render(once.error()).empty(), "refused without a reason");
    return 0;
  }
  const auto again = replay(cluster().topology, cluster().parameters, *trace);
  FABRICAST_ASSERT(again.has_value() && again->time == once->time, "another time of the same trace");
  return 0;
}
