// SPDX-License-Identifier: Apache-2.0
// Events of a trace to nodes. Of one rank:
//   compute            a node on the stream of its lane, slowed by collectives of its GPU
//   collective         NCCL's operation, when all ranks are there and their earlier collectives have ended
//   send and receive   GPUs: NCCL's send and receive of the pair; processes: one message of the MPI library, which
//   starts
//                      when it is posted (eager), or when its receiver is there too (rendezvous), a gap after the
//                      rank's message before it
#include "fabricast/models/replay.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "mpi/end_points.hpp"
#include "replay/graph.hpp"
#include "training/communicator.hpp"

namespace fabricast::models {

namespace {

using replay::Event;
using replay::OpRef;
using training::Communicator;

class Replayer {
 public:
  Replayer(const PlanContext& context, const Trace& trace)
      : context_(context),
        trace_(trace),
        transfers_(context, mpi::make_profile(context, message_workload(), all_hosts(context.topology))) {
    for (const auto& ops : trace.ranks) {
      out_.ends.emplace_back(ops.size(), -1);
      starts_.emplace_back(ops.size(), -1);
    }
    last_message_.assign(trace.ranks.size(), -1);
    last_collective_.assign(trace.ranks.size(), -1);
    out_.program.num_devices = trace.is_on_gpus ? static_cast<int>(trace.ranks.size()) : 0;
  }

  Result<ReplayPlan> plan(int ranks_per_host) {
    if (auto faults = place(ranks_per_host); !faults.empty()) return tl::unexpected(faults);
    const auto order = replay::order_of(trace_);
    if (!order) return tl::unexpected(order.error());
    for (const auto& event : order->events) {
      const auto& first = op(event.members.front());
      if (first.kind == TraceOpKind::compute) {
        compute(event.members.front());
      } else if (first.kind == TraceOpKind::collective) {
        if (auto faults = collective(event); !faults.empty()) return tl::unexpected(faults);
      } else if (auto faults = trace_.is_on_gpus ? exchange(event) : message(event); !faults.empty()) {
        return tl::unexpected(faults);
      }
    }
    return std::move(out_);
  }

 private:
  static std::vector<int> all_hosts(const Topology& topology) {
    std::vector<int> out(static_cast<std::size_t>(topology.num_hosts()));
    std::iota(out.begin(), out.end(), 0);
    return out;
  }

  static Workload message_workload() {
    Workload out;
    out.benchmark = Benchmark::osu_allreduce;
    return out;
  }
  [[nodiscard]] const TraceOp& op(const OpRef& ref) const {
    return trace_.ranks[static_cast<std::size_t>(ref.rank)][static_cast<std::size_t>(ref.op)];
  }
  int& end(const OpRef& ref) { return out_.ends[static_cast<std::size_t>(ref.rank)][static_cast<std::size_t>(ref.op)]; }
  int& start(const OpRef& ref) { return starts_[static_cast<std::size_t>(ref.rank)][static_cast<std::size_t>(ref.op)]; }

  Diagnostics place(int ranks_per_host) {
    const auto count = static_cast<int>(trace_.ranks.size());
    if (!trace_.is_on_gpus) {
      auto workload = message_workload();
      workload.ranks = count;
      if (ranks_per_host > 0) workload.ranks_per_host = ranks_per_host;
      auto ranks = mpi::make_ranks(context_, workload, transfers_.profile());
      if (!ranks) return ranks.error();
      ends_ = std::move(*ranks);
      for (const auto& one : ends_) out_.devices.push_back(mpi::name_of(context_.topology, one));
      return {};
    }
    gpus_ = context_.topology.devices(DeviceKind::gpu);
    if (count > static_cast<int>(gpus_.size()))
      return {make_error(fmt::format("the trace has {} ranks, topology '{}' holds {} GPUs", count,
                                     context_.topology.name(), gpus_.size()),
                         "raise the count of hosts")};
    gpus_.resize(trace_.ranks.size());
    for (const auto gpu : gpus_) out_.devices.push_back(context_.topology.device(gpu).name);
    return {};
  }

  int add(Node node) {
    out_.program.nodes.push_back(std::move(node));
    return static_cast<int>(out_.program.nodes.size()) - 1;
  }
  int delay(const std::string& label, std::vector<int> after, Duration time = {}, int stream = -1) {
    Node node;
    node.kind = NodeKind::delay;
    node.label = label;
    node.after = std::move(after);
    node.stream = stream;
    if (time.ps > 0) node.fixed.push_back({"posting a message", time, "message gap", ""});
    return add(std::move(node));
  }

  /// Nodes that an operation waits for.
  std::vector<int> waited_for(const OpRef& ref) {
    std::vector<int> out;
    for (const int other : op(ref).after) out.push_back(end({ref.rank, other}));
    for (const int other : op(ref).with) out.push_back(start({ref.rank, other}));
    return sorted(std::move(out));
  }
  static std::vector<int> sorted(std::vector<int> nodes) {
    std::erase(nodes, -1);
    std::sort(nodes.begin(), nodes.end());
    nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
    return nodes;
  }

  int stream(int rank, int lane) {
    const auto [known, is_new] = streams_.try_emplace({rank, lane}, static_cast<int>(out_.program.streams.size()));
    if (is_new)
      out_.program.streams.push_back(
          {fmt::format("rank {} {} {}", rank, lane < 0 ? "host" : "stream", lane < 0 ? 0 : lane),
           trace_.is_on_gpus && lane >= 0 ? rank : -1});
    return known->second;
  }

