// SPDX-License-Identifier: Apache-2.0
// NCCL's tuning tables release by release, as read in its sources from 2.5 to 2.29: one line per release and figure.
#include "models/nccl/tuning_tables.hpp"

#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <tuple>
#include <vector>

#include "fabricast/units.hpp"
#include "tests/support/approx.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using namespace fabricast::models::nccl;

namespace {

using Three = std::array<double, 3>;  // LL, LL128, Simple

constexpr std::array k_protocols{Protocol::ll, Protocol::ll128, Protocol::simple};
constexpr double k_none = std::numeric_limits<double>::infinity();

CommunicatorFacts facts_of(int version, int nodes, int capability, int per_node = 8) {
  CommunicatorFacts facts;
  facts.version = version;
  facts.num_nodes = nodes;
  facts.num_ranks = nodes * per_node;
  facts.compute_capability = capability;
  facts.graph_channels = 10;
  return facts;
}

}  // namespace

TEST_CASE("NCCL's base and hop latencies follow the release") {
  struct Line {
    std::vector<int> versions;
    Three tree_base, ring_base;
    Three tree_nvlink, ring_nvlink, tree_pcie, ring_pcie, tree_net, ring_net;
  };
  const std::vector<Line> lines{
      {{205, 206},
       {4.4, 4.4, 0},
       {3.6, 3.6, 8.4},
       {.5, 1.9, 28},
       {.4, 2.5, 5.7},
       {1, 1.9, 28},
       {1, 2.5, 5.7},
       {5, 7.5, 50},
       {.9, 2.5, 6.6}},
      {{207},
       {4.4, 4.4, 0},
       {3.6, 10, 8.4},
       {.52, 1.2, 28},
       {.47, 1.9, 3.4},
       {1, 1.9, 28},
       {1, 2.5, 5.7},
       {5, 8.5, 50},
       {2.7, 4, 9.6}},
      {{208, 209, 210, 211, 214, 215, 216, 217},
       {4.4, 4.4, 0},
       {3.6, 10, 8.4},
       {.52, 1.25, 28},
       {.47, 1.9, 3.4},
       {1, 1.9, 28},
       {1, 2.5, 5.7},
       {5, 8.5, 28},
       {2.7, 4, 9.6}},
      {{212, 213},
       {4.4, 4.4, 0},
       {3.6, 10, 8.4},
       {.52, 1.25, 28},
       {.47, 1.9, 3.4},
       {1, 1.9, 28},
       {1, 2.5, 5.7},
       {5, 8.5, 28},
       {2.7, 4, 28}},
      {{218},
       {6.8, 14, 0},
       {6.6, 14, 8.4},
       {.6, 1.25, 4},
       {.6, 1.9, 3.4},
       {1, 1.9, 6},
       {1, 2.5, 5.7},
       {5, 8.5, 14},
       {2.7, 4, 14}},
      {{219, 220, 221, 222},
       {6.8, 14, 0},
       {6.6, 14, 8.4},
       {.6, 1.25, 28},
       {.6, 1.9, 3.4},
       {1, 1.9, 28},
       {1, 2.5, 5.7},
       {5, 8.5, 28},
       {2.7, 4, 14}},
      {{223, 225, 228, 230},
       {6.8, 14, 8.4},
       {6.6, 14, 8.4},
       {.6, 1.25, 4},
       {.6, 1.9, 3.4},
       {1, 1.9, 4},
       {1, 2.5, 5.7},
       {5, 8.5, 14},
       {2.7, 4, 14}},
  };
  for (const auto& line : lines) {
    for (const int version : line.versions) {
      for (std::size_t p = 0; p < 3; ++p) {
        CAPTURE(version);
        CAPTURE(p);
        const auto protocol = k_protocols[p];
        CHECK(base_latency(version, Algorithm::tree, protocol) == line.tree_base[p]);
        CHECK(base_latency(version, Algorithm::ring, protocol) == line.ring_base[p]);
        CHECK(hop_latency(version, HopLink::nvlink, Algorithm::tree, protocol) == line.tree_nvlink[p]);
        CHECK(hop_latency(version, HopLink::nvlink, Algorithm::ring, protocol) == line.ring_nvlink[p]);
        CHECK(hop_latency(version, HopLink::pcie, Algorithm::tree, protocol) == line.tree_pcie[p]);
        CHECK(hop_latency(version, HopLink::pcie, Algorithm::ring, protocol) == line.ring_pcie[p]);
        CHECK(hop_latency(version, HopLink::net, Algorithm::tree, protocol) == line.tree_net[p]);
        CHECK(hop_latency(version, HopLink::net, Algorithm::ring, protocol) == line.ring_net[p]);
      }
    }
  }
}

