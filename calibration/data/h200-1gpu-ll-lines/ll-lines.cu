// SPDX-License-Identifier: Apache-2.0
// How fast a core finds lines of NCCL's LL protocol that a GPU has just written into host memory: 16-byte lines of two
// words of data, each with a flag, checked one after the other as NCCL's send proxy does (src/transport/net.cc).
//   ll-lines ITERATIONS BYTES...   of lines; prints the time of the check alone and from launch to the last flag
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace {

struct Line {
  std::uint32_t data1, flag1, data2, flag2;
};

using Clock = std::chrono::steady_clock;

void check(cudaError_t result, int line) {
  if (result == cudaSuccess) return;
  std::fprintf(stderr, "%s line %d\n", cudaGetErrorString(result), line);
  std::exit(1);
}
#define CUDA(call) check(call, __LINE__)

__global__ void write_lines(Line* lines, std::size_t count, std::uint32_t flag) {
  for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    asm volatile("st.volatile.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(lines + i), "r"(1u), "r"(flag), "r"(2u),
                 "r"(flag));
}

bool all_found(volatile Line* lines, std::size_t count, std::uint32_t flag) {
  for (std::size_t i = 0; i < count; ++i)
    if (lines[i].flag1 != flag || lines[i].flag2 != flag) return false;
  return true;
}

double us(Clock::duration time) { return std::chrono::duration<double, std::micro>(time).count(); }

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int iterations = std::atoi(argv[1]);
  Line* lines = nullptr;
  constexpr std::size_t most = 8 << 20;
  CUDA(cudaHostAlloc(&lines, most, cudaHostAllocMapped));
  cudaStream_t stream;
  CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  std::uint32_t flag = 0;
  for (int a = 2; a < argc; ++a) {
    const std::size_t bytes = std::strtoull(argv[a], nullptr, 10), count = bytes / sizeof(Line);
    std::vector<double> checks, waits;
    for (int i = 0; i < iterations; ++i) {
      ++flag;
      // Written and complete, then checked.
      write_lines<<<1, 512, 0, stream>>>(lines, count, flag);
      CUDA(cudaStreamSynchronize(stream));
      auto start = Clock::now();
      const bool found = all_found(lines, count, flag);
      checks.push_back(us(Clock::now() - start));
      if (!found) return 2;
      // Checked while it is written, as the proxy does: again from the first line until all are there.
      ++flag;
      start = Clock::now();
      write_lines<<<1, 512, 0, stream>>>(lines, count, flag);
      while (!all_found(lines, count, flag)) {}
      waits.push_back(us(Clock::now() - start));
      CUDA(cudaStreamSynchronize(stream));
    }
    std::printf("bytes %zu check_us %.3f gb_per_s %.2f launch_to_last_us %.2f\n", bytes, median(checks),
                bytes / median(checks) / 1e3, median(waits));
    std::fflush(stdout);
  }
  return 0;
}
