// SPDX-License-Identifier: Apache-2.0
// Shares stay within (0, 1]; times may be 0 and are no longer than a person waits for a benchmark's row; rates lie
// between a serial line and all memories of a rack; sizes below 2^60 B. Numbers have no unit that bounds them: each
// is declared by name.
#include "base/ranges.hpp"

#include <fmt/format.h>

#include <array>

namespace fabricast {

namespace {

constexpr double k_least_share = 1e-3;
constexpr double k_count = 1e6;

struct Rule {
  std::string_view begin;  ///< of the name; empty = any
  std::string_view end;    ///< of the name; empty = any
  Dimension dimension;
  ParameterRange range;
};

constexpr ParameterRange declared(double low, double high, std::string_view what) { return {low, high, what, true}; }

constexpr auto k_share = declared(k_least_share, 1, "a share above 0");
constexpr auto k_share_or_none = declared(0, 1, "a share");
constexpr auto k_switch = declared(0, 1, "0 or 1");
constexpr auto k_efficiency = declared(0.01, 1, "a share above 0");
constexpr auto k_factor = declared(0, 100, "a factor");
constexpr auto k_threshold_factor = declared(1e-4, 1024, "a factor above 0");
constexpr auto k_rate_or_no_limit = declared(0, 1e15, "a rate, 0 for no limit");
constexpr auto k_part_size = declared(1, 1.2e18, "a size above 0");

constexpr ParameterRange count(double low, double high) { return declared(low, high, "a count"); }

constexpr auto N = Dimension::number;
constexpr auto T = Dimension::time;
constexpr auto R = Dimension::bandwidth;
constexpr auto B = Dimension::bytes;

/// The first rule that fits counts.
constexpr std::array k_rules{
    // Numbers: shares.
    Rule{"", "_efficiency", N, k_efficiency},
    Rule{"", "cpu_share", N, k_share_or_none},
    Rule{"", "cache_share", N, k_share_or_none},
    Rule{"", "waiting_share", N, k_share_or_none},
    Rule{"virtualization.", "latency_sensitivity_share", N, k_share_or_none},
    Rule{"", "_tax", N, declared(0, 0.99, "a share below 1")},
    Rule{"", "_share", N, k_share},
    Rule{"", "initial_alpha", N, k_share_or_none},
    Rule{"", "dcqcn_g", N, k_share},
    Rule{"dcqcn.g", "", N, k_share},
    Rule{"", "ecn_probability", N, k_share_or_none},
    Rule{"host.", "_load", N, k_share_or_none},
    Rule{"host.", "smt_speed", N, k_share},
    Rule{"nccl.payload_share.", "", N, k_share},
    Rule{"nccl.nvlink_store_share.", "", N, k_share},
    Rule{"nccl.tree_share.", "", N, k_share},
    // Numbers: factors of a time.
    Rule{"nccl.first_chunk.", "", N, k_factor},
    Rule{"nccl.later_loops.", "", N, k_factor},
    Rule{"nccl.local_work.", "", N, k_factor},
    Rule{"nccl.shm_local_work.", "", N, k_factor},
    Rule{"nccl.shm_polling", "", N, k_factor},
    Rule{"", "store_and_forward", N, k_factor},
    Rule{"nccl.network_store_and_forward.", "", N, k_factor},
    Rule{"cuda.", "_jitter", N, k_factor},
    Rule{"host.", "memory_queueing", N, k_factor},
    Rule{"host.", "scattered_threads", N, k_factor},
    Rule{"host.", "socket_wakeups", N, k_factor},
    Rule{"mpi.", "rendezvous_messages", N, k_factor},
    Rule{"", "headroom_delays", N, k_factor},
    Rule{"", "alpha", N, k_threshold_factor},
    Rule{"", ".alpha_onyx", N, k_threshold_factor},
    Rule{"", ".alpha_sonic", N, k_threshold_factor},
    Rule{"training.", "exchange_slowdown", N, k_factor},
    Rule{"training.", "optimizer_passes", N, k_factor},
    Rule{"training.winograd_saving", "", N, declared(1, 10, "how many times fewer products")},
    Rule{"architecture.", "", N, count(10, 999)},
    Rule{"training.attention_half_length", "", N, declared(0, k_count, "tokens")},
    Rule{"training.gemm_efficiency", "", N, k_efficiency},
    Rule{"training.attention_efficiency", "", N, k_efficiency},
    Rule{"training.convolution_efficiency", "", N, k_efficiency},
    Rule{"training.eager_", "", N, k_efficiency},
    Rule{"training.memory_efficiency", "", N, k_efficiency},
    Rule{"model.", "_error", N, declared(0, 10, "a relative error")},
    Rule{"model.between_systems.", "", N, declared(0, 10, "a relative scatter")},
    // Numbers: switches and counts.
    Rule{"mpi.", ".gdrcopy", N, k_switch},
    Rule{"mpi.", ".hca_rotation", N, k_switch},
    Rule{"", "clamp_target", N, k_switch},
    Rule{"", ".rdma", N, k_switch},
    Rule{"", "plugin_simple_only", N, k_switch},
    Rule{"", ".plugin_tuner", N, k_switch},
    Rule{"", ".multicast", N, k_switch},
    Rule{"", "fast_recovery", N, count(0, 1000)},
    Rule{"mpi.", ".max_rails", N, count(1, 64)},
    Rule{"", "instances", N, count(1, 1024)},
    Rule{"support.", "functions", N, count(0, 4096)},
    Rule{"support.", "", N, declared(0, 10'000, "0 or 1, a count or a release")},
    Rule{"esxi.", "", N, count(1, 1e6)},
    Rule{"mig_placement.", "", N, count(1, 255)},
    Rule{"host.", "cpu_pool_cores", N, count(1, 64)},
    Rule{"host.", "cpu_pause_spread", N, k_share_or_none},
    Rule{"mig.", "memory_slices", N, count(1, 64)},
    Rule{"", ".sms", N, count(1, 10000)},
    Rule{"", ".copy_engines", N, count(1, 64)},
    Rule{"", ".cores", N, count(1, 4096)},
    Rule{"", ".socket_threads", N, count(0, 16)},
    Rule{"", ".sockets_per_thread", N, count(1, 64)},
    Rule{"remote_gpu.", "calls_per_step", N, count(0, k_count)},
    Rule{"model.fitted_", "", N, count(0, 1e9)},
    Rule{"", ".ports", N, count(1, 65536)},
    Rule{"", ".port_split", N, count(1, 8)},
    Rule{"", ".nvlink_links", N, count(1, 36)},
    Rule{"", ".pcie_generation", N, declared(1, 6, "a generation")},
    Rule{"", ".pcie_width", N, declared(1, 32, "lanes")},
    Rule{"", ".compute_capability", N, declared(10, 1000, "10 x major + minor")},
    Rule{"", "_tflops", N, declared(0.001, 1e6, "a rate of 1e12/s")},
    Rule{"", ".tdp_watts", N, declared(1, 1e5, "watts")},
    Rule{"", ".message_rate", N, declared(1000, 1e12, "messages per second")},
    Rule{"", ".mtu", N, declared(64, 65536, "bytes")},
    Rule{"", ".packet_header", N, declared(0, 65536, "bytes")},
    Rule{"", ".max_payload", N, declared(64, 4096, "bytes")},
    // Times of minutes; all others are bounded by their dimension.
    Rule{"migration.", "", T, declared(0, 1e6, "a time")},
    Rule{"vgpu.", "", T, declared(0, 1e3, "a time")},
    // Rates of which 0 means: no limit of its own.
    Rule{"mpi.", "_bandwidth", R, k_rate_or_no_limit},
    Rule{"", "message_bandwidth", R, k_rate_or_no_limit},
    Rule{"", "flow_bandwidth", R, k_rate_or_no_limit},
    Rule{"", "staging_bandwidth", R, k_rate_or_no_limit},
    Rule{"", "ecn_reference_rate", R, declared(0, 1e15, "a rate, 0 for fixed thresholds")},
    // Sizes that a message is cut into.
    Rule{"", "_chunk", B, k_part_size},
    Rule{"", "_segment", B, k_part_size},
    Rule{"", "buffer_size", B, k_part_size},
    Rule{"", ".cell", B, declared(1, 1e6, "a size above 0")},
};

ParameterRange by_dimension(Dimension dimension) {
  switch (dimension) {
    case Dimension::time:
      return {0, 10, "a time", false};
    case Dimension::bandwidth:
      return {1e3, 1e15, "a rate above 0", false};
    case Dimension::bytes:
      return {0, 1.2e18, "a size", false};
    case Dimension::number:
      return {0, 1e9, "a number", false};
  }
  return {};
}

/// The largest unit in which the value is 1 or more.
std::string in_units(double value, std::string_view base, const std::array<std::string_view, 5>& prefixes) {
  std::size_t i = 0;
  while (value >= 1000 && i + 1 < prefixes.size()) {
    value /= 1000;
    ++i;
  }
  return fmt::format("{:.6g} {}{}", value, prefixes[i], base);
}

std::string quantity(double value, Dimension dimension) {
  constexpr std::array<std::string_view, 5> k_prefixes{"", "k", "M", "G", "T"};
  switch (dimension) {
    case Dimension::time:
      return fmt::format("{:.6g} s", value);
    case Dimension::bandwidth:
      return in_units(value, "B/s", k_prefixes);
    case Dimension::bytes:
      return in_units(value, "B", k_prefixes);
    case Dimension::number:
      break;
  }
  return fmt::format("{:.6g}", value);
}

}  // namespace

ParameterRange range_of(std::string_view name, Dimension dimension) {
  for (const auto& rule : k_rules) {
    if (rule.dimension == dimension && name.starts_with(rule.begin) && name.ends_with(rule.end)) return rule.range;
  }
  return by_dimension(dimension);
}

std::string to_string(const ParameterRange& range, Dimension dimension) {
  return fmt::format("{} to {}", quantity(range.low, dimension), quantity(range.high, dimension));
}

}  // namespace fabricast
