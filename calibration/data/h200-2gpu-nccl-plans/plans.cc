// SPDX-License-Identifier: Apache-2.0
// Lets NCCL plan, and run nothing: one process per rank (mpirun), host = rank / GPUs per host. Usage: plans LIBNCCL GPUS_PER_HOST
// NCCL's own lines (NCCL_DEBUG_SUBSYS=GRAPH,TUNING) say what it found and what it expects.
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <string>

struct Id { char bytes[128]; };
using Comm = void*;
#define FN(name, type) auto name = reinterpret_cast<type>(dlsym(handle, #name)); if (name == nullptr) { std::printf("# no " #name "\n"); return 1; }
static void check(int code, const char* what) { if (code != 0) { std::printf("# %s: %d\n", what, code); std::fflush(stdout); MPI_Abort(MPI_COMM_WORLD, 1); } }

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int per_host = std::atoi(argv[2]);
  setenv("NCCL_HOSTID", ("host" + std::to_string(rank / per_host)).c_str(), 1);
  if (rank != 0) setenv("NCCL_DEBUG", "WARN", 1);
  check(cudaSetDevice(rank % per_host), "device");
  void* handle = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) { std::printf("# %s\n", dlerror()); return 1; }
  FN(ncclGetUniqueId, int (*)(Id*))
  FN(ncclCommInitRank, int (*)(Comm*, int, Id, int))
  Id id;
  if (rank == 0) check(ncclGetUniqueId(&id), "id");
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
  Comm comm;
  check(ncclCommInitRank(&comm, ranks, id, rank), "init");
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  std::_Exit(0);
}
