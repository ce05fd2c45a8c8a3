// SPDX-License-Identifier: Apache-2.0
#include "packet/dcqcn.hpp"

#include <algorithm>
#include <bit>

namespace fabricast::packet {

void Dcqcn::advance(Time now) {
  if (!is_pacing_) return;
  for (;;) {
    const Time next = std::min({alpha_tick_, decrease_tick_, increase_tick_});
    if (next > now) return;
    if (next == alpha_tick_) {
      alpha_ = (1 - config_.g) * alpha_ + (saw_cnp_for_alpha_ ? config_.g : 0);
      saw_cnp_for_alpha_ = false;
      alpha_tick_ += config_.alpha_interval.ps;
    } else if (next == decrease_tick_) {
      if (saw_cnp_for_decrease_) decrease(next);
      decrease_tick_ += config_.decrease_interval.ps;
    } else {
      increase();
      ++time_stage_;
      increase_tick_ += config_.increase_timer.ps;
    }
  }
}

void Dcqcn::on_cnp(Time now) {
  advance(now);
  saw_cnp_for_alpha_ = true;
  saw_cnp_for_decrease_ = true;
  if (is_pacing_) return;
  is_pacing_ = true;
  alpha_ = config_.initial_alpha;
  alpha_tick_ = now + std::max<Time>(config_.alpha_interval.ps, 1);
  decrease_tick_ = now + std::max<Time>(config_.decrease_interval.ps, 1);
}

bool Dcqcn::on_mark(Time now) {
  if (may_not_notify(now)) return false;
  last_cnp_ = now;
  return true;
}

void Dcqcn::pace(Time now, std::int64_t sent) {
  advance(now);
  count(sent);
}

void Dcqcn::count(std::int64_t sent) {
  if (config_.byte_counter.value == 0) return;
  bytes_ += sent;
  if (bytes_ < config_.byte_counter.value) return;
  bytes_ = 0;
  increase();
  ++byte_stage_;
}

void Dcqcn::decrease(Time now) {
  saw_cnp_for_decrease_ = false;
  const bool is_first_of_series = time_stage_ > 0 || byte_stage_ > 0;
  if (config_.clamp_target || is_first_of_series) target_ = rate_;
  rate_ = std::max(config_.minimum.bytes_per_s, rate_ * (1 - alpha_ / 2));
  time_stage_ = 0;
  byte_stage_ = 0;
  bytes_ = 0;
  increase_tick_ = now + std::max<Time>(config_.increase_timer.ps, 1);
}

void Dcqcn::increase() {
  const bool has_byte_counter = config_.byte_counter.value > 0;
  const int furthest = std::max(time_stage_, byte_stage_);
  const int nearest = has_byte_counter ? std::min(time_stage_, byte_stage_) : time_stage_;
  if (furthest >= config_.fast_recovery)
    target_ += nearest > config_.fast_recovery ? config_.hyper.bytes_per_s : config_.additive.bytes_per_s;
  target_ = std::min(target_, line_);
  rate_ = std::min((rate_ + target_) / 2, line_);
}

unsigned Dcqcn::phase(Time now) const { return (may_not_notify(now) ? 1U : 0U) | (is_pacing_ ? 2U : 0U); }

// Ticks are not walked: those that change something bound the train, the others are replayed when the rate is used. So
// is alpha, which nothing but the next CNP asks for.
std::int64_t Dcqcn::walk(StateWalk& walk) {
  for (const double value : {rate_, target_}) walk.same(std::bit_cast<std::uint64_t>(value));
  if (may_increase()) walk.same(static_cast<std::uint64_t>(time_stage_));
  walk.same(static_cast<std::uint64_t>(byte_stage_));
  walk.same(saw_cnp_for_decrease_ ? 1 : 0);
  return walk.counter(bytes_);
}

Time Dcqcn::next_change(Time now) const {
  Time first = may_not_notify(now) ? last_cnp_ + cnp_interval_ : k_never;
  if (!is_pacing_) return first;
  if (may_increase()) first = std::min(first, increase_tick_);
  if (saw_cnp_for_decrease_) first = std::min(first, decrease_tick_);
  return first;
}

std::int64_t Dcqcn::periods_until_step(std::int64_t counted) const {
  return (config_.byte_counter.value - 1 - bytes_) / counted;
}

}  // namespace fabricast::packet
