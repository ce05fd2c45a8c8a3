// SPDX-License-Identifier: Apache-2.0
// NVLink SHARP as users get it: used by itself where GPUs, NVSwitches, release and VM allow it, refused where there is
// none.
#include <algorithm>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using test::row_at;

namespace {

/// An all-reduce on `hosts` hosts of a catalogue type, all else default.
std::string on_hosts(const std::string& type, int hosts, const std::string& workload = "",
                     const std::string& software = "", const std::string& host_keys = "") {
  return "schema: fabricast/scenario/1\nname: test\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: "
         "[{name: node, "
         "count: " +
         std::to_string(hosts) + ", type: " + type + host_keys + "}]\n" +
         (hosts > 1 ? "  fabric: {single_switch: {switch: qm9700}}\n" : "") + "software: {" + software +
         "}\nworkload: {benchmark: all_reduce_perf, sizes: [1 GiB]" + workload + "}\n";
}

std::string algorithm_of(const std::string& text) {
  const auto prediction = test::run(test::scenario(text));
  return row_at(prediction, 1_GiB).algorithm;
}

/// The faults of a run; empty when it runs.
std::string refusal(const std::string& text) {
  const auto loaded = test::scenario(text);
  const auto prediction = simulate(loaded.topology, loaded.scenario, loaded.parameters, {});
  return prediction ? std::string() : test::shown(prediction.error());
}

std::string setting_of(const std::string& text, const std::string& name) {
  const auto prediction = test::run(test::scenario(text));
  for (const auto& setting : prediction.workloads[0].settings) {
    if (setting.setting == name) return setting.given + ": " + setting.used + ", " + setting.reason;
  }
  return "";
}

}  // namespace

TEST_CASE("eight H100 reduce in their NVSwitches by default, and so do hosts of them") {
  CHECK(algorithm_of(on_hosts("hgx-h100-8", 1)) == "nvls");
  CHECK(algorithm_of(on_hosts("hgx-h200-8", 1)) == "nvls");
  CHECK(algorithm_of(on_hosts("hgx-h100-8", 2)) == "nvls_tree");
  CHECK(setting_of(on_hosts("hgx-h100-8", 1), "nvls") == "auto: on, 8 channels found at 40.0 GB/s");
}

TEST_CASE(
    "hosts with one adapter open 16 channels beside NVLink SHARP from 2.22 to 2.27, else the four of the search") {
  const auto channels = [](const std::string& version, const std::string& more = "") {
    return test::run(test::scenario(on_hosts("hgx-h200-8-cx7x4", 2, ", algorithm: ring",
                                             "nccl: {version: \"" + version + "\"" + more + "}",
                                             ", remove: [hca1, hca2, hca3]")))
        .workloads[0]
        .rows[0]
        .channels;
  };
  for (const auto* version : {"2.20", "2.21", "2.28", "2.30"}) CHECK(channels(version) == 4);
  for (const auto* version : {"2.22", "2.25", "2.27"}) CHECK(channels(version) == 16);
  CHECK(channels("2.25", ", nvls: off") == 4);
}

TEST_CASE("NVLink SHARP is left out, and the result says why, where one thing is missing") {
  struct Case {
    std::string text, reason;
  };
  const auto vm = [](const std::string& keys) { return ", virtualization: {" + keys + "}"; };
  for (const auto& row : std::vector<Case>{
           {on_hosts("dgx-a100", 1), "compute capability 8.0"},
           {on_hosts("dgx-2", 1), "compute capability 7.0"},
           {on_hosts("server-2h100-pcie-bridge", 1), "not joined by an NVSwitch"},
           {on_hosts("hgx-h100-8", 1, "", "nccl: {version: \"2.16\"}"), "came with 2.17"},
           {on_hosts("hgx-h100-8", 2, "", "nccl: {version: \"2.17\"}"), "came with 2.18"},
           {on_hosts("hgx-h100-8", 1, "", "nccl: {p2p: off}"), "peer access is off"},
           {on_hosts("hgx-h100-8", 2, ", gpus: 2, ranks_per_host: 1"), "one GPU of node0"},
           {on_hosts("hgx-h100-8", 1, ", gpus: 2"), "two GPUs of node take part, before NCCL 2.30"},
           {on_hosts("hgx-h100-8", 2, ", gpus: 4, ranks_per_host: 2"), "two GPUs of node0 take part"},
           {on_hosts("hgx-h100-8", 1, "", "nccl: {nvls: off}"), "forced"},
           {on_hosts("hgx-h100-8", 1, "", "", vm("mode: passthrough, hypervisor: kvm, nvswitches: shared")),
            "does not hold the NVSwitches"},
           {on_hosts("hgx-h100-8", 1, ", gpus: 4", "", vm("mode: passthrough, hypervisor: kvm, vms_per_host: 2")),
            "2 VMs of one host"},
           {on_hosts("hgx-h100-8", 1, "", "", vm("mode: vgpu, hypervisor: kvm")), "unified memory"},
           {on_hosts("hgx-h100-8", 1, "", "", vm("mode: mig, hypervisor: kvm")), "MIG instances"}}) {
    const auto& [text, reason] = row;
    CAPTURE(row.text);
    CHECK(algorithm_of(text) != "nvls");
    CHECK(algorithm_of(text) != "nvls_tree");
    CHECK(setting_of(text, "nvls").find(reason) != std::string::npos);
  }
}

