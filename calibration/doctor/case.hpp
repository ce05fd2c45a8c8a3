// SPDX-License-Identifier: Apache-2.0
// A log beside the scenario it was taken with, as values that causes change.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fabricast/doctor.hpp"
#include "fabricast/simulate.hpp"

namespace fabricast::doctor {

/// What is forecast: everything a cause may change.
struct Case {
  Scenario scenario;
  TopologySpec spec;
  ParameterSet parameters;
  std::vector<DeviceType> types;
  std::string weak_leaf;  ///< a switch that has lost every second cable to other switches; empty = none
};

/// What a row should take when nothing is wrong.
struct ExpectedRow {
  double over_forecast = 1;           ///< of the healthy case
  std::string baseline;               ///< the healthy run's row, "healthy.log:12"; empty = none: the forecast
  bool is_beside_bare_metal = false;  ///< the healthy run had no VMs
};

/// One measured table and the case it belongs to.
struct Patient {
  Case base;
  MeasuredLog log;
  std::vector<Bytes> sizes;
  std::vector<std::string>
      words;  ///< cause ids that the log's own words name, with the words: "p2p-off\tNCCL_P2P_DISABLE=1"
  bool is_bare_metal = false;         ///< a healthy run below the VMs that the cluster describes
  std::vector<ExpectedRow> expected;  ///< of each of `sizes`; empty = no healthy run was given
};

/// Times of `sizes`, in their order; empty when it cannot be forecast.
std::vector<Duration> forecast(const Case& one, const std::vector<Bytes>& sizes, Fidelity fidelity = Fidelity::fluid);

/// A cause and how it changes a case; false when it does not apply there.
struct Cause {
  std::string id;
  std::string title;
  std::string place;
  std::string fix;
  double prior = 1;  ///< how often, relative to others
  std::function<bool(Case&)> apply;
  int host = -1;  ///< that it is in; -1 = all, or none
};
/// `tells_hosts`: some log is of a part of the hosts, so that it matters which one is at fault.
std::vector<Cause> causes_for(const Case& one, bool tells_hosts);

}  // namespace fabricast::doctor
