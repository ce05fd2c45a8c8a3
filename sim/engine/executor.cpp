// SPDX-License-Identifier: Apache-2.0
#include "engine/executor.hpp"

#include <algorithm>
#include <deque>
#include <memory>
#include <set>

#include "base/assert.hpp"
#include "engine/compute_devices.hpp"
#include "engine/host_limits.hpp"
#include "engine/ring_rounds.hpp"

namespace fabricast::engine {

namespace {

using models::Flow;
using models::Node;
using models::NodeKind;
using models::RepeatOrder;

/// A node of a part.
struct NodeRef {
  std::uint32_t part = 0;
  std::uint32_t node = 0;
  friend auto operator<=>(const NodeRef&, const NodeRef&) = default;
};

/// Which nodes wait for which, `after` and streams together.
class Edges {
 public:
  explicit Edges(const Part& part) : num_before_(part.count, 0), first_(part.count + 1, 0) {
    visit(part, [&](std::size_t before, std::size_t) { ++first_[before + 1]; });
    for (std::size_t n = 0; n < part.count; ++n) first_[n + 1] += first_[n];
    behind_.resize(first_.back());
    auto next = first_;
    visit(part, [&](std::size_t before, std::size_t n) {
      behind_[next[before]++] = static_cast<std::uint32_t>(n);
      ++num_before_[n];
    });
  }

  [[nodiscard]] std::uint32_t num_before(std::size_t n) const { return num_before_[n]; }
  template <typename Visit>
  void for_each_behind(std::size_t n, const Visit& visit) const {
    for (auto e = first_[n]; e < first_[n + 1]; ++e) visit(behind_[e]);
  }

 private:
  template <typename Visit>
  static void visit(const Part& part, const Visit& visit) {
    std::vector<std::int64_t> last_of_stream(part.program->streams.size(), -1);
    for (std::size_t n = 0; n < part.count; ++n) {
      const auto& node = part.node(n);
      for (const int earlier : node.after) {
        FABRICAST_ASSERT(earlier >= 0 && static_cast<std::size_t>(earlier) < part.first + n, "node {} waits for {}",
                         part.first + n, earlier);
        if (static_cast<std::size_t>(earlier) >= part.first) visit(static_cast<std::size_t>(earlier) - part.first, n);
      }
      if (node.stream < 0) continue;
      FABRICAST_ASSERT(static_cast<std::size_t>(node.stream) < last_of_stream.size(), "stream {} of {}", node.stream,
                       last_of_stream.size());
      auto& last = last_of_stream[static_cast<std::size_t>(node.stream)];
      if (last >= 0) visit(static_cast<std::size_t>(last), n);
      last = static_cast<std::int64_t>(n);
    }
  }

  std::vector<std::uint32_t> num_before_;
  std::vector<std::size_t> first_;  ///< [node] -> behind_
  std::vector<std::uint32_t> behind_;
};

class Executor {
 public:
  Executor(const models::Resources& resources, const std::vector<Part>& parts, NetworkBackend& network,
           const ExecutorOptions& options)
      : resources_(resources), parts_(parts), network_(network), options_(options) {
    states_.reserve(parts.size());
    for (const auto& part : parts) states_.push_back(make_state(part));
  }

  std::vector<OperationTiming> run() {
    for (std::uint32_t p = 0; p < parts_.size(); ++p) {
      network_.after(parts_[p].start - network_.now(), [this, p] {
        for (std::uint32_t n = 0; n < parts_[p].count; ++n)
          if (states_[p].runs[n].num_waited_for == 0) ready_.push_back({p, n});
        start_ready();
        if (parts_[p].count == 0) states_[p].is_done = true;
      });
    }
    network_.run([this](FlowRef flow) { end_flow(flow); });
    std::vector<OperationTiming> timings;
    for (std::uint32_t p = 0; p < parts_.size(); ++p) {
      auto& state = states_[p];
      if (!state.is_done) state.timing.total = network_.now() - parts_[p].start;
      timings.push_back(std::move(state.timing));
    }
    return timings;
  }

 private:
  /// A node on its way.
  struct Run {
    std::uint32_t num_waited_for = 0;
    std::uint32_t flows_left = 0;
    std::int64_t repeat = 0;   ///< ended
    Moment repeat_start;       ///< of its flows
    Duration last_repeat{-1};  ///< how long it took
    Duration transfer;         ///< of all repeats
    std::unique_ptr<RingProgress> ring;
  };
  struct State {
    Edges edges;
    ComputeDevices devices;
    std::vector<Run> runs;
    std::size_t nodes_left = 0;
    Duration left_out;  ///< time of repeats that were not run
    bool is_done = false;
    OperationTiming timing;
  };

