// SPDX-License-Identifier: Apache-2.0
// Collectives on the packet engine: a ring all-reduce close to its ideal and to a published packet simulator, and
// closed forms of messages on links without headers.
#include <doctest/doctest.h>

#include "tests/packet/networks.hpp"

using namespace fabricast;
using namespace fabricast::packet;
using namespace fabricast::packet::testing;

namespace {

// Ring all-reduce of `size` over all hosts: in each of 2 (n - 1) steps a host sends a chunk to the next one as soon as
// it has the chunk of the step before and has sent its own. Gives the time of the last delivery.
Duration ring_all_reduce(const Cluster& cluster, Bytes size) {
  const std::size_t ranks = cluster.hosts.size();
  Simulation simulation(cluster.network);
  std::vector<QueuePairId> to_next;
  for (std::size_t rank = 0; rank < ranks; ++rank)
    to_next.push_back(simulation.add_queue_pair({cluster.hosts[rank], cluster.hosts[(rank + 1) % ranks]}));
  const Bytes chunk{size.value / static_cast<std::int64_t>(ranks)};
  std::vector<std::size_t> steps(ranks, 1);
  Duration last{};
  const auto send = [&](std::size_t rank) { simulation.post({to_next[rank], chunk, Verb::write, {}, rank}); };
  simulation.on_delivered([&](const Completion& completion) {
    const std::size_t receiver = (completion.tag + 1) % ranks;
    last = completion.time;
    if (++steps[receiver] <= 2 * (ranks - 1)) send(receiver);
  });
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

}  // namespace

TEST_CASE("dissemination takes ceil(log2 P) (2 o + L + (s - 1) G) to the nanosecond") {
  CHECK(dissemination(ideal_links(8, 8), 8_B) == 16'626_ns);
  CHECK(dissemination(ideal_links(64, 8), 8_B) == 33'252_ns);
  CHECK(dissemination(ideal_links(1024, 8), 8_B) == 55'420_ns);
  CHECK(dissemination(ideal_links(4096, 8), 8_B) == 66'504_ns);
}

TEST_CASE("a ring all-reduce takes 2 (P - 1) (2 o + L + (m / P - 1) G) to the nanosecond") {
  CHECK(ring_all_reduce(ideal_links(16, 256), 1_MiB) == 11'961'300_ns);
  CHECK(ring_all_reduce(ideal_links(64, 256), 1_MiB) == 13'078'548_ns);
}

TEST_CASE("a ring all-reduce of 64 MiB with DCQCN and PFC is within 3 % of ideal and of the published run") {
  struct Published {
    int ranks;
    double ms;
  };
  for (const auto& [ranks, published_ms] : {Published{8, 4.931}, Published{64, 5.803}}) {
    CAPTURE(ranks);
    auto cluster = Cluster("spectrum", "rocev2");
    cluster.config().latency = {};
    cluster.config().cut_through = false;  // as in the published run
    cluster.config().buffer = 64_MiB;      // a switch with enough ports
    cluster.hca().send_latency = 400_ns;   // 0.6 us of an HCA and 0.2 us of RoCE [UCX ib_iface.c], half at each end
    cluster.hca().receive_latency = 400_ns;
    cluster.rate = 25_GBps;
    cluster.delay = Duration{500'000};
    const auto leaf = cluster.add_switch();
    for (int rank = 0; rank < ranks; ++rank) cluster.add_host(leaf);
    cluster.route();
    const double measured_ms = ring_all_reduce(cluster, 64_MiB).us() / 1000;
    // 2 (n - 1) chunks on the wire at payload efficiency, and 2 (n - 1) latencies of two links.
    const auto goodput = goodput_capacity(cluster.transport(), cluster.rate);
    const double steps = 2.0 * (ranks - 1);
    const double ideal_ms = (steps / ranks * 67'108'864 / goodput.bytes_per_s + steps * 2 * 0.5e-6) * 1000;
    CHECK(deviation(measured_ms, ideal_ms) <= 0.03);
    CHECK(deviation(measured_ms, published_ms) <= 0.03);
  }
}
