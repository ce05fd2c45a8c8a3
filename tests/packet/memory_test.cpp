// SPDX-License-Identifier: Apache-2.0
// In steady state the engine allocates nothing: memory is bounded by what is in flight, not by the length of a run. A
// program of its own, because it replaces operator new.
#include <doctest/doctest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "tests/packet/networks.hpp"

using namespace fabricast;
using namespace fabricast::packet;
using namespace fabricast::packet::testing;

namespace {

std::atomic<std::uint64_t> num_allocations = 0;

void* count_and_allocate(std::size_t size) {
  ++num_allocations;
  if (void* memory = std::malloc(size > 0 ? size : 1)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return count_and_allocate(size); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  ++num_allocations;
  const auto line = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(line, (size + line - 1) / line * line)) return memory;
  throw std::bad_alloc();
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  ++num_allocations;
  return std::malloc(size > 0 ? size : 1);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

TEST_CASE("a run in steady state allocates no memory") {
  for (const auto& preset : {k_htsim, k_ns3, k_spectrum, k_infiniband}) {
    CAPTURE(preset.switch_name);
    const auto cluster = parking_lot(preset);
    Options options;
    options.deadlock_interval = {};  // the search makes lists of its own, once per interval
    Simulation simulation(cluster.network, options);
    for (std::size_t i = 1; i < 5; ++i) greedy(simulation, cluster.hosts[i], cluster.hosts[0]);
    simulation.run(10_ms);
    const auto before = num_allocations.load();
    CHECK(before > 0);
    simulation.run(20_ms);
    CHECK(num_allocations.load() - before <= 4);  // a table may still double once
  }
}
