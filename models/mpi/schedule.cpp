// SPDX-License-Identifier: Apache-2.0
#include "mpi/schedule.hpp"

#include <algorithm>
#include <bit>

#include "base/assert.hpp"

namespace fabricast::models::mpi {

namespace {

using Rounds = std::vector<ScheduleRound>;
using Algorithm = CollectiveAlgorithm;

int floor_power_of_two(int n) { return static_cast<int>(std::bit_floor(static_cast<unsigned>(n))); }

/// Ranks beyond a power of two hand their data to a neighbour first (`is_entry`), and get the result back at the end.
ScheduleRound fold(int num_ranks, double bytes, bool is_entry) {
  const int power = floor_power_of_two(num_ranks);
  ScheduleRound round;
  for (int extra = power; extra < num_ranks; ++extra) {
    const int partner = extra - power;
    round.steps.push_back(is_entry ? Step{extra, partner, bytes} : Step{partner, extra, bytes});
  }
  round.reduced_bytes = is_entry ? bytes : 0;
  return round;
}

ScheduleRound exchange(int power, int distance, double bytes, double reduced) {
  ScheduleRound round;
  for (int r = 0; r < power; ++r) round.steps.push_back({r, r ^ distance, bytes});
  round.reduced_bytes = reduced;
  return round;
}

void add_fold(Rounds& rounds, int num_ranks, double bytes, bool is_entry) {
  if (floor_power_of_two(num_ranks) != num_ranks) rounds.push_back(fold(num_ranks, bytes, is_entry));
}

ScheduleRound shift(int num_ranks, double bytes, std::int64_t repeat, double reduced) {
  ScheduleRound round;
  for (int r = 0; r < num_ranks; ++r) round.steps.push_back({r, (r + 1) % num_ranks, bytes});
  round.repeat = repeat;
  round.reduced_bytes = reduced;
  return round;
}

Rounds all_reduce_recursive_doubling(int n, double bytes) {
  Rounds rounds;
  add_fold(rounds, n, bytes, true);
  for (int d = 1; d < floor_power_of_two(n); d *= 2) rounds.push_back(exchange(floor_power_of_two(n), d, bytes, bytes));
  add_fold(rounds, n, bytes, false);
  return rounds;
}

Rounds all_reduce_rabenseifner(int n, double bytes) {
  Rounds rounds;
  const int power = floor_power_of_two(n);
  add_fold(rounds, n, bytes, true);
  double part = bytes / 2;
  for (int d = power / 2; d >= 1; d /= 2, part /= 2) rounds.push_back(exchange(power, d, part, part));
  part = bytes / power;
  for (int d = 1; d < power; d *= 2, part *= 2) rounds.push_back(exchange(power, d, part, 0));
  add_fold(rounds, n, bytes, false);
  return rounds;
}

/// Root outwards; `is_gather` turns the tree round (reduce).
Rounds binomial(int n, double bytes, int root, bool is_gather) {
  Rounds rounds;
  for (int d = 1; d < n; d *= 2) {
    ScheduleRound round;
    for (int r = 0; r < d && r + d < n; ++r) {
      const int near = (r + root) % n;
      const int far = (r + d + root) % n;
      round.steps.push_back(is_gather ? Step{far, near, bytes} : Step{near, far, bytes});
    }
    round.reduced_bytes = is_gather ? bytes : 0;
    rounds.push_back(std::move(round));
  }
  if (is_gather) std::reverse(rounds.begin(), rounds.end());
  return rounds;
}

/// Binomial scatter of the message, then a ring all-gather of the parts.
Rounds scatter_then_ring(int n, double bytes, int root) {
  Rounds rounds;
  for (int d = static_cast<int>(std::bit_ceil(static_cast<unsigned>(n))) / 2; d >= 1; d /= 2) {
    ScheduleRound round;
    for (int r = 0; r + d < n; r += 2 * d) {
      const int ranks_below = std::min(d, n - r - d);
      round.steps.push_back({(r + root) % n, (r + d + root) % n, bytes * ranks_below / n});
    }
    if (!round.steps.empty()) rounds.push_back(std::move(round));
  }
  rounds.push_back(shift(n, bytes / n, n - 1, 0));
  return rounds;
}

/// Doubling distances; the last round carries the rest when n is not a power of two.
Rounds all_gather_bruck(int n, double block) {
  Rounds rounds;
  for (int d = 1; d < n; d *= 2) {
    ScheduleRound round;
    const double bytes = block * std::min(d, n - d);
    for (int r = 0; r < n; ++r) round.steps.push_back({r, (r - d + n) % n, bytes});
    rounds.push_back(std::move(round));
  }
  return rounds;
}

Rounds all_to_all_bruck(int n, double block) {
  Rounds rounds;
  for (int d = 1; d < n; d *= 2) {
    int blocks = 0;
    for (int b = 1; b < n; ++b) blocks += (b & d) != 0 ? 1 : 0;
    ScheduleRound round;
    for (int r = 0; r < n; ++r) round.steps.push_back({r, (r + d) % n, block * blocks});
    rounds.push_back(std::move(round));
  }
  return rounds;
}

Rounds pairwise(int n, double block, double reduced) {
  Rounds rounds;
  for (int k = 1; k < n; ++k) {
    ScheduleRound round;
    for (int r = 0; r < n; ++r) round.steps.push_back({r, (r + k) % n, block});
    round.reduced_bytes = reduced;
    rounds.push_back(std::move(round));
  }
  return rounds;
}

/// Everybody posts everything at once.
Rounds all_at_once(int n, double block) {
  ScheduleRound round;
  for (int r = 0; r < n; ++r) {
    for (int k = 1; k < n; ++k) round.steps.push_back({r, (r + k) % n, block});
  }
  return {round};
}

Rounds dissemination(int n) {
  Rounds rounds;
  for (int d = 1; d < n; d *= 2) {
    ScheduleRound round;
    for (int r = 0; r < n; ++r) round.steps.push_back({r, (r + d) % n, 0});
    rounds.push_back(std::move(round));
  }
  return rounds;
}

Rounds recursive_doubling_gather(int n, double block) {
  if (floor_power_of_two(n) != n) return all_gather_bruck(n, block);
  Rounds rounds;
  for (int d = 1; d < n; d *= 2) rounds.push_back(exchange(n, d, block * d, 0));
  return rounds;
}

}  // namespace

std::string_view to_string(CollectiveAlgorithm algorithm) {
  switch (algorithm) {
    case Algorithm::recursive_doubling:
      return "recursive_doubling";
    case Algorithm::ring:
      return "ring";
    case Algorithm::rabenseifner:
      return "rabenseifner";
    case Algorithm::binomial:
      return "binomial";
    case Algorithm::scatter_allgather:
      return "scatter_allgather";
    case Algorithm::bruck:
      return "bruck";
    case Algorithm::pairwise:
      return "pairwise";
    case Algorithm::linear:
      return "linear";
    case Algorithm::dissemination:
      return "dissemination";
  }
  return "";
}

std::vector<CollectiveAlgorithm> algorithms_for(Benchmark benchmark) {
  switch (benchmark) {
    case Benchmark::osu_allreduce:
      return {Algorithm::recursive_doubling, Algorithm::ring, Algorithm::rabenseifner};
    case Benchmark::osu_allgather:
      return {Algorithm::recursive_doubling, Algorithm::bruck, Algorithm::ring};
    case Benchmark::osu_reduce_scatter:
      return {Algorithm::ring, Algorithm::pairwise};
    case Benchmark::osu_bcast:
      return {Algorithm::binomial, Algorithm::scatter_allgather};
    case Benchmark::osu_reduce:
      return {Algorithm::binomial};
    case Benchmark::osu_alltoall:
      return {Algorithm::bruck, Algorithm::linear, Algorithm::pairwise};
    case Benchmark::osu_barrier:
      return {Algorithm::dissemination};
    default:
      return {};
  }
}

std::vector<ScheduleRound> make_schedule(Benchmark benchmark, CollectiveAlgorithm algorithm, int num_ranks, Bytes size,
                                         int root) {
  const int n = num_ranks;
  const double bytes = static_cast<double>(size.value);
  if (n < 2) return {};
  switch (benchmark) {
    case Benchmark::osu_allreduce:
      if (algorithm == Algorithm::recursive_doubling) return all_reduce_recursive_doubling(n, bytes);
      if (algorithm == Algorithm::rabenseifner) return all_reduce_rabenseifner(n, bytes);
      return {shift(n, bytes / n, n - 1, bytes / n), shift(n, bytes / n, n - 1, 0)};
    case Benchmark::osu_allgather:
      if (algorithm == Algorithm::recursive_doubling) return recursive_doubling_gather(n, bytes);
      if (algorithm == Algorithm::bruck) return all_gather_bruck(n, bytes);
      return {shift(n, bytes, n - 1, 0)};
    case Benchmark::osu_reduce_scatter:
      if (algorithm == Algorithm::pairwise) return pairwise(n, bytes / n, bytes / n);
      return {shift(n, bytes / n, n - 1, bytes / n)};
    case Benchmark::osu_bcast:
      if (algorithm == Algorithm::scatter_allgather) return scatter_then_ring(n, bytes, root);
      return binomial(n, bytes, root, false);
    case Benchmark::osu_reduce:
      return binomial(n, bytes, root, true);
    case Benchmark::osu_alltoall:
      if (algorithm == Algorithm::bruck) return all_to_all_bruck(n, bytes);
      if (algorithm == Algorithm::linear) return all_at_once(n, bytes);
      return pairwise(n, bytes, 0);
    case Benchmark::osu_barrier:
      return dissemination(n);
    default:
      break;
  }
  FABRICAST_ASSERT(false, "benchmark {} is no MPI collective", static_cast<int>(benchmark));
  return {};
}

CollectiveAlgorithm choose_algorithm(Benchmark benchmark, int num_ranks, Bytes size, bool is_open_mpi) {
  const std::int64_t total = (num_ranks * size).value;
  const bool is_power = floor_power_of_two(num_ranks) == num_ranks;
  switch (benchmark) {
    case Benchmark::osu_allreduce:
      if (is_open_mpi) return size.value < 10'000 ? Algorithm::recursive_doubling : Algorithm::ring;
      return size.value <= 2'048 ? Algorithm::recursive_doubling : Algorithm::rabenseifner;
    case Benchmark::osu_allgather:
      if (is_open_mpi)
        return total < 50'000 ? (is_power ? Algorithm::recursive_doubling : Algorithm::bruck) : Algorithm::ring;
      if (total < 524'288 && is_power) return Algorithm::recursive_doubling;
      return total < 81'920 ? Algorithm::bruck : Algorithm::ring;
    case Benchmark::osu_reduce_scatter:
      return is_open_mpi ? Algorithm::ring : Algorithm::pairwise;
    case Benchmark::osu_bcast:
      if (is_open_mpi) return size.value < 370'728 ? Algorithm::binomial : Algorithm::scatter_allgather;
      return size.value < 12'288 || num_ranks < 8 ? Algorithm::binomial : Algorithm::scatter_allgather;
    case Benchmark::osu_reduce:
      return Algorithm::binomial;
    case Benchmark::osu_alltoall:
      if (is_open_mpi) {
        if (size.value < 200 && num_ranks > 12) return Algorithm::bruck;
        return size.value < 3'000 ? Algorithm::linear : Algorithm::pairwise;
      }
      if (size.value <= 256 && num_ranks >= 8) return Algorithm::bruck;
      return size.value <= 32'768 ? Algorithm::linear : Algorithm::pairwise;
    default:
      return Algorithm::dissemination;
  }
}

}  // namespace fabricast::models::mpi
