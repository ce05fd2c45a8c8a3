// SPDX-License-Identifier: Apache-2.0
// What each shipped scenario says under settings that a planner tries next: other software, virtual machines,
// neighbours, parameters. Every third pair of scenario and setting is kept.
#include <algorithm>
#include <filesystem>

#include "fabricast/check.hpp"
#include "tests/unit/kept/table.hpp"

using namespace fabricast;

namespace {

constexpr int k_most_devices = 600;
constexpr std::size_t k_each = 3;

const std::vector<Setting> k_settings{
    {"software.nccl.version", "\"2.8\""},
    {"software.nccl.version", "\"2.27\""},
    {"software.nccl.p2p", "off"},
    {"software.nccl.shm", "off"},
    {"software.nccl.nvls", "off"},
    {"software.nccl.pxn", "off"},
    {"software.nccl.gdr_level", "sys"},
    {"software.nccl.plugin", "aws-ofi-nccl"},
    {"software.nccl.ib_qps_per_connection", "4"},
    {"software.mpi", "open-mpi-ucx"},
    {"software.mpi", "mvapich2-gdr"},
    {"software.mpi", "cray-mpich"},
    {"software.eager_limit", "64 KiB"},
    {"software.gpudirect_rdma", "off"},
    {"software.transport", "tcp"},
    {"virtualization.mode", "passthrough"},
    {"virtualization.mode", "sr-iov"},
    {"virtualization.mode", "pvrdma"},
    {"virtualization.mode", "tcp"},
    {"virtualization", "{mode: passthrough, guest_topology: hidden, hypervisor: kvm}"},
    {"virtualization", "{mode: passthrough, pinning: off, vcpus: 8}"},
    {"virtualization", "{mode: vgpu, profile: a100-20c, busy_neighbours: 1}"},
    {"host_neighbours.threads", "200"},
    {"host_neighbours.memory_traffic", "150 GB/s"},
    {"workload.gpus", "2"},
    {"workload.gpus", "3"},
    {"workload.ranks_per_host", "1"},
    {"workload.sizes", "[1 B, 4095 B, 65537 B, 33 MiB]"},
    {"workload.buffers", "host"},
    {"workload.window", "3"},
    {"workload.precision", "fp16"},
    {"workload.batch_per_gpu", "3"},
    {"workload.parallel.tensor", "2"},
    {"workload.parallel.pipeline", "2"},
    {"workload.parallel.data", "fsdp"}};

}  // namespace

TEST_CASE("shipped scenarios under other settings say what they said before") {
  std::string out;
  std::size_t pair = 0;
  for (const auto& file : test::yaml_files({"scenarios"})) {
    if (file_kind(file.string()).value_or("") != "scenario") continue;
    out += file.stem().string() + "\n";
    for (const auto& setting : k_settings) {
      if (++pair % k_each != 0) continue;
      const auto what = setting.path + "=" + setting.value;
      const auto loaded = load_scenario(file.string(), {}, {setting});
      if (!loaded) {
        const auto said = loaded.error().front().message;
        out += fmt::format("  {}: {}\n", what, said.substr(0, said.find('\n')));
        continue;
      }
      if (loaded->topology.num_devices() > k_most_devices) continue;
      out += test::forecast_line(*loaded, what) + test::terms_line(*loaded);
    }
  }
  test::check_kept("settings", out);
}
