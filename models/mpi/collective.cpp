// SPDX-License-Identifier: Apache-2.0
#include "mpi/collective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/parameter_name.hpp"
#include "mpi/acknowledgements.hpp"
#include "mpi/buffers.hpp"
#include "mpi/core_copies.hpp"
#include "mpi/decisions.hpp"
#include "mpi/decisions_hcoll.hpp"
#include "mpi/decisions_ucc.hpp"
#include "mpi/device_copies.hpp"
#include "mpi/end_points.hpp"
#include "mpi/host_sums.hpp"
#include "mpi/lockstep.hpp"
#include "mpi/rank_clocks.hpp"
#include "mpi/ranks_memory.hpp"
#include "mpi/schedule.hpp"
#include "mpi/shown_protocol.hpp"
#include "mpi/staged_collective.hpp"
#include "mpi/ucx_connections.hpp"
#include "paths/guest.hpp"

namespace fabricast::models::mpi {

namespace {

std::optional<CollectiveAlgorithm> algorithm_from_name(Benchmark benchmark, const std::string& name) {
  for (const auto algorithm : algorithms_for(benchmark)) {
    if (to_string(algorithm) == name) return algorithm;
  }
  return std::nullopt;
}

class CollectivePlanner : public Planner {
 public:
  CollectivePlanner(const PlanContext& context, const Workload& workload, std::vector<EndPoint> ranks, int alike = 1,
                    bool is_in_place = false)
      : transfers_(context, make_profile(context, workload)),
        posted_(transfers_),
        workload_(workload),
        ranks_(std::move(ranks)),
        alike_(alike),
        is_in_place_(is_in_place) {
    transfers_.assume_blocking();
    posted_.assume_posted();
    for (const auto& rank : ranks_) hosts_.push_back(context.topology.guest_of(rank.user()));
    num_hosts_ = static_cast<int>(std::set<int>(hosts_.begin(), hosts_.end()).size());
    library_ = library_of(transfers_.profile().implementation, context.software);
    is_staged_ = reduces_device_buffers() && library_ != Library::ucc;
    if (is_staged_) {
      for (auto& rank : ranks_) rank = rank.in_host_memory();
    }
    memory_.emplace(transfers_, ranks_, alike_);
    connections_.emplace(transfers_.context(), transfers_.profile(), ranks_.front(), num_ranks());
  }

