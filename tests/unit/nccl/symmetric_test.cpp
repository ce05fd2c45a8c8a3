// SPDX-License-Identifier: Apache-2.0
// Kernels for symmetric memory: which NCCL takes with how many thread blocks, as its own log of two H200 says, and what
// they take, as NCCL's tables and an own run say (calibration/data/h200-2gpu-symmetric, nccl-symmetric-times).
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "nccl/symmetric.hpp"
#include "tests/support/random.hpp"
#include "tests/unit/nccl/hosts.hpp"

using namespace fabricast;
using namespace fabricast::models;
using namespace fabricast::models::nccl;

namespace {

constexpr SymmetricKernel k_kernels[] = {SymmetricKernel::lines, SymmetricKernel::multicast_lines,
                                         SymmetricKernel::direct, SymmetricKernel::multicast};

std::ifstream data(const std::string& file) {
  std::ifstream in(std::string(FABRICAST_SOURCE_DIR) + "/calibration/data/" + file);
  REQUIRE(in);
  return in;
}

Collective collective_from(const std::string& name) {
  if (name == "AllReduce" || name == "all_reduce") return Collective::all_reduce;
  return name == "AllGather" || name == "all_gather" ? Collective::all_gather : Collective::reduce_scatter;
}

SymmetricKernel kernel_from(const std::string& name, Collective collective) {
  return *std::ranges::find_if(k_kernels, [&](auto kernel) { return name_of(kernel, collective) == name; });
}

SymmetricFacts facts_of(Collective collective, int ranks, int capability = 90) {
  return {collective, 228, capability, ranks, false, 24, {}};
}

double never(const SymmetricChoice&) {
  FAIL("2.28 does not ask for measured times");
  return 0;
}

/// A host of GPUs over NVSwitches: of Hopper up to eight, of Blackwell as many as a rack has.
class Host {
 public:
  explicit Host(const std::string& gpu)
      : setup_(
            gpu == "gb200"
                ? test::scenario(
                      "schema: fabricast/scenario/1\nname: s\ntopology: {schema: fabricast/topology/1, name: t, hosts: "
                      "[{name: rack, count: 1, type: gb200-nvl72}]}\nworkload: {benchmark: all_reduce_perf}\n")
                : test::cluster_of({.gpu = gpu}, 1)) {}

  [[nodiscard]] double time_us(Collective collective, int count, const SymmetricChoice& choice,
                               std::int64_t bytes) const {
    auto gpus = setup_.gpus();
    gpus.resize(static_cast<std::size_t>(count));
    const auto architecture = architecture_of(setup_.context, gpus[0]);
    const SymmetricRanks ranks{setup_.context, gpus, architecture, facts_of(collective, count)};
    return 1e6 * symmetric_time(ranks, choice, Bytes{bytes}).seconds();
  }

 private:
  test::Setup setup_;
};

/// A line of our own runs, with the kernel and thread blocks that were forced ("-": none).
struct OwnRun {
  int ranks = 0;
  Collective collective = Collective::all_reduce;
  std::string buffers, kernel, blocks;
  std::int64_t bytes = 0;
  double us = 0;
};

std::vector<OwnRun> own_runs(const std::string& file) {
  auto in = data("h200-2gpu-symmetric/" + file);
  std::vector<OwnRun> out;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    OwnRun run;
    std::string operation, way;
    words >> run.ranks >> operation >> run.buffers >> way >> run.kernel >> run.blocks >> run.bytes >> run.us;
    run.collective = collective_from(operation);
    out.push_back(run);
  }
  return out;
}

/// Errors of forecasts, of each the time predicted over the one measured less 1.
struct Errors {
  std::vector<double> all;

  void add(double predicted, double measured) { all.push_back(std::abs(predicted / measured - 1)); }
  [[nodiscard]] double at(double share) {
    std::ranges::sort(all);
    return all[static_cast<std::size_t>(share * static_cast<double>(all.size() - 1))];
  }
};

}  // namespace

