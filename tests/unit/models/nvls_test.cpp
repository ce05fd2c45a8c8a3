// SPDX-License-Identifier: Apache-2.0
// Channels of NVLink SHARP that NCCL's search finds: every head crosses its port twice, the others once.
#include "models/nccl/nvls.hpp"

#include <doctest/doctest.h>

using namespace fabricast::models::nccl;

TEST_CASE("a channel of NVLink SHARP gets a port's bandwidth over one more than the GPUs: 40 GB/s on 8 H100") {
  const double port = 18 * 20.6;
  for (const auto& row : {std::pair{8, 40.0}, {7, 40.0}, {6, 50.0}, {5, 60.0}, {4, 60.0}, {2, 60.0}, {16, 20.0}}) {
    const auto& [heads, speed] = row;
    CAPTURE(row.first);
    const auto graph = search_nvls(port, heads, 228, 90);
    CHECK(graph.heads == heads);
    CHECK(graph.inside == speed);
    CHECK(graph.between == 0);
  }
  CHECK(search_nvls(18 * 22.0, 8, 217, 90).inside == 33);  // 2.17 tries other speeds
}

TEST_CASE("between hosts a GPU with an HCA of its own is a head, more heads are better than faster ones") {
  struct Row {
    std::vector<double> hcas;
    double port;
    int capability, heads;
    double inside, between;
  };
  const double hopper = 18 * 20.6;
  const double blackwell = 18 * 40.1;
  auto unequal = std::vector<double>(8, 50);
  unequal[3] = 12.5;
  for (const auto& row : std::vector<Row>{
           {std::vector<double>(8, 50), hopper, 90, 8, 40, 48},       // 370.8 / 9
           {std::vector<double>(8, 25), hopper, 90, 8, 24, 24},       // what the HCA has
           {std::vector<double>(4, 50), hopper, 90, 4, 48, 48},       // 370.8 / 5
           {std::vector<double>(1, 50), hopper, 90, 1, 48, 48},       // 370.8 / 2
           {unequal, hopper, 90, 7, 45, 48},                          // 12 is less than .49 of 45
           {std::vector<double>(8, 50), 18, 90, 8, 1.2, 2.4},         // 2 GB/s of a port
           {std::vector<double>(72, 50), blackwell, 100, 32, 20, 40}  // 721.8 / 33
       }) {
    CAPTURE(row.hcas.size());
    CAPTURE(row.port);
    const auto graph = search_nvls(row.port, row.hcas, 228, row.capability);
    CHECK(graph.heads == row.heads);
    CHECK(graph.inside == row.inside);
    CHECK(graph.between == row.between);
  }
}

namespace {

NvlsKernels kernels(int version, int capability, int hosts, const NvlsWay& way = {8, 50, true}) {
  CommunicatorFacts facts;
  facts.version = version;
  facts.compute_capability = capability;
  facts.num_nodes = hosts;
  return nvls_kernels(facts, way, 131072);
}

}  // namespace

TEST_CASE("kernels of NVLink SHARP have 16 channels, on Blackwell 32, in one host 24 from 2.27 on") {
  for (const int version : {217, 226, 227, 230}) CHECK(kernels(version, 90, 1).channels == 16);
  CHECK(kernels(226, 100, 1).channels == 32);
  CHECK(kernels(227, 100, 1).channels == 24);
  CHECK(kernels(228, 90, 2).channels == 16);
  CHECK(kernels(228, 100, 2).channels == 32);
}

TEST_CASE("from 2.22 to 2.27 rings have as many channels as NVLink SHARP beside them, before and after their own") {
  const auto rings = [](int version, int capability, std::size_t found) {
    CommunicatorFacts facts;
    facts.version = version;
    return channels_beside_nvls(facts, kernels(version, capability, 2), found);
  };
  for (const int version : {220, 221, 228, 230}) CHECK(rings(version, 90, 4) == 4);
  for (const int version : {222, 225, 227}) CHECK(rings(version, 90, 4) == 16);
  CHECK(rings(226, 90, 24) == 24);
  CHECK(rings(227, 100, 16) == 32);
}

TEST_CASE(
    "chunks of NVLSTree: 512 KiB until 2.20, then 128, halved from four hosts on, of Blackwell by a table in 2.30") {
  constexpr double kib = 1024;
  struct Row {
    int version, capability, hosts;
    NvlsWay way;
    int channels;
    double chunk;
  };
  const NvlsWay near{8, 50, true}, far{4, 50, false}, fast{8, 100, true}, slow{8, 25, true};
  for (const auto& row : std::vector<Row>{{218, 90, 8, near, 16, 512},
                                          {220, 90, 2, near, 16, 512},
                                          {221, 90, 4, near, 16, 64},
                                          {221, 90, 2, near, 16, 128},
                                          {228, 90, 3, near, 16, 128},
                                          {230, 90, 4, near, 16, 64},
                                          {229, 100, 4, near, 32, 64},
                                          {230, 100, 2, near, 32, 64},
                                          {230, 100, 2, far, 32, 256},
                                          {230, 100, 2, fast, 32, 128},
                                          {230, 100, 4, near, 24, 64},
                                          {230, 100, 4, far, 24, 128},
                                          {230, 100, 4, fast, 24, 256},
                                          {230, 100, 4, {72, 100, false}, 32, 64},
                                          {230, 100, 4, slow, 32, 64}}) {
    CAPTURE(row.version);
    CAPTURE(row.hosts);
    CAPTURE(row.way.hca_gb_per_s);
    const auto found = kernels(row.version, row.capability, row.hosts, row.way);
    CHECK(found.channels == row.channels);
    CHECK(found.tree_chunk == row.chunk * kib);
  }
}

TEST_CASE("8 H200 with NVLink SHARP take it from 2 MiB on, 4 stay with rings") {
  const auto choice = [](int gpus, std::int64_t bytes) {
    CommunicatorFacts facts;
    facts.num_ranks = gpus;
    facts.compute_capability = 90;
    facts.graph_channels = 12;
    facts.channel_gb_per_s = 30;
    facts.version = 228;
    facts.nvls_allowed = true;
    facts.nvls = search_nvls(18 * 20.6, gpus, 228, 90);
    return choose(facts, Collective::all_reduce, fabricast::Bytes{bytes}, {}, {}).algorithm;
  };
  // Published: rings up to 1 MiB on 8; NVLS of 8 GiB on 5 to 8 GPUs, rings on 4.
  CHECK(choice(8, 1 << 20) == Algorithm::ring);
  CHECK(choice(8, 2 << 20) == Algorithm::nvls);
  for (const int gpus : {5, 6, 7, 8}) CHECK(choice(gpus, 8LL << 30) == Algorithm::nvls);
  for (const int gpus : {2, 3, 4}) CHECK(choice(gpus, 8LL << 30) == Algorithm::ring);
}

TEST_CASE("NVLink SHARP of Blackwell: 80 GB/s for each of eight heads, 20 for each of 32") {
  const double port = 18 * 40.1;
  CHECK(search_nvls(port, 8, 228, 100).inside == 80);
  CHECK(search_nvls(port, 32, 228, 100).inside == 20);
}
