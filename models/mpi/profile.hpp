// SPDX-License-Identifier: Apache-2.0
// What a message-passing stack does with a message, as numbers: `mpi.<profile>.*` parameters and the user's overrides.
// Perftest is a profile of its own (`verbs`): no matching, no eager copy, no rendezvous.
#pragma once

#include <string>
#include <vector>

#include "fabricast/models/planner.hpp"

namespace fabricast::models::mpi {

struct Profile {
  std::string name;  ///< open-mpi-openib, open-mpi-ucx, open-mpi-ucx-tcp, mvapich2-gdr, open-mpi-ofi, cray-mpich,
                     ///< cray-mpich-cxi (over Slingshot-11), verbs, tcp (Open MPI's own)
  std::string implementation;  ///< the one named, else the profile's: whose rules pick algorithms and hold inside hosts
  std::string reason;          ///< why this one where none was named and it is not UCX over verbs
  Duration overhead;           ///< software of both sides, one message, host buffers
  Duration device_check;       ///< extra per end whose buffer is on a GPU: the library finds out what memory it is
  Duration device_overhead;    ///< extra per end whose buffer is on a GPU, eager message not empty
  Bytes inline_limit;          ///< data up to this size travels in the work request: no DMA read at the sender
  Bytes eager_limit;           ///< larger messages make a rendezvous first
  Bytes device_eager_limit;
  Bytes blocking_eager_limit;  ///< the same for blocking sends, which some libraries keep eager longer
  Bytes blocking_device_eager_limit;
  Bytes inside_eager_limit;         ///< the same between ranks of a host
  Bytes posted_inside_eager_limit;  ///< of sends that do not block, where the library tells them apart
  Bytes inside_segment;             ///< inside a host: pieces that both sides copy
  bool copies_whole = false;        ///< inside a host the receiver begins when the sender has copied all
  std::string inside_rendezvous;    ///< the parameter of one between ranks of a host
  std::string inside_overhead;      ///< what a message by itself takes beside shared memory's own; empty: nothing
  bool may_attach = true;           ///< a process may read another's memory
  Bytes eager_segment;              ///< eager messages are copied in segments; copies of later ones overlap the wire
  Bandwidth eager_bandwidth;        ///< what eager messages of several segments reach; 0 = the wire's rate
  Bandwidth eager_copy;             ///< copies into and out of bounce buffers; 0 = none
  double rendezvous_messages = 0;   ///< control messages on the critical path before data flows
  Duration message_gap;             ///< least time between two messages of one sender
  Duration rendezvous_gap;          ///< idle time of one connection between two rendezvous messages
  Duration fetch_gap;               ///< added to the gap when data do not travel inline
  Bandwidth gap_copy;               ///< the sender's processor copies while it posts; 0 = it does not
  Bandwidth inline_copy;            ///< inline data are written into the work request; 0 = no time for it
  Duration wire_gap;                ///< idle time of one connection between two eager messages of a window
  Bandwidth staging_bandwidth;      ///< what pipelined staging reaches; 0 = the slowest of its stages
  Bandwidth flow_bandwidth;         ///< what one connection reaches, whatever the link; 0 = no such limit
  int max_rails = 1;                ///< HCAs one rendezvous message is striped over
  Bytes rail_minimum;               ///< smallest message that is striped
  Bytes gpudirect_limit;            ///< larger device messages are staged through host memory
  Bytes staging_chunk;
  Bytes staged_eager_limit;  ///< staged messages up to this size use the transport's own buffers
  Bytes staged_segment;      ///< of which each is copied by itself, and waited for; 0: a chunk at once
  Distance gpudirect_farthest = Distance::node;
  bool posts_verbs = false;  ///< perftest: no library, always through the adapter, from wherever memory lies
  bool uses_gdrcopy = false;
  bool unpacks_by_engine = false;  ///< eager device data, segment by segment: UCX without its gdr_copy transport
  bool reads_by_gdrcopy = false;   ///< the sender, too, copies eager device data by gdrcopy
  bool rotates_hcas = true;        ///< ranks take turns on equally near HCAs
  bool compares_gpus = true;       ///< HCAs near the GPU come first; else those of the rank's socket, in their order
  bool is_tcp = false;
  bool keeps_buffers = false;           ///< nobody writes to the buffers between messages
  bool is_acknowledged = false;         ///< blocking eager sends that do not travel inline end with an acknowledgement
  bool has_adapter_rendezvous = false;  ///< adapters exchange its control messages without software
  bool has_old_ucx = false;  ///< before 1.8: slower copies through shared memory (one site with 1.7, one with 1.9)
};

/// Every profile name, for messages and `fabricast list profiles`.
const std::vector<std::string>& profile_names();

/// Libraries that are known by what they choose and copy; their messages between hosts take what the adapters' usual
/// library takes.
bool is_known_by_choices(const std::string& library);

/// The profile named by the software section, else the usual one of the adapters: open-mpi-ucx over verbs, open-mpi-ofi
/// over EFA, cray-mpich over Aries, cray-mpich-cxi over Slingshot-11 (of Open MPI with libfabric and MVAPICH2, too);
/// tcp where adapters or settings leave nothing else, open-mpi-ucx-tcp where UCX or its release is named there, and tcp
/// for host memory where there are no adapters; verbs for perftest.
Profile make_profile(const PlanContext& context, const Workload& workload);
/// The same where `hosts` take part, whatever the workload says.
Profile make_profile(const PlanContext& context, const Workload& workload, const std::vector<int>& hosts);

/// That no log taught what its messages between hosts take, and what stands for it, as results say; empty where one
/// did.
std::string why_untaught(const Profile& profile);

}  // namespace fabricast::models::mpi
