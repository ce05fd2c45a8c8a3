// SPDX-License-Identifier: Apache-2.0
#include "mpi/decisions_han.hpp"

#include <algorithm>
#include <map>

#include "mpi/decision_tables.hpp"

namespace fabricast::models::mpi {

namespace {

using Algorithm = CollectiveAlgorithm;

// libnbc, whose chains pass a message on in parts from a size on.
constexpr std::int64_t k_chain = 65'536;
constexpr Bytes k_chain_segment{8'192};
constexpr int k_few_hosts = 4;

std::vector<int> ranks_of_hosts(const std::vector<int>& hosts) {
  std::map<int, int> count;
  for (const int host : hosts) ++count[host];
  std::vector<int> out;
  for (const auto& [host, ranks] : count) out.push_back(ranks);
  return out;
}

void take_chain(Collective& one) {
  one.algorithm = Algorithm::chain;
  one.segment = k_chain_segment;
}

Collective nonblocking_reduce(Collective one) {
  const int n = one.num_ranks;
  one.benchmark = Benchmark::osu_reduce;
  if (n > 2 && one.size.value / k_float >= schedules::floor_power_of_two(n))
    one.algorithm = Algorithm::rabenseifner;
  else if (n > k_few_hosts || one.size.value < k_chain)
    one.algorithm = Algorithm::binomial;
  else
    take_chain(one);
  return one;
}

Collective nonblocking_broadcast(Collective one) {
  one.benchmark = Benchmark::osu_bcast;
  if (one.num_ranks <= k_few_hosts)
    one.algorithm = Algorithm::linear;
  else if (one.size.value < k_chain)
    one.algorithm = Algorithm::binomial;
  else
    take_chain(one);
  return one;
}

}  // namespace

bool han_takes(Benchmark benchmark, const std::vector<int>& hosts) {
  switch (benchmark) {
    case Benchmark::osu_allreduce:
    case Benchmark::osu_barrier:
      return true;
    case Benchmark::osu_reduce:
    case Benchmark::osu_bcast:
    case Benchmark::osu_gather:
    case Benchmark::osu_scatter:
    case Benchmark::osu_allgather: {
      const auto ranks = ranks_of_hosts(hosts);
      return std::ranges::adjacent_find(ranks, std::not_equal_to<>()) == ranks.end();
    }
    default:
      return false;
  }
}

std::vector<Collective> parts_of_han(const Collective& whole, const std::function<void(Collective&)>& choose) {
  const auto ranks = ranks_of_hosts(whole.hosts);
  auto segment = whole;
  segment.size = std::min(whole.size, k_han_segment);
  segment.root = 0;
  segment.hosts.clear();
  segment.num_ranks = static_cast<int>(ranks.size());
  auto between = segment;
  auto later = nonblocking_broadcast(segment);
  if (whole.benchmark == Benchmark::osu_reduce) {
    between = later = nonblocking_reduce(segment);
  } else if (whole.benchmark == Benchmark::osu_bcast) {
    choose(between);  // the first segment is a blocking broadcast
  } else {
    between.algorithm = Algorithm::reduce_broadcast;
    between.parts = {nonblocking_reduce(segment), later};
    later = between;
  }
  segment.num_ranks = *std::ranges::max_element(ranks);
  const auto inside = [&](Benchmark benchmark) {
    auto part = segment;
    part.benchmark = benchmark;
    choose(part);
    return part;
  };
  return {inside(Benchmark::osu_reduce), between, inside(Benchmark::osu_bcast), later};
}

std::vector<Collective> parts_of_blocks(const Collective& whole, const std::function<void(Collective&)>& choose) {
  const auto ranks = whole.hosts.empty() ? std::vector{whole.num_ranks} : ranks_of_hosts(whole.hosts);
  const int of_host = *std::ranges::max_element(ranks);
  auto part = whole;
  part.root = 0;
  part.hosts.clear();
  const auto picked = [&](Benchmark benchmark, int num_ranks, Bytes size) {
    auto one = part;
    one.benchmark = benchmark;
    one.num_ranks = num_ranks;
    one.size = size;
    choose(one);
    return one;
  };
  const bool is_all = whole.benchmark == Benchmark::osu_allgather;
  return {picked(Benchmark::osu_gather, of_host, whole.size),
          picked(whole.benchmark, static_cast<int>(ranks.size()), of_host * whole.size),
          is_all ? picked(Benchmark::osu_bcast, of_host, whole.num_ranks * whole.size)
                 : picked(Benchmark::osu_scatter, of_host, whole.size)};
}

}  // namespace fabricast::models::mpi