  State make_state(const Part& part) {
    State state{Edges(part),
                ComputeDevices(network_, part.program->num_devices),
                std::vector<Run>(part.count),
                part.count,
                {},
                false,
                {}};
    state.timing.nodes.resize(part.count);
    for (std::size_t n = 0; n < part.count; ++n) {
      const auto& node = part.node(n);
      state.runs[n].num_waited_for = state.edges.num_before(n);
      auto& timing = state.timing.nodes[n];
      timing.fixed = models::sum(node.fixed);
      if (node.kind == NodeKind::compute) timing.work = node.work;
      timing.repeat = node.repeat;
      timing.flow_ends.assign(node.flows.size(), Duration{-1});
    }
    return state;
  }

  [[nodiscard]] const Node& node(NodeRef at) const { return parts_[at.part].node(at.node); }
  [[nodiscard]] Run& run_of(NodeRef at) { return states_[at.part].runs[at.node]; }
  [[nodiscard]] NodeTiming& timing(NodeRef at) { return states_[at.part].timing.nodes[at.node]; }
  [[nodiscard]] std::int64_t repeats(NodeRef at) const { return parts_[at.part].is_once ? 1 : node(at).repeat; }
  [[nodiscard]] Duration since_start(std::uint32_t part) const {
    return network_.now() - parts_[part].start + states_[part].left_out;
  }
  [[nodiscard]] bool is_ring(NodeRef at) const {
    const auto order = node(at).order;
    return order != RepeatOrder::barrier && repeats(at) > 1 && !node(at).flows.empty() &&
           (order == RepeatOrder::neighbour || network_.follows_blocking_order());
  }

  // ---- nodes ------------------------------------------------------------------------------------------------------

  /// One after the other, however many start and end at the same moment.
  void start_ready() {
    if (is_starting_) return;
    is_starting_ = true;
    for (; !ready_.empty(); ready_.pop_front()) start(ready_.front());
    is_starting_ = false;
  }

  void start(NodeRef at) {
    timing(at).start = since_start(at.part);
    if (node(at).kind == NodeKind::compute) return start_work(at);
    if (node(at).flows.empty()) return wait(repeats(at) * timing(at).fixed, [this, at] { end(at); });
    if (is_ring(at)) return start_ring(at);
    start_repeat(at);
  }

  template <typename Then>
  void wait(Duration time, Then then) {
    if (time.ps <= 0) return then();
    network_.after(time, then);
  }

  void end(NodeRef at) {
    auto& state = states_[at.part];
    auto& one = timing(at);
    one.end = since_start(at.part);
    if (node(at).kind == NodeKind::compute) one.slowed = one.end - one.start - repeats(at) * (one.fixed + one.work);
    state.edges.for_each_behind(at.node, [&](std::uint32_t behind) {
      if (--state.runs[behind].num_waited_for == 0) ready_.push_back({at.part, behind});
    });
    if (--state.nodes_left == 0) {
      state.is_done = true;
      state.timing.total = one.end;
    }
    start_ready();
  }

  // ---- compute ----------------------------------------------------------------------------------------------------

  [[nodiscard]] int device_of(NodeRef at) const {
    const int stream = node(at).stream;
    return stream < 0 ? -1 : parts_[at.part].program->streams[static_cast<std::size_t>(stream)].device;
  }

  void start_work(NodeRef at) {
    auto& devices = states_[at.part].devices;
    if (timing(at).fixed.ps <= 0)
      return devices.start(device_of(at), repeats(at) * node(at).work, [this, at] { end(at); });
    network_.after(timing(at).fixed, [this, at] {
      states_[at.part].devices.start(device_of(at), node(at).work, [this, at] {
        if (++run_of(at).repeat == repeats(at)) return end(at);
        start_work(at);
      });
    });
  }

  /// The node's flows begin or end.
  void slow_devices(NodeRef at, bool is_begin) {
    for (const auto& [device, share] : node(at).slows) states_[at.part].devices.slow(device, share, is_begin);
    if (is_begin) {
      active_.insert(at);
    } else {
      active_.erase(at);
    }
  }

  // ---- flows ------------------------------------------------------------------------------------------------------

  void start_repeat(NodeRef at) {
    wait(parts_[at.part].is_once ? Duration{} : timing(at).fixed, [this, at] {
      auto& run = run_of(at);
      run.flows_left = static_cast<std::uint32_t>(node(at).flows.size());
      run.repeat_start = network_.moment();
      slow_devices(at, true);
      start_flows(at, {});
    });
  }

  void start_flows(NodeRef at, Duration wait) {
    const auto order = network_.starting_order(node(at));
    for (std::uint32_t f = 0; f < node(at).flows.size(); ++f)
      network_.start_flow({at.part, at.node, order.empty() ? f : static_cast<std::uint32_t>(order[f])}, wait);
  }

