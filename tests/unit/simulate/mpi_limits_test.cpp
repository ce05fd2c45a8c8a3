// SPDX-License-Identifier: Apache-2.0
// Limits of a library that it need not say: those of blocking sends are its usual ones.
#include <string>
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

std::vector<double> times(const Case& one, const std::string& changed) {
  auto scenario = test::shipped(std::string("validation/") + one.scenario + ".yaml", {{"workload.sizes", one.sizes}});
  if (!changed.empty()) {
    auto parameter = scenario.parameters.at(one.usual);
    parameter.name = changed;
    parameter.value = one.other;
    parameter.low = parameter.high = one.other;
    scenario.parameters.set(parameter);
  }
  std::vector<double> out;
  for (const auto& row : test::run(scenario).workloads[0].rows) out.push_back(row.time.us());
  return out;
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
