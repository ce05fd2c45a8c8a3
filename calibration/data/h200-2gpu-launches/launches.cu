// SPDX-License-Identifier: Apache-2.0
// What a launch takes the processor, by the virtual CPU that a thread is bound to: of an empty kernel, alone and while
// another process launches on another GPU from each other CPU. Usage: launches ROUNDS: a line per round and CPU: CPU,
// CPU of the other process (-1: none), nanoseconds of a launch, median and least of 20 series of 200.
#include <cuda_runtime.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void nothing() {}

static void bind_to(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

static void launch_for_ever(int cpu, int gpu) {
  cudaSetDevice(gpu);
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  bind_to(cpu);
  for (;;) {
    for (int i = 0; i < 200; ++i) nothing<<<1, 32, 0, stream>>>();
    cudaStreamSynchronize(stream);
  }
}

static void measure(int cpu, int other, cudaStream_t stream) {
  bind_to(cpu);
  std::vector<double> times;
  for (int series = 0; series < 23; ++series) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 200; ++i) nothing<<<1, 32, 0, stream>>>();
    const double ns = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / 200;
    cudaStreamSynchronize(stream);
    if (series >= 3) times.push_back(ns);
  }
  std::sort(times.begin(), times.end());
  std::printf("%d %d %.0f %.0f\n", cpu, other, times[times.size() / 2], times[0]);
  std::fflush(stdout);
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 1;
  const int cpus = static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  std::vector<int> others{-1};
  for (const int cpu : {1, cpus / 2}) others.push_back(cpu);
  for (const int other : others) {
    for (int process = 0; process < rounds; ++process) {
      const pid_t child = other < 0 ? 0 : fork();
      if (other >= 0 && child == 0) launch_for_ever(other, 1);
      const pid_t me = fork();
      if (me == 0) {
        sleep(other < 0 ? 0 : 2);
        cudaSetDevice(0);
        cudaStream_t stream;
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        for (int cpu = 0; cpu < cpus; ++cpu) measure(cpu, other, stream);
        _exit(0);
      }
      waitpid(me, nullptr, 0);
      if (child > 0) kill(child, SIGKILL), waitpid(child, nullptr, 0);
    }
  }
}
