// SPDX-License-Identifier: Apache-2.0
#include "fit/suggest_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "fabricast/nccl_variables.hpp"
#include "fit/mpi_environment.hpp"
#include "fit/stated_settings.hpp"
#include "readers/readers.hpp"

namespace fabricast::fit {

namespace {

using readers::contains;

/// Words of the file's name: "h200-4gpu-all_reduce-ring-ll.txt" -> h200, 4gpu, all, reduce, ring, ll.
std::set<std::string> name_words(const std::string& file) {
  std::set<std::string> words;
  std::string word;
  for (const char c : lower(std::filesystem::path(file).stem().string()) + "-") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += c;
    } else {
      words.insert(std::exchange(word, {}));
    }
  }
  return words;
}

/// What NCCL's own lines say that it did; only where no setting of the log says so.
void add_nccl_seen(const MeasuredLog& log, SuggestedLog& out) {
  const auto& seen = log.header.nccl_seen;
  const auto take = [](Keys& keys, const char* key, bool is_known, const char* value) {
    if (is_known && !has_key(keys, key)) set_key(keys, key, value);
  };
  take(out.nccl, "nvls", seen.nvls.has_value(), seen.nvls.value_or(false) ? "on" : "off");
  take(out.nccl, "p2p", !seen.has_p2p && seen.has_shm, "off");
  take(out.software, "transport", seen.has_socket && !seen.has_ib, "tcp");
  take(out.software, "gpudirect_rdma", seen.has_ib && !seen.has_gdr, "off");
}

/// What people write into file names; only where the log itself does not say.
void add_nccl_name(const MeasuredLog& log, SuggestedLog& out) {
  const auto words = name_words(log.file);
  std::string found;
  const auto take = [&](Keys& keys, const char* key, const std::string& value) {
    if (has_key(keys, key)) return;
    set_key(keys, key, value);
    found += fmt::format("{}{}: {}", found.empty() ? "" : ", ", key, value);
  };
  for (const auto* algorithm : {"ring", "tree"}) {
    if (words.contains(algorithm)) take(out.workload, "algorithm", algorithm);
  }
  for (const auto* protocol : {"ll", "ll128", "simple"}) {
    if (words.contains(protocol)) take(out.workload, "protocol", protocol);
  }
  for (const auto& word : words) {
    if (word.size() > 2 && word.starts_with("ch") && readers::parse_count(word.substr(2)))
      take(out.workload, "channels", word.substr(2));
  }
  const bool is_socket = words.contains("socket");
  if (words.contains("p2poff") || words.contains("nop2p") || is_socket) take(out.nccl, "p2p", "off");
  if (is_socket) {
    take(out.nccl, "shm", "off");
    take(out.software, "transport", "tcp");
  }
  if (!found.empty()) out.comments.push_back("from the file's name, check: " + found);
}

/// Settings of the log that became no key, unless they change no time.
void add_unread_settings(const MeasuredLog& log, SuggestedLog& out) {
  std::string unknown;
  for (const auto& [name, value] : log.header.environment) {
    if (out.read.contains(name)) continue;
    const auto* variable = nccl_variable(name);
    if (const auto of_mpi = mpi_variable_hint(name)) {
      if (!of_mpi->empty()) out.comments.push_back(fmt::format("the log also sets {}={}: {}", name, value, *of_mpi));
    } else if (variable == nullptr) {
      unknown += fmt::format("{}{}={}", unknown.empty() ? "" : ", ", name, value);
    } else if (!variable->is_timeless) {
      const auto hint = is_too_new(*variable, out) ? fmt::format("NCCL reads it from 2.{} on", variable->since)
                        : variable->hint.empty()   ? fmt::format("no value of '{}'", variable->name)
                                                   : std::string(variable->hint);
      out.comments.push_back(fmt::format("the log also sets {}={}: {}", name, value, hint));
    }
  }
  if (!unknown.empty()) out.comments.push_back("the log also sets " + unknown + ": no key stands for it");
}

