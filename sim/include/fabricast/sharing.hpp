// SPDX-License-Identifier: Apache-2.0
// Who shares a GPU or a host with whom, as the YAML said: plain values of scenarios.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fabricast/units.hpp"

namespace fabricast {

/// vGPU schedulers. best_effort also describes processes that share a GPU without virtualization.
enum class SharePolicy { best_effort, equal_share, fixed_share };
std::string_view to_string(SharePolicy policy);

/// Work of others on the workload's hosts.
struct HostNeighbours {
  int threads = 0;            ///< busy threads beside the workload's own
  int vcpus = 0;              ///< virtual CPUs of the VM (or hardware threads of the host); 0 = plenty
  Bandwidth memory_traffic;   ///< reads and writes of these threads together
  int knowledge_workers = 0;  ///< desktop VMs on the host
  double overcommit = 1;      ///< vCPUs of all VMs per hardware thread
};

}  // namespace fabricast
