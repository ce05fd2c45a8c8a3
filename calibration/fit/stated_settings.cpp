// SPDX-License-Identifier: Apache-2.0
#include "fit/stated_settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/version.hpp"
#include "readers/readers.hpp"

namespace fabricast::fit {

namespace {

using readers::contains;

/// Takes keys from the variables of a log's environment and notes those whose values are understood.
class NcclEnvironment {
 public:
  /// [value in lower case] what a key says instead; nothing: it is NCCL's default.
  using Meanings = std::map<std::string, std::string>;

  NcclEnvironment(const MeasuredLog& log, SuggestedLog& out) : log_(log), out_(out) {}

  void take(const char* variable, Keys& keys, const char* key, const Meanings& meanings) {
    const auto meaning = meanings.find(lower(value_of(variable)));
    if (meaning == meanings.end()) return;
    out_.read.insert(variable);
    if (!meaning->second.empty()) set_key(keys, key, meaning->second);
  }
  void take_flag(const char* variable, Keys& keys, const char* key, const char* when_set) {
    const auto value = value_of(variable);
    if (value.empty()) return;
    out_.read.insert(variable);
    if (value != "0") set_key(keys, key, when_set);
  }
  void take_count(const char* variable, Keys& keys, const char* key, int least, int most) {
    const auto count = readers::parse_count(value_of(variable));
    if (!count || *count < least || *count > most) return;
    out_.read.insert(variable);
    set_key(keys, key, std::to_string(*count));
  }
  /// One number of channels, for which NCCL's least and most must be the same.
  void take_channels(const char* unit) {
    const auto least = fmt::format("NCCL_MIN_{}", unit);
    const auto most = fmt::format("NCCL_MAX_{}", unit);
    const auto value = value_of(most.c_str());
    if (value.empty() || (value != value_of(least.c_str()) && value != "1") || !readers::parse_count(value)) return;
    out_.read.insert({least, most});
    set_key(out_.workload, "channels", value);
  }

 private:
  /// Empty where the log does not name it or its release does not read it.
  [[nodiscard]] std::string value_of(const char* variable) const {
    const auto* known = nccl_variable(variable);
    return known != nullptr && is_too_new(*known, out_) ? std::string() : setting(log_, variable);
  }

  const MeasuredLog& log_;
  SuggestedLog& out_;
};

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

bool is_too_new(const NcclVariable& variable, const SuggestedLog& log) {
  const auto version = std::ranges::find(log.nccl, "version", &Keys::value_type::first);
  if (version == log.nccl.end()) return false;
  return is_older(version->second.substr(1, version->second.size() - 2), 2, variable.since);
}

void add_nccl_environment(const MeasuredLog& log, SuggestedLog& out) {
  NcclEnvironment environment(log, out);
  using Meanings = NcclEnvironment::Meanings;
  environment.take("NCCL_ALGO", out.workload, "algorithm",
                   Meanings{{"ring", "ring"},
                            {"tree", "tree"},
                            {"nvls", "nvls"},
                            {"nvlstree", "nvls_tree"},
                            {"collnetdirect", "collnet_direct"},
                            {"pat", "pat"}});
  environment.take("NCCL_TREE_THRESHOLD", out.workload, "algorithm", Meanings{{"0", "ring"}});
  environment.take("NCCL_PROTO", out.workload, "protocol",
                   Meanings{{"ll", "ll"}, {"ll128", "ll128"}, {"simple", "simple"}});
  environment.take_channels("NCHANNELS");
  environment.take_channels("CTAS");
  environment.take_flag("NCCL_P2P_DISABLE", out.nccl, "p2p", "off");
  environment.take("NCCL_P2P_LEVEL", out.nccl, "p2p", Meanings{{"0", "off"}, {"loc", "off"}});
  environment.take_flag("NCCL_SHM_DISABLE", out.nccl, "shm", "off");
  environment.take_flag("NCCL_PXN_DISABLE", out.nccl, "pxn", "off");
  environment.take_flag("NCCL_COLLNET_ENABLE", out.nccl, "collnet", "on");
  environment.take("NCCL_NVLS_ENABLE", out.nccl, "nvls", Meanings{{"0", "off"}, {"1", ""}, {"2", ""}});
  environment.take("NCCL_IB_SPLIT_DATA_ON_QPS", out.nccl, "ib_split_data_on_qps", Meanings{{"0", "off"}, {"1", "on"}});
  environment.take_count("NCCL_CROSS_NIC", out.nccl, "cross_nic", 0, 2);
  environment.take_count("NCCL_P2P_PXN_LEVEL", out.nccl, "p2p_pxn_level", 0, 2);
  environment.take_count("NCCL_SOCKET_NTHREADS", out.nccl, "socket_nthreads", 0, 16);
  environment.take_count("NCCL_NSOCKS_PERTHREAD", out.nccl, "nsocks_perthread", 1, 64);
  environment.take_count("NCCL_IB_QPS_PER_CONNECTION", out.nccl, "ib_qps_per_connection", 1, 128);
  environment.take_flag("NCCL_IB_DISABLE", out.software, "transport", "tcp");
  environment.take("NCCL_NET", out.software, "transport", Meanings{{"socket", "tcp"}, {"ib", ""}});
  // By name, or by the number that older releases took.
  environment.take("NCCL_NET_GDR_LEVEL", out.software, "gpudirect_rdma", Meanings{{"0", "off"}, {"loc", "off"}});
  environment.take("NCCL_NET_GDR_LEVEL", out.nccl, "gdr_level",
                   Meanings{{"1", "pix"},
                            {"pix", "pix"},
                            {"2", "pxb"},
                            {"pxb", "pxb"},
                            {"3", "phb"},
                            {"phb", "phb"},
                            {"4", "sys"},
                            {"5", "sys"},
                            {"sys", "sys"}});
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
