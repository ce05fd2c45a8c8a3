// SPDX-License-Identifier: Apache-2.0
// MPI schedules move the right data: simulated symbolically for every algorithm, odd rank counts, roots and segments.
#include "models/mpi/schedule.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "models/mpi/rank_clocks.hpp"
#include "tests/support/approx.hpp"

using namespace fabricast;
using namespace fabricast::models::mpi;
using namespace fabricast::models::schedules;

namespace {

using Algorithm = CollectiveAlgorithm;

const std::vector<int> k_counts{2, 3, 4, 5, 7, 8, 12, 16, 33};

Collective collective(Benchmark benchmark, Algorithm algorithm, int n, Bytes size, int root = 0) {
  Collective out;
  out.benchmark = benchmark;
  out.algorithm = algorithm;
  out.num_ranks = n;
  out.size = size;
  out.root = root;
  // Two ranks of three on one host, in no order.
  for (int r = 0; r < n; ++r) out.hosts.push_back(r * 7 % n / 3);
  return out;
}

/// The most ranks up to n that are whole groups of the largest power of `radix` in it.
int floor_of_groups(int n, int radix) {
  int power = 1;
  while (power * radix <= n) power *= radix;
  return n / power * power;
}

double bytes_sent_by(const Rounds& rounds, int rank) {
  double sum = 0;
  for (const auto& round : rounds) {
    for (const auto& step : round.steps) sum += step.from == rank ? step.bytes * static_cast<double>(round.repeat) : 0;
  }
  return sum;
}

double bytes_received_by(const Rounds& rounds, int rank) {
  double sum = 0;
  for (const auto& round : rounds) {
    for (const auto& step : round.steps) sum += step.to == rank ? step.bytes * static_cast<double>(round.repeat) : 0;
  }
  return sum;
}

/// Rounds of a neighbour exchange change sides every time; equal ones are listed together.
Rounds alternated(const Rounds& rounds) {
  Rounds out{rounds.front()};
  for (std::int64_t again = 0; rounds.size() > 1 && again < rounds[1].repeat; ++again) {
    for (std::size_t side = 1; side < rounds.size(); ++side) {
      if (again >= rounds[side].repeat) continue;
      out.push_back(rounds[side]);
      out.back().repeat = 1;
    }
  }
  return out;
}

/// [rank] the ranks whose data it may hold after the rounds, each starting with its own.
std::vector<std::set<int>> heard(const Rounds& rounds, int n) {
  std::vector<std::set<int>> knows(static_cast<std::size_t>(n));
  for (int r = 0; r < n; ++r) knows[static_cast<std::size_t>(r)].insert(r);
  for (const auto& round : rounds) {
    for (std::int64_t again = 0; again < std::min<std::int64_t>(round.repeat, n); ++again) {
      auto next = knows;
      for (const auto& step : round.steps) {
        const auto& data = knows[static_cast<std::size_t>(step.from)];
        next[static_cast<std::size_t>(step.to)].insert(data.begin(), data.end());
      }
      knows = std::move(next);
    }
  }
  return knows;
}

}  // namespace

TEST_CASE("a ring all-reduce sends 2(n-1)/n of the message from every rank, Rabenseifner too on a power of two") {
  for (const int n : k_counts) {
    CAPTURE(n);
    const auto ring = make_schedule(collective(Benchmark::osu_allreduce, Algorithm::ring, n, Bytes{1 << 20}));
    for (int r = 0; r < n; ++r) CHECK(bytes_sent_by(ring, r) == test::approx(2.0 * (n - 1) / n * (1 << 20)));
    if ((n & (n - 1)) != 0) continue;
    const auto halves = make_schedule(collective(Benchmark::osu_allreduce, Algorithm::rabenseifner, n, Bytes{1 << 20}));
    for (int r = 0; r < n; ++r) CHECK(bytes_sent_by(halves, r) == test::approx(2.0 * (n - 1) / n * (1 << 20)));
  }
}

