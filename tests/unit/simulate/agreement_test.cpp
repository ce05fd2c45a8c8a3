// SPDX-License-Identifier: Apache-2.0
// Where nothing congests, the packet engine takes the time of the fluid engine: random hosts, limits inside them, MTUs,
// flow control and benchmarks, with the defaults a user gets.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using test::Random;

namespace {

struct Fabric {
  std::string hca;
  std::string slot;
  std::string fabric;  ///< one switch
};

// Adapters of 25 to 400 Gb/s on a switch of their kind: as it comes, lossless with and without ECN, lossy.
const std::vector<Fabric> k_fabrics{
    {"connectx-4-lx-25g", "gen3 x8", "{switch: ethernet-25g-tor, cable: 3 m}"},
    {"connectx-4-100g", "gen3 x16", "{switch: sn2700, cable: 5 m}"},
    {"connectx-4-100g", "gen3 x16", "{switch: sn2700, cable: 5 m, lossless: {pfc: [3]}}"},
    {"connectx-6-dx-200g", "gen4 x16", "{switch: sn4600, cable: 3 m, lossless: {flow_control: drop}}"},
    {"connectx-6-dx-200g", "gen4 x16",
     "{switch: sn4600, cable: 3 m, lossless: {pfc: [3], ecn: {min: 150 kB, max: 1500 kB}}}"},
    {"connectx-4-edr", "gen3 x16", "{switch: sb7800, cable: 5 m}"},
    {"connectx-6-hdr", "gen4 x16", "{switch: qm8700, cable: 5 m}"},
    {"connectx-7-ndr", "gen5 x16", "{switch: qm9700, cable: 5 m}"},
};

struct Case {
  std::string text;
  std::string limit;
};

/// `hosts` of one kind; what their adapters' PCIe links trained to and what virtual functions allow is random.
Case random_case(Random& random, int hosts, const std::string& workload) {
  const auto& one = random.pick(k_fabrics);
  const auto trained = random.pick<std::string>({"", "gen3 x4", "gen3 x8", "gen1 x8"});
  const auto limit = random.pick<std::string>({"", "", "5 Gb/s", "17 Gb/s", "25 Gb/s"});
  const auto mtu = random.pick<std::string>({"1024", "2048", "4096"});
  Case out;
  out.text = fmt::format(
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n"
      "    - name: node\n      count: {}\n      host:\n        processor: epyc-rome\n        sockets: 2\n        "
      "devices:\n"
      "          - {{name: gpu0, type: a100-pcie-40, below: socket0, pcie: gen4 x16}}\n"
      "          - {{name: hca0, type: {}, below: socket0, pcie: {}{}}}\n"
      "  fabric:\n    single_switch: {}\n{}workload: {{{}}}\n",
      hosts, one.hca, one.slot, trained.empty() ? "" : ", trained: " + trained,
      one.fabric.substr(0, one.fabric.size() - 1) + ", mtu: " + mtu + " B}",
      limit.empty() ? "" : fmt::format("virtualization: {{mode: sr-iov, rate_limit: {}}}\n", limit), workload);
  out.limit = trained + " " + limit;
  return out;
}

/// 82 bytes of headers on two links of 25 Gb/s: part of what fluid latencies were fitted to, paid besides by a packet.
constexpr double k_headers_s = 2 * 82 / 3.125e9;

/// Both engines, row by row.
void check_agreement(const std::string& text, double within = 0.01) {
  CAPTURE(text);
  const auto loaded = test::scenario(text);
  const auto fluid = test::run(loaded);
  SimulateOptions options;
  options.fidelity = Fidelity::packet;
  const auto packet = test::run(loaded, options);
  REQUIRE(fluid.workloads[0].rows.size() == packet.workloads[0].rows.size());
  for (std::size_t r = 0; r < fluid.workloads[0].rows.size(); ++r) {
    const auto& row = packet.workloads[0].rows[r];
    CAPTURE(row.size.value);
    CAPTURE(row.time.us());
    CAPTURE(fluid.workloads[0].rows[r].time.us());
    CHECK(row.fabric->lossless_drops + row.fabric->lossy_drops == 0);
    const double expected = fluid.workloads[0].rows[r].time.seconds();
    CHECK(std::abs(row.time.seconds() - expected) < within * expected + k_headers_s);
  }
}

}  // namespace

