// SPDX-License-Identifier: Apache-2.0
// Results of sweeps as plain structs, and the calls behind `fabricast sweep`: designs of a plan are numbered, each is
// loaded, checked, priced and simulated by itself, and what comes out does not depend on which process did it.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fabricast/diagnostic.hpp"
#include "fabricast/sweep_plan.hpp"

namespace fabricast {

/// A figure with its 80 % band.
struct Estimate {
  double value = 0, low = 0, high = 0;
};

/// feasible: simulated; infeasible: `check` or the simulation says why not; invalid: its settings cannot be read or
/// priced; failed: the process that simulated it ended.
enum class DesignStatus { feasible, infeasible, invalid, failed };
std::string_view to_string(DesignStatus status);

/// One line of a design's bill.
struct CostLine {
  std::string what;  ///< "64 x gpu a100-pcie-40"
  double count = 0;
  double once = 0;           ///< all of them
  double per_year = 0;       ///< all of them
  double low = 0, high = 0;  ///< of `once`
  std::string source;
  bool is_assumed = false;
};

/// A part of the simulated time.
struct TimeShare {
  std::string what;
  double share = 0;
};

struct DesignResult {
  std::size_t index = 0;
  std::string name;
  std::vector<std::pair<std::string, std::string>> values;  ///< axis -> label
  std::vector<SweepSetting> settings;                       ///< all that differ from the scenario file
  DesignStatus status = DesignStatus::feasible;
  std::vector<std::string> reasons;                       ///< why it is not feasible, one sentence each
  std::vector<std::pair<std::string, Estimate>> metrics;  ///< by the metric's text
  std::string bottleneck;
  std::vector<TimeShare> split;     ///< of the first time, largest first
  std::vector<std::string> doubts;  ///< warnings of `check`
  std::vector<std::string> assumptions;
  std::vector<CostLine> bill;
  std::vector<std::pair<std::string, std::string>> inputs;  ///< files with their SHA-256

  [[nodiscard]] const Estimate* find(std::string_view metric) const;
};

/// The designs of a plan, by number: those listed, then all combinations (the last axis fastest) or random ones.
class DesignSpace {
 public:
  explicit DesignSpace(const SweepPlan& plan);
  [[nodiscard]] std::size_t size() const { return size_; }
  /// Name, axis values and settings of a design; no result yet.
  [[nodiscard]] DesignResult design(std::size_t index) const;

 private:
  const SweepPlan& plan_;
  std::vector<std::vector<std::size_t>> samples_;
  std::size_t size_ = 0;
};

/// Combinations of a plan that are too many to number; empty when all is well.
Diagnostics space_faults(const SweepPlan& plan);

/// The figures a design is asked for: objectives, constraints, then counts, power and cost.
std::vector<Metric> metrics_of(const SweepPlan& plan);

/// Loads, checks, prices and simulates one design. Never throws; what goes wrong is in the result.
DesignResult evaluate_design(const SweepPlan& plan, const DesignResult& design);

struct Preflight {
  Diagnostics faults;
  std::vector<std::pair<std::string, std::string>> inputs;  ///< files that were read, with their SHA-256
};
/// A choice of each axis is loaded alone: faults when no value of an axis can be read, e.g. a misspelt path.
Preflight preflight(const SweepPlan& plan);

// ---- records: one line of JSON per design -------------------------------------------------------------------------

std::string record_of(const DesignResult& result);
/// A record of ours; nothing when it is none.
std::optional<DesignResult> result_of(const std::string& record);
/// What a store and a report must know of a plan, as JSON; and the part of it that results depend on.
std::string header_of(const SweepPlan& plan, const std::string& version);
std::optional<SweepPlan> plan_of(const std::string& header);
std::string fingerprint_of(const SweepPlan& plan, const std::string& version);

// ---- distribution
// ----------------------------------------------------------------------------------------------------

struct TaskOptions {
  int jobs = 1;                             ///< processes
  const std::atomic<bool>* stop = nullptr;  ///< raise it to end early
};
/// Runs `work(i)` for every i of `todo` in forked processes, next task to the next idle one, and hands every text to
/// `done` in this process. A process that dies costs one task: `lost` is asked for its text.
void run_tasks(const std::vector<std::size_t>& todo, const std::function<std::string(std::size_t)>& work,
               const std::function<void(std::size_t, const std::string&)>& done,
               const std::function<std::string(std::size_t, const std::string& why)>& lost, const TaskOptions& options);

/// The same over the ranks of an MPI job: rank 0 hands out tasks and calls `done`; the others work and return.
class MpiLink {
 public:
  /// Connects when the environment says that an MPI launcher started this process; nothing without one.
  static std::optional<MpiLink> connect(const std::string& folder, std::string& fault);
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  void run(const std::vector<std::size_t>& todo, const std::function<std::string(std::size_t)>& work,
           const std::function<void(std::size_t, const std::string&)>& done, const std::atomic<bool>* stop) const;
  void close() const;

