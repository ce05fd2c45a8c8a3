// SPDX-License-Identifier: Apache-2.0
// How libfabric's EFA provider moves a message that it announces: the receiver's adapter reads it, or the receiver
// grants its sender one window of packets after the other [libfabric prov/efa: docs/efa_rdm_protocol_v4.md, "long-CTS"
// and "long-read"; src/efa_hmem.c, efa_rdm_pke_init_cts].
#pragma once

#include "mpi/profile.hpp"
#include "paths/transport.hpp"

namespace fabricast::models::mpi {

/// Longest message out of a GPU's memory that goes at once, its parts beside its header ("runting read"); `usual` where
/// the adapter reads no memory, and of other providers.
Bytes longest_eager_of_efa(const PlanContext& context, DeviceId hca, Bytes usual);

/// The provider's adapters read out of a GPU's memory and into it: the receiver's copies what came at once there.
bool copies_by_adapter(const PlanContext& context, const Profile& profile, DeviceId hca);

class EfaAnnounced {
 public:
  /// Of a message of `size` between two adapters, out of a GPU's memory where `is_direct`.
  EfaAnnounced(const PlanContext& context, const Profile& profile, DeviceId from_hca, DeviceId to_hca, Bytes size,
               bool is_direct);

  /// Windows that the receiver grants, each with a message of its own, when the one before has arrived; the
  /// announcement carries the first packet. 0 of messages that are read, and of other providers.
  [[nodiscard]] int grants() const { return grants_; }
  /// The adapters move the data without a core, through no buffer of the provider.
  [[nodiscard]] bool is_read() const { return read_bandwidth_ > 0; }
  /// B/s of data that one adapter reads; 0 where it does not.
  [[nodiscard]] double read_bandwidth() const { return read_bandwidth_; }

 private:
  int grants_ = 0;
  double read_bandwidth_ = 0;
};

}  // namespace fabricast::models::mpi