  [[nodiscard]] OperationPlan plan(Bytes size) const override {
    OperationPlan plan;
    plan.size = size;
    const Collective asked{.benchmark = workload_.benchmark,
                           .num_ranks = num_ranks(),
                           .size = size,
                           .root = workload_.root,
                           .is_in_place = is_in_place_,
                           .is_in_gpu_memory = ranks_.front().is_device(),
                           .hosts = hosts_};
    const auto collective = choose(library_, asked, algorithm_from_name(workload_.benchmark, workload_.algorithm));
    const auto buffers = buffers_of(library_, collective, workload_.statistic);
    plan.algorithm = std::string(to_string(collective.algorithm));
    // Of a benchmark, with a barrier between calls; a program's in place are beside its computation.
    const bool is_entered_apart = !is_in_place_ && library_ != Library::cray_mpich && leaves_apart(collective);
    const bool is_left_apart = ends_apart(collective) && workload_.statistic == Statistic::mean;
    if (num_hosts_ > 1 && !is_entered_apart)
      plan.before.push_back(
          parameter_term(transfers_.context().parameters, "collective entry", "mpi.collective.overhead"_key));
    if (is_staged_ && size.value > 0)
      add_device_staging(transfers_.context(), ranks_.front(), device_copies_of(asked, workload_.statistic), plan);
    const bool is_in_host_memory = !ranks_.front().is_device();
    if (!is_in_place_ && has_own_part() && size.value > 0) {
      if (is_in_host_memory) {
        memory_->add_own_part(plan, size, buffers, has_root(workload_.benchmark));
      } else {
        add_own_copy(transfers_.context(), ranks_.front(), size, plan);
      }
    }
    memory_->add_temporaries(plan, buffers);
    const auto rounds = make_schedule(collective, [this](const auto& all) { return are_all_rendezvous(all); });
    std::optional<Acknowledgements> waits;
    if (transfers_.profile().is_acknowledged) waits.emplace(rounds, num_ranks());
    const HostSums sums(transfers_.context(), ranks_.front().memory, working_set(buffers));
    ShownProtocol shown;
    std::vector<ClockRound> clocks;
    for (const auto& round : rounds) {
      auto planned = to_node(round, sums, shown, waits ? &*waits : nullptr, is_entered_apart || is_left_apart);
      clocks.push_back(std::move(planned.clocks));
      if (is_in_host_memory && buffers.own > 0)
        memory_->add_traffic(planned.node, round, planned.clocks.reducing, planned.copies, buffers);
      plan.program.then(std::move(planned.node));
    }
    if (is_entered_apart) {
      plan.printed_share = printed_share(clocks, barrier_clocks(), num_ranks(), workload_.statistic);
    } else if (is_left_apart) {
      RankClocks ends(num_ranks());
      ends.pass(clocks);
      plan.printed_share = ends.mean_share();
    }
    plan.protocol = shown.name;
    return plan;
  }
  [[nodiscard]] int num_ranks() const override { return static_cast<int>(ranks_.size()); }
  [[nodiscard]] int num_hosts() const override { return num_hosts_; }
  [[nodiscard]] std::vector<std::string> devices() const override {
    std::vector<std::string> names;
    for (std::size_t r = 0; r < ranks_.size() && r < 16; ++r)
      names.push_back(name_of(transfers_.context().topology, ranks_[r]));
    if (ranks_.size() > 16) names.emplace_back("...");
    return names;
  }
  [[nodiscard]] std::vector<GivenUsed> settings() const override {
    auto out = virtual_settings(transfers_.context(),
                                ranks_[0].is_device() ? std::vector<DeviceId>{ranks_[0].gpu} : std::vector<DeviceId>{});
    const auto& asked = transfers_.context().software.mpi;
    out.push_back(
        {"profile", asked.empty() ? "default" : asked, transfers_.profile().name, transfers_.profile().reason});
    out.push_back({"algorithm", workload_.algorithm,
                   workload_.algorithm == "auto" ? "per size, see the table" : workload_.algorithm,
                   workload_.algorithm == "auto" ? "the library's decision rules" : "forced"});
    if (num_hosts_ > 1 && ranks_[0].is_device()) out.push_back(transfers_.gpudirect_setting(ranks_));
    if (library_ == Library::ucc)
      out.push_back({"mpi_collectives", "ucc", "ucc", "the decision rules are those of its transport over UCX"});
    if (library_ == Library::hcoll) out.push_back(hcoll_setting());
    return out;
  }
  [[nodiscard]] std::vector<std::string> assumptions() const override {
    std::vector<std::string> out{"no other traffic on the cluster beside the listed workloads",
                                 "rounds of a collective start together on all ranks"};
    if (transfers_.profile().implementation == "intel-mpi")
      out.emplace_back("Intel MPI's choices of algorithms are those of 4.1.3 on one cluster; no log was compared");
    if (auto why = why_untaught(transfers_.profile()); num_hosts_ > 1 && !why.empty()) out.push_back(std::move(why));
    if (workload_.statistic == Statistic::max)
      out.emplace_back("times are the slowest rank's; OSU prints the mean over ranks");
    if (is_staged_) out.emplace_back("reductions of device buffers run on the host, staged through pageable memory");
    if (library_ == Library::hcoll) out.emplace_back(k_assumed_of_hcoll);
    if (library_ == Library::ucc) {
      out.emplace_back("UCC uses its transport over UCX: neither NCCL nor the GPUs' own of it");
      if (reduces_device_buffers()) out.emplace_back("a kernel of the GPU combines what a round brings");
    }
    for (auto& line : virtual_assumptions(transfers_.context(), {ranks_.front().host, ranks_.back().host}))
      out.push_back(std::move(line));
    std::sort(out.begin(), out.end());
    return out;
  }

 private:
  [[nodiscard]] bool reduces_device_buffers() const {
    return is_reduction(workload_.benchmark) && !ranks_.empty() && ranks_[0].is_device();
  }

