// SPDX-License-Identifier: Apache-2.0
// NCCL over sockets of one machine.
//   hosts-over-sockets threads COMMUNICATORS ITERATIONS SIZES...   of GPUs 0 and 1 in one process, a launching thread
//   each hosts-over-sockets process RANK RANKS GPU IDFILE OPERATION ITERATIONS SIZES...   one process per rank
#include <cuda_runtime.h>
#include <nccl.h>
#include <unistd.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace {

void check(bool is_good, const char* what, int line) {
  if (is_good) return;
  std::printf("%s, line %d\n", what, line);
  std::exit(1);
}
#define CUDA(call) check((call) == cudaSuccess, #call, __LINE__)
#define NCCL(call) check((call) == ncclSuccess, #call, __LINE__)

struct Rank {
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  char* in = nullptr;
  char* out = nullptr;
};

void allocate(Rank& rank, int gpu, std::size_t bytes) {
  CUDA(cudaSetDevice(gpu));
  CUDA(cudaStreamCreateWithFlags(&rank.stream, cudaStreamNonBlocking));
  CUDA(cudaMalloc(&rank.in, bytes));
  CUDA(cudaMalloc(&rank.out, bytes));
  CUDA(cudaMemset(rank.in, 0, bytes));
}

/// Large sizes are not repeated as often.
int repeats(std::size_t size, int iterations) { return size < (4U << 20U) ? iterations : std::max(4, iterations / 10); }

double mean_us(const std::function<void(int)>& run, int count) {
  const auto start = std::chrono::steady_clock::now();
  run(count);
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count() / count;
}

void all_reduce(const Rank& rank, std::size_t size) {
  NCCL(ncclAllReduce(rank.in, rank.out, size / 4, ncclFloat, ncclSum, rank.comm, rank.stream));
}

int threads(int communicators, int iterations, const std::vector<std::size_t>& sizes) {
  const int gpus[] = {0, 1};
  const auto most = *std::max_element(sizes.begin(), sizes.end());
  std::vector<std::vector<Rank>> all(communicators, std::vector<Rank>(2));
  for (auto& one : all) {
    ncclComm_t comms[2];
    NCCL(ncclCommInitAll(comms, 2, gpus));
    for (int gpu : gpus) {
      one[gpu].comm = comms[gpu];
      allocate(one[gpu], gpu, most);
    }
  }
  for (int active = 1; active <= communicators; active *= 2) {
    for (const auto size : sizes) {
      const int count = repeats(size, iterations);
      std::vector<double> times(active);
      std::barrier gate(active);
      std::vector<std::thread> pool;
      for (int i = 0; i < active; ++i) {
        pool.emplace_back([&, i] {
          const auto run = [&](int times_over) {
            for (int j = 0; j < times_over; ++j) {
              NCCL(ncclGroupStart());
              for (const auto& rank : all[i]) all_reduce(rank, size);
              NCCL(ncclGroupEnd());
            }
            for (int gpu : gpus) {
              CUDA(cudaSetDevice(gpu));
              CUDA(cudaStreamSynchronize(all[i][gpu].stream));
            }
          };
          gate.arrive_and_wait();
          run(std::max(2, count / 5));
          gate.arrive_and_wait();
          times[i] = mean_us(run, count);
          gate.arrive_and_wait();
        });
      }
      for (auto& one : pool) one.join();
      double sum = 0;
      for (const double time : times) sum += time;
      std::printf("communicators %d size %zu time_us %.2f\n", active, size, sum / active);
      std::fflush(stdout);
    }
  }
  return 0;
}

ncclUniqueId shared_id(int rank, const std::string& file) {
  ncclUniqueId id;
  if (rank == 0) {
    NCCL(ncclGetUniqueId(&id));
    std::FILE* out = std::fopen((file + ".new").c_str(), "wb");
    check(std::fwrite(&id, sizeof id, 1, out) == 1, "writing the id", __LINE__);
    std::fclose(out);
    std::rename((file + ".new").c_str(), file.c_str());
    return id;
  }
  std::FILE* in = nullptr;
  while ((in = std::fopen(file.c_str(), "rb")) == nullptr) usleep(10000);
  check(std::fread(&id, sizeof id, 1, in) == 1, "reading the id", __LINE__);
  std::fclose(in);
  return id;
}

void operate(const std::string& operation, const Rank& rank, int me, int ranks, std::size_t size) {
  if (operation == "all_reduce") return all_reduce(rank, size);
  const std::size_t part = size / 4 / ranks;
  if (operation == "all_gather") return NCCL(ncclAllGather(rank.in, rank.out, part, ncclFloat, rank.comm, rank.stream));
  if (operation == "reduce_scatter")
    return NCCL(ncclReduceScatter(rank.in, rank.out, part, ncclFloat, ncclSum, rank.comm, rank.stream));
  if (operation == "broadcast")
    return NCCL(ncclBroadcast(rank.in, rank.out, size / 4, ncclFloat, 0, rank.comm, rank.stream));
  const bool is_all = operation == "alltoall";
  NCCL(ncclGroupStart());
  for (int i = 0; i < (is_all ? ranks : 1); ++i) {
    const std::size_t count = is_all ? part : size / 4, at = is_all ? i * part * 4 : 0;
    NCCL(ncclSend(rank.in + at, count, ncclFloat, is_all ? i : (me + 1) % ranks, rank.comm, rank.stream));
    NCCL(ncclRecv(rank.out + at, count, ncclFloat, is_all ? i : (me + ranks - 1) % ranks, rank.comm, rank.stream));
  }
  NCCL(ncclGroupEnd());
}

int process(int me, int ranks, int gpu, const std::string& file, const std::string& operation, int iterations,
            const std::vector<std::size_t>& sizes) {
  const auto id = shared_id(me, file);
  Rank rank;
  allocate(rank, gpu, *std::max_element(sizes.begin(), sizes.end()));
  NCCL(ncclCommInitRank(&rank.comm, ranks, id, me));
  const auto meet = [&] {
    all_reduce(rank, 4);
    CUDA(cudaStreamSynchronize(rank.stream));
  };
  for (const auto size : sizes) {
    const auto run = [&](int count) {
      for (int j = 0; j < count; ++j) operate(operation, rank, me, ranks, size);
      CUDA(cudaStreamSynchronize(rank.stream));
    };
    const int count = repeats(size, iterations);
    run(std::max(2, count / 5));
    meet();
    const double time = mean_us(run, count);
    meet();
    if (me == 0) std::printf("ranks %d op %s size %zu time_us %.2f\n", ranks, operation.c_str(), size, time);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool is_threads = words.at(0) == "threads";
  std::vector<std::size_t> sizes;
  for (std::size_t i = is_threads ? 3 : 7; i < words.size(); ++i) sizes.push_back(std::stoull(words[i]));
  const auto number = [&](std::size_t i) { return std::stoi(words.at(i)); };
  return is_threads ? threads(number(1), number(2), sizes)
                    : process(number(1), number(2), number(3), words.at(4), words.at(5), number(6), sizes);
}
