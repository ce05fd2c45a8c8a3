// SPDX-License-Identifier: Apache-2.0
// What packets pass inside hosts: stages that serve one packet after the other. A stage that is free may have worked on
// a packet since one packet time ago, because hosts read ahead and the bytes of a packet come in one by one:
//
//   free' = max(free, not_before, now - b / r) + b / r, for b payload bytes and a stage of rate r;   ready = max over
//   stages
//
// So a stage alone lets a stream through at r, a stage shared by n at r / n while they are n. A sender's packet begins
// on the wire so that it ends when its last byte is there.
#pragma once

#include <cstdint>
#include <vector>

#include "packet/packet.hpp"
#include "packet/simulation.hpp"
#include "packet/state_walk.hpp"

namespace fabricast::packet {

/// What a payload byte takes of a stage inside hosts.
struct StageCost {
  std::uint32_t stage = 0;
  double ps_per_byte = 0;
};

/// Into the table of costs: those of the sending end, behind them those of the receiving one.
struct HostPathState {
  std::uint32_t first = 0;
  std::uint32_t sending = 0;
  std::uint32_t receiving = 0;
};

struct HostStages {
  std::vector<Time> free;  ///< [stage]: end of what it was asked for
  std::vector<double> ps_per_byte;
  std::vector<StageCost> costs;
  std::vector<HostPathState> paths{{}};
  Time reach = 0;  ///< longest time of a packet in a stage: what was over that long ago decides nothing

  StageId add_stage(Bandwidth rate);
  HostPathId add_path(const HostPath& path, std::int64_t largest_packet);
  /// When `bytes` have passed `count` stages; each is busy with them from now on.
  Time pass(std::uint32_t first, std::uint32_t count, double bytes, Time not_before, Time now);

  void walk(StateWalk& walk) {
    for (auto& time : free) walk_time(walk, time);
  }
  /// A time that decides as long as a packet that is asked for now could have been begun before it.
  void walk_time(StateWalk& walk, Time& time) const {
    Time end = time + reach;
    walk.due(end);
    time = end - reach;
  }
};

}  // namespace fabricast::packet
