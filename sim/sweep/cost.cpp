// SPDX-License-Identifier: Apache-2.0
#include "sweep/cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "fabricast/virtualization.hpp"

namespace fabricast::sweep {

namespace {

constexpr const char* k_electricity = "kWh of electricity a year";
constexpr double k_hours_per_year = 8766;        ///< 365.25 days
constexpr double k_seconds_per_metre = 5.05e-9;  ///< as links are built (sim/topology/build_topology.cpp)

double board_watts(const ParameterSet& parameters, const std::string& gpu) {
  return parameters.value_or(gpu, "tdp_watts", 0);
}

/// What a host's power limit takes from what a GPU would draw.
double spared_watts(const Parts::Hosts& hosts, double drawn) {
  return std::max(0.0, drawn - hosts.gpu_power_limit.value_or(drawn));
}

int sum_of(const std::map<std::string, int>& counts) {
  int total = 0;
  for (const auto& entry : counts) total += entry.second;
  return total;
}

/// Modes of one host as licences name them.
std::vector<std::string> worn_by(const Virtualization& guest) {
  std::vector<std::string> out{std::string(to_string(guest.mode))};
  if (!guest.is_virtual()) return out;
  for (const auto word : {to_string(guest.hypervisor), to_string(guest.gpu), to_string(guest.nic)})
    out.emplace_back(word);
  out.emplace_back("virtual");
  return out;
}

class Biller {
 public:
  Biller(const Parts& parts, const CostModel& model, const ParameterSet& parameters)
      : parts_(parts), model_(model), parameters_(parameters) {}

  Bill make() {
    for (const auto& hosts : parts_.hosts) add_hosts(hosts);
    for (const auto& entry : parts_.switches) add("switch", entry.first, entry.second);
    if (model_.prices.contains("switch_port")) {
      for (const auto& entry : parts_.ports) add("switch_port", entry.first, entry.second);
    }
    for (const auto& kind : parts_.cables) {
      for (const auto& length : kind.second) add("cable", kind.first, length.second, length.first);
    }
    for (const auto& hosts : parts_.hosts) add_licences(hosts);
    add_rooms();
    total();
    for (const auto& kind : missing_kinds_)
      bill_.notes.push_back(fmt::format("the cost model '{}' prices no {}: left out", model_.name, kind));
    return std::move(bill_);
  }

 private:
  /// The price of a type; absent kinds are left out and noted, absent types are a fault.
  const Price* price_of(const std::string& kind, const std::string& type) {
    const auto list = model_.prices.find(kind);
    if (list == model_.prices.end()) {
      missing_kinds_.insert(kind == "hca" ? "adapter" : kind);
      return nullptr;
    }
    auto found = list->second.find(type);
    if (found == list->second.end()) found = list->second.find("other");
    if (found != list->second.end()) return &found->second;
    const auto fault =
        fmt::format("the cost model '{}' has no price of {} '{}': add it, or `other`", model_.name, kind, type);
    if (std::ranges::find(bill_.faults, fault) == bill_.faults.end()) bill_.faults.push_back(fault);
    return nullptr;
  }

  void add(const std::string& kind, const std::string& type, double count, double metres = 0) {
    if (const auto* price = price_of(kind, type)) add_line(*price, fmt::format("{} {}", kind, type), count, metres);
  }

  void add_line(const Price& price, const std::string& what, double count, double metres = 0) {
    const double extra = price.per_metre * metres;
    const auto length = metres > 0 && price.per_metre > 0 ? fmt::format(", {:.3g} m", metres) : std::string();
    bill_.lines.push_back({what + length, count, count * (price.price + extra), count * price.per_year,
                           count * (price.low + extra), count * (price.high + extra), price.source, price.is_assumed});
    bill_.watts += count * price.watts;
    bill_.rack_units += count * price.rack_units;
  }

  void add_hosts(const Parts::Hosts& hosts) {
    const auto* host = price_of("host", hosts.type);
    if (host != nullptr) add_line(*host, "host " + hosts.type, hosts.count);
    const auto is_included = [&](const char* kind) {
      return host != nullptr && std::ranges::find(host->includes, kind) != host->includes.end();
    };
    for (const auto& entry : hosts.gpus) {
      const double count = static_cast<double>(entry.second) * hosts.count;
      const Price* price = is_included("gpu") ? nullptr : price_of("gpu", entry.first);
      if (price != nullptr) add_line(*price, "gpu " + entry.first, count);
      // Board power of the catalogue, unless a price or a host that includes the GPU states power of its own.
      const bool has_own = price != nullptr && price->watts > 0;
      const bool is_stated = has_own || (is_included("gpu") && host->watts > 0);
      const double drawn = has_own ? price->watts : board_watts(parameters_, entry.first);
      if (!is_stated) bill_.watts += count * drawn;
      bill_.watts -= count * spared_watts(hosts, drawn);
    }
    if (is_included("hca")) return;
    for (const auto& entry : hosts.hcas) add("hca", entry.first, static_cast<double>(entry.second) * hosts.count);
  }

  void add_licences(const Parts::Hosts& hosts) {
    for (const auto& licence : model_.licences) {
      const bool is_due = licence.when.empty() || std::ranges::any_of(licence.when, [&](const std::string& word) {
                            return std::ranges::find(hosts.worn, word) != hosts.worn.end();
                          });
      if (!is_due) continue;
      const int each = licence.per == "gpu" ? sum_of(hosts.gpus) : licence.per == "socket" ? hosts.sockets : 1;
      add_line(licence.price, "licence " + licence.name, static_cast<double>(each) * hosts.count);
    }
  }

