// SPDX-License-Identifier: Apache-2.0
// MPI's and perftest's benchmarks over libraries, releases, algorithms, places of buffers and transports.
#include "tests/unit/kept/table.hpp"

using namespace fabricast;

namespace {

const std::string k_hosts =
    "hosts: [{name: n, count: 6, type: server-2s-skylake-4v100}]\nfabric: {single_switch: {switch: sb7800}}\n";
const std::string k_a100 =
    "hosts: [{name: n, count: 2, type: server-2s-rome-2a100}]\nfabric: {single_switch: {switch: qm8700}}\n";
const std::string k_roce =
    "hosts: [{name: n, count: 3, type: server-1v100-cx4-100g}]\nfabric: {single_switch: {switch: sn2700}}\n";

bool is_mpi(Benchmark benchmark) { return family_of(benchmark) == BenchmarkFamily::osu; }

std::vector<Benchmark> benchmarks(bool collective) {
  std::vector<Benchmark> out;
  for (const auto& name : benchmark_names()) {
    const auto one = *benchmark_from_name(name);
    const auto family = family_of(one);
    if (family != BenchmarkFamily::osu && family != BenchmarkFamily::perftest) continue;
    if (is_collective(one) == collective) out.push_back(one);
  }
  return out;
}

}  // namespace

