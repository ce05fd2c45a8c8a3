// SPDX-License-Identifier: Apache-2.0
#include "mpi/point_to_point.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/parameter_name.hpp"
#include "mpi/core_copies.hpp"
#include "mpi/end_points.hpp"
#include "mpi/verbs.hpp"
#include "paths/guest.hpp"

namespace fabricast::models::mpi {

namespace {

constexpr double k_window_of_logs = 64;  ///< messages, OSU's default

class PointToPointPlanner : public Planner {
 public:
  PointToPointPlanner(const PlanContext& context, const Workload& workload, std::vector<Pair> pairs)
      : transfers_(context, make_profile(context, workload)), workload_(workload), pairs_(std::move(pairs)) {
    if (is_bandwidth_test(workload.benchmark)) {
      transfers_.assume_window();
    } else {
      transfers_.assume_blocking();
    }
    if (is_read()) transfers_.assume_reads();
    transfers_.assume_kept_buffers();
  }

  [[nodiscard]] OperationPlan plan(Bytes size) const override {
    if (is_bandwidth_test(workload_.benchmark)) return bandwidth_plan(size);
    return latency_plan(size);
  }
  [[nodiscard]] int num_ranks() const override { return 2 * static_cast<int>(pairs_.size()); }
  [[nodiscard]] int num_hosts() const override {
    std::set<int> hosts;
    for (const auto& [first, second] : pairs_) hosts.insert({first.host, second.host});
    return static_cast<int>(hosts.size());
  }
  [[nodiscard]] std::vector<std::string> devices() const override {
    std::vector<std::string> names;
    for (const auto& pair : pairs_) {
      names.push_back(name_of(transfers_.context().topology, pair.first));
      names.push_back(name_of(transfers_.context().topology, pair.second));
    }
    return names;
  }
  [[nodiscard]] std::vector<GivenUsed> settings() const override;
  [[nodiscard]] std::vector<std::string> assumptions() const override;

 private:
  [[nodiscard]] bool is_read() const {
    return workload_.benchmark == Benchmark::ib_read_lat || workload_.benchmark == Benchmark::ib_read_bw;
  }
  [[nodiscard]] bool are_ends_alike() const;
  [[nodiscard]] OperationPlan latency_plan(Bytes size) const;
  [[nodiscard]] OperationPlan bandwidth_plan(Bytes size) const;
  void add_direction(OperationPlan& plan, Bytes size, bool is_back) const;
  /// What keeps cores apart from the next message, and the parameter that says so.
  struct Spacing {
    double seconds = 0;  ///< per message of all pairs
    std::string name = "posting messages";
    std::string parameter;
  };
  [[nodiscard]] Spacing spacing_of(const std::vector<Message>& messages, bool is_both_ways) const;
  [[nodiscard]] double once_per_window() const;
  void set_floor(OperationPlan& plan, const Spacing& spacing, const std::vector<Flow>& flows) const;

