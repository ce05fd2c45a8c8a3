// SPDX-License-Identifier: Apache-2.0
// Which ranks meet when: with consecutive ranks on every host it decides what crosses between hosts.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <vector>

#include "models/mpi/decisions.hpp"
#include "schedules/algorithms.hpp"
#include "schedules/powers.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;
using namespace fabricast::models::mpi;
using namespace fabricast::models::schedules;

namespace {

using Algorithm = CollectiveAlgorithm;
constexpr double k_size = 1 << 20;

Rounds rounds_of(Benchmark benchmark, Algorithm algorithm, int n, bool is_of_mpich = false, int root = 0) {
  Collective one;
  one.benchmark = benchmark;
  one.algorithm = algorithm;
  one.num_ranks = n;
  one.size = Bytes{1 << 20};
  one.root = root;
  one.is_of_mpich = is_of_mpich;
  return make_schedule(one);
}

/// `k` consecutive ranks on each host.
Collective over_hosts(Benchmark benchmark, int hosts, int k, Bytes size) {
  Collective one{.benchmark = benchmark, .num_ranks = hosts * k, .size = size};
  for (int r = 0; r < hosts * k; ++r) one.hosts.push_back(r / k);
  return one;
}

/// Bytes that a round moves between hosts of `k` consecutive ranks, by (from, to).
std::map<std::pair<int, int>, double> between_hosts(const Round& round, int k) {
  std::map<std::pair<int, int>, double> bytes;
  for (const auto& step : round.steps)
    if (step.from / k != step.to / k) bytes[{step.from / k, step.to / k}] += step.bytes;
  return bytes;
}

std::map<std::pair<int, int>, double> between_hosts(const Rounds& rounds, int k) {
  std::map<std::pair<int, int>, double> bytes;
  for (const auto& round : rounds)
    for (const auto& [ends, more] : between_hosts(round, k)) bytes[ends] += more;
  return bytes;
}

/// Distances of the messages of each round; of one round all the same.
std::vector<int> distances(const Rounds& rounds) {
  std::vector<int> out;
  for (const auto& round : rounds) {
    std::set<int> of_round;
    for (const auto& step : round.steps) of_round.insert(std::abs(step.to - step.from));
    CHECK(of_round.size() == 1);
    out.push_back(*of_round.begin());
  }
  return out;
}

}  // namespace

TEST_CASE("Rabenseifner halves the vector while the distance doubles: its first and last rounds stay inside a host") {
  for (const int n : {4, 16, 64, 256}) {
    for (int k = 1; k <= n; k *= 2) {
      for (const bool is_of_mpich : {false, true}) {
        CAPTURE(n);
        CAPTURE(k);
        CAPTURE(is_of_mpich);
        const auto rounds = rounds_of(Benchmark::osu_allreduce, Algorithm::rabenseifner, n, is_of_mpich);
        const int half = std::countr_zero(static_cast<unsigned>(n));
        REQUIRE(static_cast<int>(rounds.size()) == 2 * half);
        double crossing = 0;
        for (int i = 0; i < half; ++i) {
          const auto& first = rounds[static_cast<std::size_t>(i)];
          const auto& last = rounds[rounds.size() - 1 - static_cast<std::size_t>(i)];
          for (const auto* round : {&first, &last}) {
            CHECK(round->steps.front().bytes == k_size / (2 << i));
            CHECK((round->steps.front().from ^ round->steps.front().to) == 1 << i);
            if (1 << i < k) CHECK(between_hosts(*round, k).empty());
            for (const auto& [ends, bytes] : between_hosts(*round, k)) crossing += bytes;
          }
        }
        CHECK(crossing == test::approx(2.0 * n * k_size * (1.0 / k - 1.0 / n)));
        // A reduce halves as well; then every round further than a host brings half of the vector nearer to the root.
        double to_root = 0;
        for (const auto& [ends, bytes] :
             between_hosts(rounds_of(Benchmark::osu_reduce, Algorithm::rabenseifner, n, is_of_mpich), k))
          to_root += bytes;
        const int far_rounds = std::countr_zero(static_cast<unsigned>(n / k));
        CHECK(to_root == test::approx(n * k_size * (1.0 / k - 1.0 / n) + k_size / 2 * far_rounds));
      }
    }
  }
}

