// SPDX-License-Identifier: Apache-2.0
// The parameter that a term names is the one that the term follows: with half or one and a half times its value the row
// takes another time. Of several times that pass beside each other a term names the longest one's.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {

struct Case {
  std::string host;
  int count = 1;
  std::string fabric_switch, virtualization, workload;
};

LoadedScenario loaded_of(const Case& one) {
  return test::scenario(
      fmt::format("schema: fabricast/scenario/1\nname: s\ntopology: {{schema: fabricast/topology/1, name: t, hosts: "
                  "[{{name: n, count: "
                  "{}, type: {}}}]{}}}\nvirtualization: {}\nworkload: {{{}}}\n",
                  one.count, one.host,
                  one.count > 1 ? fmt::format(", fabric: {{single_switch: {{switch: {}}}}}", one.fabric_switch) : "",
                  one.virtualization, one.workload));
}

double only_time(const LoadedScenario& loaded) { return test::run(loaded).workloads[0].rows.at(0).time.seconds(); }

/// By how much the row's time moves at most when the parameter does.
double moved(const LoadedScenario& loaded, const Parameter& parameter, double before) {
  double most = 0;
  for (const double factor : {0.5, 1.5}) {
    auto changed = loaded;
    auto other = parameter;
    other.value *= factor;
    changed.parameters.set(other);
    most = std::max(most, std::abs(only_time(changed) - before));
  }
  return most;
}

}  // namespace

TEST_CASE("a term follows the parameter that it names") {
  for (const auto& one : std::vector<Case>{
           {"azure-nd-a100-v4", 4, "qm8700", "tcp", "benchmark: alltoall_perf, sizes: [8 B]"},
           {"aws-p5en", 2, "sn3700", "bare-metal", "benchmark: alltoall_perf, sizes: [16 KiB]"},
           {"server-2s-icelake-1a40", 1, "", "bare-metal", "benchmark: osu_allreduce, sizes: [16 MiB]"},
           {"server-2s-broadwell-2p100", 4, "qm8700", "passthrough", "benchmark: osu_scatter, sizes: [1 MiB]"},
           {"azure-hbv3", 4, "qm9700", "sr-iov", "benchmark: osu_bcast, sizes: [1 KiB]"},
           {"azure-ndv2", 4, "qm8700", "vgpu", "benchmark: osu_mbw_mr, buffers: device, sizes: [16 KiB]"},
           {"server-2s-skylake-4v100", 3, "qm9700", "bare-metal",
            "benchmark: osu_scatter, buffers: device, sizes: [16 KiB]"},
           {"kvm-a100-2hdr", 4, "qm8700", "remote-gpu", "benchmark: osu_bcast, buffers: device, sizes: [16 KiB]"}}) {
    CAPTURE(one.host);
    CAPTURE(one.workload);
    const auto loaded = loaded_of(one);
    const auto row = test::run(loaded).workloads[0].rows.at(0);
    const double before = row.time.seconds();
    for (const auto& term : row.terms) {
      const auto* parameter = loaded.parameters.find(term.parameter);
      // A transfer over packets names what they carry beside the payload.
      if (parameter == nullptr || parameter->value <= 0 || term.parameter.ends_with(".packet_header")) continue;
      if (term.time.seconds() < 0.1 * before) continue;
      CAPTURE(term.name);
      CAPTURE(term.parameter);
      CHECK(moved(loaded, *parameter, before) > 0.05 * term.time.seconds());
    }
  }
}
