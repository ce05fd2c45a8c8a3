// SPDX-License-Identifier: Apache-2.0
#include "nccl/mesh.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "tests/support/clusters.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;
using namespace fabricast::models::nccl;

namespace {

LaneMatrix empty(std::size_t n) { return LaneMatrix(n, std::vector<int>(n, 0)); }

void join(LaneMatrix& lanes, std::size_t a, std::size_t b, int count) { lanes[a][b] = lanes[b][a] = count; }

bool is_permutation_of_all(std::vector<int> order, std::size_t n) {
  std::sort(order.begin(), order.end());
  std::vector<int> all(n);
  std::iota(all.begin(), all.end(), 0);
  return order == all;
}

}  // namespace

TEST_CASE("a path starts and ends where it is told, over joined GPUs only") {
  auto lanes = empty(4);  // a line 0 - 1 - 2 - 3
  for (std::size_t g = 0; g < 3; ++g) join(lanes, g, g + 1, 1);
  CHECK(hamiltonian(lanes, 0, 3, false) == std::vector<int>{0, 1, 2, 3});
  CHECK(hamiltonian(lanes, 3, -1, false) == std::vector<int>{3, 2, 1, 0});
  CHECK_FALSE(hamiltonian(lanes, 1, -1, false));
  CHECK_FALSE(hamiltonian(lanes, 0, 2, false));
  CHECK_FALSE(hamiltonian(lanes, 0, -1, true));  // the ends are not joined
  join(lanes, 3, 0, 1);
  CHECK(hamiltonian(lanes, 0, -1, true) == std::vector<int>{0, 1, 2, 3});
}

TEST_CASE("edges with more lanes are taken first") {
  auto lanes = empty(4);
  for (std::size_t a = 0; a < 4; ++a)
    for (std::size_t b = a + 1; b < 4; ++b) join(lanes, a, b, 1);
  join(lanes, 0, 2, 2);
  join(lanes, 2, 1, 2);
  CHECK(hamiltonian(lanes, 0, -1, false) == std::vector<int>{0, 2, 1, 3});
}

TEST_CASE("two GPUs with four links have four rings each way round, and a lone GPU one of its own") {
  auto lanes = empty(2);
  join(lanes, 0, 1, 4);
  CHECK(disjoint_rings(lanes, 16).size() == 4);
  CHECK(disjoint_rings(lanes, 3).size() == 3);
}

TEST_CASE("rings of four fully joined GPUs with two links each: every lane in one ring at most") {
  auto lanes = empty(4);
  for (std::size_t a = 0; a < 4; ++a)
    for (std::size_t b = a + 1; b < 4; ++b) join(lanes, a, b, 2);
  const auto rings = disjoint_rings(lanes, 16);
  CHECK(rings.size() == 6);  // 12 edges of two lanes each way, four in a ring: 24 / 4
}

TEST_CASE("over random meshes rings pass all GPUs once and no lane twice, one more does not fit") {
  test::Random random(3);
  for (int round = 0; round < 200; ++round) {
    CAPTURE(round);
    const auto n = 2 + random.next(6);
    auto lanes = empty(n);
    for (std::size_t a = 0; a < n; ++a)
      for (std::size_t b = a + 1; b < n; ++b) join(lanes, a, b, static_cast<int>(random.next(4)));
    auto left = lanes;
    for (const auto& ring : disjoint_rings(lanes, 32)) {
      CHECK(is_permutation_of_all(ring, n));
      for (std::size_t i = 0; i < n; ++i) {
        auto& lane = left[static_cast<std::size_t>(ring[i])][static_cast<std::size_t>(ring[(i + 1) % n])];
        --lane;
        CHECK(lane >= 0);
      }
    }
    CHECK_FALSE(hamiltonian(left, 0, -1, true));
  }
}

