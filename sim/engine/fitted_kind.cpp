// SPDX-License-Identifier: Apache-2.0
#include "engine/fitted_kind.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "fabricast/scatter.hpp"

namespace fabricast::engine {

namespace {

constexpr double k_foreign_share = 0.5;  ///< of the time, from what no log showed, that makes a row foreign
constexpr double k_size_weight = 0.25;   ///< doublings of the size count less: curves are smooth beyond their ends
constexpr std::string_view k_ranks = "model.fitted_ranks.";

std::string word(std::string_view text) {
  std::string out(text);
  for (auto& c : out) {
    const bool is_plain = ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '-';
    if (!is_plain) c = '-';
  }
  return out;
}

std::string joined(const std::set<std::string>& types) {
  std::string out;
  for (const auto& type : types) out += (out.empty() ? "" : "_") + word(type);
  return out.empty() ? "none" : out;
}

/// Hosts of the ranks; all of the topology where not every rank is listed.
std::set<int> hosts_of(const Topology& topology, const std::vector<std::string>& ranks) {
  std::set<int> hosts;
  for (const auto& rank : ranks) {
    const auto device = topology.find_device(rank);
    if (device) {
      hosts.insert(topology.host_of(*device));
      continue;
    }
    for (int host = 0; host < topology.num_hosts(); ++host) hosts.insert(host);
  }
  return hosts;
}

std::set<std::string> types_in(const Topology& topology, const std::set<int>& hosts, DeviceKind kind) {
  std::set<std::string> types;
  std::set<int> shapes;
  for (const int host : hosts) {
    if (!shapes.insert(topology.host_shape(host)).second) continue;
    for (const auto device : topology.devices(kind, host)) types.insert(topology.device(device).type);
  }
  return types;
}

std::set<std::string> processors_of(const Topology& topology, const std::set<int>& hosts) {
  std::set<std::string> types;
  for (const int host : hosts) types.insert(topology.host_spec(host).processor);
  return types;
}

/// GPUs of the listed ranks, those of all hosts where not every rank is listed, processors where ranks have no GPU.
std::set<std::string> device_types(const Topology& topology, const std::set<int>& hosts,
                                   const std::vector<std::string>& ranks) {
  std::set<std::string> types;
  bool is_complete = true;
  for (const auto& rank : ranks) {
    const auto device = topology.find_device(rank);
    is_complete = is_complete && device.has_value();
    if (device && topology.kind(*device) == DeviceKind::gpu) types.insert(topology.device(*device).type);
  }
  if (!types.empty() && !is_complete) types = types_in(topology, hosts, DeviceKind::gpu);
  return types.empty() ? processors_of(topology, hosts) : types;
}

bool is_of_tcp(const Row& row) {
  return std::ranges::any_of(row.terms, [](const Term& term) {
    return is_of_sockets_between_hosts(term.parameter) || term.parameter.starts_with("tcp.") ||
           term.parameter.starts_with("mpi.tcp.") || term.parameter.starts_with("mpi.open-mpi-ucx-tcp.");
  });
}

std::optional<Kind> kind_from(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (c == '.')
      words.emplace_back();
    else
      words.back() += c;
  }
  if (words.size() != 5) return std::nullopt;
  return Kind{words[0], words[1], words[2], words[3], words[4], {}};
}

/// Kinds that the fit had logs of.
std::vector<Kind> recorded(const ParameterSet& parameters) {
  std::vector<Kind> kinds;
  for (auto it = parameters.all().lower_bound(k_ranks); it != parameters.all().end(); ++it) {
    if (!it->first.starts_with(k_ranks)) break;
    if (auto kind = kind_from(std::string_view(it->first).substr(k_ranks.size()))) kinds.push_back(std::move(*kind));
  }
  return kinds;
}

/// Ranks and transport; adapters that a host has beside matter over the network only.
bool is_same_system(const Kind& one, const Kind& other) {
  return one.devices == other.devices && one.adapters == other.adapters && one.transport == other.transport;
}

void add_counts(const Row& row, const std::string& kind, const std::string& way, int num_ranks, int num_hosts,
                const ParameterSet& parameters, bool is_step, Acquaintance& out) {
  const double counts = std::max(doublings_above(parameters, "model.fitted_ranks." + kind, num_ranks),
                                 doublings_above(parameters, "model.fitted_hosts." + kind, num_hosts));
  if (counts > 0)
    out.in.push_back(fmt::format("more than the {:.0f} ranks on {:.0f} hosts that the logs of the fit had",
                                 parameters.value_or("model.fitted_ranks." + kind, 0),
                                 parameters.value_or("model.fitted_hosts." + kind, 0)));
  out.doublings = std::max(out.doublings, counts);
  if (is_step) return;
  const auto size = static_cast<double>(row.size.value);
  double sizes = doublings_above(parameters, "model.fitted_size_high." + kind + "." + way, size);
  const double low = parameters.value_or("model.fitted_size_low." + kind + "." + way, 0);
  if (size < low) sizes = std::log2(low / std::max(1.0, size));
  if (sizes > 0) out.in.emplace_back("sizes beyond those of the logs that the parameters were fitted to");
  out.doublings += k_size_weight * sizes;
}

void add_unseen(const Row& row, const std::string& kind, const ParameterSet& parameters, Acquaintance& out) {
  for (const auto& [parameter, share] : shares_of(row)) {
    if (!parameters.contains(parameter)) continue;
    const double seen = parameters.value_or("model.fitted_share." + kind + "." + parameter, 0);
    if (share > seen) out.unseen.push_back({share - seen, seen});
  }
  if (out.unseen_share() > k_foreign_share)
    out.in.emplace_back("times that rest by more than half on what no log of the fit showed");
}

/// Why no log of the fit is of this kind; empty where some are.
std::string foreign(const Kind& kind, const ParameterSet& parameters) {
  const auto kinds = recorded(parameters);
  const auto name = kind.name();
  const auto over = kind.adapters == "none" ? std::string() : fmt::format(" over {}", kind.adapters);
  const auto by = kind.transport == "none" ? std::string() : fmt::format(" by {}", kind.transport);
  if (std::ranges::none_of(kinds, [&](const Kind& one) { return is_same_system(one, kind); }))
    return fmt::format("no log of the fit is of {}{}{}: the band is that of a system which no fit knows", kind.devices,
                       over, by);
  if (std::ranges::none_of(kinds, [&](const Kind& one) { return one.name() == name; }))
    return fmt::format("no log of the fit is of {} {}: the band is that without a fit", kind.benchmark,
                       kind.hosts == "one" ? "in one host" : "over several hosts");
  if (!parameters.contains("model.fitted_size_high." + name + "." + kind.way))
    return fmt::format("no row of the fit's logs went by {}: the band is that without a fit", kind.way);
  return {};
}

/// Of a training step nearly all is work of its GPUs, which logs of one of them show; exchanges they show where the
/// logs are of the kind itself, on more than one GPU.
Acquaintance of_step(const Row& row, const Kind& kind, int num_ranks, int num_hosts, const ParameterSet& parameters) {
  Acquaintance out;
  out.has_record = true;
  const auto kinds = recorded(parameters);
  auto known = std::ranges::find(kinds, kind.name(), &Kind::name);
  const bool is_whole = known != kinds.end();
  if (!is_whole)
    known = std::ranges::find_if(
        kinds, [&](const Kind& one) { return one.benchmark == kind.benchmark && one.devices == kind.devices; });
  if (known == kinds.end()) {
    out.in.push_back(
        fmt::format("no log of the fit is of {} on {}: the band is that without a fit", kind.benchmark, kind.devices));
    return out;
  }
  const auto name = known->name();
  out.is_of_kind = true;
  out.has_exchanged = is_whole && parameters.value_or(std::string(k_ranks) + name, 0) > 1;
  add_counts(row, name, kind.way, num_ranks, num_hosts, parameters, true, out);
  return out;
}

}  // namespace

