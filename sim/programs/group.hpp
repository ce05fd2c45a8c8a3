// SPDX-License-Identifier: Apache-2.0
// The ranks of a communicator of a program in SimGrid's SMPI, and how they pass a collective of the forecast.
#pragma once

#include <dlfcn.h>
#include <smpi/smpi.h>

#include <cstdint>
#include <simgrid/s4u.hpp>
#include <utility>
#include <vector>

#include "programs/plan.hpp"

namespace fabricast::programs {

/// SimGrid's own function of the name.
template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

/// Of the file that FABRICAST_SMPI_SETTINGS names; a fault in it ends the program.
const Settings& settings();

/// A communicator as one rank knows it.
struct Group {
  MPI_Comm own = MPI_COMM_NULL;  ///< the same ranks, for our messages
  int id = 0;                    ///< the same number on all ranks
  int rank = 0, size = 0;
  std::uint64_t calls = 0;
  std::vector<int> hosts;                     ///< [rank], numbers
  std::vector<simgrid::s4u::Host*> machines;  ///< [rank]
};

/// Made at a communicator's first collective.
Group& group_of(MPI_Comm comm);
/// Forgotten when the communicator is freed.
void drop_group(MPI_Comm comm);
/// Communicators between two groups and of one rank are left to SimGrid.
bool is_ours(MPI_Comm comm);

/// Latency of the links between two machines, s.
double way_between(const simgrid::s4u::Host* from, const simgrid::s4u::Host* to);

/// Passes a collective on this rank. `own`: bytes of the rank's own part, which its core copies.
void run(Group& group, Benchmark benchmark, std::size_t bytes, int root, std::size_t own = 0);

/// What this rank leaves for the others at entry, and what it may read of theirs at its end.
class Exchange {
 public:
  Exchange(Group& group, const void* input, std::size_t bytes);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;
  [[nodiscard]] const std::vector<char>& input(int rank) const;

 private:
  std::pair<int, std::uint64_t> key_;
  int size_;
};

}  // namespace fabricast::programs
