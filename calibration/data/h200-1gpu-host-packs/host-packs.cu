// SPDX-License-Identifier: Apache-2.0
// What one to four thread blocks move between a GPU and host memory by how many packs of 16 bytes each thread has on its
// way: `read` from slots, `write` to slots, `step` each block reads a slot, adds memory of the GPU and writes another
// slot, as a step of a ring through host memory does. Each figure is the median of 9, GB/s each way.
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

enum class Mode { read, write, step };

__device__ void load(const ulonglong2* from, unsigned long long& a, unsigned long long& b) {
  asm volatile("ld.volatile.global.v2.u64 {%0,%1}, [%2];" : "=l"(a), "=l"(b) : "l"(from) : "memory");
}
__device__ void store(ulonglong2* to, unsigned long long a, unsigned long long b) {
  asm volatile("st.volatile.global.v2.u64 [%0], {%1,%2};" ::"l"(to), "l"(a), "l"(b) : "memory");
}

template <int unroll>
__global__ void move(Mode mode, const ulonglong2* in, ulonglong2* out, const ulonglong2* own, size_t words, int rounds,
                     unsigned long long* sink) {
  const size_t stride = size_t(gridDim.x) * blockDim.x;
  unsigned long long sum = 0;
  for (int r = 0; r < rounds; ++r)
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < words; i += stride * unroll) {
      unsigned long long a[unroll] = {}, b[unroll] = {};
#pragma unroll
      for (int u = 0; u < unroll; ++u)
        if (mode != Mode::write && i + u * stride < words) load(in + i + u * stride, a[u], b[u]);
#pragma unroll
      for (int u = 0; u < unroll; ++u) {
        const size_t at = i + u * stride;
        if (at >= words) continue;
        if (mode == Mode::step) {
          const ulonglong2 mine = own[at];
          a[u] += mine.x, b[u] += mine.y;
        }
        if (mode != Mode::read)
          store(out + at, a[u] + r, b[u]);
        else
          sum += a[u] ^ b[u];
      }
    }
  if (sum == 42) *sink = sum;
}

using Kernel = void (*)(Mode, const ulonglong2*, ulonglong2*, const ulonglong2*, size_t, int, unsigned long long*);

int main() {
  cudaDeviceProp p;
  OK(cudaGetDeviceProperties(&p, 0));
  std::printf("# %s\n# threads  packs_in_flight  mode  GB/s each way with 1, 2, 4 blocks\n", p.name);
  const size_t bytes = 1 << 20, words = bytes / 16;
  const int rounds = 256;
  unsigned long long* sink;
  ulonglong2 *in, *out, *own;
  OK(cudaMalloc(&sink, 8));
  OK(cudaMalloc(&own, bytes));
  OK(cudaMemset(own, 1, bytes));
  OK(cudaHostAlloc(&in, bytes, cudaHostAllocMapped));
  OK(cudaHostAlloc(&out, bytes, cudaHostAllocMapped));
  cudaEvent_t begin, end;
  OK(cudaEventCreate(&begin));
  OK(cudaEventCreate(&end));
  const std::vector<std::pair<int, Kernel>> kernels{{1, move<1>}, {2, move<2>}, {4, move<4>}, {6, move<6>}, {8, move<8>}};
  const std::vector<std::pair<Mode, const char*>> modes{
      {Mode::read, "read"}, {Mode::write, "write"}, {Mode::step, "step"}};
  for (int threads : {256, 512})
    for (const auto& [unroll, kernel] : kernels)
      for (const auto& [mode, name] : modes) {
        std::printf("%6d %6d %8s", threads, unroll, name);
        for (int blocks : {1, 2, 4}) {
          std::vector<double> rates;
          for (int k = 0; k < 11; ++k) {
            OK(cudaEventRecord(begin));
            kernel<<<blocks, threads>>>(mode, in, out, own, words, rounds, sink);
            OK(cudaEventRecord(end));
            OK(cudaEventSynchronize(end));
            float ms = 0;
            OK(cudaEventElapsedTime(&ms, begin, end));
            if (k >= 2) rates.push_back(double(bytes) * rounds / ms / 1e6);
          }
          std::nth_element(rates.begin(), rates.begin() + rates.size() / 2, rates.end());
          std::printf(" %7.2f", rates[rates.size() / 2]);
        }
        std::printf("\n");
      }
}
