// SPDX-License-Identifier: Apache-2.0
// What a forecast is of, and how much of it the logs of a fit have shown. `calibrate` writes what its logs were of as
// parameters of the model, by their kind BENCHMARK.DEVICES.ADAPTERS.TRANSPORT.HOSTS:
//
//   model.fitted_ranks.KIND, .fitted_hosts.KIND       largest counts
//   model.fitted_size_low.KIND.WAY, .fitted_size_high.KIND.WAY   of each way, ALGORITHM-PROTOCOL
//   model.fitted_share.KIND.PARAMETER                 largest share of a fitted time that rested on the parameter
//   model.fitted_value.PARAMETER                      the fit set it: value and interval before, relative to its value
//
// A forecast of a kind and way that are there has the fit's own error as far as its time rests on the same parameters
// in the same shares. Anything else has the error of a system that no fit knows, other collectives of the same system
// too: of our own logs of one VM, calibrated by one, a narrower band held 18 to 79 % of each of the others.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fabricast/parameters.hpp"
#include "fabricast/result.hpp"
#include "fabricast/topology.hpp"

namespace fabricast::engine {

/// What a forecast, or a log, is of. All words hold letters, digits, `-` and `_` only.
struct Kind {
  std::string benchmark;
  std::string devices;    ///< types of the GPUs that take part; of ranks on host memory the processors
  std::string adapters;   ///< types of the adapters of their hosts; none within one host
  std::string transport;  ///< tcp, rdma; none within one host
  std::string hosts;      ///< one, several
  std::string way;        ///< ALGORITHM-PROTOCOL of the row, no part of the name

  [[nodiscard]] std::string name() const;
};

/// `ranks`: names of the ranks' devices as in WorkloadPrediction::devices.
Kind kind_of(const Topology& topology, Benchmark benchmark, int num_hosts, const std::vector<std::string>& ranks,
             const Row& row);

/// Share of a row's time by the parameter it follows from.
std::map<std::string, double> shares_of(const Row& row);

/// A part of the time that no log of the fit has shown.
struct Unseen {
  double share = 0;  ///< of the time, beyond what the logs had
  double seen = 0;   ///< share of the parameter in the logs, 0 = none
};

/// What the logs of a fit have shown of a forecast.
struct Acquaintance {
  bool has_record = false;      ///< a fit says what its logs were of
  bool is_of_kind = false;      ///< the fit has logs of the kind, and rows that went this way
  bool has_exchanged = true;    ///< logs of more than one rank are among them
  double doublings = 0;         ///< beyond the logs' counts, and a quarter of those of sizes
  std::vector<Unseen> unseen;   ///< parts of the time
  std::vector<std::string> in;  ///< reasons why the row is outside what the logs showed; empty = it is not

  [[nodiscard]] double unseen_share() const;
};

/// True when `parameters` hold what logs were of.
bool has_record(const ParameterSet& parameters);

Acquaintance acquaintance(const Row& row, const Kind& kind, int num_ranks, int num_hosts,
                          const ParameterSet& parameters, bool is_step = false);

/// Doublings by which `value` is above the parameter's; 0 when it is not, or the parameter does not exist.
double doublings_above(const ParameterSet& parameters, const std::string& name, double value);

}  // namespace fabricast::engine
