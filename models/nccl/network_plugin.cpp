// SPDX-License-Identifier: Apache-2.0
#include "nccl/network_plugin.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <set>

#include "base/version.hpp"
#include "nccl/nics.hpp"
#include "nccl/patterns.hpp"
#include "paths/transport.hpp"

namespace fabricast::models::nccl {

namespace {

constexpr std::string_view k_internal = "internal";
constexpr std::string_view k_ofi = "aws-ofi-nccl";
constexpr std::string_view k_sharp = "nccl-rdma-sharp";

// Releases of aws-ofi-nccl.
constexpr int k_first = 10000;              ///< the first whose notes were read
constexpr int k_last = 12199;               ///< the last one
constexpr int k_net_v5 = 10200;             ///< NCCL's network interface v5, without which NCCL from 2.19 on loads none
constexpr int k_reports = 10500;            ///< reports a latency for EFA
constexpr int k_forces_simple = 10600;      ///< sets the protocol itself; before, its guide tells the user to
constexpr int k_reports_by_type = 10700;    ///< the latency by type of instance
constexpr int k_allows_nvls = 10703;        ///< with NCCL from 2.18.5 on
constexpr int k_stripes_large = 10704;      ///< over its rails messages above 256 KiB, before above 8 KiB
constexpr int k_tree_chunk = 10800;         ///< NCCL_NVLSTREE_MAX_CHUNKSIZE
constexpr int k_needs_runts = 10800;        ///< needs libfabric 1.18, which sends the begin of a GPU's message at once
constexpr int k_needs_nccl_2_17 = 11000;    ///< and NCCL 2.17.1 or later
constexpr int k_nvls_chunk = 11100;         ///< and NCCL_NVLS_CHUNKSIZE, without which NCCL halts at its own 128 KiB
constexpr int k_stripes_parts = 11300;      ///< parts of 64 KiB (read at 1.15), from 1.16 on of 128 KiB (read at 1.17)
constexpr int k_general_again = 11400;      ///< the first since 1.6 that is meant for other networks too
constexpr int k_reports_new_types = 11500;  ///< of P5en and later types a latency of their own
constexpr int k_sets_buffers = 11600;       ///< NCCL_BUFFSIZE, NCCL_P2P_NET_CHUNKSIZE; its tuner is on by default

// Releases of NCCL, release_number.
constexpr int k_nccl_reads_latency = 212;  ///< network interface v5
constexpr int k_nccl_wants_v5 = 219;
constexpr int k_nccl_reads_tree_chunk = 220;

constexpr double k_efa_latency_s = 150e-6;       ///< of every type until 1.6
constexpr double k_usual_latency_s = 75e-6;      ///< of types without one of their own
constexpr double k_nccl_nvls_chunk = 128 << 10;  ///< NVLS_CHUNKSIZE of NCCL

std::string release_text(int release) {
  if (release == k_last) return fmt::format("{}.{}", release / 10000, release / 100 % 100);
  return fmt::format("{}.{}.{}", release / 10000, release / 100 % 100, release % 100);
}

std::string attribute_of(const PlanContext& context, DeviceId hca, std::string_view key) {
  return std::string(context.topology.attribute(context.topology.device(hca).type, key));
}

std::string type_of(const PlanContext& context, DeviceId hca) { return context.topology.device(hca).type; }

/// The plugin by which programs reach an adapter.
std::string usual_plugin(const PlanContext& context, DeviceId hca) {
  if (uses_tcp(context, hca)) return std::string(k_internal);
  if (!provider_of(context, hca).empty()) return std::string(k_ofi);
  auto own = attribute_of(context, hca, "nccl_plugin");
  return own.empty() ? std::string(k_internal) : own;
}

bool drives(const std::string& plugin, const std::string& usual, bool is_tcp) {
  return plugin == usual || (plugin == k_sharp && usual == k_internal && !is_tcp);
}

/// Whether logs taught what a message costs by the plugin.
bool is_taught(const PlanContext& context, DeviceId hca) {
  return context.parameters.contains(type_of(context, hca) + ".plugin_latency");
}

/// The last release of aws-ofi-nccl whose notes name a release of NCCL as the one that it supports, or an older one
/// (RELEASENOTES.md); the newest for younger ones. 0 before 2.12: what plugins of that time set changes nothing here.
int made_for(int nccl) {
  struct Made {
    int nccl, plugin;
  };
  constexpr Made k_made[] = {{212, 10400}, {216, 10500}, {217, 10600}, {218, 10703}, {219, 10800}, {220, 10801},
                             {221, 10902}, {222, 11200}, {223, 11302}, {226, 11400}, {227, 11603}, {228, k_last}};
  int plugin = 0;
  for (const auto& made : k_made)
    if (nccl >= made.nccl) plugin = made.plugin;
  return plugin;
}

/// The release whose rules hold; where none is stated, the one made for this NCCL, or the first that knows the adapter.
int ruling_release(const PlanContext& context, DeviceId hca, int stated) {
  if (stated > 0) return stated;
  const int made = made_for(release_number(context.software.nccl_version));
  return made == 0 && is_taught(context, hca)
             ? 0
             : std::max(made, plugin_release_number(attribute_of(context, hca, "plugin_since")));
}

/// NCCL is older than major.minor.patch; a release without a patch means its last one.
bool is_nccl_older(const std::string& version, int major, int minor, int patch) {
  const bool has_patch = std::count(version.begin(), version.end(), '.') > 1;
  return is_older(version, major, minor, has_patch ? patch : 0);
}

double plugin_value(const PlanContext& context, DeviceId hca, const char* field) {
  return device_value_or(context, hca, field, 0);
}

double reported_latency_s(const PlanContext& context, DeviceId hca, int release) {
  if (release < k_reports || release_number(context.software.nccl_version) < k_nccl_reads_latency) return 0;
  if (release < k_reports_by_type) return k_efa_latency_s;
  const double own = device_value_or(context, hca, "plugin_reported_latency", k_usual_latency_s);
  return release < k_reports_new_types ? std::max(own, k_usual_latency_s) : own;
}

double nvls_tree_chunk(const PlanContext& context, DeviceId hca, int release) {
  const double own = plugin_value(context, hca, "plugin_nvls_tree_chunk");
  if (release < k_tree_chunk || release_number(context.software.nccl_version) < k_nccl_reads_tree_chunk) return 0;
  return release < k_nvls_chunk ? std::min(own, k_nccl_nvls_chunk) : own;
}

/// Bytes that the RDMA protocol leaves to one rail: until 1.12 messages up to a size go by one and longer ones by all,
/// since then every rail in use has as much.
double one_rail_bytes(int release) {
  constexpr int k_kib = 1024;
  if (release < k_stripes_large) return 8 * k_kib;
  if (release < k_stripes_parts) return 256 * k_kib;
  return (release < k_sets_buffers ? 64 : 128) * k_kib;
}

std::string why_no_nvls(const PlanContext& context, int release) {
  if (release == 0) return {};
  if (release < k_allows_nvls)
    return fmt::format("aws-ofi-nccl {} switches it off, as every release before 1.7.3 does", release_text(release));
  if (is_nccl_older(context.software.nccl_version, 2, 18, 5)) return "aws-ofi-nccl switches it off before NCCL 2.18.5";
  return {};
}

/// What aws-ofi-nccl does on EFA.
void add_efa_rules(const PlanContext& context, DeviceId hca, NetworkPlugin& out) {
  const int release = ruling_release(context, hca, out.release);
  out.release = release;
  out.sends_runts = release >= k_needs_runts;
  const int lines = plugin_release_number(attribute_of(context, hca, "line_protocols_since"));
  out.is_simple_only = release >= k_forces_simple && (lines == 0 || release < lines);
  out.why_no_nvls = why_no_nvls(context, release);
  out.reported_latency_s = reported_latency_s(context, hca, release);
  out.nvls_tree_chunk = nvls_tree_chunk(context, hca, release);
  if (plugin_value(context, hca, "rails") > 1) out.one_rail_bytes = one_rail_bytes(release);
  if (release < k_sets_buffers) return;
  out.tuner = attribute_of(context, hca, "tuner");
  out.buffer_size = plugin_value(context, hca, "plugin_buffer_size");
  out.p2p_chunk = plugin_value(context, hca, "plugin_p2p_chunk");
}

SourceLocation where_written(const PlanContext& context, const Workload& workload, const char* key) {
  const auto it = context.software.locations.find(key);
  return it == context.software.locations.end() ? workload.location : it->second;
}

Diagnostic cannot_drive(const PlanContext& context, const Workload& workload, DeviceId hca, const std::string& usual) {
  const auto& name = context.software.nccl_plugin;
  const auto type = type_of(context, hca);
  const auto where = where_written(context, workload, "nccl.plugin");
  if (uses_tcp(context, hca))
    return make_error_at(where, fmt::format("'plugin: {}' over TCP: NCCL sends over its own sockets", name),
                         "leave it out, or write plugin: internal");
  const auto provider = provider_of(context, hca);
  std::string reason;
  if (!provider.empty())
    reason = fmt::format("programs reach it by libfabric ({}) only", provider);
  else if (usual != k_internal)
    reason = fmt::format("NCCL reaches it by {} only", usual);
  else if (name == k_ofi)
    reason = "it is modelled over libfabric's providers efa and cxi, which this adapter has not";
  else
    reason = "NCCL speaks verbs to it";
  const auto fix = usual == k_internal ? std::string("leave it out, or write plugin: internal")
                                       : fmt::format("write plugin: {}, or transport: tcp", usual);
  return make_error_at(where, fmt::format("'plugin: {}' cannot drive {}: {}", name, type, reason), fix);
}

/// What is wrong with a stated release on one type of adapter.
Diagnostics release_faults(const PlanContext& context, const Workload& workload, DeviceId hca) {
  const auto& software = context.software;
  const int release = plugin_release_number(software.nccl_plugin_version);
  const int nccl = release_number(software.nccl_version);
  const auto fault = [&](std::string message, std::string fix) {
    return Diagnostics{make_error_at(where_written(context, workload, "nccl.plugin_version"), std::move(message), fix)};
  };
  if (release < k_first || release > k_last)
    return fault(fmt::format("no rules of aws-ofi-nccl {} are known", software.nccl_plugin_version),
                 "those of 1.0 to 1.21 are");
  if (release >= k_needs_nccl_2_17 && nccl < 217)
    return fault(
        fmt::format("aws-ofi-nccl {} needs NCCL 2.17.1, this is {}", release_text(release), software.nccl_version),
        "write a release before 1.10, or a later NCCL");
  if (release < k_net_v5 && nccl >= k_nccl_wants_v5)
    return fault(fmt::format("NCCL {} does not load aws-ofi-nccl {}: it takes network interfaces from v5 on",
                             software.nccl_version, release_text(release)),
                 "write plugin_version from 1.2 on");
  const auto since = attribute_of(context, hca, "plugin_since");
  if (release < plugin_release_number(since))
    return fault(fmt::format("aws-ofi-nccl {} does not know {}, it came with {}", release_text(release),
                             type_of(context, hca), since),
                 fmt::format("write plugin_version from {} on", since));
  return {};
}

}  // namespace

int plugin_release_number(std::string_view text) {
  if (text.starts_with('v')) text.remove_prefix(1);
  // Tags of releases for one cloud end in its name.
  const auto dash = text.find('-');
  const auto tag = dash == std::string_view::npos ? std::string_view() : text.substr(dash + 1);
  if (!tag.empty() && std::ranges::all_of(tag, [](unsigned char c) { return std::isalpha(c) != 0; }))
    text.remove_suffix(tag.size() + 1);
  int major = 0;
  int minor = 0;
  int patch = 0;
  int used = 0;
  const std::string plain(text);
  const int found = std::sscanf(plain.c_str(), "%2d.%2d%n.%2d%n", &major, &minor, &used, &patch, &used);
  const bool is_whole = found >= 2 && used == static_cast<int>(plain.size()) && major > 0 && minor >= 0 && patch >= 0;
  return is_whole ? 10000 * major + 100 * minor + patch : 0;
}

NetworkPlugin network_plugin(const PlanContext& context, DeviceId hca) {
  NetworkPlugin out;
  if (hca.value < 0) return out;
  const auto& software = context.software;
  out.name = software.nccl_plugin.empty() ? usual_plugin(context, hca) : software.nccl_plugin;
  if (out.name == k_ofi) {
    out.provider = provider_of(context, hca);
    out.release = plugin_release_number(software.nccl_plugin_version);
    if (out.provider == "efa") add_efa_rules(context, hca, out);
  } else {
    out.is_simple_only = plugin_value(context, hca, "plugin_simple_only") > 0;
    out.buffer_size = plugin_value(context, hca, "plugin_buffer_size");
    out.p2p_chunk = plugin_value(context, hca, "plugin_p2p_chunk");
  }
  return out;
}

Diagnostics plugin_faults(const PlanContext& context, const Workload& workload, const std::vector<DeviceId>& hcas) {
  const auto& software = context.software;
  std::set<std::string> seen;
  for (const auto hca : hcas) {
    if (!seen.insert(type_of(context, hca)).second) continue;
    const auto usual = usual_plugin(context, hca);
    if (!software.nccl_plugin.empty() && !drives(software.nccl_plugin, usual, uses_tcp(context, hca)))
      return {cannot_drive(context, workload, hca, usual)};
    if (software.nccl_plugin_version.empty()) continue;
    if (auto faults = release_faults(context, workload, hca); !faults.empty()) return faults;
  }
  return {};
}

std::vector<GivenUsed> plugin_settings(const PlanContext& context, const NetworkPlugin& plugin, DeviceId hca) {
  const auto& software = context.software;
  if (plugin.name.empty() || (software.nccl_plugin.empty() && plugin.provider.empty())) return {};
  auto given = software.nccl_plugin.empty() ? std::string("auto") : software.nccl_plugin;
  if (!software.nccl_plugin_version.empty()) given += " " + software.nccl_plugin_version;
  auto used = plugin.name;
  if (plugin.release > 0) used += " " + release_text(plugin.release);
  if (!plugin.provider.empty()) used += fmt::format(" ({})", plugin.provider);
  std::vector<std::string> does;
  if (plugin.release > 0 && software.nccl_plugin_version.empty())
    does.push_back(fmt::format("made for NCCL {}", software.nccl_version));
  if (plugin.is_simple_only) does.emplace_back("it sets NCCL_PROTO=simple");
  if (plugin.reported_latency_s > 0)
    does.push_back(fmt::format("reports {:.0f} us to NCCL's planning", plugin.reported_latency_s * 1e6));
  if (plugin.buffer_size > 0) does.push_back(fmt::format("sets NCCL_BUFFSIZE={:.0f}", plugin.buffer_size));
  if (plugin.p2p_chunk > 0) does.push_back(fmt::format("sets NCCL_P2P_NET_CHUNKSIZE={:.0f}", plugin.p2p_chunk));
  auto reason = does.empty() ? fmt::format("programs reach {} by it", type_of(context, hca))
                             : fmt::format("{}", fmt::join(does, ", "));
  return {{"network plugin", std::move(given), std::move(used), std::move(reason)}};
}

std::vector<std::string> plugin_assumptions(const PlanContext& context, const NetworkPlugin& plugin, DeviceId hca,
                                            int num_hosts) {
  if (plugin.provider.empty() || num_hosts < 2) return {};
  std::vector<std::string> out;
  if (plugin.provider == "cxi" && plugin.release >= k_reports_by_type && plugin.release < k_general_again)
    out.push_back(fmt::format("aws-ofi-nccl {} is meant for EFA only, by its notes; it is taken to work over {}",
                              release_text(plugin.release), type_of(context, hca)));
  const auto gpus = context.topology.devices(DeviceKind::gpu, context.topology.host_of(hca));
  if (plugin.provider == "cxi" && !gpus.empty() && gdr_level(context, gpus.front()) < Distance::node)
    out.push_back(
        fmt::format("GPUDirect RDMA is used up to {}; sites with Slingshot set NCCL_NET_GDR_LEVEL=PHB (gdr_level: phb)",
                    to_string(gdr_level(context, gpus.front()))));
  if (plugin.provider != "efa") return out;
  if (is_taught(context, hca) && plugin.release > 0)
    out.push_back(
        fmt::format("a message costs by aws-ofi-nccl {} what logs of 2019 to 2021 taught: of its releases the settings "
                    "are known, not the times",
                    release_text(plugin.release)));
  if (const double runt = plugin_value(context, hca, "libfabric_runt"); runt > 0 && plugin.release > 0)
    out.push_back(
        plugin.sends_runts
            ? fmt::format("libfabric is 1.18 or later, which this plugin needs: messages out of GPU memory go "
                          "at once up to {}, through buffers at the receiver",
                          to_string(Bytes{static_cast<std::int64_t>(runt)}))
            : std::string("libfabric is of the plugin's time: messages out of GPU memory are announced and "
                          "read at any size"));
  if (plugin.buffer_size > 0)
    out.emplace_back(
        "larger buffers (NCCL_BUFFSIZE of the plugin) lengthen chunks, what they gain in bandwidth no log has taught");
  if (plugin.release > 0 && plugin.release < k_forces_simple)
    out.push_back(
        fmt::format("aws-ofi-nccl {} leaves the protocol to the user: its guide says NCCL_PROTO=simple (protocol: "
                    "simple)",
                    release_text(plugin.release)));
  if (!plugin.tuner.empty() && num_hosts > 2)
    out.emplace_back(
        "the tuner of aws-ofi-nccl chooses algorithm and protocol by its regions of sizes and ranks, those of its "
        "newest "
        "releases; where it has none NCCL's own tables choose");
  return out;
}

int queue_pairs_of(const PlanContext& context, DeviceId hca) {
  const int asked = context.software.nccl_ib_qps;
  if (asked == 1 || hca.value < 0 || uses_tcp(context, hca)) return 1;
  return why_queue_pairs_unread(context, "ib_qps_per_connection").empty() ? asked : 1;
}

bool splits_over_queue_pairs(const Software& software) {
  return software.nccl_ib_split_data.value_or(release_number(software.nccl_version) < 220);
}

std::string why_queue_pairs_unread(const PlanContext& context, std::string_view key) {
  const auto& topology = context.topology;
  const auto opened = [&](int host) { return opened_hcas(context, topology.device_in_host(host, DeviceKind::gpu, 0)); };
  const auto here = opened(topology.first_host_with(DeviceKind::gpu));
  const auto there = opened(topology.last_host_with(DeviceKind::gpu));
  if (here.empty() || there.empty()) return ": the hosts have no adapter";
  if (uses_tcp(context, here.front())) return ": NCCL does not speak verbs over TCP";
  const auto name = network_plugin(context, here.front()).name;
  if (name != k_internal && name != k_sharp) return fmt::format(": {} reads no settings of verbs", name);
  if (key == "ib_split_data_on_qps" && context.software.nccl_ib_qps == 1)
    return ": a connection has one queue pair, see `ib_qps_per_connection`";
  const auto links = [&](DeviceId from, DeviceId to, int pair) {
    const auto path = topology.path_between_hcas(from, to, flow_of_queue_pair(context.seed, pair));
    return path ? path->links : std::vector<LinkId>{};
  };
  constexpr int k_tries = 16;
  for (const auto from : here)
    for (const auto to : there)
      for (int pair = 1; pair < k_tries; ++pair)
        if (links(from, to, pair) != links(from, to, 0)) return {};
  return topology.is_infiniband() ? ": InfiniBand routes by destination, all queue pairs of a connection take one way"
                                  : ": there is one way between two adapters";
}

std::string why_plugin_unread(const PlanContext& context, std::string_view key, bool crosses_hosts,
                              bool asks_for_collnet) {
  const auto& topology = context.topology;
  const auto host = topology.first_host_with(DeviceKind::gpu);
  const auto hcas = plugin_hcas(context, topology.device_in_host(host, DeviceKind::gpu, 0));
  if (hcas.empty()) return ": the hosts have no adapter";
  const auto plugin = network_plugin(context, hcas.front());
  const bool has_rules = plugin.is_simple_only || plugin.buffer_size > 0 || !plugin.why_no_nvls.empty();
  if (!crosses_hosts && !has_rules) return ": nothing crosses hosts";
  if (key == "plugin_version")
    return plugin.provider == "efa" ? "" : ": of its releases nothing that is modelled differs on this adapter";
  if (has_rules || plugin.release > 0) return {};
  if (asks_for_collnet && plugin.provider.empty()) return {};
  if (plugin.name == k_sharp) return ": it speaks verbs as NCCL itself does, `collnet` of an all-reduce is its own";
  return fmt::format(": NCCL reaches {} by it anyway", type_of(context, hcas.front()));
}

}  // namespace fabricast::models::nccl
