// SPDX-License-Identifier: Apache-2.0
// What to simulate: benchmarks to run on a topology, and the software they run under. Plain values, as the YAML said.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fabricast/diagnostic.hpp"
#include "fabricast/sharing.hpp"
#include "fabricast/units.hpp"

namespace fabricast {

struct TrainingSpec;  // training.hpp

/// The benchmark programs whose tables Fabricast forecasts. Names in YAML are the programs' own.
enum class Benchmark {
  // OSU micro-benchmarks
  osu_latency,
  osu_bw,
  osu_bibw,
  osu_multi_lat,
  osu_mbw_mr,
  osu_allreduce,
  osu_allgather,
  osu_reduce_scatter,
  osu_bcast,
  osu_reduce,
  osu_alltoall,
  osu_gather,
  osu_scatter,
  osu_barrier,
  // perftest
  ib_write_lat,
  ib_write_bw,
  ib_send_lat,
  ib_send_bw,
  ib_read_lat,
  ib_read_bw,
  // nccl-tests
  all_reduce_perf,
  all_gather_perf,
  reduce_scatter_perf,
  broadcast_perf,
  reduce_perf,
  alltoall_perf,
  sendrecv_perf,
  gather_perf,
  scatter_perf,
  // one host's own: pinned copies on several GPUs at once, compute steps with an exchange, TCP streams and UDP round
  // trips
  host_copies,
  gpu_step,
  iperf3,
  sockperf,
  // sharing of GPUs and hosts: no program of others prints these tables
  gpu_sharing,
  remote_gpu,
  vgpu_migration,
  // flows between hosts, for network engineers
  traffic,
  // steps of a network on many GPUs
  training,
};

std::string_view to_string(Benchmark benchmark);
/// Every benchmark name, for messages and `list`.
const std::vector<std::string>& benchmark_names();
std::optional<Benchmark> benchmark_from_name(std::string_view name);

/// Which program family a benchmark belongs to; it fixes columns, default sizes and units of the output.
/// `system`: benchmarks of one host or of its sockets; printed in a plain table of size, time and rate. `traffic`: a
/// table of completion times. `training`: a table of steps, one row per number of GPUs.
enum class BenchmarkFamily { osu, perftest, nccl_tests, system, sharing, traffic, training };
BenchmarkFamily family_of(Benchmark benchmark);
/// True for benchmarks in which all ranks take part in one operation.
bool is_collective(Benchmark benchmark);
/// True for collectives that one rank sends to all, or receives from all: `workload.root`.
bool has_root(Benchmark benchmark);
/// True for nccl-tests whose size is of all ranks' parts together: the count in their table is of one part, bus
/// bandwidth (n - 1) / n of size over time.
bool counts_parts(Benchmark benchmark);
/// True for benchmarks whose result is a bandwidth in the producing tool's own table.
bool is_bandwidth_test(Benchmark benchmark);

enum class BufferPlace { host, device };

/// How nccl-tests starts the operation: it decides the launch cost. one_thread: one thread drives all GPUs (`-g N`);
/// thread_per_gpu (`-t N -g 1`); process_per_gpu (one MPI rank per GPU); graph: captured in a CUDA graph (`-G`).
enum class LaunchMode { one_thread, thread_per_gpu, process_per_gpu, graph };
std::string_view to_string(LaunchMode mode);

/// Direction of host_copies; to_peer: from the first GPU to the second.
enum class CopyDirection { to_host, to_device, both, to_peer };
std::string_view to_string(CopyDirection direction);

/// Over ranks of the time of their own call of a collective: OSU's table has the mean; max is the slowest rank.
enum class Statistic { mean, max };
std::string_view to_string(Statistic statistic);

struct SizeRange {
  Bytes from;
  Bytes to;
  int factor = 2;
};

/// Which hosts send to which in the `traffic` benchmark. Every host uses its first HCA with a
/// cable, of those with RDMA where it has such.
enum class TrafficPattern {
  flows,            ///< listed one by one
  incast,           ///< hosts 1 to `senders` send to host 0
  permutation,      ///< every host sends to one other and receives from one other
  parking_lot,      ///< host 0 receives from one host per distance, and from a second one at the largest
  victim,           ///< `senders` behind one trunk and `local_senders` beside host 0 send to it; one more flow shares
                    ///< only the trunk
  ring_all_reduce,  ///< 2 (n - 1) steps of 1/n of the size round all hosts
};
std::string_view to_string(TrafficPattern pattern);

struct TrafficFlow {
  std::string name;  ///< default: "from -> to"
  std::string from;  ///< a host, or host.hcaN
  std::string to;
  std::optional<Bytes> bytes;  ///< default: the size of the row
  Duration start;
  std::optional<int> priority;
  SourceLocation location;
};

struct TrafficSpec {
  TrafficPattern pattern = TrafficPattern::flows;
  std::optional<int> senders;
  std::optional<int> local_senders;
  std::vector<TrafficFlow> flows;
};

/// How messages travel between HCAs; the packet engine uses all of it, the fluid engine none.
struct TransportSpec {
  std::string verb = "write";               ///< write, send, read
  std::string congestion_control = "auto";  ///< auto (dcqcn where PFC marks), none, dcqcn
  std::string routing = "auto";             ///< auto (as the fabric's switches do), ecmp, spray, adaptive
  std::optional<int> priority;              ///< default: the fabric's first lossless priority; lane 0 with credits
  std::optional<Bytes> window;              ///< unacknowledged bytes per queue pair; default: no limit
};

struct Workload {
  std::string name;  ///< default: the benchmark's name
  Benchmark benchmark = Benchmark::osu_latency;
  std::optional<int> gpus;            ///< GPUs taking part, in host order; default: all of the topology
  std::optional<int> ranks;           ///< MPI ranks on host buffers; default: one per GPU, or one per core group
  std::optional<int> ranks_per_host;  ///< default: GPUs (or HCAs) of a host
  std::vector<std::string> devices;   ///< explicit GPUs by name, instead of `gpus`
  std::vector<Bytes> sizes;           ///< empty = the benchmark's default sweep
  BufferPlace send_buffer = BufferPlace::host;
  BufferPlace receive_buffer = BufferPlace::host;
  std::string algorithm = "auto";  ///< auto, ring, tree, or an MPI algorithm name
  std::string protocol = "auto";   ///< auto, ll, ll128, simple, eager, rendezvous
  std::optional<int> channels;     ///< NCCL channels; default: NCCL's own choice
  LaunchMode launch = LaunchMode::process_per_gpu;
  int window = 64;                ///< messages in flight of bandwidth tests (osu_bw -W, perftest tx depth)
  int pairs = 1;                  ///< concurrent pairs of osu_multi_lat and osu_mbw_mr
  int queue_pairs = 1;            ///< perftest -q
  bool is_bidirectional = false;  ///< perftest -b
  int root = 0;                   ///< broadcast and reduce
  CopyDirection direction = CopyDirection::to_host;  ///< host_copies
  Statistic statistic = Statistic::mean;             ///< of MPI collectives
  int streams = 4;                                   ///< iperf3 -P
  Duration compute;                                  ///< gpu_step: GPU time of one step on bare metal
  Duration start;                                    ///< when this job starts, for several workloads at once
  std::optional<GpuSharing> sharing;                 ///< gpu_sharing: its clients; collectives: neighbours on the GPUs
  int iterations = 20;                               ///< operations queued before the host waits for them
  std::optional<RemoteGpuCalls> remote;              ///< remote_gpu
  std::optional<MigrationSettings> migration;        ///< vgpu_migration
  TrafficSpec traffic;                               ///< of the `traffic` benchmark
  TransportSpec transport;
  std::shared_ptr<const TrainingSpec> training;  ///< of the `training` benchmark
  SourceLocation location;
  std::set<std::string> given;  ///< keys that the file or a setting gives
};

/// NVLink SHARP: where GPUs, NVSwitches, release and VM allow it, or as the user says.
enum class NvlsSetting { automatic, on, off };

/// Switches of the software stack. Unset optionals take the profile's or the library's default.
struct Software {
  std::string mpi;          ///< profile: mvapich2-gdr, open-mpi-openib, open-mpi-ucx; empty = per benchmark
  std::string mpi_version;  ///< major.minor of Open MPI; empty = 4.1
  std::string mpi_collectives = "library";  ///< who runs collectives: library, ucc or hcoll
  std::optional<Bytes> gpudirect_limit;     ///< largest message sent by GPUDirect RDMA
  std::optional<Bytes> eager_limit;
  std::optional<Bytes> device_eager_limit;  ///< default: eager_limit, else the profile's
  std::string ucx_version;                  ///< major.minor; empty = 1.16 or newer
  std::optional<Bytes> staging_chunk;       ///< pipeline chunk of host staging
  bool gpudirect_rdma = true;
  bool nv_peer_mem = true;  ///< kernel module that makes GPUDirect RDMA possible
  bool gdrcopy = true;
  bool cross_memory_attach = true;    ///< processes of a host may read each other's memory (process_vm_readv)
  std::string nccl_version = "2.28";  ///< major.minor[.patch]
  bool nccl_p2p = true;               ///< NCCL_P2P_DISABLE=0
  bool nccl_shm = true;               ///< NCCL_SHM_DISABLE=0
  NvlsSetting nccl_nvls = NvlsSetting::automatic;  ///< NVLink SHARP (NCCL_NVLS_ENABLE)
  bool nccl_collnet = false;                       ///< the fabric's switches reduce, SHARP (NCCL_COLLNET_ENABLE)
  bool nccl_symmetric_memory = false;              ///< buffers in windows of symmetric memory (NCCL_WIN_COLL_SYMMETRIC)
  std::string nccl_gdr_level;         ///< NCCL_NET_GDR_LEVEL: farthest GPU an HCA reaches directly; empty: by release
  std::optional<bool> nccl_pxn;       ///< NCCL_PXN_DISABLE=0; default: from 2.12 on
  std::optional<int> nccl_cross_nic;  ///< NCCL_CROSS_NIC, 0, 1 or 2; default 2
  std::optional<int> nccl_p2p_pxn_level;     ///< NCCL_P2P_PXN_LEVEL, 0 to 2; default 2
  std::string nccl_plugin;                   ///< network plugin by name; empty: what reaches the adapters
  std::string nccl_plugin_version;           ///< its release, major.minor[.patch]; empty: not stated
  int nccl_ib_qps = 1;                       ///< NCCL_IB_QPS_PER_CONNECTION, 1 to 128
  std::optional<bool> nccl_ib_split_data;    ///< NCCL_IB_SPLIT_DATA_ON_QPS; default: by release
  std::optional<int> nccl_socket_nthreads;   ///< NCCL_SOCKET_NTHREADS, 0 to 16; default: by the adapter's vendor
  std::optional<int> nccl_nsocks_perthread;  ///< NCCL_NSOCKS_PERTHREAD, 1 to 64; default: by the adapter's vendor
  std::string transport = "auto";            ///< auto, rdma, tcp
  std::string cuda_version, ofed_version;    ///< major.minor; empty = new enough
  std::map<std::string, SourceLocation> locations;  ///< where each given key was written
};

struct Scenario {
  std::string name;
  std::string file;
  std::string description;
  std::string topology_file;        ///< as resolved relative to the scenario; empty when the topology is inline
  std::vector<Workload> workloads;  ///< one or more; several run at once
  Software software;
  HostNeighbours host_neighbours;
  std::vector<std::string> parameter_files;
};

/// The sizes of the benchmark's own default sweep (nccl-tests: 8 B to 128 MiB here; OSU: 1 B or 0 B to 4 MiB; perftest
/// -a).
std::vector<Bytes> default_sizes(Benchmark benchmark);

}  // namespace fabricast
