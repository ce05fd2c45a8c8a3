// SPDX-License-Identifier: Apache-2.0
// Sources: Open MPI coll/base of 4.1 to 5.0: coll_base_allreduce.c, coll_base_reduce.c, coll_base_reduce_scatter.c,
// coll_base_allgather.c, coll_base_gather.c, coll_base_scatter.c; coll/cuda: coll_cuda_allreduce.c, coll_cuda_reduce.c;
// Cray's compilers: -fcray-mallopt, their default, M_MMAP_MAX 0 and M_TRIM_THRESHOLD 512 MiB; MPICH 3.x and 4.x:
// src/mpi/coll (allreduce, reduce, reduce_scatter, allgather, gather, scatter); a reduce-scatter's copies:
// calibration/data/h200-2gpu-mpi-device.
#include "mpi/buffers.hpp"

#include "mpi/decisions_mpich.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fabricast::models::mpi {

namespace {

constexpr std::int64_t k_very_small_gather = 1'024;  ///< MPIR_CVAR_GATHER_VSMALL_MSG_SIZE

double own_bytes(const Collective& one) {
  const double size = static_cast<double>(one.size.value);
  switch (one.benchmark) {
    case Benchmark::osu_allreduce:
    case Benchmark::osu_reduce:
      return one.is_in_place ? size : 2 * size;
    case Benchmark::osu_reduce_scatter:
      return size + size / one.num_ranks;
    case Benchmark::osu_allgather:
      return size + size * one.num_ranks;
    default:
      return 0;
  }
}

/// MPICH allocates for every call what a rank receives to combine; ranks of a reduce that are no root have no receive
/// buffer either.
void add_of_mpich(const Collective& one, Buffers& out) {
  using enum CollectiveAlgorithm;
  const double size = static_cast<double>(one.size.value);
  const double block = size / one.num_ranks;
  switch (one.algorithm) {
    case recursive_doubling:
    case rabenseifner:
    case binomial:
      if (one.benchmark == Benchmark::osu_allreduce) {
        out.temporaries = {one.block.value > 0 ? std::min(size, static_cast<double>(one.block.value)) : size};
        out.copied = one.is_in_place ? 0 : size;
      } else if (one.benchmark == Benchmark::osu_reduce) {
        out.temporaries = {size, size};
        out.copied = size;
      }
      break;
    case recursive_halving:
      out.temporaries = {size, size};
      out.copied = size + block;
      break;
    case pairwise:
      if (one.benchmark != Benchmark::osu_reduce_scatter) break;
      out.temporaries = {block};
      out.copied = block;
      break;
    case bruck:
      if (one.benchmark != Benchmark::osu_allgather) break;
      out.temporaries = {size * one.num_ranks};
      out.copied = size * one.num_ranks;
      break;
    default:
      break;
  }
}

/// A tree's ranks between the root and the leaves keep what they pass on, up to half of all, beside their own block; a
/// root that is not the first rank turns all blocks round.
void add_of_block_trees(const Collective& one, Buffers& out) {
  const double all = static_cast<double>(one.size.value) * one.num_ranks;
  out.temporaries = {one.root == 0 ? all / 2 : all};
  out.copied = one.root == 0 ? static_cast<double>(one.size.value) : all;
}

/// Each rank of a gather's tree allocates what its children send, 2^j - 1 blocks for 2^-j of the ranks, and up to 1 KiB
/// a block room for its own, which it copies there; the root, whoever it is, receives in place. Waiting adds up along
/// the tree: 2^-j of the ranks wait for a buffer of level j.
void add_gather_of_mpich(const Collective& one, Statistic statistic, Buffers& out) {
  const double size = static_cast<double>(one.size.value);
  const bool is_very_small = one.size.value < k_very_small_gather;
  double largest = 0;
  for (int blocks = 2; blocks < one.num_ranks; blocks *= 2) {
    const int received = std::min(blocks, one.num_ranks - blocks) - 1;
    const double bytes = size * (received + (is_very_small && received > 0 ? 1 : 0));
    largest = std::max(largest, bytes);
    if (statistic == Statistic::mean) out.passed_on.push_back({bytes, 1.0 / blocks});
  }
  out.temporaries = {largest};
  if (out.passed_on.empty()) out.passed_on = {{largest, 1}};
  out.copied = is_very_small ? size : 0;
}

/// Blocks turned into the order of their distance and back, and every round's, half of all, packed, unpacked and copied
/// on. A data type of distance d has one run of bytes for every 2 d ranks [coll_base_alltoall.c; MPIR_Alltoall_intra_
/// brucks].
void add_of_bruck(const Collective& one, Buffers& out) {
  const double all = static_cast<double>(one.size.value) * one.num_ranks;
  out.temporaries = {all};
  out.copied = 2 * all;
  out.data_type_runs = one.num_ranks;
  for (int distance = 1; distance < one.num_ranks; distance *= 2) {
    ++out.data_types;
    out.data_type_runs += std::ceil(one.num_ranks / 2.0 / distance);
    out.copied += 3 * all / 2;
  }
}

/// A rank of a reduce's tree receives from its first child where it accumulates, the root in the caller's buffer, from
/// the next ones in two buffers by turns: three new ones at most, each waited for as it comes [ompi_coll_base_reduce_
/// generic]. The root of a linear reduce has one for all but the first [reduce_intra_basic_linear]. Of segments the
/// accumulated vector is new as they pass; what they come in is small.
double vectors_waited_for_in_reduce(const Collective& one) {
  const bool is_linear = one.algorithm == CollectiveAlgorithm::linear;
  std::vector<int> received(static_cast<std::size_t>(one.num_ranks), 0);
  std::vector<int> waited(static_cast<std::size_t>(one.num_ranks), 0);
  auto whole = one;
  whole.segment = Bytes{};
  const auto rounds = make_schedule(whole);
  for (const auto& round : rounds) {
    for (const auto& [from, to, bytes] : round.steps) {
      const int earlier = received[static_cast<std::size_t>(to)]++;
      const bool is_new = earlier == 0 ? to != one.root : earlier < (is_linear ? 2 : 3);
      auto& own = waited[static_cast<std::size_t>(to)];
      own = std::max(own, waited[static_cast<std::size_t>(from)]) + (is_new ? 1 : 0);
    }
  }
  const int of_root = waited[static_cast<std::size_t>(one.root)];
  return one.segment.value > 0 && one.size > one.segment ? std::min(of_root, 1) : of_root;
}

/// Who passes on 2^k blocks of a gather waits for the pages of 2^k, and before for those of its largest child's half as
/// many: 2^(k+1) - 2 in all, which adds up to one block less than log2(n) a rank. (What a scatter's first child writes
/// keeps all the others below it waiting: the mean rank for as long as the slowest.)
double written_by_mean_rank_of_gather(int num_ranks, int root) {
  const double of_trees = std::max(0.0, std::log2(num_ranks) - 1);
  return root == 0 ? of_trees / (num_ranks / 2.0) : (of_trees + 1) / num_ranks;
}

void add_reduce_of_open_mpi(const Collective& one, Buffers& out) {
  using enum CollectiveAlgorithm;
  const double size = static_cast<double>(one.size.value);
  if (one.algorithm == rabenseifner) {
    out.temporaries = {size, size};
    out.copied = size;
  } else if (one.algorithm != two_level) {
    out.passed_on = {{size, vectors_waited_for_in_reduce(one)}};
  }
}

}  // namespace

