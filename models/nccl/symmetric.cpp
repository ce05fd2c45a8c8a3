// SPDX-License-Identifier: Apache-2.0
#include "nccl/symmetric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "nccl/rccl.hpp"
#include "paths/guest.hpp"

namespace fabricast::models::nccl {

namespace {

constexpr int k_first_release = 227;        ///< that brought them
constexpr int k_release_of_estimate = 228;  ///< that replaced tables of measured times by an estimate
constexpr int k_most_blocks = 64;
constexpr std::int64_t k_cell = 1024;  ///< bytes in which work is given to thread blocks
/// LL counts elements in 32 bits.
constexpr double k_most_bytes_of_lines = 2147483648.0;
constexpr double k_block_penalty = 0.025;

bool is_blackwell(const SymmetricFacts& facts) { return facts.compute_capability >= 100; }

/// NCCL has no reduce-scatter by multicast lines.
bool exists(SymmetricKernel kernel, const SymmetricFacts& facts) {
  if (is_multicast(kernel) && !(facts.has_multicast && facts.num_ranks > 2)) return false;
  return kernel != SymmetricKernel::multicast_lines || facts.collective != Collective::reduce_scatter;
}

/// Thread blocks that multicast: enough for the switches.
int multicast_blocks(const SymmetricFacts& facts) {
  const int all = is_blackwell(facts) ? 32 : 16;
  return (all + facts.num_ranks - 1) / facts.num_ranks;
}

/// A smooth min(x, ceiling).
double soft_min(double x, double ceiling, double softness) {
  return ceiling - softness * std::log1p((std::exp(ceiling / softness) - 1) * std::exp(-x / softness));
}

/// A smooth max(0, x).
double soft_plus(double x) { return x >= 100 ? x : std::log1p(std::exp(x)); }

/// NCCL's figures of one kernel.
struct Estimate {
  double bus_bytes = 0;
  double multiplier = 1;  ///< bytes that arrive for one that a thread block moves
  double latency_us = 0;
  double block = 0, peak = 0;  ///< bytes/us
  int most_blocks = k_most_blocks;