 private:
  void* calls_ = nullptr;
  int rank_ = 0, size_ = 1;
};

// ---- store
// -----------------------------------------------------------------------------------------------------------

/// Results in one SQLite file (docs/FORMATS.md). Every record is one transaction: what was stored survives a kill, and
/// a design has one row.
class SweepStore {
 public:
  /// Opens or makes the file. A store of another plan or version is refused, with what to do.
  static Result<SweepStore> open(const std::string& path, const std::string& fingerprint, const std::string& header);
  /// Opens a store as it is, for merging.
  static Result<SweepStore> open_existing(const std::string& path);
  ~SweepStore();
  SweepStore(SweepStore&& other) noexcept;
  SweepStore& operator=(SweepStore&&) = delete;

  void put(std::size_t index, const std::string& record);
  [[nodiscard]] std::vector<std::pair<std::size_t, std::string>> records() const;
  [[nodiscard]] std::string meta(const std::string& key) const;

 private:
  explicit SweepStore(void* database, std::string path) : database_(database), path_(std::move(path)) {}
  void execute(const char* sql) const;
  void* database_ = nullptr;
  std::string path_;
};

// ---- ranking
// -----------------------------------------------------------------------------------------------------------

/// What a design is worth beside the others.
struct Standing {
  bool meets_all = false;                   ///< feasible and within every constraint
  bool is_on_front = false;                 ///< no other that meets all is as good in every objective and better in one
  int rank = 0;                             ///< from 1 among those that meet all, by the first objective
  double probability = 0;                   ///< that it meets every constraint, from the bands
  std::optional<std::size_t> dominated_by;  ///< index of a design that is better in all objectives
  std::optional<std::size_t> equals;        ///< index of a design on the front with the same objectives
  std::vector<std::string> misses;          ///< constraints it misses, in words
};

struct Recommendation {
  std::size_t index = 0;
  std::vector<std::string> reasons;
};

struct SweepReport {
  SweepPlan plan;
  std::string version;
  std::vector<DesignResult> designs;  ///< by index
  std::vector<Standing> standings;    ///< of the same
  std::vector<std::size_t> front;     ///< places in `designs`, best first objective first
  std::vector<Recommendation> top;    ///< places in `designs`
  std::size_t num_planned = 0;
  bool is_interrupted = false;
  std::string shard;
};

/// Judges all results of a plan; `designs` are sorted by index.
SweepReport judge(const SweepPlan& plan, std::vector<DesignResult> designs, std::size_t num_planned);

/// Probability that a figure with this band is at least / at most the bounds: its logarithm is taken as normal on
/// either side of the value, with 10 % beyond each end of the band.
double probability_within(const Estimate& estimate, const std::optional<double>& at_least,
                          const std::optional<double>& at_most);

}  // namespace fabricast
