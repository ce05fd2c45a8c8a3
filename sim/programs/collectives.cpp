// SPDX-License-Identifier: Apache-2.0
// Collectives of programs in SimGrid's SMPI as the forecast makes them. Loaded before libsimgrid, this library takes
// the PMPI calls of collectives, and each rank sends and receives what the forecast's schedule says (models/mpi: the
// library's and release's own choice of algorithm), with what entering and reducing cost. The messages carry the time;
// the data go beside them: all ranks are in one process, each leaves its input at entry, and when its last message has
// come, everything it depends on is there. What is not in the table of the forecast (user operations that do not
// commute, types with gaps, intercommunicators) stays SimGrid's.
#include <dlfcn.h>
#include <simgrid/actor.h>
#include <smpi/smpi.h>
#include <simgrid/kernel/resource/NetworkModelIntf.hpp>
#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <unordered_set>
#include <vector>

#include "programs/plan.hpp"

namespace fabricast::programs {

namespace {

constexpr int k_tag = 1;  ///< on a communicator of our own, where nobody else sends

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

const Settings& settings() {
  static const Settings read = [] {
    std::string fault;
    const char* path = std::getenv("FABRICAST_SMPI_SETTINGS");
    auto out = read_settings(path == nullptr ? "" : path, fault);
    if (!fault.empty()) {
      std::fprintf(stderr, "fabricast: %s\n", fault.c_str());
      std::exit(1);
    }
    return out;
  }();
  return read;
}

/// Inputs of one collective, all ranks.
struct Slot {
  std::vector<std::vector<char>> inputs;
  int num_done = 0;
};

/// A communicator as one rank knows it.
struct Group {
  MPI_Comm own = MPI_COMM_NULL;  ///< the same ranks, for our messages
  int id = 0;                    ///< the same number on all ranks
  int rank = 0, size = 0;
  std::uint64_t calls = 0;
  std::vector<int> hosts;                     ///< [rank], numbers
  std::vector<simgrid::s4u::Host*> machines;  ///< [rank]
};

std::map<std::pair<MPI_Comm, int>, Group> g_groups;                  // [communicator, world rank]
std::map<std::pair<int, std::uint64_t>, Slot> g_slots;               // [group, call]
std::map<std::pair<int, int>, simgrid::s4u::BarrierPtr> g_barriers;  // [group, held round]
std::uint64_t g_num_groups = 0;

int world_rank() {
  int out = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &out);
  return out;
}

Group make_group(MPI_Comm comm) {
  Group out;
  PMPI_Comm_rank(comm, &out.rank);
  PMPI_Comm_size(comm, &out.size);
  PMPI_Comm_dup(comm, &out.own);
  if (out.rank == 0) out.id = static_cast<int>(++g_num_groups);
  next<decltype(PMPI_Bcast)>("PMPI_Bcast")(&out.id, 1, MPI_INT, 0, out.own);
  MPI_Group ours = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  PMPI_Comm_group(comm, &ours);
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  std::map<simgrid::s4u::Host*, int> numbers;
  for (int rank = 0; rank < out.size; ++rank) {
    int in_world = 0;
    PMPI_Group_translate_ranks(ours, 1, &rank, world, &in_world);
    const auto& name = settings().hosts.at(static_cast<std::size_t>(in_world));
    out.machines.push_back(simgrid::s4u::Host::by_name(name));
    out.hosts.push_back(numbers.emplace(out.machines.back(), static_cast<int>(numbers.size())).first->second);
  }
  PMPI_Group_free(&ours);
  PMPI_Group_free(&world);
  return out;
}

Group& group_of(MPI_Comm comm) {
  const std::pair key{comm, world_rank()};
  const auto known = g_groups.find(key);
  return known != g_groups.end() ? known->second : g_groups.emplace(key, make_group(comm)).first->second;
}

/// Communicators between two groups and of one rank are left to SimGrid.
bool is_ours(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) return false;
  int is_inter = 0, size = 0;
  PMPI_Comm_test_inter(comm, &is_inter);
  PMPI_Comm_size(comm, &size);
  return is_inter == 0 && size > 1;
}

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

bool commutes(MPI_Op op) {
  int out = 0;
  if (op != MPI_OP_NULL) PMPI_Op_commutative(op, &out);
  return out != 0;
}

double way_between(const simgrid::s4u::Host* from, const simgrid::s4u::Host* to) {
  static std::map<std::pair<const simgrid::s4u::Host*, const simgrid::s4u::Host*>, double> known;
  const auto found = known.find({from, to});
  if (found != known.end()) return found->second;
  std::vector<simgrid::s4u::Link*> links;
  double latency = 0;
  from->route_to(to, links, &latency);
  return known[{from, to}] = latency;
}

const std::map<std::int64_t, SizeTable>& table_of(SendMode mode) {
  const auto& all = settings();
  return mode == SendMode::posted ? all.posted : mode == SendMode::one_way ? all.blocking : all.both;
}

struct Waits {
  double before = 0;  ///< what the messages of a round take beyond others, by how the library sends them
  double least = 0;   ///< what they take in all however fast the network is
};