TEST_CASE("MPI's algorithms take what they took, for even and odd numbers of ranks") {
  std::string out;
  for (const auto benchmark : benchmarks(true)) {
    auto loaded = test::on_cluster(k_hosts, fmt::format("benchmark: {}", to_string(benchmark)), "mpi: open-mpi-ucx");
    auto& workload = loaded.scenario.workloads.front();
    if (benchmark != Benchmark::osu_barrier) workload.sizes = test::sizes_of({8, 2048, 100'000, 4 << 20});
    for (const auto& [ranks, per_host] : {std::pair{2, 1}, {5, 1}, {6, 1}, {8, 2}, {11, 2}, {24, 4}, {48, 8}}) {
      workload.ranks = ranks;
      workload.ranks_per_host = per_host;
      out += fmt::format("{}, {} ranks, {} on a host\n", to_string(benchmark), ranks, per_host);
      for (const auto& algorithm : models::algorithms_of(benchmark)) {
        workload.algorithm = algorithm;
        out += test::forecast_line(loaded, algorithm);
      }
      workload.algorithm = "auto";
    }
  }
  test::check_kept("mpi_algorithms", out);
}

TEST_CASE("MPI libraries choose what they chose, by release, number of ranks and size") {
  std::string out;
  for (const auto benchmark : benchmarks(true)) {
    if (benchmark == Benchmark::osu_barrier) continue;
    auto loaded = test::on_cluster(k_hosts, fmt::format("benchmark: {}", to_string(benchmark)));
    auto& workload = loaded.scenario.workloads.front();
    workload.sizes = test::sizes_of({4, 256, 2048, 9000, 40'000, 300'000, 1 << 20, 4 << 20});
    for (const auto& profile : models::mpi_profiles()) {
      for (const auto* release : {"", "4.0", "4.1", "5.0"}) {
        const bool has_release = profile.starts_with("open-mpi");
        if (!has_release && *release != '\0') continue;
        loaded.scenario.software.mpi = profile;
        loaded.scenario.software.mpi_version = release;
        out += fmt::format("{}, {} {}\n", to_string(benchmark), profile, release);
        for (const auto& [ranks, per_host] : {std::pair{2, 1}, {6, 1}, {11, 2}, {24, 4}, {96, 16}}) {
          workload.ranks = ranks;
          workload.ranks_per_host = per_host;
          out += test::forecast_line(loaded, fmt::format("{} ranks", ranks));
        }
      }
    }
  }
  test::check_kept("mpi_choices", out);
}

TEST_CASE("messages between two ends take what they took, by library, place of buffers and transport") {
  std::string out;
  for (const auto& [name, cluster] :
       {std::pair{"V100 on EDR", k_hosts}, {"A100 on HDR", k_a100}, {"V100 on RoCE", k_roce}}) {
    for (const auto benchmark : benchmarks(false)) {
      auto loaded = test::on_cluster(cluster, fmt::format("benchmark: {}", to_string(benchmark)));
      auto& workload = loaded.scenario.workloads.front();
      workload.sizes = test::sizes_of({2, 600, 8192, 70'000, 4 << 20});
      const auto profiles = is_mpi(benchmark) ? models::mpi_profiles() : std::vector<std::string>{""};
      for (const auto& profile : profiles) {
        loaded.scenario.software = {};
        loaded.scenario.software.mpi = profile;
        out += fmt::format("{}, {} {}\n", name, to_string(benchmark), profile);
        out += test::forecast_line(loaded, "host to host") + test::terms_line(loaded);
        loaded.scenario.software.transport = "tcp";
        out += test::forecast_line(loaded, "host to host, TCP");
        loaded.scenario.software.transport = "auto";
        workload.send_buffer = BufferPlace::device;
        out += test::forecast_line(loaded, "device to host");
        workload.receive_buffer = BufferPlace::device;
        out += test::forecast_line(loaded, "device to device") + test::terms_line(loaded);
        loaded.scenario.software.gdrcopy = false;
        out += test::forecast_line(loaded, "device to device, no gdrcopy");
        loaded.scenario.software.gpudirect_rdma = false;
        out += test::forecast_line(loaded, "device to device, no GPUDirect") + test::terms_line(loaded);
        workload.send_buffer = workload.receive_buffer = BufferPlace::host;
        loaded.scenario.software.gdrcopy = loaded.scenario.software.gpudirect_rdma = true;
        workload.ranks_per_host = 2;
        out += test::forecast_line(loaded, "inside a host");
        workload.send_buffer = workload.receive_buffer = BufferPlace::device;
        out += test::forecast_line(loaded, "between GPUs of a host") + test::terms_line(loaded);
        loaded.scenario.software.nccl_p2p = false;
        out += test::forecast_line(loaded, "between GPUs of a host without peer access");
        workload.send_buffer = workload.receive_buffer = BufferPlace::host;
        workload.ranks_per_host.reset();
      }
      loaded.scenario.software = {};
      workload.window = 4;
      workload.pairs = 2;
      out += test::forecast_line(loaded, "window 4, two pairs");
      workload.window = 64;
      workload.pairs = 1;
      workload.queue_pairs = 4;
      workload.is_bidirectional = true;
      out += test::forecast_line(loaded, "four queue pairs, both ways");
    }
  }
  test::check_kept("mpi_messages", out);
}

TEST_CASE("collectives on device buffers take what they took") {
  std::string out;
  for (const auto benchmark : benchmarks(true)) {
    if (benchmark == Benchmark::osu_barrier) continue;
    auto loaded =
        test::on_cluster(k_hosts, fmt::format("benchmark: {}, buffers: [device, device]", to_string(benchmark)));
    auto& workload = loaded.scenario.workloads.front();
    workload.sizes = test::sizes_of({8, 4096, 100'000, 4 << 20});
    for (const auto& profile : models::mpi_profiles()) {
      loaded.scenario.software = {};
      loaded.scenario.software.mpi = profile;
      out += fmt::format("{}, {}\n", to_string(benchmark), profile);
      for (const int per_host : {1, 4}) {
        workload.ranks_per_host = per_host;
        workload.gpus = 4 * per_host;
        out += test::forecast_line(loaded, fmt::format("{} on a host", per_host));
        loaded.scenario.software.gpudirect_rdma = false;
        out += test::forecast_line(loaded, fmt::format("{} on a host, no GPUDirect", per_host));
        loaded.scenario.software.gpudirect_rdma = true;
      }
    }
  }
  test::check_kept("mpi_device_collectives", out);
}
