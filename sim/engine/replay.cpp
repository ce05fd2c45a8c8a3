// SPDX-License-Identifier: Apache-2.0
#include "fabricast/replay.hpp"

#include <algorithm>

#include "engine/fluid.hpp"
#include "fabricast/models/replay.hpp"

namespace fabricast {

namespace {

using Spans = std::vector<std::pair<std::int64_t, std::int64_t>>;

/// Spans without overlap, in order.
Spans united(Spans spans) {
  std::sort(spans.begin(), spans.end());
  Spans out;
  for (const auto& one : spans) {
    if (!out.empty() && one.first <= out.back().second)
      out.back().second = std::max(out.back().second, one.second);
    else
      out.push_back(one);
  }
  return out;
}

std::int64_t length(const Spans& spans) {
  std::int64_t out = 0;
  for (const auto& [begin, end] : spans) out += end - begin;
  return out;
}

/// Of `spans`, what no span of `others` covers; both united.
std::int64_t uncovered(const Spans& spans, const Spans& others) {
  auto out = length(spans);
  std::size_t k = 0;
  for (const auto& [begin, end] : spans) {
    while (k < others.size() && others[k].second <= begin) ++k;
    for (auto i = k; i < others.size() && others[i].first < end; ++i)
      out -= std::min(end, others[i].second) - std::max(begin, others[i].first);
  }
  return out;
}

/// A collective may be several nodes: from the first that waits for its ranks to `last`.
RankReplay summary_of(const std::vector<TraceOp>& ops, const std::vector<int>& ends, const models::Program& program,
                      const engine::OperationTiming& timing) {
  RankReplay out;
  Spans computing, exchanging;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const auto node = static_cast<std::size_t>(ends[i]);
    const auto& one = timing.nodes[node];
    out.op_ends.push_back(one.end);
    out.end = std::max(out.end, one.end);
    if (ops[i].kind == TraceOpKind::compute) {
      out.compute_alone += ops[i].time;
      out.compute += one.end - one.start;
      if (ops[i].lane >= 0) computing.emplace_back(one.start.ps, one.end.ps);
      continue;
    }
    std::int64_t begin = one.start.ps;
    if (ops[i].kind == TraceOpKind::collective) {
      for (auto n = node; n > 0 && program.nodes[n - 1].label == program.nodes[node].label; --n)
        begin = std::min(begin, timing.nodes[n - 1].start.ps);
    }
    exchanging.emplace_back(begin, one.end.ps);
  }
  const auto both = united(std::move(exchanging));
  out.exchange = Duration{length(both)};
  out.exposed = Duration{uncovered(both, united(std::move(computing)))};
  return out;
}

}  // namespace

Result<ReplayReport> replay(const Topology& topology, const ParameterSet& parameters, const Trace& trace,
                            const ReplayOptions& options) try {
  models::Resources resources(topology);
  models::set_payload_shares(resources, parameters);
  const models::PlanContext context{topology, options.software, parameters, resources, 1, false, false};
  auto plan = models::plan_replay(context, trace, options.ranks_per_host);
  if (!plan) return tl::unexpected(plan.error());
  models::OperationPlan operation;
  operation.program = std::move(plan->program);
  const auto timing = engine::run(resources, {{&operation, {}}}).front();
  ReplayReport out;
  out.format = trace.format;
  out.time = timing.total;
  for (std::size_t rank = 0; rank < trace.ranks.size(); ++rank) {
    out.ranks.push_back(summary_of(trace.ranks[rank], plan->ends[rank], operation.program, timing));
    out.ranks.back().device = plan->devices[rank];
    out.num_ops += trace.ranks[rank].size();
  }
  return out;
} catch (const models::NoRoute& fault) {
  return tl::unexpected(Diagnostics{make_error(fault.what(), "connect all hosts with ranks by switches")});
}

}  // namespace fabricast