  void end_flow(FlowRef flow) {
    const NodeRef at{flow.part, flow.node};
    auto& run = run_of(at);
    timing(at).flow_ends[flow.flow] = network_.now() - run.repeat_start.time;
    if (run.ring) return end_in_ring(at, flow.flow);
    if (--run.flows_left == 0) end_repeat(at, flow.flow);
  }

  void end_repeat(NodeRef at, std::size_t last_flow) {
    auto& run = run_of(at);
    auto& one = timing(at);
    const auto took = network_.since(run.repeat_start);
    one.critical_flow = last_flow;
    one.latency = node(at).flows[last_flow].latency;
    if (run.repeat == 0) name_bottleneck(at);
    slow_devices(at, false);
    run.transfer += took - one.latency;
    ++run.repeat;
    if (options_.leaves_out_repeats && took == run.last_repeat) {
      const auto left = repeats(at) - run.repeat;
      states_[at.part].left_out += left * (took + one.fixed);
      network_.leave_out(node(at), left);
      run.transfer += left * (took - one.latency);
      run.repeat = repeats(at);
    }
    run.last_repeat = took;
    if (run.repeat < repeats(at)) return start_repeat(at);
    one.transfer = run.transfer / repeats(at);
    end(at);
  }

  // ---- rings ------------------------------------------------------------------------------------------------------

  void start_ring(NodeRef at) {
    auto& run = run_of(at);
    run.repeat_start = network_.moment();
    run.ring = std::make_unique<RingProgress>(node(at).flows.size(), repeats(at), node(at).order);
    if (options_.leaves_out_repeats) run.ring->stop_when_steady();
    slow_devices(at, true);
    start_flows(at, timing(at).fixed);
  }

  void end_in_ring(NodeRef at, std::uint32_t f) {
    auto& run = run_of(at);
    for (const auto next : run.ring->end(f, network_.now()))
      network_.start_flow({at.part, at.node, static_cast<std::uint32_t>(next)}, timing(at).fixed);
    if (!run.ring->is_done()) return;
    auto& one = timing(at);
    one.critical_flow = f;
    name_bottleneck(at);
    slow_devices(at, false);
    states_[at.part].left_out += run.ring->left_out_time();
    network_.leave_out(node(at), run.ring->left_out());
    describe_ring(node(at), network_.since(run.repeat_start) + run.ring->left_out_time(), one);
    run.ring.reset();
    end(at);
  }

  // ---- what held a flow ---------------------------------------------------------------------------------------------

  /// The max-min shares' answer, of the flow that ended the node: with all flows of the nodes that are active beside
  /// it, or else with those of its node that were under way half way of its transfer (in a ring all). The others learn
  /// theirs, too: the last one to end has nobody beside it any more.
  void name_bottleneck(NodeRef at) {
    const auto& flows = node(at).flows;
    auto& one = timing(at);
    if (parts_[at.part].is_once) return;
    if (!is_held_by_others(at)) {
      one.binding = -1;
      return;
    }
    if (active_.size() == 1) {
      if (flows.size() < 2) return;
      const auto ends = run_of(at).ring ? std::vector<Duration>(flows.size(), Duration{INT64_MAX}) : one.flow_ends;
      one.binding = shared_bottlenecks(resources_, active_beside(flows, ends, one.critical_flow))[0];
      return;
    }
    const Flow* own = &flows[one.critical_flow];
    std::vector<const Flow*> all{own};
    std::vector<NodeTiming*> others{&one};  // whose flow it is; of several flows only their end tells which counts
    for (const auto other : active_) {
      const auto& beside = node(other).flows;
      for (const auto& flow : beside) {
        if (&flow == own) continue;
        all.push_back(&flow);
        others.push_back(beside.size() == 1 ? &timing(other) : nullptr);
      }
    }
    const auto holders = shared_bottlenecks(resources_, all);
    for (std::size_t f = 0; f < all.size(); ++f)
      if (others[f] != nullptr) others[f]->binding = holders[f];
  }

  [[nodiscard]] bool is_held_by_others(NodeRef at) {
    const auto& one = timing(at);
    const auto& flow = node(at).flows[one.critical_flow];
    return run_of(at).ring ||
           one.flow_ends[one.critical_flow] - flow.latency > transfer_alone(resources_, flow) + k_rounding;
  }

  const models::Resources& resources_;
  const std::vector<Part>& parts_;
  NetworkBackend& network_;
  ExecutorOptions options_;
  std::vector<State> states_;
  std::deque<NodeRef> ready_;
  bool is_starting_ = false;
  std::set<NodeRef> active_;  ///< with flows under way
};

}  // namespace

std::vector<OperationTiming> execute(const models::Resources& resources, const std::vector<Part>& parts,
                                     NetworkBackend& network, const ExecutorOptions& options) {
  return Executor(resources, parts, network, options).run();
}

}  // namespace fabricast::engine