TEST_CASE(
    "UCC's exchanges of radix 4: 32 ranks meet four, four and two at a time, and each sends to all others of a group") {
  const auto rounds = make_schedule(collective(Benchmark::osu_allreduce, Algorithm::knomial, 32, Bytes{1024}));
  REQUIRE(rounds.size() == 3);
  CHECK(rounds[0].steps.size() == 32 * 3);
  CHECK(rounds[2].steps.size() == 32);
  CHECK(rounds[0].reduced_bytes == 3 * 1024);
  CHECK(rounds[2].reduced_bytes == 1024);
  for (const auto& step : rounds[1].steps) CHECK((step.from - step.to) % 4 == 0);
  // Reduced and scattered, then gathered: as few bytes as a ring, in 2 x 3 rounds.
  const auto sra = make_schedule(collective(Benchmark::osu_allreduce, Algorithm::sra_knomial, 32, Bytes{1024}));
  CHECK(sra.size() == 6);
  for (int r = 0; r < 32; ++r) CHECK(bytes_sent_by(sra, r) == test::approx(2 * 1024 * 31.0 / 32));
  // 33 ranks: one hands over first and gets the result at last.
  CHECK(make_schedule(collective(Benchmark::osu_allreduce, Algorithm::knomial, 33, Bytes{1024})).size() == 5);
  CHECK(make_schedule(collective(Benchmark::osu_barrier, Algorithm::knomial, 64, Bytes{0})).size() == 2);
}

TEST_CASE("after every algorithm each rank that should has heard of every rank") {
  for (const int n : k_counts) {
    for (const int root : {0, n / 2, n - 1}) {
      for (const auto benchmark : {Benchmark::osu_allreduce, Benchmark::osu_allgather, Benchmark::osu_reduce,
                                   Benchmark::osu_barrier, Benchmark::osu_reduce_scatter, Benchmark::osu_alltoall}) {
        for (const auto algorithm : algorithms_for(benchmark)) {
          const auto name = std::string(to_string(algorithm));
          CAPTURE(n);
          CAPTURE(root);
          CAPTURE(name);
          auto rounds = make_schedule(collective(benchmark, algorithm, n, Bytes{n * 64}, root));
          if (algorithm == Algorithm::neighbor_exchange) rounds = alternated(rounds);
          const auto knows = heard(rounds, n);
          for (int r = 0; r < n; ++r) {
            if (benchmark == Benchmark::osu_reduce && r != root) continue;
            CHECK(knows[static_cast<std::size_t>(r)].size() == static_cast<std::size_t>(n));
          }
        }
      }
    }
  }
}

TEST_CASE("a broadcast reaches everybody from any root, sent only by those that have it, whole or in segments") {
  for (const int n : k_counts) {
    for (const int root : {0, n / 2, n - 1}) {
      for (const auto algorithm : algorithms_for(Benchmark::osu_bcast)) {
        for (const std::int64_t segment : {0, 1000, 4096}) {
          auto one = collective(Benchmark::osu_bcast, algorithm, n, Bytes{n * 1000}, root);
          one.segment = Bytes{segment};
          const auto name = std::string(to_string(algorithm));
          CAPTURE(n);
          CAPTURE(root);
          CAPTURE(name);
          CAPTURE(segment);
          const auto rounds = make_schedule(one);
          std::set<int> has{root};
          for (const auto& round : rounds) {
            auto next = has;
            for (const auto& step : round.steps) {
              const bool is_exchange = algorithm == Algorithm::scatter_allgather ||
                                       algorithm == Algorithm::scatter_doubling ||
                                       algorithm == Algorithm::split_binary || algorithm == Algorithm::sag_knomial;
              if (!is_exchange) CHECK(has.contains(step.from));
              next.insert(step.to);
            }
            has = std::move(next);
          }
          CHECK(has.size() == static_cast<std::size_t>(n));
          for (int r = 0; r < n; ++r) {
            const double others = r == root ? 0 : 1000.0 * (n - 1);
            CHECK(bytes_received_by(rounds, r) >= test::approx(others));
          }
        }
      }
    }
  }
}