TEST_CASE("trees whose ranks are in order send a message once between two hosts, those by the highest bit many times") {
  for (const int n : {16, 64, 256}) {
    for (const int k : {4, 16}) {
      if (k >= n) continue;
      CAPTURE(n);
      CAPTURE(k);
      const int hosts = n / k;
      const auto in_order = [&](const Rounds& rounds) {
        const auto bytes = between_hosts(rounds, k);
        CHECK(static_cast<int>(bytes.size()) == hosts - 1);
        for (const auto& [ends, sent] : bytes) CHECK(sent == k_size);
      };
      for (const bool is_of_mpich : {false, true}) {
        in_order(rounds_of(Benchmark::osu_reduce, Algorithm::binomial, n, is_of_mpich));
        in_order(rounds_of(Benchmark::osu_bcast, Algorithm::knomial, n, is_of_mpich));
      }
      in_order(rounds_of(Benchmark::osu_bcast, Algorithm::binomial, n, true));
      // Open MPI's broadcast: every rank of the first host sends to its like on all others.
      double all = 0;
      for (const auto& [ends, sent] : between_hosts(rounds_of(Benchmark::osu_bcast, Algorithm::binomial, n), k))
        all += sent;
      CHECK(all == k_size * (n - k));
    }
  }
}

TEST_CASE("a reduce meets the nearest rank first, MPICH's broadcast the farthest, Open MPI's the nearest") {
  for (const bool is_of_mpich : {false, true})
    CHECK(distances(rounds_of(Benchmark::osu_reduce, Algorithm::binomial, 16, is_of_mpich)) ==
          std::vector<int>{1, 2, 4, 8});
  CHECK(distances(rounds_of(Benchmark::osu_bcast, Algorithm::binomial, 16, true)) == std::vector<int>{8, 4, 2, 1});
  CHECK(distances(rounds_of(Benchmark::osu_bcast, Algorithm::binomial, 16, false)) == std::vector<int>{1, 2, 4, 8});
  // Open MPI's own picture of the tree of radix 4 with 10 ranks.
  std::set<std::pair<int, int>> edges;
  for (const auto& round : rounds_of(Benchmark::osu_bcast, Algorithm::knomial, 10))
    for (const auto& step : round.steps) edges.insert({step.from, step.to});
  CHECK(edges == std::set<std::pair<int, int>>{{0, 1}, {0, 2}, {0, 3}, {0, 4}, {0, 8}, {4, 5}, {4, 6}, {4, 7}, {8, 9}});
}

TEST_CASE("a binary tree is numbered as Open MPI's picture of it, odd ranks in the left half") {
  std::set<std::pair<int, int>> edges;
  for (const auto& round : rounds_of(Benchmark::osu_bcast, Algorithm::binary, 7))
    for (const auto& step : round.steps) edges.insert({step.from, step.to});
  CHECK(edges == std::set<std::pair<int, int>>{{0, 1}, {0, 2}, {1, 3}, {1, 5}, {2, 4}, {2, 6}});
  for (const int n : {3, 8, 33, 100}) {
    CAPTURE(n);
    const auto rounds = rounds_of(Benchmark::osu_bcast, Algorithm::binary, n);
    for (const auto& round : rounds)
      for (const auto& step : round.steps) CHECK((step.from == 0 || (step.to - step.from) % 2 == 0));
    const auto swapped = rounds_of(Benchmark::osu_bcast, Algorithm::split_binary, n).back();
    for (const auto& step : swapped.steps) {
      if (step.from == 0 || step.to == 0) continue;
      CHECK(std::abs(step.to - step.from) == 1);
    }
  }
}

TEST_CASE(
    "beyond a power of two neighbours fold: one of each pair leaves, all others meet as many as the power has bits") {
  for (std::uint64_t seed = 0; seed < test::draws(40); ++seed) {
    test::Random random(seed);
    const int n = 3 + static_cast<int>(random.next(200));
    const int power = floor_power_of_two(n);
    if (power == n) continue;
    CAPTURE(n);
    const int extra = n - power;
    for (const bool is_of_mpich : {false, true}) {
      for (const auto algorithm : {Algorithm::recursive_doubling, Algorithm::rabenseifner}) {
        const auto rounds = rounds_of(Benchmark::osu_allreduce, algorithm, n, is_of_mpich);
        const bool is_in_halves = algorithm == Algorithm::rabenseifner && !is_of_mpich;
        std::set<int> left;
        std::map<int, std::set<int>> met;
        double entered = 0;
        const std::size_t entries = is_in_halves ? 2 : 1;
        for (std::size_t i = 0; i < rounds.size(); ++i) {
          const bool is_fold = i < entries || i + 1 == rounds.size();
          for (const auto& step : rounds[i].steps) {
            if (is_fold) {
              CHECK((step.from ^ step.to) == 1);
              CHECK(std::max(step.from, step.to) < 2 * extra);
              if (i + 1 == rounds.size()) left.insert(step.to);
              if (i < entries) entered += step.bytes;
            } else {
              met[step.from].insert(step.to);
            }
          }
          if (i == 0) CHECK(rounds[i].reduced_bytes == (is_in_halves ? k_size / 2 : k_size));
        }
        CHECK(static_cast<int>(left.size()) == extra);
        CHECK(entered == test::approx(extra * k_size * (is_in_halves ? 1.5 : 1)));
        CHECK(static_cast<int>(met.size()) == power);
        for (const auto& [rank, others] : met) {
          CHECK_FALSE(left.contains(rank));
          CHECK((1 << others.size()) == power);
        }
      }
    }
  }
}