TEST_CASE("symmetric memory: kernels and thread blocks are those that NCCL 2.28 took") {
  auto in = data("h200-2gpu-symmetric/choices.txt");
  const std::regex line_of(R"((\w+) \[Symmetric\]: (\d+) Bytes -> Kernel \w+?_(\w+) nchannels (\d+) .*)");
  int count = 0;
  std::smatch found;
  for (std::string line; std::getline(in, line);) {
    CAPTURE(line);
    REQUIRE(std::regex_match(line, found, line_of));
    const auto collective = collective_from(found[1]);
    const std::int64_t parts = collective == Collective::all_reduce ? 1 : 2;
    const auto choice = choose_symmetric(facts_of(collective, 2), Bytes{std::stoll(found[2]) * parts}, never);
    CHECK(name_of(choice.kernel, collective) == found[3]);
    CHECK(choice.blocks == std::stoi(found[4]));
    ++count;
  }
  CHECK(count == 69);
}

TEST_CASE("symmetric memory: kernels take what NCCL's own tables say") {
  auto in = data("nccl-symmetric-times/times.txt");
  const Host hopper("h100-sxm"), blackwell("gb200");
  Errors errors;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("#")) continue;
    std::istringstream words(line);
    std::string architecture, name;
    int ranks = 0;
    std::int64_t bytes = 0;
    double measured = 0;
    words >> architecture >> name >> ranks >> bytes >> measured;
    const bool is_hopper = architecture == "hopper";
    const auto collective = collective_from(name.substr(0, name.find('_')));
    const auto kernel = kernel_from(name.substr(name.find('_') + 1), collective);
    // The table's own rule for blocks, with the channels of eight H100 and B200.
    const double of_rank = static_cast<double>(bytes) / (collective == Collective::all_reduce ? 1 : ranks);
    double blocks = std::min(std::ceil(of_rank / (is_of_lines(kernel) ? 4096 : 16384)), is_hopper ? 24.0 : 32.0);
    if (is_multicast(kernel)) blocks = std::min(blocks, std::ceil((is_hopper ? 16.0 : 32.0) / ranks));
    const SymmetricChoice choice{kernel, static_cast<int>(std::max(1.0, blocks))};
    errors.add((is_hopper ? hopper : blackwell).time_us(collective, ranks, choice, bytes), measured);
  }
  CHECK(errors.all.size() == 409);
  CHECK(errors.at(0.5) < 0.07);
  CHECK(errors.at(0.9) < 0.25);
}

TEST_CASE("symmetric memory: kernels take what they took on two H200, whatever the thread blocks") {
  const Host host("h200-sxm");
  Errors errors;
  for (const auto& run : own_runs("symmetric.txt")) {
    if (run.kernel == "-" || run.blocks == "-") continue;
    const auto of_name = kernel_from(run.kernel.substr(run.kernel.find('_') + 1), run.collective);
    errors.add(host.time_us(run.collective, run.ranks, {of_name, std::stoi(run.blocks)}, run.bytes), run.us);
  }
  CHECK(errors.all.size() > 500);
  CHECK(errors.at(0.5) < 0.09);
  CHECK(errors.at(0.9) < 0.25);
}

TEST_CASE(
    "symmetric memory: sizes that no fit saw were forecast within 7.5 % in the median, 24 % in the 90th percentile") {
  const Host host("h200-sxm");
  Errors errors;
  for (const auto& run : own_runs("other-sizes.txt")) {
    if (run.buffers != "symmetric") continue;
    const auto choice = choose_symmetric(facts_of(run.collective, run.ranks), Bytes{run.bytes}, never);
    errors.add(host.time_us(run.collective, run.ranks, choice, run.bytes), run.us);
  }
  CHECK(errors.all.size() == 90);
  CHECK(errors.at(0.5) < 0.09);
  CHECK(errors.at(0.9) < 0.26);
}