/// GPUs of a topology in host order, as devices or as counts.
void add_nccl_ranks(const MeasuredLog& log, const Topology& topology, SuggestedLog& out) {
  const auto& header = log.header;
  if (!header.num_ranks) {
    out.comments.push_back("the log does not say how many GPUs took part: set gpus");
    return;
  }
  set_key(out.workload, "gpus", std::to_string(*header.num_ranks));
  const int hosts = header.num_hosts.value_or(1);
  const int host = topology.first_host_with(DeviceKind::gpu);
  const int here = topology.count(DeviceKind::gpu, host);
  const int per_host = header.ranks_per_host.value_or(*header.num_ranks / std::max(1, hosts));
  if (hosts > 1 && per_host > 0 && per_host < here) set_key(out.workload, "ranks_per_host", std::to_string(per_host));
  bool is_default = true;
  std::string devices;
  for (std::size_t i = 0; i < header.ranks.size(); ++i) {
    is_default = is_default && header.ranks[i].device == static_cast<int>(i);
    devices += fmt::format("{}{}.gpu{}", devices.empty() ? "" : ", ", topology.host_name(host), header.ranks[i].device);
  }
  const bool is_named =
      hosts == 1 && !is_default && static_cast<int>(header.ranks.size()) == *header.num_ranks &&
      std::all_of(header.ranks.begin(), header.ranks.end(), [&](const auto& r) { return r.device < here; });
  std::set<int> distinct;
  for (const auto& rank : header.ranks) distinct.insert(rank.device);
  if (!is_named || distinct.size() != header.ranks.size()) return;
  std::erase_if(out.workload, [](const auto& key) { return key.first == "gpus"; });
  set_key(out.workload, "devices", "[" + devices + "]");
}

SuggestedLog nccl_entry(const MeasuredLog& log, const Topology& topology) {
  SuggestedLog out;
  out.file = log.file;
  set_key(out.workload, "benchmark", std::string(to_string(*log.benchmark)));
  add_nccl_ranks(log, topology, out);
  if (log.header.launch) {
    set_key(out.workload, "launch", std::string(to_string(*log.header.launch)));
  } else {
    out.comments.push_back("the log does not say how operations were started: set launch (process_per_gpu assumed)");
  }
  auto version = stated_nccl_version(log);
  if (version.empty()) version = version_after(std::filesystem::path(log.file).stem().string(), "nccl");
  const bool is_by_columns = version.empty() && log.header.has_old_columns;
  if (is_by_columns) version = k_release_of_old_columns;
  if (!version.empty()) set_key(out.nccl, "version", "\"" + version + "\"");
  if (version.empty())
    out.comments.push_back("the log does not say NCCL's version: set software.nccl.version (2.28 assumed)");
  if (is_by_columns) out.comments.push_back("the table's columns are of the time before NCCL 2.13: 2.8, check");
  add_nccl_environment(log, out);
  add_nccl_seen(log, out);
  add_nccl_name(log, out);
  add_unread_settings(log, out);
  if (log.header.environment.empty() && !has_key(out.workload, "algorithm") && !has_key(out.nccl, "p2p"))
    out.comments.push_back(
        "no environment in the log: was an algorithm, protocol or transport forced (algorithm, protocol, channels, "
        "software.nccl.p2p)?");
  return out;
}

/// The profile an MPI library's name stands for; empty when the log names none.
std::string mpi_profile(const MeasuredLog& log) {
  const auto text = lower(log.title + " " + provenance(log, "software") + " " + provenance(log, "benchmark") + " " +
                          provenance(log, "interconnect"));
  if (contains(text, "mvapich")) return "mvapich2-gdr";
  if (contains(text, "cray")) return "cray-mpich";
  if (contains(text, "intel mpi") || contains(text, "intel(r) mpi")) return "intel-mpi";
  if (contains(text, "mpich")) return "mpich";
  if (contains(text, "libfabric") || contains(text, "efa")) return "open-mpi-ofi";
  if (contains(text, "ucx") || contains(text, "hpc-x")) return "open-mpi-ucx";
  return contains(text, "openib") ? "open-mpi-openib" : "";
}

/// Switches of MPI that people write into file names.
void add_mpi_name(const MeasuredLog& log, SuggestedLog& out) {
  const auto words = name_words(log.file);
  std::string found;
  const auto take = [&](const char* key, const char* value) {
    set_key(out.software, key, value);
    found += fmt::format("{}{}: {}", found.empty() ? "" : ", ", key, value);
  };
  if (words.contains("tcp")) take("transport", "tcp");
  if (words.contains("gdr0") || words.contains("nogdr")) take("gpudirect_rdma", "off");
  if (words.contains("gdrcopy0")) take("gdrcopy", "off");
  if (!found.empty()) out.comments.push_back("from the file's name, check: " + found);
}

