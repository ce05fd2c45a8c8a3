// Thread blocks of NCCL's size that copy or add in packs of 16 or of 4 bytes, with the bytes in flight that NCCL gives
// each.
#include <cuda_runtime.h>
#include <cstdint>
#include <cstdio>
__device__ uint4 fetch(const uint4* p) {
  uint4 v;
  asm volatile("ld.volatile.global.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p)
               : "memory");
  return v;
}
__device__ uint32_t fetch(const uint32_t* p) { return *(const volatile uint32_t*)p; }
__device__ void store(uint4* p, uint4 v) {
  asm volatile("st.volatile.global.v4.u32 [%0], {%1,%2,%3,%4};" ::"l"(p), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
}
__device__ void store(uint32_t* p, uint32_t v) { *(volatile uint32_t*)p = v; }
template <typename P, int UNROLL, int SOURCES>
__global__ void move(const P* a, const P* b, P* out, long n) {
  const long warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, warps = gridDim.x * blockDim.x / 32,
             lane = threadIdx.x % 32;
  for (long at = warp * 32 * UNROLL + lane; at < n; at += warps * 32 * UNROLL) {
    P x[UNROLL], y[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) x[u] = fetch(a + at + 32 * u);
    if (SOURCES == 2) {
#pragma unroll
      for (int u = 0; u < UNROLL; ++u) y[u] = fetch(b + at + 32 * u);
      float* fx = (float*)x;
      float* fy = (float*)y;
#pragma unroll
      for (int e = 0; e < UNROLL * (int)sizeof(P) / 4; ++e) fx[e] += fy[e];
    }
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) store(out + at + 32 * u, x[u]);
  }
}
template <typename P, int UNROLL, int SOURCES>
void run(const char* name, int blocks, int threads, char* a, char* b, char* c, long bytes) {
  cudaEvent_t s, e;
  cudaEventCreate(&s);
  cudaEventCreate(&e);
  const long n = bytes / sizeof(P);
  double best = 1e9;
  for (int r = 0; r < 5; ++r) {
    cudaEventRecord(s);
    move<P, UNROLL, SOURCES><<<blocks, threads>>>((const P*)a, (const P*)b, (P*)c, n);
    cudaEventRecord(e);
    cudaEventSynchronize(e);
    float ms;
    cudaEventElapsedTime(&ms, s, e);
    if (ms < best) best = ms;
  }
  printf("%s\t%d\t%d\t%d\t%.3f\n", name, blocks, threads, SOURCES, bytes / best / 1e6 / blocks);
}
int main() {
  char *a, *b, *c;
  const long bytes = 256l << 20;
  cudaMalloc(&a, bytes);
  cudaMalloc(&b, bytes);
  cudaMalloc(&c, bytes);
  cudaMemset(a, 0, bytes);
  cudaMemset(b, 0, bytes);
  printf("packs\tblocks\tthreads\tsources\tGB_per_s_per_block\n");
  for (int blocks : {1, 2, 8, 16, 24})
    for (int threads : {256, 512}) {
      run<uint4, 4, 1>("16B_unroll4", blocks, threads, a, b, c, bytes);
      run<uint32_t, 8, 1>("4B_unroll8", blocks, threads, a, b, c, bytes);
      run<uint32_t, 1, 1>("4B_unroll1", blocks, threads, a, b, c, bytes);
      run<uint32_t, 16, 1>("4B_unroll16", blocks, threads, a, b, c, bytes);
      run<uint4, 8, 1>("16B_unroll8", blocks, threads, a, b, c, bytes);
      run<uint4, 4, 2>("16B_unroll4", blocks, threads, a, b, c, bytes);
      run<uint32_t, 8, 2>("4B_unroll8", blocks, threads, a, b, c, bytes);
      run<uint32_t, 1, 2>("4B_unroll1", blocks, threads, a, b, c, bytes);
      run<uint32_t, 16, 2>("4B_unroll16", blocks, threads, a, b, c, bytes);
      run<uint4, 8, 2>("16B_unroll8", blocks, threads, a, b, c, bytes);
    }
}
