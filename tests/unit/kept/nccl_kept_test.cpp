// SPDX-License-Identifier: Apache-2.0
// NCCL's collectives over releases, algorithms, protocols, counts and transports.
#include "tests/unit/kept/table.hpp"

using namespace fabricast;

namespace {

struct Cluster {
  std::string name, topology;
  std::vector<int> gpus;
};

const std::vector<Cluster>& clusters() {
  static const std::vector<Cluster> all{
      {"DGX-1 V100",
       "hosts: [{name: n, count: 3, type: dgx-1-v100}]\nfabric: {single_switch: {switch: sb7800}}\n",
       {2, 3, 5, 8, 16, 24}},
      {"DGX A100",
       "hosts: [{name: n, count: 4, type: dgx-a100}]\nfabric: {rail_optimized: {switch: qm8700, rails: 8}}\n",
       {2, 7, 8, 16, 32}},
      {"HGX H100",
       "hosts: [{name: n, count: 4, type: hgx-h100-8}]\nfabric: {rail_optimized: {switch: qm9700, rails: 8}}\n",
       {4, 8, 16, 32}},
      {"V100 below PCIe switches", "hosts: [{name: n, count: 1, type: server-4v100-pcie-switch}]\n", {2, 3, 4}},
      {"A100 below root complexes",
       "hosts: [{name: n, count: 2, type: server-2s-rome-4a100}]\nfabric: {single_switch: {switch: sn3700}}\n",
       {2, 4, 8}},
      {"VM on KVM",
       "hosts: [{name: n, count: 2, type: kvm-a100-2hdr, virtualization: {mode: passthrough, hypervisor: kvm}}]\n"
       "fabric: {single_switch: {switch: qm8700}}\n",
       {8, 16}},
      {"25 Gb/s Ethernet, TCP",
       "hosts: [{name: n, count: 4, type: server-4p100-25g}]\nfabric: {single_switch: {switch: sn2700}}\n",
       {8, 16}},
  };
  return all;
}

std::string releases(LoadedScenario& loaded) {
  std::string out;
  for (const auto* release : {"2.4", "2.6", "2.8", "2.11", "2.14", "2.18", "2.20", "2.22", "2.23", "2.26", "2.28"}) {
    loaded.scenario.software.nccl_version = release;
    out += test::forecast_line(loaded, std::string("release ") + release);
  }
  loaded.scenario.software.nccl_version = Software{}.nccl_version;
  return out;
}

std::string choices(LoadedScenario& loaded) {
  std::string out;
  auto& workload = loaded.scenario.workloads.front();
  for (const auto& algorithm : models::algorithms_of(workload.benchmark)) {
    for (const auto& protocol : models::protocols_of(workload.benchmark)) {
      workload.algorithm = algorithm;
      workload.protocol = protocol;
      out += test::forecast_line(loaded, algorithm + " " + protocol);
    }
  }
  workload.algorithm = workload.protocol = "auto";
  for (const int channels : {1, 4, 32}) {
    workload.channels = channels;
    out += test::forecast_line(loaded, fmt::format("{} channels", channels));
  }
  workload.channels.reset();
  return out;
}

std::string switches(LoadedScenario& loaded) {
  std::string out;
  const auto usual = loaded.scenario.software;
  const auto with = [&](const std::string& what, const auto& change) {
    change(loaded.scenario.software);
    out += test::forecast_line(loaded, what);
    loaded.scenario.software = usual;
  };
  with("no peer access", [](Software& one) { one.nccl_p2p = false; });
  with("no peer access, no shared memory", [](Software& one) { one.nccl_p2p = one.nccl_shm = false; });
  with("no GPUDirect", [](Software& one) { one.gpudirect_rdma = false; });
  with("GPUDirect everywhere", [](Software& one) { one.nccl_gdr_level = "sys"; });
  with("no PXN", [](Software& one) { one.nccl_pxn = false; });
  with("no NVLink SHARP", [](Software& one) { one.nccl_nvls = NvlsSetting::off; });
  with("TCP", [](Software& one) { one.transport = "tcp"; });
  auto& workload = loaded.scenario.workloads.front();
  for (const auto& [launch, name] :
       {std::pair{LaunchMode::one_thread, "one thread"}, std::pair{LaunchMode::graph, "graph"}}) {
    workload.launch = launch;
    out += test::forecast_line(loaded, name);
  }
  workload.launch = LaunchMode::process_per_gpu;
  return out;
}

}  // namespace

TEST_CASE("NCCL's all-reduce takes what it took, by release, algorithm, protocol and transport") {
  std::string out;
  for (const auto& cluster : clusters()) {
    auto loaded = test::on_cluster(cluster.topology);
    auto& workload = loaded.scenario.workloads.front();
    workload.sizes = test::sizes_of({1024, 96 * 1024, 3 << 20, 512LL << 20});
    for (const int gpus : cluster.gpus) {
      workload.gpus = gpus;
      out += fmt::format("{}, {} GPUs\n", cluster.name, gpus) + choices(loaded);
      if (gpus == cluster.gpus.back() || gpus == 8) out += releases(loaded) + switches(loaded);
    }
  }
  test::check_kept("nccl_all_reduce", out);
}

TEST_CASE("NCCL's other collectives take what they took") {
  std::string out;
  for (const auto& cluster : clusters()) {
    for (const auto benchmark : {Benchmark::all_gather_perf, Benchmark::reduce_scatter_perf, Benchmark::broadcast_perf,
                                 Benchmark::reduce_perf, Benchmark::alltoall_perf, Benchmark::sendrecv_perf}) {
      auto loaded = test::on_cluster(cluster.topology, fmt::format("benchmark: {}", to_string(benchmark)));
      auto& workload = loaded.scenario.workloads.front();
      workload.sizes = test::sizes_of({1024, 200 * 1024, 5'000'016, 256LL << 20});
      for (const int gpus : cluster.gpus) {
        workload.gpus = gpus;
        const auto head = fmt::format("{} of {} GPUs, {}\n", to_string(benchmark), gpus, cluster.name);
        out += head + test::forecast_line(loaded, "as it comes") + test::terms_line(loaded);
        if (gpus != cluster.gpus.back()) continue;
        out += choices(loaded);
        const bool pairs = benchmark == Benchmark::alltoall_perf || benchmark == Benchmark::sendrecv_perf;
        if (pairs || benchmark == Benchmark::all_gather_perf) out += releases(loaded) + switches(loaded);
      }
    }
  }
  test::check_kept("nccl_others", out);
}
