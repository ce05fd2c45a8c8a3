// SPDX-License-Identifier: Apache-2.0
// Speed of the packet engine. Usage, each with a last argument `plain` to go without shortcuts and trains:
//   packet_bench permutation | incast PORTS   2 MB per host in 4,000 B packets, 100 Gb/s, three-tier fat tree with PFC
//   packet_bench write MIB                    one RDMA write over one switch, 50 GB/s, 4 KiB packets
//   packet_bench ring RANKS                   ring all-reduce of 64 MiB, 25 GB/s, 0.5 us links, one switch, DCQCN and
//   PFC
// Prints what was simulated. script/bench measures it.
#define DOCTEST_CONFIG_IMPLEMENT  // what reads the catalogue for tests checks it
#include <doctest/doctest.h>

#include <algorithm>
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
  const auto number = [](std::uint64_t value) { return static_cast<unsigned long long>(value); };
  for (const auto& message : results.messages) last_us = std::max(last_us, message.completed.us());
  for (const auto& port : results.ports) pauses += port[3].pauses_sent;
  std::printf(
      "packets %llu, of these %llu in %llu trains, packet-hops %llu, events %llu, pauses %llu, drops %llu, "
      "last completion %.1f us\n",
      number(results.delivered_packets), number(results.train_packets), number(results.trains),
      number(results.packet_hops), number(results.events), number(pauses), number(results.lossless_drops), last_us);
}

Results fat_tree_traffic(int ports, bool is_incast, const Options& options) {
  const auto cluster = fat_tree(ports, k_htsim);
  const auto& hosts = cluster.hosts;
  const auto partner = random_permutation(hosts.size());
  Simulation simulation(cluster.network, options);
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (is_incast && i == 0) continue;
    const auto queue_pair = simulation.add_queue_pair({hosts[i], is_incast ? hosts[0] : hosts[partner[i]]});
    simulation.post({queue_pair, Bytes{2'000'000}});
  }
  simulation.run();
  return simulation.results();
}

Results write(Bytes size, const Options& options) {
  auto cluster = star(2, "spectrum", "rocev2");
  for (auto& port : cluster.network.ports) port.rate = 50_GBps;
  Simulation simulation(cluster.network, options);
  simulation.post({simulation.add_queue_pair({cluster.hosts[0], cluster.hosts[1]}), size});
  simulation.run();
  return simulation.results();
}

Results ring(std::size_t ranks, const Options& options) {
  const auto cluster = ring_links(static_cast<int>(ranks));
  Simulation simulation(cluster.network, options);
  std::vector<std::size_t> steps(ranks, 1);
  std::vector<QueuePairId> to_next;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    to_next.push_back(simulation.add_queue_pair({cluster.hosts[rank], cluster.hosts[(rank + 1) % ranks]}));
  const auto chunk = Bytes{(64_MiB).value / static_cast<std::int64_t>(ranks)};
  const auto send = [&](std::size_t rank) { simulation.post({to_next[rank], chunk, Verb::write, {}, rank}); };
  simulation.on_delivered([&](const Completion& completion) {
    const std::size_t receiver = (completion.tag + 1) % ranks;
    if (++steps[receiver] <= 2 * (ranks - 1)) send(receiver);
  });
  for (std::size_t rank = 0; rank < ranks; ++rank) send(rank);
  simulation.run();
  return simulation.results();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const std::string what = argv[1];
  const int number = std::atoi(argv[2]);
  Options options;
  options.shortcuts = argc < 4 || std::string(argv[3]) != "plain";
  if (what == "write") {
    print(write(Bytes{std::int64_t{number} << 20}, options));
  } else if (what == "ring") {
    print(ring(static_cast<std::size_t>(number), options));
  } else {
    print(fat_tree_traffic(number, what == "incast", options));
  }
  return 0;
}
