// SPDX-License-Identifier: Apache-2.0
// A scenario after any other gives the same bytes: nothing of a simulation stays behind in the process, neither the
// time on a clock nor what a cache rounds. Shipped scenarios whose flows meet, in random orders, and clusters that are
// simulated for hours between them.
#include <map>

#include "report/report.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;

namespace {

const std::vector<std::string> k_names{"allreduce-irregular.yaml",      "two-jobs.yaml",
                                       "allreduce-dgx-a100-pair.yaml",  "training-horovod-16p100.yaml",
                                       "osu-allreduce-dragonfly.yaml",  "traffic-incast-roce.yaml",
                                       "osu-latency-fdr-gpudirect.yaml"};

std::string forecast(const LoadedScenario& loaded) {
  const auto prediction = test::run(loaded);
  const report::Provenance provenance;
  return report::json({prediction, loaded.scenario, provenance});
}

/// Seven senders and one receiver for a random time, up to a day, so that a clock that went on would lose digits.
std::string long_one(test::Random& random) {
  return "schema: fabricast/scenario/1\nname: long\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: "
         "[{name: n, count: 8, type: server-1v100-cx4-100g}]\n  fabric: {single_switch: {switch: sn2700}}\nworkload: "
         "{benchmark: traffic, pattern: incast, senders: 7, sizes: [" +
         std::to_string(1 + random.next(100'000)) + " GiB]}\n";
}

}  // namespace

TEST_CASE("a scenario after any other gives the same bytes") {
  std::map<std::string, LoadedScenario> loaded;
  std::map<std::string, std::string> first;
  for (const auto& name : k_names) {
    loaded.emplace(name, test::shipped(name));
    first[name] = forecast(loaded.at(name));
  }
  for (std::uint64_t seed = 0; seed < test::draws(40); ++seed) {
    CAPTURE(seed);
    test::Random random(seed);
    if (random.next(2) == 0) forecast(test::scenario(long_one(random)));
    const auto name = random.pick(k_names);
    CAPTURE(name);
    const bool is_same = forecast(loaded.at(name)) == first[name];
    CHECK(is_same);
  }
}
