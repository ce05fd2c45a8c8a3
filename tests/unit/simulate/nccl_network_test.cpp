// SPDX-License-Identifier: Apache-2.0
// Steps between hosts, term by term against figures computed by hand: slices that are stored and forwarded, hops that
// pay for larger chunks, channels that redirected peers hold.
#include <fmt/format.h>

#include <algorithm>

#include "tests/support/clusters.hpp"

#include "tests/support/approx.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using test::row_at;

namespace {

Row row_of(const std::string& scenario, std::vector<Setting> settings) {
  return test::run(test::shipped(scenario, std::move(settings))).workloads[0].rows.at(0);
}

double term_us(const Row& row, const std::string& words) {
  double sum = 0;
  for (const auto& term : row.terms) {
    if (term.name.find(words) != std::string::npos) sum += term.time.us();
  }
  return sum;
}

const auto* const k_v100 = "validation/v100-abci-8gpu-2node-edr2-allreduce-nccl2.8.yaml";

/// An all-reduce over rings of two hosts of a catalogue type.
std::string two_hosts(const std::string& type, const std::string& keys, const std::string& workload) {
  return "schema: fabricast/scenario/1\nname: test\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: "
         "[{name: node, count: 2, type: " +
         type + keys + "}]\n  fabric: {single_switch: {switch: qm9700}}\nworkload: {benchmark: all_reduce_perf" +
         workload + "}\n";
}

Row largest(const std::string& type, const std::string& keys, const std::string& protocol, const char* algorithm) {
  return row_at(
      test::run(test::scenario(two_hosts(
          type, keys, ", sizes: [512 MiB], algorithm: " + std::string(algorithm) + ", protocol: " + protocol))),
      512_MiB);
}

bool is_held(const Row& row) { return row.bottleneck.find("redirected network connection") != std::string::npos; }

/// Time of `term` in eight V100 of two hosts with one channel.
double us_of_v100(const char* algorithm, const char* protocol, const char* term) {
  return term_us(row_of(k_v100, {{"workload.algorithm", algorithm},
                                 {"workload.protocol", protocol},
                                 {"workload.channels", "1"},
                                 {"workload.sizes", "[64 KiB]"}}),
                 term);
}

}  // namespace

TEST_CASE("a slice is stored and forwarded at the rate of the channel, of LL the proxy's core finds the lines first") {
  // 64 KiB are steps of 8 KiB. 2 (n - 1) / n laps over two network hops: 3.5 hops.
  const auto parameters = test::shipped(k_v100, {}).parameters;
  const double lines = 8192 / 0.5;
  CHECK(us_of_v100("ring", "ll", "proxy checks") ==
        test::approx(3.5 * lines / parameters.number("nccl.line_check_bandwidth") * 1e6).epsilon(1e-4));
  // LL128: a step is one slice. One channel is slower than its thread block: 12.5 GB/s of the slot less headers.
  const double fastest =
      parameters.number("nccl.network_store_and_forward.ll128") * 3.5 * 8192 * 16 / 15 / 12.5e9 * 1e6;
  CHECK(us_of_v100("ring", "ll128", "store and forward") >= fastest);
  CHECK(us_of_v100("ring", "ll128", "store and forward") < 1.3 * fastest);
}

TEST_CASE("a ring of Simple cuts a step into two slices: one arrives and is passed on while the other is on the wire") {
  CHECK(us_of_v100("ring", "simple", "store and forward") == 0);
  CHECK(us_of_v100("tree", "simple", "store and forward") > 0);  // a first chunk has nothing before it
  // So a lap of more hosts costs their hops and bytes: 1 MiB of each of their GPUs.
  const auto beyond_bytes_us = [](int hosts, const std::string& megabytes) {
    const auto prediction = test::run(test::scenario(
        "schema: fabricast/scenario/1\nname: s\ntopology: {schema: fabricast/topology/1, name: t, hosts: [{name: "
        "node, count: 16, type: server-1a100-cx6dx}], fabric: {single_switch: {switch: sn4600, cable: 5 m}}}\n"
        "workload: {benchmark: all_reduce_perf, gpus: " +
        std::to_string(hosts) + ", algorithm: ring, protocol: simple, channels: 1, sizes: [" + megabytes + "]}\n"));
    const auto& row = prediction.workloads[0].rows[0];
    return row.time.us() - term_us(row, "transfer") - term_us(row, "hops");
  };
  CHECK(beyond_bytes_us(16, "16 MiB") == test::approx(beyond_bytes_us(2, "2 MiB")).epsilon(1e-4));
}