TEST_CASE("NVLink SHARP's latencies follow the release") {
  for (const auto& row : std::vector<std::array<double, 3>>{{218, 23, 19},
                                                            {219, 23, 14},
                                                            {220, 23, 14},
                                                            {221, 25, 14},
                                                            {227, 25, 14},
                                                            {228, 25, 20.9},
                                                            {230, 25, 20.9}}) {
    const auto& [version, start, hop] = row;
    CAPTURE(std::get<0>(row));
    CHECK(nvls_latency(static_cast<int>(version)) == start);
    CHECK(nvls_tree_hop_latency(static_cast<int>(version)) == hop);
  }
}

TEST_CASE("all channels together: 235 GB/s on A100 from 2.7 to 2.17, 370 on H100 in 2.17") {
  for (const auto& row : std::vector<std::tuple<int, int, double>>{{206, 80, k_none},
                                                                   {207, 80, 235},
                                                                   {217, 80, 235},
                                                                   {218, 80, k_none},
                                                                   {217, 86, k_none},
                                                                   {217, 70, k_none},
                                                                   {216, 90, k_none},
                                                                   {217, 90, 370},
                                                                   {218, 90, k_none}}) {
    const auto& [version, capability, limit] = row;
    CAPTURE(std::get<0>(row));
    CAPTURE(std::get<1>(row));
    CHECK(bus_limit(facts_of(version, 1, capability)) == limit);
  }
}

TEST_CASE(
    "LL's largest bandwidth goes by GPU inside a node and by processor between nodes, Hopper's own from 2.21 on") {
  const auto limit = [](int version, int nodes, int capability, bool is_amd) {
    auto facts = facts_of(version, nodes, capability);
    facts.is_amd = is_amd;
    return ll_limit(facts);
  };
  CHECK(limit(207, 1, 70, false) == k_none);
  CHECK(limit(208, 1, 70, false) == 39);
  CHECK(limit(210, 1, 70, false) == 39);
  CHECK(limit(228, 1, 80, false) == 87.7);
  CHECK(limit(220, 1, 90, false) == 87.7);
  CHECK(limit(221, 1, 90, true) == 141);
  CHECK(limit(228, 2, 90, false) == 39);
  CHECK(limit(228, 3, 90, false) == 20.4);
  CHECK(limit(228, 2, 70, true) == 22.5);
  CHECK(limit(228, 8, 70, true) == 19);
}

TEST_CASE("LL keeps a quarter of a ring, a third of copies in one node from 2.7 on, half from 2.21 on") {
  using C = Collective;
  for (const auto& row : std::vector<std::tuple<int, int, C, double>>{{206, 1, C::all_gather, 0.25},
                                                                      {207, 1, C::all_gather, 1.0 / 3},
                                                                      {220, 1, C::reduce_scatter, 1.0 / 3},
                                                                      {220, 1, C::broadcast, 1.0 / 3},
                                                                      {220, 1, C::reduce, 0.25},
                                                                      {220, 1, C::all_reduce, 0.25},
                                                                      {220, 2, C::all_gather, 0.25},
                                                                      {221, 1, C::all_reduce, 0.5},
                                                                      {221, 2, C::all_gather, 0.5}}) {
    const auto& [version, nodes, collective, share] = row;
    CAPTURE(std::get<0>(row));
    CAPTURE(std::get<1>(row));
    CHECK(ring_share(facts_of(version, nodes, 80), collective, Protocol::ll) == share);
  }
  CHECK(ring_share(facts_of(205, 1, 80), Collective::all_reduce, Protocol::simple) == 1);
}

