// SPDX-License-Identifier: Apache-2.0
#include "fit/record.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "base/parameter_change.hpp"
#include "engine/fitted_kind.hpp"

namespace fabricast::fit {

namespace {

constexpr double k_least_share = 0.01;  ///< of a time; what has less of every fitted one is not worth a line

/// The largest (or least) of what the fitted rows have, by name.
class Record {
 public:
  void raise(const std::string& name, double value, Dimension dimension, const char* what) {
    const auto* known = set_.find(name);
    if (known == nullptr || known->value < value)
      set_.set({name, value, dimension, value, value, Confidence::fitted, what, {}});
  }
  void lower(const std::string& name, double value, Dimension dimension, const char* what) {
    const auto* known = set_.find(name);
    if (known == nullptr || known->value > value)
      set_.set({name, value, dimension, value, value, Confidence::fitted, what, {}});
  }
  [[nodiscard]] ParameterSet done() { return std::move(set_); }

 private:
  ParameterSet set_;
};

void add_row(const Experiment& experiment, const WorkloadPrediction& table, const Row& row, Record& record) {
  const auto whole =
      engine::kind_of(experiment.loaded.topology, table.benchmark, experiment.num_hosts, table.devices, row);
  const auto kind = whole.name();
  record.raise("model.fitted_ranks." + kind, experiment.num_ranks, Dimension::number, "largest number of ranks fitted");
  record.raise("model.fitted_hosts." + kind, experiment.num_hosts, Dimension::number, "largest number of hosts fitted");
  if (table.benchmark != Benchmark::training) {
    const auto size = static_cast<double>(row.size.value);
    record.lower("model.fitted_size_low." + kind + "." + whole.way, size, Dimension::bytes, "smallest size fitted");
    record.raise("model.fitted_size_high." + kind + "." + whole.way, size, Dimension::bytes, "largest size fitted");
  }
  for (const auto& [parameter, share] : engine::shares_of(row)) {
    if (share < k_least_share || !experiment.current.contains(parameter)) continue;
    record.raise("model.fitted_share." + kind + "." + parameter, std::min(1.0, share), Dimension::number,
                 "largest share of a fitted time");
  }
}

}  // namespace

ParameterSet record_of_logs(Dataset& data, const FitResult& fit) {
  std::vector<std::set<std::size_t>> rows(data.experiments().size());
  for (const auto& point : fit.points) rows[point.experiment].insert(point.row);
  Record record;
  for (std::size_t e = 0; e < rows.size(); ++e) {
    if (rows[e].empty()) continue;
    const auto table = data.predict_table(e, fit.x, {});
    if (!table) continue;
    for (const auto i : rows[e]) add_row(data.experiments()[e], *table, table->rows[i], record);
  }
  return record.done();
}

Parameter record_of_value(const Parameter& before, double value) {
  const double ratio = before.value / value;
  const double half = relative_half_width(before.confidence);
  const double low = before.has_interval() ? before.low / value : ratio * (1 - half);
  const double high = before.has_interval() ? before.high / value : ratio * (1 + half);
  return {"model.fitted_value." + before.name,
          ratio,
          Dimension::number,
          std::max(0.0, low),
          high,
          Confidence::fitted,
          "set by this fit: before it, relative to its value",
          {}};
}

}  // namespace fabricast::fit
