// SPDX-License-Identifier: Apache-2.0
// Collectives of programs in SimGrid's SMPI as the forecast makes them. Loaded before libsimgrid, this library takes
// the PMPI calls of collectives, and each rank sends and receives what the forecast's schedule says (models/mpi: the
// library's and release's own choice of algorithm), with what entering and reducing cost. The messages carry the time;
// the data go beside them: all ranks are in one process, each leaves its input at entry, and when its last message has
// come, everything it depends on is there. What is not in the table of the forecast (user operations that do not
// commute, types with gaps, intercommunicators) stays SimGrid's.
#include <smpi/smpi.h>
#include <simgrid/kernel/resource/NetworkModelIntf.hpp>
#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include "programs/group.hpp"

namespace fabricast::programs {

namespace {

/// Bytes of elements without gaps; nothing for other types and counts that SimGrid is to refuse.
std::size_t packed(int count, MPI_Datatype type) {
  if (count <= 0 || type == MPI_DATATYPE_NULL) return 0;
  int size = 0;
  MPI_Aint low = 0, extent = 0;
  PMPI_Type_size(type, &size);
  PMPI_Type_get_extent(type, &low, &extent);
  if (size <= 0 || low != 0 || extent != size) return 0;
  return static_cast<std::size_t>(count) * static_cast<std::size_t>(size);
}

/// Bytes of data, however they lie: the same on all ranks of a gather or scatter, whose types may differ.
std::size_t data_bytes(int count, MPI_Datatype type) {
  if (count <= 0 || type == MPI_DATATYPE_NULL) return 0;
  int size = 0;
  PMPI_Type_size(type, &size);
  return static_cast<std::size_t>(count) * static_cast<std::size_t>(std::max(0, size));
}

template <typename Pointer>
Pointer* block_of(Pointer* data, int rank, int count, MPI_Datatype type) {
  MPI_Aint low = 0, extent = 0;
  PMPI_Type_get_extent(type, &low, &extent);
  using Byte = std::conditional_t<std::is_const_v<Pointer>, const char, char>;
  return static_cast<Byte*>(data) + static_cast<MPI_Aint>(rank) * count * extent;
}

std::vector<char> pack(const void* data, int count, MPI_Datatype type, MPI_Comm comm) {
  std::vector<char> out(data_bytes(count, type));
  int at = 0;
  PMPI_Pack(data, count, type, out.data(), static_cast<int>(out.size()), &at, comm);
  return out;
}

void unpack(const std::vector<char>& from, std::size_t begin, void* data, int count, MPI_Datatype type, MPI_Comm comm) {
  int at = static_cast<int>(begin);
  PMPI_Unpack(from.data(), static_cast<int>(from.size()), &at, data, count, type, comm);
}

bool commutes(MPI_Op op) {
  int out = 0;
  if (op != MPI_OP_NULL) PMPI_Op_commutative(op, &out);
  return out != 0;
}

/// All inputs combined, from rank 0 on.
void combine(const Exchange& all, int num_ranks, void* out, int count, MPI_Datatype type, MPI_Op op) {
  std::vector<char> sum = all.input(num_ranks - 1);
  for (int rank = num_ranks - 2; rank >= 0; --rank)
    PMPI_Reduce_local(all.input(rank).data(), sum.data(), count, type, op);
  std::memcpy(out, sum.data(), sum.size());
}

void put(void* out, std::size_t at, const std::vector<char>& from, std::size_t begin, std::size_t bytes) {
  std::memcpy(static_cast<char*>(out) + at, from.data() + begin, bytes);
}

/// What posting a message costs its rank: of its own for ranks of one host.
double posting_cost(std::size_t bytes, const simgrid::s4u::Host* from, const simgrid::s4u::Host* to, bool is_blocking) {
  const auto& all = settings();
  if (from == to) return at_size(all.inside, bytes);
  return at_size(all.gap, bytes) + (is_blocking ? at_way(all.blocking, way_between(from, to), bytes) : 0);
}

/// Of a message as SimGrid's network sees it: SMPI sends 16 B more than the program does.
std::size_t payload(double bytes) { return static_cast<std::size_t>(std::max(0.0, bytes - 16)); }

/// SMPI's own tables of costs and latency factors give way to those of the forecast.
void take_over_costs() {
  using simgrid::s4u::Host;
  using Links = std::vector<simgrid::s4u::Link*>;
  using Zones = std::unordered_set<simgrid::s4u::NetZone*>;
  for (const auto operation : {SmpiOperation::SEND, SmpiOperation::ISEND})
    smpi_register_op_cost_callback(operation, [operation](std::size_t bytes, Host* from, Host* to) {
      return posting_cost(bytes, from, to, operation == SmpiOperation::SEND);
    });
  simgrid::s4u::Engine::on_platform_created.connect([] {
    auto* model = simgrid::s4u::Engine::get_instance()->get_netzone_root()->get_network_model();
    model->set_lat_factor_cb([](double bytes, const Host*, const Host*, const Links& links, const Zones&) {
      double way = 0;
      for (const auto* link : links) way += link->get_latency();
      return way <= 0 ? 1.0 : at_way(settings().latency, way, payload(bytes)) / way;
    });
    model->set_bw_factor_cb([](double, const Host*, const Host*, const Links&, const Zones&) { return 1.0; });
  });
}

struct Registration {
  Registration() {
    if (std::getenv("FABRICAST_SMPI_SETTINGS") != nullptr) take_over_costs();
  }
};
const Registration g_registration;

}  // namespace

}  // namespace fabricast::programs

