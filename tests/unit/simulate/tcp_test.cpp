// SPDX-License-Identifier: Apache-2.0
// Messages over TCP between hosts: what a connection of a cloud's adapter keeps up, and device data that go through
// host memory.
#include "tests/support/clusters.hpp"

#include "tests/support/approx.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using test::us;

namespace {

constexpr auto k_window = 64;

/// Time of a whole window of osu_bw, in microseconds.
double window_us(const Prediction& prediction, Bytes size) { return k_window * us(prediction, size); }

Prediction osu_bw(const std::string& buffers, const std::string& sizes) {
  return test::run(test::shipped("validation/tcp-google-n1v100-2vm-osu_bw-" + buffers + ".yaml",
                                 {{"workload.sizes", "[" + sizes + "]"}}));
}

}  // namespace

TEST_CASE("a connection between cloud VMs slows after its burst: windows of 8 MiB are below it, longer ones beyond") {
  const auto parameters = test::shipped("validation/tcp-google-n1v100-2vm-osu_bw-HH.yaml").parameters;
  const double fast = parameters.number("ethernet-32g.connection_bandwidth");
  const double slow = parameters.number("ethernet-32g.connection_sustained_bandwidth");
  const auto prediction = osu_bw("HH", "64 KiB, 128 KiB, 1 MiB, 2 MiB");
  const double before = 4 * 1048576 / ((window_us(prediction, 128_KiB) - window_us(prediction, 64_KiB)) * 1e-6);
  const double after = 64 * 1048576 / ((window_us(prediction, 2_MiB) - window_us(prediction, 1_MiB)) * 1e-6);
  CHECK(before == test::approx(fast).epsilon(0.02));
  CHECK(after == test::approx(slow).epsilon(0.02));
}

TEST_CASE("one message of 4 MiB is no longer than the burst, so a ping-pong never slows") {
  const auto prediction = test::run(
      test::shipped("validation/tcp-google-n1v100-2vm-osu_latency-HH.yaml", {{"workload.sizes", "[2 MiB, 4 MiB]"}}));
  const double fast = test::shipped("validation/tcp-google-n1v100-2vm-osu_latency-HH.yaml")
                          .parameters.number("ethernet-32g.connection_bandwidth");
  CHECK(2 * 1048576 / ((us(prediction, 4_MiB) - us(prediction, 2_MiB)) * 1e-6) == test::approx(fast).epsilon(0.01));
}

TEST_CASE("device messages over TCP are pipelined from the rendezvous on, at the rate of their staging") {
  const auto parameters = test::shipped("validation/tcp-google-n1v100-2vm-osu_bw-DD.yaml").parameters;
  const double staging = parameters.number("mpi.tcp.staging_bandwidth");
  const double gap_us = parameters.number("mpi.tcp.staging_gap") * 1e6;
  const auto prediction = osu_bw("DD", "64 KiB");
  CHECK(us(prediction, 64_KiB) == test::approx(gap_us + 65536 / staging * 1e6).epsilon(0.05));
}
