// SPDX-License-Identifier: Apache-2.0
// Measured against expected, and why: every cause that logs of GPU clusters are known to suffer from is simulated on
// the described cluster, all logs together decide between them. A cause is named only when the forecast under it
// explains the logs clearly better than the healthy one; otherwise nothing is wrong, or nothing that is known.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "fabricast/load.hpp"
#include "fabricast/measurement.hpp"
#include "fabricast/units.hpp"

namespace fabricast {

/// A row of a log that speaks for a cause.
struct EvidenceRow {
  std::string file;
  int line = 0;
  Bytes size;
  Duration measured, expected, under_cause;
  std::string baseline;  ///< the healthy run's row that `expected` is of, "healthy.log:12"; empty = the forecast
};

struct Finding {
  std::string cause;  ///< "gpudirect-off"
  std::string title;  ///< "GPUDirect RDMA is off"
  std::string place;  ///< host, adapter, link or setting
  std::string fix;
  std::vector<std::string> alike;  ///< titles of causes whose forecast is the same: these logs cannot tell them apart
  std::vector<std::string> alike_causes;  ///< their names
  std::vector<EvidenceRow> evidence;
  std::vector<std::string> words;  ///< what the logs say in words: "all_reduce.log: NCCL_P2P_DISABLE=1"
  double error_before = 0;         ///< mean |ln(measured / expected)| over all rows, healthy
  double error_after = 0;          ///< the same under the cause
  double weight = 0;               ///< of all findings and "nothing", adds up to 1
};

/// What would tell the first two findings apart.
struct NextTest {
  std::string command;  ///< what to run
  Bytes size;
  std::string first, second;  ///< forecast under each: "93.1 GB/s"
};

/// A cause that these logs cannot show: it changes no row that was measured.
struct HiddenCause {
  std::string cause, title, place;
  std::optional<NextTest>
      test;  ///< that would: `first` healthy, `second` under the cause; none = no test that is known
};

/// A table of the logs beside the healthy runs that were given.
struct CoveredTable {
  std::string file;
  int line = 0;  ///< where the table begins
  int num_rows = 0;
  std::vector<Bytes> by_forecast;  ///< sizes that no healthy run has
};

/// Below a healthy run: a row that is slower by more than this share of its bandwidth is slower than it should be.
constexpr double k_baseline_margin = 0.08;

/// A setting of virtual machines, or two that do it only together, that would get back what they cost.
struct VirtualSetting {
  std::vector<std::string> causes;  ///< what the opposite is called as a fault: "ats-off"
  std::string setting;              ///< "virtualization.ats=on"; two are joined by a blank
  std::string title;                ///< "devices translate addresses themselves (ATS)"
  double share_left = 0;            ///< what the VMs then cost
};

/// What the virtual machines of a cluster cost as they are described: expected of them, and no fault of the cluster.
struct VirtualCost {
  double share = 0;                      ///< most that they add to a measured row of bare metal, by the forecast
  Bytes size;                            ///< of that row
  bool is_measured = false;              ///< bare metal was: rows that its logs serve
  std::vector<VirtualSetting> settings;  ///< that would get a fifth of it back or more, most first
};

struct Diagnosis {
  bool is_healthy = true;
  bool is_explained = true;  ///< false: slower than forecasts are ever off, or than the healthy run, and no finding
                             ///< explains most of it
  bool is_below_baseline = false;  ///< some table is slower than healthy runs, as `expect` reads floors
  std::vector<Finding> findings;   ///< most likely first, at most five; empty when nothing is wrong
  std::optional<NextTest> next;
  std::vector<HiddenCause> hidden;  ///< whether or not something was found
  int num_rows = 0;
  int num_causes = 0;                 ///< simulated
  double error_healthy = 0;           ///< mean |ln(measured / expected)|
  double slower = 0;                  ///< median of measured / expected - 1
  std::vector<CoveredTable> covered;  ///< every table of the logs; empty when no healthy run was given
  int num_rows_with_baseline = 0;
  std::optional<VirtualCost> virtualization;  ///< nothing on bare metal, or where the VMs as described cost nothing
  Diagnostics warnings;                       ///< logs that could not be used
  std::vector<InputFile> inputs;
};

struct DoctorOptions {
  std::vector<std::string> parameter_files;
  std::vector<Setting> settings;
  /// Logs of this cluster when it was healthy. A row of the same benchmark, ranks, hosts and size is expected to take
  /// what it took there, and under a cause as much longer as the forecast under the cause is than the healthy one: the
  /// error of the forecast drops out. One that serves no row is refused.
  std::vector<std::string> baselines;
  /// The same of the hosts without the virtual machines that the cluster describes: what these cost by the forecast is
  /// added. Refused for a cluster without.
  std::vector<std::string> bare_metal_baselines;
  const std::atomic<bool>* stop = nullptr;
};

/// `cluster`: a topology, or a scenario whose first workload and software the logs were taken with.
Result<Diagnosis> diagnose(const std::string& cluster, const std::vector<std::string>& logs,
                           const DoctorOptions& options = {});

/// A measured pair of hosts; `value` is a time, or a time per byte: larger is worse.
struct PairValue {
  std::string a, b;
  double value = 0;
};
struct PairGroups {
  std::vector<std::vector<std::string>> groups;  ///< hosts near each other, each group and its hosts in order
  std::vector<std::string> slow_hosts;           ///< whose every pair is slower than pairs without them
  double near = 0, far = 0;                      ///< medians; equal when there is one group
};
/// Which hosts share a switch, from some of their pairs: a fifth is enough where groups have eight hosts or more.
PairGroups group_pairs(const std::vector<PairValue>& pairs);
/// `host_a,host_b,value` per line, blanks or commas, '#' and a header are left out.
Result<std::vector<PairValue>> read_pairs(std::string_view text, const std::string& name);

/// What a healthy cluster should reach.
struct Floor {
  Benchmark benchmark = Benchmark::all_reduce_perf;
  int hosts = 1;
  int ranks = 2;
  Bytes size;
  Duration expected, slowest;              ///< time of one operation; `slowest` = upper edge of the band
  Bandwidth expected_busbw, lowest_busbw;  ///< of the two
  std::string reason;                      ///< what limits it
};
struct Expectations {
  std::string cluster;
  std::vector<InputFile> inputs;
  std::vector<Floor> floors;
  std::string basis;  ///< what the floors rest on
};
struct ExpectOptions {
  std::vector<Benchmark> benchmarks;
  std::vector<std::string> parameter_files;
  std::vector<Setting> settings;
  std::vector<std::string> baselines;  ///< logs of this cluster when it was healthy
  double margin = k_baseline_margin;   ///< below a baseline
  std::vector<Bytes> sizes;            ///< empty: those that the benchmark runs by itself
};
/// `cluster`: a topology, whose benchmarks are forecast for all counts; or a scenario, whose first workload is, as it
/// is.
Result<Expectations> expect(const std::string& cluster, const ExpectOptions& options);
std::string expectations_yaml(const Expectations& expectations);
std::string expectations_json(const Expectations& expectations);
/// Rules of SuperBench (`sb result diagnosis`).
std::string superbench_rules(const Expectations& expectations);

/// A log against floors: rows below theirs. A log misses when more than `most_below` of its rows from 1 MiB on are
/// below theirs (of all rows, where there is none so large).
struct FloorCheck {
  int num_rows = 0, num_below = 0;
  bool is_missed = false;
  std::vector<std::string> lines;  ///< for people, worst first
};
Result<std::vector<Floor>> read_floors(std::string_view text, const std::string& name);
FloorCheck check_floors(const MeasuredLog& log, const std::vector<Floor>& floors, double most_below = 0.5);

}  // namespace fabricast
