/* SPDX-License-Identifier: Apache-2.0
 * Mean time over ranks of a gather and of a scatter of blocks, as osu_gather and osu_scatter take it. Argument: gather
 * or scatter. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int is_gather = argc > 1 && strcmp(argv[1], "gather") == 0;
  char* block = calloc(1, 1 << 18);
  char* all = calloc((size_t)ranks, 1 << 18);
  for (int size = 1; size <= 1 << 18; size *= 4) {
    double mean = 0, sum;
    for (int i = 0; i < 4; ++i) {
      MPI_Barrier(MPI_COMM_WORLD);
      const double start = MPI_Wtime();
      if (is_gather)
        MPI_Gather(block, size, MPI_CHAR, all, size, MPI_CHAR, 0, MPI_COMM_WORLD);
      else
        MPI_Scatter(all, size, MPI_CHAR, block, size, MPI_CHAR, 0, MPI_COMM_WORLD);
      if (i >= 1) mean += MPI_Wtime() - start;
    }
    MPI_Reduce(&mean, &sum, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%-10d %18.2f\n", size, sum * 1e6 / 3 / ranks);
  }
  free(block);
  free(all);
  MPI_Finalize();
  return 0;
}
