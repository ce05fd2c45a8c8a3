// SPDX-License-Identifier: Apache-2.0
// DCQCN for one queue pair; equations in packet/transport.hpp. Timers are not events: the rate is brought up to date
// when a CNP comes or a packet is about to be paced, by replaying the ticks since then in order.
#pragma once

#include "packet/congestion.hpp"

namespace fabricast::packet {

class Dcqcn final : public CongestionControl {
 public:
  Dcqcn(const DcqcnConfig& sender, const DcqcnConfig& receiver, double line_rate)
      : CongestionControl(line_rate), config_(sender), cnp_interval_(receiver.cnp_interval.ps), target_(line_rate) {}

  void on_ack(Time, std::uint32_t) override {}
  void on_cnp(Time now) override;
  bool on_mark(Time now) override;  ///< at most one CNP per interval
  void pace(Time now, std::int64_t sent) override;

  [[nodiscard]] unsigned phase(Time now) const override;
  std::int64_t walk(StateWalk& walk) override;
  [[nodiscard]] Time next_change(Time now) const override;
  [[nodiscard]] std::int64_t periods_until_step(std::int64_t counted) const override;

 private:
  void advance(Time now);
  void count(std::int64_t sent);
  void decrease(Time now);
  void increase();
  /// Whether the receiver has to wait before it may send another CNP.
  [[nodiscard]] bool may_not_notify(Time now) const { return now - last_cnp_ < cnp_interval_; }
  /// Whether a tick of the increase timer can change the rate.
  [[nodiscard]] bool may_increase() const { return rate_ < line_ || target_ < line_; }

  const DcqcnConfig& config_;
  Time cnp_interval_;
  double target_;  ///< R_T; rate_ is R_C
  double alpha_ = 1;
  Time alpha_tick_ = k_never;
  Time decrease_tick_ = k_never;
  Time increase_tick_ = k_never;
  std::int64_t bytes_ = 0;  ///< sent since the byte counter's last step
  int time_stage_ = 0;
  int byte_stage_ = 0;
  bool saw_cnp_for_alpha_ = false;
  bool saw_cnp_for_decrease_ = false;
  Time last_cnp_ = -k_never / 2;  ///< sent by the receiver
};

}  // namespace fabricast::packet
