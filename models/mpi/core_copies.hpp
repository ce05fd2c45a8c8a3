// SPDX-License-Identifier: Apache-2.0
// What a rank's one core copies and sums in a round of a collective. docs/MODELS.md, "MPI collectives".
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "mpi/transfer.hpp"
#include "schedules/rounds.hpp"

namespace fabricast::models::mpi {

/// Bytes of eager messages that the core of a rank copies to and from bounce buffers.
struct Copies {
  double sent = 0;
  double received = 0;
  double later = 0;  ///< of both, beyond first segments
};

/// Of the ranks of a round whose library says how fast it copies. `messages` belong to the steps of `round`: those of
/// several segments get the rate that is left when a core sends and receives, those over TCP the rate that is left when
/// a core takes in several.
std::map<int, Copies> share_cores(const Transfers& transfers, const schedules::Round& round,
                                  std::vector<Message>& messages);

/// Inside a host a rank's core makes all copies of its messages one after the other, and what others read from one
/// process's memory (rendezvous) they read in turn, since each pins its pages. `ends`: sender and receiver of each
/// of `messages`, all under way at once; those of other protocols are left alone.
void share_copies_inside(const std::vector<std::pair<int, int>>& ends, std::vector<Message>& messages);

/// By rank: how long others read from the memory of its process, one after the other, since each pins its pages.
/// `ends`: sender and receiver of each of `messages`.
std::map<int, double> reads_in_turn(const std::vector<std::pair<int, int>>& ends, const std::vector<Message>& messages);

struct OwnCopy {
  double seconds;
  const Parameter* parameter;  ///< what says most of it
};

/// How long one core copies `bytes` from buffer to buffer: in its own cache while both fit it, else by way of what
/// a core reads from memory and writes to it, each byte once.
OwnCopy own_copy(const PlanContext& context, DeviceId memory, double bytes);

/// Seconds that the busiest core needs more for a round when all that it sums and copies is in memory: a sum of
/// `reduced` bytes, `sums` seconds in its caches, reads two and writes one for each, a sent byte is read, a received
/// one's line is read and written.
double beyond_core(const Transfers& transfers, double reduced, double sums, const std::map<int, Copies>& copies);

}  // namespace fabricast::models::mpi
