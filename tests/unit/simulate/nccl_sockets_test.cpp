// SPDX-License-Identifier: Apache-2.0
// NCCL over sockets inside a host: how it sees GPUs that it reaches by an interface only, headers and data, host
// threads of a VM that does not see its sockets.
#include "tests/support/clusters.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using test::row_at;
using test::us;

namespace {

Prediction over_sockets(const std::string& name, std::vector<Setting> settings) {
  return test::run(test::shipped("validation/" + name + "-all_reduce-tcp-socket.yaml", std::move(settings)));
}

}  // namespace

TEST_CASE("GPUs that reach each other by an interface only are a slow network to NCCL: it leaves LL at 16 and 32 KiB") {
  const auto protocol = [](const std::string& name, const char* size) {
    return over_sockets(name, {{"workload.sizes", std::string("[") + size + "]"}}).workloads[0].rows[0].protocol;
  };
  // Where both measured tables jump: 41.6 to 69.5 us with two GPUs, 149 to 322 us with four.
  CHECK(protocol("h200vm-2gpu", "8 KiB") == "ll");
  CHECK(protocol("h200vm-2gpu", "16 KiB") == "simple");
  CHECK(protocol("h200vm-4gpu", "16 KiB") == "ll");
  CHECK(protocol("h200vm-4gpu", "32 KiB") == "simple");
}

TEST_CASE("a message above 128 B follows its header over a socket: one more pass of the kernel per hop") {
  const auto prediction = over_sockets("h200vm2-2gpu", {{"workload.sizes", "[64 B, 128 B, 256 B]"}});
  const auto scenario = test::shipped("validation/h200vm2-2gpu-all_reduce-tcp-socket.yaml");
  const double data_us = scenario.parameters.number("nccl.socket_data_time") * 1e6;
  // Two ranks: half of the operation per message, doubled by LL's flags, and two hops.
  const double before = us(prediction, 128_B) - us(prediction, 64_B);
  CHECK(us(prediction, 256_B) - us(prediction, 128_B) == doctest::Approx(2 * before + 2 * data_us).epsilon(0.01));
}

TEST_CASE("host threads take longer in a VM that spans sockets without seeing them, not in one that is shown them") {
  const auto large = [](const std::string& name, const std::string& guest_topology) {
    const auto prediction =
        over_sockets(name, {{"workload.sizes", "[64 MiB, 128 MiB]"},
                            {"topology.hosts.node.virtualization",
                             "{mode: passthrough, hypervisor: kvm, guest_topology: " + guest_topology + "}"}});
    return us(prediction, 128_MiB) - us(prediction, 64_MiB);
  };
  const double factor =
      test::shipped("validation/h200vm-2gpu-all_reduce-tcp-socket.yaml").parameters.number("host.scattered_threads");
  CHECK(large("h200vm-2gpu", "hidden") / large("h200vm-2gpu", "shown") == doctest::Approx(factor).epsilon(0.02));
  CHECK(large("h200vm2-2gpu", "hidden") / large("h200vm2-2gpu", "shown") == doctest::Approx(1).epsilon(0.001));
}

TEST_CASE("over loopback the proxy threads limit, and the thread blocks' own work hides behind them") {
  const auto prediction = over_sockets("h200vm2-2gpu", {{"workload.sizes", "[64 MiB, 128 MiB]"}});
  const double channel = test::shipped("validation/h200vm2-2gpu-all_reduce-tcp-socket.yaml")
                             .parameters.number("nccl.loopback_channel_bandwidth");
  const double rate = 64 * 1048576 / ((us(prediction, 128_MiB) - us(prediction, 64_MiB)) * 1e-6);
  CHECK(rate == doctest::Approx(2 * channel).epsilon(0.03));  // two channels; the rest are hops of later loops
}
