// SPDX-License-Identifier: Apache-2.0
// From which size on UCX announces a message (rendezvous) instead of sending it at once through its buffers (eager).
#pragma once

#include "fabricast/units.hpp"

namespace fabricast::models::mpi {

/// One port as UCX plans with it.
struct PlannedPort {
  double rate = 0;           ///< B/s on the wire, > 0
  double payload_share = 1;  ///< of its largest packet, in (0, 1]
  bool is_roce = false;
};

/// Longest message that is sent at once, B: below the size at which the planned time of a rendezvous that reads by
/// `num_ports` such ports, or sends by one, falls 1 % below that of copies through buffers and one port
/// [UCX 1.6 to 1.15, ucp_ep_config_calc_rndv_thresh; the minimum of tag.rndv.rma_thresh and am_thresh]. The same of
/// host and device memory. From 1.16 on UCX compares the planned times of whole protocols instead; what it then takes
/// is assumed to be the same. num_ports >= 1. `is_amd`: UCX plans with slower copies of AMD's processors.
Bytes longest_eager_of_ucx(const PlannedPort& port, int num_ports, bool is_amd);

}  // namespace fabricast::models::mpi
