/* SPDX-License-Identifier: Apache-2.0
 * Bandwidth of windows of 64 messages from the first rank to the second, in the columns of osu_bw. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { window = 64 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char* buffer = calloc(1, 1 << 22);
  MPI_Request requests[window];
  if (rank == 0) printf("# OSU MPI Bandwidth Test\n# Size      Bandwidth (MB/s)\n");
  for (int size = 1; size <= 1 << 22; size *= 2) {
    double start = 0;
    for (int i = 0; i < 12; ++i) {
      if (i == 2) start = MPI_Wtime();
      if (rank > 1) continue;
      for (int k = 0; k < window; ++k) {
        if (rank == 0) MPI_Isend(buffer, size, MPI_CHAR, 1, 1, MPI_COMM_WORLD, &requests[k]);
        if (rank == 1) MPI_Irecv(buffer, size, MPI_CHAR, 0, 1, MPI_COMM_WORLD, &requests[k]);
      }
      MPI_Waitall(window, requests, MPI_STATUSES_IGNORE);
      if (rank == 0) MPI_Recv(buffer, 4, MPI_CHAR, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (rank == 1) MPI_Send(buffer, 4, MPI_CHAR, 0, 2, MPI_COMM_WORLD);
    }
    if (rank == 0) printf("%-10d %18.2f\n", size, 1e-6 * size * window * 10 / (MPI_Wtime() - start));
  }
  free(buffer);
  MPI_Finalize();
  return 0;
}
