// SPDX-License-Identifier: Apache-2.0
// Rounds of very many messages (a linear all-to-all of 128 ranks has 16,256) as one flow, and rings as their mean edge.
#pragma once

#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "fabricast/models/plan.hpp"

namespace fabricast::models::mpi {

/// Above so many messages a round is one flow, or one for every number of bytes that a message carries (inside hosts
/// and between them). Every rank of a linear exchange loads its ports, and every switch its uplinks, until the last
/// message is through, so the round ends when what is loaded most has passed its bytes: that is the flow whose
/// crossings are those of all messages together. Fluid flows end one by one and each end costs a new solution of all
/// rates, so n^2 messages cost n^4; tests/unit/simulate compares both.
inline constexpr std::size_t k_most_messages = 1024;

/// Terms of very many messages, of which most are equal: 0.8 KB of each otherwise.
class SharedTerms {
 public:
  /// Takes those of the next message away.
  void put(std::vector<Term>& terms);
  [[nodiscard]] const std::vector<Term>& of(std::size_t message) const { return lists_[places_[message]]; }

 private:
  std::vector<std::vector<Term>> lists_;
  std::vector<std::size_t> places_;  ///< [message] -> lists_
};

/// The flows of a round as they come, or folded: all as one for each number of bytes, in the order in which the numbers
/// first come. It starts with its first message and is no faster than the ranks post, which takes from the least
/// latency to the greatest.
class RoundFlows {
 public:
  explicit RoundFlows(bool is_folded) : is_folded_(is_folded) {}

  void add(Flow flow);
  [[nodiscard]] std::vector<Flow> take();

 private:
  /// Flows of as many bytes.
  struct Kind {
    Flow first, last;                                           ///< by latency, without what they cross
    double rate_cap = std::numeric_limits<double>::infinity();  ///< the least
    std::string cap_name, cap_parameter;
    CrossingCounter crossings;
    std::vector<Leg> legs;
  };
  [[nodiscard]] static Flow as_one(Kind& kind);

  bool is_folded_;
  std::vector<Flow> flows_;
  std::vector<Kind> kinds_;
};

/// Rounds of a ring are no barriers: a block passes every edge in turn, so its latencies are those of the mean edge
/// (tests/unit/simulate compares with the ring expanded step by step).
void share_latencies(Node& node);

}  // namespace fabricast::models::mpi