TEST_CASE("all-gathers bring every rank n-1 blocks, and reduce-scatters cost each at least as much") {
  for (const int n : k_counts) {
    CAPTURE(n);
    for (const auto algorithm : algorithms_for(Benchmark::osu_allgather)) {
      // Bring more: rank_order_test.cpp, decisions_blocks_test.cpp
      if (algorithm == Algorithm::two_level || algorithm == Algorithm::gather_broadcast) continue;
      const auto rounds = make_schedule(collective(Benchmark::osu_allgather, algorithm, n, Bytes{100}));
      // Who hands its block to a neighbour first gets back all of them.
      const int folded = algorithm == Algorithm::knomial ? n % floor_of_groups(n, 4) : 0;
      for (int r = 0; r < n; ++r)
        CHECK(bytes_received_by(rounds, r) == test::approx(100.0 * (n - (r < 2 * folded && r % 2 != 0 ? 0 : 1))));
    }
    for (const auto algorithm : algorithms_for(Benchmark::osu_reduce_scatter)) {
      const auto rounds = make_schedule(collective(Benchmark::osu_reduce_scatter, algorithm, n, Bytes{n * 100}));
      double all = 0;
      for (int r = 0; r < n; ++r) all += bytes_received_by(rounds, r);
      CHECK(all >= test::approx(100.0 * n * (n - 1)));
    }
  }
}

TEST_CASE(
    "a gather leaves every rank's block with the root, a scatter the root's with every rank, and none on the way") {
  for (const int n : k_counts) {
    for (const int root : {0, n / 2, n - 1}) {
      for (const auto benchmark : {Benchmark::osu_gather, Benchmark::osu_scatter}) {
        for (const auto algorithm : algorithms_for(benchmark)) {
          if (algorithm == Algorithm::two_level) continue;  // of hosts with as many ranks: rank_order_test.cpp
          for (const std::int64_t first : {0, 64, 100, 4096}) {
            auto one = collective(benchmark, algorithm, n, Bytes{100}, root);
            one.segment = Bytes{first};
            const auto name = std::string(to_string(algorithm));
            CAPTURE(n);
            CAPTURE(root);
            CAPTURE(name);
            CAPTURE(first);
            const auto rounds = make_schedule(one);
            const auto knows = heard(rounds, n);
            for (int r = 0; r < n; ++r) {
              const double kept = bytes_received_by(rounds, r) - bytes_sent_by(rounds, r);
              const bool is_gather = benchmark == Benchmark::osu_gather;
              const double others = 100.0 * (n - 1);
              CHECK(kept == test::approx(r == root ? (is_gather ? others : -others) : (is_gather ? -100 : 100)));
              CHECK(knows[static_cast<std::size_t>(is_gather ? root : r)].contains(is_gather ? r : root));
            }
          }
        }
      }
    }
  }
}

TEST_CASE("linear gathers and scatters block in messages that keep their sender, others come at once") {
  const int n = 7;
  for (const auto benchmark : {Benchmark::osu_gather, Benchmark::osu_scatter}) {
    const auto one = collective(benchmark, Algorithm::linear, n, Bytes{1 << 20}, 3);
    CHECK(make_schedule(one, [](const Rounds&) { return false; }).size() == 1);
    const auto in_turn = make_schedule(one, [](const Rounds&) { return true; });
    CHECK(in_turn.size() == n - 1);
    for (const auto& round : in_turn) CHECK(round.steps.size() == 1);
  }
  const auto posted = collective(Benchmark::osu_scatter, Algorithm::linear_nb, n, Bytes{1 << 20});
  const auto at_once = make_schedule(posted, [](const Rounds&) { return true; });
  REQUIRE(at_once.size() == 1);
  CHECK(at_once[0].is_posted);
  // Asked in turn: an empty message to each, its first part, and the rest of it beside the next one's question.
  auto asked = collective(Benchmark::osu_gather, Algorithm::linear_sync, n, Bytes{1000});
  asked.segment = Bytes{300};
  const auto rounds = make_schedule(asked);
  REQUIRE(rounds.size() == 2 * (n - 1) + 1);
  for (std::size_t i = 0; i + 1 < rounds.size(); ++i) {
    CAPTURE(i);
    CHECK(rounds[i].steps.size() == (i % 2 == 0 && i > 0 ? 2 : 1));
    CHECK(rounds[i].steps[0].bytes == (i % 2 == 0 ? 0 : 300));
  }
  CHECK(rounds.back().steps[0].bytes == 700);
}

