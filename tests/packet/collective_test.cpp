// SPDX-License-Identifier: Apache-2.0
// Collectives on the packet engine: a ring all-reduce close to its ideal and to a published packet simulator, and
// closed forms of messages on links without headers.
#include <doctest/doctest.h>

#include "tests/packet/networks.hpp"

using namespace fabricast;
using namespace fabricast::packet;
using namespace fabricast::packet::testing;

namespace {

/// When a chunk counts as received: when its last byte is in memory, or when its sender has the acknowledgement.
enum class Received { in_memory, acknowledged };

// Ring all-reduce of `size` over all hosts: in each of 2 (n - 1) steps a host sends a chunk to the next one as soon as
// it has the chunk of the step before and has sent its own. Gives the time at which the last one has its last chunk.
Duration ring_all_reduce(const Cluster& cluster, Bytes size, Received received = Received::in_memory) {
  const std::size_t ranks = cluster.hosts.size();
  Simulation simulation(cluster.network);
  std::vector<QueuePairId> to_next;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    to_next.push_back(simulation.add_queue_pair({cluster.hosts[rank], cluster.hosts[(rank + 1) % ranks]}));
  const Bytes chunk{size.value / static_cast<std::int64_t>(ranks)};
  std::vector<std::size_t> steps(ranks, 1);
  Duration last{};
  const auto send = [&](std::size_t rank) { simulation.post({to_next[rank], chunk, Verb::write, {}, rank}); };
  const auto on_received = [&](const Completion& completion) {
    const std::size_t receiver = (completion.tag + 1) % ranks;
    last = completion.time;
    if (++steps[receiver] <= 2 * (ranks - 1)) send(receiver);
  };
  if (received == Received::in_memory) {
    simulation.on_delivered(on_received);
  } else {
    simulation.on_completed(on_received);
  }
  for (std::size_t rank = 0; rank < ranks; ++rank) send(rank);
  CHECK(simulation.run() == StopReason::finished);
  CHECK(simulation.results().lossless_drops == 0);
  return last;
}

// L = 2500 ns, o = 1500 ns at each end, G = 6 ns/B, no headers. A switch that stores and forwards packets of P bytes
// takes (s + P) G + 2 d for s bytes, so d = (L - (P + 1) G) / 2 makes it L + (s - 1) G.
Cluster ideal_links(int ranks, std::int64_t packet_bytes) {
  Cluster cluster("htsim-like", "htsim-like");
  cluster.transport().mtu = {packet_bytes};
  cluster.transport().header = {};
  cluster.transport().ack = {};
  cluster.transport().ack_every = 1 << 20;
  cluster.hca().send_latency = 1500_ns;
  cluster.hca().receive_latency = 1500_ns;
  cluster.rate = Bandwidth{1e9 / 6};
  cluster.delay = Duration{(2'500'000 - (packet_bytes + 1) * 6'000) / 2};
  const auto leaf = cluster.add_switch();
  for (int rank = 0; rank < ranks; ++rank) cluster.add_host(leaf);
  cluster.route();
  return cluster;
}

// In step k rank r sends to r + 2^k as soon as it has the message of the step before.
Duration dissemination(const Cluster& cluster, Bytes size) {
  const std::size_t ranks = cluster.hosts.size();
  Simulation simulation(cluster.network);
  Duration last{};
  const auto send = [&](std::size_t rank, std::size_t distance) {
    const auto to = (rank + distance) % ranks;
    const auto queue_pair = simulation.add_queue_pair({cluster.hosts[rank], cluster.hosts[to]});
    simulation.post({queue_pair, size, Verb::send, {}, to * 65'536 + distance});
  };
  simulation.on_delivered([&](const Completion& completion) {
    last = completion.time;
    const auto distance = completion.tag % 65'536 * 2;
    if (distance < ranks) send(completion.tag / 65'536, distance);
  });
  for (std::size_t rank = 0; rank < ranks; ++rank) send(rank, 1);
  CHECK(simulation.run() == StopReason::finished);
  return last;
}

/// 2 (n - 1) chunks at payload efficiency and as many latencies of two links, in ms.
double ideal_ring_ms(const Cluster& cluster, Bytes size) {
  const double ranks = static_cast<double>(cluster.hosts.size());
  const double steps = 2 * (ranks - 1);
  const auto goodput = goodput_capacity(cluster.network.hca_configs[0].transport, cluster.rate);
  const double chunk_s = static_cast<double>(size.value) / ranks / goodput.bytes_per_s;
  return steps * (chunk_s + 2 * cluster.delay.seconds()) * 1000;
}

}  // namespace

TEST_CASE("dissemination takes ceil(log2 P) (2 o + L + (s - 1) G) to the nanosecond") {
  CHECK(dissemination(ideal_links(8, 8), 8_B) == 16'626_ns);
  CHECK(dissemination(ideal_links(64, 8), 8_B) == 33'252_ns);
  CHECK(dissemination(ideal_links(1024, 8), 8_B) == 55'420_ns);
  CHECK(dissemination(ideal_links(4096, 8), 8_B) == 66'504_ns);
}

TEST_CASE("the ring's closed form holds for hundreds of ranks" * doctest::test_suite("long")) {
  CHECK(ring_all_reduce(ideal_links(256, 256), 1_MiB) == 15'335'700_ns);
  CHECK(ring_all_reduce(ideal_links(512, 256), 1_MiB) == 18'173'204_ns);
}

TEST_CASE("a ring all-reduce takes 2 (P - 1) (2 o + L + (m / P - 1) G) to the nanosecond") {
  CHECK(ring_all_reduce(ideal_links(16, 256), 1_MiB) == 11'961'300_ns);
  CHECK(ring_all_reduce(ideal_links(64, 256), 1_MiB) == 13'078'548_ns);
}

TEST_CASE("a ring all-reduce of 64 MiB with DCQCN and PFC takes the ideal time") {
  for (const int ranks : {8, 64}) {
    CAPTURE(ranks);
    const auto cluster = ring_links(ranks);
    CHECK(deviation(ring_all_reduce(cluster, 64_MiB).us() / 1000, ideal_ring_ms(cluster, 64_MiB)) <= 0.01);
  }
}

TEST_CASE("counted as the published packet simulator counts, the ring is within 3 % of it and of the ideal") {
  // It tells the receiver of a message when the sender's queue pair has finished: one acknowledgement later, 1 us in
  // each of the 14 and 126 steps. Its figures for 1 MiB to 1 GiB fit 2.3 us + chunk / 23.97 GB/s per step.
  struct Published {
    int ranks;
    double ms;
  };
  for (const auto& row : {Published{8, 4.931}, Published{64, 5.803}}) {
    const auto& [ranks, published_ms] = row;
    CAPTURE(row.ranks);
    const auto cluster = ring_links(ranks);
    const double measured_ms = ring_all_reduce(cluster, 64_MiB, Received::acknowledged).us() / 1000;
    CHECK(deviation(measured_ms, published_ms) <= 0.03);
    CHECK(deviation(measured_ms, ideal_ring_ms(cluster, 64_MiB)) <= 0.03);
  }
}