  [[nodiscard]] double time_us(int blocks) const {
    return latency_us + soft_plus(bus_bytes / soft_min(blocks * block * multiplier, peak, block) - 1);
  }
};

/// `bytes`: of a rank's vector or part.
Estimate estimate_of(const SymmetricFacts& facts, SymmetricKernel kernel, double bytes) {
  constexpr double bytes_of_line = 9;   // twice the data, and the work of lines
  constexpr double unit = 1073.741824;  // GiB/s in bytes/us
  const double ranks = facts.num_ranks;
  const bool reduces_all = facts.collective == Collective::all_reduce;
  const bool gathers = facts.collective == Collective::all_gather;
  Estimate out;
  if (is_of_lines(kernel)) {
    out.bus_bytes = ranks * bytes * bytes_of_line;
    if (is_multicast(kernel)) out.multiplier = 1.1;
  } else if (!is_multicast(kernel)) {
    out.bus_bytes = reduces_all ? std::floor(2 * bytes * (ranks - 1) / ranks) : (ranks - 1) * bytes;
  } else {
    out.bus_bytes = reduces_all ? std::floor(bytes / ranks) + bytes : (ranks - 1) * bytes;
    out.multiplier = (reduces_all ? 1 : 0.55) * ranks;
    out.most_blocks = multicast_blocks(facts);
  }
  const bool sums_in_switch = reduces_all && kernel == SymmetricKernel::multicast;
  if (!is_blackwell(facts)) {
    out.latency_us = is_of_lines(kernel) ? 4.5 : 7.8;
    out.block = (reduces_all ? 65 : 44) * unit;
    out.peak = (sums_in_switch ? 480 : 320) * unit;
  } else {
    out.latency_us = is_of_lines(kernel) ? (gathers ? 8.5 : 11) : (reduces_all ? 19.5 : 13);
    out.block = 55 * unit;
    out.peak = (sums_in_switch ? 1000 : 600) * unit;
  }
  return out;
}

struct Candidate {
  SymmetricChoice choice;
  double time_us = 0;
};

/// The fewest thread blocks that come within 2.5 % of the most.
Candidate by_estimate(const SymmetricFacts& facts, SymmetricKernel kernel, double bytes) {
  auto estimate = estimate_of(facts, kernel, bytes);
  int least = 1;
  if (facts.forced) {
    estimate.most_blocks = std::min(estimate.most_blocks, *facts.forced);
    least = *facts.forced;
  }
  const double best = estimate.time_us(estimate.most_blocks);
  for (int blocks = least; blocks < estimate.most_blocks; ++blocks) {
    const double time = estimate.time_us(blocks);
    if (time <= 1.025 * best) return {{kernel, blocks}, time};
  }
  return {{kernel, estimate.most_blocks}, best};
}

/// A thread block for every 4 KiB of lines and every 16 KiB else.
Candidate by_table(const SymmetricFacts& facts, SymmetricKernel kernel, double bytes, const SymmetricTime& measured) {
  const double of_block = is_of_lines(kernel) ? 4096 : 16384;
  double blocks = std::min<double>(std::ceil(bytes / of_block), std::min(facts.channels, k_most_blocks));
  if (is_multicast(kernel)) blocks = std::min<double>(blocks, multicast_blocks(facts));
  const SymmetricChoice choice{kernel, std::max(1, static_cast<int>(blocks))};
  return {choice, measured(choice)};
}

/// Of the thread blocks started, those that have cells to work on.
int blocks_with_work(std::int64_t bytes, int blocks) {
  const auto cells = (bytes + k_cell - 1) / k_cell;
  const auto of_block = (cells + blocks - 1) / blocks;
  return static_cast<int>((cells + of_block - 1) / of_block);
}

}  // namespace

bool is_of_lines(SymmetricKernel kernel) {
  return kernel == SymmetricKernel::lines || kernel == SymmetricKernel::multicast_lines;
}

bool is_multicast(SymmetricKernel kernel) {
  return kernel == SymmetricKernel::multicast_lines || kernel == SymmetricKernel::multicast;
}

std::string name_of(SymmetricKernel kernel, Collective collective) {
  const bool is_lines = is_of_lines(kernel);
  const std::string last = is_multicast(kernel) ? "MC" : "";
  if (collective == Collective::all_reduce)
    return is_lines ? fmt::format("AGxLL{}_R", last) : fmt::format("RSxLD{0}_AGxST{0}", last);
  if (is_lines) return "LL" + last;
  return (collective == Collective::all_gather ? "ST" : "LD") + last;
}

SymmetricFacts symmetric_facts(const CommunicatorFacts& facts, int channels, std::optional<int> forced) {
  return {facts.collective, facts.version, facts.compute_capability, facts.num_ranks, facts.nvls_allowed,
          channels,         forced};
}

std::string why_no_windows(const PlanContext& context, const TrainingSpec& training, bool crosses_hosts) {
  Gate gate;
  for (const auto& host : kinds_of_hosts(context.topology)) {
    gate = symmetric_gate(context, {host}, Collective::all_reduce);
    if (gate.is_open) break;
  }
  if (!gate.is_open) return ": " + gate.reason;
  // Tensor parallelism keeps to a host, and so do the levels that Horovod has inside.
  const bool stays_inside = training.parallel.tensor > 1 || training.parallel.hierarchical || training.parallel.torus;
  return crosses_hosts && !stays_inside ? ": no communicator that sums or gathers lies inside a host" : "";
}

GivenUsed symmetric_setting(const Gate& gate) {
  return {"symmetric memory", "on", gate.is_open ? "on" : "off",
          gate.is_open ? "kernels for windows of it, by all thread blocks they need" : gate.reason};
}

SymmetricChoice choose_symmetric(const SymmetricFacts& facts, Bytes size, const SymmetricTime& measured) {
  const std::int64_t parts = facts.collective == Collective::all_reduce ? 1 : facts.num_ranks;
  const auto of_rank = (size.value + parts - 1) / parts;
  const auto bytes = static_cast<double>((of_rank + k_cell - 1) / k_cell * k_cell);
  Candidate best{{}, std::numeric_limits<double>::infinity()};
  for (const auto kernel : {SymmetricKernel::lines, SymmetricKernel::multicast_lines, SymmetricKernel::direct,
                            SymmetricKernel::multicast}) {
    if (!exists(kernel, facts)) continue;
    const bool is_estimated = facts.version >= k_release_of_estimate;
    if (is_estimated && is_of_lines(kernel) && static_cast<double>(size.value) >= k_most_bytes_of_lines) continue;
    auto found = is_estimated ? by_estimate(facts, kernel, bytes)
                              : by_table(facts, kernel, static_cast<double>(of_rank), measured);
    found.time_us *= 1 + k_block_penalty * found.choice.blocks;
    if (found.time_us < best.time_us) best = found;
  }
  best.choice.blocks = blocks_with_work(of_rank, best.choice.blocks);
  return best.choice;
}

Gate symmetric_gate(const PlanContext& context, const std::vector<HostGroup>& hosts, Collective collective) {
  if (library_of(context, hosts[0].gpus[0]) == Library::rccl) return {false, "RCCL's are not modelled"};
  if (release_number(context.software.nccl_version) < k_first_release)
    return {false, fmt::format("NCCL {} has none, they came with 2.27", context.software.nccl_version)};
  if (collective != Collective::all_reduce && collective != Collective::all_gather &&
      collective != Collective::reduce_scatter)
    return {false, "NCCL has them for all-reduce, all-gather and reduce-scatter"};
  if (hosts.size() > 1) return {false, "the GPUs are in several hosts: kernels over the network are not modelled"};
  const auto& gpus = hosts[0].gpus;
  if (gpus.size() < 2) return {false, "one GPU takes part"};
  if (!context.software.nccl_p2p) return {false, "GPU peer access is off (software.nccl.p2p: off)"};
  for (const auto from : gpus) {
    for (const auto to : gpus) {
      if (from == to) continue;
      const auto path = context.topology.path_in_host(from, to);
      const auto kind = kind_in_host(context, from, to, static_cast<int>(gpus.size()));
      if (kind != TransportKind::nvlink || !path || !path->uses_nvlink)
        return {false, fmt::format("{} and {} do not reach each other over NVLink", context.topology.device(from).name,
                                   context.topology.device(to).name)};
    }
  }
  return {};
}

}  // namespace fabricast::models::nccl
