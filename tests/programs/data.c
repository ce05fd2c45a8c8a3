/* SPDX-License-Identifier: Apache-2.0
 * Every collective that is interposed gives the data that MPI promises: on all ranks, on a part of them, in place, and
 * for an operation that does not commute (SimGrid's own). */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int g_wrong = 0;
static void expect(int found, int wanted, const char* what) {
  if (found == wanted) return;
  if (g_wrong++ < 5) printf("%s: %d instead of %d\n", what, found, wanted);
}

static void later(void* in, void* inout, int* count, MPI_Datatype* type) {
  (void)in, (void)inout, (void)count, (void)type; /* keeps the operand of the higher rank */
}

static void check(MPI_Comm comm, int count) {
  int rank, ranks;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &ranks);
  int* in = malloc(sizeof(int) * (size_t)(count * ranks));
  int* out = malloc(sizeof(int) * (size_t)(count * ranks));
  const int sum = ranks * (ranks - 1) / 2, last = count * ranks - 1;
  for (int i = 0; i <= last; ++i) in[i] = rank + i, out[i] = -1;
  MPI_Allreduce(in, out, count, MPI_INT, MPI_SUM, comm);
  for (int i = 0; i < count; ++i) expect(out[i], sum + i * ranks, "allreduce");
  for (int i = 0; i < count; ++i) out[i] = rank + i;
  MPI_Allreduce(MPI_IN_PLACE, out, count, MPI_INT, MPI_MAX, comm);
  for (int i = 0; i < count; ++i) expect(out[i], ranks - 1 + i, "allreduce in place");
  MPI_Reduce(in, out, count, MPI_INT, MPI_SUM, ranks - 1, comm);
  if (rank == ranks - 1) expect(out[count - 1], sum + (count - 1) * ranks, "reduce");
  for (int i = 0; i < count; ++i) out[i] = rank == 1 % ranks ? 100 + i : 0;
  MPI_Bcast(out, count, MPI_INT, 1 % ranks, comm);
  expect(out[count - 1], 100 + count - 1, "bcast");
  MPI_Allgather(in, count, MPI_INT, out, count, MPI_INT, comm);
  for (int r = 0; r < ranks; ++r) expect(out[r * count], r, "allgather");
  MPI_Alltoall(in, count, MPI_INT, out, count, MPI_INT, comm);
  for (int r = 0; r < ranks; ++r) expect(out[r * count], r + rank * count, "alltoall");
  MPI_Reduce_scatter_block(in, out, count, MPI_INT, MPI_SUM, comm);
  expect(out[0], sum + rank * count * ranks, "reduce_scatter_block");
  const int root = ranks - 1;
  memset(out, 0, sizeof(int) * (size_t)(count * ranks));
  MPI_Gather(in, count, MPI_INT, out, count, MPI_INT, root, comm);
  for (int r = 0; r < ranks && rank == root; ++r) expect(out[r * count + count - 1], r + count - 1, "gather");
  MPI_Scatter(in, count, MPI_INT, out, count, MPI_INT, root, comm);
  expect(out[count - 1], root + rank * count + count - 1, "scatter");
  /* The root's blocks lie every second int of each other: columns of a matrix of two. */
  MPI_Datatype column, columns;
  MPI_Type_vector(count, 1, 2, MPI_INT, &column);
  MPI_Type_create_resized(column, 0, (MPI_Aint)(2 * sizeof(int)) * count, &columns);
  MPI_Type_commit(&columns);
  int* wide = calloc((size_t)(2 * count * ranks), sizeof(int));
  MPI_Gather(in, count, MPI_INT, wide, 1, columns, root, comm);
  for (int r = 0; r < ranks && rank == root; ++r)
    expect(wide[2 * (r * count + count - 1)], r + count - 1, "gather into columns");
  if (rank == root && count > 1) expect(wide[1], 0, "gather beside columns");
  for (int i = 0; i < 2 * count * ranks; ++i) wide[i] = rank * 1000 + i;
  MPI_Scatter(wide, 1, columns, out, count, MPI_INT, root, comm);
  expect(out[count - 1], root * 1000 + 2 * (rank * count + count - 1), "scatter of columns");
  for (int i = 0; i < count; ++i) out[rank * count + i] = rank + i;
  if (rank == root)
    MPI_Gather(MPI_IN_PLACE, 0, MPI_INT, out, count, MPI_INT, root, comm);
  else
    MPI_Gather(in, count, MPI_INT, NULL, 0, MPI_INT, root, comm);
  for (int r = 0; r < ranks && rank == root; ++r) expect(out[r * count], r, "gather in place");
  MPI_Type_free(&column);
  MPI_Type_free(&columns);
  free(wide);
  MPI_Op op;
  MPI_Op_create(later, 0, &op);
  MPI_Allreduce(in, out, count, MPI_INT, op, comm);
  MPI_Op_free(&op);
  MPI_Barrier(comm);
  free(in);
  free(out);
}

int main(int argc, char** argv) {
  if (argc != 4 || strcmp(argv[1], "-n") != 0 || strcmp(argv[3], "--quick") != 0) printf("other arguments\n");
  MPI_Init(&argc, &argv);
  int rank, ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (int round = 0; round < 3; ++round) {
    const int counts[] = {1, 37, 5000};
    check(MPI_COMM_WORLD, counts[round]);
    MPI_Comm part;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &part);
    check(part, counts[round]);
    MPI_Comm_free(&part);
  }
  int all = 0;
  MPI_Reduce(&g_wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0 && all == 0) printf("%d ranks: all data right\n", ranks);
  MPI_Finalize();
  return 0;
}
