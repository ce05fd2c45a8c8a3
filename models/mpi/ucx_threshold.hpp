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
/// [UCX 1.6 to 1.15, ucp_ep_config_calc_rndv_thresh; the minimum of tag.rndv.rma_thresh and am_thresh]; of host memory
/// from 1.16 on, which compares the planned times of whole protocols, taken to be the same. num_ports >= 1. `is_amd`:
/// UCX plans with slower copies of AMD's processors.
Bytes longest_eager_of_ucx(const PlannedPort& port, int num_ports, bool is_amd);

/// The same of GPU memory from 1.16 on, which plans with the distance between adapter and GPU: `gpu_rate` > 0, B/s,
/// limits both ways of sending, and a rendezvous wins by what every segment of copies costs. Some 250 KiB, where both
/// are below one root complex.
Bytes longest_eager_of_ucx(const PlannedPort& port, double gpu_rate);

/// The same over TCP [uct_tcp_iface_query], of any memory: UCX plans with 5.2 us and 50 us of software at each end,
/// from 1.15 on (`is_capped`) with at most 2,200 MiB/s. `segment` B, where a release compares whole protocols
/// (from 1.16 on): each costs the software of one end; 0: before. `is_roce` of `port` is not read.
Bytes longest_eager_of_ucx_over_tcp(const PlannedPort& port, Bytes segment, bool is_capped, bool is_amd);

/// B/s that UCX plans between an adapter and a GPU [ucs/sys/topo, 1.16]: below one root complex, or across.
double planned_gpu_rate_of_ucx(bool has_one_root, bool is_amd);

}  // namespace fabricast::models::mpi
