// SPDX-License-Identifier: Apache-2.0
// Limits of a library that it need not say, of a release of UCX, and of a core that copies.
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {

struct Case {
  const char* scenario;
  const char* sizes;
  const char* own;    ///< what the library may say
  const char* usual;  ///< what counts else
  double other;       ///< bytes, such that the forecast moves
};

std::vector<double> times(const LoadedScenario& loaded) {
  std::vector<double> out;
  const auto prediction = test::run(loaded);
  for (const auto& row : prediction.workloads[0].rows) out.push_back(row.time.us());
  return out;
}

std::vector<double> times(const Case& one, const std::string& changed) {
  auto scenario = test::shipped(std::string("validation/") + one.scenario + ".yaml", {{"workload.sizes", one.sizes}});
  if (!changed.empty()) {
    auto parameter = scenario.parameters.at(one.usual);
    parameter.name = changed;
    parameter.value = one.other;
    parameter.low = parameter.high = one.other;
    scenario.parameters.set(parameter);
  }
  return times(scenario);
}

}  // namespace

TEST_CASE("what a library does not say of blocking sends is what it says of all, what it says counts") {
  for (const auto& one : {Case{"efa-aws-p3dn-2vm-osu_latency-HH", "[128 KiB, 256 KiB]",
                               "mpi.open-mpi-ofi.blocking_eager_limit", "mpi.open-mpi-ofi.eager_limit", 1e6},
                          {"p100-pizdaint-aries-osu_latency-DD", "[2 KiB, 4 KiB]",
                           "mpi.cray-mpich.blocking_device_eager_limit", "mpi.cray-mpich.device_eager_limit", 1024}}) {
    CAPTURE(one.own);
    const auto shipped = times(one, "");
    const auto own = times(one, one.own), usual = times(one, one.usual);
    CHECK(own != shipped);
    CHECK(own == usual);
  }
}

namespace {

std::vector<double> device_times(const std::string& software, const std::string& benchmark, const std::string& sizes,
                                 int ranks, int per_host) {
  const auto loaded = test::scenario(fmt::format(
      "schema: fabricast/scenario/1\nname: t\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: "
      "[{{name: node, count: 2, type: dgx-1-v100}}]\n  fabric: {{single_switch: {{switch: sb7800}}}}\n"
      "software: {{mpi: open-mpi-ucx, {}}}\nworkload: {{benchmark: {}, gpus: {}, ranks_per_host: {}, "
      "buffers: [device, device], sizes: {}}}\n",
      software, benchmark, ranks, per_host, sizes));
  return times(loaded);
}

}  // namespace

TEST_CASE("messages that a core copies by gdrcopy follow each other as fast as it copies, not as CUDA's copies do") {
  // One after the other: what a message costs more beside 14 others is their gaps.
  for (const std::string benchmark : {"osu_bw", "osu_alltoall"}) {
    CAPTURE(benchmark);
    const bool is_window = benchmark == "osu_bw";
    const auto with = [&](const char* gdrcopy) {
      return device_times(fmt::format("gpudirect_rdma: off, gdrcopy: {}", gdrcopy), benchmark,
                          "[1 B, 64 B, 1 KiB, 4 KiB, 1 MiB]", is_window ? 2 : 16, is_window ? 1 : 8);
    };
    const auto on = with("on"), off = with("off");
    for (std::size_t i = 0; i < on.size(); ++i) CHECK(on[i] <= off[i] * 1.0001);
    CHECK(on[0] < 0.5 * off[0]);
    // Large messages are copied by the engines either way.
    CHECK(on.back() > 0.9 * off.back());
  }
}

TEST_CASE("device messages are announced late where they block before UCX 1.9, early until 1.15, late from 1.16 on") {
  const auto times = [](const char* ucx, const char* benchmark) {
    return device_times(fmt::format("gpudirect_rdma: on{}", ucx), benchmark, "[16 KiB, 128 KiB, 256 KiB]", 2, 1);
  };
  for (const char* benchmark : {"osu_latency", "osu_bw"}) {
    CAPTURE(benchmark);
    const bool is_blocking = std::string_view(benchmark) == "osu_latency";
    const auto first = times(", ucx: \"1.8\"", benchmark), second = times(", ucx: \"1.9\"", benchmark);
    const auto third = times(", ucx: \"1.16\"", benchmark);
    CHECK(first[0] == second[0]);
    CHECK((first[1] > 1.3 * second[1]) == is_blocking);
    CHECK(first[2] == second[2]);
    CHECK(third[1] > 1.3 * second[1]);
    CHECK(third[2] < 1.1 * second[2]);
    CHECK(times(", ucx: \"1.15\"", benchmark)[1] < third[1] / 1.3);
    // Who names none has a new one.
    CHECK(times("", benchmark) == third);
  }
}