TEST_CASE("LL128 keeps 0.92 of a ring, 0.7 with one GPU per node until 2.22") {
  CHECK(ring_share(facts_of(222, 2, 80, 1), Collective::all_reduce, Protocol::ll128) == 0.7);
  CHECK(ring_share(facts_of(223, 2, 80, 1), Collective::all_reduce, Protocol::ll128) == 0.92);
  CHECK(ring_share(facts_of(222, 2, 80, 2), Collective::all_reduce, Protocol::ll128) == 0.92);
}

TEST_CASE("LL128's largest bandwidth: of all channels in 2.5, of each by collective from 2.7, 20 from 2.10") {
  using C = Collective;
  // Ten channels.
  for (const auto& row : std::vector<std::tuple<int, int, C, double>>{{205, 70, C::broadcast, 113},
                                                                      {206, 70, C::reduce, 72},
                                                                      {205, 70, C::all_gather, 110},
                                                                      {206, 70, C::reduce_scatter, 91},
                                                                      {206, 70, C::all_reduce, 100},
                                                                      {207, 70, C::broadcast, 188},
                                                                      {207, 70, C::reduce, 120},
                                                                      {209, 80, C::all_gather, 183},
                                                                      {209, 80, C::reduce_scatter, 152},
                                                                      {209, 80, C::all_reduce, 167},
                                                                      {210, 80, C::all_reduce, 200},
                                                                      {216, 90, C::reduce, 200},
                                                                      {217, 90, C::all_reduce, 367},
                                                                      {228, 80, C::broadcast, 200},
                                                                      {228, 90, C::broadcast, 367}}) {
    const auto& [version, capability, collective, ring] = row;
    CAPTURE(std::get<0>(row));
    CAPTURE(std::get<1>(row));
    CAPTURE(static_cast<int>(std::get<2>(row)));
    CHECK(ring_ll128_limit(facts_of(version, 1, capability), collective) == test::approx(ring));
  }
  for (const auto& row : std::vector<std::tuple<int, int, int, double>>{{206, 1, 70, 100 * 7.0 / 9},
                                                                        {207, 1, 70, 167 * 7.0 / 9},
                                                                        {210, 2, 80, 200},
                                                                        {216, 1, 90, 200},
                                                                        {217, 1, 90, 367},
                                                                        {228, 2, 90, 367},
                                                                        {228, 3, 90, 290},
                                                                        {228, 3, 80, 200}}) {
    const auto& [version, nodes, capability, tree] = row;
    CAPTURE(std::get<0>(row));
    CAPTURE(std::get<1>(row));
    CHECK(tree_ll128_limit(facts_of(version, nodes, capability), Collective::all_reduce) == test::approx(tree));
  }
}

TEST_CASE("trees keep 0.9, later 0.92 of a ring, up to a limit of all channels, later of each") {
  CHECK(tree_share(facts_of(207, 1, 70)) == 0.9);
  CHECK(tree_share(facts_of(208, 1, 70)) == 0.92);
  CHECK(tree_ll128_share(facts_of(207, 1, 80)) == test::approx(7.0 / 9));
  CHECK(tree_ll128_share(facts_of(207, 2, 80)) == 0.915);
  CHECK(tree_ll128_share(facts_of(208, 2, 80)) == 0.9375);
  struct Line {
    int version, nodes, capability;
    Protocol protocol;
    double limit;
  };
  for (const auto& line : std::vector<Line>{{205, 1, 70, Protocol::simple, 90},
                                            {205, 2, 70, Protocol::simple, 70},
                                            {206, 1, 70, Protocol::simple, 110},
                                            {206, 2, 70, Protocol::simple, 110},
                                            {206, 3, 70, Protocol::ll128, 80},
                                            {206, 2, 80, Protocol::ll128, 110},
                                            {207, 2, 80, Protocol::ll128, 130},
                                            {207, 3, 80, Protocol::ll128, 105},
                                            {207, 3, 80, Protocol::simple, 80},
                                            {228, 1, 70, Protocol::simple, 265},
                                            {228, 2, 70, Protocol::simple, 185},
                                            {228, 3, 70, Protocol::simple, 100},
                                            {228, 1, 80, Protocol::simple, 240},
                                            {228, 2, 80, Protocol::simple, 236},
                                            {228, 3, 80, Protocol::simple, 178},
                                            {228, 1, 90, Protocol::simple, 387},
                                            {228, 2, 90, Protocol::simple, 414},
                                            {228, 16, 90, Protocol::simple, 360}}) {
    CAPTURE(line.version);
    CAPTURE(line.nodes);
    CAPTURE(line.capability);
    CHECK(tree_limit(facts_of(line.version, line.nodes, line.capability), line.protocol) == test::approx(line.limit));
  }
}

