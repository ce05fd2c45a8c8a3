// SPDX-License-Identifier: Apache-2.0
#include "mpi/decisions.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <span>

#include "base/assert.hpp"
#include "base/version.hpp"
#include "mpi/decision_tables.hpp"
#include "mpi/decisions_han.hpp"
#include "mpi/decisions_hcoll.hpp"
#include "mpi/decisions_mpich.hpp"
#include "mpi/decisions_ucc.hpp"

namespace fabricast::models::mpi {

namespace {

using Algorithm = CollectiveAlgorithm;

/// Open MPI 4.1 to 5.0, commutative operations, nothing in segments.
/// N reduce and broadcast, D doubling, R and S ring, B Rabenseifner.
constexpr Rule k_all_reduce[] = {{4, "8R 4kD 8kR 16kD 64kR 256kS *B"},
                                 {8, "16R 8kD *B"},
                                 {16, "8kD *B"},
                                 {32, "64S 4kD *B"},
                                 {64, "128S *B"},
                                 {128, "256kD *B"},
                                 {256, "128kN 256kD *B"},
                                 {512, "4kN *B"},
                                 {2048, "2kN 16kD *B"},
                                 {4096, "2kN 4kS 16kD *B"},
                                 {k_any, "2kN 16kS 32kD *B"}};
/// L linear, C and P chain, T split binary, Y binary, M binomial, K radix 4, G scatter and all-gather.
constexpr Rule k_broadcast[] = {{4, "32P 256Y 512P 1kK 32kL 128kY 256kC 512kL 1MM *Y"},
                                {8, "64Y 128M 2kY 8kM 1ML *C"},
                                {16, "8K 64Y 4kK 16kY 32kM *L"},
                                {32, "4kK 1MM *G"},
                                {64, "2kM *K"},
                                {128, "*K"},
                                {256, "2M 16kY 32kL 64kY *K"},
                                {1024, "16kK 32kT *K"},
                                {2048, "512kK *G"},
                                {4096, "256kK *G"},
                                {k_any, "8kK 16kY 256kK *G"}};
/// The same letters; O in-order binary, B Rabenseifner.
constexpr Rule k_reduce[] = {{4, "8B 16Y 32P 256kL 512kP 1MC *P"},
                             {8, "4kY 64kC 256kM 512kL 1MM *L"},
                             {16, "8kY *M"},
                             {32, "4kY *M"},
                             {256, "*M"},
                             {512, "8kM 16kO *M"},
                             {2048, "*M"},
                             {4096, "512M 1kO 8kM 16kO *M"},
                             {k_any, "16M 32O 1kM 2kO 8kM 16kO *M"}};
/// N reduce and scatter, H halving, R ring, F butterfly; sizes are totals.
constexpr Rule k_reduce_scatter[] = {{4, "64kR 128kF *R"},
                                     {8, "8N 256kH *R"},
                                     {32, "256kH *R"},
                                     {64, "64N 2kH 512kF *R"},
                                     {128, "256N 512H 2kF 4kH *F"},
                                     {256, "256N 512H *F"},
                                     {512, "256N 1kH *F"},
                                     {1024, "512N 2kH 8kF 16kH *F"},
                                     {2048, "512N 4kH 16kF 32kH *F"},
                                     {4096, "512N 4kH *F"},
                                     {k_any, "1kN 8kH *F"}};
/// L and S everything posted at once, W pairwise, B Bruck.
constexpr Rule k_all_to_all[] = {{3, "32kW 256kS *W"},
                                 {8, "8kS 16kL 64kS 512kL 1MW *L"},
                                 {16, "256kS *L"},
                                 {32, "4S 512B 8kS 32kL 256kS 512kL *S"},
                                 {64, "512B 512kL *S"},
                                 {128, "1kB 2kL 4kS 256kL *W"},
                                 {256, "1kB 2kS 256kL *W"},
                                 {512, "1kB 8kS 32kL *W"},
                                 {1024, "512B 8kS 16kL 128kS 256kL *W"},
                                 {2048, "512B 1kS 2kL 16kS 256kL *S"},
                                 {4096, "1kB 4kS 8kL 128kS *L"},
                                 {k_any, "2kB 8kS 16kL 32kS 64kL *S"}};
/// D doubling, B Bruck, R ring, E neighbours; sizes are blocks.
constexpr Rule k_all_gather[] = {{32, "*D"},
                                 {64, "1kD 64kE *R"},
                                 {128, "512D 64kE *R"},
                                 {256, "512D 128kE 512kR 1ME *R"},
                                 {512, "32D 128B 1kD 128kE 512kR 1ME *R"},
                                 {1024, "64D 256B 2kD *E"},
                                 {2048, "4D 8B 16D 32B 256D 512B 4kD *E"},
                                 {4096, "32B 128D 512B 4kD *E"},
                                 {k_any, "2D 8B 16D 512B 4kD *E"}};

/// L linear, M binomial, S linear, asked in turn; sizes are blocks.
constexpr Rule k_gather[] = {
    {4, "2S 4L 32kM 64kL 128kM *S"}, {8, "1kM 8kL 32kM 256kL *S"}, {256, "*M"}, {512, "2kM 8kL *M"}, {k_any, "*M"}};
/// L linear, M binomial, N everything posted at once; sizes are blocks.
constexpr Rule k_scatter[] = {{4, "2N 128kL 256kN *L"}, {8, "2kM 4kL 8kM 32kL 1MN *L"}, {16, "16kM 1MN *L"},
                              {32, "16kM 32kL *N"},     {64, "512M 8kN 16kM *N"},       {k_any, "512M *N"}};

Algorithm barrier_4_1(int n) {
  if (n < 4) return Algorithm::recursive_doubling;
  if (n < 8) return Algorithm::linear;
  if (n < 64) return Algorithm::recursive_doubling;
  if (n < 256) return Algorithm::dissemination;
  if (n < 512) return Algorithm::binomial;
  if (n < 1024) return Algorithm::dissemination;
  return n < 4096 ? Algorithm::binomial : Algorithm::dissemination;
}

void choose_4_1(Collective& out) {
  const int n = out.num_ranks;
  const auto from = [&](std::span<const Rule> rules) {
    out.algorithm = algorithm_of(letter(rules, n, out.size.value), out.benchmark);
  };
  switch (out.benchmark) {
    case Benchmark::osu_allreduce:
      return from(k_all_reduce);
    case Benchmark::osu_bcast:
      return from(k_broadcast);
    case Benchmark::osu_reduce:
      return from(k_reduce);
    case Benchmark::osu_reduce_scatter:
      return from(k_reduce_scatter);
    case Benchmark::osu_alltoall:
      return from(k_all_to_all);
    case Benchmark::osu_allgather:
      return from(k_all_gather);
    case Benchmark::osu_gather:
      return from(k_gather);
    case Benchmark::osu_scatter:
      return from(k_scatter);
    default:
      out.algorithm = barrier_4_1(n);
  }
}

/// 4.0: trees in segments, limits that are lines in ranks over size.
void broadcast_4_0(Collective& out) {
  const auto n = static_cast<double>(out.size.value);
  const double p = out.num_ranks;
  const auto set = [&](Algorithm algorithm, std::int64_t kib) {
    out.algorithm = algorithm;
    out.segment = Bytes{kib << 10};
  };
  if (n < 2048) return set(Algorithm::binomial, 0);
  if (n < 370'728) return set(Algorithm::split_binary, 1);
  if (p < 1.6134e-6 * n + 2.1102) return set(Algorithm::chain, 128);
  if (p < 13) return set(Algorithm::split_binary, 8);
  if (p < 2.3679e-6 * n + 1.1787) return set(Algorithm::chain, 64);
  set(Algorithm::chain, p < 3.2118e-6 * n + 8.7936 ? 16 : 8);
}

void reduce_4_0(Collective& out) {
  const auto n = static_cast<double>(out.size.value);
  const double p = out.num_ranks;
  const double kib = n / 1024;
  const auto set = [&](Algorithm algorithm, std::int64_t segment_kib) {
    out.algorithm = algorithm;
    out.segment = Bytes{segment_kib << 10};
  };
  if (p < 8 && n < 512) return set(Algorithm::linear, 0);
  if ((p < 8 && n < 20'480) || n < 2048) return set(Algorithm::binomial, 0);
  if (p > 0.6016 * kib + 1.3496) return set(Algorithm::binomial, 1);
  if (p > 0.0410 * kib + 9.7128) return set(Algorithm::chain, 1);
  if (p > 0.0422 * kib + 1.1614) return set(Algorithm::binary, 32);
  set(Algorithm::chain, p > 0.0033 * kib + 1.6761 ? 32 : 64);
}

void gather_4_0(Collective& out) {
  const std::int64_t size = out.size.value;
  const int n = out.num_ranks;
  if (size > 6'000) {
    out.algorithm = Algorithm::linear_sync;
    out.segment = Bytes{size > 92'160 ? 32'768 : 1'024};
  } else {
    out.algorithm = n > 60 || (n > 10 && size < 1'024) ? Algorithm::binomial : Algorithm::linear;
  }
}

void choose_4_0(Collective& out) {
  const int n = out.num_ranks;
  const std::int64_t size = out.size.value;
  const std::int64_t total = (n * out.size).value;
  switch (out.benchmark) {
    case Benchmark::osu_allreduce:
      out.algorithm = size < 10'000 || size / k_float <= n ? Algorithm::recursive_doubling : Algorithm::ring;
      return;
    case Benchmark::osu_bcast:
      return broadcast_4_0(out);
    case Benchmark::osu_reduce:
      return reduce_4_0(out);
    case Benchmark::osu_allgather:
      out.algorithm = total < 50'000 ? fallen_back(Algorithm::recursive_doubling, out.benchmark, n, size)
                                     : fallen_back(Algorithm::neighbor_exchange, out.benchmark, n, size);
      return;
    case Benchmark::osu_alltoall:
      out.algorithm = size < 200 && n > 12    ? Algorithm::bruck
                      : size < 3'000 && n > 2 ? Algorithm::linear
                                              : Algorithm::pairwise;
      return;
    case Benchmark::osu_gather:
      return gather_4_0(out);
    case Benchmark::osu_scatter:
      out.algorithm = n > 10 && size < 300 ? Algorithm::binomial : Algorithm::linear;
      return;
    case Benchmark::osu_reduce_scatter: {
      const bool is_small = size <= (12 << 10) || (size <= (256 << 10) && is_power_of_two(n)) ||
                            n >= 0.0012 * static_cast<double>(size) + 8;
      out.algorithm = is_small ? Algorithm::recursive_halving : Algorithm::ring;
      return;
    }
    default:
      out.algorithm = is_power_of_two(n) ? Algorithm::recursive_doubling : Algorithm::dissemination;
  }
}

void choose_flat(Library library, Collective& out);

/// Calls of the library's own: of one block, of all.
std::vector<Collective> gather_and_broadcast(Library library, const Collective& whole) {
  auto gather = whole;
  gather.benchmark = Benchmark::osu_gather;
  gather.root = 0;
  auto broadcast = gather;
  broadcast.benchmark = Benchmark::osu_bcast;
  broadcast.size = whole.num_ranks * whole.size;
  return {choose(library, std::move(gather)), choose(library, std::move(broadcast))};
}

/// What the library makes of an algorithm, picked or forced: too few elements or ranks make it take another one. A
/// reduce and a broadcast are the communicator's own: the same rules pick each for itself [Open MPI
/// coll_base_allreduce.c, coll_base_reduce_scatter.c, nonoverlapping], linear ones for Rabenseifner's of fewer elements
/// than ranks (basic_linear).
void settle(Library library, Collective& out) {
  const auto asked = out.algorithm;
  if (!is_of_mpich(library)) out.algorithm = fallen_back(asked, out.benchmark, out.num_ranks, out.size.value);
  if (out.algorithm == Algorithm::gather_broadcast) out.parts = gather_and_broadcast(library, out);
  if (out.algorithm != Algorithm::reduce_broadcast && out.algorithm != Algorithm::reduce_scatter) return;
  std::vector<Collective> parts;
  for (const auto benchmark : {Benchmark::osu_reduce, Benchmark::osu_bcast}) {
    auto part = out;
    part.benchmark = benchmark;
    part.algorithm = Algorithm::linear;
    part.root = 0;
    if (asked == out.algorithm) choose_flat(library, part);
    part.hosts.clear();
    parts.push_back(std::move(part));
  }
  out.parts = std::move(parts);
}

void choose_flat(Library library, Collective& out) {
  if (is_of_mpich(library)) {
    choose_of_mpich(library, out);
  } else if (library == Library::ucc) {
    choose_of_ucc(out);
  } else if (library == Library::open_mpi_4_0) {
    choose_4_0(out);
  } else {
    choose_4_1(out);
  }
  settle(library, out);
}

/// Two levels, where some of several hosts have several ranks: MPICH's family has its own rules, Open MPI's HAN and
/// hcoll take all that they know.
bool treats_hosts_apart(Library library, const Collective& one, int num_hosts) {
  if (num_hosts < 2 || num_hosts == one.num_ranks) return false;
  if (is_of_mpich(library)) return splits_hosts(library, one);
  if (library == Library::hcoll) return hcoll_takes(one.benchmark);
  return library == Library::open_mpi_5_0 && han_takes(one.benchmark, one.hosts);
}

int most_of_a_host(const std::vector<int>& hosts) {
  std::map<int, int> count;
  int most = 1;
  for (const int host : hosts) most = std::max(most, ++count[host]);
  return most;
}

std::vector<Collective> parts_of_two_levels(Library library, const Collective& whole, int num_hosts) {
  const auto flat = [library](Collective& part) { choose_flat(library, part); };
  if (is_of_blocks(whole.benchmark)) return parts_of_blocks(whole, flat);
  if (library == Library::open_mpi_5_0 && whole.benchmark != Benchmark::osu_barrier) return parts_of_han(whole, flat);
  auto between = whole;
  between.num_ranks = num_hosts;
  between.hosts.resize(static_cast<std::size_t>(num_hosts));
  std::iota(between.hosts.begin(), between.hosts.end(), 0);
  if (library == Library::hcoll)
    choose_between_hosts_of_hcoll(between);
  else
    choose_flat(library, between);
  // MPICH's call themselves on the ranks of a host [MPIR_Allreduce_intra_smp, MPIR_Reduce_intra_smp,
  // MPIR_Bcast_intra_smp of 3.2 on; ch4_coll_impl.h]; of Intel MPI and hcoll nothing is published.
  const bool asks_again = is_of_mpich(library) && library != Library::intel_mpi;
  const auto inside = [&](Benchmark benchmark) {
    auto part = whole;
    part.benchmark = benchmark;
    part.algorithm = Algorithm::binomial;
    part.num_ranks = most_of_a_host(whole.hosts);
    part.root = 0;
    part.hosts.clear();
    if (asks_again) choose_flat(library, part);
    return part;
  };
  auto reduce = inside(Benchmark::osu_reduce);
  auto broadcast = inside(Benchmark::osu_bcast);
  return {std::move(reduce), std::move(between), std::move(broadcast)};
}

}  // namespace

Library library_of(const std::string& name, const std::string& release) {
  if (name == "cray-mpich") return Library::cray_mpich;
  if (name == "intel-mpi") return Library::intel_mpi;
  // MVAPICH2 is an MPICH 3.2.
  if (name == "mvapich2-gdr") return Library::mpich_3;
  if (name == "mpich") return !release.empty() && is_older(release, 3, 4) ? Library::mpich_3 : Library::mpich_4;
  if (release.empty()) return Library::open_mpi_4_1;
  if (is_older(release, 4, 1)) return Library::open_mpi_4_0;
  return is_older(release, 5, 0) ? Library::open_mpi_4_1 : Library::open_mpi_5_0;
}

Library library_of(const std::string& name, const Software& software) {
  if (software.mpi_collectives == "ucc") return Library::ucc;
  if (software.mpi_collectives == "hcoll") return Library::hcoll;
  return library_of(name, software.mpi_version);
}

Collective choose(Library library, Collective out, std::optional<CollectiveAlgorithm> forced) {
  out.is_of_mpich = is_of_mpich(library);
  const int num_hosts = static_cast<int>(std::set<int>(out.hosts.begin(), out.hosts.end()).size());
  if (forced && *forced != Algorithm::two_level) {
    out.algorithm = *forced;
    if (is_of_mpich(library) && !can_run(out)) return choose(library, out);
    settle(library, out);
    return out;
  }
  if (!forced && !treats_hosts_apart(library, out, num_hosts)) {
    choose_flat(library, out);
    return out;
  }
  out.parts = parts_of_two_levels(library, out, std::max(1, num_hosts));
  out.algorithm = Algorithm::two_level;
  if (library == Library::open_mpi_5_0 && !is_of_blocks(out.benchmark)) out.segment = k_han_segment;
  return out;
}

}  // namespace fabricast::models::mpi
