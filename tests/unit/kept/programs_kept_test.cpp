// SPDX-License-Identifier: Apache-2.0
// Rounds of every rank of programs that `fabricast mpi` runs, by library, collective, ranks and size; what it reads of
// the settings that the command hands over.
#include "programs/plan.hpp"

#include "tests/support/approx.hpp"
#include "tests/unit/kept/table.hpp"

using namespace fabricast;
using namespace fabricast::programs;

namespace {

std::string text_of(const std::vector<RankRound>& rounds) {
  std::string out;
  for (const auto& round : rounds) {
    out += " (";
    for (const auto& one : round.sends) out += fmt::format("to {}:{} ", one.peer, one.bytes);
    for (const auto& one : round.receives) out += fmt::format("from {}:{} ", one.peer, one.bytes);
    out += fmt::format("x{} {:.6g}{}{})", round.repeat, round.reduced_bytes, round.is_pipeline ? " pipeline" : "",
                       round.held ? " held" : "");
  }
  return out;
}

}  // namespace

TEST_CASE("every rank of a program sends, receives and combines what it did") {
  using models::mpi::Library;
  std::string out;
  for (const auto library : {Library::open_mpi_4_0, Library::open_mpi_4_1, Library::open_mpi_5_0, Library::mpich_4}) {
    Settings settings;
    settings.mpi_library = library;
    settings.held = {{0, 0}, {8192, 1}};
    settings.held_posted = settings.held;
    Plans plans(settings);
    for (const auto benchmark : {Benchmark::osu_allreduce, Benchmark::osu_allgather, Benchmark::osu_reduce_scatter,
                                 Benchmark::osu_bcast, Benchmark::osu_reduce, Benchmark::osu_alltoall,
                                 Benchmark::osu_gather, Benchmark::osu_scatter, Benchmark::osu_barrier})
      for (const int n : {2, 3, 6})
        for (const std::int64_t size : {8, 4096, 1 << 20}) {
          models::mpi::Collective asked;
          asked.benchmark = benchmark;
          asked.num_ranks = n;
          asked.size = {size};
          for (int rank = 0; rank < n; ++rank) asked.hosts.push_back(rank / 2);
          const auto& ranks = plans.of(asked).ranks;
          REQUIRE(ranks.size() == static_cast<std::size_t>(n));
          out +=
              fmt::format("{} {} ranks {} B, library {}\n", to_string(benchmark), n, size, static_cast<int>(library));
          for (int rank = 0; rank < n; ++rank)
            out += fmt::format("  {}:{}\n", rank, text_of(ranks[static_cast<std::size_t>(rank)]));
          CHECK(&plans.of(asked).ranks == &ranks);  // made once
        }
  }
  test::check_kept("program_rounds", out);
}

TEST_CASE("settings of programs are read back: straight lines between sizes, the nearest way between hosts") {
  const auto file =
      test::write_file("settings.txt",
                       "profile open-mpi-ucx\nrelease 5.0\nentry 1e-6\nsums 8 2e-9\ngap 8 1e-7\ngap 16 "
                       "3e-7\nheld 1024 1\ninside 8 2e-7\nlatency 1000000 8 1e-6\nlatency 5000000 8 5e-6\n"
                       "blocking 1000000 8 4e-7\nboth 1000000 8 6e-7\nhosts a b a\n");
  std::string fault;
  const auto settings = read_settings(file, fault);
  CHECK(fault.empty());
  CHECK(settings.mpi_library == models::mpi::Library::open_mpi_5_0);
  CHECK(settings.entry_s == test::approx(1e-6));
  CHECK(at_size(settings.sums, 8) == test::approx(2e-9));
  CHECK(at_size(settings.gap, 0) == test::approx(1e-7));  // an empty message takes what the shortest does
  CHECK(at_size(settings.gap, 4) == test::approx(1e-7));
  CHECK(at_size(settings.gap, 8) == test::approx(1e-7));
  CHECK(at_size(settings.gap, 10) == test::approx(1.5e-7));
  CHECK(at_size(settings.gap, 64) == test::approx(3e-7));
  CHECK(at_size(settings.held, 1 << 20) == 1);
  CHECK(at_size(settings.inside, 8) == test::approx(2e-7));
  CHECK(at_way(settings.latency, 2.9e-6, 8) == test::approx(1e-6));
  CHECK(at_way(settings.latency, 3.1e-6, 8) == test::approx(5e-6));
  CHECK(at_way(settings.blocking, 0, 8) == test::approx(4e-7));
  CHECK(at_way(settings.both, 0, 8) == test::approx(6e-7));
  CHECK(at_way({}, 0, 8) == 0);
  CHECK(settings.hosts == std::vector<std::string>{"a", "b", "a"});
  for (const auto* bad : {"nonsense 1\n", "gap 8\n", "latency 8 1e-6\n", "entry -1\n", "sums 8\n"}) {
    CAPTURE(bad);
    fault.clear();
    read_settings(test::write_file("settings.txt", bad), fault);
    CHECK(fault.find("is no setting") != std::string::npos);
  }
  fault.clear();
  read_settings("/nowhere/settings.txt", fault);
  CHECK(fault == "cannot read /nowhere/settings.txt");
}
