// SPDX-License-Identifier: Apache-2.0
// The scheduler of one GPU, event by event.
//
// Best effort is a round robin over clients that have work. A slice starts when the switch towards its client starts
// and ends `slice` later, at the client's last kernel, or not at all while nobody else has work. With n clients of
// kernels K <= slice - switch_time and pauses shorter than the others' turns, the period is n (K + switch_time); longer
// kernels pay one switch per slice. Equal and fixed share hand out slots of `slice` in a fixed order, used or not.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/assert.hpp"
#include "fabricast/models/virtualization.hpp"
#include "sharing/split_mix.hpp"

namespace fabricast::models {

namespace {

constexpr std::int64_t k_warm_up = 20;        // operations of each client before counting
constexpr std::int64_t k_most_counted = 400;  // operations of each client to count
constexpr std::int64_t k_least_counted = 5;   // the same of kernels of very many slices
constexpr std::int64_t k_slices_wanted = 200'000;
constexpr std::int64_t k_most_turns = 4'000'000;  // bound on the length of a simulation
// The clock stops at a quarter of what it can count, and what is added to it at once is at most half of that.
constexpr std::int64_t k_last_ps = std::numeric_limits<std::int64_t>::max() / 4;
constexpr std::int64_t k_longest_ps = k_last_ps / 2;

struct ClientState {
  std::int64_t requested = 0;  ///< when the operation at hand was, or will be, asked for
  std::int64_t left = 0;       ///< GPU time it still needs
  bool is_begun = false;
  std::int64_t off_since = -1;  ///< taken off with work left at this time; -1 = not
  std::int64_t debt = 0;        ///< overrun to pay back
  std::int64_t completed = 0;
  // counted
  std::int64_t kernel_ps = 0, switch_ps = 0, switches = 0;
  std::int64_t counted = 0, first_completion = -1, last_completion = -1, service_ps = 0;
  std::int64_t longest_off = 0;
  std::vector<std::int64_t> waits;
};

class GpuSimulation {
 public:
  GpuSimulation(const TimeSlicing& scheduler, const std::vector<GpuClient>& clients)
      : scheduler_(scheduler), clients_(clients), states_(clients.size()), random_(clients.size()) {
    std::int64_t longest = 0;
    for (std::size_t i = 0; i < clients.size(); ++i) {
      states_[i].requested = clients[i].start.ps;
      states_[i].left = clients[i].kernel.ps;
      longest = std::max(longest, std::min(clients[i].kernel.ps, k_longest_ps));
      if ((clients[i].kernel + clients[i].pause) < (clients[marker_].kernel + clients[marker_].pause)) marker_ = i;
    }
    const auto slices = 1 + longest / (scheduler.slice - scheduler.switch_time).ps;
    counted_wanted_ = std::clamp(k_slices_wanted / slices, k_least_counted, k_most_counted);
  }

  GpuShares run() {
    if (!fits()) return past_range();
    for (; turns_ < k_most_turns && !is_finished(); ++turns_) {
      if (scheduler_.policy == SharePolicy::best_effort) {
        best_effort_turn();
      } else {
        slot();
      }
    }
    return now_ > k_last_ps ? past_range() : summary();
  }

 private:
  /// No sum of the clock and what is added to it at once overflows.
  [[nodiscard]] bool fits() const {
    const auto is_short = [](Duration time) { return time.ps <= k_longest_ps; };
    return is_short(scheduler_.slice) && is_short(scheduler_.switch_time) &&
           is_short(scheduler_.preemption_granularity) && std::ranges::all_of(clients_, [&](const GpuClient& client) {
             return is_short(client.start) && is_short(client.kernel) && is_short(client.pause);
           });
  }

  /// Shares of clients whose times do not fit.
  [[nodiscard]] GpuShares past_range() const {
    GpuShares out;
    for (const auto& client : clients_) {
      GpuClientShare one;
      one.name = client.name;
      one.period = one.service_time = {range::k_past_range};
      out.clients.push_back(std::move(one));
    }
    return out;
  }

  [[nodiscard]] bool has_work(std::size_t i) const { return states_[i].requested <= now_; }

  [[nodiscard]] bool is_finished() const {
    if (now_ > k_last_ps) return true;
    return is_counting_ &&
           std::all_of(states_.begin(), states_.end(),
                       [&](const ClientState& s) { return s.counted >= counted_wanted_; }) &&
           mark_ > from_;
  }

  /// The first client with work after the one that ran last; -1 when all wait for their hosts.
  [[nodiscard]] int next_with_work() const {
    const auto n = clients_.size();
    for (std::size_t step = 1; step <= n; ++step) {
      const auto i = (static_cast<std::size_t>(last_ + 1) + step - 1) % n;
      if (has_work(i)) return static_cast<int>(i);
    }
    return -1;
  }