  /// Of an all-gather or all-to-all each rank's own part goes from one of its buffers to the other, of a gather or
  /// scatter the root's.
  [[nodiscard]] bool has_own_part() const {
    return is_of_blocks(workload_.benchmark) || workload_.benchmark == Benchmark::osu_alltoall;
  }

  [[nodiscard]] double transfer_seconds(const Message& message) const {
    return message.flow.bytes > 0 ? message.flow.bytes / rate_alone(transfers_.context().resources, message.flow) : 0;
  }

  static std::vector<std::pair<int, int>> ends_of(const schedules::Round& round) {
    std::vector<std::pair<int, int>> ends;
    for (const auto& step : round.steps) ends.emplace_back(step.from, step.to);
    return ends;
  }

  /// The period of a pipeline of segments. A rank sends a segment to all its children before it goes on to the next: a
  /// rendezvous keeps it until the receiver's answer is back, of an eager message only what its core does counts.
  void set_periods(const schedules::Round& round, std::vector<Message>& messages) const {
    std::vector<double> work(ranks_.size(), 0);
    auto read = reads_in_turn(ends_of(round), messages);
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const auto& [from, to, bytes] = round.steps[i];
      work[static_cast<std::size_t>(from)] += (messages[i].posting() + messages[i].sender_copies).seconds();
      work[static_cast<std::size_t>(to)] += (messages[i].gap + messages[i].receiver_copies).seconds();
    }
    for (std::size_t i = 0; i < messages.size(); ++i) {
      auto& message = messages[i];
      const auto from = static_cast<std::size_t>(round.steps[i].from);
      const auto to = static_cast<std::size_t>(round.steps[i].to);
      if (message.is_rendezvous) {
        message.terms.push_back({"receiver's answer to the sender",
                                 transfers_.control_latency(ranks_[to], ranks_[from]), "",
                                 "the send of a segment is complete before the next one is sent"});
      } else {
        message.terms.clear();
      }
      const double rest = std::max({work[from], work[to], read[round.steps[i].from]}) - transfer_seconds(message) -
                          sum(message.terms).seconds();
      if (rest > 0)
        message.terms.push_back({"segments posted, copied and handled", from_seconds(rest),
                                 transfers_.gap_parameter_of(message),
                                 "all messages that the rank's core posts, copies or receives"});
    }
  }

  [[nodiscard]] MessageTimes times_of(const Message& message, int others) const {
    const double whole = sum(message.terms).seconds() + transfer_seconds(message);
    const bool is_eager =
        message.protocol.starts_with("eager") || (message.is_copied_inside() && !message.is_rendezvous);
    MessageTimes times{.receiver = whole, .is_eager = is_eager};
    times.handling = std::max((message.gap + message.receiver_copies).seconds(), transfer_seconds(message));
    if (message.acknowledgement.ps > 0)
      times.sender = whole + message.acknowledgement.seconds();
    else
      times.sender = message.is_rendezvous
                         ? whole
                         : std::min(whole, std::max((message.posting() + message.sender_copies).seconds(),
                                                    connections_->spacing(message, others)));
    return times;
  }

  [[nodiscard]] bool are_all_rendezvous(const schedules::Rounds& rounds) const {
    return std::ranges::all_of(rounds, [&](const schedules::Round& round) {
      return std::ranges::all_of(round.steps, [&](const auto& step) { return message_of(round, step).is_rendezvous; });
    });
  }

  [[nodiscard]] Message message_of(const schedules::Round& round, const schedules::Step& step) const {
    const auto& transfers = round.is_posted ? posted_ : transfers_;
    // Nobody writes to what the root broadcasts, call after call.
    const bool is_kept = workload_.benchmark == Benchmark::osu_bcast && step.from == workload_.root;
    return transfers.message(ranks_[static_cast<std::size_t>(step.from)], ranks_[static_cast<std::size_t>(step.to)],
                             Bytes{range::whole(step.bytes)}, static_cast<std::uint64_t>(step.from), is_kept);
  }

  struct PlannedRound {
    Node node;
    std::map<int, Copies> copies;  ///< by rank
    ClockRound clocks;
  };