TEST_CASE("a rank that several send to handles one after the other, and those that sent at once are gone") {
  for (const int n : {2, 8, 64}) {
    CAPTURE(n);
    const auto rounds = make_schedule(collective(Benchmark::osu_gather, Algorithm::linear, n, Bytes{8}));
    REQUIRE(rounds.size() == 1);
    RankClocks clocks(n);
    const MessageTimes one{.sender = 0.25, .receiver = 1, .handling = 0.5, .is_eager = true};
    clocks.pass(rounds[0], std::vector<MessageTimes>(rounds[0].steps.size(), one), 0);
    const double last = 1 + 0.5 * (n - 2);
    CHECK(clocks.mean_share() == test::approx((last + 0.25 * (n - 1)) / n / last));
  }
}

TEST_CASE("pairwise and linear all-to-all send a block to every peer, Bruck each block once per bit of its way") {
  for (const int n : k_counts) {
    CAPTURE(n);
    for (const auto algorithm : {Algorithm::pairwise, Algorithm::linear}) {
      std::set<int> peers;
      for (const auto& round : make_schedule(collective(Benchmark::osu_alltoall, algorithm, n, Bytes{100}))) {
        for (const auto& step : round.steps) {
          CHECK(step.bytes == 100);
          if (step.from == 0) CHECK(peers.insert(step.to).second);
        }
      }
      CHECK(peers.size() == static_cast<std::size_t>(n - 1));
    }
    double blocks = 0;
    for (int b = 1; b < n; ++b) blocks += __builtin_popcount(static_cast<unsigned>(b));
    const auto bruck = make_schedule(collective(Benchmark::osu_alltoall, Algorithm::bruck, n, Bytes{100}));
    CHECK(bytes_sent_by(bruck, 0) == test::approx(100.0 * blocks));
  }
}

TEST_CASE("between hosts, two levels send one message where a flat algorithm sends one per rank") {
  const int n = 32;
  auto one = collective(Benchmark::osu_allreduce, Algorithm::two_level, n, Bytes{4096});
  one.hosts.clear();
  for (int r = 0; r < n; ++r) one.hosts.push_back(r / 8);
  const auto crossing = [&](const Rounds& rounds) {
    std::size_t messages = 0;
    for (const auto& round : rounds)
      messages += static_cast<std::size_t>(
          std::ranges::count_if(round.steps, [](const Step& step) { return step.from / 8 != step.to / 8; }));
    return messages;
  };
  CHECK(crossing(make_schedule(one)) == 8);  // 4 hosts, 2 rounds of doubling
  one.algorithm = Algorithm::recursive_doubling;
  CHECK(crossing(make_schedule(one)) == 64);
  // Segments of 64 KiB: all stages at work for all but the first.
  one.algorithm = Algorithm::two_level;
  one.size = Bytes{1 << 20};
  one.segment = Bytes{64 << 10};
  const auto rounds = make_schedule(one);
  CHECK(std::ranges::any_of(rounds, [](const Round& round) { return round.repeat == 15; }));
}