Buffers buffers_of(Library library, const Collective& one, Statistic statistic) {
  using enum CollectiveAlgorithm;
  Buffers out{.own = own_bytes(one), .temporaries = {}, .written_share = 1, .passed_on = {}, .copied = 0};
  out.is_on_heap = library == Library::cray_mpich;
  if (is_of_mpich(library) && one.benchmark == Benchmark::osu_gather && one.algorithm == binomial) {
    add_gather_of_mpich(one, statistic, out);
    return out;
  }
  if (has_root_of_blocks(one.benchmark)) {
    if (one.algorithm == binomial) add_of_block_trees(one, out);
    if (one.benchmark == Benchmark::osu_gather && statistic == Statistic::mean)
      out.written_share = written_by_mean_rank_of_gather(one.num_ranks, one.root);
    return out;
  }
  if (one.benchmark == Benchmark::osu_alltoall && one.algorithm == bruck && library != Library::ucc) {
    add_of_bruck(one, out);
    return out;
  }
  if (is_of_mpich(library)) {
    add_of_mpich(one, out);
    return out;
  }
  if (library == Library::ucc) return out;  // its scratch comes from a pool and is received into
  if (one.benchmark == Benchmark::osu_reduce) {
    add_reduce_of_open_mpi(one, out);
    return out;
  }
  const double size = static_cast<double>(one.size.value);
  if (one.benchmark == Benchmark::osu_allgather && one.algorithm == bruck) {
    // Every rank r but the first turns its result round: n - r blocks out of the way, r to the front, n - r back.
    const double others = one.num_ranks - 1;
    out.temporaries = {others / 2 * size};
    out.copied = 1.5 * others * size;
  }
  if (one.benchmark != Benchmark::osu_allreduce && one.benchmark != Benchmark::osu_reduce_scatter) return out;
  const double block = size / one.num_ranks;
  switch (one.algorithm) {
    case recursive_doubling:
      // In at the start; half of the ranks hold the result in the temporary and copy it out.
      out.temporaries = {size};
      out.copied = 1.5 * size;
      break;
    case rabenseifner:
      out.temporaries = {size};
      out.copied = one.is_in_place ? 0 : size;
      break;
    case ring:
      out.temporaries = {block};
      if (one.num_ranks > 2) out.temporaries.push_back(block);
      if (one.benchmark == Benchmark::osu_reduce_scatter) out.temporaries.push_back(size);
      out.copied = one.is_in_place && one.benchmark == Benchmark::osu_allreduce ? 0 : size;
      break;
    case recursive_halving:
    case butterfly:
      out.temporaries = {size, size};
      out.copied = size;
      break;
    default:
      break;
  }
  return out;
}

DeviceCopies device_copies_of(const Collective& one, Statistic statistic) {
  const double size = static_cast<double>(one.size.value);
  switch (one.benchmark) {
    case Benchmark::osu_reduce: {
      const double copies = statistic == Statistic::max ? 3 : 1 + 2.0 / one.num_ranks;
      return {copies, copies * size};
    }
    case Benchmark::osu_reduce_scatter:
      return {2, size + size / one.num_ranks};
    default:
      return one.is_in_place ? DeviceCopies{2, 2 * size} : DeviceCopies{3, 3 * size};
  }
}

double fresh_bytes(const Buffers& buffers, double mapped) {
  if (buffers.is_on_heap) return 0;
  double bytes = 0;
  for (const auto& one : buffers.passed_on) bytes += one.bytes >= mapped ? one.share * one.bytes : 0;
  if (!buffers.passed_on.empty()) return bytes;
  for (const double one : buffers.temporaries) bytes += one >= mapped ? buffers.written_share * one : 0;
  return bytes;
}

double working_set(const Buffers& buffers) {
  return std::accumulate(buffers.temporaries.begin(), buffers.temporaries.end(), buffers.own);
}

}  // namespace fabricast::models::mpi
