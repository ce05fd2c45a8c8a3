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

TEST_CASE("VMs whose times differ say which of their settings differ") {
  const auto forecast = [](const std::string& virtualization) {
    return test::run(test::scenario(fmt::format(
        "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n"
        "    - {{name: n, count: 2, type: server-2s-icelake-4a40}}\n  fabric: {{single_switch: {{switch: sn2700}}}}\n"
        "virtualization: {}\nworkload: {{benchmark: osu_bcast, buffers: device, sizes: [8 B, 64 KiB, 16 MiB]}}\n",
        virtualization)));
  };
  const auto said = [](const Prediction& prediction) {
    std::string out;
    for (const auto& one : prediction.workloads[0].settings)
      out += one.setting + ": " + one.used + ", " + one.reason + "\n";
    return out;
  };
  int differ = 0;
  for (const std::string base : {"mode: sr-iov", "mode: tcp", "mode: tcp, hypervisor: kvm"}) {
    const auto plain = forecast("{" + base + "}");
    for (const std::string more :
         {"vcpus: 200", "numa: off", "latency_sensitivity: high", "rate_limit: 5 Gb/s", "translation: shared",
          "acs: redirect", "ats: off", "allow_p2p: off", "guest_topology: shown", "huge_pages: off", "mtu: 1500",
          "vhost: off", "vms_per_host: 2"}) {
      CAPTURE(base);
      CAPTURE(more);
      const auto other = forecast("{" + base + ", " + more + "}");
      bool is_equal = true;
      for (std::size_t r = 0; r < plain.workloads[0].rows.size(); ++r)
        is_equal = is_equal && plain.workloads[0].rows[r].time == other.workloads[0].rows[r].time;
      if (is_equal) continue;
      ++differ;
      CHECK(said(plain) != said(other));
    }
  }
  CHECK(differ > 12);
  CHECK(said(forecast("{mode: sr-iov, vcpus: 200, numa: off}")).find("1 VM per host, vcpus 200, numa off") !=
        std::string::npos);
}
