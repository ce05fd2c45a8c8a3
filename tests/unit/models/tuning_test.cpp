// SPDX-License-Identifier: Apache-2.0
// NCCL's own choices, against the debug log of the 8-GPU H200 VM
// (calibration/data/h200-8gpu-.../nccl-tuning-debug.txt).
#include "models/nccl/tuning.hpp"

#include <doctest/doctest.h>

#include <string>

#include "fabricast/units.hpp"
#include "tests/support/approx.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using namespace fabricast::models::nccl;

namespace {

CommunicatorFacts eight_h200() {
  CommunicatorFacts facts;
  facts.num_ranks = 8;
  facts.compute_capability = 90;
  facts.graph_channels = 12;
  facts.channel_gb_per_s = 30;
  facts.version = 228;
  return facts;
}

}  // namespace

TEST_CASE("NCCL 2.28 on 8 H200 changes protocol at 4 MiB and 64 MiB, as its debug log shows") {
  const auto facts = eight_h200();
  const auto at = [&](Bytes size) { return choose(facts, Collective::all_reduce, size, {}, {}); };
  for (const auto size : {1_KiB, 32_KiB, 1_MiB, 2_MiB}) {
    CAPTURE(size.value);
    CHECK(at(size).algorithm == Algorithm::ring);
    CHECK(at(size).protocol == Protocol::ll);
  }
  for (const auto size : {4_MiB, 8_MiB, 32_MiB}) {
    CAPTURE(size.value);
    CHECK(at(size).algorithm == Algorithm::ring);
    CHECK(at(size).protocol == Protocol::ll128);
  }
  CHECK(at(64_MiB).protocol == Protocol::simple);
}

TEST_CASE("from 2.7 on LL128 costs more to start, so two nodes of one V100 keep LL up to 32 KiB") {
  CommunicatorFacts facts;
  facts.num_ranks = facts.num_nodes = 2;
  facts.is_nvlink = false;
  facts.graph_channels = 1;
  facts.channel_gb_per_s = facts.node_gb_per_s = 12;
  const auto at = [&](int version, Bytes size) {
    facts.version = version;
    return choose(facts, Collective::all_reduce, size, {}, {}).protocol;
  };
  CHECK(at(207, 32_KiB) == Protocol::ll);
  CHECK(at(207, 64_KiB) == Protocol::ll128);
  for (const int version : {205, 206}) CHECK(at(version, 32_KiB) == Protocol::ll128);
  CHECK(at(204, 64_KiB) != Protocol::ll128);
}

TEST_CASE("NCCL's estimate repeats the latency and bandwidth table it printed for 8 H200") {
  const auto facts = eight_h200();
  // "AllReduce | Tree LL 15.2/43.6 ... | Ring LL 15.0/80.6 | LL128 40.6/189.3 | Simple 56.0/205.7": us / GB/s.
  struct Printed {
    Algorithm algorithm;
    Protocol protocol;
    double latency_us, gb_per_s;
  };
  for (const auto& printed :
       {Printed{Algorithm::ring, Protocol::ll, 15.0, 80.6}, Printed{Algorithm::ring, Protocol::ll128, 40.6, 189.3},
        Printed{Algorithm::ring, Protocol::simple, 56.0, 205.7}}) {
    const auto none = estimated_time_us(facts, Collective::all_reduce, printed.algorithm, printed.protocol, 0_B);
    CHECK(none == test::approx(printed.latency_us).epsilon(0.005));
    const auto gibi = estimated_time_us(facts, Collective::all_reduce, printed.algorithm, printed.protocol, 1_GiB);
    CHECK(1073741824e-3 / (gibi - none) == test::approx(printed.gb_per_s).epsilon(0.005));
  }
}

