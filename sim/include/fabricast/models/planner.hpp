// SPDX-License-Identifier: Apache-2.0
// A planner turns one workload into the operation a library would perform for each message size: what NCCL, MPI or
// perftest decides (algorithm, protocol, channels, chunks, copies) and on which links. It is built once per workload.
#pragma once

#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "fabricast/diagnostic.hpp"
#include "fabricast/models/plan.hpp"
#include "fabricast/parameters.hpp"
#include "fabricast/scenario.hpp"
#include "fabricast/topology.hpp"

namespace fabricast::models {

/// What every planner may look at. `resources` is shared by all workloads of a scenario.
struct PlanContext {
  const Topology& topology;
  const Software& software;
  const ParameterSet& parameters;
  Resources& resources;
  std::uint64_t seed = 1;
  bool runs_alone = true;  ///< no other workload: resources that can never bind may be left out of plans
  bool full_expansion = false;
  HostNeighbours neighbours{};                       ///< work of others on every host
  bool with_legs = false;                            ///< flows list their network transfers
  const std::vector<Workload>* workloads = nullptr;  ///< all that run at once; null = only the one planned
  std::optional<std::uint64_t> pattern_seed{};       ///< of drawn traffic patterns; default: `seed`, which draws routes
  bool one_of_groups = false;  ///< others of the hosts' GPUs exchange beside it, by adapters of theirs
};

/// Two HCAs that must talk are in networks that do not meet. Planners throw it; it never leaves simulate().
class NoRoute : public std::runtime_error {
 public:
  explicit NoRoute(const std::string& what,
                   std::string fix = "connect all HCAs that take part by switches, or cable only those of one network")
      : std::runtime_error(what), fix_(std::move(fix)) {}
  [[nodiscard]] const std::string& fix() const { return fix_; }

 private:
  std::string fix_;
};

class Planner {
 public:
  virtual ~Planner() = default;
  /// The operation for a message of `size` bytes (as the benchmark prints it).
  [[nodiscard]] virtual OperationPlan plan(Bytes size) const = 0;
  [[nodiscard]] virtual int num_ranks() const = 0;
  [[nodiscard]] virtual int num_hosts() const = 0;
  [[nodiscard]] virtual std::vector<std::string> devices() const = 0;
  [[nodiscard]] virtual std::vector<GivenUsed> settings() const { return {}; }
  [[nodiscard]] virtual std::vector<std::string> assumptions() const { return {}; }
  /// One sentence per device that no log has taught: whose values stand for its own.
  [[nodiscard]] virtual std::vector<std::string> stand_ins() const { return {}; }
  /// What an operation that takes `time` when its devices are its own waits for others on them: time slices of a GPU,
  /// virtual CPUs.
  [[nodiscard]] virtual std::vector<Term> waits(Duration /*time*/) const { return {}; }
  /// Columns that follow from the finished row; `waited`: of its time, what waits() added. Empty = those of the plan.
  [[nodiscard]] virtual std::vector<Figure> figures(const Row& /*row*/, Duration /*waited*/) const { return {}; }
  /// Multiplies algorithm bandwidth to nccl-tests' bus bandwidth; 1 for other benchmarks.
  [[nodiscard]] virtual double bus_factor() const { return 1; }
};

/// The planner for the workload's benchmark, or why it cannot run on this topology.
Result<std::unique_ptr<Planner>> make_planner(const PlanContext& context, const Workload& workload);

/// Settings of the software, of the hosts' VMs and of neighbours that are given and that the workload does not read,
/// one line each.
std::vector<std::string> settings_without_effect(const PlanContext& context, const Workload& workload,
                                                 const Planner& planner);

/// Network links carry packet headers beside payload: sets what these leave of links between switches and of cables
/// slower than their HCA (the HCA's own limits say it of the others). Where HCAs of several types meet, the least
/// share.
void set_payload_shares(Resources& resources, const ParameterSet& parameters);

/// Names of `devices`: of the first 16, then "...".
std::vector<std::string> device_names(const Topology& topology, const std::vector<DeviceId>& devices);

/// A term whose time is `times` x a time parameter.
Term parameter_term(const ParameterSet& parameters, std::string name, const std::string& parameter, double times = 1);

}  // namespace fabricast::models
