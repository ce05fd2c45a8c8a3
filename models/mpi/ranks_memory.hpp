// SPDX-License-Identifier: Apache-2.0
// What a collective moves through the memory of its hosts beyond the caches: docs/models/mpi.md, "Beyond the caches".
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "mpi/buffers.hpp"
#include "mpi/core_copies.hpp"
#include "mpi/end_points.hpp"

namespace fabricast::models::mpi {

class RanksMemory {
 public:
  /// `ranks` in host memory; `alike`: equal collectives per socket at the same time. Keeps a reference to `transfers`.
  RanksMemory(const Transfers& transfers, const std::vector<EndPoint>& ranks, int alike);

  /// A core copies its rank's own part of `size`. `is_of_root`: the root alone has one.
  void add_own_part(OperationPlan& plan, Bytes size, const Buffers& buffers, bool is_of_root) const;

  /// A core copies what the library moves between its buffers and the caller's. Pages of large temporaries are new in
  /// every call.
  void add_temporaries(OperationPlan& plan, const Buffers& buffers) const;

  /// Bytes of a round that miss the last-level cache cross the socket's memory, shared by its ranks: what messages read
  /// and write, and what reductions (`sums` seconds in the caches) read twice and write once. A core by itself is
  /// slower than the memory: what it sums and copies (`copies`, by rank) beyond the cache takes at least that long.
  void add_traffic(Node& node, const schedules::Round& round, double sums, const std::map<int, Copies>& copies,
                   const Buffers& buffers) const;

 private:
  using Socket = std::pair<int, DeviceId>;  ///< host and memory

  /// A core copies `bytes` in its own cache or beyond it; beyond the last level ranks share the memory. `is_of_root`:
  /// one rank alone does.
  void add_core_copies(OperationPlan& plan, const char* name, double bytes, const Buffers& buffers,
                       bool is_of_root) const;
  [[nodiscard]] double beyond_cache(const Socket& socket, const Buffers& buffers) const;
  [[nodiscard]] const Parameter* bandwidth(const Socket& socket) const;

  const Transfers* transfers_;
  std::vector<Socket> sockets_;    ///< [rank]
  std::map<Socket, int> sharers_;  ///< ranks of each socket
  int alike_;
};

}  // namespace fabricast::models::mpi
