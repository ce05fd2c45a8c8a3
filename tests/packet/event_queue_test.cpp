// SPDX-License-Identifier: Apache-2.0
// The event queue against an ordered set.
#include "packet/event_queue.hpp"

#include <doctest/doctest.h>

#include <set>
#include <utility>

#include "tests/support/random.hpp"

using namespace fabricast::packet;
using fabricast::test::Random;

namespace {

// Delays of packets on short and long cables, of timers, and none at all.
Time random_delay(Random& random) {
  switch (random.next(5)) {
    case 0:
      return 0;
    case 1:
      return static_cast<Time>(random.next(2'000));
    case 2:
      return static_cast<Time>(random.next(1'500'000));
    case 3:
      return static_cast<Time>(random.next(10'000'000));
    default:
      return static_cast<Time>(random.next(1'000'000'000));
  }
}

}  // namespace

TEST_CASE("events come in the order of time, kind and number, whenever they were pushed") {
  Random random(7);
  EventQueue queue;
  std::set<std::pair<Time, std::uint64_t>> oracle;
  Time now = 0;
  for (std::uint32_t step = 0; step < 200'000; ++step) {
    // In waves: the queue fills, then runs empty, so that the clock also jumps over long gaps.
    const bool is_filling = step / 2'000 % 2 == 0;
    if (oracle.empty() || random.next(10) < (is_filling ? 6U : 3U)) {
      const Time time = now + random_delay(random);
      const auto kind = static_cast<EventKind>(random.next(14));
      if (!oracle.emplace(time, static_cast<std::uint64_t>(kind) << 32 | step % 50).second) continue;
      queue.push(time, kind, step % 50);
      continue;
    }
    const Event event = queue.pop();
    REQUIRE(std::pair(event.time, event.code) == *oracle.begin());
    oracle.erase(oracle.begin());
    now = event.time;
    REQUIRE(queue.size() == oracle.size());
  }
  while (!oracle.empty()) {
    const Event event = queue.pop();
    REQUIRE(std::pair(event.time, event.code) == *oracle.begin());
    oracle.erase(oracle.begin());
  }
  CHECK(queue.empty());
}
