// SPDX-License-Identifier: Apache-2.0
// Orders of pipeline schedules.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "training/pipeline_order.hpp"

using fabricast::models::training::pipeline_order;

namespace {

/// Unit passes (forward 1, backward 2) on every stage as soon as what they wait for has ended; the end of the last.
int makespan(int stages, int batches, int interleave) {
  const int all = stages * interleave;
  std::vector<std::size_t> next(static_cast<std::size_t>(stages), 0);
  std::vector<int> free(static_cast<std::size_t>(stages), 0);
  std::map<std::tuple<int, int, bool>, int> end;
  std::size_t done = 0;
  while (done < static_cast<std::size_t>(2 * batches * all)) {
    const auto before = done;
    for (int s = 0; s < stages; ++s) {
      const auto order = pipeline_order(s, stages, batches, interleave);
      auto& at = next[static_cast<std::size_t>(s)];
      for (; at < order.size(); ++at, ++done) {
        const auto& task = order[at];
        const int place = task.chunk * stages + s;
        std::tuple<int, int, bool> source{place - 1, task.batch, false};
        if (task.is_backward)
          source = place + 1 == all ? std::tuple{place, task.batch, false} : std::tuple{place + 1, task.batch, true};
        int ready = 0;
        if (task.is_backward || place > 0) {
          const auto found = end.find(source);
          if (found == end.end()) break;
          ready = found->second;
        }
        auto& time = free[static_cast<std::size_t>(s)];
        time = std::max(time, ready) + (task.is_backward ? 2 : 1);
        end[{place, task.batch, task.is_backward}] = time;
      }
    }
    if (done == before) return -1;  // a deadlock
  }
  return *std::max_element(free.begin(), free.end());
}

}  // namespace

TEST_CASE("every stage computes every micro-batch once forward and once backward") {
  for (const auto& [stages, batches, interleave] : {std::tuple{1, 3, 1}, {4, 2, 1}, {4, 8, 1}, {4, 8, 3}, {2, 2, 2}}) {
    for (int s = 0; s < stages; ++s) {
      const auto order = pipeline_order(s, stages, batches, interleave);
      std::set<std::tuple<int, int, bool>> seen;
      for (const auto& task : order) {
        CHECK(seen.emplace(task.chunk, task.batch, task.is_backward).second);
        if (task.is_backward) CHECK(seen.contains({task.chunk, task.batch, false}));
      }
      CHECK(seen.size() == static_cast<std::size_t>(2 * batches * interleave));
    }
  }
}

TEST_CASE("the bubble of a schedule is (p - 1) / (v m) of the ideal time") {
  for (const auto& row : {std::tuple{2, 4, 1}, {4, 8, 1}, {8, 16, 1}, {4, 8, 2}, {4, 16, 5}, {9, 63, 7}}) {
    const auto& [stages, batches, interleave] = row;
    CAPTURE(std::get<0>(row));
    CAPTURE(std::get<2>(row));
    // A pass over a chunk takes 3, so the ideal is 3 m v and the bubble 3 (p - 1).
    CHECK(makespan(stages, batches, interleave) == 3 * batches * interleave + 3 * (stages - 1));
  }
}

TEST_CASE("fewer micro-batches than stages still end") {
  for (int stages = 1; stages <= 6; ++stages) {
    for (int batches = 1; batches <= 7; ++batches) CHECK(makespan(stages, batches, 1) > 0);
  }
}