  [[nodiscard]] std::int64_t next_request() const {
    std::int64_t earliest = states_[0].requested;
    for (const auto& state : states_) earliest = std::min(earliest, state.requested);
    return earliest;
  }

  /// Earliest request of anybody but `i`; now when there is one already.
  [[nodiscard]] std::int64_t next_request_beside(std::size_t i) const {
    std::int64_t earliest = std::numeric_limits<std::int64_t>::max();
    for (std::size_t k = 0; k < states_.size(); ++k) {
      if (k != i) earliest = std::min(earliest, std::max(now_, states_[k].requested));
    }
    return earliest;
  }

  void load(std::size_t i) {
    auto& state = states_[i];
    if (loaded_ != static_cast<int>(i)) {
      if (loaded_ >= 0) {
        now_ += scheduler_.switch_time.ps;
        state.switch_ps += scheduler_.switch_time.ps;
        ++state.switches;
      }
      loaded_ = static_cast<int>(i);
    }
    if (state.off_since >= 0) {
      state.longest_off = std::max(state.longest_off, now_ - state.off_since);
      state.off_since = -1;
    }
  }

  /// Runs client `i`, which is loaded and has work, until its operation ends or `until`, and then on to a point where
  /// its kernel can stop.
  void execute(std::size_t i, std::int64_t until) {
    auto& state = states_[i];
    if (!state.is_begun) {
      state.is_begun = true;
      if (is_counting_) state.waits.push_back(now_ - state.requested);
      state.longest_off = std::max(state.longest_off, now_ - state.requested);
    }
    auto run = std::min(state.left, std::max<std::int64_t>(0, until - now_));
    if (run < state.left && scheduler_.preemption_granularity.ps > 0) {
      const auto grain = scheduler_.preemption_granularity.ps;
      const auto done = clients_[i].kernel.ps - state.left + run;
      run = std::min(state.left, run + (grain - done % grain) % grain);
    }
    state.left -= run;
    state.kernel_ps += run;
    now_ += run;
    if (state.left == 0) complete(i);
  }

  void complete(std::size_t i) {
    auto& state = states_[i];
    ++state.completed;
    if (is_counting_) {
      if (state.first_completion < 0) {
        state.first_completion = now_;
      } else {
        ++state.counted;
        state.service_ps += now_ - state.requested;
        state.last_completion = now_;
      }
    }
    const auto& client = clients_[i];
    const double spread = client.variation > 0 ? client.variation * (2 * random_.next() - 1) : 0;
    state.requested = range::sum(now_, range::whole(static_cast<double>(client.pause.ps) * (1 + spread)));
    state.left = client.kernel.ps;
    state.is_begun = false;
    if (i == marker_ && scheduler_.policy == SharePolicy::best_effort) mark();
  }

  void take_off(std::size_t i) {
    if (has_work(i) && states_[i].is_begun) states_[i].off_since = now_;
  }

  void best_effort_turn() {
    const int picked = next_with_work();
    if (picked < 0) {
      now_ = std::max(now_, next_request());
      return;
    }
    const auto i = static_cast<std::size_t>(picked);
    last_ = picked;
    auto slice_end = now_ + scheduler_.slice.ps;
    load(i);
    while (has_work(i)) {
      // Nobody else to run: the slice begins anew when somebody comes after its end.
      const auto other = next_request_beside(i);
      while (slice_end < other && slice_end <= now_) slice_end += scheduler_.slice.ps;
      execute(i, std::max(slice_end, other == std::numeric_limits<std::int64_t>::max() ? other : slice_end));
      if (is_finished()) return;
      if (now_ >= slice_end && next_request_beside(i) <= now_) break;
    }
    take_off(i);
  }

  /// One slot of equal or fixed share; slots beyond the clients have no owner and pass unused.
  void slot() {
    const auto slots = scheduler_.policy == SharePolicy::fixed_share
                           ? std::max<std::size_t>(clients_.size(), static_cast<std::size_t>(scheduler_.max_clients))
                           : clients_.size();
    if (next_slot_ == 0) mark();
    const auto i = next_slot_;
    next_slot_ = (next_slot_ + 1) % slots;
    auto length = scheduler_.slice.ps;
    if (i < clients_.size()) {
      auto& state = states_[i];
      if (scheduler_.is_strict && state.debt > 0) {
        // The overrun so far over the averaging factor comes off this slice and off the overrun.
        const auto paid = std::min({state.debt, length, state.debt / std::max(1, scheduler_.averaging) + 1});
        state.debt -= paid;
        length -= paid;
      }
      use_slot(i, now_ + length);
      return;
    }
    now_ += length;
  }

