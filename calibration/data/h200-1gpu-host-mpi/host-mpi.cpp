// Times MPI between ranks of one host, host memory, the way the OSU micro-benchmarks time it: latency (ping-pong, half of a round), bandwidth
// (windows of 64 non-blocking sends from each even rank to the next odd one, a 4-byte reply), both directions at once, and collectives (a barrier, then the call,
// each rank's own mean; the table has the mean of those over ranks). Usage: mpirun -n RANKS host-mpi BENCHMARK MAX_BYTES
#include <mpi.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

int rank, ranks;

static int iterations(long bytes, bool collective) {
  if (collective) return bytes <= 8192 ? 400 : bytes <= 262144 ? 60 : 12;
  return bytes <= 8192 ? 4000 : bytes <= 262144 ? 400 : 40;
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

// Seconds of one window. Where `ways` is 2, both sides send.
static double window(char* in, char* out, long bytes, int ways) {
  const int width = 64;
  int n = std::max(5, iterations(bytes, false) / 20), skip = std::max(2, n / 10);
  std::vector<MPI_Request> sent(width), received(width);
  double start = 0;
  bool even = rank % 2 == 0;
  int peer = even ? rank + 1 : rank - 1;
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < n + skip; ++i) {
    if (i == skip) { MPI_Barrier(MPI_COMM_WORLD); start = MPI_Wtime(); }
    if (!even || ways == 2)
      for (auto& one : received) MPI_Irecv(in, bytes, MPI_CHAR, peer, 10, MPI_COMM_WORLD, &one);
    if (even || ways == 2)
      for (auto& one : sent) MPI_Isend(out, bytes, MPI_CHAR, peer, 10, MPI_COMM_WORLD, &one);
    if (even || ways == 2) MPI_Waitall(width, sent.data(), MPI_STATUSES_IGNORE);
    if (!even || ways == 2) MPI_Waitall(width, received.data(), MPI_STATUSES_IGNORE);
    if (even) MPI_Recv(in, 4, MPI_CHAR, peer, 11, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    else MPI_Send(out, 4, MPI_CHAR, peer, 11, MPI_COMM_WORLD);
  }
  return (MPI_Wtime() - start) / n;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::string what = argv[1];
  long most = atol(argv[2]);
  bool many = what == "osu_allgather" || what == "osu_alltoall" || what == "osu_reduce_scatter" || what == "osu_allreduce";
  // OSU takes one page-aligned buffer of the largest size for either direction, touched before.
  size_t room = (size_t)most * (what == "osu_allgather" || what == "osu_alltoall" ? ranks : 1) + 4096;
  char *in, *out;
  if (posix_memalign((void**)&in, 4096, room) || posix_memalign((void**)&out, 4096, room)) return 1;
  memset(in, 0, room);
  memset(out, 1, room);
  std::vector<int> counts(ranks);
  if (rank == 0) printf("# %s, %d ranks\n%-10s %14s %14s %14s\n", what.c_str(), ranks, "# Size", "Mean", "Min", "Max");
  for (long bytes = many ? 4 : 1; bytes <= most; bytes *= 2) {
    double mine = 0;
    if (what == "osu_latency") mine = latency(in, out, bytes) * 1e6;
    else if (what == "osu_bw" || what == "osu_bibw") {
      int ways = what == "osu_bw" ? 1 : 2;
      mine = ways * 64.0 * bytes / window(in, out, bytes, ways) / 1e6;
    } else {
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
    double mean, least, most_of_all;
    MPI_Reduce(&mine, &mean, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&mine, &least, 1, MPI_DOUBLE, MPI_MIN, 0, MPI_COMM_WORLD);
    MPI_Reduce(&mine, &most_of_all, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%-10ld %14.2f %14.2f %14.2f\n", bytes, mean / ranks, least, most_of_all), fflush(stdout);
  }
  MPI_Finalize();
}
