// SPDX-License-Identifier: Apache-2.0
#include "mpi/ranks_memory.hpp"

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "mpi/cache.hpp"
#include "paths/guest.hpp"

namespace fabricast::models::mpi {

namespace {

constexpr double k_page = 4096;  // bytes

/// The longest of several times that pass beside each other.
class Slowest {
 public:
  explicit Slowest(std::string name) : name_(std::move(name)) {}

  void keep(double seconds, const Parameter& owner) {
    const auto time = from_seconds(seconds);
    if (time.ps > 0 && (!term_ || time > term_->time)) term_ = Term{name_, time, owner.name, owner.source};
  }
  void add_to(std::vector<Term>& terms) {
    if (term_) terms.push_back(std::move(*term_));
  }

 private:
  std::string name_;
  std::optional<Term> term_;
};

}  // namespace

RanksMemory::RanksMemory(const Transfers& transfers, const std::vector<EndPoint>& ranks, int alike)
    : transfers_(&transfers), alike_(alike) {
  for (const auto& rank : ranks) {
    const auto& topology = transfers.context().topology;
    const auto memory = topology.hardware(rank.memory);  // VMs of one machine share it
    sockets_.emplace_back(topology.host_of(memory), memory);
    sharers_[sockets_.back()] += alike;
  }
}

/// Share of what the ranks of a socket sweep that is not in its last-level cache.
double RanksMemory::beyond_cache(const Socket& socket, const Buffers& buffers) const {
  const auto& cache =
      of_processor(transfers_->context(), socket.second, "last_level_cache", "mpi.last_level_cache"_key);
  return share_beyond_cache(working_set(buffers) * sharers_.at(socket), cache.value);
}

/// What a socket's memory moves in a second, shared by its ranks; nullptr where nobody says.
const Parameter* RanksMemory::bandwidth(const Socket& socket) const {
  const auto& context = transfers_->context();
  return context.parameters.find(processor_of(context.topology, socket.second) + ".memory_bandwidth");
}

void RanksMemory::add_core_copies(OperationPlan& plan, const char* name, double bytes, const Buffers& buffers,
                                  bool is_of_root) const {
  const auto& context = transfers_->context();
  Slowest slowest(name);
  for (const auto& [socket, ranks] : sharers_) {
    const auto copy = own_copy(context, socket.second, bytes);
    slowest.keep(copy.seconds, *copy.parameter);
    if (const auto* shared = bandwidth(socket))
      slowest.keep(2 * bytes * (is_of_root ? 1 : ranks) * beyond_cache(socket, buffers) / shared->value, *shared);
  }
  slowest.add_to(plan.before);
}

void RanksMemory::add_own_part(OperationPlan& plan, Bytes size, const Buffers& buffers, bool is_of_root) const {
  add_core_copies(plan, k_own_part, static_cast<double>(size.value), buffers, is_of_root);
}

void RanksMemory::add_temporaries(OperationPlan& plan, const Buffers& buffers) const {
  const auto& parameters = transfers_->context().parameters;
  add_core_copies(plan, k_temporaries, buffers.copied, buffers, false);
  if (buffers.data_types > 0) {
    plan.before.push_back(
        parameter_term(parameters, "data types made and freed", "mpi.data_type_time"_key, buffers.data_types));
    plan.before.push_back(
        parameter_term(parameters, "runs of data types", "mpi.data_type_run_time"_key, buffers.data_type_runs));
  }
  const double fresh = fresh_bytes(buffers, parameters.at("mpi.mapped_buffer"_key).value);
  if (fresh > 0)
    plan.before.push_back(
        parameter_term(parameters, "new pages of temporary buffers", "mpi.fresh_page_time"_key, fresh / k_page));
}

void RanksMemory::add_traffic(Node& node, const schedules::Round& round, double sums,
                              const std::map<int, Copies>& copies, const Buffers& buffers) const {
  const auto& core = transfers_->context().parameters.at("mpi.core_memory_bandwidth"_key);
  const auto socket_of = [&](int rank) { return sockets_[static_cast<std::size_t>(rank)]; };
  std::map<Socket, double> traffic;
  std::set<int> receivers;
  for (const auto& step : round.steps) {
    traffic[socket_of(step.from)] += alike_ * step.bytes;
    traffic[socket_of(step.to)] += alike_ * step.bytes;
    if (receivers.insert(step.to).second) traffic[socket_of(step.to)] += 3 * alike_ * round.reduced_bytes;
  }
  const double by_core = beyond_core(*transfers_, round.reduced_bytes, sums, copies);
  Slowest slowest("memory beyond the last-level cache");
  for (const auto& [socket, bytes] : traffic) {
    const double share = beyond_cache(socket, buffers);
    if (const auto* memory = bandwidth(socket)) slowest.keep(share * bytes / memory->value, *memory);
    slowest.keep(share * by_core, core);
  }
  slowest.add_to(node.fixed);
}

}  // namespace fabricast::models::mpi
