// SPDX-License-Identifier: Apache-2.0
// What a benchmark's own log says: one MeasuredLog per table. Readers take the text nccl-tests, OSU and perftest print
// (every layout in use), nccl-tests', perftest's and iperf3's JSON, iperf3 and sockperf, p2pBandwidthLatencyTest's
// matrices, CUDA bandwidthTest, copy timings, NCCL's TUNING lines and forecasts of our own. A damaged log loses rows,
// never the whole: each row lost is a warning with its line. Times are what models are fitted on. Bandwidths that
// follow from size and time are computed here, not copied: the programs print them with two decimals.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fabricast/diagnostic.hpp"
#include "fabricast/scenario.hpp"
#include "fabricast/training.hpp"
#include "fabricast/units.hpp"

namespace fabricast {

/// The program family and shape a log was read as.
enum class LogFormat {
  nccl_tests,
  nccl_tests_json,
  osu,
  perftest,
  perftest_json,
  p2p_matrix,      ///< p2pBandwidthLatencyTest; see MeasuredLog::matrices
  cuda_bandwidth,  ///< CUDA bandwidthTest, text or shmoo CSV
  copies,          ///< host and peer copy timings; see MeasuredLog::copies
  nccl_tuning,     ///< NCCL_DEBUG_SUBSYS=TUNING lines; see MeasuredLog::tuning
  training,        ///< tables of training steps or throughput; see MeasuredLog::steps
  iperf3,          ///< text and JSON
  sockperf,
  forecast,  ///< what `fabricast run` prints of benchmarks without a program's own table; its JSON and CSV of all
};
std::string_view to_string(LogFormat format);

/// A latency percentile, e.g. share 0.99.
struct MeasuredPercentile {
  double share = 0;  ///< (0, 1)
  Duration time;
};

/// One row of a table.
///
/// `time` means what the benchmark means by it: a collective's mean over ranks (nccl-tests: out of place); one way
/// (half a round trip) for osu_latency, osu_multi_lat, ib_write_lat and ib_send_lat; the full operation for
/// ib_read_lat; for bandwidth tests size / bandwidth, that is the mean time per message with all pairs together.
struct MeasuredRow {
  Bytes size;                             ///< as the benchmark prints it
  Duration time;                          ///< see above; the in-place time when the row has only that half
  std::optional<Duration> in_place_time;  ///< nccl-tests
  bool is_in_place_only = false;          ///< nccl-tests left the out-of-place half blank
  std::optional<Bandwidth> bandwidth;     ///< nccl-tests: algbw from `time`; bandwidth tests: as printed, exact unit
  std::optional<Bandwidth> busbw;  ///< nccl-tests: algbw x the collective's factor; absent when ranks are unknown
  std::optional<Bandwidth> peak_bandwidth;  ///< perftest; absent when printed as 0.00
  std::optional<Bandwidth> printed_algbw;   ///< as printed, out of place half first
  std::optional<Bandwidth> printed_busbw;   ///< as printed, two decimals: for checks only
  std::optional<double> messages_per_s;
  std::optional<Duration> min_time;  ///< over ranks (OSU -f), over iterations (perftest, nccl-tests -I)
  std::optional<Duration> max_time;
  std::optional<Duration> typical_time;  ///< perftest t_typical: the median over iterations
  std::optional<Duration> std_dev;
  std::vector<MeasuredPercentile> percentiles;
  std::vector<Duration> iterations;                 ///< nccl-tests JSON with -I: one out-of-place time per iteration
  std::optional<double> overlap;                    ///< OSU non-blocking: fraction of communication hidden, 0..1
  std::optional<Duration> compute_time;             ///< OSU non-blocking
  std::optional<Duration> pure_communication_time;  ///< OSU non-blocking
  std::optional<std::int64_t> num_iterations;
  std::optional<std::int64_t> num_wrong;    ///< nccl-tests; absent when not checked (N/A)
  std::string datatype;                     ///< nccl-tests, OSU; empty when not printed
  std::string reduction;                    ///< nccl-tests; "none" where there is none, empty when not printed
  std::optional<std::int64_t> count;        ///< nccl-tests: elements of one rank's share
  std::optional<int> root;                  ///< nccl-tests; -1 = the collective has none
  std::optional<bool> is_in_place_checked;  ///< nccl-tests; false when its #wrong is N/A
  int line = 0;                             ///< 1-based line of the file; 0 in JSON
};

/// A device line of nccl-tests.
struct MeasuredRank {
  int rank = 0;
  int group = 0;
  std::string host;
  int device = 0;
  std::string bus_id;  ///< as printed, without brackets
  std::string device_name;
};

/// What NCCL's lines (NCCL_DEBUG=INFO) say that it used: "via P2P/CUMEM", "via SHM/direct", "via NET/IB/0/GDRDMA",
/// "via NET/Socket/0", "NVLS multicast support is available".
struct NcclSeen {
  std::optional<bool> nvls;  ///< multicast available; absent when no line says so
  bool has_p2p = false, has_shm = false, has_ib = false, has_gdr = false, has_socket = false;
};

/// What the log says of how it was taken. Absent = not printed.
struct MeasuredHeader {
  std::string tool_version;      ///< "2.19.6", "7.2"; iperf3: "3.12"
  std::string nccl_version;      ///< "2.28.9"
  bool has_old_columns = false;  ///< nccl-tests: `error` instead of `#wrong`, as printed until NCCL 2.12
  std::optional<int> num_ranks;  ///< ranks in one operation
  std::optional<int> num_hosts;
  std::optional<int> ranks_per_host;  ///< the largest count on one host
  std::vector<std::string> hosts;     ///< in order of first rank
  std::vector<MeasuredRank> ranks;
  std::vector<std::string> device_names;  ///< distinct, in order of first rank
  std::optional<BufferPlace> send_buffer;
  std::optional<BufferPlace> receive_buffer;
  bool is_managed_memory = false;  ///< OSU "MANAGED (M)"
  std::string accelerator;         ///< OSU: "CUDA", "ROCM", "OPENACC"; empty for host-only builds
  std::string unit;                ///< unit of the fitted column as printed: "us", "MB/s", "MB/sec", "Gb/sec"
  std::optional<int> window;
  std::optional<int> pairs;
  std::optional<int> queue_pairs;
  std::optional<int> streams;  ///< iperf3 -P
  std::optional<int> tx_depth;
  std::optional<Bytes> mtu;
  std::optional<int> post_list;  ///< perftest -l: messages posted at once
  bool is_dual_port = false;     ///< perftest -O: both ports of the adapter carry messages
  bool is_bidirectional = false;
  std::string connection_type;         ///< perftest: RC, UC, UD; iperf3 and sockperf: TCP, UDP
  std::string device;                  ///< perftest: mlx5_0
  std::string link_type;               ///< perftest: IB, Ethernet
  std::optional<LaunchMode> launch;    ///< nccl-tests; from nThread, nGpus, graph and the process ids
  std::optional<int> threads;          ///< nccl-tests nThread
  std::optional<int> gpus_per_thread;  ///< nccl-tests nGpus
  std::optional<int> iterations, warmup_iterations, aggregated_iterations;
  std::optional<bool> is_blocking;
  NcclSeen nccl_seen;
  std::map<std::string, std::string> environment;  ///< settings of NCCL, UCX and MPI that the log names
};

/// One matrix of p2pBandwidthLatencyTest; `value[row][column]` in SI units (bytes per second or seconds), NaN when
/// missing.
struct MeasuredMatrix {
  std::string title;  ///< as printed: "Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)"
  bool is_latency = false;
  bool is_bidirectional = false;
  bool is_p2p = false;    ///< direct peer access enabled
  bool is_write = false;  ///< "P2P Writes"; false for reads or not stated
  std::string row_kind;   ///< "GPU", "CPU", "D\\D"
  std::vector<int> row_devices, column_devices;
  std::vector<std::vector<double>> value;
  int line = 0;
};

/// One copy timing (host to device, device to host, peer, within a device), or the cost of a kernel launch.
struct MeasuredCopy {
  std::string kind;              ///< as the log names it: "h2d pinned", "peer copy p2p=1", "launch_async", "H2D Pinned"
  std::optional<Bytes> size;     ///< absent for launches and concurrent copies
  std::optional<Duration> time;  ///< per copy
  std::optional<Bandwidth> bandwidth;  ///< bandwidthTest D2D counts bytes read and written
  std::vector<int> devices;            ///< the GPU, or source and destination of a peer copy
  int num_concurrent = 1;              ///< GPUs that copy at once, this one included
  int line = 0;
};

/// NCCL's own choice for one size.
struct NcclChoice {
  Bytes size;
  std::string operation;                          ///< "AllReduce"
  std::string algorithm;                          ///< lower case: ring, tree, collnet_direct, nvls, ...
  std::string protocol;                           ///< lower case: ll, ll128, simple
  std::optional<Duration> predicted_time;         ///< NCCL's own estimate
  std::optional<int> channels_from, channels_to;  ///< channel{lo..hi}
  int line = 0;
};

/// NCCL's latency / bandwidth table entry for one operation, algorithm and protocol.
struct NcclModelEntry {
  std::string operation, algorithm, protocol;
  Duration latency;
  Bandwidth bandwidth;
  int line = 0;
};

struct NcclTuning {
  std::vector<NcclModelEntry> table;
  std::vector<NcclChoice> choices;
};

/// One row of a training table, with what it says of itself; which rows are a scenario's own, table_for() decides.
struct MeasuredStep {
  std::string text;   ///< the row and its table's title, as printed: rows are chosen by parts of it
  std::string model;  ///< as printed; empty = not stated
  std::string path;   ///< of our own tables: nvlink, p2poff (host memory), tcp
  std::optional<Precision> precision, exchange;
  std::optional<int> gpus, hosts;
  std::optional<int> batch_per_gpu;          ///< of one micro-batch
  std::optional<std::int64_t> global_batch;  ///< samples of a step over all GPUs
  std::optional<std::int64_t> tokens, kv_length, hidden, layers;
  std::optional<Bytes> bucket;
  std::optional<Duration> step;
  std::optional<double> samples_per_s, tokens_per_s;  ///< of all GPUs
  bool is_layer = false;                              ///< one transformer layer, not a step
  int line = 0;
};

/// One table of a log file.
struct MeasuredLog {
  std::string file;
  LogFormat format = LogFormat::nccl_tests;
  std::optional<Benchmark> benchmark;  ///< absent when the log does not say, or the program is not one we forecast
  std::vector<Benchmark> possible_benchmarks;     ///< nccl-tests: collectives whose columns look so, when several do
  std::string workload;                           ///< its name, of what `fabricast run` printed
  std::string title;                              ///< as printed: "OSU MPI Allreduce Latency Test v5.7"
  std::string other_test;                         ///< that it names when this is none we forecast; then no benchmark
  std::map<std::string, std::string> provenance;  ///< `# key: value` lines before "# ---- raw output below ----"
  MeasuredHeader header;
  std::vector<MeasuredRow> rows;         ///< in file order; of training, by table_for(): `size` = GPUs, `time` = step
  std::vector<MeasuredStep> steps;       ///< training
  std::vector<MeasuredMatrix> matrices;  ///< p2p_matrix
  std::vector<MeasuredCopy> copies;      ///< copies, cuda_bandwidth
  NcclTuning tuning;                     ///< nccl_tuning
  Diagnostics warnings;                  ///< rows lost, units assumed; by line
  std::string refusal;                   ///< by table_for(): why no row of the log can be compared; empty = none
  int line = 0;                          ///< where the table begins
  std::string sha256;                    ///< of the file as it was read; empty of a text
};

/// Every table of a log, in file order. `name` is used in messages. Text without any table known gives an error.
Result<std::vector<MeasuredLog>> read_logs_text(std::string_view text, const std::string& name);
Result<std::vector<MeasuredLog>> read_logs(const std::string& path);

/// The log's only table, or, with a warning, its first with rows.
Result<MeasuredLog> read_log_text(std::string_view text, const std::string& name);
Result<MeasuredLog> read_log(const std::string& path);

/// The table of a log that the scenario's first workload forecasts: of its benchmark, and of its ranks and ranks per
/// host when the log has several; tables taken alike are repeats, whose rows come together. A warning says so, or which
/// of several was taken. A log of another test, or taken in a way that is not forecast, gives a table without rows
/// whose `refusal` says why. Copy timings and matrices of peer copies become rows of host_copies, training steps of the
/// workload's network, precision, batch and numbers of GPUs rows of training; of these only such whose text holds every
/// part in `parts`. NCCL's tuning lines of the log go along. Empty when nothing fits; a training table without rows
/// says in its warnings why.
std::optional<MeasuredLog> table_for(const std::vector<MeasuredLog>& tables, const Scenario& scenario,
                                     const std::vector<std::string>& parts = {});

/// The distinct sizes measured, ascending; rows of size 0 of nccl-tests are left out (they time nothing).
std::vector<Bytes> sizes_of(const MeasuredLog& log);

/// The collectives of nccl-tests that are forecast.
const std::vector<Benchmark>& nccl_collectives();

/// Says which collective a table of nccl-tests is of; ranks and bus bandwidths follow.
void set_benchmark(MeasuredLog& table, Benchmark benchmark);

/// busbw / algbw of nccl-tests: 2(n-1)/n for all_reduce, (n-1)/n for all_gather, reduce_scatter and alltoall, 1
/// elsewhere; n = ranks in one group.
double bus_bandwidth_factor(Benchmark benchmark, int num_ranks);

}  // namespace fabricast