TEST_CASE("NCCL opens LL channels with size: 1 to 32 KiB, then doubling to 24 at 1 MiB") {
  const auto facts = eight_h200();
  const Choice ll{Algorithm::ring, Protocol::ll};
  CHECK(channel_use(facts, ll, 1_KiB, 24).channels == 1);
  CHECK(channel_use(facts, ll, 32_KiB, 24).channels == 1);
  CHECK(channel_use(facts, ll, 64_KiB, 24).channels == 2);
  CHECK(channel_use(facts, ll, 128_KiB, 24).channels == 4);
  CHECK(channel_use(facts, ll, 256_KiB, 24).channels == 8);
  CHECK(channel_use(facts, ll, 512_KiB, 24).channels == 16);
  CHECK(channel_use(facts, ll, 1_MiB, 24).channels == 24);
}

TEST_CASE("a channel has 512 B of traffic at least in 2.22, 16 KiB from 2.24 and 32 KiB from 2.29 on") {
  auto facts = eight_h200();
  facts.num_nodes = 2;
  const auto channels = [&](int version, Choice choice, Bytes size, Collective collective = Collective::all_reduce) {
    facts.version = version;
    facts.collective = collective;
    return channel_use(facts, choice, size, 16).channels;
  };
  // Traffic of an all-reduce is twice its bytes, and a thread block of LL128 has 640 x 8 B.
  constexpr Choice lines{Algorithm::tree, Protocol::ll128}, ll{Algorithm::tree, Protocol::ll};
  CHECK(channels(221, lines, 64_KiB) == 12);
  CHECK(channels(222, lines, 64_KiB) == 12);
  for (const int version : {224, 226, 228}) CHECK(channels(version, lines, 64_KiB) == 8);
  CHECK(channels(229, lines, 64_KiB) == 4);
  // LL counts four times from 2.26 on; a thread block of it has 512 x 8 B.
  CHECK(channels(225, ll, 64_KiB) == 8);
  for (const int version : {222, 226, 229}) CHECK(channels(version, ll, 64_KiB) == 16);
  // All that an all-gather collects is its traffic.
  CHECK(channels(228, {Algorithm::ring, Protocol::ll128}, 64_KiB, Collective::all_gather) == 4);
  CHECK(channels(229, {Algorithm::ring, Protocol::ll128}, 64_KiB, Collective::all_gather) == 2);
}

TEST_CASE("NVLink SHARP opens all channels until 2.21, then as many as the traffic fills") {
  auto facts = eight_h200();
  constexpr Choice sharp{Algorithm::nvls, Protocol::simple};
  facts.version = 221;
  CHECK(channel_use(facts, sharp, 1_KiB, 16).channels == 16);
  facts.version = 228;
  CHECK(channel_use(facts, sharp, 1_KiB, 16).channels == 1);
  CHECK(channel_use(facts, sharp, 64_KiB, 16).channels == 8);
  CHECK(channel_use(facts, sharp, 1_MiB, 16).channels == 16);
}

TEST_CASE("a forced algorithm or protocol is kept whatever it costs") {
  const auto facts = eight_h200();
  const auto choice = choose(facts, Collective::all_reduce, 1_GiB, Algorithm::tree, Protocol::ll);
  CHECK(choice.algorithm == Algorithm::tree);
  CHECK(choice.protocol == Protocol::ll);
}

TEST_CASE("collectives other than all-reduce have no tree") {
  CHECK(estimated_time_us(eight_h200(), Collective::broadcast, Algorithm::tree, Protocol::simple, 1_MiB) < 0);
}

namespace {

/// Nodes of four V100 with two EDR HCAs beyond the GPUs' switches, NCCL 2.8.
CommunicatorFacts v100_meshes(int nodes) {
  CommunicatorFacts facts;
  facts.num_ranks = 4 * nodes;
  facts.num_nodes = nodes;
  facts.has_equal_channels = false;
  facts.graph_channels = nodes > 1 ? 2 : 6;
  facts.channel_gb_per_s = nodes > 1 ? 12 : 20;
  facts.node_gb_per_s = 120;
  facts.ll128_allowed = nodes == 1;
  facts.version = 208;
  return facts;
}

/// Nodes of eight A100 behind NVSwitches with four HCAs that NCCL 2.8 takes for PCIe 3.
CommunicatorFacts a100_switches(int nodes) {
  auto facts = v100_meshes(nodes);
  facts.num_ranks = 8 * nodes;
  facts.has_equal_channels = true;
  facts.compute_capability = 80;
  facts.graph_channels = 4;
  facts.channel_gb_per_s = 12;
  facts.node_gb_per_s = 240;
  facts.ll128_allowed = true;
  return facts;
}

std::string choice_at(const CommunicatorFacts& facts, Collective collective, Bytes size) {
  const auto choice = choose(facts, collective, size, {}, {});
  return std::string(to_string(choice.algorithm)) + " " + std::string(to_string(choice.protocol));
}

}  // namespace

