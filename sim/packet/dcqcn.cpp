// SPDX-License-Identifier: Apache-2.0
// DCQCN's rate machine; equations in packet/transport.hpp.
#include "packet/dcqcn.hpp"

#include <algorithm>

namespace fabricast::packet {

void RateMachine::start(double line_rate) {
  line = line_rate;
  rate = line_rate;
  target = line_rate;
}

void RateMachine::advance(const DcqcnConfig& config, Time now) {
  if (!is_active) return;
  for (;;) {
    const Time next = std::min({alpha_tick, decrease_tick, increase_tick});
    if (next > now) return;
    if (next == alpha_tick) {
      alpha = (1 - config.g) * alpha + (saw_cnp_for_alpha ? config.g : 0);
      saw_cnp_for_alpha = false;
      alpha_tick += config.alpha_interval.ps;
    } else if (next == decrease_tick) {
      if (saw_cnp_for_decrease) decrease(config, next);
      decrease_tick += config.decrease_interval.ps;
    } else {
      increase(config);
      ++time_stage;
      increase_tick += config.increase_timer.ps;
    }
  }
}

void RateMachine::on_cnp(const DcqcnConfig& config, Time now) {
  advance(config, now);
  saw_cnp_for_alpha = true;
  saw_cnp_for_decrease = true;
  if (is_active) return;
  is_active = true;
  alpha = config.initial_alpha;
  alpha_tick = now + std::max<Time>(config.alpha_interval.ps, 1);
  decrease_tick = now + std::max<Time>(config.decrease_interval.ps, 1);
}

void RateMachine::on_sent(const DcqcnConfig& config, std::int64_t sent) {
  if (!is_active || config.byte_counter.value == 0) return;
  bytes += sent;
  if (bytes < config.byte_counter.value) return;
  bytes = 0;
  increase(config);
  ++byte_stage;
}

void RateMachine::decrease(const DcqcnConfig& config, Time now) {
  saw_cnp_for_decrease = false;
  const bool is_first_of_series = time_stage > 0 || byte_stage > 0;
  if (config.clamp_target || is_first_of_series) target = rate;
  rate = std::max(config.minimum.bytes_per_s, rate * (1 - alpha / 2));
  time_stage = 0;
  byte_stage = 0;
  bytes = 0;
  increase_tick = now + std::max<Time>(config.increase_timer.ps, 1);
}

void RateMachine::increase(const DcqcnConfig& config) {
  const bool has_byte_counter = config.byte_counter.value > 0;
  const int furthest = std::max(time_stage, byte_stage);
  const int nearest = has_byte_counter ? std::min(time_stage, byte_stage) : time_stage;
  if (furthest >= config.fast_recovery)
    target += nearest > config.fast_recovery ? config.hyper.bytes_per_s : config.additive.bytes_per_s;
  target = std::min(target, line);
  rate = std::min((rate + target) / 2, line);
}

}  // namespace fabricast::packet
