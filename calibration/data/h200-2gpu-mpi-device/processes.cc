// SPDX-License-Identifier: Apache-2.0
// Times of NCCL operations with one process per GPU, as nccl-tests do under mpirun with -g 1: MPI only brings the processes together. Per size 5 calls
// unmeasured, then rounds of calls between a barrier and the end of the stream; the mean over processes. Usage: mpirun -n GPUS processes LIBNCCL MAX_BYTES OP...
// One line per size: GPUs, operation, bytes, microseconds per call (median of rounds, least), microseconds until a process had started a call (least, mean over processes).
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

struct Id { char bytes[128]; };
using Comm = void*;
#define FN(name, type) auto name = reinterpret_cast<type>(dlsym(handle, #name)); if (name == nullptr) { std::printf("# no " #name "\n"); return 1; }
static void check(int code, const char* what) { if (code != 0) { std::printf("# %s: %d\n", what, code); std::exit(1); } }

int main(int argc, char** argv) {
  const char* local = getenv("OMPI_COMM_WORLD_LOCAL_RANK");
  check(cudaSetDevice(local ? atoi(local) : 0), "device");
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  void* handle = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) { std::printf("# %s\n", dlerror()); return 1; }
  FN(ncclGetUniqueId, int (*)(Id*))
  FN(ncclCommInitRank, int (*)(Comm*, int, Id, int))
  FN(ncclGroupStart, int (*)())
  FN(ncclGroupEnd, int (*)())
  FN(ncclSend, int (*)(const void*, std::size_t, int, int, Comm, cudaStream_t))
  FN(ncclRecv, int (*)(void*, std::size_t, int, int, Comm, cudaStream_t))
  FN(ncclAllReduce, int (*)(const void*, void*, std::size_t, int, int, Comm, cudaStream_t))
  FN(ncclAllGather, int (*)(const void*, void*, std::size_t, int, Comm, cudaStream_t))
  FN(ncclReduceScatter, int (*)(const void*, void*, std::size_t, int, int, Comm, cudaStream_t))
  FN(ncclBroadcast, int (*)(const void*, void*, std::size_t, int, int, Comm, cudaStream_t))
  Id id;
  if (rank == 0) check(ncclGetUniqueId(&id), "id");
  MPI_Bcast(&id, sizeof id, MPI_BYTE, 0, MPI_COMM_WORLD);
  Comm comm;
  check(ncclCommInitRank(&comm, ranks, id, rank), "init");
  cudaStream_t stream;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  const std::size_t most = std::atol(argv[2]);
  char *from, *to;
  check(cudaMalloc(reinterpret_cast<void**>(&from), most), "malloc");
  check(cudaMalloc(reinterpret_cast<void**>(&to), most), "malloc");
  check(cudaMemset(from, 0, most), "memset");
  for (int arg = 3; arg < argc; ++arg) {
    const std::string op = argv[arg];
    const auto once = [&](std::size_t size) {
      const std::size_t part = size / ranks / 16 * 16;
      if (op == "all_reduce") check(ncclAllReduce(from, to, size / 4, 7, 0, comm, stream), "call");
      else if (op == "all_gather") check(ncclAllGather(from, to, part / 4, 7, comm, stream), "call");
      else if (op == "reduce_scatter") check(ncclReduceScatter(from, to, part / 4, 7, 0, comm, stream), "call");
      else if (op == "broadcast") check(ncclBroadcast(from, to, size / 4, 7, 0, comm, stream), "call");
      else {
        ncclGroupStart();
        for (int r = 0; r < ranks; ++r) {
          if (op == "sendrecv" && r > 0) break;
          const int to_rank = op == "sendrecv" ? (rank + 1) % ranks : r, from_rank = op == "sendrecv" ? (rank + ranks - 1) % ranks : r;
          const std::size_t bytes = op == "sendrecv" ? size : part, offset = op == "sendrecv" ? 0 : r * part;
          ncclSend(from + offset, bytes / 4, 7, to_rank, comm, stream);
          ncclRecv(to + offset, bytes / 4, 7, from_rank, comm, stream);
        }
        check(ncclGroupEnd(), "call");
      }
    };
    for (std::size_t size = 128; size <= most; size *= 2) {
      for (int k = 0; k < 5; ++k) once(size);
      check(cudaStreamSynchronize(stream), "sync");
      const int calls = size < (8u << 20) ? 100 : 20, rounds = 7;
      std::vector<double> times;
      double host = 1e9;
      for (int round = 0; round < rounds; ++round) {
        MPI_Barrier(MPI_COMM_WORLD);
        const double begin = MPI_Wtime();
        for (int k = 0; k < calls; ++k) once(size);
        host = std::min(host, (MPI_Wtime() - begin) / calls * 1e6);
        check(cudaStreamSynchronize(stream), "sync");
        double mine = (MPI_Wtime() - begin) / calls * 1e6, sum = 0;
        MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        times.push_back(sum / ranks);
      }
      std::sort(times.begin(), times.end());
      double hosts = 0;
      MPI_Reduce(&host, &hosts, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
      if (rank == 0) { std::printf("%d %s %zu %.2f %.2f %.2f\n", ranks, op.c_str(), size, times[rounds / 2], times[0], hosts / ranks); std::fflush(stdout); }
    }
  }
  MPI_Finalize();
  std::_Exit(0);
}
