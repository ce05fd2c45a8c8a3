// SPDX-License-Identifier: Apache-2.0
// What a hop through host memory moves, by the memory that its slots take: GPU 0 writes slots of pinned host memory,
// GPU 1 reads them, as NCCL's transport through host memory does. Each figure is the median of 15. An argument is the
// number of processor cores that meanwhile write to memory past the caches.
#include <cuda_runtime.h>

#include <immintrin.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#define OK(call)                                                      \
  do {                                                                \
    const cudaError_t e = (call);                                     \
    if (e != cudaSuccess) {                                           \
      std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(e)); \
      std::exit(1);                                                   \
    }                                                                 \
  } while (0)

__global__ void write_slots(ulonglong2* to, size_t words, int rounds) {
  for (int r = 0; r < rounds; ++r)
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < words; i += size_t(gridDim.x) * blockDim.x) {
      const unsigned long long v = i + r;
      asm volatile("st.volatile.global.v2.u64 [%0], {%1,%1};" ::"l"(to + i), "l"(v) : "memory");
    }
}

__global__ void read_slots(const ulonglong2* from, size_t words, int rounds, unsigned long long* sink) {
  unsigned long long sum = 0;
  for (int r = 0; r < rounds; ++r)
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < words; i += size_t(gridDim.x) * blockDim.x * 4) {
      unsigned long long a[4] = {}, b[4] = {};
      for (int u = 0; u < 4; ++u) {
        const size_t at = i + u * size_t(gridDim.x) * blockDim.x;
        if (at < words)
          asm volatile("ld.volatile.global.v2.u64 {%0,%1}, [%2];" : "=l"(a[u]), "=l"(b[u]) : "l"(from + at) : "memory");
      }
      for (int u = 0; u < 4; ++u) sum += a[u] ^ b[u];
    }
  if (sum == 42) *sink = sum;
}

struct Gpu {
  int device;
  cudaStream_t stream;
  cudaEvent_t begin, end;
  unsigned long long* sink;
  explicit Gpu(int d) : device(d) {
    OK(cudaSetDevice(d));
    OK(cudaStreamCreate(&stream));
    OK(cudaEventCreate(&begin));
    OK(cudaEventCreate(&end));
    OK(cudaMalloc(&sink, 8));
  }
  template <class Launch>
  void start(Launch launch) {
    OK(cudaSetDevice(device));
    OK(cudaEventRecord(begin, stream));
    launch();
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

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + v.size() / 2, v.end());
  return v[v.size() / 2];
}

std::atomic<bool> over{false};
std::atomic<unsigned long long> streamed{0};

void stream() {
  constexpr size_t words = size_t(1) << 26;  // 512 MiB
  auto* memory = static_cast<long long*>(std::aligned_alloc(64, words * 8));
  for (long long v = 0; !over; ++v) {
    for (size_t i = 0; i < words && !over; i += 1 << 16) {
      for (size_t k = i; k < i + (1 << 16); ++k) _mm_stream_si64(memory + k, v);
      streamed += size_t(8) << 16;
    }
  }
  std::free(memory);
}

int main(int argc, char** argv) {
  const int cores = argc > 1 ? std::atoi(argv[1]) : 0;
  std::vector<std::thread> streams;
  for (int c = 0; c < cores; ++c) streams.emplace_back(stream);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  const auto begun = std::chrono::steady_clock::now();
  const unsigned long long before = streamed;
  int devices = 0;
  OK(cudaGetDeviceCount(&devices));
  Gpu writer(0), reader(devices > 1 ? 1 : 0);
  cudaDeviceProp p;
  OK(cudaGetDeviceProperties(&p, 0));
  std::printf("# %s, %d devices\n", p.name, devices);
  std::printf(
      "# blocks  slots_MiB  write_us  write_GB/s  read_us  read_GB/s  both_us  both_GB/s_each  (both: writer and "
      "reader at once, other halves)\n");
  for (int blocks : {1, 4, 32})
    for (double mib : {0.25, 0.5, 1., 2., 4., 8., 16., 24., 32., 48., 64., 96., 128., 256., 512.}) {
      const size_t bytes = size_t(mib * 1048576), words = bytes / 16;
      ulonglong2 *slots, *other;
      OK(cudaHostAlloc(&slots, bytes, cudaHostAllocPortable | cudaHostAllocMapped));
      OK(cudaHostAlloc(&other, bytes, cudaHostAllocPortable | cudaHostAllocMapped));
      std::vector<double> write, read, both;
      for (int k = 0; k < 17; ++k) {
        writer.start([&] { write_slots<<<blocks, 512, 0, writer.stream>>>(slots, words, 1); });
        const double w = writer.wait();
        reader.start([&] { read_slots<<<blocks, 512, 0, reader.stream>>>(slots, words, 1, reader.sink); });
        const double r = reader.wait();
        // Half of the footprint is written while the other is read, then the halves change: what two slots of a ring
        // do.
        const size_t half = words / 2;
        const int rounds = std::max(1, int(16 / mib));
        double t = 0;
        for (int s = 0; s < 2; ++s) {
          writer.start([&] { write_slots<<<blocks, 512, 0, writer.stream>>>(slots + (s ? half : 0), half, rounds); });
          reader.start([&] {
            read_slots<<<blocks, 512, 0, reader.stream>>>(slots + (s ? 0 : half), half, rounds, reader.sink);
          });
          const double a = writer.wait(), b = reader.wait();
          t += std::max(a, b) / rounds;
        }
        if (k < 2) continue;
        write.push_back(w), read.push_back(r), both.push_back(t);
      }
      const double w = median(write), r = median(read), t = median(both);
      std::printf("%8d %10.2f %9.1f %11.2f %8.1f %10.2f %8.1f %15.2f\n", blocks, mib, w * 1e6, bytes / w / 1e9, r * 1e6,
                  bytes / r / 1e9, t * 1e6, bytes / t / 1e9);
      OK(cudaFreeHost(slots));
      OK(cudaFreeHost(other));
    }
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  std::printf("# %d cores wrote %.0f GB/s\n", cores, (streamed - before) / seconds / 1e9);
  over = true;
  for (auto& s : streams) s.join();
}
