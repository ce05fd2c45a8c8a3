// SPDX-License-Identifier: Apache-2.0
// The plugin: MPI behind the calls of mpi_calls.hpp.
#include <mpi.h>

#include <climits>

#include "sweep/mpi_calls.hpp"

namespace {

constexpr int k_tag = 14;

int start(int* rank, int* size) {
  if (MPI_Init(nullptr, nullptr) != MPI_SUCCESS) return 1;
  MPI_Comm_rank(MPI_COMM_WORLD, rank);
  MPI_Comm_size(MPI_COMM_WORLD, size);
  return 0;
}

int send(int rank, const char* data, std::size_t size) {
  if (size > INT_MAX) return 1;
  return MPI_Send(data, static_cast<int>(size), MPI_BYTE, rank, k_tag, MPI_COMM_WORLD) == MPI_SUCCESS ? 0 : 1;
}

int probe(int* rank, std::size_t* size) {
  int is_there = 0;
  MPI_Status status;
  MPI_Iprobe(MPI_ANY_SOURCE, k_tag, MPI_COMM_WORLD, &is_there, &status);
  if (is_there == 0) return 0;
  int count = 0;
  MPI_Get_count(&status, MPI_BYTE, &count);
  *rank = status.MPI_SOURCE;
  *size = static_cast<std::size_t>(count);
  return 1;
}

int receive(int rank, char* data, std::size_t size) {
  return MPI_Recv(data, static_cast<int>(size), MPI_BYTE, rank, k_tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == MPI_SUCCESS
             ? 0
             : 1;
}

void finish() { MPI_Finalize(); }

constexpr FabricastMpiCalls k_calls{1, start, send, probe, receive, finish};

}  // namespace

extern "C" const FabricastMpiCalls* fabricast_mpi_calls() { return &k_calls; }
