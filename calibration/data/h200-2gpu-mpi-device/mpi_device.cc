// SPDX-License-Identifier: Apache-2.0
// Times MPI between ranks of one host with buffers in GPU or host memory, the way the OSU micro-benchmarks time it: latency (ping-pong, half of
// a round), bandwidth (windows of 64 non-blocking sends, a 4-byte reply), collectives (a barrier, then the call, each rank's own mean; mean over
// ranks). Usage: mpirun -n RANKS mpi_device BENCHMARK MAX_BYTES WHERE GPUS: WHERE is two letters of D and H (sender, receiver); rank r takes GPU r mod GPUS.
#include <cuda_runtime.h>
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

int rank, ranks;

static int iterations(long bytes, bool collective) {
  if (collective) return bytes <= 8192 ? 200 : bytes <= 262144 ? 50 : 12;
  return bytes <= 8192 ? 1000 : bytes <= 262144 ? 200 : 40;
}

static double latency(char* in, char* out, long bytes) {
  int n = iterations(bytes, false), skip = n / 10;
  double start = 0;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < n + skip; ++i) {
    if (i == skip) start = MPI_Wtime();
    if (rank % 2 == 0) {
      MPI_Send(out, bytes, MPI_CHAR, rank + 1, 1, MPI_COMM_WORLD);
      MPI_Recv(in, bytes, MPI_CHAR, rank + 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Recv(in, bytes, MPI_CHAR, rank - 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      MPI_Send(out, bytes, MPI_CHAR, rank - 1, 1, MPI_COMM_WORLD);
    }
  }
  return (MPI_Wtime() - start) / n / 2;
}

static double window(char* in, char* out, char* note, long bytes) {
  const int width = 64;
  int n = std::max(4, iterations(bytes, false) / 40), skip = 2;
  std::vector<MPI_Request> requests(width);
  double start = 0;
  bool even = rank % 2 == 0;
  int peer = even ? rank + 1 : rank - 1;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < n + skip; ++i) {
    if (i == skip) { MPI_Barrier(MPI_COMM_WORLD); start = MPI_Wtime(); }
    for (auto& one : requests)
      if (even) MPI_Isend(out, bytes, MPI_CHAR, peer, 10, MPI_COMM_WORLD, &one);
      else MPI_Irecv(in, bytes, MPI_CHAR, peer, 10, MPI_COMM_WORLD, &one);
    MPI_Waitall(width, requests.data(), MPI_STATUSES_IGNORE);
    if (even) MPI_Recv(note, 4, MPI_CHAR, peer, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else MPI_Send(note, 4, MPI_CHAR, peer, 11, MPI_COMM_WORLD);
  }
  return (MPI_Wtime() - start) / n;
}

int main(int argc, char** argv) {
  if (argc < 5) return 1;
  std::string what = argv[1], where = argv[3];
  long most = atol(argv[2]);
  int gpus = atoi(argv[4]);
  const char* local = getenv("OMPI_COMM_WORLD_LOCAL_RANK");
  if (cudaSetDevice((local ? atoi(local) : 0) % gpus) != cudaSuccess) return 1;
  cudaFree(nullptr);
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  bool many = what != "osu_latency" && what != "osu_bw" && what != "osu_bcast";
  size_t room = (size_t)most * (what == "osu_allgather" || what == "osu_alltoall" ? ranks : 1) + 4096;
  char place = where[rank % 2], *in, *out, note[4];
  if (place == 'D') {
    if (cudaMalloc((void**)&in, room) != cudaSuccess || cudaMalloc((void**)&out, room) != cudaSuccess) return 1;
    cudaMemset(in, 0, room);
    cudaMemset(out, 1, room);
    cudaDeviceSynchronize();
  } else {
    if (posix_memalign((void**)&in, 4096, room) || posix_memalign((void**)&out, 4096, room)) return 1;
    memset(in, 0, room);
    memset(out, 1, room);
  }
  std::vector<int> counts(ranks);
  if (rank == 0) printf("# %s, %d ranks, %s, %d GPUs\n%-10s %14s %14s %14s\n", what.c_str(), ranks, where.c_str(), gpus, "# Size", "Mean", "Min", "Max");
  for (long bytes = many ? 4 : 1; bytes <= most; bytes *= 2) {
    double mine = 0;
    if (what == "osu_latency") mine = latency(in, out, bytes) * 1e6;
    else if (what == "osu_bw") mine = 64.0 * bytes / window(in, out, note, bytes) / 1e6;
    else {
      int n = iterations(bytes, true), skip = std::max(2, n / 10);
      double sum = 0;
      for (int r = 0; r < ranks; ++r) counts[r] = bytes / 4 / ranks + (r < (int)(bytes / 4 % ranks));
      for (int i = 0; i < n + skip; ++i) {
        MPI_Barrier(MPI_COMM_WORLD);
        double start = MPI_Wtime();
        if (what == "osu_allreduce") MPI_Allreduce(out, in, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        else if (what == "osu_bcast") MPI_Bcast(out, bytes, MPI_CHAR, 0, MPI_COMM_WORLD);
        else if (what == "osu_allgather") MPI_Allgather(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, MPI_COMM_WORLD);
        else if (what == "osu_alltoall") MPI_Alltoall(out, bytes, MPI_CHAR, in, bytes, MPI_CHAR, MPI_COMM_WORLD);
        else if (what == "osu_reduce_scatter") MPI_Reduce_scatter(out, in, counts.data(), MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        else return 2;
        if (i >= skip) sum += MPI_Wtime() - start;
      }
      mine = sum / n * 1e6;
    }
    double mean, least, largest;
    MPI_Reduce(&mine, &mean, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&mine, &least, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Reduce(&mine, &largest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%-10ld %14.2f %14.2f %14.2f\n", bytes, mean / ranks, least, largest), fflush(stdout);
  }
  MPI_Finalize();
}