TEST_CASE("a VM with all GPUs and their NVSwitches, or whole vGPUs with unified memory, keep NVLink SHARP") {
  for (const auto* keys : {"mode: passthrough, hypervisor: kvm", "mode: passthrough, hypervisor: cloud-hypervisor",
                           "mode: vgpu, hypervisor: kvm, unified_memory: on"}) {
    CAPTURE(keys);
    CHECK(algorithm_of(on_hosts("hgx-h100-8", 1, "", "", std::string(", virtualization: {") + keys + "}")) == "nvls");
  }
}

TEST_CASE("what is inferred of a VM the user may overrule, by setting or by algorithm") {
  const std::string vm = ", virtualization: {mode: passthrough, hypervisor: kvm, nvswitches: shared}";
  CHECK(algorithm_of(on_hosts("hgx-h100-8", 1, "", "", vm)) == "ring");
  CHECK(algorithm_of(on_hosts("hgx-h100-8", 1, "", "nccl: {nvls: on}", vm)) == "nvls");
  CHECK(algorithm_of(on_hosts("hgx-h100-8", 1, ", algorithm: nvls", "", vm)) == "nvls");
  const auto prediction = test::run(test::scenario(on_hosts("hgx-h100-8", 1, "", "", vm)));
  CHECK(std::any_of(prediction.workloads[0].assumptions.begin(), prediction.workloads[0].assumptions.end(),
                    [](const std::string& line) { return line.find("is inferred") != std::string::npos; }));
}

TEST_CASE("NVLink SHARP that is asked for where there is none is refused with place, reason and fix") {
  struct Case {
    std::string text, reason;
  };
  for (const auto& row : std::vector<Case>{
           {on_hosts("dgx-a100", 1, "", "nccl: {nvls: on}"), "compute capability 8.0"},
           {on_hosts("server-4v100-pcie-switch", 1, ", algorithm: nvls"), "compute capability 7.0"},
           {on_hosts("server-2h100-pcie-bridge", 1, ", algorithm: nvls"), "not joined by an NVSwitch"},
           {on_hosts("hgx-h100-8", 1, ", algorithm: nvls, gpus: 1"), "one GPU of node takes part"},
           {on_hosts("hgx-h100-8", 1, ", algorithm: nvls", "nccl: {version: \"2.16\"}"), "came with 2.17"},
           {on_hosts("hgx-h100-8", 2, ", algorithm: nvls_tree", "nccl: {version: \"2.17\"}"), "came with 2.18"},
           {on_hosts("hgx-h100-8", 1, ", algorithm: nvls_tree"), "all GPUs are in one"},
           {on_hosts("hgx-h100-8", 1, ", algorithm: nvls", "nccl: {nvls: off}"), "beside software.nccl.nvls: off"},
           {on_hosts("hgx-h100-8", 1, ", algorithm: nvls, protocol: ll"), "no protocol 'll'"},
           {on_hosts("hgx-h100-8", 1, "", "nccl: {nvls: on, p2p: off}"), "peer access is off"},
           {on_hosts("hgx-h100-8", 1, "", "nccl: {nvls: on}", ", virtualization: {mode: mig, hypervisor: kvm}"), "MIG"},
           {on_hosts("google-a3-mega", 2, "", "nccl: {nvls: on}"), "rings and trees only"}}) {
    const auto& [text, reason] = row;
    CAPTURE(row.text);
    const auto faults = refusal(text);
    CHECK(faults.find(reason) != std::string::npos);
    CHECK(faults.find("scenario.yaml:") != std::string::npos);
    CHECK(faults.find("write ") + faults.find("remove ") != 2 * std::string::npos);
  }
}

TEST_CASE("algorithms and protocols that a collective or a release does not have are refused") {
  const auto with = [](const std::string& benchmark, const std::string& keys, const std::string& software = "") {
    auto text = on_hosts("hgx-h100-8", 1, keys, software);
    text.replace(text.find("all_reduce_perf"), 15, benchmark);
    return refusal(text);
  };
  for (const auto* benchmark : {"all_gather_perf", "reduce_scatter_perf", "broadcast_perf", "reduce_perf"}) {
    CAPTURE(benchmark);
    for (const auto* algorithm : {"tree", "nvls"})
      CHECK(with(benchmark, std::string(", algorithm: ") + algorithm).find("has no algorithm") != std::string::npos);
    CHECK(with(benchmark, ", algorithm: ring").empty());
  }
  CHECK(with("alltoall_perf", ", algorithm: ring").find("has no algorithm") != std::string::npos);
  CHECK(with("all_reduce_perf", ", protocol: ll128", "nccl: {version: \"2.4\"}").find("no LL128") != std::string::npos);
  CHECK(with("all_reduce_perf", ", algorithm: bruck").find("is not an NCCL algorithm") != std::string::npos);
}

