// SPDX-License-Identifier: Apache-2.0
// What the kernels over symmetric memory cost. Equations: docs/models/nccl-symmetric.md.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"
#include "base/parameter_name.hpp"
#include "nccl/connections.hpp"
#include "nccl/operation.hpp"
#include "nccl/symmetric.hpp"
#include "nccl/transports/transports.hpp"

namespace fabricast::models::nccl {

namespace {

/// Bytes of data in one line of LL for each of the 512 threads of a block.
constexpr double k_round_of_lines = 4096;
/// LL stores as many bytes of flags as of data.
constexpr double k_line_bytes = 2;

std::string_view word_of(Collective collective) {
  if (collective == Collective::all_reduce) return "all_reduce";
  return collective == Collective::all_gather ? "all_gather" : "reduce_scatter";
}

/// One kernel of one operation.
class Kernel {
 public:
  Kernel(const SymmetricRanks& ranks, const SymmetricChoice& choice, Bytes size)
      : ranks_(ranks), choice_(choice), size_(static_cast<double>(size.value)) {}

  [[nodiscard]] Node node() const;

 private:
  [[nodiscard]] bool is(SymmetricKernel kernel) const { return choice_.kernel == kernel; }
  [[nodiscard]] bool multicasts() const { return is_multicast(choice_.kernel); }
  [[nodiscard]] bool sends_lines() const { return is_of_lines(choice_.kernel); }
  [[nodiscard]] bool reduces_all() const { return ranks_.facts.collective == Collective::all_reduce; }
  [[nodiscard]] double num_ranks() const { return ranks_.facts.num_ranks; }
  /// What a rank hands to each other: of an all-reduce by lines its whole vector, else a part.
  [[nodiscard]] double share() const { return reduces_all() && sends_lines() ? size_ : size_ / num_ranks(); }
  [[nodiscard]] const Parameter& parameter(ParameterStem what, std::string_view last = {}) const {
    return parameter_for(ranks_.context.parameters, ranks_.architecture, what, last);
  }
  [[nodiscard]] const Parameter& of_collective(ParameterStem what, std::string_view last = {}) const {
    return parameter(what, fmt::format("{}{}", word_of(ranks_.facts.collective), last));
  }

  [[nodiscard]] double unit() const;
  [[nodiscard]] std::vector<Crossing> crossings() const;
  void add_lines(Flow& flow) const;
  void add_peers(Flow& flow) const;
  void add_passes(Flow& flow) const;
  void limit_blocks(Flow& flow) const;
  void limit_links(Flow& flow) const;