// Sizes at which published tables of V100 and A100 nodes change their slope.
TEST_CASE("without LL128 NCCL 2.8 stays with LL on V100 nodes until Simple's latency is paid off") {
  CHECK(choice_at(v100_meshes(2), Collective::all_reduce, 256_KiB) == "ring ll");
  CHECK(choice_at(v100_meshes(2), Collective::all_reduce, 512_KiB) == "ring simple");
  CHECK(choice_at(v100_meshes(16), Collective::all_reduce, 1_KiB) == "tree ll");
  CHECK(choice_at(v100_meshes(16), Collective::all_reduce, 1_MiB) == "ring ll");
  CHECK(choice_at(v100_meshes(16), Collective::all_reduce, 4_MiB) == "tree simple");
}

TEST_CASE("between A100 nodes NCCL 2.8 goes from LL trees to LL128 trees") {
  CHECK(choice_at(a100_switches(2), Collective::all_reduce, 64_KiB) == "tree ll");
  for (const auto size : {128_KiB, 4_MiB, 32_MiB})
    CHECK(choice_at(a100_switches(2), Collective::all_reduce, size) == "tree ll128");
}

TEST_CASE("NCCL counts every hop of a broadcast on a mesh, one where all channels take the same way") {
  CHECK(choice_at(v100_meshes(1), Collective::broadcast, 512_KiB) == "ring ll");
  CHECK(choice_at(v100_meshes(1), Collective::broadcast, 1_MiB) == "ring ll128");
  CHECK(choice_at(v100_meshes(2), Collective::broadcast, 1_MiB) == "ring ll");
  CHECK(choice_at(v100_meshes(2), Collective::broadcast, 2_MiB) == "ring simple");
  CHECK(choice_at(a100_switches(2), Collective::broadcast, 64_KiB) == "ring ll");
  CHECK(choice_at(a100_switches(2), Collective::broadcast, 128_KiB) == "ring ll128");
  CHECK(choice_at(a100_switches(2), Collective::broadcast, 4_MiB) == "ring simple");
}

TEST_CASE("with one GPU per node NCCL plans a ring's network hops as long as a tree's, from 2.23 on") {
  auto facts = a100_switches(2);
  facts.num_ranks = 2;
  const auto latency = [&](int version) {
    facts.version = version;
    return estimated_time_us(facts, Collective::all_reduce, Algorithm::ring, Protocol::ll128, 0_B);
  };
  // Both take the hop that closes the ring for one between nodes.
  CHECK(latency(222) == test::approx(14 - 2 * 1.9 + 4 * 4.0));
  CHECK(latency(223) == test::approx(14 + 2 * 8.5));
}