TEST_CASE("halving a vector for a reduce-scatter, two ranks share what they have and each keeps what it gets") {
  for (std::uint64_t seed = 0; seed < test::draws(40); ++seed) {
    test::Random random(seed);
    const int n = 2 + static_cast<int>(random.next(200));
    const auto size = Bytes{4 * n * (1 + static_cast<std::int64_t>(random.next(1000)))};
    CAPTURE(n);
    const int extra = n - floor_power_of_two(n);
    const double all_bytes = static_cast<double>(size.value);
    const double block = all_bytes / n;
    for (const auto algorithm : {Algorithm::recursive_halving, Algorithm::butterfly}) {
      const auto rounds = make_schedule(
          {.benchmark = Benchmark::osu_reduce_scatter, .algorithm = algorithm, .num_ranks = n, .size = size});
      std::map<int, double> has;
      for (int r = 0; r < n; ++r) has[r] = all_bytes;
      for (std::size_t i = 0; i < rounds.size(); ++i) {
        std::map<int, double> sent;
        std::map<int, double> received;
        for (const auto& step : rounds[i].steps) {
          sent[step.from] += step.bytes;
          received[step.to] += step.bytes;
        }
        const bool is_entry = extra > 0 && i == 0;
        if (is_entry) {
          for (const auto& [rank, bytes] : sent) CHECK(bytes == all_bytes);
        } else if (rounds[i].reduced_bytes > 0) {
          for (const auto& [rank, bytes] : received) {
            CHECK(sent[rank] + bytes == test::approx(has[rank]));
            has[rank] = bytes;
          }
        } else {
          // What is left is the blocks of one place: a rank's own, and its neighbour's that left.
          for (const auto& [rank, bytes] : sent) CHECK(bytes <= test::approx(has[rank]));
          for (const auto& [rank, bytes] : received) CHECK(bytes == test::approx(block));
        }
      }
      double all = 0;
      for (int r = 0; r < n; ++r) {
        const bool has_left = r < 2 * extra && r % 2 == 0;
        if (has_left) continue;
        all += has[r];
        const double places = has[r] / block;
        CHECK((places == test::approx(1) || places == test::approx(2)));
      }
      CHECK(all == test::approx(all_bytes));
    }
  }
}

// What osu_reduce_scatter.c gives to each rank: elements of 4 B, one more to the first ranks.
TEST_CASE("a reduce-scatter leaves whole elements with its ranks, and nobody sends to those that get none") {
  for (std::uint64_t seed = 0; seed < test::draws(60); ++seed) {
    test::Random random(seed);
    const int n = 2 + static_cast<int>(random.next(100));
    const auto most = static_cast<std::uint64_t>(random.next(2) == 0 ? 2 * n : 100 * n);
    const int elements = 1 + static_cast<int>(random.next(most));
    CAPTURE(n);
    CAPTURE(elements);
    const auto due = [&](int rank) { return 4.0 * (elements / n + (rank < elements % n ? 1 : 0)); };
    Collective one{.benchmark = Benchmark::osu_reduce_scatter, .num_ranks = n, .size = Bytes{4 * elements}};
    one.algorithm = Algorithm::reduce_scatter;
    const auto reduced = rounds_of(Benchmark::osu_reduce, Algorithm::binomial, n);
    const auto rounds = make_schedule(one);
    const auto& scatter = rounds.back();
    CHECK(rounds.size() == reduced.size() + (n > 1 && due(1) > 0 ? 1 : 0));
    if (due(1) > 0) {
      std::map<int, double> got;
      for (const auto& step : scatter.steps) {
        CHECK(step.from == 0);
        CHECK(step.bytes > 0);
        got[step.to] += step.bytes;
      }
      for (int r = 1; r < n; ++r) CHECK(got[r] == due(r));
    }
    one.algorithm = Algorithm::recursive_halving;
    CHECK(ends_apart(one) == (elements < n));
    const int extra = n - floor_power_of_two(n);
    std::map<int, double> has;  // what a rank has combined; of those that stayed their neighbours' too
    for (int r = 0; r < n; ++r) has[r] = 4.0 * elements;
    for (const auto& round : make_schedule(one)) {
      for (const auto& step : round.steps) {
        CHECK(step.bytes > 0);
        has[step.from] -= step.bytes;
      }
    }
    for (int r = 0; r < n; ++r) {
      // Who left got its own block from its neighbour; everybody else sent all but its own.
      const bool has_left = r < 2 * extra && r % 2 == 0;
      CHECK(has[r] == test::approx(has_left ? 0 : due(r)));
    }
  }
}

