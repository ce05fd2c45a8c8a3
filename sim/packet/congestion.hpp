// SPDX-License-Identifier: Apache-2.0
// How a queue pair reacts to congestion. An algorithm is one class and one line in the table of congestion.cpp: it sets
// the rate that packets are paced at, says what acknowledgements, CNPs and marks do to it, and which part its state has
// in a period of packets (packet/trains.hpp). Both ends of a queue pair share one object.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "packet/state_walk.hpp"
#include "packet/transport.hpp"

namespace fabricast::packet {

class CongestionControl {
 public:
  /// `line_rate`: of the sender's port, bytes/s.
  explicit CongestionControl(double line_rate) : line_(line_rate), rate_(line_rate) {}
  virtual ~CongestionControl() = default;
  CongestionControl(const CongestionControl&) = delete;
  CongestionControl& operator=(const CongestionControl&) = delete;

  /// Rate that packets are paced at, bytes/s; the line's until something happens.
  [[nodiscard]] double rate() const { return rate_; }
  /// Whether rate() may be another one than the line's.
  [[nodiscard]] bool is_pacing() const { return is_pacing_; }
  [[nodiscard]] bool is_below_line() const { return rate_ < line_ * (1 - 1e-9); }

  /// Sender: the receiver has `packets` more.
  virtual void on_ack(Time now, std::uint32_t packets) = 0;
  /// Sender: the receiver told of a mark.
  virtual void on_cnp(Time now) = 0;
  /// Receiver: a marked packet came; whether to tell the sender.
  virtual bool on_mark(Time now) = 0;
  /// Sender, while is_pacing(): brings rate() up to date; `sent` bytes went on the wire, 0 when a packet is about to.
  virtual void pace(Time now, std::int64_t sent) = 0;

  /// What it remembers of marks and CNPs, two bits.
  [[nodiscard]] virtual unsigned phase(Time now) const = 0;
  /// While is_pacing(): names the rest of its state; gives what its counter of bytes grew by.
  virtual std::int64_t walk(StateWalk& walk) = 0;
  /// First time at which the state changes by itself.
  [[nodiscard]] virtual Time next_change(Time now) const = 0;
  /// Periods of `counted` bytes in which that counter takes no step.
  [[nodiscard]] virtual std::int64_t periods_until_step(std::int64_t counted) const = 0;

 protected:
  double line_;
  double rate_;
  bool is_pacing_ = false;
};

/// The one that `sender.congestion_control` names; the configurations outlive it. Null for an unknown name.
std::unique_ptr<CongestionControl> make_congestion_control(const TransportConfig& sender,
                                                           const TransportConfig& receiver, double line_rate);
std::vector<std::string_view> congestion_control_names();

}  // namespace fabricast::packet