TEST_CASE("the buffer that a user names is what chunks of Simple are parts of, a plugin's own or not") {
  const auto us_with = [](const char* shipped, const char* benchmark, const char* name, double bytes) {
    auto scenario = test::shipped(shipped, {{"workload.benchmark", benchmark},
                                            {"workload.protocol", "simple"},
                                            {"workload.channels", "4"},
                                            {"workload.sizes", "[64 MiB]"}});
    auto named = scenario.parameters.at(name);
    named.value = bytes;
    scenario.parameters.set(named);
    return test::run(scenario).workloads[0].rows.at(0).time.us();
  };
  constexpr double mib = 1 << 20;
  const auto* const tcpxo = "validation/h100-gcp-a3mega-16gpu-2vm-tcpxo-allreduce-nccl2.21.yaml";
  // A broadcast's first chunk is an eighth of the buffer.
  for (const auto* shipped : {k_v100, tcpxo}) {
    CAPTURE(shipped);
    const auto us = [&](double bytes) { return us_with(shipped, "broadcast_perf", "nccl.buffer_size", bytes); };
    CHECK(us(2 * mib) < us(16 * mib));
    CHECK(us(16 * mib) < us(32 * mib));
  }
  CHECK(us_with(tcpxo, "broadcast_perf", "nccl.buffer_size", 16 * mib) ==
        us_with(tcpxo, "broadcast_perf", "gvnic-200g.plugin_buffer_size", 16 * mib));
  // A chunk of send and receive is a step of it at most.
  CHECK(us_with(k_v100, "sendrecv_perf", "nccl.buffer_size", 0.5 * mib) ==
        us_with(k_v100, "sendrecv_perf", "nccl.p2p_network_chunk", 0.0625 * mib));
  CHECK(us_with(k_v100, "sendrecv_perf", "nccl.buffer_size", 16 * mib) ==
        us_with(k_v100, "sendrecv_perf", "nccl.buffer_size", 4 * mib));
}

TEST_CASE("the core of a proxy finds the lines of all channels that its process sends, or the wire takes longer") {
  const auto checked = [](int hosts, int channels, const std::string& bandwidth) {
    const auto topology = test::write_file(
        "lines.yaml",
        "schema: fabricast/topology/1\nname: t\nhosts: [{name: node, count: 8, type: server-1a100-cx6dx}]\n"
        "fabric: {single_switch: {switch: sn4600, cable: 5 m}}\nparameters: {nccl.line_check_bandwidth: "
        "{value: " +
            bandwidth + ", source: test}}\n");
    const auto prediction = test::run(test::scenario(
        "schema: fabricast/scenario/1\nname: s\ntopology: " + topology +
        "\nworkload: {benchmark: all_reduce_perf, gpus: " + std::to_string(hosts) +
        ", algorithm: tree, protocol: ll, channels: " + std::to_string(channels) + ", sizes: [32 KiB]}\n"));
    return term_us(prediction.workloads[0].rows[0], "proxy checks");
  };
  // Two hops of a chunk of 32 KiB, lines of twice the bytes: a host sends it to one other.
  const double one_us = checked(2, 1, "1 GB/s");
  CHECK(one_us == test::approx(2 * 65.536));
  CHECK(checked(2, 1, "0.5 GB/s") == test::approx(2 * one_us).epsilon(0.001));
  // Two channels have half of it each, in one process; among eight hosts it is sent up and to two below.
  CHECK(checked(2, 2, "1 GB/s") == test::approx(one_us).epsilon(0.001));
  CHECK(checked(8, 1, "1 GB/s") / one_us == test::approx(3.0 * 3).epsilon(0.001));
  // A fast core waits for the wire.
  const double wire_us = checked(2, 1, "1 TB/s");
  CHECK(wire_us > 0);
  CHECK(checked(2, 1, "2 TB/s") == wire_us);
}