TEST_CASE("trees are corrected by size below 512 MiB") {
  CHECK(tree_correction(Protocol::ll, 8_B) == 1);
  CHECK(tree_correction(Protocol::simple, 8_B) == 0.9);
  CHECK(tree_correction(Protocol::ll, 1023_B) == 1);
  CHECK(tree_correction(Protocol::ll, 1_KiB) == 0.9);
  CHECK(tree_correction(Protocol::ll, 256_KiB) == 0.4);
  CHECK(tree_correction(Protocol::ll128, 64_KiB) == 0.6);
  CHECK(tree_correction(Protocol::simple, 1_MiB) == 0.5);
  CHECK(tree_correction(Protocol::simple, Bytes{(512LL << 20) - 1}) == 0.9);
  CHECK(tree_correction(Protocol::simple, 512_MiB) == 1);
}

TEST_CASE("rings of Simple between nodes pay a plateau: 1.9, 1.5 on H100 in 2.17, 1.4 from A100 on in 2.18") {
  struct Line {
    int version, capability;
    double factor;
  };
  for (const auto& line : std::vector<Line>{
           {208, 80, 1.9}, {217, 80, 1.9}, {217, 90, 1.5}, {218, 70, 1.9}, {218, 80, 1.4}, {228, 90, 1.4}}) {
    CAPTURE(line.version);
    CAPTURE(line.capability);
    CHECK(ring_plateau(facts_of(line.version, 2, line.capability), 1_GiB) == line.factor);
  }
  // 16 ranks: from 64 KiB on; from 2.18 on 64 B per channel and rank, ten channels.
  CHECK(ring_plateau(facts_of(217, 2, 80), Bytes{65535}) == 1);
  CHECK(ring_plateau(facts_of(217, 2, 80), Bytes{65536}) == 1.9);
  CHECK(ring_plateau(facts_of(218, 2, 80), Bytes{10239}) == 1);
  CHECK(ring_plateau(facts_of(218, 2, 80), Bytes{10240}) == 1.4);
}

TEST_CASE("NVLink SHARP is planned by release: a fixed part of the search, later the part of the data others hold") {
  const auto bandwidth = [](int version, int nodes, double heads, double inside, double between, int capability = 90) {
    auto facts = facts_of(version, nodes, capability, static_cast<int>(heads));
    facts.nvls = {static_cast<int>(heads), inside, between};
    return nvls_bandwidth(facts);
  };
  CHECK(bandwidth(217, 1, 8, 33, 0) == test::approx(8 * 33 * 0.75));
  CHECK(bandwidth(218, 1, 8, 40, 0) == test::approx(8 * 40 * 5.0 / 6));
  CHECK(bandwidth(227, 1, 8, 40, 0) == test::approx(8 * 40 * 5.0 / 6));
  // 85 % of both ways of what the other heads hold; algorithm bandwidth of 2(n - 1)/n.
  CHECK(bandwidth(228, 1, 8, 40, 0) == test::approx(8 * 40 * 0.85 * 2 * 7 / 8 * 8 / 14));
  // Of Blackwell 74 %.
  CHECK(bandwidth(229, 1, 8, 80, 0, 100) == test::approx(8 * 80 * 0.74 * 2 * 7 / 8 * 8 / 14));
  CHECK(bandwidth(227, 1, 8, 80, 0, 100) == test::approx(8 * 80 * 5.0 / 6));
  CHECK(bandwidth(228, 1, 4, 60, 0) == test::approx(4 * 60 * 0.85 * 2 * 3 / 4 * 4 / 6));
  CHECK(bandwidth(218, 4, 8, 40, 48) == test::approx(8 * 40 * 5.0 / 6));
  CHECK(bandwidth(219, 2, 8, 40, 48) == test::approx(8 * 40 * 5.0 / 6));
  CHECK(bandwidth(219, 3, 8, 40, 48) == test::approx(8 * 24 * 5.0 / 6));
  CHECK(bandwidth(228, 2, 8, 24, 12) == test::approx(8 * 24 * 16 / 30.0));
  CHECK(bandwidth(228, 2, 8, 40, 48) == test::approx(8 * 57.7 * 16 / 30.0));
  CHECK(bandwidth(228, 3, 8, 40, 48) == test::approx(8 * 45.5 * 24 / 46.0));
  CHECK(bandwidth(228, 3, 8, 20, 22) == test::approx(8 * 22 * 24 / 46.0));
  CHECK(bandwidth(228, 2, 8, 20, 22) == test::approx(8 * 20 * 0.85 * 2 * 7 / 8 * 16 / 30));
}

