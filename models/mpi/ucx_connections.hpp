// SPDX-License-Identifier: Apache-2.0
// From some 60 ranks on UCX reaches its peers by dynamically connected transport: a rank's few connections go from one
// peer to the next when the first one's adapter has acknowledged.
#pragma once

#include <optional>

#include "mpi/transfer.hpp"

namespace fabricast::models::mpi {

class UcxConnections {
 public:
  /// Of one rank of `num_ranks` >= 1 that sends with `end`'s adapters. UCX plans 1 ns more for every rank of the job
  /// with connections of their own, 60 ns for shared ones [uct_rc_mlx5_iface_query, uct_dc_mlx5_iface_query]; Open MPI
  /// tells it the number of ranks.
  UcxConnections(const PlanContext& context, const Profile& profile, const EndPoint& end, int num_ranks);

  /// Until a message to another host can leave after `sent` others to other peers, where that is longer than `handled`.
  /// `received`: what the rank's core handles meanwhile; it looks for acknowledgements when nothing has arrived
  /// [UCX_RC_TX_POLL_ALWAYS].
  [[nodiscard]] std::optional<Term> longer_wait(const Message& message, int sent, Duration received,
                                                Duration handled) const;
  /// After the one before it, in the mean of many such messages, s; 0 of the first ones, for which all are free.
  [[nodiscard]] double spacing(const Message& message, int sent) const;

 private:
  int shared_ = 0;  ///< connections; 0: every peer has its own
};

}  // namespace fabricast::models::mpi
