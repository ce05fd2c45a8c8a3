// What a core's copy of another core's data takes, by size: memcpy from shared memory and process_vm_readv (cross-memory attach), of data that the other
// core has not touched since (stale) and of data that it has just written (fresh); and a sum of floats of such data into an own buffer. GB/s of bytes copied.
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
using Clock = std::chrono::steady_clock;
struct Shared { std::atomic<long> turn; std::atomic<char*> address; std::atomic<int> pid; };
static void pin(int cpu) { cpu_set_t s; CPU_ZERO(&s); CPU_SET(cpu, &s); sched_setaffinity(0, sizeof s, &s); }
__attribute__((noinline, optimize("O3"), target("avx2"))) static void sum(float* __restrict a, const float* __restrict b, size_t n) { for (size_t i = 0; i < n; ++i) a[i] += b[i]; }
int main() {
  const size_t most = 64u << 20;
  auto* shared = (Shared*)mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  char* data = (char*)mmap(nullptr, most, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  memset(data, 1, most);
  const char* names[] = {"memcpy stale", "memcpy fresh", "cma stale", "cma fresh", "sum stale", "sum fresh", "memcpy own", "sum own"};
  pid_t child = fork();
  if (child == 0) {
    pin(1);
    char* own = (char*)malloc(most);
    memset(own, 2, most);
    shared->address = own; shared->pid = getpid();
    
    while (true) {
      long turn;
      while ((turn = shared->turn) % 2 == 0) {}
      if (turn < 0) break;
      size_t bytes = (turn >> 8) << 6;
      int which = (turn >> 1) & 127;
      if (which == 1 || which == 5) memset(data, (int)turn, bytes);
      if (which == 3) memset(own, (int)turn, bytes);
      
      shared->turn = turn + 1;
    }
    _exit(0);
  }
  pin(0);
  char* mine = (char*)malloc(most); char* other = (char*)malloc(most);
  memset(mine, 3, most); memset(other, 0, most);
  while (!shared->pid) {}
  printf("%-10s", "# Size");
  for (auto* n : names) printf(" %14s", n);
  printf("\n");
  for (size_t bytes = 4096; bytes <= (32u << 20); bytes *= 2) {
    printf("%-10zu", bytes);
    for (int which = 0; which < 8; ++which) {
      std::vector<double> times;
      int n = bytes <= 262144 ? 200 : 24;
      for (int i = 0; i < n; ++i) {
        long turn = ((long)(bytes >> 6) << 8) | (which << 1) | 1;
        shared->turn = turn;
        while (shared->turn != turn + 1) {}
        auto start = Clock::now();
        if (which < 2) memcpy(mine, data, bytes);
        else if (which < 4) {
          iovec to{mine, bytes}, from{shared->address, bytes};
          if (process_vm_readv(shared->pid, &to, 1, &from, 1, 0) != (ssize_t)bytes) { perror("cma"); }
        } else if (which < 6) sum((float*)mine, (float*)data, bytes / 4);
        else if (which == 6) memcpy(mine, other, bytes);
        else sum((float*)mine, (float*)other, bytes / 4);
        times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
        asm volatile("" ::"r"(mine) : "memory");
        shared->turn = 0;
      }
      std::nth_element(times.begin(), times.begin() + n / 2, times.end());
      printf(" %14.2f", bytes / times[n / 2] / 1e9);
    }
    printf("\n"), fflush(stdout);
  }
  shared->turn = -1;
  kill(child, 9);
}
