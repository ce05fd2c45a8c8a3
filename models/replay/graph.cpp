// SPDX-License-Identifier: Apache-2.0
#include "replay/graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <queue>
#include <tuple>

namespace fabricast::models::replay {

namespace {

class Matcher {
 public:
  explicit Matcher(const Trace& trace) : trace_(trace) {
    for (const auto& ops : trace.ranks) event_of_.emplace_back(ops.size(), -1);
  }

  Result<Order> order() {
    match_messages();
    match_collectives();
    for (int rank = 0; rank < num_ranks(); ++rank) {
      for (std::size_t i = 0; i < ops(rank).size(); ++i) {
        if (ops(rank)[i].kind == TraceOpKind::compute) add({{rank, static_cast<int>(i)}});
      }
    }
    if (!faults_.empty()) return tl::unexpected(faults_);
    return sorted();
  }

 private:
  [[nodiscard]] int num_ranks() const { return static_cast<int>(trace_.ranks.size()); }
  [[nodiscard]] const std::vector<TraceOp>& ops(int rank) const { return trace_.ranks[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const TraceOp& op(const OpRef& ref) const { return ops(ref.rank)[static_cast<std::size_t>(ref.op)]; }
  int& event(const OpRef& ref) {
    return event_of_[static_cast<std::size_t>(ref.rank)][static_cast<std::size_t>(ref.op)];
  }

  void add(std::vector<OpRef> members) {
    for (const auto& one : members) event(one) = static_cast<int>(events_.size());
    events_.push_back({std::move(members)});
  }

  void fail(const OpRef& ref, const std::string& what, const std::string& fix) {
    constexpr std::size_t k_most_faults = 20;
    if (faults_.size() < k_most_faults)
      faults_.push_back(
          make_error_at(op(ref).place, fmt::format("rank {}: '{}' {}", ref.rank, op(ref).name, what), fix));
  }

  void match_messages() {
    std::map<std::tuple<int, int, std::int64_t>, std::pair<std::vector<OpRef>, std::vector<OpRef>>> lines;
    for (int rank = 0; rank < num_ranks(); ++rank) {
      for (std::size_t i = 0; i < ops(rank).size(); ++i) {
        const auto& one = ops(rank)[i];
        const OpRef ref{rank, static_cast<int>(i)};
        if (one.kind != TraceOpKind::send && one.kind != TraceOpKind::receive) continue;
        if (one.peer >= num_ranks()) {
          fail(ref, fmt::format("names rank {}, the trace has {}", one.peer, num_ranks()),
               "give the traces of all ranks");
        } else if (one.kind == TraceOpKind::send) {
          lines[{rank, one.peer, one.tag}].first.push_back(ref);
        } else {
          lines[{one.peer, rank, one.tag}].second.push_back(ref);
        }
      }
    }
    for (const auto& [line, both] : lines) {
      const auto& [sends, receives] = both;
      const auto [from, to, tag] = line;
      for (std::size_t i = 0; i < std::max(sends.size(), receives.size()); ++i) {
        if (i >= receives.size())
          fail(sends[i], fmt::format("sends to rank {} with tag {}, which never receives it", to, tag),
               "add the receive");
        else if (i >= sends.size())
          fail(receives[i], fmt::format("waits for rank {} with tag {}, which never sends it", from, tag),
               "add the send");
        else if (op(sends[i]).size != op(receives[i]).size)
          fail(receives[i],
               fmt::format("receives {} of the {} that rank {} sends", to_string(op(receives[i]).size),
                           to_string(op(sends[i]).size), from),
               "both sides count the same bytes");
        else
          add({sends[i], receives[i]});
      }
    }
  }

  void match_collectives() {
    std::map<std::string, std::map<int, std::vector<OpRef>>> groups;
    for (int rank = 0; rank < num_ranks(); ++rank) {
      for (std::size_t i = 0; i < ops(rank).size(); ++i) {
        if (ops(rank)[i].kind == TraceOpKind::collective)
          groups[ops(rank)[i].group][rank].push_back({rank, static_cast<int>(i)});
      }
    }
    for (const auto& [name, ranks] : groups) {
      const auto& first = ranks.begin()->second;
      for (const auto& [rank, own] : ranks) {
        if (own.size() != first.size())
          fail(own.back(),
               fmt::format("ends {} collectives of group '{}', rank {} has {}", own.size(), name, ranks.begin()->first,
                           first.size()),
               "every rank of a group takes part in all its collectives");
      }
      for (std::size_t i = 0; i < first.size() && faults_.empty(); ++i) {
        std::vector<OpRef> members;
        for (const auto& [rank, own] : ranks) {
          members.push_back(own[i]);
          if (op(own[i]).collective != op(first[i]).collective || op(own[i]).size != op(first[i]).size)
            fail(own[i],
                 fmt::format("is number {} of group '{}', where rank {} has '{}' of {}", i, name, ranks.begin()->first,
                             op(first[i]).name, to_string(op(first[i]).size)),
                 "collectives of a group come in one order on all its ranks");
        }
        add(std::move(members));
      }
    }
  }

  /// Kahn's algorithm; of what is free, the earliest in the traces first.
  Result<Order> sorted() {
    std::vector<int> waits(events_.size(), 0);
    std::vector<std::vector<int>> next(events_.size());
    const auto edge = [&](int from, int to) {
      if (from == to) return;
      next[static_cast<std::size_t>(from)].push_back(to);
      ++waits[static_cast<std::size_t>(to)];
    };
    for (std::size_t e = 0; e < events_.size(); ++e) {
      for (const auto& member : events_[e].members) {
        for (const auto* list : {&op(member).after, &op(member).with}) {
          for (const int other : *list) {
            if (event({member.rank, other}) == static_cast<int>(e) && list == &op(member).after) return cycle(member);
            edge(event({member.rank, other}), static_cast<int>(e));
          }
        }
      }
    }
    const auto first_op = [&](int e) { return std::pair(events_[static_cast<std::size_t>(e)].members.front().op, e); };
    std::priority_queue<std::pair<int, int>, std::vector<std::pair<int, int>>, std::greater<>> free;
    for (std::size_t e = 0; e < events_.size(); ++e) {
      if (waits[e] == 0) free.push(first_op(static_cast<int>(e)));
    }
    Order out;
    while (!free.empty()) {
      const auto e = static_cast<std::size_t>(free.top().second);
      free.pop();
      out.events.push_back(events_[e]);
      for (const int other : next[e]) {
        if (--waits[static_cast<std::size_t>(other)] == 0) free.push(first_op(other));
      }
    }
    if (out.events.size() == events_.size()) return out;
    for (std::size_t e = 0; e < events_.size(); ++e) {
      if (waits[e] > 0) return cycle(events_[e].members.front());
    }
    return out;
  }

  [[nodiscard]] tl::unexpected<Diagnostics> cycle(const OpRef& ref) {
    fail(ref, "waits for itself, by way of what it waits for", "take one dependency of the circle out");
    return tl::unexpected(faults_);
  }

  const Trace& trace_;
  std::vector<std::vector<int>> event_of_;
  std::vector<Event> events_;
  Diagnostics faults_;
};

}  // namespace

Result<Order> order_of(const Trace& trace) { return Matcher(trace).order(); }

}  // namespace fabricast::models::replay