  const SymmetricRanks& ranks_;
  SymmetricChoice choice_;
  double size_;
};

/// Bytes of the flow. Of multicast those that cross a GPU's port the way that has more: what all store comes in, what
/// the switches load goes out, and both where an all-reduce does.
double Kernel::unit() const {
  if (is(SymmetricKernel::lines)) return k_line_bytes * share();
  if (is(SymmetricKernel::multicast_lines)) return k_line_bytes * share() * num_ranks();
  if (is(SymmetricKernel::multicast)) return reduces_all() ? size_ + size_ / num_ranks() : size_;
  return (reduces_all() ? 2 : 1) * share();
}

std::vector<Crossing> Kernel::crossings() const {
  const auto& topology = ranks_.context.topology;
  CrossingCounter counter;
  for (std::size_t i = 0; i < ranks_.gpus.size(); ++i) {
    for (std::size_t j = 0; j < ranks_.gpus.size(); ++j) {
      if (i == j) continue;
      const auto path = topology.path_in_host(ranks_.gpus[i], ranks_.gpus[j]);
      FABRICAST_ASSERT(path && !path->links.empty(), "GPUs without NVLink");
      if (!multicasts()) {
        counter.add(*path);
        continue;
      }
      counter.add(path->links.front().value);
      counter.add(topology.reverse(path->links.front()).value);
      break;
    }
  }
  return counter.take();
}

/// Every thread writes its line to all and reads the lines of all. The first round is hidden by nothing; in later ones
/// what a thread does once comes on top of what it does for each rank, or for each that it hears of by multicast.
void Kernel::add_lines(Flow& flow) const {
  const double of_block = share() / choice_.blocks;
  if (!multicasts()) {
    const auto& first = parameter("nccl.symmetric_line_bandwidth"_stem, "first");
    const double bytes = std::min(of_block, k_round_of_lines) * num_ranks();
    add_latency(flow, {fmt::format("first lines of {:.0f} ranks", num_ranks()), from_seconds(bytes / first.value),
                       first.name, first.source});
  }
  const double later = of_block - k_round_of_lines;
  if (later <= 0) return;
  const auto& own = parameter("nccl.symmetric_line_bandwidth"_stem, "own");
  const auto& peer = parameter("nccl.symmetric_line_bandwidth"_stem, multicasts() ? "multicast" : "peer");
  flow.rate_cap = flow.bytes / later / (1 / own.value + num_ranks() / peer.value);
  flow.cap_name = fmt::format("{} thread blocks, lines of {:.0f} ranks", choice_.blocks, num_ranks());
  flow.cap_parameter = peer.name;
}

/// Loads of a sum wait for one rank after the other.
void Kernel::add_peers(Flow& flow) const {
  if (ranks_.facts.collective == Collective::all_gather || ranks_.facts.num_ranks == 2) return;
  const auto& peer = parameter("nccl.symmetric_peer_time"_stem);
  add_latency(flow, {fmt::format("loads from {:.0f} more GPUs", num_ranks() - 2),
                     from_seconds((num_ranks() - 2) * peer.value), peer.name, peer.source});
}

/// What does not divide into 8 KiB for every thread block, in sums of all for every rank's, is done in 4-byte words,
/// what is left of that one by one: each another pass.
void Kernel::add_passes(Flow& flow) const {
  const auto bytes = static_cast<std::int64_t>(reduces_all() ? size_ : share());
  const std::int64_t parts = choice_.blocks * (reduces_all() ? ranks_.facts.num_ranks : 1);
  std::int64_t rest = bytes;
  int passes = 0;
  for (const std::int64_t chunk : {8192, 2048}) {
    const auto done = rest / chunk / parts * parts * chunk;
    if (done > 0) ++passes;
    rest -= done;
  }
  if (rest > 0) ++passes;
  if (passes < 2) return;
  const auto& pass = parameter("nccl.symmetric_pass_time"_stem);
  add_latency(flow, {fmt::format("{} more passes for what does not divide into {} parts", passes - 1, parts),
                     from_seconds((passes - 1) * pass.value), pass.name, pass.source});
}

/// Thread blocks move so much of the whole vector.
void Kernel::limit_blocks(Flow& flow) const {
  const auto& block = parameter("nccl.symmetric_block_bandwidth"_stem, reduces_all() ? "all_reduce" : "");
  flow.rate_cap = choice_.blocks * block.value * flow.bytes / size_;
  flow.cap_name = fmt::format("{} thread blocks", choice_.blocks);
  flow.cap_parameter = block.name;
}

/// Loads and stores reach a share of a link. They come upon it when they do: of both rates the sum of a negative power.
void Kernel::limit_links(Flow& flow) const {
  const auto& share = of_collective("nccl.symmetric_link_share"_stem, multicasts() ? ".multicast" : "");
  const auto& resources = ranks_.context.resources;
  auto limit = slowest_nvlink(resources, flow, share.value);
  if (is(SymmetricKernel::direct)) add_contention(flow, limit, parameter("nccl.pair_contention"_stem).value);
  limit_rate(flow, limit.rate, fmt::format("loads and stores over {}", resources.name(limit.resource)), share.name);
}

Node Kernel::node() const {
  Node node;
  node.label = fmt::format("symmetric {}", name_of(choice_.kernel, ranks_.facts.collective));
  Flow flow;
  flow.crossings = crossings();
  flow.bytes = unit();
  if (sends_lines()) {
    flow.payload = flow.bytes / k_line_bytes;
    add_lines(flow);
  } else if (is(SymmetricKernel::direct)) {
    add_peers(flow);
    add_passes(flow);
    limit_blocks(flow);
  }
  limit_links(flow);
  node.flows.push_back(std::move(flow));
  return node;
}

Term start_of(const SymmetricRanks& ranks, const SymmetricChoice& choice) {
  const auto& base = parameter_for(ranks.context.parameters, ranks.architecture, "nccl.symmetric_base_time"_stem,
                                   is_of_lines(choice.kernel) ? "ll" : word_of(ranks.facts.collective));
  return {"kernel start and synchronisation", from_seconds(base.value), base.name, base.source};
}

}  // namespace

Duration symmetric_time(const SymmetricRanks& ranks, const SymmetricChoice& choice, Bytes size) {
  const auto node = Kernel(ranks, choice, size).node();
  return start_of(ranks, choice).time + time_alone(ranks.context.resources, node.flows.front());
}

void plan_symmetric(const SymmetricRanks& ranks, const Launch& launch, Bytes size, OperationPlan& plan) {
  const auto measured = [&](const SymmetricChoice& choice) {
    return 1e6 * symmetric_time(ranks, choice, size).seconds();
  };
  const auto choice = choose_symmetric(ranks.facts, size, measured);
  plan.algorithm = "symmetric";
  plan.protocol = name_of(choice.kernel, ranks.facts.collective);
  plan.channels = choice.blocks;
  plan.before.push_back(start_of(ranks, choice));
  add_launching(ranks.context, launch, choice.blocks, plan);
  plan.program.then(Kernel(ranks, choice, size).node());
}

std::vector<std::string> symmetric_assumptions(const SymmetricRanks& ranks) {
  std::vector<std::string> out{
      "all buffers lie in windows of symmetric memory that every rank has registered, as floating-point numbers of 32 "
      "bits or less that are summed"};
  const int capability = ranks.facts.compute_capability;
  if (ranks.facts.has_multicast || capability >= 100)
    out.emplace_back(
        "what kernels for symmetric memory take by multicast and on Blackwell rests on the tables in NCCL's source");
  if (capability < 90)
    out.emplace_back("no log has taught kernels for symmetric memory before Hopper: its values stand for them");
  if (ranks.facts.version < 228)
    out.emplace_back("NCCL 2.27 chooses the kernel by measured times of its own, for which forecasts stand");
  return out;
}

}  // namespace fabricast::models::nccl
