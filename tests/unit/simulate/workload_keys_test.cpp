// SPDX-License-Identifier: Apache-2.0
// No key of a workload is left out in silence, whatever the benchmark: it changes a result, is refused, or the result
// says that it is not read. The tables must name every key of the schema, so that a new one cannot be forgotten.
#include <set>
#include <string>
#include <vector>

#include "tests/support/effects.hpp"

using namespace fabricast;
using namespace fabricast::test;

namespace {

const std::vector<TwoValues> k_workload{{"gpus", "", "2", "4"},
                                        {"ranks", "", "2", "4"},
                                        {"ranks_per_host", "", "1", "4"},
                                        {"devices", "", "[n0.gpu0, n1.gpu0]", "[n1.gpu1, n1.gpu0]"},
                                        {"buffers", "", "host", "device"},
                                        {"algorithm", "", "ring", "tree"},
                                        {"protocol", "", "simple", "ll"},
                                        {"channels", "", "1", "2"},
                                        {"launch", "", "one_thread", "graph"},
                                        {"window", "", "1", "64"},
                                        {"pairs", "", "1", "2"},
                                        {"queue_pairs", "", "1", "4"},
                                        {"bidirectional", "", "off", "on"},
                                        {"root", "", "0", "1"},
                                        {"statistic", "", "mean", "max"},
                                        {"direction", "", "to_host", "both"},
                                        {"streams", "", "1", "8"},
                                        {"compute", "", "1 ms", "2 ms"},
                                        {"pattern", "", "incast", "permutation"},
                                        {"senders", "", "1", "2"},
                                        {"local_senders", "", "1", "2"},
                                        {"sizes", "", "[4 KiB]", "[1 MiB]"},
                                        {"sharing", "", "{clients: [{name: a, kernel: 1 ms}]}",
                                         "{clients: [{name: a, kernel: 4 ms}, {name: b, kernel: 4 ms}]}"},
                                        {"start", "", "0 s", "1 ms"},
                                        {"iterations", "", "1", "40"},
                                        {"transport", "", "{verb: write}", "{verb: read}"}};

/// Keys that one benchmark alone has; the others refuse them.
struct OwnKey {
  std::string key, value, benchmark;
};

const std::vector<OwnKey> k_own_keys{{"flows", "[{from: n0, to: n1, bytes: 1 MB}]", "traffic"},
                                     {"remote", "{compute: 50 ms}", "remote_gpu"},
                                     {"migration", "{memory: 64 GiB}", "vgpu_migration"},
                                     {"network", "resnet-50", "training"},
                                     {"profile", "profile.tsv", "training"},
                                     {"model", "resnet50", "training"},
                                     {"precision", "bf16", "training"},
                                     {"batch_per_gpu", "64", "training"},
                                     {"tokens", "128", "training"},
                                     {"part", "step", "training"},
                                     {"kv_length", "64", "training"},
                                     {"slow", "{n0.gpu0: 0.9}", "training"},
                                     {"jitter", "0.1", "training"},
                                     {"parallel", "{data: ddp}", "training"}};

/// `key` of a workload that has it not yet. A step of one GPU exchanges nothing, so that most keys cannot matter.
void check_workload_key(const TwoValues& setting, const std::string& workload) {
  if (workload.find(" " + setting.key + ":") != std::string::npos || workload.find("gpus: 1") != std::string::npos)
    return;
  CAPTURE(setting.key);
  CAPTURE(workload);
  const auto one = seen(scenario_of("", workload + ", " + setting.key + ": " + setting.one));
  const auto other = seen(scenario_of("", workload + ", " + setting.key + ": " + setting.other));
  const auto said_by = [&](const std::string& words) {
    return one.text.find(words) != std::string::npos || other.text.find(words) != std::string::npos;
  };
  const bool is_said = said_by("does not read '" + setting.key + "'") ||
                       said_by("'" + setting.key + "' changes nothing") ||
                       other.idle.find("workload." + setting.key + " changes no time") != std::string::npos;
  if (!is_said && !one.is_refused && !other.is_refused) CHECK((one.times != other.times || one.text != other.text));
  if (is_said) CHECK(one.times == other.times);
}

}  // namespace

TEST_CASE("the tables of a workload's keys name every key of the schema") {
  auto workload = keys_of(k_workload);
  for (const auto& own : k_own_keys) workload.insert(own.key);
  workload.insert({"benchmark", "name"});
  CHECK(workload == keys_of_schema("workload"));
}

TEST_CASE("every key of a workload changes a result, is refused, or is said not to be read") {
  for (const auto& workload : all_workloads())
    for (const auto& setting : k_workload) check_workload_key(setting, workload);
}

TEST_CASE("a key that one benchmark alone has is refused by the others") {
  for (const auto& workload : all_workloads()) {
    for (const auto& own : k_own_keys) {
      if (workload.find("benchmark: " + own.benchmark) != std::string::npos) continue;
      CAPTURE(own.key);
      CAPTURE(workload);
      CHECK(seen(scenario_of("", workload + ", " + own.key + ": " + own.value)).is_refused);
    }
  }
}

TEST_CASE("operations that wait for others are queued: their number changes the time") {
  const std::string step = "benchmark: gpu_step, compute: 1 ms, sizes: [4 MiB], iterations: ";
  const auto busy = "host_neighbours: {threads: 40, vcpus: 32}";
  CHECK(seen(scenario_of(busy, step + "1")).times != seen(scenario_of(busy, step + "40")).times);
}

TEST_CASE("a start that moves no workload against another is said to change nothing") {
  const auto text = [](const std::string& first, const std::string& second) {
    const std::string one = "  - {benchmark: osu_bw, sizes: [1 MiB]";
    const auto yaml = scenario_of("", "X");
    return seen(yaml.substr(0, yaml.find("workload: {X}")) + "workloads:\n" + one + first + "}\n" + one + second +
                "}\n")
        .text;
  };
  const auto words = "all workloads start together";
  CHECK(text(", start: 1 ms", ", start: 1 ms").find(words) != std::string::npos);
  CHECK(text(", start: 1 ms", "").find(words) == std::string::npos);
  CHECK(text("", "").find(words) == std::string::npos);
}
