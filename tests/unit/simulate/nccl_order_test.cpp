// SPDX-License-Identifier: Apache-2.0
// What must not change a forecast of NCCL: in which order GPUs are listed or ranked, which GPU is the root, whether the
// channels that NCCL opens are written down. And what its releases do not have.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "tests/support/approx.hpp"
#include "tests/support/random.hpp"
#include "tests/support/refusals.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

struct Case {
  std::string hosts, fabric, workload, software = "{}";
};

std::string text_of(const Case& one) {
  return fmt::format(
      "schema: fabricast/scenario/1\nname: t\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: [{}]\n{}"
      "software: {}\nworkload: {{{}}}\n",
      one.hosts, one.fabric.empty() ? "" : fmt::format("  fabric: {}\n", one.fabric), one.software, one.workload);
}

std::vector<Row> rows(const Case& one) { return test::run(test::scenario(text_of(one))).workloads[0].rows; }

void check_equal(const std::vector<Row>& one, const std::vector<Row>& other) {
  REQUIRE(one.size() == other.size());
  for (std::size_t row = 0; row < one.size(); ++row) CHECK(one[row].time.us() == test::approx(other[row].time.us()));
}

/// Eight L40S two to a switch; GPU i below switch `switches[i]`.
std::string switched_host(const std::vector<int>& switches) {
  std::string devices;
  for (int s = 0; s < 4; ++s)
    devices += fmt::format("{{name: sw{0}, kind: pcie_switch, below: socket{1}, pcie: gen4 x16}}, ", s, s / 2);
  for (std::size_t g = 0; g < switches.size(); ++g)
    devices +=
        fmt::format("{}{{name: gpu{}, type: l40s, below: sw{}, pcie: gen4 x16}}", g == 0 ? "" : ", ", g, switches[g]);
  return fmt::format("{{name: node, host: {{processor: xeon-sapphirerapids, sockets: 2, devices: [{}]}}}}", devices);
}

std::string with_devices(const std::string& workload, const std::vector<std::string>& devices) {
  return fmt::format("{}, devices: [{}]", workload, fmt::join(devices, ", "));
}

const std::vector<std::string> k_collectives{"all_reduce_perf", "all_gather_perf", "reduce_scatter_perf"};
constexpr auto k_sizes = "sizes: [8 B, 48 KiB, 1 MiB, 1 GiB]";

}  // namespace

TEST_CASE("the order of ranks in a host changes nothing: NCCL's rings follow the bus") {
  test::Random random(11);
  const std::vector<std::string> types{"server-2s-rome-8a100", "server-2s-emeraldrapids-8h200nvl", "dgx-1-v100-32",
                                       "server-2s-sapphirerapids-8l40s", "hgx-h100-8"};
  for (const auto& type : types) {
    for (int i = 0; i < static_cast<int>(test::draws(4)); ++i) {
      const auto workload = fmt::format("benchmark: {}, {}", random.pick(k_collectives), k_sizes);
      const auto count = 2 + random.next(7);
      std::vector<int> order(8);
      std::iota(order.begin(), order.end(), 0);
      for (std::size_t g = 8; g > 1; --g) std::swap(order[g - 1], order[random.next(g)]);
      order.resize(count);
      const auto named = [&](const std::vector<int>& gpus) {
        std::vector<std::string> out;
        for (const int g : gpus) out.push_back(fmt::format("node.gpu{}", g));
        return out;
      };
      CAPTURE(type);
      CAPTURE(fmt::format("{}", fmt::join(order, " ")));
      const auto host = fmt::format("{{name: node, type: {}}}", type);
      auto sorted = order;
      std::ranges::sort(sorted);
      check_equal(rows({host, "", with_devices(workload, named(order))}),
                  rows({host, "", with_devices(workload, named(sorted))}));
    }
  }
}

TEST_CASE("below which of equal switches GPUs are listed changes nothing") {
  const auto workload = fmt::format("benchmark: all_reduce_perf, {}", k_sizes);
  const auto usual = rows({switched_host({0, 0, 1, 1, 2, 2, 3, 3}), "", workload});
  for (const auto& order : {std::vector{0, 2, 0, 2, 1, 3, 1, 3}, {0, 1, 2, 3, 0, 1, 2, 3}, {3, 2, 1, 0, 0, 1, 2, 3}}) {
    CAPTURE(fmt::format("{}", fmt::join(order, " ")));
    check_equal(rows({switched_host(order), "", workload}), usual);
  }
}

TEST_CASE("to write down the channels, algorithm and protocol that NCCL takes changes nothing") {
  test::Random random(12);
  const std::vector<std::string> types{"hgx-h100-8", "dgx-a100", "dgx-1-v100-32"};
  auto benchmarks = k_collectives;
  benchmarks.insert(benchmarks.end(), {"broadcast_perf", "reduce_perf"});
  for (int i = 0; i < static_cast<int>(test::draws(24)); ++i) {
    const int hosts = 1 + static_cast<int>(random.next(7));
    const int gpus = hosts == 1 ? 2 + static_cast<int>(random.next(7)) : 8 * hosts;
    const auto size = static_cast<std::int64_t>(random.next(4'000'000)) / 4 * 4 + 4;
    Case one{fmt::format("{{name: node, count: {}, type: {}}}", hosts, random.pick(types)),
             "{single_switch: {switch: qm9700}}",
             fmt::format("benchmark: {}, gpus: {}, sizes: [{} B]", random.pick(benchmarks), gpus, size)};
    CAPTURE(one.hosts);
    CAPTURE(one.workload);
    const auto own = rows(one);
    if (own[0].algorithm.starts_with("nvls")) continue;  // its channels are no limit of the rings'
    one.workload +=
        fmt::format(", algorithm: {}, protocol: {}, channels: {}", own[0].algorithm, own[0].protocol, own[0].channels);
    check_equal(rows(one), own);
  }
}