TEST_CASE("symmetric memory: more bytes or fewer thread blocks are never faster, and no kernel beats its links") {
  test::Random random(41);
  const Host host("h200-sxm");
  for (std::uint64_t i = 0; i < test::draws(300); ++i) {
    const int ranks = random.pick<int>({2, 4, 8});
    const auto collective =
        random.pick<Collective>({Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter});
    const auto kernel = k_kernels[random.next(4)];
    const int blocks = 1 + static_cast<int>(random.next(64));
    // Whole chunks for all: what does not divide costs passes.
    const std::int64_t bytes = std::int64_t{8192} * blocks * 8 * (1 + static_cast<std::int64_t>(random.next(2000)));
    CAPTURE(ranks);
    CAPTURE(bytes);
    CAPTURE(blocks);
    CAPTURE(name_of(kernel, collective));
    const double time = host.time_us(collective, ranks, {kernel, blocks}, bytes);
    CHECK(host.time_us(collective, ranks, {kernel, blocks}, 2 * bytes) > time);
    if (blocks % 2 == 0) CHECK(host.time_us(collective, ranks, {kernel, blocks / 2}, bytes) >= time * (1 - 1e-9));
    // By unicast a GPU sends (n - 1) / n of the vector at least, over 450 GB/s.
    if (kernel == SymmetricKernel::lines || kernel == SymmetricKernel::direct)
      CHECK(time > static_cast<double>(bytes) * (ranks - 1) / ranks / 450e3);
  }
}

TEST_CASE("symmetric memory: 2.27 gives a thread block to every 4 KiB of lines and 16 KiB else, and measures") {
  auto facts = facts_of(Collective::all_reduce, 8);
  facts.version = 227;
  const auto lines_first = [](const SymmetricChoice& choice) {
    return choice.kernel == SymmetricKernel::lines ? 5.0 : 9.0;
  };
  CHECK(choose_symmetric(facts, Bytes{10000}, lines_first) == SymmetricChoice{SymmetricKernel::lines, 3});
  const auto direct_first = [](const SymmetricChoice& choice) {
    return choice.kernel == SymmetricKernel::direct ? 5.0 : 90.0;
  };
  CHECK(choose_symmetric(facts, Bytes{160 << 10}, direct_first) == SymmetricChoice{SymmetricKernel::direct, 10});
  CHECK(choose_symmetric(facts, Bytes{1 << 30}, direct_first) == SymmetricChoice{SymmetricKernel::direct, 24});
}

TEST_CASE("symmetric memory: a thread block counts as 2.5 % more, so that fewer by multicast win over more without") {
  auto facts = facts_of(Collective::all_gather, 4);
  facts.has_multicast = true;
  const auto at = [&](std::int64_t bytes) { return choose_symmetric(facts, Bytes{bytes * 4}, never); };
  CHECK(at(16 << 10) == SymmetricChoice{SymmetricKernel::multicast_lines, 6});
  CHECK(at(64 << 10) == SymmetricChoice{SymmetricKernel::multicast, 2});
  CHECK(at(8 << 20) == SymmetricChoice{SymmetricKernel::multicast, 4});
}

TEST_CASE("symmetric memory: sums wait for one GPU after the other") {
  const Host rack("gb200");
  const auto at = [&](Collective collective, int ranks) {
    return rack.time_us(collective, ranks, {SymmetricKernel::direct, 1}, 1024);
  };
  // NCCL's tables: 14.6 us of 8 GPUs and 37.4 of 64, all-gathers 12.1 and 16.0.
  CHECK(at(Collective::all_reduce, 64) - at(Collective::all_reduce, 8) > 15);
  CHECK(at(Collective::all_gather, 64) - at(Collective::all_gather, 8) < 5);
}

TEST_CASE("symmetric memory: NVSwitches that reduce and multicast serve three GPUs and more") {
  auto facts = facts_of(Collective::all_reduce, 8);
  facts.has_multicast = true;
  const auto at = [&](std::int64_t bytes) { return choose_symmetric(facts, Bytes{bytes}, never); };
  CHECK(at(1 << 30) == SymmetricChoice{SymmetricKernel::multicast, 2});
  CHECK(at(1024).kernel != SymmetricKernel::multicast);
  facts.num_ranks = 2;
  CHECK(at(1 << 30).kernel == SymmetricKernel::direct);
}
