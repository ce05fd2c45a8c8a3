// SPDX-License-Identifier: Apache-2.0
// The reaction point of DCQCN for one queue pair. Timers are not events: the machine is brought up to date when a CNP
// comes or a packet is about to be paced, by replaying the ticks since then in order. Rates in bytes per second.
#pragma once

#include "packet/event_queue.hpp"
#include "packet/transport.hpp"

namespace fabricast::packet {

struct RateMachine {
  double rate = 0;    ///< R_C
  double target = 0;  ///< R_T
  double line = 0;
  double alpha = 1;
  Time alpha_tick = k_never;
  Time decrease_tick = k_never;
  Time increase_tick = k_never;
  std::int64_t bytes = 0;  ///< sent since the byte counter's last step
  int time_stage = 0;
  int byte_stage = 0;
  bool saw_cnp_for_alpha = false;
  bool saw_cnp_for_decrease = false;
  bool is_active = false;  ///< since the first CNP

  void start(double line_rate);
  void advance(const DcqcnConfig& config, Time now);
  void on_cnp(const DcqcnConfig& config, Time now);
  void on_sent(const DcqcnConfig& config, std::int64_t sent);

 private:
  void decrease(const DcqcnConfig& config, Time now);
  void increase(const DcqcnConfig& config);
};

}  // namespace fabricast::packet