TEST_CASE("PAT is planned among nodes of one GPU, from 2.23 on: NCCL's own table of eight over sockets") {
  CommunicatorFacts facts;
  facts.num_ranks = facts.num_nodes = 8;
  facts.compute_capability = 90;
  facts.is_nvlink = facts.ll128_allowed = false;
  facts.graph_channels = 1;
  facts.channel_gb_per_s = 1.2;
  const auto at = [](const CommunicatorFacts& one, Bytes size, Collective collective = Collective::all_gather,
                     Protocol protocol = Protocol::simple) {
    return estimated_time_us(one, collective, Algorithm::pat, protocol, size);
  };
  // calibration/data/h200-2gpu-pat-over-sockets: 42.4 us, 0.9 GB/s.
  CHECK(at(facts, 0_B) == test::approx(42.4).epsilon(0.002));
  CHECK((at(facts, 1_MiB) - at(facts, 0_B)) == test::approx(1048576 / 900.0));
  CHECK(at(facts, 1_MiB, Collective::reduce_scatter) == at(facts, 1_MiB));
  CHECK(at(facts, 1_MiB, Collective::all_reduce) < 0);
  CHECK(at(facts, 1_MiB, Collective::broadcast) < 0);
  CHECK(at(facts, 1_MiB, Collective::all_gather, Protocol::ll) < 0);
  const auto with = [&](auto change) {
    auto other = facts;
    change(other);
    return at(other, 1_MiB);
  };
  CHECK(with([](auto& f) { f.version = 222; }) < 0);
  CHECK(with([](auto& f) { f.num_ranks = 16; }) < 0);
  CHECK(with([](auto& f) { f.num_ranks = f.num_nodes = 1; }) < 0);
  CHECK(with([](auto& f) { f.compute_capability = 52; }) < 0);
  CHECK(with([](auto& f) { f.version = 223; }) - 42.4 == test::approx(1048576 / (0.85 * 1200)).epsilon(0.001));
  // Between two nodes a tree has twice a channel's speed.
  CHECK(with([](auto& f) { f.num_ranks = f.num_nodes = 2; }) ==
        test::approx(8 + 4 + 2 * 2.8 + 1048576 / (0.75 * 2400)));
  CHECK(choice_at(facts, Collective::all_gather, 64_KiB) == "pat simple");
  CHECK(choice_at(facts, Collective::all_gather, 1_KiB) == "ring ll");
  CHECK(choice_at(facts, Collective::all_gather, 256_KiB) == "ring simple");
}

TEST_CASE("a release is known by major and minor number") {
  CHECK(release_number("2.8") == 208);
  CHECK(release_number("2.28.9") == 228);
  CHECK(release_number("2") == 200);
}

TEST_CASE("between two nodes NCCL grants a tree twice a channel's speed, as far as NVLink has it") {
  auto facts = eight_h200();
  facts.num_ranks = 16;
  facts.num_nodes = 2;
  facts.compute_capability = 70;
  facts.graph_channels = 2;
  facts.channel_gb_per_s = 12;
  facts.node_gb_per_s = 120;
  const auto seconds_per_byte = [](const CommunicatorFacts& one) {
    const auto at = [&](Bytes size) {
      return estimated_time_us(one, Collective::all_reduce, Algorithm::tree, Protocol::ll, size);
    };
    return at(8_GiB) - at(4_GiB);
  };
  auto narrow = facts;
  narrow.node_gb_per_s = 24;
  CHECK(seconds_per_byte(narrow) / seconds_per_byte(facts) > 1.6);  // 22 GB/s against 37, the cap of two channels
}

TEST_CASE(
    "from 2.18 on a ring's hops inside nodes last at least the network's overhead: 1 us, 2 on AMD, thrice Simple") {
  auto facts = a100_switches(2);
  const auto latency = [&](int version, bool is_amd, Protocol protocol) {
    facts.version = version;
    facts.is_amd = is_amd;
    return estimated_time_us(facts, Collective::all_reduce, Algorithm::ring, protocol, 0_B);
  };
  // 30 steps, until 2.22 four of them counted between nodes, then two.
  CHECK(latency(217, true, Protocol::ll) == test::approx(3.6 + 26 * 0.47 * 1.8 + 4 * 2.7));
  CHECK(latency(218, false, Protocol::ll) == test::approx(6.6 + 26 * 1.0 + 4 * 2.7));
  CHECK(latency(218, true, Protocol::ll) == test::approx(6.6 + 26 * 2.0 + 4 * 2.7));
  CHECK(latency(218, false, Protocol::simple) == test::approx(8.4 + 26 * 3.4 + 4 * 14.0));
  CHECK(latency(218, true, Protocol::simple) == test::approx(8.4 + 26 * 6.0 + 4 * 14.0));
  CHECK(latency(223, true, Protocol::simple) == test::approx(8.4 + 28 * 6.0 + 2 * 14.0));
}
