// SPDX-License-Identifier: Apache-2.0
// What sharing does to a device, as pure functions: time slices of one GPU, vGPU and MIG profiles, calls to a remote
// GPU, neighbours on the same host, and the length of a migration's stun. Nothing here knows a topology; planners ask
// and turn the answers into terms.
//
// Equations, symbols, validity and sources: docs/MODELS.md, "Sharing GPUs and hosts".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabricast/parameters.hpp"
#include "fabricast/result.hpp"
#include "fabricast/sharing.hpp"
#include "fabricast/units.hpp"

namespace fabricast::models {

// ---- time slices of one GPU -----------------------------------------------------------------------------------------

/// How the time of one GPU is handed out. `slice` and `switch_time` are the two numbers measurements identify.
struct TimeSlicing {
  SharePolicy policy = SharePolicy::best_effort;
  Duration slice;                   ///< a context is taken off after this long when others may run; > switch_time
  Duration switch_time;             ///< from taking one context off until the next one's kernels run
  int max_clients = 0;              ///< slots of fixed share: maximum vGPUs of the profile; 0 = number of clients
  bool is_strict = true;            ///< equal and fixed share: time over the slice is taken from later turns
  int averaging = 33;               ///< rounds over which overrun is paid back, 1 to 60
  Duration preemption_granularity;  ///< kernels stop only at multiples of this; 0 = anywhere (Pascal and later)
};

/// One VM or process that computes on the GPU: `kernel` of GPU time, then `pause` without work, and again.
struct GpuClient {
  std::string name;
  Duration kernel;       ///< GPU time of one operation alone, > 0; operations queued together count as one
  Duration pause;        ///< host time from the end of an operation to the next request
  Duration start;        ///< first request
  double variation = 0;  ///< pauses spread evenly over pause x (1 -+ variation), 0 to 1; same numbers every run
};

/// What one client got, counted over whole periods after the first `warm_up`.
struct GpuClientShare {
  std::string name;
  std::int64_t operations = 0;
  Duration period;        ///< mean time from request to request
  Duration service_time;  ///< mean time from request to completion
  double share = 0;       ///< kernel time of this client over elapsed time
  double slot_share = 0;  ///< the same with context switches towards this client: its time on the GPU
  Duration median_wait;   ///< request to first instruction, context switch included
  Duration worst_wait;
  Duration longest_off;  ///< longest time between two turns while work was waiting
  double switches_per_operation = 0;
};

struct GpuShares {
  std::vector<GpuClientShare> clients;
  double busy = 0;       ///< kernels, over elapsed time
  double switching = 0;  ///< context switches
  double idle = 0;       ///< nobody's kernel ran and none was being loaded: unused or wasted slices
};

/// Simulates the GPU's scheduler event by event until every client has completed enough operations.
/// Best effort: round robin over clients with work; a client that runs out of work gives the rest of its slice away.
/// Equal share: every running client owns one slice in turn, used or not. Fixed share: the same with `max_clients`
/// slots, of which only the first clients.size() have an owner.
GpuShares share_gpu(const TimeSlicing& scheduler, const std::vector<GpuClient>& clients);

/// The vGPU manager's defaults: 2 ms up to 8 vGPUs of the profile, 1 ms above.
Duration default_vgpu_slice(int max_vgpus);

/// Reads the driver setting RmPVMRL; `max_vgpus` picks the default slice. Faults name the bits that do not fit.
Result<TimeSlicing> scheduler_from_rm_pvmrl(std::uint64_t value, int max_vgpus);

/// Time of `operation` on a GPU shared with `neighbours` that always compute kernels of the given length, against
/// alone: the part above `operation` itself is the wait for slices and context switches.
struct SliceWait {
  Duration wait;       ///< others' kernels
  Duration switching;  ///< context switches
};
SliceWait slice_wait(const TimeSlicing& scheduler, Duration operation, const std::vector<GpuClient>& neighbours);

// ---- vGPU and MIG profiles ------------------------------------------------------------------------------------------

/// One way to cut up a GPU. Time-sliced profiles share all compute; MIG profiles own fractions of it.
struct GpuProfile {
  std::string name;    ///< "a100-40.10c", "a100-40.3-20c"; as `fabricast list profiles` prints it
  std::string family;  ///< GPU model and memory: "a100-40"
  bool is_mig = false;
  double framebuffer_gb = 0;
  int max_instances = 0;             ///< per physical GPU, all of one size
  int max_instances_mixed = 0;       ///< with other sizes on the same GPU; 0 = not allowed
  double compute_fraction = 1;       ///< of the SMs; 1 for time-sliced profiles (shared in time)
  double memory_fraction = 1;        ///< of the memory bandwidth
  int copy_engines = 0;              ///< own ones of a MIG instance; 0 = all, shared
  bool allows_peer_to_peer = false;  ///< whole-GPU time-sliced profiles over NVLink only
  bool has_media_engines = false;    ///< written with +me; one MIG instance of a card may have them
  char series = 'c';                 ///< as written: c, q, a or b
  std::string source;
};

/// "a100-40" of "a100-pcie-40": the model, and the memory in GiB from the catalogue. Empty without a memory value.
std::string profile_family(const std::string& gpu_type, const ParameterSet& parameters);
/// Every profile of a family, largest framebuffer first, time-sliced before MIG.
std::vector<GpuProfile> gpu_profiles(const std::string& family, const ParameterSet& parameters);
/// Families that have profiles, in alphabetical order.
std::vector<std::string> profile_families(const ParameterSet& parameters);
/// Looks up what a user writes: "10c", "a100-10c", "grid_a100-10c", "3g.20gb"; empty when the family has no such
/// profile.
std::optional<GpuProfile> find_gpu_profile(const std::string& family, std::string_view name,
                                           const ParameterSet& parameters);

/// MIG instance: compute slices and memory slots; where one may start is the placement table's.
struct MigKind {
  int compute = 1, slots = 1;
};
/// Can these MIG instances lie on a card of `slots` memory slots at once?
bool can_place(const std::vector<MigKind>& instances, int slots, const ParameterSet& parameters);

/// What the host of a card lets the vGPUs on it be.
struct CardRules {
  bool may_mix_sizes = true, may_mix_series = true;
  bool is_fixed_share = false;
};
struct CardFault {
  enum Kind {
    mig_and_time_sliced,
    media_engines,           ///< more than one instance with them
    placement,               ///< no starts for all MIG instances
    too_many,                ///< of one size
    unlike_sizes,            ///< not with this release
    unlike_series,           ///< the same
    fixed_share,             ///< unlike sizes under that scheduler
    framebuffer,             ///< unlike sizes, together more than the card's memory
    too_many_beside_others,  ///< of the size of `part`
  } kind;
  std::size_t part = 0;
};
/// What keeps vGPUs or MIG instances of one card from lying on it together; empty when they can.
std::vector<CardFault> card_faults(const std::vector<GpuProfile>& parts, double memory_gb, const CardRules& rules,
                                   const ParameterSet& parameters);

/// The scheduler `sharing` and the parameters describe for a GPU of `gpu_type`. Faults name what does not fit: a
/// profile the GPU does not have, more clients than the profile allows, a slice shorter than a context switch.
Result<TimeSlicing> time_slicing(const ParameterSet& parameters, const GpuSharing& sharing,
                                 const std::string& gpu_type);

// ---- remote GPUs ----------------------------------------------------------------------------------------------------

/// One step of an application whose GPU calls travel to another host.
struct RemoteGpuStep {
  Duration compute;  ///< GPU time on a whole local GPU
  double calls = 0;  ///< GPU API calls of a step
  Bytes to_gpu;      ///< copied host to device per step
  Bytes from_gpu;
  double share = 1;  ///< part of the GPU, (0, 1]
};

/// The way to the server: one-way latency and payload rate as the transport's models gave them.
struct RemotePath {
  bool is_rdma = true;
  Duration latency;      ///< one way: wire, adapters and guests
  Bandwidth bandwidth;   ///< payload of one stream
  Bandwidth local_copy;  ///< copies between host and GPU, at the server as on a local GPU
};

struct RemoteGpuEstimate {
  Duration local;  ///< the step on a local GPU (whole)
  Duration remote;
  std::vector<Term> terms;  ///< add up to `remote`
  Duration low, high;       ///< with the parameters at the ends of their intervals
};
RemoteGpuEstimate remote_gpu_step(const ParameterSet& parameters, const RemoteGpuStep& step, const RemotePath& path);

/// Payload rate of one TCP stream: packets of `mtu` bytes on `link`, or what one core handles of them.
Bandwidth tcp_stream_rate(const ParameterSet& parameters, Bandwidth link, Bytes mtu);

// ---- neighbours on the host -----------------------------------------------------------------------------------------

/// Other work on the host, as `host_neighbours` of a workload says.
struct HostContention {
  double memory_share_left = 1;  ///< of the memory bandwidth
  double copy_slowdown = 1;      ///< time of copies through a memory that is busy but not full
  double core_speed = 1;         ///< of a thread whose hyper-thread sibling is busy
  double runnable_per_cpu = 0;   ///< threads that want to run per vCPU, the workload's own included
  Duration scheduler_wait;       ///< until a waking thread runs when no vCPU is free; 0 when one is
  double steal = 0;              ///< part of vCPU time the hypervisor gives to others
};
HostContention host_contention(const ParameterSet& parameters, const HostNeighbours& neighbours, int own_threads,
                               Bandwidth memory_bandwidth);

/// Slowdown (0.02 = 2 %) of a GPU job beside `workers` knowledge-worker VMs on one host; valid to 96.
enum class NeighbourVictim { machine_learning, cad_3d, knowledge_worker };
double knowledge_worker_slowdown(const ParameterSet& parameters, NeighbourVictim victim, int workers);

/// Time for `operations` queued operations of `each` when completion is noticed only at a scheduler tick.
Duration rounded_to_ticks(Duration each, std::int64_t operations, Duration tick);

// ---- migration ------------------------------------------------------------------------------------------------------

struct MigrationVm {
  Bytes gpu_memory;  ///< framebuffer of all vGPUs; 0 for PVRDMA VMs without one
  Bytes memory;      ///< of the VM
  bool has_pvrdma = false;
  Bytes registered;  ///< memory registered with the PVRDMA adapter
};

struct MigrationEstimate {
  Duration stun;  ///< the VM stands still
  Duration low, high;
  std::vector<Term> terms;  ///< add up to `stun`
  Duration total;           ///< with the copies made while the VM runs
  Duration limit;           ///< migration fails above it
  bool exceeds_limit = false;
};

/// Releases with a published stun table: esxi-6.7u1, esxi-6.7u3, esxi-7.0, and worst-case (the published upper table).
const std::vector<std::string>& migration_releases();
/// Stun of a vMotion over `link`.
MigrationEstimate migration_estimate(const ParameterSet& parameters, const std::string& release, const MigrationVm& vm,
                                     Bandwidth link);

}  // namespace fabricast::models