SuggestedLog osu_entry(const MeasuredLog& log, const Topology& topology) {
  SuggestedLog out;
  out.file = log.file;
  const auto& header = log.header;
  set_key(out.workload, "benchmark", std::string(to_string(*log.benchmark)));
  const bool is_of_pairs = log.benchmark == Benchmark::osu_multi_lat || log.benchmark == Benchmark::osu_mbw_mr;
  const auto pairs = header.pairs || !is_of_pairs || !header.num_ranks ? header.pairs : *header.num_ranks / 2;
  if (pairs) set_key(out.workload, "pairs", std::to_string(*pairs));
  if (header.num_ranks && (is_collective(*log.benchmark) || header.pairs))
    set_key(out.workload, "ranks", std::to_string(*header.num_ranks));
  const bool is_one_host = header.num_hosts == 1;
  if (is_one_host && header.num_ranks)
    set_key(out.workload, "ranks_per_host", std::to_string(*header.num_ranks));
  else if (header.ranks_per_host && (is_collective(*log.benchmark) || header.pairs))
    set_key(out.workload, "ranks_per_host", std::to_string(*header.ranks_per_host));
  if (!header.num_hosts && topology.num_hosts() > 1)
    out.comments.push_back("the log does not say on how many hosts: ranks_per_host, if the ranks shared hosts");
  if (is_collective(*log.benchmark) && !header.num_ranks)
    out.comments.push_back("the log does not say how many ranks took part: set ranks (one per GPU assumed)");
  if (is_of_pairs && !pairs)
    out.comments.push_back("the log does not say how many pairs took part: set pairs (one assumed)");
  add_osu_settings(log, out);
  if (header.send_buffer == BufferPlace::device && header.receive_buffer)
    out.comments.push_back("device buffers: software.gpudirect_rdma and gdrcopy are taken as on");
  const auto profile = mpi_profile(log);
  if (!profile.empty()) set_key(out.software, "mpi", profile);
  add_mpi_environment(log, out);
  if (!has_key(out.software, "mpi"))
    out.comments.push_back(
        "the log does not name the MPI library: set software.mpi (open-mpi-openib, open-mpi-ucx, open-mpi-ofi, "
        "mvapich2-gdr, cray-mpich, mpich, intel-mpi; open-mpi-ucx assumed)");
  add_mpi_name(log, out);
  add_unread_settings(log, out);
  return out;
}

SuggestedLog perftest_entry(const MeasuredLog& log) {
  SuggestedLog out;
  out.file = log.file;
  const auto& header = log.header;
  set_key(out.workload, "benchmark", std::string(to_string(*log.benchmark)));
  add_perftest_settings(log, out);
  if (header.link_type.empty() && header.device.empty())
    out.comments.push_back("the log does not name the adapter: the topology's first one is forecast");
  if (!header.connection_type.empty() && header.connection_type != "RC")
    out.comments.push_back(fmt::format("connection type {} is forecast as RC", header.connection_type));
  return out;
}

SuggestedLog with_devices(SuggestedLog entry, const MeasuredLog& log, const Topology& topology) {
  const auto other = other_devices(log, topology);
  if (!other.empty()) entry.comments.insert(entry.comments.begin(), other);
  return entry;
}

/// iperf3 and sockperf.
SuggestedLog socket_entry(const MeasuredLog& log) {
  auto out = stated_settings(log);
  out.workload.insert(out.workload.begin(), {"benchmark", std::string(to_string(*log.benchmark))});
  return out;
}

void add_copy_entry(const MeasuredLog& log, const Keys& workload, const Keys& nccl, std::vector<SuggestedLog>& out) {
  SuggestedLog one;
  one.file = log.file;
  one.workload = {{"benchmark", "host_copies"}};
  one.workload.insert(one.workload.end(), workload.begin(), workload.end());
  one.nccl = nccl;
  out.push_back(std::move(one));
}

