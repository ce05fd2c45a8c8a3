// SPDX-License-Identifier: Apache-2.0
#include "training/by_hosts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "mpi/collective.hpp"
#include "mpi/profile.hpp"
#include "training/terms.hpp"

namespace fabricast::models::training {

namespace {

constexpr int k_gradient_bytes = 4;  ///< fp32, before a cast
constexpr const char* k_mpi_rules = "planned by the MPI library's rules";

/// GPUs of each system, systems and GPUs in rank order.
std::vector<std::vector<DeviceId>> by_system(const Topology& topology, const std::vector<DeviceId>& gpus) {
  std::vector<std::vector<DeviceId>> out;
  std::map<int, std::size_t> places;
  for (const auto gpu : gpus) {
    const auto [place, is_new] = places.try_emplace(topology.guest_of(gpu), out.size());
    if (is_new) out.emplace_back();
    out[place->second].push_back(gpu);
  }
  return out;
}

/// The `local_rank`-th GPU of every system.
std::vector<DeviceId> column(const std::vector<std::vector<DeviceId>>& systems, std::size_t local_rank) {
  std::vector<DeviceId> out;
  for (const auto& gpus : systems) out.push_back(gpus[local_rank]);
  return out;
}

/// Of every kind of host one: equal hosts have equal devices in equal places.
std::vector<std::vector<DeviceId>> kinds_of(const Topology& topology,
                                            const std::vector<std::vector<DeviceId>>& systems) {
  std::set<std::pair<int, std::vector<int>>> seen;
  std::vector<std::vector<DeviceId>> out;
  for (const auto& gpus : systems)
    if (seen.insert(topology.place_of(gpus)).second) out.push_back(gpus);
  return out;
}

/// Most GPUs of a system that hang below one socket.
int most_of_a_socket(const Topology& topology, const std::vector<std::vector<DeviceId>>& systems) {
  std::map<DeviceId, int> counts;
  for (const auto& gpus : systems)
    for (const auto gpu : gpus) ++counts[topology.local_memory(gpu)];
  return std::ranges::max_element(counts, {}, &std::pair<const DeviceId, int>::second)->second;
}

}  // namespace

Result<ByHosts> ByHosts::make(const PlanContext& context, const Workload& workload, const std::vector<DeviceId>& gpus) {
  const auto systems = by_system(context.topology, gpus);
  ByHosts out;
  out.resources_ = &context.resources;
  out.element_bytes_ = element_bytes(workload.training->parallel.exchange);
  const auto size = systems.front().size();
  if (std::ranges::all_of(systems, [&](const auto& one) { return one.size() == size; }))
    out.local_size_ = static_cast<int>(size);
  if (auto faults = out.connect(context, workload, systems)) return tl::unexpected(std::move(*faults));
  return out;
}

std::optional<Diagnostics> ByHosts::connect(const PlanContext& context, const Workload& workload,
                                            const std::vector<std::vector<DeviceId>>& systems) {
  has_peers_ = systems.front().size() > 1;
  for (const auto& gpus : kinds_of(context.topology, systems)) {
    if (gpus.size() < 2) continue;
    auto asked = workload;
    asked.root = local_size_ > 0 ? local_size_ - 1 : 0;
    auto made = Communicator::make(context, asked, gpus);
    if (!made) return made.error();
    local_.push_back(std::move(*made));
  }
  // Groups between hosts share adapters and links: none may leave out what binds only beside the others.
  PlanContext beside = context;
  beside.runs_alone = false;
  const int alike = local_size_ > 0 ? most_of_a_socket(context.topology, systems) : 1;
  for (int rank = 0; rank < std::max(1, local_size_); ++rank) {
    const auto gpus = column(systems, static_cast<std::size_t>(rank));
    if (workload.training->parallel.hierarchical) {
      if (auto faults = connect_by_mpi(beside, workload, gpus, alike)) return faults;
      continue;
    }
    auto made = Communicator::make(beside, workload, gpus);
    if (!made) return made.error();
    cross_.push_back(std::move(*made));
  }
  return std::nullopt;
}

std::optional<Diagnostics> ByHosts::connect_by_mpi(const PlanContext& context, const Workload& workload,
                                                   const std::vector<DeviceId>& gpus, int alike) {
  auto asked = workload;
  asked.benchmark = Benchmark::osu_allreduce;
  asked.training = nullptr;
  asked.algorithm = asked.protocol = "auto";
  asked.root = 0;
  auto made = mpi::make_collective_planner(context, asked, gpus, alike);
  if (!made) return made.error();
  processes_.push_back(std::move(*made));
  return std::nullopt;
}

std::string ByHosts::mpi_profile() const {
  if (processes_.empty()) return {};
  for (const auto& setting : processes_.front()->settings())
    if (setting.setting == "profile") return setting.used;
  return {};
}

std::vector<std::string> ByHosts::assumptions() const {
  std::vector<std::string> out;
  for (const auto& group : cross_)
    for (auto& line : group.planner(Benchmark::all_reduce_perf).assumptions()) out.push_back(std::move(line));
  for (const auto& processes : processes_)
    for (auto& line : processes->assumptions()) out.push_back(std::move(line));
  if (is_by_mpi() && element_bytes_ < k_gradient_bytes)
    out.emplace_back("MPI adds up 16-bit gradients as fast, by bytes, as 32-bit ones");
  return out;
}

ByHosts::Shares ByHosts::shares(const Bucket& buffer) const {
  // The exchange may cast them.
  std::int64_t elements = (buffer.bytes.value + k_gradient_bytes - 1) / k_gradient_bytes;
  if (local_size_ == 0) return {Bytes{0}, Bytes{elements * element_bytes_}};
  const std::int64_t unit = std::int64_t{k_atomic_unit} * local_size_;
  if (buffer.tensors > 1) elements = (elements + unit - 1) / unit * unit;
  const auto rest = elements % local_size_;
  return {Bytes{(elements - rest) * element_bytes_}, Bytes{rest * element_bytes_}};
}

Bytes ByHosts::between(std::size_t index, const Shares& shares) const {
  const int ranks = std::max(1, local_size_);
  const bool is_root = static_cast<int>(index) + 1 == ranks;
  return Bytes{shares.scattered.value / ranks} + (is_root ? shares.rest : Bytes{});
}

const OperationPlan& ByHosts::by_mpi(std::size_t index, Bytes size) const {
  const auto [it, is_new] = plans_.try_emplace({index, size.value});
  if (is_new) it->second = processes_[index]->plan(size);
  return it->second;
}

int ByHosts::local(Program& program, const Shares& shares, Local part, std::vector<int> after, const std::string& which,
                   int slowed) const {
  const auto one = [&](Benchmark operation, Bytes size, const char* what) {
    if (size.value == 0 || local_.empty()) return;
    const auto name = fmt::format("exposed {} in hosts, {}", what, which);
    std::vector<int> ends;
    // Hosts of other kinds do the same beside the first, whose NCCL stream stands for all.
    for (std::size_t kind = 0; kind < local_.size(); ++kind) {
      const bool is_first = kind == 0;
      ends.push_back(local_[kind].append(program, operation, size, after, is_first ? k_nccl : -1, name,
                                         is_first && has_peers_ ? slowed : -1));
    }
    after = std::move(ends);
  };
  const bool is_before = part == Local::before;
  one(is_before ? Benchmark::reduce_scatter_perf : Benchmark::all_gather_perf, shares.scattered,
      is_before ? "reduce-scatter of gradients" : "all-gather of gradients");
  one(is_before ? Benchmark::reduce_perf : Benchmark::broadcast_perf, shares.rest,
      is_before ? "reduce of what does not divide" : "broadcast of what does not divide");
  if (after.size() == 1) return after.front();
  Node join;
  join.kind = NodeKind::delay;
  join.label = fmt::format("exposed exchange in hosts, {}", which);
  join.after = std::move(after);
  program.nodes.push_back(std::move(join));
  return static_cast<int>(program.nodes.size()) - 1;
}

int ByHosts::between_by_nccl(Program& program, const Shares& shares, int after, const std::string& which,
                             int slowed) const {
  const auto name = fmt::format("exposed all-reduce between hosts, {}", which);
  Node join;
  join.kind = NodeKind::delay;
  join.label = name;
  for (std::size_t index = 0; index < cross_.size(); ++index) {
    const auto size = between(index, shares);
    if (size.value == 0) continue;
    // GPU 0 is local rank 0; compute is slowed by its own group.
    join.after.push_back(cross_[index].append(program, Benchmark::all_reduce_perf, size, {after},
                                              index == 0 ? k_nccl : -1, name, index == 0 ? slowed : -1));
  }
  program.nodes.push_back(std::move(join));
  return static_cast<int>(program.nodes.size()) - 1;
}

int ByHosts::between_by_mpi(Program& program, const Shares& shares, int after, const std::string& which) const {
  Node join;
  join.kind = NodeKind::delay;
  join.label = fmt::format("exposed all-reduce between hosts by MPI, {}", which);
  join.rules = k_mpi_rules;
  for (std::size_t index = 0; index < processes_.size(); ++index) {
    const auto size = between(index, shares);
    if (size.value == 0) continue;
    const auto& plan = by_mpi(index, size);
    const int stream = index == 0 ? k_mpi : -1;
    Node start;
    start.kind = NodeKind::delay;
    start.label = fmt::format("exposed copies to and from host memory, {}", which);
    start.rules = k_mpi_rules;
    start.after = {after};
    start.stream = stream;
    start.fixed = plan.before;
    program.nodes.push_back(std::move(start));
    const auto first = program.nodes.size();
    join.after.push_back(program.append(plan.program, {static_cast<int>(first) - 1}, stream));
    for (auto n = first; n < program.nodes.size(); ++n) {
      program.nodes[n].label = join.label;
      program.nodes[n].rules = k_mpi_rules;
    }
  }
  program.nodes.push_back(std::move(join));
  return static_cast<int>(program.nodes.size()) - 1;
}

ByHosts::Ends ByHosts::append(Program& program, const Bucket& buffer, const std::vector<int>& after,
                              const std::string& which, int slowed) const {
  const auto parts = shares(buffer);
  const int scattered = local(program, parts, Local::before, after, which, slowed);
  Ends ends;
  if (is_by_mpi()) {
    ends.freed = between_by_mpi(program, parts, scattered, which);
    ends.done = ends.freed;
  } else {
    ends.done = between_by_nccl(program, parts, scattered, which, slowed);
  }
  ends.done = local(program, parts, Local::behind, {ends.done}, which, slowed);
  return ends;
}

Duration ByHosts::busy(const Bucket& buffer) const {
  if (!is_by_mpi()) return {};
  const auto parts = shares(buffer);
  Duration inside;
  for (const auto& host : local_) {
    Duration one;
    if (parts.scattered.value > 0) one += host.time_alone(Benchmark::reduce_scatter_perf, parts.scattered);
    if (parts.rest.value > 0) one += host.time_alone(Benchmark::reduce_perf, parts.rest);
    inside = std::max(inside, one);
  }
  std::vector<const OperationPlan*> plans;
  for (std::size_t index = 0; index < processes_.size(); ++index) {
    const auto size = between(index, parts);
    if (size.value > 0) plans.push_back(&by_mpi(index, size));
  }
  return inside + time_together(*resources_, plans);
}

}  // namespace fabricast::models::training