  void use_slot(std::size_t i, std::int64_t end) {
    while (true) {
      if (!has_work(i)) {
        if (states_[i].requested >= end) break;
        now_ = states_[i].requested;
      }
      // Too late to load the context: the work waits for the next turn.
      if (loaded_ != static_cast<int>(i) && now_ + scheduler_.switch_time.ps >= end) break;
      load(i);
      execute(i, end);
      if (now_ >= end) break;
    }
    if (now_ > end) {
      states_[i].debt += now_ - end;
    } else {
      now_ = end;
    }
    take_off(i);
  }

  /// A point that recurs with the pattern: shares are counted between two of them.
  void mark() {
    const bool is_warm =
        turns_ >= k_most_turns / 8 || std::all_of(states_.begin(), states_.end(), [&](const ClientState& s) {
          return s.completed >= std::min(k_warm_up, counted_wanted_);
        });
    if (!is_counting_ && is_warm) {
      is_counting_ = true;
      from_ = now_;
      for (auto& state : states_) state.kernel_ps = state.switch_ps = state.switches = state.longest_off = 0;
    }
    mark_ = now_;
    at_mark_.clear();
    for (const auto& state : states_) at_mark_.push_back({state.kernel_ps, state.switch_ps});
  }

  [[nodiscard]] GpuShares summary() const {
    GpuShares out;
    const auto elapsed = static_cast<double>(std::max<std::int64_t>(1, mark_ - from_));
    for (std::size_t i = 0; i < clients_.size(); ++i) {
      const auto& state = states_[i];
      GpuClientShare one;
      one.name = clients_[i].name;
      one.operations = state.counted;
      // A client that hardly ever computes is not waited for: its period is its own.
      one.period = clients_[i].kernel + clients_[i].pause;
      one.service_time = clients_[i].kernel;
      if (state.counted > 0) {
        one.period = {(state.last_completion - state.first_completion) / state.counted};
        one.service_time = {state.service_ps / state.counted};
        one.switches_per_operation = static_cast<double>(state.switches) / static_cast<double>(state.counted + 1);
      }
      if (i < at_mark_.size()) {
        one.share = static_cast<double>(at_mark_[i].kernel_ps) / elapsed;
        one.slot_share = static_cast<double>(at_mark_[i].kernel_ps + at_mark_[i].switch_ps) / elapsed;
        out.switching += static_cast<double>(at_mark_[i].switch_ps) / elapsed;
      }
      auto waits = state.waits;
      std::sort(waits.begin(), waits.end());
      if (!waits.empty()) {
        one.median_wait = {waits[waits.size() / 2]};
        one.worst_wait = {waits.back()};
      }
      one.longest_off = {state.longest_off};
      out.busy += one.share;
      out.clients.push_back(std::move(one));
    }
    out.idle = std::max(0.0, 1 - out.busy - out.switching);
    return out;
  }

  struct Counted {
    std::int64_t kernel_ps = 0, switch_ps = 0;
  };

  const TimeSlicing& scheduler_;
  const std::vector<GpuClient>& clients_;
  std::vector<ClientState> states_;
  SplitMix random_;
  std::size_t marker_ = 0;  ///< the client with the shortest period of its own
  std::int64_t counted_wanted_ = k_most_counted;
  std::int64_t turns_ = 0;
  std::int64_t now_ = 0;
  int loaded_ = -1;  ///< whose context is on the GPU
  int last_ = -1;
  std::size_t next_slot_ = 0;
  bool is_counting_ = false;
  std::int64_t from_ = 0, mark_ = 0;
  std::vector<Counted> at_mark_;
};

}  // namespace

GpuShares share_gpu(const TimeSlicing& scheduler, const std::vector<GpuClient>& clients) {
  FABRICAST_ASSERT(!clients.empty(), "a GPU is shared by at least one client");
  FABRICAST_ASSERT(scheduler.slice > scheduler.switch_time, "slice {} ps, context switch {} ps", scheduler.slice.ps,
                   scheduler.switch_time.ps);
  for (const auto& client : clients) FABRICAST_ASSERT(client.kernel.ps > 0, "kernel of '{}' is empty", client.name);
  return GpuSimulation(scheduler, clients).run();
}

SliceWait slice_wait(const TimeSlicing& scheduler, Duration operation, const std::vector<GpuClient>& neighbours) {
  auto clients = neighbours;
  clients.insert(clients.begin(), {"operation", operation, {1}, {}, 0});
  const auto own = share_gpu(scheduler, clients).clients.front();
  const auto beside = std::max(Duration{}, own.service_time - operation);
  // Half the switches are towards the operation, half towards whoever runs in between.
  const Duration switching{
      range::whole(2 * own.switches_per_operation * static_cast<double>(scheduler.switch_time.ps))};
  SliceWait out;
  out.switching = std::min(beside, switching);
  out.wait = beside - out.switching;
  return out;
}

}  // namespace fabricast::models
