// SPDX-License-Identifier: Apache-2.0
#include "mpi/decisions_mpich.hpp"

#include <algorithm>
#include <set>
#include <span>

#include "mpi/decision_tables.hpp"

namespace fabricast::models::mpi {

namespace {

using Algorithm = CollectiveAlgorithm;

constexpr std::int64_t k_small_broadcast = 12'288;       ///< MPICH, up to which trees carry all
constexpr std::int64_t k_medium_broadcast = 524'288;     ///< MPICH, up to which blocks are gathered by doubling
constexpr std::int64_t k_part_of_rank = 65'536;          ///< the same from 3.4 on, by each rank's part
constexpr std::int64_t k_node_all_reduce = 32'768;       ///< MPICH from 3.4 on, up to which hosts reduce first
constexpr Bytes k_cray_block{716'800};                   ///< MPICH_ALLREDUCE_BLK_SIZE
constexpr std::int64_t k_cray_smp_all_reduce = 262'144;  ///< MPICH_ALLREDUCE_MAX_SMP_SIZE
constexpr std::int64_t k_cray_all_gather = 8'192;        ///< MPICH_ALLGATHER_VSHORT_MSG, of many ranks (few: 16,384)

// Intel MPI 4.1.3, of so many ranks per host; rules merge neighbours that a factor of two does not separate.
struct PerHost {
  int ranks;  ///< per host, at most
  std::span<const Rule> rules;
};

// D doubling, B Rabenseifner, N reduce and broadcast (or gather and scatter), T hosts apart, R ring.
constexpr Rule k_reduce_1[] = {{3, "16kD 34kR 1640kN *R"},
                               {5, "16kD 70kR 1270kN *R"},
                               {9, "16kD 36kN 308kR 3144kN *R"},
                               {17, "15kD 51kB 550kR *N"},
                               {k_any, "11kD 92kN 798kB *N"}};
constexpr Rule k_reduce_2[] = {{5, "2kR 15kD 97kR 165kN 355kB *R"},
                               {9, "15kD 65kB 175kR 298kN 688kR *B"},
                               {17, "16kD 80kB 788kR 1230kB *N"},
                               {33, "8913D 101kB 601kR *B"},
                               {65, "6kD 318kB 2496kR *N"},
                               {129, "665D 3192kB *R"},
                               {k_any, "790D 2195kB *R"}};
constexpr Rule k_reduce_4[] = {{5, "5738D 193kB 580kR *B"},      {9, "5655D 73kB 173kR 965kN *B"},
                               {17, "9kD 99kB 347kR 3263kN *R"}, {33, "796D 143kB 715kR *N"},
                               {65, "529D 216kB 1407kR *N"},     {129, "482D 580kB *R"},
                               {k_any, "585D 2927kB *R"}};
constexpr Rule k_reduce_8[] = {{9, "2561D 112kT 282kR 648kB *T"},
                               {17, "498D 53kB 348kR 3333kN *R"},
                               {33, "378D 107kB 700kR 3884kN *R"},
                               {65, "650N 260kB 2482kR *N"},
                               {129, "752N 399kB *R"},
                               {257, "829N 888kB *R"},
                               {513, "848N 2738kB *R"},
                               {k_any, "1975N 3914kB *R"}};
constexpr Rule k_reduce_16[] = {{17, "410D 3kT 150kB 577kT 1415kB *R"},
                                {33, "876N 73kB *R"},
                                {65, "2371N 157kB 1841kR *N"},
                                {129, "2292N 424kB *R"},
                                {257, "2190N 696kB *R"},
                                {513, "2141N 1206kB *R"},
                                {k_any, "2154N 2568kB *R"}};
constexpr PerHost k_intel_all_reduce[] = {
    {1, k_reduce_1}, {2, k_reduce_2}, {4, k_reduce_4}, {8, k_reduce_8}, {k_any, k_reduce_16}};

// B Bruck, L linear, W pairwise (also where the table names Plum's, which nobody published).
constexpr Rule k_exchange_1[] = {{3, "*W"},
                                 {9, "*L"},
                                 {17, "82kL 403kW *L"},
                                 {33, "697B 140kL 378kW *L"},
                                 {65, "524B 143kL 478kW *L"},
                                 {k_any, "271B 629W *L"}};
constexpr Rule k_exchange_2[] = {
    {5, "76W *L"}, {9, "710B *L"}, {17, "39kL *W"}, {33, "1kB 128kL 265kW *L"}, {k_any, "522B 4kW 60kL *W"}};
constexpr Rule k_exchange_4[] = {{9, "513B *L"}, {65, "765B 6410W 20kL *W"}, {k_any, "263B 7593W 22kL *W"}};
constexpr Rule k_exchange_8[] = {
    {17, "974B 5127W 17kL 64kW *L"}, {33, "875B 6728W 18kL *W"}, {65, "553B *W"}, {129, "271B *W"}, {k_any, "134B *W"}};
constexpr Rule k_exchange_16[] = {{33, "964B 1819W 20kL 166kW *L"},
                                  {65, "593B 2016W 2754L *W"},
                                  {129, "6843B *W"},
                                  {257, "3268B *W"},
                                  {k_any, "2627B *W"}};
constexpr PerHost k_intel_all_to_all[] = {
    {1, k_exchange_1}, {2, k_exchange_2}, {4, k_exchange_4}, {8, k_exchange_8}, {k_any, k_exchange_16}};

// M binomial, G scatter and doubling, A scatter and ring, T hosts apart, U Shumilin's, not published: as MPICH 3.
constexpr Rule k_broadcast_1[] = {{3, "*M"}, {5, "*U"}, {9, "16kM 3904kU *A"}, {k_any, "*U"}};
constexpr Rule k_broadcast_2[] = {{5, "807T 18kU 178kT 604kM *U"},
                                  {9, "18kM 600kU 1254kM *G"},
                                  {17, "159U 17kM *U"},
                                  {33, "243U 10kM *U"},
                                  {k_any, "738U 5341M *U"}};
constexpr Rule k_broadcast_4[] = {{9, "257T 17kM *U"}, {k_any, "*U"}};
constexpr Rule k_broadcast_8[] = {{17, "319U 1506M *U"}, {33, "423U 852M *U"}, {65, "469U 700M *U"}, {k_any, "*U"}};
constexpr Rule k_broadcast_16[] = {{k_any, "*U"}};
constexpr PerHost k_intel_broadcast[] = {
    {1, k_broadcast_1}, {2, k_broadcast_2}, {4, k_broadcast_4}, {8, k_broadcast_8}, {k_any, k_broadcast_16}};

// The same letters.
constexpr Rule k_to_root_1[] = {{k_any, "*U"}};
constexpr Rule k_to_root_2[] = {{5, "10kT *U"}, {k_any, "*U"}};
constexpr Rule k_to_root_4[] = {{257, "*U"}, {k_any, "46T *U"}};
constexpr Rule k_to_root_8[] = {{513, "*U"}, {k_any, "11kT *U"}};
constexpr PerHost k_intel_reduce[] = {
    {1, k_to_root_1}, {2, k_to_root_2}, {4, k_to_root_4}, {8, k_to_root_8}, {k_any, k_to_root_4}};

// H halving (and the table's doubling), W pairwise, N reduce and scatter; sizes are totals.
constexpr Rule k_parts_1[] = {{3, "5N 510kW 1343kN 2864kW *N"}, {5, "5N 33kH 558kW 1377kN *W"},
                              {9, "5N 34kH 165kW 2669kN *W"},   {17, "5N 45kH 509kW *N"},
                              {33, "5N 60kH 2425kW *N"},        {65, "5N 98kH *W"},
                              {k_any, "5N 271kH 1464kW *N"}};
constexpr Rule k_parts_2[] = {{3, "7H *W"},         {5, "14N 89kH 664kN *W"}, {9, "12N 67kH 197kW 1460kN *W"},
                              {17, "5N 77kH *W"},   {33, "5N 69kH *W"},       {65, "5N 191kH *W"},
                              {129, "5N 372kH *W"}, {k_any, "5N 1534kH *N"}};
constexpr Rule k_parts_4[] = {
    {5, "28N 396kH 580kN *W"},   {9, "25N 199kH *N"},          {17, "164kH *W"}, {33, "5N 184kH 1333kN *W"},
    {65, "18N 198kH 1357kN *W"}, {129, "17N 273kH 2544kN *W"}, {257, "17N *H"},  {k_any, "17N 3675kH *N"}};
constexpr Rule k_parts_8[] = {{9, "6N 95kH *W"},    {17, "6N 180kH *N"},   {33, "5N 244kH *N"},
                              {65, "42N 324kH *N"}, {129, "40N 476kH *N"}, {257, "37N 414kH 618kN 1101kH *N"},
                              {k_any, "35N *H"}};
constexpr PerHost k_intel_reduce_scatter[] = {
    {1, k_parts_1}, {2, k_parts_2}, {4, k_parts_4}, {8, k_parts_8}, {k_any, k_parts_4}};

// D doubling (Bruck where ranks are no power of two), R ring; sizes are blocks. Gatherv and broadcast count as either.
constexpr Rule k_blocks_1[] = {{5, "10kD *R"}, {9, "8749D 32kR 362kD *R"}, {17, "124kD *R"}, {k_any, "277kD *R"}};
constexpr Rule k_blocks_2[] = {{9, "2320D 45kR 2163kD *R"}, {17, "2060D *R"}, {k_any, "2455D *R"}};
constexpr Rule k_blocks_4[] = {{9, "2862D *R"}, {k_any, "606D *R"}};
constexpr Rule k_blocks_8[] = {{65, "515D *R"}, {129, "306D *R"}, {k_any, "214D *R"}};
constexpr PerHost k_intel_all_gather[] = {
    {1, k_blocks_1}, {2, k_blocks_2}, {4, k_blocks_4}, {8, k_blocks_8}, {k_any, k_blocks_4}};

// D doubling, F dissemination, M gather and scatter by a tree, T hosts apart.
constexpr Rule k_barrier_1[] = {{3, "*D"}, {5, "*M"}, {9, "*F"}, {65, "*D"}, {k_any, "*M"}};
constexpr Rule k_barrier_2[] = {{3, "*F"}, {5, "*T"}, {9, "*M"}, {33, "*D"}, {k_any, "*T"}};
constexpr Rule k_barrier_4[] = {{5, "*D"}, {9, "*M"}, {33, "*D"}, {k_any, "*T"}};
constexpr Rule k_barrier_8[] = {{9, "*F"}, {33, "*D"}, {k_any, "*T"}};
constexpr Rule k_barrier_16[] = {{5, "*D"}, {9, "*M"}, {k_any, "*D"}};
constexpr PerHost k_intel_barrier[] = {
    {1, k_barrier_1}, {2, k_barrier_2}, {4, k_barrier_4}, {8, k_barrier_8}, {k_any, k_barrier_16}};

std::span<const PerHost> intel_table(Benchmark benchmark) {
  switch (benchmark) {
    case Benchmark::osu_allreduce:
      return k_intel_all_reduce;
    case Benchmark::osu_alltoall:
      return k_intel_all_to_all;
    case Benchmark::osu_bcast:
      return k_intel_broadcast;
    case Benchmark::osu_reduce:
      return k_intel_reduce;
    case Benchmark::osu_reduce_scatter:
      return k_intel_reduce_scatter;
    case Benchmark::osu_allgather:
      return k_intel_all_gather;
    default:
      return k_intel_barrier;
  }
}

/// All ranks are on one host where `hosts` says nothing.
char intel_letter(const Collective& one) {
  const auto num_hosts = std::max<std::size_t>(1, std::set<int>(one.hosts.begin(), one.hosts.end()).size());
  const int per_host = one.num_ranks / static_cast<int>(num_hosts);
  const auto table = intel_table(one.benchmark);
  const auto found = std::ranges::find_if(table, [&](const PerHost& row) { return per_host <= row.ranks; });
  return letter(found->rules, one.num_ranks, one.size.value);
}

void choose_mpich_broadcast(Library library, Collective& out) {
  const int n = out.num_ranks;
  const std::int64_t size = out.size.value;
  const bool has_doubling = is_power_of_two(n);
  if (n < 8 || size < k_small_broadcast) {
    out.algorithm = Algorithm::binomial;
  } else if (library == Library::mpich_4 && !has_doubling) {
    out.algorithm = size / n <= k_small_broadcast ? Algorithm::binomial : Algorithm::scatter_allgather;
  } else {
    const bool is_medium = library == Library::mpich_4 ? size / n <= k_part_of_rank : size < k_medium_broadcast;
    out.algorithm = is_medium && has_doubling ? Algorithm::scatter_doubling : Algorithm::scatter_allgather;
  }
}

void choose_mpich(Library library, Collective& out) {
  const int n = out.num_ranks;
  const std::int64_t size = out.size.value;
  const std::int64_t total = (n * out.size).value;
  const bool is_small_vector = size / k_float < schedules::floor_power_of_two(n);
  switch (out.benchmark) {
    case Benchmark::osu_allreduce: {
      const std::int64_t longest = library == Library::mpich_4 ? 8 : 2'048;
      out.algorithm = size <= longest || is_small_vector ? Algorithm::recursive_doubling : Algorithm::rabenseifner;
      return;
    }
    case Benchmark::osu_allgather:
      if (is_power_of_two(n))
        out.algorithm = total < 524'288 ? Algorithm::recursive_doubling : Algorithm::ring;
      else
        out.algorithm = total < 81'920 ? Algorithm::bruck : Algorithm::ring;
      if (library == Library::cray_mpich && out.algorithm == Algorithm::ring && size <= k_cray_all_gather)
        out.algorithm = Algorithm::gather_broadcast;
      return;
    case Benchmark::osu_reduce_scatter:
      out.algorithm = size < 524'288 ? Algorithm::recursive_halving : Algorithm::pairwise;
      return;
    case Benchmark::osu_bcast:
      if (library == Library::cray_mpich)
        out.algorithm = Algorithm::knomial;  // MPICH_BCAST_ONLY_TREE, of radix 4
      else
        choose_mpich_broadcast(library, out);
      return;
    case Benchmark::osu_reduce:
      out.algorithm = size <= 2'048 || is_small_vector ? Algorithm::binomial : Algorithm::rabenseifner;
      return;
    case Benchmark::osu_alltoall:
      // Cray's keeps up to MPICH_ALLTOALL_SYNC_FREQ, 1 to 24, messages under way, whatever their size.
      out.algorithm = size <= 256 && n >= 8                              ? Algorithm::bruck
                      : size <= 32'768 || library == Library::cray_mpich ? Algorithm::linear
                                                                         : Algorithm::pairwise;
      return;
    case Benchmark::osu_gather:
    case Benchmark::osu_scatter:
      out.algorithm = Algorithm::binomial;
      return;
    default:
      out.algorithm = Algorithm::dissemination;
  }
}

void choose_intel(Collective& out) {
  // Of gathers and scatters nobody published what it picks.
  if (has_root_of_blocks(out.benchmark)) return choose_mpich(Library::mpich_3, out);
  const int n = out.num_ranks;
  const bool is_small_vector = out.size.value / k_float < schedules::floor_power_of_two(n);
  const char picked = intel_letter(out);
  // T: hosts apart, where no host has several ranks.
  if (picked == 'U' || picked == 'T') return choose_mpich(Library::mpich_3, out);
  if (out.benchmark == Benchmark::osu_allreduce && picked == 'B' && is_small_vector)
    out.algorithm = Algorithm::recursive_doubling;
  else
    out.algorithm = fallen_back(algorithm_of(picked, out.benchmark), out.benchmark, n, out.size.value);
}

}  // namespace

bool is_of_mpich(Library library) {
  return library == Library::mpich_3 || library == Library::mpich_4 || library == Library::cray_mpich ||
         library == Library::intel_mpi;
}

bool splits_hosts(Library library, const Collective& one) {
  if (has_root_of_blocks(one.benchmark)) return false;
  if (library == Library::intel_mpi) return intel_letter(one) == 'T';
  switch (one.benchmark) {
    case Benchmark::osu_allreduce:
      if (library == Library::mpich_3) return true;
      return one.size.value <= (library == Library::cray_mpich ? k_cray_smp_all_reduce : k_node_all_reduce);
    case Benchmark::osu_reduce:
    case Benchmark::osu_barrier:
      return true;
    case Benchmark::osu_bcast: {
      if (library == Library::cray_mpich || one.num_ranks < 8 || one.size.value < k_small_broadcast) return true;
      return is_power_of_two(one.num_ranks) && one.size.value < k_medium_broadcast;
    }
    default:
      return false;
  }
}

bool can_run(const Collective& forced) {
  const bool needs_power =
      forced.algorithm == Algorithm::scatter_doubling ||
      (forced.benchmark == Benchmark::osu_allgather && forced.algorithm == Algorithm::recursive_doubling);
  if (needs_power) return is_power_of_two(forced.num_ranks);
  return forced.algorithm != Algorithm::rabenseifner ||
         forced.size.value / k_float >= schedules::floor_power_of_two(forced.num_ranks);
}

void choose_of_mpich(Library library, Collective& out) {
  if (library == Library::intel_mpi) return choose_intel(out);
  const bool is_cut = library == Library::cray_mpich && out.benchmark == Benchmark::osu_allreduce;
  const auto size = out.size;
  if (is_cut) {
    out.block = k_cray_block;
    out.size = std::min(size, k_cray_block);
  }
  choose_mpich(library, out);
  out.size = size;
}

}  // namespace fabricast::models::mpi
