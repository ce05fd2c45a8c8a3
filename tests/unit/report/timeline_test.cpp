// SPDX-License-Identifier: Apache-2.0
// Pictures and traces of long steps: what does not fit is the shortest, not the last.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "engine/stream_terms.hpp"
#include "report/tables.hpp"

using namespace fabricast;

TEST_CASE("a step with too many pieces of work for a timeline is shown to its end, by its longest") {
  constexpr std::size_t count = engine::k_longest_timeline + 10;
  models::OperationPlan plan;
  plan.program.streams = {{"GPU 0 compute", -1}};
  engine::OperationTiming timing;
  for (std::size_t n = 0; n < count; ++n) {
    models::Node node;
    node.stream = 0;
    node.label = fmt::format("piece {}", n);
    plan.program.nodes.push_back(node);
    engine::NodeTiming one;
    one.start = timing.total;
    one.end = timing.total = timing.total + Duration{n < 10 ? 1 : 1000};
    timing.nodes.push_back(one);
  }
  const auto spans = engine::timeline(plan, timing);
  REQUIRE(spans.size() == engine::k_longest_timeline);
  CHECK(spans.front().name == "piece 10");
  CHECK(spans.back().start + spans.back().time == timing.total);
  for (std::size_t s = 1; s < spans.size(); ++s) CHECK(spans[s - 1].start <= spans[s].start);
}

TEST_CASE("the picture of a step draws its longest pieces of work and says so, of a short one all") {
  const auto picture = [](std::int64_t pieces) {
    Row row;
    row.label = "8 GPUs";
    for (std::int64_t s = 0; s < pieces; ++s)
      row.timeline.push_back({"GPU 0", fmt::format("piece {}", s), Duration{1000 * s}, Duration{100 + s}});
    row.time = Duration{1000 * pieces + pieces};
    WorkloadPrediction workload;
    workload.rows = {row};
    return report::timeline_picture(workload);
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  const auto all = picture(4000);
  CHECK(has(all, "what every stream does."));
  CHECK(has(all, "<title>piece 0:"));
  const auto longest = picture(9000);
  CHECK(has(longest, "what every stream does, its 5000 longest pieces of work."));
  CHECK(has(longest, "<title>piece 8999:"));
  CHECK(!has(longest, "<title>piece 3999:"));
}
