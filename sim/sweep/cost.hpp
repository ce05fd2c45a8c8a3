// SPDX-License-Identifier: Apache-2.0
// What a topology is made of, and what that costs.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fabricast/cost_model.hpp"
#include "fabricast/parameters.hpp"
#include "fabricast/sweep.hpp"
#include "fabricast/topology.hpp"

namespace fabricast::sweep {

/// Parts of a cluster by type.
struct Parts {
  struct Hosts {
    std::string type;  ///< "other" when written inline
    int count = 0;
    int sockets = 0;                  ///< of one host
    std::map<std::string, int> gpus;  ///< of one host, by type
    std::map<std::string, int> hcas;
    std::optional<double> gpu_power_limit;  ///< watts of each GPU
    std::vector<std::string> worn;          ///< modes and hypervisor, for licences
  };
  std::vector<Hosts> hosts;  ///< by host group
  std::map<std::string, int> switches;
  std::map<std::string, int> ports;                     ///< used, by switch type
  std::map<std::string, std::map<double, int>> cables;  ///< "host" and "switch": metres -> cables
  [[nodiscard]] int num_hosts() const;
  [[nodiscard]] int num_gpus() const;
  [[nodiscard]] int num_hcas() const;
  [[nodiscard]] int num_switches() const;
  [[nodiscard]] int num_cables() const;
};
Parts parts_of(const Topology& topology);

struct Bill {
  std::vector<CostLine> lines;
  Estimate capital, running, total;  ///< running: over all years
  double watts = 0;
  double rack_units = 0;
  std::vector<std::string> faults;  ///< what has no price
  std::vector<std::string> notes;   ///< kinds that the model leaves out
};
/// By how much a line changes a sum (cost, capital_cost, running_cost) at the low and the high end of its price.
std::pair<double, double> price_ends(const CostLine& line, const CostModel* model, std::string_view sum);
/// Without a model: power of GPUs alone.
Bill bill_of(const Parts& parts, const CostModel* model, const ParameterSet& parameters);

}  // namespace fabricast::sweep
