// SPDX-License-Identifier: Apache-2.0
// The few calls of MPI that a sweep needs, as the plugin offers them; plain C so that it can be loaded at run time.
#pragma once

#include <cstddef>

extern "C" {

struct FabricastMpiCalls {
  int version;  ///< k_mpi_calls
  int (*start)(int* rank, int* size);
  /// To `rank`; 0 when sent.
  int (*send)(int rank, const char* data, std::size_t size);
  /// True when a message waits; `rank` and `size` are its.
  int (*probe)(int* rank, std::size_t* size);
  int (*receive)(int rank, char* data, std::size_t size);
  void (*finish)();
};

using FabricastMpiEntry = const FabricastMpiCalls* (*)();
}

namespace fabricast {
constexpr int k_mpi_calls = 1;
constexpr const char* k_mpi_entry = "fabricast_mpi_calls";
}  // namespace fabricast