using namespace fabricast;
using namespace fabricast::programs;

extern "C" {

int PMPI_Allreduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const auto bytes = packed(count, type);
  if (bytes == 0 || !commutes(op) || !is_ours(comm))
    return next<decltype(PMPI_Allreduce)>("PMPI_Allreduce")(in, out, count, type, op, comm);
  auto& group = group_of(comm);
  const Exchange all(group, in == MPI_IN_PLACE ? out : in, bytes);
  run(group, Benchmark::osu_allreduce, bytes, 0);
  combine(all, group.size, out, count, type, op);
  return MPI_SUCCESS;
}

int PMPI_Reduce(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm) {
  const auto bytes = packed(count, type);
  if (bytes == 0 || !commutes(op) || !is_ours(comm) || root < 0)
    return next<decltype(PMPI_Reduce)>("PMPI_Reduce")(in, out, count, type, op, root, comm);
  auto& group = group_of(comm);
  const Exchange all(group, in == MPI_IN_PLACE ? out : in, bytes);
  run(group, Benchmark::osu_reduce, bytes, root);
  if (group.rank == root) combine(all, group.size, out, count, type, op);
  return MPI_SUCCESS;
}

int PMPI_Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm) {
  const auto bytes = packed(count, type);
  if (bytes == 0 || !is_ours(comm) || root < 0)
    return next<decltype(PMPI_Bcast)>("PMPI_Bcast")(data, count, type, root, comm);
  auto& group = group_of(comm);
  const Exchange all(group, group.rank == root ? data : nullptr, bytes);
  run(group, Benchmark::osu_bcast, bytes, root);
  if (group.rank != root) put(data, 0, all.input(root), 0, bytes);
  return MPI_SUCCESS;
}

int PMPI_Allgather(const void* in, int num_in, MPI_Datatype type_in, void* out, int num_out, MPI_Datatype type_out,
                   MPI_Comm comm) {
  const auto bytes = packed(num_out, type_out);
  const bool is_in_place = in == MPI_IN_PLACE;
  if (bytes == 0 || !is_ours(comm) || (!is_in_place && packed(num_in, type_in) != bytes))
    return next<decltype(PMPI_Allgather)>("PMPI_Allgather")(in, num_in, type_in, out, num_out, type_out, comm);
  auto& group = group_of(comm);
  const auto* own = is_in_place ? static_cast<char*>(out) + static_cast<std::size_t>(group.rank) * bytes : in;
  const Exchange all(group, own, bytes);
  run(group, Benchmark::osu_allgather, bytes, 0, is_in_place ? 0 : bytes);
  for (int rank = 0; rank < group.size; ++rank)
    put(out, static_cast<std::size_t>(rank) * bytes, all.input(rank), 0, bytes);
  return MPI_SUCCESS;
}

int PMPI_Alltoall(const void* in, int num_in, MPI_Datatype type_in, void* out, int num_out, MPI_Datatype type_out,
                  MPI_Comm comm) {
  const auto bytes = packed(num_out, type_out);
  const bool is_in_place = in == MPI_IN_PLACE;
  if (bytes == 0 || !is_ours(comm) || (!is_in_place && packed(num_in, type_in) != bytes))
    return next<decltype(PMPI_Alltoall)>("PMPI_Alltoall")(in, num_in, type_in, out, num_out, type_out, comm);
  auto& group = group_of(comm);
  const Exchange all(group, is_in_place ? out : in, bytes * static_cast<std::size_t>(group.size));
  run(group, Benchmark::osu_alltoall, bytes, 0, is_in_place ? 0 : bytes);
  for (int rank = 0; rank < group.size; ++rank)
    put(out, static_cast<std::size_t>(rank) * bytes, all.input(rank), static_cast<std::size_t>(group.rank) * bytes,
        bytes);
  return MPI_SUCCESS;
}