  /// A round as a node; `waits`, where blocking sends are acknowledged; `is_clocked`, where ranks end apart.
  [[nodiscard]] PlannedRound to_node(const schedules::Round& scheduled, const HostSums& sums, ShownProtocol& shown,
                                     const Acknowledgements* waits, bool is_clocked) const {
    PlannedRound out{.clocks = {.round = &scheduled}};
    auto& node = out.node;
    node.repeat = scheduled.repeat;
    if (scheduled.order == schedules::RoundOrder::ring) node.order = RepeatOrder::blocking;
    std::map<int, int> sent, arrived;
    std::set<int> senders, receivers;
    for (const auto& step : scheduled.steps) {
      senders.insert(step.from);
      receivers.insert(step.to);
    }
    const bool is_pipeline = scheduled.order == schedules::RoundOrder::pipeline;
    const bool is_folded =
        scheduled.order == schedules::RoundOrder::barrier && scheduled.steps.size() > k_most_messages;
    std::vector<Message> messages;
    messages.reserve(scheduled.steps.size());
    SharedTerms terms;  // of messages that are folded
    std::vector<double> alone;
    for (const auto& step : scheduled.steps) {
      messages.push_back(message_of(scheduled, step));
      alone.push_back(transfer_seconds(messages.back()));
      if (is_folded) terms.put(messages.back().terms);
    }
    if (is_pipeline) {
      set_periods(scheduled, messages);
    } else {
      out.copies = share_cores(transfers_, scheduled, messages);
      share_copies_inside(ends_of(scheduled), messages);
    }
    RoundFlows flows(is_folded);
    for (std::size_t i = 0; i < messages.size(); ++i) {
      const auto& step = scheduled.steps[i];
      auto& message = messages[i];
      if (is_folded) message.terms = terms.of(i);
      shown.see(message, hosts_[static_cast<std::size_t>(step.from)] != hosts_[static_cast<std::size_t>(step.to)]);
      const int others = sent[step.from]++;
      if (is_clocked) out.clocks.times.push_back(times_of(message, others));
      if (waits != nullptr) waits->add_wait(scheduled, step.from, receivers.contains(step.from), message);
      // A rank posts its messages of a round one after the other and handles as many that arrive, one that only
      // receives those that arrived before.
      const auto received = receivers.contains(step.from) ? others * message.gap : Duration{};
      const auto posted = (others * message.posting() + received).seconds();
      const auto before = senders.contains(step.to) ? 0 : arrived[step.to]++ * message.gap.seconds();
      // Meanwhile the core copies what was posted.
      const double copied = transfer_seconds(message) - alone[i];
      const auto handled = from_seconds(std::max(0.0, std::max(posted, before) - copied));
      if (auto of_peer = connections_->longer_wait(message, others, received, handled); of_peer && !is_pipeline)
        message.terms.push_back(std::move(*of_peer));
      else if (handled.ps > 0 && !is_pipeline)
        message.terms.push_back({"earlier messages of the round", handled, transfers_.gap_parameter_of(message),
                                 "each message posted or received by the rank's core"});
      // Of two cores that send to each other each looks after both messages: what one without data takes. Around a ring
      // nobody waits for a pair, and what hosts start apart by covers these waits.
      if (num_hosts_ == 1 && scheduled.order == schedules::RoundOrder::barrier && message.is_copied_inside() &&
          receivers.contains(step.from)) {
        const auto& sender = ranks_[static_cast<std::size_t>(step.from)];
        message.terms.push_back(transfers_.shared_memory_software(sender, true, Bytes{0}));
        message.terms.back().name = "the message of the other side";
      }
      message.flow.latency = sum(message.terms);
      message.flow.latency_terms = std::move(message.terms);
      flows.add(std::move(message.flow));
    }
    node.flows = flows.take();
    if (scheduled.order == schedules::RoundOrder::ring) share_latencies(node);
    auto& reducing = out.clocks.reducing;
    if (scheduled.reduced_bytes > 0 && reduces_device_buffers() && !is_staged_) {
      node.fixed = combining_kernel(transfers_.context(), ranks_.front(), scheduled.reduced_bytes);
      reducing = sum(node.fixed).seconds();
    } else if (scheduled.reduced_bytes > 0) {
      node.fixed.push_back(sums.of(scheduled.reduced_bytes, messages));
      reducing = node.fixed.back().time.seconds();
    }
    return out;
  }