/// Copies of one GPU, of several at once, and between two.
std::vector<SuggestedLog> copy_entries(const MeasuredLog& log) {
  std::vector<SuggestedLog> out;
  std::set<int> counts;
  bool has_peer[2] = {false, false};
  for (const auto& copy : log.copies) {
    if (!copy.size) counts.insert(copy.num_concurrent);
    has_peer[0] = has_peer[0] || contains(copy.kind, "p2p=0");
    has_peer[1] = has_peer[1] || contains(copy.kind, "p2p=1");
  }
  counts.insert(1);
  std::erase_if(counts, [](int count) { return count < 1; });
  for (const auto* direction : {"to_host", "to_device", "both"}) {
    for (const int count : counts) {
      if (direction == std::string_view("both") && count == 1) continue;
      add_copy_entry(log, {{"gpus", std::to_string(count)}, {"direction", direction}}, {}, out);
    }
  }
  for (const int p2p : {1, 0}) {
    if (has_peer[p2p])
      add_copy_entry(log, {{"gpus", "2"}, {"direction", "to_peer"}}, p2p == 1 ? Keys{} : Keys{{"p2p", "off"}}, out);
  }
  return out;
}

/// The first GPU with its neighbour and with the last one: near and far.
std::vector<SuggestedLog> matrix_entries(const MeasuredLog& log, const Topology& topology) {
  std::vector<SuggestedLog> out;
  std::size_t num_gpus = 0;
  for (const auto& matrix : log.matrices) num_gpus = std::max(num_gpus, matrix.column_devices.size());
  for (const std::size_t other : std::set<std::size_t>{1, num_gpus > 1 ? num_gpus - 1 : 1}) {
    const auto pair = fmt::format("[{0}.gpu0, {0}.gpu{1}]", topology.host_name(0), other);
    for (const bool is_p2p : {true, false}) {
      for (const bool is_both_ways : {false, true}) {
        const bool is_there = std::any_of(log.matrices.begin(), log.matrices.end(), [&](const MeasuredMatrix& m) {
          return !m.is_latency && m.is_p2p == is_p2p && m.is_bidirectional == is_both_ways;
        });
        if (!is_there) continue;
        Keys keys{{"devices", pair}, {"direction", "to_peer"}};
        if (is_both_ways) keys.emplace_back("bidirectional", "on");
        add_copy_entry(log, keys, is_p2p ? Keys{} : Keys{{"p2p", "off"}}, out);
      }
    }
  }
  return out;
}

}  // namespace

void set_key(Keys& keys, const std::string& key, const std::string& value) {
  const auto it = std::find_if(keys.begin(), keys.end(), [&](const auto& one) { return one.first == key; });
  if (it == keys.end()) {
    keys.emplace_back(key, value);
  } else {
    it->second = value;
  }
}

bool has_key(const Keys& keys, const std::string& key) {
  return std::any_of(keys.begin(), keys.end(), [&](const auto& one) { return one.first == key; });
}

std::string flow_mapping(const Keys& keys) {
  std::string out;
  for (const auto& [key, value] : keys) out += fmt::format("{}{}: {}", out.empty() ? "" : ", ", key, value);
  return "{" + out + "}";
}

std::string software_text(const SuggestedLog& log) {
  auto keys = log.software;
  if (!log.nccl.empty()) keys.emplace_back("nccl", flow_mapping(log.nccl));
  return keys.empty() ? "" : flow_mapping(keys);
}

std::vector<SuggestedLog> suggest_entries(const MeasuredLog& table, const Topology& topology) {
  if (!table.matrices.empty()) return matrix_entries(table, topology);
  if (!table.copies.empty()) return copy_entries(table);
  if (table.rows.empty() || !table.benchmark || !readers::refusal_of(table, *table.benchmark).empty()) return {};
  switch (family_of(*table.benchmark)) {
    case BenchmarkFamily::nccl_tests:
      return {with_devices(nccl_entry(table, topology), table, topology)};
    case BenchmarkFamily::osu:
      return {osu_entry(table, topology)};
    case BenchmarkFamily::perftest:
      return {with_devices(perftest_entry(table), table, topology)};
    case BenchmarkFamily::system:
      if (table.format == LogFormat::iperf3 || table.format == LogFormat::sockperf) return {socket_entry(table)};
      break;
    case BenchmarkFamily::sharing:
    case BenchmarkFamily::traffic:
    case BenchmarkFamily::training:
      break;
  }
  return {};
}

}  // namespace fabricast::fit
