// SPDX-License-Identifier: Apache-2.0
// What a synchronous copy of one short message between host and GPU memory takes while a kernel runs, as libfabric's
// providers copy messages that arrived before their receive (cudaMemcpy): from host memory that CUDA knows (registered)
// and that it does not. short-copies ITERATIONS BYTES...
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

void check(cudaError_t result, int line) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s line %d\n", cudaGetErrorString(result), line);
  std::exit(1);
}
#define CUDA(call) check(call, __LINE__)

/// Runs until it is told to stop, as NCCL's kernel does while its proxies work.
__global__ void spin(volatile int* stop) {
  while (*stop == 0) {}
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int iterations = std::atoi(argv[1]);
  constexpr std::size_t most = 1 << 20;
  char *device = nullptr, *registered = nullptr;
  CUDA(cudaMalloc(&device, most));
  CUDA(cudaMallocHost(&registered, most));
  char* plain = static_cast<char*>(std::aligned_alloc(4096, most));
  std::fill(plain, plain + most, 1);
  int* stop = nullptr;  // in GPU memory: polling host memory would fill the slot
  CUDA(cudaMalloc(&stop, sizeof *stop));
  cudaStream_t stream;
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (const bool is_busy : {false, true}) {
    CUDA(cudaMemset(stop, 0, sizeof *stop));
    if (is_busy) spin<<<4, 512, 0, stream>>>(stop);
    for (int a = 2; a < argc; ++a) {
      const std::size_t bytes = std::strtoull(argv[a], nullptr, 10);
      const auto time = [&](void* to, const void* from) {
        std::vector<double> all;
        for (int i = 0; i < iterations; ++i) {
          const auto start = Clock::now();
          CUDA(cudaMemcpy(to, from, bytes, cudaMemcpyDefault));
          all.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
        }
        return median(all);
      };
      std::printf("kernel %s bytes %zu to_device registered %.2f plain %.2f to_host registered %.2f plain %.2f us\n",
                  is_busy ? "runs" : "none", bytes, time(device, registered), time(device, plain),
                  time(registered, device), time(plain, device));
      std::fflush(stdout);
    }
    CUDA(cudaMemset(stop, 1, sizeof *stop));
    CUDA(cudaStreamSynchronize(stream));
  }
  return 0;
}
