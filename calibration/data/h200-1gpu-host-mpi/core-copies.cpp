// memcpy of one core, and of several at once, by size: GB/s of bytes copied per core. Usage: core-copies
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>
static double copy_rate(size_t bytes, int threads) {
  std::atomic<int> ready{0};
  std::vector<double> rates(threads);
  std::vector<std::thread> all;
  for (int t = 0; t < threads; ++t)
    all.emplace_back([&, t] {
      char *a, *b;
      if (posix_memalign((void**)&a, 4096, bytes) || posix_memalign((void**)&b, 4096, bytes)) abort();
      memset(a, 1, bytes); memset(b, 2, bytes);
      long n = std::max<long>(4, (long)(400'000'000 / bytes));
      ready++;
      while (ready < threads) {}
      auto start = std::chrono::steady_clock::now();
      for (long i = 0; i < n; ++i) { memcpy(b, a, bytes); asm volatile("" ::"r"(b) : "memory"); }
      rates[t] = n * (double)bytes / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / 1e9;
      free(a); free(b);
    });
  for (auto& one : all) one.join();
  double sum = 0;
  for (double r : rates) sum += r;
  return sum / threads;
}
int main() {
  printf("# Size, GB/s per core with 1, 2, 4, 8, 16 cores\n");
  for (size_t bytes = 1024; bytes <= (64u << 20); bytes *= 4) {
    printf("%-10zu", bytes);
    for (int threads : {1, 2, 4, 8, 16}) printf(" %8.2f", copy_rate(bytes, threads));
    printf("\n"), fflush(stdout);
  }
}