  void compute(const OpRef& ref) {
    const auto& one = op(ref);
    // When it starts matters only to `irequires`; a node without time tells it, on the same stream.
    start(ref) = delay(one.name, waited_for(ref), {}, stream(ref.rank, one.lane));
    Node node;
    node.kind = NodeKind::compute;
    node.label = node.work_name = one.name;
    node.work_parameter = "trace";
    node.work = one.time;
    node.stream = stream(ref.rank, one.lane);
    node.after = {start(ref)};
    end(ref) = add(std::move(node));
  }

  /// The GPUs that take part, planned by NCCL; made once per group.
  Result<const Communicator*> communicator(const std::vector<int>& ranks) {
    const auto known = communicators_.find(ranks);
    if (known != communicators_.end()) return &known->second;
    std::vector<DeviceId> members;
    for (const int rank : ranks) members.push_back(gpus_[static_cast<std::size_t>(rank)]);
    auto made = Communicator::make(context_, Workload{}, members);
    if (!made) return tl::unexpected(made.error());
    return &communicators_.emplace(ranks, std::move(*made)).first->second;
  }

  /// NCCL's operation over the ranks of an event, behind the collectives that they have begun before.
  Diagnostics nccl(const Event& event, Benchmark operation, std::int64_t size) {
    std::vector<int> ranks, after;
    for (const auto& member : event.members) {
      ranks.push_back(member.rank);
      for (const int node : waited_for(member)) after.push_back(node);
      after.push_back(last_collective_[static_cast<std::size_t>(member.rank)]);
    }
    const auto& one = op(event.members.front());
    if (ranks.size() < 2) {
      start(event.members.front()) = end(event.members.front()) = delay(one.name, sorted(std::move(after)));
      return {};
    }
    std::sort(ranks.begin(), ranks.end());
    const auto group = communicator(ranks);
    if (!group) return group.error();
    const auto first = out_.program.nodes.size();
    const int last =
        (*group)->append(out_.program, operation, Bytes{size}, sorted(std::move(after)), -1, one.name, ranks.front());
    for (auto n = first; n < out_.program.nodes.size(); ++n) {
      auto& node = out_.program.nodes[n];
      if (node.slows.empty()) continue;
      const double share = node.slows.front().second;
      node.slows.clear();
      for (const int rank : ranks) node.slows.emplace_back(rank, share);
    }
    for (const auto& member : event.members) {
      start(member) = static_cast<int>(first);
      end(member) = last_collective_[static_cast<std::size_t>(member.rank)] = last;
    }
    return {};
  }

  Diagnostics collective(const Event& event) {
    const auto& one = op(event.members.front());
    const auto count = static_cast<std::int64_t>(event.members.size());
    // nccl-tests counts what an all-gather puts out.
    return nccl(event, one.collective,
                one.collective == Benchmark::all_gather_perf ? one.size.value * count : one.size.value);
  }

  Diagnostics exchange(const Event& event) {
    return nccl(event, Benchmark::sendrecv_perf, op(event.members.front()).size.value);
  }

  Diagnostics message(const Event& event) {
    const auto& sender = event.members[0];
    const auto& receiver = event.members[1];
    auto planned =
        transfers_.message(ends_[static_cast<std::size_t>(sender.rank)], ends_[static_cast<std::size_t>(receiver.rank)],
                           op(sender).size, static_cast<std::uint64_t>(sender.rank));
    const bool is_eager = planned.protocol.starts_with("eager") || planned.protocol == "shared memory";
    auto posted = waited_for(sender);
    const auto received = waited_for(receiver);
    auto& before = last_message_[static_cast<std::size_t>(sender.rank)];
    posted.push_back(before);
    Node node;
    node.label = op(sender).name;
    node.after = posted;
    if (!is_eager) node.after.insert(node.after.end(), received.begin(), received.end());
    node.after = sorted(std::move(node.after));
    planned.flow.latency = sum(planned.terms);
    planned.flow.latency_terms = std::move(planned.terms);
    node.flows.push_back(std::move(planned.flow));
    before = delay(op(sender).name, sorted(std::move(posted)), planned.gap);
    const int arrived = add(std::move(node));
    start(sender) = start(receiver) = before;
    end(sender) = is_eager ? before : arrived;
    auto done = received;
    done.push_back(arrived);
    end(receiver) = is_eager && !received.empty() ? delay(op(receiver).name, sorted(std::move(done))) : arrived;
    return {};
  }

  const PlanContext& context_;
  const Trace& trace_;
  mpi::Transfers transfers_;
  std::vector<mpi::EndPoint> ends_;  ///< [rank] of processes
  std::vector<DeviceId> gpus_;       ///< [rank]
  ReplayPlan out_;
  std::vector<std::vector<int>> starts_;
  std::vector<int> last_message_, last_collective_;  ///< [rank]: node; -1 = none yet
  std::map<std::pair<int, int>, int> streams_;       ///< [rank, lane]
  std::map<std::vector<int>, Communicator> communicators_;
};

}  // namespace

Result<ReplayPlan> plan_replay(const PlanContext& context, const Trace& trace, int ranks_per_host) {
  return Replayer(context, trace).plan(ranks_per_host);
}

}  // namespace fabricast::models
