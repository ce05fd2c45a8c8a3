// SPDX-License-Identifier: Apache-2.0
#include "mpi/ucx_connections.hpp"

namespace fabricast::models::mpi {

namespace {

constexpr int k_most_ranks = 60;  ///< with connections of their own
constexpr int k_shared = 8;       ///< UCX_DC_MLX5_NUM_DCI

}  // namespace

UcxConnections::UcxConnections(const PlanContext& context, const Profile& profile, const EndPoint& end, int num_ranks) {
  if (profile.name != "open-mpi-ucx" || end.hcas.empty() || num_ranks <= k_most_ranks) return;
  const auto& type = context.topology.device(end.hcas.front()).type;
  if (context.topology.attribute(type, "driver") == "mlx5") shared_ = k_shared;
}

std::optional<Term> UcxConnections::longer_wait(const Message& message, int sent, Duration received,
                                                Duration handled) const {
  if (shared_ == 0 || sent < shared_) return {};
  const auto wait = sent / shared_ * message.round_trip + received;
  if (wait <= handled) return {};
  return Term{"a connection to the peer", wait, "topology",
              "UCX_DC_MLX5_NUM_DCI: a rank's 8 connections serve one peer each until its adapter has acknowledged"};
}

double UcxConnections::spacing(const Message& message, int sent) const {
  return shared_ == 0 || sent < shared_ ? 0 : message.round_trip.seconds() / shared_;
}

}  // namespace fabricast::models::mpi
