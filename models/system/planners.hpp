// SPDX-License-Identifier: Apache-2.0
// Benchmarks of one host or of its sockets: pinned copies on several GPUs at once, compute steps with an exchange, TCP
// streams and UDP round trips. docs/MODELS.md, "Copies, steps and sockets".
#pragma once

#include <memory>
#include <vector>

#include "fabricast/models/planner.hpp"

namespace fabricast::models::system {

Result<std::unique_ptr<Planner>> make_host_copies_planner(const PlanContext& context, const Workload& workload);
/// host_copies with direction to_peer; two different GPUs of one host.
std::unique_ptr<Planner> make_peer_copies_planner(const PlanContext& context, const Workload& workload,
                                                  std::vector<DeviceId> gpus);
Result<std::unique_ptr<Planner>> make_gpu_step_planner(const PlanContext& context, const Workload& workload);
Result<std::unique_ptr<Planner>> make_socket_planner(const PlanContext& context, const Workload& workload);

}  // namespace fabricast::models::system