TEST_CASE("uncongested, both engines agree within 1 %: point to point, whatever limits the hosts") {
  const std::vector<std::string> workloads{
      "benchmark: osu_latency, sizes: [0 B, 1 B, 100 B, 4 KiB, 5000 B, 64 KiB, 1 MiB]",
      "benchmark: osu_bw, sizes: [1 B, 1 KiB, 8 KiB, 100000 B, 4 MiB]",
      "benchmark: osu_bibw, sizes: [1 KiB, 64 KiB, 1 MiB]",
      "benchmark: osu_mbw_mr, pairs: 2, sizes: [4 KiB, 1 MiB]",
      "benchmark: ib_write_bw, sizes: [512 B, 64 KiB]",
      "benchmark: ib_write_lat, sizes: [2 B, 4 KiB, 1 MiB]",
      "benchmark: ib_write_bw, queue_pairs: 4, sizes: [64 KiB]",
      "benchmark: osu_bw, sizes: [64 KiB, 1 MiB], buffers: [device, device]",
      "benchmark: osu_latency, sizes: [8 B, 4 KiB, 1 MiB], buffers: [device, host]",
  };
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    check_agreement(random_case(random, 2, workloads[seed % workloads.size()]).text);
  }
}

TEST_CASE("uncongested, both engines agree within 1 %: collectives and traffic on several hosts") {
  const std::vector<std::string> workloads{
      "benchmark: osu_allreduce, sizes: [8 B, 16 KiB, 1 MiB]",
      "benchmark: osu_bcast, sizes: [8 B, 64 KiB]",
      "benchmark: osu_allgather, sizes: [8 B, 64 KiB]",
      "benchmark: all_reduce_perf, sizes: [1 KiB, 1 MiB, 32 MiB]",
      "benchmark: traffic, pattern: permutation, sizes: [4 KiB, 1 MB, 8 MB]",
      "benchmark: traffic, pattern: ring_all_reduce, sizes: [64 KiB, 8 MB]",
  };
  for (std::uint64_t seed = 101; seed <= 148; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const int hosts = static_cast<int>(2 + random.next(4));
    check_agreement(random_case(random, hosts, workloads[seed % workloads.size()]).text);
  }
}

namespace {

/// Two hosts at the ends of a chain of switches, each cable of a rate of its own (Gb/s).
std::string chain(bool is_infiniband, const std::vector<int>& rates, const std::string& workload) {
  std::string switches;
  std::string cables;
  const auto last = rates.size() - 1;
  for (std::size_t s = 0; s < last; ++s)
    switches += fmt::format("{}{{name: s{}, type: {}}}", s == 0 ? "" : ", ", s, is_infiniband ? "qm8700" : "sn4600");
  for (std::size_t c = 0; c <= last; ++c)
    cables +=
        fmt::format("      - {{from: {}, to: {}, rate: {} Gb/s}}\n", c == 0 ? "node0.hca0" : fmt::format("s{}", c - 1),
                    c == last ? "node1.hca0" : fmt::format("s{}", c), rates[c]);
  return fmt::format(
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n"
      "    - {{name: node, count: 2, host: {{processor: epyc-rome, devices: [{{name: gpu0, type: a100-pcie-40, below: "
      "socket0, pcie: gen4 x16}}, {{name: hca0, type: {}, below: socket0, pcie: gen4 x16}}]}}}}\n"
      "  fabric:\n   list:\n    switches: [{}]\n    cables:\n{}"
      "workload: {{transport: {{congestion_control: none}}, {}}}\n",
      is_infiniband ? "connectx-6-hdr" : "connectx-6-dx-200g", switches, cables, workload);
}

}  // namespace

TEST_CASE("uncongested, both engines agree within 2 % over cables of any rates: switches wait for faster ports") {
  const std::vector<std::string> workloads{
      "benchmark: ib_write_lat, sizes: [2 B, 1 KiB, 4 KiB, 64 KiB]",
      "benchmark: ib_read_lat, sizes: [4 KiB, 64 KiB]",
      "benchmark: osu_latency, sizes: [8 B, 4 KiB, 8 KiB, 1 MiB]",
      "benchmark: osu_allreduce, sizes: [8 B, 4 KiB, 64 KiB]",
      "benchmark: sendrecv_perf, sizes: [8 B, 4 KiB, 1 MiB]",
      "benchmark: all_reduce_perf, sizes: [8 B, 16 KiB, 1 MiB]",
      "benchmark: traffic, pattern: ring_all_reduce, sizes: [8 KiB, 1 MB]",
      "benchmark: traffic, flows: [{from: node0, to: node1}], sizes: [100 B, 4 KiB, 1 MB]",
  };
  for (std::uint64_t seed = 201; seed <= 264; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    std::vector<int> rates(2 + random.next(4));
    for (auto& rate : rates) rate = random.pick<int>({50, 100, 200});
    check_agreement(chain(random.next(2) == 0, rates, workloads[seed % workloads.size()]), 0.02);
  }
}

