// SPDX-License-Identifier: Apache-2.0
#include "programs/group.hpp"

#include <simgrid/actor.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

namespace fabricast::programs {

double way_between(const simgrid::s4u::Host* from, const simgrid::s4u::Host* to) {
  static std::map<std::pair<const simgrid::s4u::Host*, const simgrid::s4u::Host*>, double> known;
  const auto found = known.find({from, to});
  if (found != known.end()) return found->second;
  std::vector<simgrid::s4u::Link*> links;
  double latency = 0;
  from->route_to(to, links, &latency);
  return known[{from, to}] = latency;
}

namespace {

constexpr int k_tag = 1;  ///< on a communicator of our own, where nobody else sends

/// Inputs of one collective, all ranks.
struct Slot {
  std::vector<std::vector<char>> inputs;
  int num_done = 0;
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

/// One repeat of a round of a collective of `size` bytes, from this rank.
void pass(const RankRound& round, const Group& group, std::size_t size, std::vector<char>& dummy,
          std::vector<MPI_Request>& open) {
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
  if (round.reduced_bytes > 0)
    sg_actor_sleep_for(at_size(settings().sums, size) * round.reduced_bytes / static_cast<double>(size));
  if (round.held) {
    auto& barrier = g_barriers[{group.id, round.held->round}];
    if (!barrier) barrier = simgrid::s4u::Barrier::create(static_cast<unsigned>(round.held->num_ranks));
    barrier->wait();
  }
}

/// The collective's messages, from entry to the last one of this rank.
}  // namespace

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

Group& group_of(MPI_Comm comm) {
  const std::pair key{comm, world_rank()};
  const auto known = g_groups.find(key);
  return known != g_groups.end() ? known->second : g_groups.emplace(key, make_group(comm)).first->second;
}

void drop_group(MPI_Comm comm) {
  const auto known = g_groups.find({comm, world_rank()});
  if (known == g_groups.end()) return;
  next<decltype(PMPI_Comm_free)>("PMPI_Comm_free")(&known->second.own);
  g_groups.erase(known);
}

bool is_ours(MPI_Comm comm) {
  if (comm == MPI_COMM_NULL) return false;
  int is_inter = 0, size = 0;
  PMPI_Comm_test_inter(comm, &is_inter);
  PMPI_Comm_size(comm, &size);
  return is_inter == 0 && size > 1;
}

void run(Group& group, Benchmark benchmark, std::size_t bytes, int root, std::size_t own) {
  static Plans plans(settings());
  models::mpi::Collective asked{.benchmark = benchmark,
                                .num_ranks = group.size,
                                .size = Bytes{static_cast<std::int64_t>(bytes)},
                                .root = root,
                                .hosts = group.hosts};
  const auto& plan = plans.of(asked);
  const auto& rounds = plan.ranks[static_cast<std::size_t>(group.rank)];
  std::size_t largest = 1;
  for (const auto& round : rounds) {
    for (const auto& one : round.sends) largest = std::max(largest, one.bytes);
    for (const auto& one : round.receives) largest = std::max(largest, one.bytes);
  }
  std::vector<char> dummy(largest);
  std::vector<MPI_Request> open;
  const auto copied_s = [](std::size_t copied) { return copied > 0 ? at_size(settings().own, copied) : 0; };
  sg_actor_sleep_for(settings().entry_s + copied_s(own) + copied_s(static_cast<std::size_t>(plan.copied_bytes)));
  for (const auto& round : rounds) {
    for (std::int64_t i = 0; i < round.repeat; ++i) pass(round, group, bytes, dummy, open);
  }
  if (!open.empty()) PMPI_Waitall(static_cast<int>(open.size()), open.data(), MPI_STATUSES_IGNORE);
}

Exchange::Exchange(Group& group, const void* input, std::size_t bytes)
    : key_{group.id, group.calls++}, size_(group.size) {
  auto& inputs = g_slots[key_].inputs;
  inputs.resize(static_cast<std::size_t>(size_));
  const auto* from = static_cast<const char*>(input);
  if (input != nullptr) inputs[static_cast<std::size_t>(group.rank)].assign(from, from + bytes);
}

Exchange::~Exchange() {
  if (++g_slots[key_].num_done == size_) g_slots.erase(key_);
}

const std::vector<char>& Exchange::input(int rank) const {
  return g_slots[key_].inputs[static_cast<std::size_t>(rank)];
}

}  // namespace fabricast::programs
