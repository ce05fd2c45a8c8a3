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
    const auto graph = search_nvls(port, heads, 0, 228, 90);
    CHECK(graph.heads == heads);
    CHECK(graph.inside == speed);
    CHECK(graph.between == 0);
  }
  CHECK(search_nvls(18 * 22.0, 8, 0, 217, 90).inside == 33);  // 2.17 tries other speeds
}

TEST_CASE("between hosts every head has its part of the network, up to twice its speed inside") {
  const double port = 18 * 20.6;
  const auto eight = search_nvls(port, 8, 50, 228, 90);
  CHECK(eight.inside == 40);
  CHECK(eight.between == 48);
  const auto four = search_nvls(port, 8, 25, 228, 90);
  CHECK(four.inside == 24);
  CHECK(four.between == 24);
  const auto wide = search_nvls(18.0, 8, 50, 228, 90);  // 2 GB/s of a port
  CHECK(wide.inside == 1.2);
  CHECK(wide.between == 2.4);
}

TEST_CASE(
    "kernels of NVLink SHARP have 16 channels, on Blackwell 32, in one host 24 from 2.27 on, between hosts no more "
    "than rings") {
  for (const int version : {217, 226, 227, 230}) CHECK(nvls_channels(version, 90, 1, 24) == 16);
  CHECK(nvls_channels(226, 100, 1, 24) == 32);
  CHECK(nvls_channels(227, 100, 1, 24) == 24);
  CHECK(nvls_channels(228, 90, 2, 24) == 16);
  CHECK(nvls_channels(228, 100, 2, 64) == 32);
  CHECK(nvls_channels(228, 90, 2, 8) == 8);
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
    facts.nvls = search_nvls(18 * 20.6, gpus, 0, 228, 90);
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
  CHECK(search_nvls(port, 8, 0, 228, 100).inside == 80);
  CHECK(search_nvls(port, 32, 0, 228, 100).inside == 20);
}