TEST_CASE("the mean over ranks of a binomial tree of messages that leave at once is half of the last rank's time") {
  for (const int n : {2, 8, 64}) {
    const auto rounds = make_schedule(collective(Benchmark::osu_bcast, Algorithm::binomial, n, Bytes{8}));
    RankClocks eager(n);
    RankClocks rendezvous(n);
    for (const auto& round : rounds) {
      eager.pass(round, std::vector<MessageTimes>(round.steps.size(), {.sender = 0, .receiver = 1, .is_eager = true}),
                 0);
      rendezvous.pass(
          round, std::vector<MessageTimes>(round.steps.size(), {.sender = 1, .receiver = 1, .is_eager = false}), 0);
    }
    CHECK(eager.mean_share() == test::approx(0.5));  // a rank waits for as many hops as its number has bits
    CHECK(rendezvous.mean_share() == test::approx(1));
  }
  CHECK(RankClocks(4).mean_share() == 1);
}

TEST_CASE("a message that keeps its sender holds the ranks of its round, and no other") {
  RankClocks chain(3);
  for (const int from : {0, 1}) {
    Round round;
    round.steps = {{.from = from, .to = from + 1, .bytes = 1 << 20}};
    chain.pass(round, {{.sender = 1, .receiver = 1, .is_eager = false}}, 0);
  }
  CHECK(chain.mean_share() == test::approx((1 + 2 + 2) / 3. / 2));  // the first returns after its own message
}

TEST_CASE("ranks that only receive, from a rank of their own host, hold up nobody: they come last") {
  using fabricast::models::schedules::by_generation;
  for (const int hosts : {2, 4, 16}) {
    for (const int k : {2, 4}) {
      CAPTURE(hosts);
      CAPTURE(k);
      auto one = collective(Benchmark::osu_bcast, Algorithm::knomial, hosts * k, Bytes{1 << 20});
      one.hosts.clear();
      for (int r = 0; r < hosts * k; ++r) one.hosts.push_back(r / k);
      const auto levels = make_schedule(one);
      const auto rounds = by_generation(levels, one.hosts);
      CHECK(rounds.size() == by_generation(levels, {}).size());
      std::set<int> received;
      for (std::size_t i = 0; i < rounds.size(); ++i) {
        for (const auto& step : rounds[i].steps) {
          CHECK(received.insert(step.to).second);
          CHECK((step.from == 0 || received.contains(step.from)));
          if (i + 1 < rounds.size()) CHECK((step.from / k != step.to / k || step.to % k == 0));
        }
      }
      CHECK(received.size() == static_cast<std::size_t>(hosts * k - 1));
    }
  }
  // On one host all messages are its cores'.
  auto one = collective(Benchmark::osu_bcast, Algorithm::binomial, 8, Bytes{1 << 20});
  one.hosts.assign(8, 0);
  const auto rounds = by_generation(make_schedule(one), one.hosts);
  CHECK(rounds.size() == 3);
  CHECK(rounds[0].steps.size() == 3);
}

TEST_CASE("by generation a rank sends to all its children together, once it has the message") {
  for (const auto algorithm : {Algorithm::binomial, Algorithm::knomial, Algorithm::binary, Algorithm::linear}) {
    for (const int n : k_counts) {
      CAPTURE(n);
      auto one = collective(Benchmark::osu_bcast, algorithm, n, Bytes{100});
      one.root = n / 3;
      const auto levels = make_schedule(one);
      const auto rounds = fabricast::models::schedules::by_generation(levels, {});
      std::set<std::pair<int, int>> before, after;
      for (const auto& round : levels)
        for (const auto& step : round.steps) before.insert({step.from, step.to});
      std::set<int> holders{one.root}, senders;
      for (const auto& round : rounds) {
        std::set<int> now, served;
        for (const auto& step : round.steps) {
          CHECK(holders.contains(step.from));
          CHECK_FALSE(senders.contains(step.from));  // all its children are in one round
          now.insert(step.to);
          served.insert(step.from);
          after.insert({step.from, step.to});
        }
        holders.merge(now);
        senders.merge(served);
      }
      CHECK(before == after);
      CHECK(rounds.size() <= levels.size());
    }
  }
}