  void add_rooms() {
    if (model_.rack_unit)
      bill_.lines.push_back({"rack units", bill_.rack_units, bill_.rack_units * model_.rack_unit->price,
                             bill_.rack_units * model_.rack_unit->per_year, bill_.rack_units * model_.rack_unit->low,
                             bill_.rack_units * model_.rack_unit->high, model_.rack_unit->source,
                             model_.rack_unit->is_assumed});
    if (!model_.kilowatt_hour) return;
    const double hours = bill_.watts * 1e-3 * model_.power_usage_effectiveness * model_.load * k_hours_per_year;
    bill_.lines.push_back({k_electricity, hours, 0, hours * model_.kilowatt_hour->price, 0, 0,
                           model_.kilowatt_hour->source, model_.kilowatt_hour->is_assumed});
    electricity_ = {hours * model_.kilowatt_hour->price, hours * model_.kilowatt_hour->low,
                    hours * model_.kilowatt_hour->high};
  }

  /// Lines are independent of each other; the devices of a line share one price.
  void total() {
    double below = 0;
    double above = 0;
    for (const auto& line : bill_.lines) {
      bill_.capital.value += line.once;
      bill_.running.value += line.per_year * model_.years;
      below += std::pow(line.once - line.low, 2);
      above += std::pow(line.high - line.once, 2);
    }
    bill_.capital.low = bill_.capital.value - std::sqrt(below);
    bill_.capital.high = bill_.capital.value + std::sqrt(above);
    const double less = (electricity_.value - electricity_.low) * model_.years;
    const double more = (electricity_.high - electricity_.value) * model_.years;
    bill_.running.low = bill_.running.value - less;
    bill_.running.high = bill_.running.value + more;
    bill_.total.value = bill_.capital.value + bill_.running.value;
    bill_.total.low = bill_.total.value - std::hypot(std::sqrt(below), less);
    bill_.total.high = bill_.total.value + std::hypot(std::sqrt(above), more);
  }

  const Parts& parts_;
  const CostModel& model_;
  const ParameterSet& parameters_;
  Bill bill_;
  Estimate electricity_;
  std::set<std::string> missing_kinds_;
};

}  // namespace

int Parts::num_hosts() const {
  int total = 0;
  for (const auto& one : hosts) total += one.count;
  return total;
}
int Parts::num_gpus() const {
  int total = 0;
  for (const auto& one : hosts) total += one.count * sum_of(one.gpus);
  return total;
}
int Parts::num_hcas() const {
  int total = 0;
  for (const auto& one : hosts) total += one.count * sum_of(one.hcas);
  return total;
}
int Parts::num_switches() const { return sum_of(switches); }
int Parts::num_cables() const {
  int total = 0;
  for (const auto& kind : cables) {
    for (const auto& entry : kind.second) total += entry.second;
  }
  return total;
}

Parts parts_of(const Topology& topology) {
  Parts out;
  int first = 0;
  for (const auto& group : topology.spec().hosts) {
    Parts::Hosts hosts;
    hosts.type = group.host.type.empty() ? "other" : group.host.type;
    hosts.count = group.count;
    hosts.sockets = group.host.num_sockets;
    for (const auto& device : group.host.devices) {
      if (device.kind == DeviceKind::gpu) ++hosts.gpus[device.type];
      if (device.kind == DeviceKind::hca) ++hosts.hcas[device.type];
    }
    if (const auto& limit = group.host.gpu_power_limit) hosts.gpu_power_limit = limit->watts;
    hosts.worn = worn_by(topology.virtualization(first));
    first += group.count;
    out.hosts.push_back(std::move(hosts));
  }
  for (const auto id : topology.devices(DeviceKind::network_switch)) ++out.switches[topology.device(id).type];
  for (int id = topology.first_network_link(); id < topology.num_links(); id += 2) {
    const auto link = topology.link({id});
    int num_switches = 0;
    for (const auto end : {link.from, link.to}) {
      if (topology.kind(end) != DeviceKind::network_switch) continue;
      ++num_switches;
      ++out.ports[topology.device(end).type];
    }
    const double metres = std::round(link.latency.seconds() / k_seconds_per_metre * 1000) / 1000;
    ++out.cables[num_switches == 2 ? "switch" : "host"][metres];
  }
  return out;
}

std::pair<double, double> price_ends(const CostLine& line, const CostModel* model, std::string_view sum) {
  if (line.what != k_electricity)
    return sum == "running_cost" ? std::pair(0.0, 0.0) : std::pair(line.low - line.once, line.high - line.once);
  if (sum == "capital_cost" || model == nullptr || !model->kilowatt_hour || model->kilowatt_hour->price <= 0)
    return {0, 0};
  const auto& price = *model->kilowatt_hour;
  const double paid = line.per_year * model->years;
  return {paid * (price.low / price.price - 1), paid * (price.high / price.price - 1)};
}

Bill bill_of(const Parts& parts, const CostModel* model, const ParameterSet& parameters) {
  if (model != nullptr) return Biller(parts, *model, parameters).make();
  Bill bill;
  for (const auto& hosts : parts.hosts) {
    for (const auto& entry : hosts.gpus) {
      const double board = board_watts(parameters, entry.first);
      bill.watts += (board - spared_watts(hosts, board)) * entry.second * hosts.count;
    }
  }
  return bill;
}

}  // namespace fabricast::sweep
