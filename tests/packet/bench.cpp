// SPDX-License-Identifier: Apache-2.0
// Speed of the packet engine: 2 MB per host in 4,000 B packets over 100 Gb/s and a three-tier fat tree with PFC. Usage:
// packet_bench (permutation | incast) PORTS_PER_SWITCH; prints what was simulated. script/bench measures it.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/packet/networks.hpp"

using namespace fabricast;
using namespace fabricast::packet;
using namespace fabricast::packet::testing;

namespace {

std::vector<std::size_t> random_permutation(std::size_t size) {
  std::vector<std::size_t> out(size);
  std::iota(out.begin(), out.end(), 0U);
  std::uint64_t state = 13;
  for (std::size_t i = size - 1; i > 0; --i) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    std::swap(out[i], out[(state >> 33) % i]);  // no fixed points
  }
  return out;
}

void print(const Results& results) {
  double last_us = 0;
  std::uint64_t pauses = 0;
  for (const auto& message : results.messages) last_us = std::max(last_us, message.completed.us());
  for (const auto& port : results.ports) pauses += port[3].pauses_sent;
  std::printf("packets %llu, packet-hops %llu, events %llu, pauses %llu, drops %llu, last completion %.1f us\n",
              static_cast<unsigned long long>(results.delivered_packets),
              static_cast<unsigned long long>(results.packet_hops), static_cast<unsigned long long>(results.events),
              static_cast<unsigned long long>(pauses), static_cast<unsigned long long>(results.lossless_drops),
              last_us);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const bool is_incast = std::string(argv[1]) == "incast";
  const auto cluster = fat_tree(std::atoi(argv[2]), k_htsim);
  const auto& hosts = cluster.hosts;
  const auto partner = random_permutation(hosts.size());
  Simulation simulation(cluster.network);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (is_incast && i == 0) continue;
    const auto queue_pair = simulation.add_queue_pair({hosts[i], is_incast ? hosts[0] : hosts[partner[i]]});
    simulation.post({queue_pair, Bytes{2'000'000}});
  }
  simulation.run();
  print(simulation.results());
  return 0;
}
