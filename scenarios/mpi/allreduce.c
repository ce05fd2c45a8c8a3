/* SPDX-License-Identifier: Apache-2.0
 * Mean time of an all-reduce of floats over all ranks, in the columns of osu_allreduce. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  float* in = calloc(1, 1 << 20);
  float* out = calloc(1, 1 << 20);
  if (rank == 0) printf("# OSU MPI Allreduce Latency Test\n# Size       Avg Latency(us)\n");
  for (int size = 4; size <= 1 << 20; size *= 2) {
    double mean = 0, sum;
    for (int i = 0; i < 12; ++i) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double start = MPI_Wtime();
      MPI_Allreduce(in, out, size / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      if (i >= 2) mean += MPI_Wtime() - start;
    }
    MPI_Reduce(&mean, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%-10d %18.2f\n", size, sum * 1e6 / 10 / ranks);
  }
  free(in);
  free(out);
  MPI_Finalize();
  return 0;
}
