// SPDX-License-Identifier: Apache-2.0
// Times of all-to-all, send-receive and all-reduce that one thread starts for 1 or more GPUs, as nccl-tests do with -g
// N. Usage: one_thread LIBNCCL LIBCUDART GPUS OP [threads]: one line per size: GPUs, operation, bytes, microseconds of
// a call until the GPUs are through, microseconds until the thread has started it.
#include <dlfcn.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
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
  std::vector<Comm> comms(gpus);
  std::vector<Stream> streams(gpus);
  std::vector<char*> from(gpus), to(gpus);
  std::vector<int> devices;
  const std::size_t most = 256u << 20;
  for (int i = 0; i < gpus; ++i) {
    devices.push_back(i);
    check(cudaSetDevice(i), "device");
    check(cudaMalloc(reinterpret_cast<void**>(&from[i]), most), "malloc");
    check(cudaMalloc(reinterpret_cast<void**>(&to[i]), most), "malloc");
    check(cudaStreamCreateWithFlags(&streams[i], 1), "stream");
  }
  check(ncclCommInitAll(comms.data(), gpus, devices.data()), "init");
  auto once = [&](std::size_t size) {
    if (gpus > 1) ncclGroupStart();
    for (int i = 0; i < gpus; ++i) {
      if (op == "all_reduce") {
        check(ncclAllReduce(from[i], to[i], size / 4, 7, 0, comms[i], streams[i]), "all_reduce");
      } else if (op == "alltoall") {
        ncclGroupStart();
        for (int r = 0; r < gpus; ++r) {
          ncclSend(from[i] + r * (size / gpus), size / gpus / 4, 7, r, comms[i], streams[i]);
          ncclRecv(to[i] + r * (size / gpus), size / gpus / 4, 7, r, comms[i], streams[i]);
        }
        ncclGroupEnd();
      } else {
        ncclGroupStart();
        ncclSend(from[i], size / 4, 7, (i + 1) % gpus, comms[i], streams[i]);
        ncclRecv(to[i], size / 4, 7, (i + gpus - 1) % gpus, comms[i], streams[i]);
        ncclGroupEnd();
      }
    }
    if (gpus > 1) check(ncclGroupEnd(), "end");
  };
  auto sync = [&] {
    for (int i = 0; i < gpus; ++i) {
      cudaSetDevice(i);
      check(cudaStreamSynchronize(streams[i]), "sync");
    }
  };
  auto now = [] {
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  for (std::size_t size = 64; size <= most; size *= 2) {
    for (int i = 0; i < 5; ++i) once(size);
    sync();
    const int calls = size < (32u << 20) ? 40 : 10;
    double best = 1e9, sum = 0, host = 1e9;
    const int rounds = 5;
    for (int round = 0; round < rounds; ++round) {
      const double begin = now();
      for (int i = 0; i < calls; ++i) once(size);
      const double started = now();
      sync();
      const double took = (now() - begin) / calls;
      best = took < best ? took : best;
      sum += took;
      host = (started - begin) / calls < host ? (started - begin) / calls : host;
    }
    std::printf("%d %s %zu %.2f %.2f %.2f\n", gpus, op.c_str(), size, sum / rounds, best, host);
    std::fflush(stdout);
  }
  std::_Exit(0);
}