  Transfers transfers_;
  Workload workload_;
  std::vector<Pair> pairs_;
};

void PointToPointPlanner::add_direction(OperationPlan& plan, Bytes size, bool is_back) const {
  Node node;
  node.label = is_back ? "reply" : "message";
  for (std::size_t p = 0; p < pairs_.size(); ++p) {
    const auto& from = is_back ? pairs_[p].second : pairs_[p].first;
    const auto& to = is_back ? pairs_[p].first : pairs_[p].second;
    auto message = transfers_.message(from, to, size, p);
    plan.protocol = message.protocol;
    message.flow.latency = sum(message.terms);
    message.flow.latency_terms = std::move(message.terms);
    node.flows.push_back(std::move(message.flow));
  }
  plan.program.then(std::move(node));
}

/// In one host, or in the same place of equal hosts: one direction tells of the other.
bool PointToPointPlanner::are_ends_alike() const {
  const auto& topology = transfers_.context().topology;
  return std::ranges::all_of(pairs_, [&](const Pair& pair) {
    const auto& [first, second] = pair;
    const bool is_same_place = topology.host_shape(first.host) == topology.host_shape(second.host) &&
                               topology.ordinal(first.device()) == topology.ordinal(second.device());
    return first.is_device() == second.is_device() && (first.host == second.host || is_same_place);
  });
}

OperationPlan PointToPointPlanner::latency_plan(Bytes size) const {
  OperationPlan plan;
  plan.size = size;
  plan.algorithm = "ping-pong";
  if (is_read()) {
    // The request is a control message; perftest prints the full operation.
    plan.algorithm = "read";
    plan.before.push_back({"read request", transfers_.control_latency(pairs_[0].first, pairs_[0].second), "verbs",
                           "a message without payload"});
    add_direction(plan, size, true);
    return plan;
  }
  add_direction(plan, size, false);
  if (!are_ends_alike()) {
    add_direction(plan, size, true);  // the two directions differ: the benchmark prints their mean
    plan.operations = 2;
  }
  return plan;
}

OperationPlan PointToPointPlanner::bandwidth_plan(Bytes size) const {
  OperationPlan plan;
  plan.size = size;
  const bool is_perftest = transfers_.profile().posts_verbs;
  const bool is_both_ways = workload_.is_bidirectional || workload_.benchmark == Benchmark::osu_bibw;
  // perftest keeps its queue full for thousands of messages: latency vanishes in the mean.
  const std::int64_t window = is_perftest ? 5000 : workload_.window;
  plan.algorithm = fmt::format("window {}", workload_.window);
  Node node;
  node.label = "window";
  std::vector<Message> messages;
  std::vector<std::pair<int, int>> ends;
  for (std::size_t p = 0; p < pairs_.size(); ++p) {
    for (int direction = 0; direction < (is_both_ways ? 2 : 1); ++direction) {
      const bool is_back = is_read() ? direction == 0 : direction == 1;
      const auto& from = is_back ? pairs_[p].second : pairs_[p].first;
      const auto& to = is_back ? pairs_[p].first : pairs_[p].second;
      messages.push_back(transfers_.message(from, to, size, p));
      const int first = 2 * static_cast<int>(p);
      ends.emplace_back(first + (is_back ? 1 : 0), first + (is_back ? 0 : 1));
      transfers_.slow_after_burst(messages.back(), from, to, window);
    }
  }
  share_copies_inside(ends, messages);
  const auto spacing = spacing_of(messages, is_both_ways);
  for (auto& message : messages) {
    plan.protocol = message.protocol;
    transfers_.repeat(message, window, workload_.queue_pairs);
    message.flow.latency = sum(message.terms);
    message.flow.latency_terms = std::move(message.terms);
    node.flows.push_back(std::move(message.flow));
  }
  if (!is_perftest && !is_both_ways) {
    Duration answer;
    for (const auto& [first, second] : pairs_) answer = std::max(answer, transfers_.control_latency(second, first));
    node.fixed.push_back({"acknowledgement of the window", answer, "mpi", "a message without payload"});
  }
  plan.operations = window * static_cast<std::int64_t>(node.flows.size());
  set_floor(plan, spacing, node.flows);
  plan.program.then(std::move(node));
  return plan;
}

/// Logs of windows that end with an answer taught the gaps between hosts: each has a part of the first message's
/// latency and of the answer's, four for the two messages of an exchange. A window both ways has one: three less, each
/// the software and the adapters of a message.
double PointToPointPlanner::once_per_window() const {
  if (num_hosts() == 1 || transfers_.profile().posts_verbs) return 0;
  double latency = transfers_.profile().overhead.seconds();
  for (const auto* end : {&pairs_[0].first, &pairs_[0].second})
    latency += 0.5 * device_value(transfers_.context(), end->hcas.front(), "latency");
  return 3 * latency / k_window_of_logs;
}

/// One way a sender is as slow as the slower of both cores, and pairs post side by side. Both ways each core posts and
/// takes in; of one-sided verbs it only posts. One thread of perftest posts to all queue pairs in turn.
PointToPointPlanner::Spacing PointToPointPlanner::spacing_of(const std::vector<Message>& messages,
                                                             bool is_both_ways) const {
  Spacing out;
  const auto slowest = std::ranges::max_element(messages, {}, &Message::gap);
  out.parameter = transfers_.gap_parameter_of(*slowest);
  const double gap = slowest->gap.seconds();
  out.seconds = gap / static_cast<double>(messages.size());
  const bool is_one_sided = transfers_.profile().posts_verbs && workload_.benchmark != Benchmark::ib_send_bw;
  if (!is_both_ways || is_one_sided) return out;
  double exchange = 0;  // of the busiest core: a message posted, one taken in
  for (std::size_t i = 0; i + 1 < messages.size(); i += 2) {
    const auto& there = messages[i];
    const auto& back = messages[i + 1];
    exchange = std::max({exchange, (there.of_sender() + back.of_receiver()).seconds(),
                         (back.of_sender() + there.of_receiver()).seconds()});
  }
  out.name = "posting messages and taking in others";
  out.seconds = std::max(gap, exchange - once_per_window()) / static_cast<double>(messages.size());
  return out;
}

/// How fast messages can follow each other, whatever their size: cores post and take in one after the other, an HCA
/// takes its message rate, and perftest's queue (tx depth) lets only so many be under way for one latency.
void PointToPointPlanner::set_floor(OperationPlan& plan, const Spacing& spacing, const std::vector<Flow>& flows) const {
  const auto& context = transfers_.context();
  const auto senders = static_cast<double>(flows.size());
  const auto& hcas = pairs_[0].first.hcas;
  const bool uses_adapter = num_hosts() > 1 || transfers_.profile().posts_verbs;
  const auto& poster = context.parameters.at(spacing.parameter);
  double seconds = spacing.seconds;
  plan.floor_term = {spacing.name, {}, poster.name, poster.source};
  const double rate = uses_adapter && !hcas.empty() ? device_value_or(context, hcas.front(), "message_rate", 0) : 0;
  // Senders of one host take turns on its HCAs.
  const auto of_host = std::max<std::size_t>(1, hcas.size());
  std::map<int, std::size_t> by_host;
  for (const auto& pair : pairs_) ++by_host[pair.first.host];
  double used_hcas = 0;
  for (const auto& [host, here] : by_host)
    used_hcas += static_cast<double>(std::min(here * flows.size() / pairs_.size(), of_host));
  if (rate > 0 && 1 / (rate * used_hcas) > seconds) {
    seconds = 1 / (rate * used_hcas);
    plan.floor_term = {
        "message rate of the HCAs", {}, context.topology.device(hcas.front()).type + ".message_rate", ""};
  }
  if (transfers_.profile().posts_verbs) {
    const int of_one = is_read() ? std::min(workload_.window, k_reads_under_way) : workload_.window;
    const double in_flight = senders * workload_.queue_pairs * of_one;
    const double under_way = 2 * flows.front().latency.seconds() / in_flight;
    if (under_way > seconds) {
      seconds = under_way;
      plan.floor_term = {"round trip over the messages in flight",
                         {},
                         is_read() ? "outstanding reads" : "tx depth",
                         is_read() ? "perftest -o, 16 of a queue pair" : "perftest -t"};
    }
  }
  plan.floor = from_seconds(seconds);
}

std::vector<GivenUsed> PointToPointPlanner::settings() const {
  const auto& profile = transfers_.profile();
  const auto& software = transfers_.context().software;
  const auto& first = pairs_[0].first;
  auto settings = virtual_settings(transfers_.context(),
                                   first.is_device() ? std::vector<DeviceId>{first.gpu} : std::vector<DeviceId>{});
  if (profile.posts_verbs) return settings;  // the rest is of MPI libraries
  settings.push_back({"profile", software.mpi.empty() ? "default" : software.mpi, profile.name, profile.reason});
  settings.push_back({"eager limit", software.eager_limit ? to_string(*software.eager_limit) : "default",
                      to_string(profile.eager_limit), ""});
  if (pairs_[0].first.is_device() || pairs_[0].second.is_device()) {
    std::vector<EndPoint> ends;
    for (const auto& [one, other] : pairs_) ends.insert(ends.end(), {one, other});
    settings.push_back(transfers_.gpudirect_setting(num_hosts() > 1 ? ends : std::vector<EndPoint>{}));
  }
  return settings;
}

std::vector<std::string> PointToPointPlanner::assumptions() const {
  std::set<std::string> out;
  const auto& topology = transfers_.context().topology;
  const auto& end = pairs_[0].first;
  if (num_hosts() > 1 || transfers_.profile().posts_verbs)
    out.insert(fmt::format("rank 0 uses {} and sends with {}", name_of(topology, end),
                           topology.device(end.hcas.front()).name));
  if (transfers_.profile().posts_verbs && end.hcas.front() == pairs_[0].second.hcas.front())
    out.insert("client and server open the same adapter: messages turn round inside it, on no cable");
  if (auto why = why_untaught(transfers_.profile()); num_hosts() > 1 && !why.empty()) out.insert(std::move(why));
  out.insert("no other traffic on the cluster beside the listed workloads");
  for (auto& line : virtual_assumptions(transfers_.context(), {end.host, pairs_[0].second.host}))
    out.insert(std::move(line));
  return {out.begin(), out.end()};
}

}  // namespace

Result<std::unique_ptr<Planner>> make_point_to_point_planner(const PlanContext& context, const Workload& workload) {
  const auto profile = make_profile(context, workload);
  auto pairs = make_pairs(context, workload, profile);
  if (!pairs) return tl::unexpected(pairs.error());
  if (auto faults = verbs_faults(context, workload, profile, pairs->front()); !faults.empty())
    return tl::unexpected(faults);
  return std::make_unique<PointToPointPlanner>(context, workload, std::move(*pairs));
}

}  // namespace fabricast::models::mpi