TEST_CASE("what says who holds the NVSwitches is refused where nobody can") {
  const auto faults = [](const std::string& type, const std::string& keys) {
    const auto loaded = load_scenario(
        test::write_file("scenario.yaml", on_hosts(type, 1, "", "", ", virtualization: {" + keys + "}")), {}, {});
    return loaded ? std::string() : test::shown(loaded.error());
  };
  CHECK(faults("hgx-h100-8", "mode: bare-metal, nvswitches: shared").find("bare metal") != std::string::npos);
  CHECK(faults("server-2h100-pcie-bridge", "mode: passthrough, nvswitches: shared").find("no NVSwitch") !=
        std::string::npos);
  CHECK(faults("hgx-h100-8", "mode: vgpu, nvswitches: shared").find("beside vgpu GPUs") != std::string::npos);
  CHECK(faults("hgx-h100-8", "mode: passthrough, vms_per_host: 2, nvswitches: passthrough").find("cannot all hold") !=
        std::string::npos);
}

TEST_CASE("through a port of NVSwitches go g + 1 shares: 5 to 8 GPUs keep one rate, as published") {
  const auto published = [](int gpus) { return gpus == 5 ? 414.2 : gpus == 6 ? 435.6 : gpus == 7 ? 460.0 : 473.1; };
  double least = 1e9;
  double most = 0;
  for (const int gpus : {5, 6, 7, 8}) {
    const auto prediction =
        test::run(test::scenario(on_hosts("hgx-h200-8", 1, ", gpus: " + std::to_string(gpus) + ", algorithm: nvls")));
    const double busbw = row_at(prediction, 1_GiB).busbw.bytes_per_s * 1e-9;
    const double port = busbw * (gpus + 1) / (2 * (gpus - 1));
    least = std::min(least, port);
    most = std::max(most, port);
    CAPTURE(gpus);
    CHECK(busbw == test::approx(published(gpus)).epsilon(0.06));
  }
  CHECK(most / least < 1.01);
}

TEST_CASE("NVLink SHARP moves what its thread blocks move: NCCL's 16 fill the NVLinks, half of them do not") {
  for (const int hosts : {1, 2, 4}) {
    const auto ms = [&](int channels) {
      const auto keys = ", algorithm: nvls, channels: " + std::to_string(channels);
      return row_at(test::run(test::scenario(on_hosts("hgx-h200-8", hosts, keys))), 1_GiB).time.us() / 1000;
    };
    CAPTURE(hosts);
    // Every byte is read and written twice, an eighth of them once more inside a host, in a tree twice or four times.
    const double copies = 2 + (hosts == 1 ? 1 : hosts) / 8.0;
    const double block_bytes_per_s = 28.4455e9 * 1.5;
    CHECK(ms(1) == test::approx(1.073741824e12 * copies / block_bytes_per_s).epsilon(0.01));
    CHECK(ms(4) == test::approx(ms(1) / 4).epsilon(0.02));
    CHECK(ms(8) > 1.4 * ms(16));
    CHECK(ms(32) > 0.99 * ms(16));
  }
}

TEST_CASE("NCCL: one channel moves no byte that its thread block does not read and write") {
  const double least_us = 1.073741824e15 / (28.4455e9 * 1.5);
  for (const int hosts : {1, 2, 4}) {
    for (const std::string workload :
         {"all_reduce_perf, algorithm: ring", "all_reduce_perf, algorithm: tree", "all_reduce_perf, algorithm: nvls",
          "all_reduce_perf, algorithm: collnet_direct", "all_gather_perf", "reduce_scatter_perf", "broadcast_perf",
          "reduce_perf", "alltoall_perf", "sendrecv_perf", "gather_perf", "scatter_perf"}) {
      const bool is_collnet = workload.find("collnet") != std::string::npos;
      if (is_collnet && hosts == 1) continue;
      CAPTURE(hosts);
      CAPTURE(workload);
      auto text = on_hosts("hgx-h200-8", hosts, ", channels: 1", is_collnet ? "nccl: {collnet: on}" : "");
      text.replace(text.find("all_reduce_perf"), std::string("all_reduce_perf").size(), workload);
      CHECK(row_at(test::run(test::scenario(text)), 1_GiB).time.us() > least_us);
    }
  }
}