TEST_CASE("until 2.19 NCCL halves the chunks of Simple trees while fewer than the tree is deep are on their way") {
  // Two hosts of four V100: a depth of 3 + 1. One channel, so a chunk of 2.20 is what there is up to 512 KiB.
  struct Halved {
    const char* size;
    double size_kib, kib, later_kib;
  };
  for (const auto& one :
       {Halved{"64 KiB", 64, 32, 64}, Halved{"128 KiB", 128, 32, 128}, Halved{"256 KiB", 256, 64, 256},
        Halved{"1 MiB", 1024, 64, 512}, Halved{"2 MiB", 2048, 128, 512}, Halved{"8 MiB", 8192, 256, 512},
        Halved{"16 MiB", 16384, 512, 512}, Halved{"64 MiB", 65536, 512, 512}}) {
    CAPTURE(one.size);
    const auto row = [&](const char* version) {
      return row_of(k_v100, {{"software.nccl.version", version},
                             {"workload.algorithm", "tree"},
                             {"workload.protocol", "simple"},
                             {"workload.channels", "1"},
                             {"workload.sizes", std::string("[") + one.size + "]"}});
    };
    const auto halved = row("2.19"), whole = row("2.20");
    CHECK(term_us(halved, "filling the pipeline") / term_us(whole, "filling the pipeline") ==
          test::approx(one.kib / one.later_kib).epsilon(1e-3));
    // A chunk alone has the adapter to itself, one of four behind it a quarter of it.
    const auto waits = [&](double chunk) {
      return chunk * (1 + 3 * std::min(1.0, (one.size_kib / chunk - 1) / 4)) / 4;
    };
    CHECK(term_us(halved, "store and forward") / term_us(whole, "store and forward") ==
          test::approx(waits(one.kib) / waits(one.later_kib)).epsilon(1e-3));
  }
}

TEST_CASE("hops over the network pay nothing for larger chunks: those with one GPU per host pay nothing at all") {
  for (const auto* protocol : {"ll128", "simple"}) {
    CAPTURE(protocol);
    const auto paid = [&](const char* gpus, const char* per_host) {
      return term_us(row_of(k_v100, {{"workload.algorithm", "ring"},
                                     {"workload.protocol", protocol},
                                     {"workload.gpus", gpus},
                                     {"workload.ranks_per_host", per_host},
                                     {"workload.sizes", "[1 MiB]"}}),
                     "hops with larger chunks");
    };
    CHECK(paid("2", "1") == 0);
    CHECK(paid("8", "4") > 0);
  }
}

TEST_CASE("LL128 between hosts is held where switches redirect peers, on every GPU and algorithm, and nowhere else") {
  const std::string redirects = ", virtualization: {mode: bare-metal, acs: redirect}";
  for (const auto* type : {"dgx-a100", "hgx-h100-8"}) {
    for (const auto* algorithm : {"ring", "tree"}) {
      CAPTURE(type);
      CAPTURE(algorithm);
      CHECK_FALSE(is_held(largest(type, "", "ll128", algorithm)));
      CHECK(is_held(largest(type, redirects, "ll128", algorithm)));
      CHECK_FALSE(is_held(largest(type, redirects, "simple", algorithm)));
      CHECK_FALSE(is_held(largest(type, redirects, "ll", algorithm)));
    }
  }
  // 16 channels of 2.345 GB/s each, less the thread block's local work.
  const auto scenario = test::scenario(two_hosts("dgx-a100", redirects, ", algorithm: ring, protocol: ll128"));
  const double one = scenario.parameters.number("nccl.redirected_channel_bandwidth.ll128") * 1e-9;
  const auto row = largest("dgx-a100", redirects, "ll128", "ring");
  CHECK(row.busbw.bytes_per_s * 1e-9 < 16 * one);
  CHECK(row.busbw.bytes_per_s * 1e-9 > 0.9 * 16 * one);
  CHECK(largest("dgx-a100", "", "ll128", "ring").busbw.bytes_per_s * 1e-9 > 100);
}

TEST_CASE("a host of the catalogue says that its switches redirect, and the settings of a topology may say otherwise") {
  CHECK(is_held(largest("abci-a100", "", "ll128", "ring")));
  CHECK(is_held(largest("abci-a100", ", virtualization: bare-metal", "ll128", "ring")));
  CHECK(is_held(largest("abci-a100", ", virtualization: {mode: bare-metal}", "ll128", "ring")));
  CHECK_FALSE(is_held(largest("abci-a100", ", virtualization: {mode: bare-metal, acs: off}", "ll128", "ring")));
  CHECK_FALSE(is_held(largest("abci-a100", ", virtualization: {mode: passthrough, hypervisor: kvm}", "ll128", "ring")));
}