TEST_CASE("HAN: every segment crosses hosts between their first ranks, and all ranks get each of them") {
  for (std::uint64_t seed = 0; seed < test::draws(60); ++seed) {
    test::Random random(seed);
    CAPTURE(seed);
    const int hosts = 2 + static_cast<int>(random.next(9));
    const int k = 2 + static_cast<int>(random.next(20));
    const auto benchmark =
        random.pick<Benchmark>({Benchmark::osu_allreduce, Benchmark::osu_bcast, Benchmark::osu_reduce});
    const std::int64_t segments = 1 + static_cast<std::int64_t>(random.next(20));
    const auto rounds =
        make_schedule(choose(Library::open_mpi_5_0, over_hosts(benchmark, hosts, k, Bytes{segments << 16})));
    std::map<int, double> received;
    for (const auto& round : rounds) {
      for (const auto& step : round.steps) {
        if (step.from / k != step.to / k) CHECK((step.from % k == 0 && step.to % k == 0));
        received[step.to] += step.bytes * static_cast<double>(round.repeat);
      }
    }
    const double whole = static_cast<double>(segments << 16);
    for (int r = 0; r < hosts * k; ++r) {
      if (benchmark == Benchmark::osu_reduce ? r != 0 : r % k == 0) continue;
      CAPTURE(r);
      CHECK(received[r] >= test::approx(whole));
    }
  }
}

TEST_CASE(
    "two levels of a gather or scatter cross hosts between their first ranks, and every block goes its way once") {
  for (std::uint64_t seed = 0; seed < test::draws(60); ++seed) {
    test::Random random(seed);
    CAPTURE(seed);
    const int hosts = 2 + static_cast<int>(random.next(9));
    const int k = 2 + static_cast<int>(random.next(20));
    const auto benchmark = random.pick<Benchmark>({Benchmark::osu_gather, Benchmark::osu_scatter});
    const auto library = random.pick<Library>({Library::open_mpi_4_0, Library::open_mpi_5_0, Library::mpich_4});
    const Bytes size{std::int64_t{1} << random.next(22)};
    auto asked = over_hosts(benchmark, hosts, k, size);
    asked.root = static_cast<int>(random.next(static_cast<std::uint64_t>(hosts * k)));
    const auto speaks = [&](int rank) { return rank == asked.root || (rank % k == 0 && rank / k != asked.root / k); };
    std::map<int, double> kept;
    for (const auto& round : make_schedule(choose(library, asked, Algorithm::two_level))) {
      for (const auto& step : round.steps) {
        if (step.from / k != step.to / k) CHECK((speaks(step.from) && speaks(step.to)));
        kept[step.from] -= step.bytes;
        kept[step.to] += step.bytes;
      }
    }
    const double sign = benchmark == Benchmark::osu_gather ? -1 : 1;
    const auto block = static_cast<double>(size.value);
    for (int r = 0; r < hosts * k; ++r)
      CHECK(kept[r] == test::approx(sign * block * (r == asked.root ? 1 - hosts * k : 1)));
  }
}

TEST_CASE("two levels of an all-gather: first ranks hold all when hosts have exchanged, then every rank does") {
  for (std::uint64_t seed = 0; seed < test::draws(60); ++seed) {
    test::Random random(seed);
    CAPTURE(seed);
    const int hosts = 2 + static_cast<int>(random.next(9));
    const int k = 2 + static_cast<int>(random.next(20));
    const auto library =
        random.pick<Library>({Library::open_mpi_4_0, Library::open_mpi_4_1, Library::open_mpi_5_0, Library::mpich_4});
    const Bytes size{std::int64_t{4} << random.next(20)};
    const auto block = static_cast<double>(size.value);
    const auto asked = over_hosts(Benchmark::osu_allgather, hosts, k, size);
    const auto rounds = make_schedule(choose(library, asked, Algorithm::two_level));
    std::map<int, double> received, crossed;
    for (const auto& round : rounds) {
      CHECK(round.reduced_bytes == 0);
      for (const auto& step : round.steps) {
        if (step.from / k != step.to / k) {
          CHECK((step.from % k == 0 && step.to % k == 0));
          crossed[step.to] += step.bytes * static_cast<double>(round.repeat);
        }
        received[step.to] += step.bytes * static_cast<double>(round.repeat);
      }
    }
    for (int r = 0; r < hosts * k; ++r) {
      CAPTURE(r);
      if (r % k == 0) CHECK(crossed[r] == test::approx((hosts - 1) * k * block));
      CHECK(received[r] >= test::approx(hosts * k * block - block));
    }
  }
}