TEST_CASE("a packet is on the wire once more for each switch whose next cable is faster, not where it is slower") {
  const auto time = [](const std::vector<int>& rates) {
    return test::run(test::scenario(chain(false, rates,
                                          "benchmark: traffic, flows: [{from: node0, to: node1}], "
                                          "sizes: [4096 B]")))
        .workloads[0]
        .rows.at(0)
        .time.seconds();
  };
  const double wire = (4096 + 82) * 8 / 100e9;  // at 100 Gb/s
  const double even = time({100, 100, 100, 100});
  CHECK(time({100, 200, 200, 100}) - even == test::approx(wire).epsilon(0.01));
  CHECK(time({200, 100, 200, 200}) - even == test::approx(wire / 2).epsilon(0.01));
  CHECK(time({100, 200, 100, 200}) - even == test::approx(wire + wire / 2).epsilon(0.01));
  CHECK(time({200, 200, 100, 100}) == test::approx(even).epsilon(1e-9));
}

TEST_CASE("an oversubscribed link between switches carries headers in both engines, and is named as what binds") {
  const std::vector<std::pair<std::string, std::string>> kinds{
      {"connectx-4-100g", "switch: sn2700, lossless: {pfc: [3]}"}, {"connectx-4-edr", "switch: sb7800"}};
  const std::vector<std::string> shapes{"leaf_spine: {leaf_ports: 5, oversubscription: 4, spines: 1, ",
                                        "fat_tree: {leaf_ports: 5, oversubscription: 4, "};
  for (std::uint64_t seed = 1; seed <= 16; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const auto& [hca, fabric] = kinds[seed % 2];
    const auto senders = 2 + random.next(3);
    const auto mtu = random.pick<int>({1024, 2048, 4096});
    const auto bytes = 1'000'000 * (4 + random.next(12));
    std::string flows;
    for (std::uint64_t f = 0; f < senders; ++f)
      flows += fmt::format("    - {{from: node{}, to: node{}, bytes: {} B}}\n", f, 4 + f, bytes);
    const auto text = fmt::format(
        "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n"
        "    - {{name: node, count: 8, host: {{processor: epyc-rome, devices: [{{name: hca0, type: {}, below: socket0, "
        "pcie: gen3 x16}}]}}}}\n"
        "  fabric: {{{}{}, mtu: {} B}}}}\nworkload:\n  benchmark: traffic\n  transport: {{congestion_control: none}}\n"
        "  flows:\n{}",
        hca, shapes[random.next(2)], fabric, mtu, flows);
    check_agreement(text);
    const auto loaded = test::scenario(text);
    SimulateOptions options;
    options.with_terms = true;
    for (const auto fidelity : {Fidelity::fluid, Fidelity::packet}) {
      options.fidelity = fidelity;
      const auto row = test::run(loaded, options).workloads[0].rows.at(0);
      CHECK(row.bottleneck.find("leaf0 -> ") == 0);
      const double header = hca == "connectx-4-edr" ? 30 : 82;
      const double law = static_cast<double>(senders * bytes) * (mtu + header) / mtu / 12.5e9;
      CHECK(row.time.seconds() == test::approx(law).epsilon(0.01));
      if (fidelity == Fidelity::fluid)
        CHECK(std::ranges::any_of(row.terms,
                                  [](const Term& term) { return term.name.find(" leaf0 -> ") != std::string::npos; }));
    }
  }
}

TEST_CASE("an InfiniBand or PFC host slower than its sender takes its own rate, without a limit at the sender") {
  for (const auto* fabric : {"{switch: qm8700, cable: 5 m}", "{switch: sn4600, cable: 5 m, lossless: {pfc: [3]}}"}) {
    const bool is_infiniband = std::string(fabric).find("qm8700") != std::string::npos;
    const std::string host =
        fmt::format("{{processor: epyc-rome, devices: [{{name: hca0, type: {}, below: socket0, pcie: gen4 x16",
                    is_infiniband ? "connectx-6-hdr" : "connectx-6-dx-200g");
    for (const auto* trained : {"gen3 x4", "gen3 x8", "gen1 x8"}) {
      check_agreement(fmt::format(
          "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n"
          "    - {{name: a, count: 1, host: {}}}]}}}}\n    - {{name: b, count: 1, host: {}, trained: {}}}]}}}}\n"
          "  fabric: {{single_switch: {}}}\nworkload: {{benchmark: traffic, sizes: [4 KiB, 1 MB, 16 MB], flows: "
          "[{{from: "
          "a, to: b}}], transport: {{congestion_control: none}}}}\n",
          host, host, trained, fabric));
    }
  }
}
