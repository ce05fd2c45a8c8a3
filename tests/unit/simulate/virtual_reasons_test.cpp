// SPDX-License-Identifier: Apache-2.0
// What a result says of why device data go the way they go, bare and in VMs.
#include <fmt/format.h>

#include "tests/support/clusters.hpp"

using namespace fabricast;

TEST_CASE("what keeps MPI from GPUDirect RDMA is said of pairs and of collectives, of some GPUs with how many") {
  const auto said = [](const std::string& host, const std::string& virtualization, const std::string& workload) {
    const auto text = fmt::format(
        "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n"
        "    - {{name: n, count: 2, type: {}}}\n  fabric: {{single_switch: {{switch: qm8700}}}}\n"
        "virtualization: {}\nworkload: {}\n",
        host, virtualization, workload);
    const auto prediction = test::run(test::scenario(text));
    for (const auto& one : prediction.workloads[0].settings)
      if (one.setting == "GPUDirect RDMA up to") return one.used + ": " + one.reason;
    return std::string();
  };
  const std::string bcast = "{benchmark: osu_bcast, buffers: device, sizes: [1 KiB]}";
  const std::string latency = "{benchmark: osu_latency, buffers: [device, device], sizes: [1 KiB]}";
  for (const auto& workload : {bcast, latency}) {
    CAPTURE(workload);
    CHECK(said("dgx-a100", "bare-metal", workload) == "1 TiB: ");
    CHECK(said("dgx-a100", "{mode: passthrough, allow_p2p: off}", workload).starts_with("never: "));
    CHECK(said("server-epyc-a100-hdr-sys", "bare-metal", workload).starts_with("never: n0.gpu0 and n0.hca0 are SYS"));
    CHECK(said("server-epyc-a100-hdr-sys", "passthrough", workload) == "1 TiB: ");
  }
  CHECK(said("hgx-a100-4-hdr", "bare-metal", bcast).starts_with("1 TiB, never of "));
  CHECK(said("dgx-a100", "bare-metal", "{benchmark: osu_bcast, sizes: [1 KiB]}").empty());
}

TEST_CASE("hosts whose switches redirect peer requests say so bare, too") {
  const auto traffic = [](const std::string& virtualization) {
    const auto text = fmt::format(
        "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n"
        "    - {{name: n, count: 1, type: abci-a100}}\nvirtualization: {}\n"
        "workload: {{benchmark: all_reduce_perf, sizes: [1 KiB]}}\n",
        virtualization);
    const auto prediction = test::run(test::scenario(text));
    for (const auto& one : prediction.workloads[0].settings)
      if (one.setting == "peer traffic") return one.used;
    return std::string();
  };
  CHECK(traffic("bare-metal") == "through the root complex");
  CHECK(traffic("passthrough").empty());
}
