// SPDX-License-Identifier: Apache-2.0
// Times of collectives on plain buffers and on windows of symmetric memory (NCCL_WIN_COLL_SYMMETRIC), a process per
// GPU. Usage: symmetric GPUS OPERATION plain|registered|symmetric graph|calls [BYTES...]: prints a line per size: GPUs,
// operation, buffers, way of starting, NCCL_SYM_KERNEL, NCCL_SYM_CTAS, bytes (nccl-tests' size), median and least
// microseconds per call on rank 0.
#include <cuda_runtime.h>
#include <nccl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#define CHECK(call)                                                                           \
  do {                                                                                        \
    const int code = static_cast<int>(call);                                                  \
    if (code != 0) std::printf("# " #call " gave %d\n", code), std::fflush(stdout), _exit(1); \
  } while (0)

static const char* setting(const char* name) { return std::getenv(name) != nullptr ? std::getenv(name) : "-"; }

static void run(int rank, int gpus, const std::string& op, const std::string& buffers, bool in_graph,
                const ncclUniqueId& id, const std::vector<std::size_t>& sizes) {
  constexpr std::size_t most = std::size_t{1} << 30;
  // BIND=first,stride: the rank's virtual CPU.
  if (const char* bind = std::getenv("BIND")) {
    int first = 0, stride = 1;
    std::sscanf(bind, "%d,%d", &first, &stride);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(first + rank * stride, &set);
    sched_setaffinity(0, sizeof set, &set);
  }
  CHECK(cudaSetDevice(rank));
  ncclComm_t comm;
  CHECK(ncclCommInitRank(&comm, gpus, id, rank));
  void *send, *receive;
  CHECK(ncclMemAlloc(&send, most));
  CHECK(ncclMemAlloc(&receive, most));
  CHECK(cudaMemset(send, 0, most));
  ncclWindow_t windows[2];
  if (buffers == "registered") {
    void* handles[2];
    CHECK(ncclCommRegister(comm, send, most, &handles[0]));
    CHECK(ncclCommRegister(comm, receive, most, &handles[1]));
  }
  if (buffers == "symmetric") {
    CHECK(ncclCommWindowRegister(comm, send, most, &windows[0], NCCL_WIN_COLL_SYMMETRIC));
    CHECK(ncclCommWindowRegister(comm, receive, most, &windows[1], NCCL_WIN_COLL_SYMMETRIC));
  }
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  const auto call = [&](std::size_t bytes) {
    const std::size_t count = bytes / sizeof(float);
    if (op == "all_reduce") CHECK(ncclAllReduce(send, receive, count, ncclFloat, ncclSum, comm, stream));
    if (op == "all_gather") CHECK(ncclAllGather(send, receive, count / gpus, ncclFloat, comm, stream));
    if (op == "broadcast") CHECK(ncclBroadcast(send, receive, count, ncclFloat, 0, comm, stream));
    if (op == "reduce_scatter") CHECK(ncclReduceScatter(send, receive, count / gpus, ncclFloat, ncclSum, comm, stream));
  };
  for (const std::size_t bytes : sizes) {
    const int calls = bytes < (std::size_t{64} << 20) ? 20 : 4;
    const int rounds = bytes < (std::size_t{64} << 20) ? 25 : 8;
    for (int i = 0; i < 3; ++i) call(bytes);
    CHECK(cudaStreamSynchronize(stream));
    cudaGraphExec_t graph{};
    if (in_graph) {
      cudaGraph_t captured;
      CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
      for (int i = 0; i < calls; ++i) call(bytes);
      CHECK(cudaStreamEndCapture(stream, &captured));
      CHECK(cudaGraphInstantiate(&graph, captured, 0));
    }
    std::vector<double> times;
    for (int round = 0; round < rounds; ++round) {
      const auto start = std::chrono::steady_clock::now();
      CHECK(cudaEventRecord(begin, stream));
      if (in_graph)
        CHECK(cudaGraphLaunch(graph, stream));
      else
        for (int i = 0; i < calls; ++i) call(bytes);
      CHECK(cudaEventRecord(end, stream));
      CHECK(cudaEventSynchronize(end));
      float of_events = 0;
      CHECK(cudaEventElapsedTime(&of_events, begin, end));
      const double of_host =
          std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
      times.push_back((in_graph ? of_events * 1e3 : of_host) / calls);
    }
    times.erase(times.begin(), times.begin() + 3);
    std::sort(times.begin(), times.end());
    if (rank == 0) {
      std::printf("%d %s %s %s %s %s %zu %.3f %.3f\n", gpus, op.c_str(), buffers.c_str(), in_graph ? "graph" : "calls",
                  setting("NCCL_SYM_KERNEL"), setting("NCCL_SYM_CTAS"), bytes, times[times.size() / 2], times[0]);
      std::fflush(stdout);
    }
    if (times[0] > 8000) break;  // the ranks agree within far less than the factor of two to the next size
  }
  CHECK(cudaStreamSynchronize(stream));
  _exit(0);
}

int main(int argc, char** argv) {
  if (argc < 5) return 1;
  const int gpus = std::atoi(argv[1]);
  std::vector<std::size_t> sizes;
  for (int i = 5; i < argc; ++i) sizes.push_back(std::strtoull(argv[i], nullptr, 10));
  if (sizes.empty())
    for (std::size_t bytes = 256; bytes <= std::size_t{1} << 30; bytes *= 2) sizes.push_back(bytes);
  std::vector<int> pipes(2 * gpus);
  for (int r = 0; r < gpus; ++r)
    if (pipe(&pipes[2 * r]) != 0) return 1;
  for (int r = 0; r < gpus; ++r) {
    if (fork() != 0) continue;
    ncclUniqueId id;
    if (r == 0) {
      CHECK(ncclGetUniqueId(&id));
      for (int other = 1; other < gpus; ++other)
        if (write(pipes[2 * other + 1], &id, sizeof id) != sizeof id) _exit(1);
    } else if (read(pipes[2 * r], &id, sizeof id) != sizeof id) {
      _exit(1);
    }
    run(r, gpus, argv[2], argv[3], std::string(argv[4]) == "graph", id, sizes);
  }
  int failed = 0;
  for (int r = 0, status = 0; r < gpus; ++r) wait(&status), failed |= status;
  return failed != 0;
}
