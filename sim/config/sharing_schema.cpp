// SPDX-License-Identifier: Apache-2.0
#include "config/schema_parts.hpp"
#include "config/sharing.hpp"

namespace fabricast::config {

using namespace parts;

namespace {

SchemaPtr clients() {
  return list(mapping("a client of a GPU",
                      {{"name", text(), "VM or process", true},
                       {"kernel", quantity(Dimension::time), "GPU time of one operation alone on the whole GPU", true},
                       {"pause", quantity(Dimension::time), "without work until the next operation; default 0 s"},
                       {"variation", number(0, 1), "pauses spread over pause x (1 -+ variation); default 0"},
                       {"count", integer(1, 64), "equal clients; default 1"}}));
}

SchemaPtr sharing() {
  return mapping(
      "the sharing of a GPU",
      {{"policy", choice({"best_effort", "equal_share", "fixed_share"}), "vGPU scheduler; default best_effort"},
       {"rm_pvmrl", text(), "the driver's setting in hexadecimal, e.g. 0x00030001, instead of policy and slice"},
       {"profile", text(), "vGPU or MIG profile, e.g. a100-10c; `fabricast list profiles` prints them"},
       {"slice", quantity(Dimension::time), "time slice; default: the driver's, 2 ms or 1 ms above 8 vGPUs"},
       {"switch_time", quantity(Dimension::time), "of a context switch; default gpu.context_switch_time"},
       {"averaging", integer(1, 60), "rounds over which overrun is paid back; default 33"},
       {"strict", flag(), "strict round robin of equal and fixed share; default on"},
       {"preemption_granularity", quantity(Dimension::time), "kernels stop only at multiples; default 0 s, anywhere"},
       {"clients", clients(), "VMs or processes on the GPU; in collectives those beside the workload", true}});
}

}  // namespace

std::vector<Field> sharing_fields() {
  const auto remote =
      mapping("a remote GPU", {{"compute", quantity(Dimension::time), "GPU time of a step on a whole GPU", true},
                               {"calls", number(0, 1e9), "GPU API calls of a step", true},
                               {"from_gpu", size(), "copied back per step; default 0 B"},
                               {"share", number(0.001, 1), "part of the GPU; default 1"},
                               {"memory", size(), "limit of GPU memory; default: all"},
                               {"mtu", mtu(), "bytes per packet; default: the fabric's"}});
  const auto migration = mapping(
      "a migration",
      {{"release", choice({"esxi-6.7u1", "esxi-6.7u3", "esxi-7.0", "worst-case"}),
        "published stun table; default esxi-7.0"},
       {"memory", size(), "of the VM; default: what the VM `vm` has"},
       {"link", quantity(Dimension::bandwidth), "migration network; default 10 Gb/s"},
       {"pvrdma", flag(), "the VM has a PVRDMA adapter; default off"},
       {"registered", size(), "memory registered with it; default 0 B"},
       {"vm", text(), "VM of the topology that moves, host/vm: its copies are flows beside others"},
       {"to", text(), "host it moves to"},
       {"dirty_rate", quantity(Dimension::bandwidth), "at which the VM writes memory meanwhile; default 0 GB/s"}});
  return {{"sharing", sharing(), "who computes on the workload's GPUs, and how their time is handed out"},
          {"iterations", integer(1, 1'000'000), "operations queued before the host waits; default 20, as nccl-tests"},
          {"remote", remote, "remote_gpu: one step of the application"},
          {"migration", migration, "vgpu_migration: the VM and the network"}};
}

SchemaPtr host_neighbours_schema() {
  return mapping("neighbours on the hosts",
                 {{"threads", integer(0, 100'000), "busy threads beside the workload's own; default 0"},
                  {"vcpus", integer(1, 100'000), "virtual CPUs (or hardware threads) they share; default: plenty"},
                  {"memory_traffic", quantity(Dimension::bandwidth), "their reads and writes together; default 0 B/s"},
                  {"knowledge_workers", integer(0, 100'000), "desktop VMs on the host; default 0"},
                  {"overcommit", number(1, 16), "vCPUs of all VMs per hardware thread; default 1"}});
}

}  // namespace fabricast::config