Waits waits_of(const RankRound& round, const Group& group) {
  Waits out;
  const auto* own = group.machines[static_cast<std::size_t>(group.rank)];
  for (const auto& one : round.sends) {
    const auto* peer = group.machines[static_cast<std::size_t>(one.peer)];
    if (peer == own) continue;
    const double way = way_between(own, peer);
    out.before = std::max(out.before, at_way(table_of(one.mode), way, one.bytes));
    if (one.mode == SendMode::exchange) out.least = std::max(out.least, at_way(settings().least, way, one.bytes));
  }
  return out;
}

/// One repeat of a round, from this rank.
void pass(const RankRound& round, const Group& group, std::vector<char>& dummy, std::vector<MPI_Request>& open) {
  std::vector<MPI_Request> in(round.receives.size());
  for (std::size_t i = 0; i < in.size(); ++i)
    PMPI_Irecv(dummy.data(), static_cast<int>(round.receives[i].bytes), MPI_CHAR, round.receives[i].peer, k_tag,
               group.own, &in[i]);
  const auto waits = waits_of(round, group);
  const double end = simgrid::s4u::Engine::get_clock() + waits.least;
  if (waits.before > 0) sg_actor_sleep_for(waits.before);
  double handled = 0;
  for (const auto& one : round.sends) {
    open.emplace_back();
    PMPI_Isend(dummy.data(), static_cast<int>(one.bytes), MPI_CHAR, one.peer, k_tag, group.own, &open.back());
    handled += at_size(settings().gap, one.bytes);
  }
  // Of several messages each that arrives is handled by the same core that posts the next one.
  const auto num_sends = static_cast<double>(round.sends.size());
  if (num_sends > 1 && !in.empty()) sg_actor_sleep_for(handled * (num_sends - 1) / num_sends);
  PMPI_Waitall(static_cast<int>(in.size()), in.data(), MPI_STATUSES_IGNORE);
  if (!round.is_pipeline) {
    PMPI_Waitall(static_cast<int>(open.size()), open.data(), MPI_STATUSES_IGNORE);
    open.clear();
  }
  if (const double now = simgrid::s4u::Engine::get_clock(); end > now) sg_actor_sleep_for(end - now);
  // A round ends with what it reduces: where few ranks do (the rest of a power of two), the others wait for them.
  if (round.reduced_bytes > 0) sg_actor_sleep_for(round.reduced_bytes / settings().reduction_rate);
  if (round.held) {
    auto& barrier = g_barriers[{group.id, round.held->round}];
    if (!barrier) barrier = simgrid::s4u::Barrier::create(static_cast<unsigned>(round.held->num_ranks));
    barrier->wait();
  }
}

/// The collective's messages, from entry to the last one of this rank.
void run(Group& group, Benchmark benchmark, std::size_t bytes, int root) {
  static Plans plans(settings());
  models::mpi::Collective asked{.benchmark = benchmark,
                                .num_ranks = group.size,
                                .size = Bytes{static_cast<std::int64_t>(bytes)},
                                .root = root,
                                .hosts = group.hosts};
  const auto& rounds = plans.of(asked)[static_cast<std::size_t>(group.rank)];
  std::size_t largest = 1;
  for (const auto& round : rounds) {
    for (const auto& one : round.sends) largest = std::max(largest, one.bytes);
    for (const auto& one : round.receives) largest = std::max(largest, one.bytes);
  }
  std::vector<char> dummy(largest);
  std::vector<MPI_Request> open;
  sg_actor_sleep_for(settings().entry_s);
  for (const auto& round : rounds) {
    for (std::int64_t i = 0; i < round.repeat; ++i) pass(round, group, dummy, open);
  }
  if (!open.empty()) PMPI_Waitall(static_cast<int>(open.size()), open.data(), MPI_STATUSES_IGNORE);
}

/// What this rank leaves for the others at entry, and what it may read of theirs at its end.
class Exchange {
 public:
  Exchange(Group& group, const void* input, std::size_t bytes) : key_{group.id, group.calls++}, size_(group.size) {
    auto& inputs = slot().inputs;
    inputs.resize(static_cast<std::size_t>(size_));
    const auto* from = static_cast<const char*>(input);
    if (input != nullptr) inputs[static_cast<std::size_t>(group.rank)].assign(from, from + bytes);
  }
  ~Exchange() {
    if (++slot().num_done == size_) g_slots.erase(key_);
  }
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  [[nodiscard]] const std::vector<char>& input(int rank) const { return slot().inputs[static_cast<std::size_t>(rank)]; }

 private:
  [[nodiscard]] Slot& slot() const { return g_slots[key_]; }
  std::pair<int, std::uint64_t> key_;
  int size_;
};

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
  run(group, Benchmark::osu_allgather, bytes, 0);
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
  run(group, Benchmark::osu_alltoall, bytes, 0);
  for (int rank = 0; rank < group.size; ++rank)
    put(out, static_cast<std::size_t>(rank) * bytes, all.input(rank), static_cast<std::size_t>(group.rank) * bytes,
        bytes);
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
  if (comm != nullptr) {
    const auto known = g_groups.find({*comm, world_rank()});
    if (known != g_groups.end()) {
      next<decltype(PMPI_Comm_free)>("PMPI_Comm_free")(&known->second.own);
      g_groups.erase(known);
    }
  }
  return next<decltype(PMPI_Comm_free)>("PMPI_Comm_free")(comm);
}

}  // extern "C"