TEST_CASE("where requests that a switch could join are not redirected by it, no setting of a VM holds LL128") {
  const auto vm = [](const std::string& keys) {
    return is_held(largest(
        "dgx-a100", ", virtualization: {mode: passthrough, hypervisor: kvm, guest_topology: shown, " + keys + "}",
        "ll128", "ring"));
  };
  CHECK(vm("acs: redirect"));
  CHECK(vm("ats: off"));
  CHECK_FALSE(vm("acs: off"));
}

TEST_CASE("over a network plugin slices of every protocol wait as long as the plugin makes them") {
  for (const auto& charge : {std::pair{"ll", "plugin_line_store_and_forward"},
                             {"ll128", "plugin_store_and_forward"},
                             {"simple", "plugin_store_and_forward"}}) {
    const auto& [protocol, field] = charge;
    CAPTURE(charge.first);
    const auto row =
        row_of("validation/v100-aws-p3dn-16gpu-2vm-efa1-allreduce-nccl2.4.yaml", {{"workload.algorithm", "ring"},
                                                                                  {"workload.protocol", protocol},
                                                                                  {"software.nccl.version", "2.8"},
                                                                                  {"workload.sizes", "[1 MiB]"}});
    bool is_paid = false;
    for (const auto& term : row.terms)
      is_paid = is_paid || (term.parameter == std::string("efa-100g.") + field && term.time.us() > 0);
    CHECK(is_paid);
  }
}

TEST_CASE("NCCL_CROSS_NIC: 0 keeps a channel on the adapter it came in by, 1 takes any, 2 where that is faster") {
  const auto time = [](const char* topology, const char* release, const char* more) {
    const auto loaded = test::scenario(fmt::format(
        "schema: fabricast/scenario/1\nname: t\ntopology: {}/topologies/{}.yaml\nsoftware: {{nccl: {{version: "
        "\"{}\"{}}}}}\n"
        "workload: {{benchmark: all_reduce_perf, gpus: 8, sizes: [256 MiB], launch: process_per_gpu, algorithm: ring, "
        "protocol: simple}}\n",
        FABRICAST_SOURCE_DIR, topology, release, more));
    return test::us(test::run(loaded), 256_MiB);
  };
  // Two adapters over TCP: the GPUs beside them send and receive everything once channels cross.
  for (const auto* release : {"2.20", "2.21"}) {
    CAPTURE(release);
    const double kept = time("polaris-tcp", release, ", cross_nic: 0");
    CHECK(time("polaris-tcp", release, "") > 1.3 * kept);
    CHECK(time("polaris-tcp", release, "") == time("polaris-tcp", release, ", cross_nic: 2"));
    CHECK(time("polaris-tcp", release, ", cross_nic: 1") > 1.3 * kept);
  }
  // Until 2.18 NCCL sees no limit between the domains of an AMD processor: staying is as fast.
  CHECK(time("polaris-tcp", "2.18", "") == time("polaris-tcp", "2.18", ", cross_nic: 0"));
  CHECK(time("polaris-tcp", "2.18", ", cross_nic: 1") > 1.3 * time("polaris-tcp", "2.18", ""));
}

TEST_CASE(
    "nothing is done before one core has found all lines of LL that its process sends, on however many channels") {
  const auto time = [](const std::string& hca, const std::string& rate) {
    const auto loaded = test::scenario(
        "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n    - "
        "{name: n, count: 4, host: {processor: epyc-rome, devices: [{name: gpu0, type: h100-sxm, below: socket0}, "
        "{name: hca0, type: " +
        hca + ", below: socket0}]}}\n  fabric: {single_switch: {switch: qm9700}}\n  parameters:\n    " +
        "nccl.line_check_bandwidth: {value: " + rate +
        ", source: test}\nsoftware: {nccl: {version: \"2.14\"}}\nworkload: {benchmark: all_reduce_perf, algorithm: "
        "ring, protocol: ll, sizes: [4 MiB]}\n");
    return test::run(loaded).workloads[0].rows[0].time.seconds();
  };
  // A rank of four sends 2 x 3/4 of the bytes, twice as many with their flags.
  const double lines = 2 * 2 * 0.75 * (4 << 20);
  for (const auto* hca : {"connectx-7-ndr200", "connectx-7-ndr"}) {
    CAPTURE(hca);
    CHECK(time(hca, "8 GB/s") >= lines / 8e9);
    CHECK(time(hca, "4 GB/s") == test::approx(lines / 4e9).epsilon(0.01));
    CHECK(time(hca, "100 GB/s") < 0.7 * time(hca, "8 GB/s"));
  }
}
