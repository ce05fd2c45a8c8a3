// SPDX-License-Identifier: Apache-2.0
#include "engine/stream_terms.hpp"

#include <algorithm>

#include "engine/causes.hpp"

namespace fabricast::engine {

namespace {

using models::Node;
using models::NodeKind;

constexpr std::int64_t k_rounding = 1'000'000;  ///< of a compute node's work: one part in this
constexpr const char* k_slowdown = "training.exchange_slowdown";

class StreamReader {
 public:
  StreamReader(const models::OperationPlan& plan, const OperationTiming& timing, const ParameterSet& parameters)
      : plan_(plan),
        timing_(timing),
        parameters_(parameters),
        causes_(waited_for(plan.program, timing, plan.watched_stream)) {}

  std::vector<Term> read() {
    for (const auto& term : plan_.before) add(term, 1);
    const auto& nodes = plan_.program.nodes;
    for (std::size_t n = 0; n < nodes.size(); ++n) {
      if (nodes[n].stream == plan_.watched_stream) read_node(n);
    }
    const auto whole = timing_.total - models::sum(plan_.before);
    if (whole > done_) wait(last_to_end(timing_), done_, whole);
    return std::move(terms_);
  }

 private:
  void add(const Term& term, std::int64_t times) {
    if (term.time.ps == 0) return;
    for (auto& known : terms_) {
      if (known.name != term.name || known.parameter != term.parameter) continue;
      known.time += times * term.time;
      return;
    }
    terms_.push_back(term);
    terms_.back().time = times * term.time;
  }

  [[nodiscard]] std::string source_of(const std::string& parameter) const {
    const auto* found = parameters_.find(parameter);
    return found == nullptr ? "" : found->source;
  }

  void read_node(std::size_t n) {
    const auto& node = plan_.program.nodes[n];
    const auto& one = timing_.nodes[n];
    if (one.start > done_) wait(causes_[n], done_, one.start);
    if (node.kind == NodeKind::flow) {
      wait(static_cast<int>(n), one.start, one.end);
    } else {
      for (const auto& term : node.fixed) add(term, one.repeat);
      add({node.work_name, node.work, node.work_parameter,
           node.rules.empty() ? source_of(node.work_parameter) : node.rules},
          one.repeat);
      // The clock's rounding is no slowdown.
      if (one.slowed.ps > node.work.ps / k_rounding)
        add({"compute beside exchanges", one.slowed, k_slowdown, source_of(k_slowdown)}, 1);
    }
    done_ = one.end;
  }

  /// Adds what the plan's named wait holds of a time that another device's compute took, and returns it.
  Duration named_wait(const Node& node, Duration time) {
    const auto found = std::ranges::find(node.fixed, plan_.named_wait, &Term::name);
    if (found == node.fixed.end()) return {};
    auto term = *found;
    term.time = from_seconds(time.seconds() * term.time.seconds() / (models::sum(node.fixed) + node.work).seconds());
    add(term, 1);
    return term.time;
  }

  /// The time from `from` to `to` in which `cause` was waited for, or what it waited for itself. Work of other devices
  /// is a bubble unless somebody's rules name it; what flows is called by its label.
  void wait(int cause, Duration from, Duration to) {
    while (cause >= 0 && to > from) {
      const auto& node = plan_.program.nodes[static_cast<std::size_t>(cause)];
      const auto start = std::clamp(timing_.nodes[static_cast<std::size_t>(cause)].start, from, to);
      const bool is_other = node.kind == NodeKind::compute;
      const bool is_named = !is_other || !node.rules.empty();
      auto rest = to - start;
      if (is_other) rest = rest - named_wait(node, rest);
      add({is_named ? node.label : "pipeline bubble", rest,
           is_other ? (is_named ? node.work_parameter : "workload.parallel") : "topology",
           !node.rules.empty() ? node.rules
           : is_other          ? "the scenario"
                               : "planned by NCCL's rules"},
          1);
      to = start;
      cause = causes_[static_cast<std::size_t>(cause)];
    }
    if (to > from) add({"waiting", to - from, "", ""}, 1);
  }

  const models::OperationPlan& plan_;
  const OperationTiming& timing_;
  const ParameterSet& parameters_;
  std::vector<int> causes_;
  std::vector<Term> terms_;
  Duration done_;
};

}  // namespace

std::vector<Term> stream_terms(const models::OperationPlan& plan, const OperationTiming& timing,
                               const ParameterSet& parameters) {
  return StreamReader(plan, timing, parameters).read();
}

std::vector<Span> timeline(const models::OperationPlan& plan, const OperationTiming& timing) {
  std::vector<Span> spans;
  const auto before = models::sum(plan.before);
  const auto& nodes = plan.program.nodes;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    const auto& one = timing.nodes[n];
    if (nodes[n].stream < 0 || one.end <= one.start || one.start.ps < 0) continue;
    const auto& stream = plan.program.streams[static_cast<std::size_t>(nodes[n].stream)];
    spans.push_back({stream.name, nodes[n].label, before + one.start, one.end - one.start});
  }
  if (spans.size() > k_longest_timeline) {
    std::ranges::stable_sort(spans, std::ranges::greater{}, &Span::time);
    spans.resize(k_longest_timeline);
  }
  std::ranges::stable_sort(spans, {}, &Span::start);
  return spans;
}

}  // namespace fabricast::engine
