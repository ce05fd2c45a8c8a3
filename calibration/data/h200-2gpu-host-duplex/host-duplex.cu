// SPDX-License-Identifier: Apache-2.0
// What thread blocks move between a GPU and host memory in one direction and in both at once: `read` from slots, `write`
// to slots, `apart` both by as many blocks each, `step` each block reads a slot, adds memory of the GPU and writes
// another slot, as a step of a ring through host memory does. On GPU 0 alone and on GPU 0 and 1 at once. Each figure is
// the median of 9, GB/s each way of one GPU.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define OK(call)                                                      \
  do {                                                                \
    const cudaError_t e = (call);                                     \
    if (e != cudaSuccess) {                                           \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e)); \
      std::exit(1);                                                   \
    }                                                                 \
  } while (0)

enum class Mode { read, write, apart, step };

__device__ void load(const ulonglong2* from, unsigned long long& a, unsigned long long& b) {
  asm volatile("ld.volatile.global.v2.u64 {%0,%1}, [%2];" : "=l"(a), "=l"(b) : "l"(from) : "memory");
}
__device__ void store(ulonglong2* to, unsigned long long a, unsigned long long b) {
  asm volatile("st.volatile.global.v2.u64 [%0], {%1,%2};" ::"l"(to), "l"(a), "l"(b) : "memory");
}

__global__ void move(Mode mode, const ulonglong2* in, ulonglong2* out, const ulonglong2* own, size_t words, int rounds,
                     unsigned long long* sink) {
  constexpr int unroll = 4;
  const bool is_apart = mode == Mode::apart;
  const int blocks = is_apart ? gridDim.x / 2 : gridDim.x;
  const int block = is_apart ? blockIdx.x / 2 : blockIdx.x;
  const bool reads = mode == Mode::read || mode == Mode::step || (is_apart && blockIdx.x % 2 == 0);
  const bool writes = mode == Mode::write || mode == Mode::step || (is_apart && blockIdx.x % 2 == 1);
  const size_t stride = size_t(blocks) * blockDim.x;
  unsigned long long sum = 0;
  for (int r = 0; r < rounds; ++r)
    for (size_t i = block * size_t(blockDim.x) + threadIdx.x; i < words; i += stride * unroll) {
      unsigned long long a[unroll] = {}, b[unroll] = {};
      for (int u = 0; u < unroll; ++u)
        if (reads && i + u * stride < words) load(in + i + u * stride, a[u], b[u]);
      for (int u = 0; u < unroll; ++u) {
        const size_t at = i + u * stride;
        if (at >= words) continue;
        if (mode == Mode::step) {
          const ulonglong2 mine = own[at];
          a[u] += mine.x, b[u] += mine.y;
        }
        if (writes)
          store(out + at, a[u] + r, b[u]);
        else
          sum += a[u] ^ b[u];
      }
    }
  if (sum == 42) *sink = sum;
}

struct Gpu {
  int device;
  cudaStream_t stream;
  cudaEvent_t begin, end;
  unsigned long long* sink;
  ulonglong2 *in, *out, *own;
  Gpu(int d, size_t bytes) : device(d) {
    OK(cudaSetDevice(d));
    OK(cudaStreamCreate(&stream));
    OK(cudaEventCreate(&begin));
    OK(cudaEventCreate(&end));
    OK(cudaMalloc(&sink, 8));
    OK(cudaMalloc(&own, bytes));
    OK(cudaMemset(own, 1, bytes));
    OK(cudaHostAlloc(&in, bytes, cudaHostAllocPortable | cudaHostAllocMapped));
    OK(cudaHostAlloc(&out, bytes, cudaHostAllocPortable | cudaHostAllocMapped));
  }
  ~Gpu() {
    OK(cudaSetDevice(device));
    OK(cudaFree(sink));
    OK(cudaFree(own));
    OK(cudaFreeHost(in));
    OK(cudaFreeHost(out));
  }
  void start(Mode mode, int blocks, size_t words, int rounds) {
    OK(cudaSetDevice(device));
    OK(cudaEventRecord(begin, stream));
    move<<<mode == Mode::apart ? 2 * blocks : blocks, 512, 0, stream>>>(mode, in, out, own, words, rounds, sink);
    OK(cudaEventRecord(end, stream));
  }
  double wait() {
    OK(cudaSetDevice(device));
    OK(cudaEventSynchronize(end));
    float ms = 0;
    OK(cudaEventElapsedTime(&ms, begin, end));
    return ms / 1e3;
  }
};

int main() {
  cudaDeviceProp p;
  OK(cudaGetDeviceProperties(&p, 0));
  int devices = 0;
  OK(cudaGetDeviceCount(&devices));
  std::printf("# %s, %d devices\n# gpus  slots_MiB_of_a_GPU  mode  GB/s each way of the slower GPU with 1, 2, 4, 8, 16, 32 blocks\n", p.name, devices);
  const std::vector<std::pair<Mode, const char*>> modes{
      {Mode::read, "read"}, {Mode::write, "write"}, {Mode::apart, "apart"}, {Mode::step, "step"}};
  for (int gpus : {1, 2})
    for (double mib : {0.5, 2., 128.}) {
      const size_t bytes = size_t(mib * 1048576 / 2), words = bytes / 16;  // in and out
      std::vector<Gpu*> all;
      for (int g = 0; g < gpus; ++g) all.push_back(new Gpu(g, bytes));
      for (const auto& [mode, name] : modes) {
        std::printf("%6d %10.1f %8s", gpus, mib, name);
        for (int blocks : {1, 2, 4, 8, 16, 32}) {
          const int rounds = std::max(1, int(64 * std::min(blocks, 4) / mib));
          std::vector<double> rates;
          for (int k = 0; k < 11; ++k) {
            for (auto* gpu : all) gpu->start(mode, blocks, words, rounds);
            double most = 0;
            for (auto* gpu : all) most = std::max(most, gpu->wait());
            if (k >= 2) rates.push_back(double(bytes) * rounds / most / 1e9);
          }
          std::nth_element(rates.begin(), rates.begin() + rates.size() / 2, rates.end());
          std::printf(" %7.2f", rates[rates.size() / 2]);
        }
        std::printf("\n");
      }
      for (auto* gpu : all) delete gpu;
    }
}
