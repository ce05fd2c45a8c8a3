// SPDX-License-Identifier: Apache-2.0
#include "fit/stated_settings.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

#include "readers/readers.hpp"

namespace fabricast::fit {

namespace {

using readers::contains;

bool is_on(const std::string& value) { return !value.empty() && value != "0"; }

}  // namespace

std::string setting(const MeasuredLog& log, const char* name) {
  const auto it = log.header.environment.find(name);
  return it == log.header.environment.end() ? std::string() : it->second;
}

std::string provenance(const MeasuredLog& log, const char* key) {
  const auto it = log.provenance.find(key);
  return it == log.provenance.end() ? std::string() : it->second;
}

std::string version_after(std::string_view text, std::string_view name) {
  const auto at = text.find(name);
  if (at == std::string_view::npos) return {};
  auto rest = readers::trim(text.substr(at + name.size()));
  const auto end = rest.find_first_not_of("0123456789.");
  std::string version(rest.substr(0, end));
  while (!version.empty() && version.back() == '.') version.pop_back();
  // "2.4-2.8" names no release.
  const auto behind = end == std::string_view::npos ? std::string_view() : rest.substr(end);
  const auto number = behind.substr(0, behind.find_first_not_of("-0123456789."));
  if (number.starts_with('-') && contains(number, ".")) return {};
  return contains(version, ".") ? version : std::string();
}

std::string stated_nccl_version(const MeasuredLog& log) {
  const auto& version = log.header.nccl_version;
  return version.empty() ? version_after(provenance(log, "software"), "NCCL") : version;
}

void add_nccl_environment(const MeasuredLog& log, SuggestedLog& out) {
  static const std::set<std::string> algorithms{"ring", "tree", "nvls", "nvlstree", "collnetdirect", "pat"};
  static const std::set<std::string> protocols{"ll", "ll128", "simple"};
  auto algorithm = lower(setting(log, "NCCL_ALGO"));
  if (setting(log, "NCCL_TREE_THRESHOLD") == "0") algorithm = "ring";
  if (algorithms.contains(algorithm))
    set_key(out.workload, "algorithm",
            algorithm == "nvlstree" ? "nvls_tree" : (algorithm == "collnetdirect" ? "collnet_direct" : algorithm));
  const auto protocol = lower(setting(log, "NCCL_PROTO"));
  if (protocols.contains(protocol)) set_key(out.workload, "protocol", protocol);
  for (const auto* unit : {"NCHANNELS", "CTAS"}) {
    const auto least = setting(log, fmt::format("NCCL_MIN_{}", unit).c_str());
    const auto most = setting(log, fmt::format("NCCL_MAX_{}", unit).c_str());
    if (!most.empty() && (most == least || most == "1") && readers::parse_count(most))
      set_key(out.workload, "channels", most);
  }
  if (is_on(setting(log, "NCCL_P2P_DISABLE")) || setting(log, "NCCL_P2P_LEVEL") == "LOC")
    set_key(out.nccl, "p2p", "off");
  if (is_on(setting(log, "NCCL_SHM_DISABLE"))) set_key(out.nccl, "shm", "off");
  if (is_on(setting(log, "NCCL_PXN_DISABLE"))) set_key(out.nccl, "pxn", "off");
  for (const auto* cross : {"0", "1"})
    if (setting(log, "NCCL_CROSS_NIC") == cross) set_key(out.nccl, "cross_nic", cross);
  if (is_on(setting(log, "NCCL_COLLNET_ENABLE"))) set_key(out.nccl, "collnet", "on");
  struct Count {
    const char* variable;
    const char* key;
    int least, most;
  };
  for (const auto& one : {Count{"NCCL_SOCKET_NTHREADS", "socket_nthreads", 0, 16},
                          Count{"NCCL_NSOCKS_PERTHREAD", "nsocks_perthread", 1, 64},
                          Count{"NCCL_IB_QPS_PER_CONNECTION", "ib_qps_per_connection", 1, 128}}) {
    const auto count = readers::parse_count(setting(log, one.variable));
    if (count && *count >= one.least && *count <= one.most) set_key(out.nccl, one.key, std::to_string(*count));
  }
  if (setting(log, "NCCL_NVLS_ENABLE") == "0") set_key(out.nccl, "nvls", "off");
  if (is_on(setting(log, "NCCL_IB_DISABLE")) || lower(setting(log, "NCCL_NET")) == "socket")
    set_key(out.software, "transport", "tcp");
  // By name, or by the number that older releases took.
  static const std::map<std::string, std::string> levels{{"1", "pix"},   {"pix", "pix"}, {"2", "pxb"},
                                                         {"pxb", "pxb"}, {"3", "phb"},   {"phb", "phb"},
                                                         {"4", "sys"},   {"5", "sys"},   {"sys", "sys"}};
  const auto level = lower(setting(log, "NCCL_NET_GDR_LEVEL"));
  if (level == "0" || level == "loc") set_key(out.software, "gpudirect_rdma", "off");
  if (const auto known = levels.find(level); known != levels.end()) set_key(out.nccl, "gdr_level", known->second);
}

std::string buffers_text(BufferPlace send, BufferPlace receive) {
  const auto place = [](BufferPlace where) { return where == BufferPlace::device ? "device" : "host"; };
  return fmt::format("[{}, {}]", place(send), place(receive));
}

void add_osu_settings(const MeasuredLog& log, SuggestedLog& out) {
  const auto& header = log.header;
  if (header.send_buffer && header.receive_buffer)
    set_key(out.workload, "buffers", buffers_text(*header.send_buffer, *header.receive_buffer));
  if (header.window) set_key(out.workload, "window", std::to_string(*header.window));
}

void add_perftest_settings(const MeasuredLog& log, SuggestedLog& out) {
  const auto& header = log.header;
  if (is_bandwidth_test(*log.benchmark)) {
    if (header.tx_depth) set_key(out.workload, "window", std::to_string(*header.tx_depth));
    if (header.queue_pairs && *header.queue_pairs > 1)
      set_key(out.workload, "queue_pairs", std::to_string(*header.queue_pairs));
    if (header.is_bidirectional) set_key(out.workload, "bidirectional", "on");
  }
  if (header.send_buffer == BufferPlace::device) set_key(out.workload, "buffers", "device");
}

SuggestedLog stated_settings(const MeasuredLog& table) {
  SuggestedLog out;
  out.file = table.file;
  if (!table.benchmark) return out;
  switch (family_of(*table.benchmark)) {
    case BenchmarkFamily::nccl_tests: {
      if (table.header.launch) set_key(out.workload, "launch", std::string(to_string(*table.header.launch)));
      if (const auto version = stated_nccl_version(table); !version.empty())
        set_key(out.nccl, "version", "\"" + version + "\"");
      add_nccl_environment(table, out);
      break;
    }
    case BenchmarkFamily::osu:
      add_osu_settings(table, out);
      if (table.header.pairs) set_key(out.workload, "pairs", std::to_string(*table.header.pairs));
      break;
    case BenchmarkFamily::perftest:
      add_perftest_settings(table, out);
      break;
    case BenchmarkFamily::system:
      if (table.header.streams) set_key(out.workload, "streams", std::to_string(*table.header.streams));
      break;
    case BenchmarkFamily::sharing:
    case BenchmarkFamily::traffic:
    case BenchmarkFamily::training:
      break;
  }
  return out;
}

}  // namespace fabricast::fit
