// SPDX-License-Identifier: Apache-2.0
// VMs dealt out by a number and the same VMs written one by one are the same machines: every benchmark takes as long.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;

namespace {

struct Machines {
  int vms = 2;                   ///< of a machine, a GPU each
  bool has_own_adapter = false;  ///< as many adapters as VMs; else one
  std::string hypervisor = "esxi";
  int count = 2;
};

/// The words of both spellings: how VMs get GPUs and adapters.
struct Way {
  std::string mode, hca;
};

std::string scenario_of(const Machines& machines, const std::string& virtualization, const std::string& workload) {
  std::vector<std::string> devices;
  for (int i = 0; i < machines.vms; ++i) {
    const int socket = i * 2 / machines.vms;
    devices.push_back(fmt::format("{{name: gpu{}, type: a100-pcie-40, below: socket{}}}", i, socket));
    if (i == 0 || machines.has_own_adapter)
      devices.push_back(fmt::format("{{name: hca{}, type: connectx-6-dx-100g, below: socket{}}}", i, socket));
  }
  return fmt::format(
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n"
      "    - {{name: n, count: {}, host: {{processor: xeon-icelake, devices: [{}]}}, {}}}\n"
      "  fabric: {{single_switch: {{switch: sn2700}}}}\nworkload: {{{}}}\n",
      machines.count, fmt::join(devices, ", "), virtualization, workload);
}

std::string by_number(const Machines& machines, const Way& way) {
  return fmt::format("virtualization: {{mode: {}, hypervisor: {}, vms_per_host: {}}}", way.mode, machines.hypervisor,
                     machines.vms);
}

/// The memory of a VM is its GPU's socket's, as dealing out gives it; what can be shared every VM has a part of.
std::string one_by_one(const Machines& machines, const Way& way) {
  std::vector<std::string> vms;
  for (int i = 0; i < machines.vms; ++i) {
    std::string hcas;
    for (int h = 0; h < (machines.has_own_adapter ? machines.vms : 1); ++h)
      if (way.mode != "passthrough" || h == i) hcas += fmt::format(", hca{}: {}", h, way.hca);
    vms.push_back(
        fmt::format("{{name: v{0}, numa: {1}, devices: {{gpu{0}: passthrough{2}}}}}", i, i * 2 / machines.vms, hcas));
  }
  return fmt::format("virtualization: {{hypervisor: {}}}, vms: [{}]", machines.hypervisor, fmt::join(vms, ", "));
}

std::vector<double> times_us(const std::string& text) {
  std::vector<double> out;
  const auto prediction = test::run(test::scenario(text));
  for (const auto& row : prediction.workloads.front().rows) out.push_back(row.time.us());
  return out;
}

void check_agree(const Machines& machines, const Way& way, const std::string& workload) {
  CAPTURE(machines.vms);
  CAPTURE(machines.hypervisor);
  CAPTURE(way.mode);
  CAPTURE(workload);
  const auto dealt = times_us(scenario_of(machines, by_number(machines, way), workload));
  const auto written = times_us(scenario_of(machines, one_by_one(machines, way), workload));
  REQUIRE(dealt.size() == written.size());
  for (std::size_t r = 0; r < dealt.size(); ++r) CHECK(dealt[r] == test::approx(written[r]).epsilon(0.001));
}

const std::vector<Way> k_shared{{"sr-iov", "{vf: 1}"}, {"tcp", "vmxnet3"}, {"pvrdma", "pvrdma"}};

/// What every rank of takes part in: pairs of ranks are other pairs when VMs are hosts of their own.
const std::vector<std::string> k_workloads{
    "benchmark: all_reduce_perf, sizes: [8 B, 64 MiB]",
    "benchmark: alltoall_perf, sizes: [8 B, 256 MiB]",
    "benchmark: sendrecv_perf, sizes: [64 MiB]",
    "benchmark: broadcast_perf, sizes: [64 KiB, 64 MiB]",
    "benchmark: osu_allreduce, sizes: [8 B, 64 KiB, 1 MiB]",
    "benchmark: osu_alltoall, sizes: [8 B, 64 KiB]",
    "benchmark: osu_bcast, sizes: [64 KiB], buffers: device",
    "benchmark: training, network: resnet-50, batch_per_gpu: 64",
    "benchmark: training, network: gpt-345m, batch_per_gpu: 1, parallel: {data: fsdp}"};

}  // namespace

TEST_CASE("VMs that share an adapter have a port each, dealt out by number or written one by one") {
  for (const auto& way : k_shared)
    for (const auto& workload : k_workloads) check_agree({}, way, workload);
}

TEST_CASE("VMs of machines with an adapter for each exchange alike, however many there are and however written") {
  for (std::uint64_t seed = 0; seed < test::draws(16); ++seed) {
    CAPTURE(seed);
    test::Random random(seed);
    Machines machines{.vms = random.pick<int>({2, 3, 4}), .has_own_adapter = true, .count = random.pick<int>({2, 3})};
    const auto way = random.pick<Way>({{"passthrough", "passthrough"}, {"sr-iov", "{vf: 1}"}});
    check_agree(machines, way, random.pick<std::string>({k_workloads[0], k_workloads[1], k_workloads[2]}));
  }
  // All-to-all counts at both ends what is the machine's.
  for (const int vms : {2, 3, 4})
    check_agree({.vms = vms, .has_own_adapter = true, .count = 4}, {"passthrough", "passthrough"}, k_workloads[1]);
}

TEST_CASE("VMs of one machine meet inside it, whether or not a fabric is described") {
  const Machines machine{.count = 1};
  for (const auto& way : k_shared) {
    for (const auto& workload : k_workloads) {
      CAPTURE(way.mode);
      CAPTURE(workload);
      for (const auto& spelling : {by_number(machine, way), one_by_one(machine, way)}) {
        const auto cabled = scenario_of(machine, spelling, workload);
        auto alone = cabled;
        const auto fabric = alone.find("  fabric:");
        alone.erase(fabric, alone.find('\n', fabric) + 1 - fabric);
        CHECK(times_us(alone) == times_us(cabled));
      }
    }
  }
}
