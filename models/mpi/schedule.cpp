// SPDX-License-Identifier: Apache-2.0
#include "mpi/schedule.hpp"

#include <algorithm>
#include <set>

#include "base/assert.hpp"
#include "schedules/algorithms.hpp"

namespace fabricast::models::mpi {

namespace {

using namespace schedules;
using Algorithm = CollectiveAlgorithm;

struct Named {
  Algorithm algorithm;
  std::string_view name;
};

constexpr Named k_names[] = {{Algorithm::recursive_doubling, "recursive_doubling"},
                             {Algorithm::ring, "ring"},
                             {Algorithm::rabenseifner, "rabenseifner"},
                             {Algorithm::reduce_broadcast, "reduce_broadcast"},
                             {Algorithm::reduce_scatter, "reduce_scatter"},
                             {Algorithm::gather_broadcast, "gather_broadcast"},
                             {Algorithm::binomial, "binomial"},
                             {Algorithm::binary, "binary"},
                             {Algorithm::split_binary, "split_binary"},
                             {Algorithm::knomial, "knomial"},
                             {Algorithm::sra_knomial, "sra_knomial"},
                             {Algorithm::sag_knomial, "sag_knomial"},
                             {Algorithm::chain, "chain"},
                             {Algorithm::linear, "linear"},
                             {Algorithm::scatter_allgather, "scatter_allgather"},
                             {Algorithm::scatter_doubling, "scatter_doubling"},
                             {Algorithm::bruck, "bruck"},
                             {Algorithm::pairwise, "pairwise"},
                             {Algorithm::dissemination, "dissemination"},
                             {Algorithm::neighbor_exchange, "neighbor_exchange"},
                             {Algorithm::recursive_halving, "recursive_halving"},
                             {Algorithm::butterfly, "butterfly"},
                             {Algorithm::linear_nb, "linear_nb"},
                             {Algorithm::linear_sync, "linear_sync"},
                             {Algorithm::two_level, "two_level"}};

/// UCC's *_KN_RADIX.
constexpr int k_radix = 4, k_barrier_radix = 8;

/// Parts of `one` by their place in it.
constexpr std::size_t k_reduce_part = 0, k_gather_part = 0, k_broadcast_part = 1;
constexpr std::size_t k_inside_reduce = 0, k_between = 1, k_inside_broadcast = 2, k_between_later = 3;

/// A part of `one` among `n` ranks.
Rounds part_of(const Collective& one, std::size_t place, Benchmark benchmark, int n) {
  Collective part{.benchmark = benchmark, .algorithm = Algorithm::binomial, .is_of_mpich = one.is_of_mpich};
  if (place < one.parts.size()) part = one.parts[place];
  part.num_ranks = n;
  part.size = one.size;
  part.root = 0;
  return make_schedule(part);
}

Rounds all_reduce(const Collective& one, double bytes) {
  const int n = one.num_ranks;
  if (one.algorithm == Algorithm::recursive_doubling) return all_reduce_recursive_doubling(n, bytes);
  if (one.algorithm == Algorithm::rabenseifner) return all_reduce_rabenseifner(n, bytes, !one.is_of_mpich);
  if (one.algorithm == Algorithm::knomial) return all_reduce_knomial(n, bytes, k_radix);
  if (one.algorithm == Algorithm::sra_knomial) return all_reduce_sra_knomial(n, bytes, k_radix);
  Rounds rounds;
  if (one.algorithm == Algorithm::reduce_broadcast) {
    rounds = part_of(one, k_reduce_part, Benchmark::osu_reduce, n);
    append(rounds, part_of(one, k_broadcast_part, Benchmark::osu_bcast, n));
    return rounds;
  }
  rounds = ring(n, bytes / n, bytes / n);
  append(rounds, ring(n, bytes / n, 0));
  return rounds;
}

/// All blocks reach one rank, which spreads them.
Rounds gather_broadcast(const Collective& one) {
  auto rounds = part_of(one, k_gather_part, Benchmark::osu_gather, one.num_ranks);
  auto whole = one;
  whole.size = one.num_ranks * one.size;
  append(rounds, part_of(whole, k_broadcast_part, Benchmark::osu_bcast, one.num_ranks));
  return rounds;
}

Rounds all_gather(const Collective& one, double block) {
  switch (one.algorithm) {
    case Algorithm::gather_broadcast:
      return gather_broadcast(one);
    case Algorithm::recursive_doubling:
      return all_gather_recursive_doubling(one.num_ranks, block);
    case Algorithm::bruck:
      return all_gather_bruck(one.num_ranks, block);
    case Algorithm::knomial:
      return all_gather_knomial(one.num_ranks, block, k_radix);
    case Algorithm::neighbor_exchange:
      return neighbor_exchange(one.num_ranks, block);
    default:
      return ring(one.num_ranks, block, 0);
  }
}

constexpr std::int64_t k_float = 4;  ///< B of an element of osu_reduce_scatter

std::int64_t elements_of(Bytes size) { return size.value > 0 ? std::max<std::int64_t>(size.value / k_float, 1) : 0; }

/// What osu_reduce_scatter leaves with each rank: whole elements, one more with the first ranks; of fewer elements than
/// ranks the others get nothing [osu_reduce_scatter.c].
std::vector<double> blocks_of_elements(int n, Bytes size) {
  const auto elements = elements_of(size);
  std::vector<double> blocks;
  for (int rank = 0; rank < n; ++rank)
    blocks.push_back(static_cast<double>(k_float * (elements / n + (rank < elements % n ? 1 : 0))));
  return blocks;
}

Rounds reduce_scatter(const Collective& one, double bytes) {
  const int n = one.num_ranks;
  Rounds rounds;
  switch (one.algorithm) {
    case Algorithm::pairwise:
      return pairwise(n, bytes / n, bytes / n);
    case Algorithm::recursive_halving:
      return recursive_halving(blocks_of_elements(n, one.size));
    case Algorithm::butterfly:
      return butterfly(n, bytes);
    case Algorithm::reduce_scatter:
      rounds = part_of(one, k_reduce_part, Benchmark::osu_reduce, n);
      append(rounds, linear_scatter(blocks_of_elements(n, one.size)));
      return rounds;
    default:
      return ring(n, bytes / n, bytes / n);
  }
}

/// Broadcast and reduce.
Rounds rooted(const Collective& one, const Tree& tree) {
  switch (one.algorithm) {
    case Algorithm::binary:
      return binary(tree);
    case Algorithm::split_binary:
      return split_binary(tree);
    case Algorithm::knomial:
      return knomial(tree, k_radix);
    case Algorithm::sag_knomial:
      return broadcast_sag_knomial(tree.n, tree.bytes, tree.root, k_radix);
    case Algorithm::chain:
      return chain(tree);
    case Algorithm::linear:
      return linear(tree);
    case Algorithm::rabenseifner:
      return reduce_rabenseifner(tree.n, tree.bytes, tree.root, !one.is_of_mpich);
    case Algorithm::scatter_allgather:
    case Algorithm::scatter_doubling: {
      auto rounds = binomial_scatter(tree.n, tree.bytes, tree.root);
      const double block = tree.bytes / tree.n;
      append(rounds, one.algorithm == Algorithm::scatter_doubling ? all_gather_recursive_doubling(tree.n, block)
                                                                  : ring(tree.n, block, 0));
      return rounds;
    }
    default:
      return binomial(tree);
  }
}

Rounds barrier(const Collective& one) {
  const int n = one.num_ranks;
  if (one.algorithm == Algorithm::recursive_doubling) return all_reduce_recursive_doubling(n, 0);
  if (one.algorithm == Algorithm::dissemination) return dissemination(n);
  if (one.algorithm == Algorithm::knomial) return all_reduce_knomial(n, 0, k_barrier_radix);
  const auto tree = [&](bool is_gather) {
    const Tree all{.n = n, .is_gather = is_gather, .is_in_order = true};
    return one.algorithm == Algorithm::linear ? linear(all) : binomial(all);
  };
  auto rounds = tree(true);
  append(rounds, tree(false));
  return rounds;
}

Rounds gather(const Collective& one, double block) {
  const int n = one.num_ranks;
  if (one.algorithm == Algorithm::linear_sync)
    return linear_sync_gather(n, block, one.root, static_cast<double>(one.segment.value));
  if (one.algorithm == Algorithm::knomial) return gather_knomial(n, block, one.root, k_radix);
  if (one.algorithm != Algorithm::linear) return binomial_gather(n, block, one.root);
  auto rounds = linear({.n = n, .bytes = block, .root = one.root, .is_gather = true});
  for (auto& round : rounds) round.reduced_bytes = 0;
  return rounds;
}

Rounds scatter(const Collective& one, double block) {
  const int n = one.num_ranks;
  if (one.algorithm == Algorithm::binomial) return binomial_scatter(n, n * block, one.root);
  if (one.algorithm == Algorithm::knomial) return scatter_knomial(n, block, one.root, k_radix);
  auto rounds = linear({.n = n, .bytes = block, .root = one.root});
  for (auto& round : rounds) round.is_posted = one.algorithm == Algorithm::linear_nb;
  return rounds;
}

/// What the ranks of a host, or one of each host, have of gathered, scattered or all-gathered blocks.
std::function<Rounds(int n)> blocks_stage(const Collective& whole, std::size_t place, Benchmark benchmark, int blocks) {
  auto one = whole;
  one.size = blocks * whole.size;
  return [one, place, benchmark](int n) { return part_of(one, place, benchmark, n); };
}

/// Gathered inside hosts, exchanged, gathered or scattered between them in blocks of a host, and all of it, or each
/// rank's own, spread inside. Hosts with fewer ranks than others, which only a forced one meets, count as the mean of
/// all.
Rounds two_level_of_blocks(const Collective& whole) {
  auto hosts = whole.hosts;
  hosts.resize(static_cast<std::size_t>(whole.num_ranks), 0);
  const auto num_hosts = static_cast<int>(std::set<int>(hosts.begin(), hosts.end()).size());
  const int of_host = (whole.num_ranks + num_hosts - 1) / num_hosts;
  Stages stages;
  if (whole.benchmark != Benchmark::osu_scatter)
    stages.gather = blocks_stage(whole, k_inside_reduce, Benchmark::osu_gather, 1);
  stages.exchange = blocks_stage(whole, k_between, whole.benchmark, of_host);
  if (whole.benchmark == Benchmark::osu_allgather)
    stages.spread = blocks_stage(whole, k_inside_broadcast, Benchmark::osu_bcast, whole.num_ranks);
  if (whole.benchmark == Benchmark::osu_scatter)
    stages.spread = blocks_stage(whole, k_inside_broadcast, Benchmark::osu_scatter, 1);
  return hierarchical(hosts, whole.root, stages, 1);
}

/// Reduced inside hosts, exchanged between them, spread inside: the stages that the collective has.
Rounds two_level(const Collective& whole) {
  if (is_of_blocks(whole.benchmark)) return two_level_of_blocks(whole);
  auto segment = whole;
  std::int64_t segments = 1;
  if (whole.segment.value > 0 && whole.size > whole.segment) {
    segments = (whole.size.value + whole.segment.value - 1) / whole.segment.value;
    segment.size = Bytes{whole.size.value / segments};
  }
  const auto stage = [segment](std::size_t place, Benchmark benchmark) {
    return [segment, place, benchmark](int n) { return part_of(segment, place, benchmark, n); };
  };
  Stages stages;
  if (whole.benchmark != Benchmark::osu_bcast) stages.gather = stage(k_inside_reduce, Benchmark::osu_reduce);
  // Open MPI's HAN leaves them to libnbc, which blocks in no send.
  const auto posted = [](std::function<Rounds(int)> between) {
    return [between = std::move(between)](int n) {
      auto rounds = between(n);
      for (auto& round : rounds) round.is_posted = true;
      return rounds;
    };
  };
  stages.exchange = posted(stage(k_between, whole.benchmark));
  if (whole.parts.size() > k_between_later) stages.later_exchange = posted(stage(k_between_later, whole.benchmark));
  if (whole.benchmark != Benchmark::osu_reduce) stages.spread = stage(k_inside_broadcast, Benchmark::osu_bcast);
  auto hosts = whole.hosts;
  hosts.resize(static_cast<std::size_t>(whole.num_ranks), 0);
  return hierarchical(hosts, whole.root, stages, segments);
}

/// A broadcast of whole messages whose sends do not block.
bool is_posted_tree(const Collective& collective, const Rounds& rounds) {
  if (collective.benchmark != Benchmark::osu_bcast || collective.algorithm == Algorithm::two_level) return false;
  return std::ranges::all_of(rounds, [](const Round& round) {
    return round.is_posted && round.order == RoundOrder::barrier && round.repeat == 1;
  });
}

/// One block after the other: as often as there are whole ones, and the rest.
Rounds in_blocks(const Collective& whole) {
  auto part = whole;
  part.block = Bytes{};
  part.size = whole.block;
  auto rounds = make_schedule(part);
  for (auto& round : rounds) round.repeat *= whole.size.value / whole.block.value;
  part.size = Bytes{whole.size.value % whole.block.value};
  if (part.size.value > 0) append(rounds, make_schedule(part));
  return rounds;
}

}  // namespace

bool is_reduction(Benchmark benchmark) {
  return benchmark == Benchmark::osu_allreduce || benchmark == Benchmark::osu_reduce ||
         benchmark == Benchmark::osu_reduce_scatter;
}

bool is_of_blocks(Benchmark benchmark) {
  return benchmark == Benchmark::osu_allgather || benchmark == Benchmark::osu_gather ||
         benchmark == Benchmark::osu_scatter;
}

bool has_root_of_blocks(Benchmark benchmark) { return is_of_blocks(benchmark) && has_root(benchmark); }

std::string_view to_string(CollectiveAlgorithm algorithm) {
  for (const auto& [known, name] : k_names) {
    if (known == algorithm) return name;
  }
  return "";
}

std::vector<CollectiveAlgorithm> algorithms_for(Benchmark benchmark) {
  using enum CollectiveAlgorithm;
  switch (benchmark) {
    case Benchmark::osu_allreduce:
      return {recursive_doubling, ring, rabenseifner, reduce_broadcast, knomial, sra_knomial, two_level};
    case Benchmark::osu_allgather:
      return {recursive_doubling, bruck, ring, neighbor_exchange, knomial, gather_broadcast, two_level};
    case Benchmark::osu_reduce_scatter:
      return {ring, pairwise, recursive_halving, butterfly, reduce_scatter};
    case Benchmark::osu_bcast:
      return {binomial,          binary,           split_binary, knomial,  chain, linear,
              scatter_allgather, scatter_doubling, sag_knomial,  two_level};
    case Benchmark::osu_reduce:
      return {binomial, binary, knomial, chain, linear, rabenseifner, two_level};
    case Benchmark::osu_alltoall:
      return {bruck, linear, pairwise};
    case Benchmark::osu_gather:
      return {binomial, knomial, linear, linear_sync, two_level};
    case Benchmark::osu_scatter:
      return {binomial, knomial, linear, linear_nb, two_level};
    case Benchmark::osu_barrier:
      return {dissemination, recursive_doubling, linear, binomial, knomial, two_level};
    default:
      return {};
  }
}

schedules::Rounds make_schedule(const Collective& one) {
  const double bytes = static_cast<double>(one.size.value);
  const int n = one.num_ranks;
  if (n < 2) return {};
  if (one.algorithm == Algorithm::two_level) return two_level(one);
  if (one.block.value > 0 && one.size > one.block) return in_blocks(one);
  switch (one.benchmark) {
    case Benchmark::osu_allreduce:
      return all_reduce(one, bytes);
    case Benchmark::osu_allgather:
      return all_gather(one, bytes);
    case Benchmark::osu_reduce_scatter:
      return reduce_scatter(one, bytes);
    case Benchmark::osu_bcast:
    case Benchmark::osu_reduce:
      return rooted(one, {.n = n,
                          .bytes = bytes,
                          .root = one.root,
                          .is_gather = one.benchmark == Benchmark::osu_reduce,
                          .segment = static_cast<double>(one.segment.value),
                          .is_in_order = one.is_of_mpich});
    case Benchmark::osu_alltoall:
      if (one.algorithm == Algorithm::bruck) return all_to_all_bruck(n, bytes);
      return one.algorithm == Algorithm::linear ? all_at_once(n, bytes) : pairwise(n, bytes, 0);
    case Benchmark::osu_gather:
      return gather(one, bytes);
    case Benchmark::osu_scatter:
      return scatter(one, bytes);
    case Benchmark::osu_barrier:
      return barrier(one);
    default:
      break;
  }
  FABRICAST_ASSERT(false, "benchmark {} is no MPI collective", static_cast<int>(one.benchmark));
  return {};
}

schedules::Rounds make_schedule(const Collective& collective, const std::function<bool(const Rounds&)>& holds) {
  if (collective.algorithm == Algorithm::reduce_broadcast && collective.parts.size() > k_broadcast_part) {
    auto rounds = make_schedule(collective.parts[k_reduce_part], holds);
    append(rounds, make_schedule(collective.parts[k_broadcast_part], holds));
    return rounds;
  }
  if (collective.algorithm == Algorithm::reduce_scatter && !collective.parts.empty()) {
    auto rounds = make_schedule(collective.parts[k_reduce_part], holds);
    const auto scatter = linear_scatter(blocks_of_elements(collective.num_ranks, collective.size));
    append(rounds, holds(scatter) ? one_by_one(scatter) : scatter);
    return rounds;
  }
  auto rounds = make_schedule(collective);
  if (collective.algorithm == Algorithm::linear && has_root_of_blocks(collective.benchmark))
    return holds(rounds) ? one_by_one(rounds) : rounds;
  return !collective.is_of_mpich && is_posted_tree(collective, rounds) && holds(rounds)
             ? by_generation(rounds, collective.hosts)
             : rounds;
}

bool ends_apart(const Collective& collective) {
  return leaves_apart(collective) || collective.algorithm == Algorithm::two_level ||
         collective.algorithm == Algorithm::reduce_broadcast || collective.algorithm == Algorithm::gather_broadcast;
}

bool leaves_apart(const Collective& collective) {
  return has_root(collective.benchmark) || collective.algorithm == Algorithm::reduce_scatter ||
         (collective.algorithm == Algorithm::recursive_halving && elements_of(collective.size) < collective.num_ranks);
}

}  // namespace fabricast::models::mpi
