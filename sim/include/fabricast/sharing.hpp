// SPDX-License-Identifier: Apache-2.0
// Who shares a GPU or a host with whom, as the YAML said: plain values of scenarios.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabricast/diagnostic.hpp"
#include "fabricast/units.hpp"

namespace fabricast {

/// vGPU schedulers. best_effort also describes processes that share a GPU without virtualization.
enum class SharePolicy { best_effort, equal_share, fixed_share };
std::string_view to_string(SharePolicy policy);
std::optional<SharePolicy> share_policy_from_name(std::string_view name);

/// VMs or processes that compute on a GPU: `kernel` of GPU time, `pause` without work, and again.
struct GpuSharer {
  std::string name;
  Duration kernel;       ///< GPU time of one operation alone on the whole GPU
  Duration pause;        ///< host time from the end of an operation to the next request
  double variation = 0;  ///< pauses are spread evenly over pause x (1 -+ variation)
  int count = 1;         ///< equal ones
};

/// `sharing:` of a workload. In gpu_sharing the clients are the workload; in a collective they are neighbours on its
/// GPUs.
struct GpuSharing {
  SharePolicy policy = SharePolicy::best_effort;
  std::optional<std::uint64_t> rm_pvmrl;  ///< the driver's setting, instead of policy, slice, strict and averaging
  std::string profile;                    ///< vGPU or MIG profile, e.g. a100-10c
  std::optional<Duration> slice, switch_time;
  std::optional<int> averaging;
  bool is_strict = true;
  Duration preemption_granularity;
  std::vector<GpuSharer> clients;
  bool is_whole_workload = false;  ///< gpu_sharing: nobody but the clients is on the GPU
  SourceLocation location;
};

/// `remote:` of the workload remote_gpu: one step of an application whose GPU is in another host.
struct RemoteGpuCalls {
  Duration compute;             ///< GPU time of a step on a whole GPU
  double calls = 0;             ///< GPU API calls of a step
  Bytes from_gpu;               ///< copied back per step; what goes to the GPU is the row's size
  double share = 1;             ///< part of the GPU, (0, 1]
  std::optional<Bytes> memory;  ///< limit of GPU memory
  std::optional<int> mtu;       ///< default: the fabric's and the adapter's
  SourceLocation location;
};

/// `migration:` of the workload vgpu_migration.
struct MigrationSettings {
  std::string release = "esxi-7.0";
  Bytes memory;            ///< of the VM
  Bandwidth link{1.25e9};  ///< migration network
  bool has_pvrdma = false;
  Bytes registered;      ///< memory registered for RDMA through the PVRDMA adapter
  std::string vm, to;    ///< host/vm that moves, and the machine it moves to; empty: no VM of the topology
  Bandwidth dirty_rate;  ///< at which the VM writes memory while it is copied
  SourceLocation location;
};

/// Work of others on the workload's hosts.
struct HostNeighbours {
  int threads = 0;            ///< busy threads beside the workload's own
  int vcpus = 0;              ///< virtual CPUs of the VM (or hardware threads of the host); 0 = two per core
  Bandwidth memory_traffic;   ///< reads and writes of these threads together, on the memory the workload uses
  int knowledge_workers = 0;  ///< desktop VMs on the host
  double overcommit = 1;      ///< vCPUs of all VMs per hardware thread

  [[nodiscard]] bool is_any() const {
    return threads > 0 || memory_traffic.bytes_per_s > 0 || knowledge_workers > 0 || overcommit > 1;
  }
};

}  // namespace fabricast