TEST_CASE("every root of hosts whose GPUs each begin a channel takes the same") {
  for (const auto* type : {"hgx-h100-8", "dgx-a100"}) {
    for (const auto* benchmark : {"broadcast_perf", "reduce_perf"}) {
      Case one{fmt::format("{{name: node, count: 2, type: {}}}", type), "{single_switch: {switch: qm9700}}", ""};
      CAPTURE(type);
      CAPTURE(benchmark);
      std::vector<Row> first;
      for (const int root : {0, 1, 6, 9}) {
        CAPTURE(root);
        one.workload = fmt::format("benchmark: {}, root: {}, sizes: [1 MiB, 64 MiB]", benchmark, root);
        if (first.empty())
          first = rows(one);
        else
          check_equal(rows(one), first);
      }
    }
  }
}

TEST_CASE("MI300X hosts with some of their adapters keep about that share of the bandwidth") {
  const auto time = [](const std::string& remove) {
    return rows({fmt::format("{{name: node, count: 2, type: mi300x-8, remove: [{}]}}", remove),
                 "{fat_tree: {switch: ethernet-400g-leaf, tiers: 2, oversubscription: 1}}",
                 "benchmark: all_reduce_perf, sizes: [4 GiB]"})[0]
        .time.seconds();
  };
  const double all = time("");
  CHECK(time("hca7") < 2.2 * all);
  CHECK(time("hca6, hca7") < 2.6 * all);
  CHECK(time("hca1, hca3, hca5, hca7") < 2.5 * all);
  CHECK(time("hca1, hca2, hca3, hca4, hca5, hca6, hca7") < 9 * all);
}

TEST_CASE("one rank copies its buffer in its own memory") {
  const auto alone =
      rows({"{name: node, type: hgx-h100-8}", "", "benchmark: all_reduce_perf, gpus: 1, sizes: [8 B, 4 GiB]"});
  const double bytes = 2 * 4.0 * (1 << 30);
  CHECK(alone[1].time.seconds() > bytes / 3.4e12);
  CHECK(alone[1].time.seconds() < alone[0].time.seconds() + bytes / 3.3e12);
}

TEST_CASE("what a release of NCCL does not have is refused, a release that nobody read too") {
  const auto refusal = [](const std::string& version, const std::string& workload) {
    return test::refusal_of(text_of({"{name: node, count: 2, type: dgx-a100}", "{single_switch: {switch: qm8700}}",
                                     workload, fmt::format("{{nccl: {{version: \"{}\"}}}}", version)}));
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  for (const auto* pairs : {"sendrecv_perf", "alltoall_perf", "gather_perf", "scatter_perf"}) {
    CAPTURE(pairs);
    const auto workload = fmt::format("benchmark: {}, sizes: [8 B]", pairs);
    CHECK(has(refusal("2.6", workload), "it came with 2.7"));
    CHECK(refusal("2.7", workload).empty());
    CHECK(has(refusal("2.28", workload + ", protocol: ll"), "between hosts have no buffers for LL"));
    CHECK(has(refusal("2.28", workload + ", protocol: ll128"), "have LL and Simple only"));
    CHECK(has(refusal("2.28", workload + ", protocol: ll128, gpus: 8"), "have LL and Simple only"));
    CHECK(refusal("2.28", workload + ", protocol: ll, gpus: 8").empty());
    CHECK(refusal("2.28", workload + ", protocol: simple").empty());
  }
  const std::string reduce = "benchmark: all_reduce_perf, sizes: [8 B]";
  CHECK(has(refusal("2.8", reduce + ", launch: graph"), "it came with 2.9"));
  CHECK(refusal("2.9", reduce + ", launch: graph").empty());
  for (const auto* version : {"1.3", "2.1", "2.3", "3.0", "9.9"})
    CHECK(has(refusal(version, reduce), "no rules of NCCL"));
  for (const auto* version : {"2.4", "2.30", "2.99"}) CHECK(refusal(version, reduce).empty());
  const auto limit = [&](const char* version, int most) {
    CHECK(refusal(version, fmt::format("{}, channels: {}", reduce, most)).empty());
    CHECK(
        has(refusal(version, fmt::format("{}, channels: {}", reduce, most + 1)), fmt::format("has {} at most", most)));
  };
  limit("2.4", 16);
  limit("2.24", 32);
  const auto young =
      test::run(test::scenario(text_of({"{name: node, type: dgx-a100}", "", reduce, "{nccl: {version: \"2.31\"}}"})));
  const auto& said = young.workloads[0].assumptions;
  CHECK(std::ranges::find(said, "NCCL 2.31 decides as 2.30, up to which its source was read") != said.end());
}
