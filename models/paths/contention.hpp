// SPDX-License-Identifier: Apache-2.0
// What planners ask about others on their devices: the scheduler of a shared GPU, and the neighbours on a host.
#pragma once

#include <vector>

#include "fabricast/models/planner.hpp"
#include "fabricast/models/virtualization.hpp"
#include "paths/transport.hpp"

namespace fabricast::models {

/// Who shares `gpu` with the workload: its `sharing`, or the busy neighbours of a vGPU as `virtualization` says.
std::optional<GpuSharing> sharing_of(const PlanContext& context, const Workload& workload, DeviceId gpu);

/// The scheduler of `gpu` as `sharing` and the parameters describe it; faults name what does not fit (a profile the GPU
/// does not have, more clients than the profile allows, a slice shorter than a context switch).
Result<TimeSlicing> time_slicing_of(const PlanContext& context, const GpuSharing& sharing, DeviceId gpu);

/// The profile `sharing` names; empty when it names none. The profile must exist.
std::optional<GpuProfile> profile_of(const PlanContext& context, const GpuSharing& sharing, DeviceId gpu);

/// The clients one by one: "trainer" with a count of 2 becomes "trainer.0" and "trainer.1".
std::vector<GpuClient> clients_of(const GpuSharing& sharing);

/// Time `operation` (of `workload`, on `gpu`) waits for others: for time slices that they use of its GPUs, and at its
/// end for a virtual CPU when neighbours leave none free.
std::vector<Term> waits_for_others(const PlanContext& context, const Workload& workload, DeviceId gpu,
                                   Duration operation);
/// The second of both.
std::vector<Term> scheduler_waits(const PlanContext& context, const Workload& workload, DeviceId gpu,
                                  Duration operation);

/// The same of a step, whose busy neighbours of a vGPU are among its compute_delays(): clients that the workload names.
std::vector<Term> waits_of_step(const PlanContext& context, const Workload& workload, DeviceId gpu, Duration step);

/// What `compute` on `gpu` takes longer than on bare metal: what the VM takes, knowledge workers that keep the host's
/// cores busy, and launching threads (one per GPU of the VM) that share cores with neighbours or overcommitted vCPUs.
std::vector<Term> compute_delays(const PlanContext& context, DeviceId gpu, Duration compute);

/// Two to a core of the host's processors; 0 where nothing says how many cores they have.
int hardware_threads(const PlanContext& context, int host);

/// That the workload and busy threads beside it share: as `host_neighbours` says, else the VM's own, else two to a core
/// of the processor; 0 where nothing says how many cores it has.
int virtual_cpus(const PlanContext& context, DeviceId device);

/// Neighbours of the host of `device`; `own_threads` of the workload run there.
HostContention contention_at(const PlanContext& context, DeviceId device, int own_threads);

/// Threads NCCL keeps busy on a GPU's host when it talks over sockets: launch, proxy and socket thread per GPU.
int socket_threads(const PlanContext& context, DeviceId gpu);

/// What neighbours of the host add to `hop`, the time of `count` hops over `kind`: a busy memory slows hops through it,
/// busy cores slow those of sockets.
std::vector<Term> neighbour_delays(const PlanContext& context, TransportKind kind, DeviceId gpu, const Term& hop,
                                   double count);

}  // namespace fabricast::models
