// SPDX-License-Identifier: Apache-2.0
// Benchmarks make an operation again and again over the same queue pairs, whose rates congestion control has set by
// then: the first operation, in which everybody begins at the rate of a port, is not what they print.
#include <string>

#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {

/// Sixteen hosts of eight A100 on SN3700: flows of several hosts meet on links between the switches.
Row meeting_flows(Fidelity fidelity, const std::string& size, bool shortcuts = true) {
  SimulateOptions options;
  options.fidelity = fidelity;
  options.packet_shortcuts = shortcuts;
  const auto loaded = test::shipped("allreduce-roce-sn3700.yaml", {{"workload.sizes", "[" + size + "]"}});
  return test::run(loaded, options).workloads[0].rows.at(0);
}

}  // namespace

TEST_CASE("senders whose rates have settled take little longer than shares of links, however short the operation") {
  for (const auto* size : {"1 MiB", "2 MiB", "4 MiB", "8 MiB"}) {
    CAPTURE(size);
    const auto packets = meeting_flows(Fidelity::packet, size);
    const auto shares = meeting_flows(Fidelity::fluid, size);
    CHECK(packets.fabric->notifications > 0);
    CHECK(packets.fabric->operations == 6);
    CHECK(packets.time.seconds() < 1.15 * shares.time.seconds());
    CHECK(packets.time.seconds() > 0.99 * shares.time.seconds());
  }
}

TEST_CASE("where nobody is told to slow down one operation tells all") {
  const auto row = meeting_flows(Fidelity::packet, "256 KiB");
  CHECK(row.fabric->notifications == 0);
  CHECK(row.fabric->operations == 1);
}

TEST_CASE("operations in a row are the same without the packet engine's shortcuts") {
  const auto row = meeting_flows(Fidelity::packet, "2 MiB");
  const auto plain = meeting_flows(Fidelity::packet, "2 MiB", false);
  CHECK(row.time == plain.time);
  CHECK(row.fabric->notifications == plain.fabric->notifications);
}