std::string Kind::name() const { return fmt::format("{}.{}.{}.{}.{}", benchmark, devices, adapters, transport, hosts); }

double Acquaintance::unseen_share() const {
  double sum = 0;
  for (const auto& one : unseen) sum += one.share;
  return sum;
}

Kind kind_of(const Topology& topology, Benchmark benchmark, int num_hosts, const std::vector<std::string>& ranks,
             const Row& row) {
  const auto hosts = hosts_of(topology, ranks);
  const bool is_over_network = num_hosts > 1;
  Kind kind;
  kind.benchmark = std::string(to_string(benchmark));
  kind.devices = joined(device_types(topology, hosts, ranks));
  kind.adapters = is_over_network ? joined(types_in(topology, hosts, DeviceKind::hca)) : "none";
  kind.transport = is_of_tcp(row) ? "tcp" : (is_over_network ? "rdma" : "none");
  kind.hosts = is_over_network ? "several" : "one";
  kind.way = fmt::format("{}-{}", word(row.algorithm), word(row.protocol));
  return kind;
}

std::map<std::string, double> shares_of(const Row& row) {
  std::map<std::string, double> shares;
  if (row.time.ps <= 0) return shares;
  for (const auto& term : row.terms) shares[term.parameter] += term.time.seconds() / row.time.seconds();
  return shares;
}

bool has_record(const ParameterSet& parameters) {
  const auto it = parameters.all().lower_bound(k_ranks);
  return it != parameters.all().end() && it->first.starts_with(k_ranks);
}

double doublings_above(const ParameterSet& parameters, const std::string& name, double value) {
  const auto* largest = parameters.find(name);
  if (largest == nullptr || largest->value <= 0 || value <= largest->value) return 0;
  return std::log2(value / largest->value);
}

Acquaintance acquaintance(const Row& row, const Kind& kind, int num_ranks, int num_hosts,
                          const ParameterSet& parameters, bool is_step) {
  Acquaintance out;
  out.has_record = has_record(parameters);
  if (!out.has_record) return out;
  if (is_step) return of_step(row, kind, num_ranks, num_hosts, parameters);
  const auto name = kind.name();
  if (auto why = foreign(kind, parameters); !why.empty()) {
    out.in.push_back(std::move(why));
    return out;
  }
  out.is_of_kind = true;
  out.has_exchanged = parameters.value_or(std::string(k_ranks) + name, 0) > 1;
  add_counts(row, name, kind.way, num_ranks, num_hosts, parameters, false, out);
  add_unseen(row, name, parameters, out);
  return out;
}

}  // namespace fabricast::engine
