// SPDX-License-Identifier: Apache-2.0
// What a cluster costs: prices by device type with their sources, power, rack units and years. Plain values, as the
// YAML said; money has no unit but the currency's name.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "fabricast/diagnostic.hpp"

namespace fabricast {

/// One line of the price list. A device costs `price` once and `per_year` every year.
struct Price {
  double price = 0;
  double low = 0, high = 0;  ///< 80 % interval of `price`; equal to it when none is given
  double per_year = 0;       ///< maintenance, subscription
  double per_metre = 0;      ///< cables
  double watts = 0;          ///< drawn under load
  double rack_units = 0;
  std::vector<std::string> includes;  ///< host: kinds of devices that come with it ("gpu", "hca")
  std::string source;
  bool is_assumed = false;  ///< the user's own assumption
  SourceLocation location;
};

/// A licence is paid per GPU, host or socket of hosts that wear one of `when`.
struct Licence {
  std::string name;
  std::vector<std::string> when;  ///< modes, hypervisors, or "virtual" for any of them
  std::string per = "host";       ///< gpu, host, socket
  Price price;
};

struct CostModel {
  std::string name;
  std::string file;
  std::string currency = "USD";
  double years = 4;
  /// kind (gpu, hca, host, switch, switch_port, cable) -> type -> price; the type "other" stands for all not named.
  std::map<std::string, std::map<std::string, Price>> prices;
  std::vector<Licence> licences;
  std::optional<Price> kilowatt_hour;
  std::optional<Price> rack_unit;        ///< per_year
  double power_usage_effectiveness = 1;  ///< of the building: total power over that of the devices
  double load = 1;                       ///< share of the time under load
};

}  // namespace fabricast