TEST_CASE("limits of Blackwell came with 2.25: at first twice Hopper's, from 2.28 on its own") {
  const auto with = [](int version, int nodes, int capability) { return facts_of(version, nodes, capability); };
  CHECK(tree_limit(with(224, 2, 100), Protocol::simple) == tree_limit(with(224, 2, 90), Protocol::simple));
  CHECK(tree_limit(with(225, 2, 100), Protocol::simple) == 2 * tree_limit(with(225, 2, 90), Protocol::simple));
  CHECK(ll_limit(with(227, 1, 100)) == 2 * ll_limit(with(227, 1, 90)));
  const auto ring = [&](int version, int nodes) {
    const auto facts = with(version, nodes, 100);
    return ring_ll128_limit(facts, Collective::all_reduce) / facts.graph_channels;
  };
  CHECK(ring(227, 2) == test::approx(73.4));
  CHECK(ring(228, 2) == test::approx(34.6));
  CHECK(ring(228, 1) == test::approx(73.4));
  CHECK(ring(229, 1) == test::approx(40));
  const auto tree = [&](int version, int nodes, Protocol protocol) {
    const auto facts = with(version, nodes, 100);
    const auto limit =
        protocol == Protocol::ll128 ? tree_ll128_limit(facts, Collective::all_reduce) : tree_limit(facts, protocol);
    return limit / facts.graph_channels;
  };
  CHECK(tree(227, 4, Protocol::simple) == test::approx(2 * 36));
  CHECK(tree(227, 2, Protocol::ll128) == test::approx(2 * 36.7));
  for (const int version : {228, 229, 230}) {
    CAPTURE(version);
    CHECK(tree(version, 1, Protocol::simple) == test::approx(70));
    CHECK(tree(version, 4, Protocol::simple) == test::approx(24));
    CHECK(tree(version, 2, Protocol::ll128) == test::approx(31.67));
  }
  // NVLSTree: heads of 96 GB/s and more let the limit show.
  const auto nvls_tree = [&](int version, int nodes) {
    auto facts = with(version, nodes, 100);
    facts.nvls = {8, 200, 200};
    return nvls_bandwidth(facts) / 8 * 2 * (facts.num_ranks - 1) / facts.num_ranks;
  };
  CHECK(nvls_tree(228, 2) == test::approx(96));
  CHECK(nvls_tree(228, 4) == test::approx(43.8));
  CHECK(nvls_tree(229, 4) == test::approx(43.8));
  CHECK(nvls_tree(230, 4) == test::approx(80));
}

TEST_CASE("NVLSTree is corrected as trees of Simple are, on Blackwell with x86 processors only, to 1 GiB") {
  const auto factor = [](int version, int capability, bool is_x86, Bytes size) {
    auto facts = facts_of(version, 2, capability);
    facts.is_x86 = is_x86;
    return nvls_tree_correction(facts, size);
  };
  for (const Bytes size : {64_KiB, 1_MiB, 48_MiB, 256_MiB})
    CHECK(factor(228, 100, true, size) == tree_correction(Protocol::simple, size));
  CHECK(tree_correction(Protocol::simple, 512_MiB) == 1);
  CHECK(factor(228, 100, true, 512_MiB) == test::approx(0.9));
  CHECK(factor(228, 100, true, 1_GiB) == 1);
  CHECK(factor(227, 100, true, 1_MiB) == 1);
  CHECK(factor(228, 90, true, 1_MiB) == 1);
  CHECK(factor(228, 100, false, 1_MiB) == 1);
}
