// SPDX-License-Identifier: Apache-2.0
// Times of operations that one thread per GPU starts, all threads in one process, as nccl-tests do with -t N -g 1.
// Usage: threads LIBNCCL LIBCUDART GPUS OP: one line per size: GPUs, operation, bytes, microseconds of a call until
// thread 0's GPU is through (mean of rounds, least), least until the thread had started it.
#include <dlfcn.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

using Comm = void*;
using Stream = void*;
static void* lib(const char* path) {
  void* handle = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  if (handle == nullptr) {
    std::printf("# %s\n", dlerror());
    std::exit(1);
  }
  return handle;
}
#define FN(handle, name, type)                              \
  auto name = reinterpret_cast<type>(dlsym(handle, #name)); \
  if (name == nullptr) {                                    \
    std::printf("# no " #name "\n");                        \
    return 1;                                               \
  }
static void check(int code, const char* what) {
  if (code != 0) {
    std::printf("# %s: %d\n", what, code);
    std::exit(1);
  }
}
struct Barrier {
  int n;
  std::atomic<int> count{0}, phase{0};
  void wait() {
    int p = phase;
    if (++count == n) {
      count = 0;
      ++phase;
    } else
      while (phase == p) {}
  }
};

int main(int argc, char** argv) {
  if (argc < 5) return 1;
  void* rt = lib(argv[2]);
  void* nc = lib(argv[1]);
  const int gpus = std::atoi(argv[3]);
  const std::string op = argv[4];
  FN(rt, cudaSetDevice, int (*)(int))
  FN(rt, cudaMalloc, int (*)(void**, std::size_t))
  FN(rt, cudaStreamCreateWithFlags, int (*)(Stream*, unsigned))
  FN(rt, cudaStreamSynchronize, int (*)(Stream))
  FN(nc, ncclCommInitAll, int (*)(Comm*, int, const int*))
  FN(nc, ncclGroupStart, int (*)())
  FN(nc, ncclGroupEnd, int (*)())
  FN(nc, ncclSend, int (*)(const void*, std::size_t, int, int, Comm, Stream))
  FN(nc, ncclRecv, int (*)(void*, std::size_t, int, int, Comm, Stream))
  FN(nc, ncclAllReduce, int (*)(const void*, void*, std::size_t, int, int, Comm, Stream))
  auto ncclAlltoAll =
      reinterpret_cast<int (*)(const void*, void*, std::size_t, int, Comm, Stream)>(dlsym(nc, "ncclAlltoAll"));
  std::vector<Comm> comms(gpus);
  std::vector<Stream> streams(gpus);
  std::vector<char*> from(gpus), to(gpus);
  std::vector<int> devices;
  const std::size_t most = 4u << 20;
  for (int i = 0; i < gpus; ++i) {
    devices.push_back(i);
    check(cudaSetDevice(i), "device");
    check(cudaMalloc(reinterpret_cast<void**>(&from[i]), most), "malloc");
    check(cudaMalloc(reinterpret_cast<void**>(&to[i]), most), "malloc");
    check(cudaStreamCreateWithFlags(&streams[i], 1), "stream");
  }
  check(ncclCommInitAll(comms.data(), gpus, devices.data()), "init");
  Barrier barrier{gpus};
  auto now = [] {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  auto work = [&](int i) {
    cudaSetDevice(i);
    auto once = [&](std::size_t size) {
      if (op == "all_reduce") {
        check(ncclAllReduce(from[i], to[i], size / 4, 7, 0, comms[i], streams[i]), "all_reduce");
      } else if (op == "alltoall_call") {
        check(ncclAlltoAll(from[i], to[i], size / gpus / 4, 7, comms[i], streams[i]), "alltoall");
      } else if (op == "alltoall") {
        ncclGroupStart();
        for (int r = 0; r < gpus; ++r) {
          ncclSend(from[i] + r * (size / gpus), size / gpus / 4, 7, r, comms[i], streams[i]);
          ncclRecv(to[i] + r * (size / gpus), size / gpus / 4, 7, r, comms[i], streams[i]);
        }
        check(ncclGroupEnd(), "end");
      } else {
        ncclGroupStart();
        ncclSend(from[i], size / 4, 7, (i + 1) % gpus, comms[i], streams[i]);
        ncclRecv(to[i], size / 4, 7, (i + gpus - 1) % gpus, comms[i], streams[i]);
        check(ncclGroupEnd(), "end");
      }
    };
    for (std::size_t size : {256u, 16384u, 262144u, 2097152u}) {
      for (int k = 0; k < 5; ++k) once(size);
      check(cudaStreamSynchronize(streams[i]), "sync");
      const int calls = 200, rounds = 7;
      double best = 1e9, sum = 0, host = 1e9;
      for (int round = 0; round < rounds; ++round) {
        barrier.wait();
        const double begin = now();
        for (int k = 0; k < calls; ++k) once(size);
        const double started = now();
        check(cudaStreamSynchronize(streams[i]), "sync");
        const double took = (now() - begin) / calls;
        barrier.wait();
        best = took < best ? took : best;
        sum += took;
        host = (started - begin) / calls < host ? (started - begin) / calls : host;
      }
      if (i == 0) {
        std::printf("%d %s %zu %.2f %.2f %.2f\n", gpus, op.c_str(), size, sum / rounds, best, host);
        std::fflush(stdout);
      }
      barrier.wait();
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < gpus; ++i) threads.emplace_back(work, i);
  for (auto& thread : threads) thread.join();
  std::_Exit(0);
}