  /// Of the barrier that benchmarks call between two calls.
  [[nodiscard]] const std::vector<ClockRound>& barrier_clocks() const {
    if (!barrier_clocks_.empty()) return barrier_clocks_;
    barrier_ = make_schedule(choose(
        library_, {.benchmark = Benchmark::osu_barrier, .num_ranks = num_ranks(), .hosts = hosts_}, std::nullopt));
    for (const auto& round : barrier_) {
      auto& one = barrier_clocks_.emplace_back(ClockRound{.round = &round});
      std::map<int, int> sent;
      for (const auto& step : round.steps) one.times.push_back(times_of(message_of(round, step), sent[step.from]++));
    }
    return barrier_clocks_;
  }

  Transfers transfers_;
  Transfers posted_;  ///< of sends that do not block
  Library library_ = Library::open_mpi_4_1;
  Workload workload_;
  std::vector<EndPoint> ranks_;
  std::vector<int> hosts_;  ///< [rank] its system: VMs of one host are hosts of their own to MPI
  std::optional<RanksMemory> memory_;
  std::optional<UcxConnections> connections_;
  mutable schedules::Rounds barrier_;
  mutable std::vector<ClockRound> barrier_clocks_;  ///< of `barrier_`
  int num_hosts_ = 0;
  int alike_;  ///< equal collectives per socket at the same time
  bool is_in_place_ = false;
  bool is_staged_ = false;
};

}  // namespace

Result<std::unique_ptr<Planner>> make_collective_planner(const PlanContext& context, const Workload& workload) {
  const auto profile = make_profile(context, workload);
  if (auto faults = faults_of_collectives(context.software, workload, profile.implementation); !faults.empty())
    return tl::unexpected(faults);
  auto ranks = make_ranks(context, workload, profile);
  if (!ranks) return tl::unexpected(ranks.error());
  if (workload.algorithm != "auto" && !algorithm_from_name(workload.benchmark, workload.algorithm)) {
    std::string known = "auto";
    for (const auto algorithm : algorithms_for(workload.benchmark)) known += fmt::format(", {}", to_string(algorithm));
    return tl::unexpected(Diagnostics{
        make_error_at(workload.location,
                      fmt::format("'{}' is not an algorithm of {}", workload.algorithm, to_string(workload.benchmark)),
                      "known: " + known)});
  }
  if (ranks->empty())
    return tl::unexpected(Diagnostics{make_error_at(
        workload.location, fmt::format("device buffers, topology '{}' has no GPU", context.topology.name()),
        "write `buffers: [host, host]`")});
  if (workload.root >= static_cast<int>(ranks->size())) {
    return tl::unexpected(Diagnostics{make_error_at(
        workload.location, fmt::format("root is rank {}, there are {} ranks", workload.root, ranks->size()),
        "ranks count from 0")});
  }
  const auto first = ranks->front();
  auto planner = std::make_unique<CollectivePlanner>(context, workload, *ranks);
  if (!first.is_device() || !may_copy_buffers_whole(profile, workload.benchmark)) return planner;
  auto on_host = workload;
  on_host.send_buffer = on_host.receive_buffer = BufferPlace::host;
  for (auto& rank : *ranks) rank = rank.in_host_memory();
  return make_staged_collective(context, profile, workload.benchmark, first, std::move(planner),
                                std::make_unique<CollectivePlanner>(context, on_host, std::move(*ranks)));
}

Result<std::unique_ptr<Planner>> make_collective_planner(const PlanContext& context, const Workload& workload,
                                                         const std::vector<DeviceId>& gpus, int alike) {
  const auto profile = make_profile(context, workload);
  if (auto faults = faults_of_collectives(context.software, workload, profile.implementation); !faults.empty())
    return tl::unexpected(faults);
  auto ranks = make_processes(context, workload, gpus, profile);
  if (!ranks) return tl::unexpected(ranks.error());
  return std::make_unique<CollectivePlanner>(context, workload, std::move(*ranks), alike, true);
}

}  // namespace fabricast::models::mpi