int PMPI_Gather(const void* in, int num_in, MPI_Datatype type_in, void* out, int num_out, MPI_Datatype type_out,
                int root, MPI_Comm comm) {
  auto* group = is_ours(comm) && root >= 0 ? &group_of(comm) : nullptr;
  const bool is_root = group != nullptr && group->rank == root;
  const bool is_in_place = is_root && in == MPI_IN_PLACE;
  const auto bytes = is_root ? data_bytes(num_out, type_out) : data_bytes(num_in, type_in);
  if (bytes == 0 || group == nullptr)
    return next<decltype(PMPI_Gather)>("PMPI_Gather")(in, num_in, type_in, out, num_out, type_out, root, comm);
  const auto own = is_in_place ? pack(block_of(out, root, num_out, type_out), num_out, type_out, comm)
                               : pack(in, num_in, type_in, comm);
  const Exchange all(*group, own.data(), own.size());
  run(*group, Benchmark::osu_gather, bytes, root, is_root && !is_in_place ? bytes : 0);
  for (int rank = 0; is_root && rank < group->size; ++rank)
    unpack(all.input(rank), 0, block_of(out, rank, num_out, type_out), num_out, type_out, comm);
  return MPI_SUCCESS;
}

int PMPI_Scatter(const void* in, int num_in, MPI_Datatype type_in, void* out, int num_out, MPI_Datatype type_out,
                 int root, MPI_Comm comm) {
  auto* group = is_ours(comm) && root >= 0 ? &group_of(comm) : nullptr;
  const bool is_root = group != nullptr && group->rank == root;
  const bool is_in_place = is_root && out == MPI_IN_PLACE;
  const auto bytes = is_root ? data_bytes(num_in, type_in) : data_bytes(num_out, type_out);
  if (bytes == 0 || group == nullptr)
    return next<decltype(PMPI_Scatter)>("PMPI_Scatter")(in, num_in, type_in, out, num_out, type_out, root, comm);
  std::vector<char> whole;
  for (int rank = 0; is_root && rank < group->size; ++rank) {
    const auto part = pack(block_of(in, rank, num_in, type_in), num_in, type_in, comm);
    whole.insert(whole.end(), part.begin(), part.end());
  }
  const Exchange all(*group, is_root ? whole.data() : nullptr, whole.size());
  run(*group, Benchmark::osu_scatter, bytes, root, is_root && !is_in_place ? bytes : 0);
  if (!is_in_place)
    unpack(all.input(root), static_cast<std::size_t>(group->rank) * bytes, out, num_out, type_out, comm);
  return MPI_SUCCESS;
}

int PMPI_Reduce_scatter_block(const void* in, void* out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  const auto bytes = packed(count, type);
  if (bytes == 0 || !commutes(op) || !is_ours(comm))
    return next<decltype(PMPI_Reduce_scatter_block)>("PMPI_Reduce_scatter_block")(in, out, count, type, op, comm);
  auto& group = group_of(comm);
  const auto total = bytes * static_cast<std::size_t>(group.size);
  const Exchange all(group, in == MPI_IN_PLACE ? out : in, total);
  run(group, Benchmark::osu_reduce_scatter, total, 0);
  std::vector<char> sum(total);
  combine(all, group.size, sum.data(), count * group.size, type, op);
  put(out, 0, sum, static_cast<std::size_t>(group.rank) * bytes, bytes);
  return MPI_SUCCESS;
}

int PMPI_Barrier(MPI_Comm comm) {
  if (!is_ours(comm)) return next<decltype(PMPI_Barrier)>("PMPI_Barrier")(comm);
  run(group_of(comm), Benchmark::osu_barrier, 0, 0);
  return MPI_SUCCESS;
}

int PMPI_Comm_free(MPI_Comm* comm) {
  if (comm != nullptr) drop_group(*comm);
  return next<decltype(PMPI_Comm_free)>("PMPI_Comm_free")(comm);
}

}  // extern "C"