TEST_CASE("lanes are read from the host: DGX-1's mesh has one or two NVLinks between neighbours, six at each GPU") {
  const auto loaded = test::topology("schema: fabricast/topology/1\nname: t\nhosts: [{name: n, type: dgx-1-v100}]\n");
  const auto lanes = direct_lanes(loaded.topology, loaded.topology.devices(DeviceKind::gpu, 0));
  REQUIRE(lanes.size() == 8);
  for (const auto& row : lanes) CHECK(std::accumulate(row.begin(), row.end(), 0) == 6);
  CHECK(disjoint_rings(lanes, 16).size() == 6);  // 8 x 6 lanes, eight in a ring
}

TEST_CASE("of the speeds of a release a mesh takes the one that carries most, the faster of two alike") {
  const std::vector<double> speeds{60, 50, 40, 30, 24, 20};
  const auto rings = [&](const LaneMatrix& lanes) { return fastest_rings(lanes, 20.6, speeds, 16); };
  // Twelve links carry 247 GB/s: 4 x 60, 4 x 50, 6 x 40, 8 x 30.
  const auto two = rings({{0, 12}, {12, 0}});
  CHECK(two.speed == 60);
  CHECK(two.orders.size() == 4);
  // Three links carry 61.8: one of 60.
  CHECK(rings({{0, 3}, {3, 0}}).orders.size() == 1);
  // One link is slower than all but 20, none carries nothing.
  CHECK(rings({{0, 1}, {1, 0}}).speed == 20);
  CHECK(rings({{0, 0}, {0, 0}}).orders.empty());
  // Slower than .49 of what was found is not tried.
  CHECK(fastest_rings({{0, 4}, {4, 0}}, 20.6, {60, 20}, 16).speed == 60);
}

TEST_CASE("channels of Hopper meshes are halved and doubled as NCCL does it, those of Ampere are its links") {
  struct Mesh {
    const char* host;
    const char* release;
    const char* found;
  };
  for (const Mesh& mesh : {Mesh{"server-2h100-pcie-bridge", "2.28", "up to 16 (8 found at 30.0 GB/s each, doubled)"},
                           Mesh{"server-2h100-pcie-bridge", "2.17", "up to 20 (10 found at 24.0 GB/s each, doubled)"},
                           Mesh{"quad-gh200-ndr200", "2.21", "up to 24 (12 found at 30.0 GB/s each, doubled)"},
                           Mesh{"hgx-a100-4", "2.21", "up to 24 (12 found at 20.0 GB/s each, doubled)"}}) {
    CAPTURE(mesh.host);
    const auto prediction = test::run(test::scenario(
        "schema: fabricast/scenario/1\nname: s\ntopology: {schema: fabricast/topology/1, name: t, hosts: [{name: n, "
        "type: " +
        std::string(mesh.host) + "}]}\nsoftware: {nccl: {version: \"" + mesh.release +
        "\"}}\nworkload: {benchmark: all_reduce_perf, sizes: [1 MiB]}\n"));
    std::string channels;
    for (const auto& setting : prediction.workloads[0].settings)
      if (setting.setting == "channels") channels = setting.used + " (" + setting.reason + ")";
    CHECK(channels == mesh.found);
  }
}

TEST_CASE("chains over NVSwitches visit every GPU once, from any first to any last") {
  for (int n = 1; n <= 16; ++n) {
    for (int first = 0; first < n; ++first) {
      for (int last = 0; last < n; ++last) {
        if (n > 1 && last == first) continue;
        const auto order = chain_of_neighbours(n, first, last);
        CHECK(order.front() == first);
        CHECK(order.back() == last);
        CHECK(is_permutation_of_all(order, static_cast<std::size_t>(n)));
        // At most one step passes over the last GPU, and one leads to it.
        int far = 0;
        for (std::size_t i = 1; i < order.size(); ++i) {
          const int step = std::abs(order[i] - order[i - 1]);
          if (step != 1 && step != n - 1) ++far;
        }
        CHECK(far <= 2);
      }
    }
  }
}
