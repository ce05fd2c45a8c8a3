/* SPDX-License-Identifier: Apache-2.0
 * One-way latency of blocking messages between the first two ranks, in the columns of osu_latency. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char* buffer = calloc(1, 1 << 22);
  if (rank == 0) printf("# OSU MPI Latency Test\n# Size          Latency (us)\n");
  for (int size = 1; size <= 1 << 22; size *= 2) {
    double start = 0;
    for (int i = 0; i < 25; ++i) {
      if (i == 5) start = MPI_Wtime();
      if (rank == 0) {
        MPI_Send(buffer, size, MPI_CHAR, 1, 1, MPI_COMM_WORLD);
        MPI_Recv(buffer, size, MPI_CHAR, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      } else if (rank == 1) {
        MPI_Recv(buffer, size, MPI_CHAR, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(buffer, size, MPI_CHAR, 0, 1, MPI_COMM_WORLD);
      }
    }
    if (rank == 0) printf("%-10d %18.2f\n", size, (MPI_Wtime() - start) * 1e6 / 40);
  }
  free(buffer);
  MPI_Finalize();
  return 0;
}
