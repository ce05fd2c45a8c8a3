// SPDX-License-Identifier: Apache-2.0
// Memory of a collective on one rank: the caller's buffers, those that the library allocates for the call, and what it
// copies between them. docs/MODELS.md, "MPI collectives".
#pragma once

#include <vector>

#include "mpi/decisions.hpp"

namespace fabricast::models::mpi {

/// A buffer of a rank that passes on what it receives, and the share of all ranks that wait until it is written, or how
/// many such ones the last rank waits for in turn.
struct PassedOn {
  double bytes = 0;
  double share = 0;
};

struct Buffers {
  double own = 0;                   ///< bytes of the caller's send and receive buffers
  std::vector<double> temporaries;  ///< bytes of each buffer allocated by the call and freed at its end
  double written_share = 1;         ///< of these, that is written before the rank returns
  std::vector<PassedOn> passed_on;  ///< where ranks have unlike ones: those waited for, instead of `temporaries`
  bool is_on_heap = false;          ///< none of them has a mapping of its own, however large
  double copied = 0;   ///< bytes that the call copies to and from its temporaries, or out of place, beside its messages
  int data_types = 0;  ///< that the call makes of the blocks of its messages, and frees
  double data_type_runs = 0;  ///< runs of bytes of all of them, and blocks copied one by one
};

/// Of Open MPI's and of MPICH's algorithms; of two levels only the caller's buffers, of Open MPI's reduces what is new,
/// of broadcasts and all-to-alls nothing, of gathers and scatters what is allocated. A rank's own part of what has
/// blocks is not in `copied`. Of the slowest rank; in a gather the mean of all waits for less.
Buffers buffers_of(Library library, const Collective& collective, Statistic statistic);

/// Copies between device and host memory that a call of a reduction of device buffers waits for [Open MPI 4.x and 5.0
/// coll/cuda]: the send buffer out, the receive buffer out before the call and back after it; in place the receive
/// buffer alone. A reduce copies the receive buffer on the root only: of the mean rank, or of the slowest one.
/// A reduce-scatter is not staged: its temporaries lie on the host all the same, the vector goes out and the block in.
struct DeviceCopies {
  double copies = 0;
  double bytes = 0;  ///< of all of them
};
DeviceCopies device_copies_of(const Collective& collective, Statistic statistic);

/// Bytes of temporaries whose pages the C library maps anew for every call: those of at least `mapped` each.
double fresh_bytes(const Buffers& buffers, double mapped);

/// All of `buffers` that a call sweeps.
double working_set(const Buffers& buffers);

}  // namespace fabricast::models::mpi
