// SPDX-License-Identifier: Apache-2.0
// Horovod's all-reduces by hosts: what is fused, what each part moves and takes, what is refused.
#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "fabricast/link_use.hpp"
#include "fabricast/models/planner.hpp"
#include "fabricast/training.hpp"
#include "mpi/collective.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/refusals.hpp"
#include "training/by_hosts.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using models::training::Bucket;
using models::training::fusion_threshold;
using models::training::horovod_buffers;

namespace {

/// One tensor of 1,000 x 16,384 elements and its bias: large enough for the bandwidth, divisible by 2, 4 and 8.
const std::string k_linear = "schema: fabricast/network/1\nname: one\nsource: test\nimage: [1, 1, 1]\nlayers: [linear ";

/// Hosts of `gpus` V100 and `hcas` adapters, one of each below a PCIe switch, switches below the sockets in turn.
std::string topology_of(int hosts, int gpus, int hcas, const std::string& rate = "100 Gb/s") {
  std::string devices;
  for (int i = 0; i < std::max(gpus, hcas); ++i) {
    const auto number = std::to_string(i);
    devices += (i > 0 ? ", " : "") + ("{name: sw" + number) + ", kind: pcie_switch, pcie: gen4 x16, below: socket" +
               std::to_string(i % 2) + "}";
    if (i < gpus) devices += ", {name: gpu" + number + ", type: v100-pcie-16, below: sw" + number + "}";
    if (i < hcas) devices += ", {name: hca" + number + ", type: connectx-6-hdr, below: sw" + number + "}";
  }
  return "topology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n    - {name: n, count: " +
         std::to_string(hosts) + ", host: {processor: xeon-icelake, devices: [" + devices +
         "]}}\n  fabric: {single_switch: {switch: qm8700, rate: " + rate + "}}\n";
}

std::string step_of(const std::string& topology, const std::string& network, int gpus, const std::string& form) {
  return "schema: fabricast/scenario/1\nname: s\n" + topology + "workload: {benchmark: training, network: " + network +
         ", precision: fp32, batch_per_gpu: 1, gpus: " + std::to_string(gpus) + ", parallel: {data: horovod" +
         (form.empty() ? "" : ", " + form) + "}}\n";
}

/// A network of two tensors that are fused: `elements` and no more.
std::string network_of(int elements) {
  return test::write_file("one.yaml", k_linear + std::to_string(elements) + "]\n");
}

struct Step {
  LoadedScenario loaded;
  Prediction prediction;
  [[nodiscard]] const Row& row() const { return prediction.workloads[0].rows.front(); }
};

Step run(const std::string& text) {
  auto loaded = test::scenario(text);
  auto prediction = test::run(loaded);
  return {std::move(loaded), std::move(prediction)};
}

/// Time of all terms whose name has `part`.
double us(const Row& row, const std::string& part) {
  double sum = 0;
  for (const auto& term : row.terms) sum += term.name.find(part) != std::string::npos ? term.time.us() : 0;
  return sum;
}

/// Bytes that all adapters of the hosts send in a step.
double sent(const Step& step) {
  double bytes = 0;
  for (const auto& use :
       link_uses(step.loaded.topology, step.loaded.scenario, step.loaded.parameters, step.prediction)) {
    const auto link = step.loaded.topology.link(use.link);
    const bool is_uplink = link.kind == LinkKind::network && step.loaded.topology.kind(link.from) == DeviceKind::hca;
    if (is_uplink) bytes += use.bytes_per_s * step.row().time.seconds();
  }
  return bytes;
}

std::string benchmark_of(const std::string& topology, const std::string& workload) {
  return "schema: fabricast/scenario/1\nname: s\n" + topology + "workload: {" + workload + "}\n";
}

/// The `gpu`-th GPU of every host.
std::string column(int hosts, int gpu) {
  std::string names;
  for (int h = 0; h < hosts; ++h) names += (h > 0 ? ", n" : "n") + std::to_string(h) + ".gpu" + std::to_string(gpu);
  return "[" + names + "]";
}

double benchmark_us(const std::string& topology, const std::string& workload) {
  const auto step = run(benchmark_of(topology, workload));
  const auto& row = step.row();
  return row.time.us() - us(row, "launching thread");
}

}  // namespace

TEST_CASE("the fusion threshold is rounded up to whole shares of 64 doubles per local rank") {
  CHECK(fusion_threshold(Bytes{64 << 20}, 8) == Bytes{64 << 20});
  CHECK(fusion_threshold(Bytes{64 << 20}, 6).value == 67110912);  // 21,846 x 6 x 8 x 64
  CHECK(fusion_threshold(Bytes{1}, 4) == Bytes{2048});
  CHECK(fusion_threshold(Bytes{0}, 4) == Bytes{0});
  CHECK(fusion_threshold(Bytes{INT64_MAX}, 4) == Bytes{INT64_MAX});
}

TEST_CASE("what becomes ready while Horovod's thread is kept is found at once and fused") {
  std::vector<GradientTensor> tensors;
  for (int t = 0; t < 10; ++t) tensors.push_back({"t", Bytes{1000}, t * 1_ms});  // one per ms
  CHECK(horovod_buffers(tensors, Bytes{1 << 20}, 1_ms).size() == 10);
  // Whatever its phase, a cycle of 4 ms finds four of them.
  const auto found = horovod_buffers(tensors, Bytes{1 << 20}, 4_ms);
  REQUIRE(found.size() == 3);
  CHECK(found[0].tensors == 4);
  CHECK(found[0].ready == 3_ms);
  CHECK(found[1].tensors == 4);
  CHECK(found[2].ready == 11_ms);
  // The first at 0.5 ms keeps the thread to 4.5 ms; of the others, found at half past each ms, four are there by then.
  const auto buffers = horovod_buffers(tensors, Bytes{1 << 20}, 1_ms, [](const Bucket&) { return 4_ms; });
  REQUIRE(buffers.size() == 4);
  CHECK(buffers[0].tensors == 1);
  CHECK(buffers[1].tensors == 4);
  CHECK(buffers[1].ready == Duration{4'500'000'000});
  CHECK(buffers[2].tensors == 4);
  CHECK(buffers[3].tensors == 1);
  // A threshold still cuts, and each part keeps the thread.
  const auto cut = horovod_buffers(tensors, Bytes{2000}, 1_ms, [](const Bucket&) { return 4_ms; });
  REQUIRE(cut.size() == 6);
  CHECK(cut[1].tensors == 2);
  CHECK(cut[2].tensors == 2);
  CHECK(cut[3].tensors == 2);
}

TEST_CASE("each host sends what its ranks share, whatever carries it between hosts") {
  // 4,194,304 weights and as many biases in one buffer of S bytes. Between H hosts a ring moves 2 (H - 1) / H of it.
  for (const int hosts : {2, 3, 4}) {
    for (const int gpus : {1, 2, 4}) {
      CAPTURE(hosts);
      CAPTURE(gpus);
      const double bytes = 2.0 * 4 * 4194304;
      const auto network = network_of(4194304);
      const auto expected = hosts * 2.0 * (hosts - 1) / hosts * bytes;
      const auto topology = topology_of(hosts, gpus, 1);
      // NCCL's flows carry what fills its pipeline, too: as much as of its own all-reduces of the shares.
      double of_shares = 0;
      for (int g = 0; g < gpus; ++g)
        of_shares +=
            sent(run(benchmark_of(topology, "benchmark: all_reduce_perf, devices: " + column(hosts, g) + ", sizes: [" +
                                                std::to_string(static_cast<int>(bytes) / gpus) + " B]")));
      const double by_nccl = sent(run(step_of(topology, network, hosts * gpus, "torus: on")));
      CHECK(by_nccl >= expected * 0.999);
      CHECK(by_nccl == test::approx(of_shares).epsilon(0.002));
      // Rabenseifner's of three: two fold halves (1.5 S), two exchange halves twice (2 S), one gets the result (S).
      const double by_mpi = hosts == 3 ? 4.5 * bytes : expected;
      CHECK(sent(run(step_of(topology, network, hosts * gpus, "hierarchical: on"))) ==
            test::approx(by_mpi).epsilon(0.002));
    }
  }
}

TEST_CASE("a fused buffer is padded, a tensor alone leaves a rest to the last local rank") {
  // 1,001 elements alone (no bias is fused with fusion 0): 333 x 3 and 2 that are reduced apart.
  const auto topology = topology_of(2, 3, 1);
  const auto alone = run(step_of(topology, network_of(1001), 6, "torus: on, fusion: 0 B"));
  CHECK(us(alone.row(), "reduce of what does not divide") > 0);
  CHECK(us(alone.row(), "broadcast of what does not divide") > 0);
  const auto fused = run(step_of(topology, network_of(1001), 6, "torus: on"));
  CHECK(us(fused.row(), "does not divide") == 0);
  // 2,002 elements in a buffer of 2,112 = 11 x 3 x 64; between two hosts it is sent once by each.
  CHECK(sent(fused) > 0);
}

TEST_CASE("each part takes what the library's own benchmark takes alone") {
  // An adapter per GPU, so that groups between hosts do not share one.
  const auto topology = topology_of(4, 2, 2);
  const auto network = network_of(4194304);
  const std::string size = ", sizes: [32 MiB]";
  const std::string share = ", sizes: [16 MiB]";
  for (const auto* form : {"torus: on", "hierarchical: on"}) {
    const auto step = run(step_of(topology, network, 8, form));
    const auto& row = step.row();
    CAPTURE(form);
    CHECK(us(row, "exposed reduce-scatter of gradients in hosts") ==
          test::approx(benchmark_us(topology, "benchmark: reduce_scatter_perf, gpus: 2" + size)).epsilon(0.001));
    CHECK(us(row, "exposed all-gather of gradients in hosts") ==
          test::approx(benchmark_us(topology, "benchmark: all_gather_perf, gpus: 2" + size)).epsilon(0.001));
  }
  const auto torus = run(step_of(topology, network, 8, "torus: on"));
  CHECK(us(torus.row(), "exposed all-reduce between hosts,") ==
        test::approx(benchmark_us(topology, "benchmark: all_reduce_perf, gpus: 4, ranks_per_host: 1" + share))
            .epsilon(0.001));
  // MPI stripes a message over both adapters, so two groups share what one has alone: one GPU per host.
  const auto single = topology_of(4, 1, 1);
  const auto by_mpi_us = [&](int elements) {
    const auto step = run(step_of(single, network_of(elements), 4, "hierarchical: on"));
    return us(step.row(), "between hosts by MPI") + us(step.row(), "copies to and from host memory");
  };
  const auto alone_us = [&](const std::string& of_size) {
    return benchmark_us(
        single, "benchmark: osu_allreduce, buffers: device, ranks: 4, ranks_per_host: 1, sizes: [" + of_size + "]");
  };
  // In place two buffers are copied, not three.
  const auto alone = run(
      benchmark_of(single, "benchmark: osu_allreduce, buffers: device, ranks: 4, ranks_per_host: 1, sizes: [4 MiB]"));
  const double copies = us(alone.row(), "CUDA copies to and from host buffers") + us(alone.row(), "pageable copies");
  const double to_receive_buffer = us(alone.row(), "copies to and from temporary buffers");
  CHECK(to_receive_buffer > 0);
  CHECK(by_mpi_us(524288) == test::approx(alone_us("4 MiB") - copies / 3 - to_receive_buffer).epsilon(0.001));
  CHECK(by_mpi_us(4194304) < alone_us("32 MiB"));
}

TEST_CASE("local ranks share the adapter of their host") {
  const auto network = network_of(4194304);
  const auto one = run(step_of(topology_of(4, 4, 1), network, 16, "torus: on"));
  const auto four = run(step_of(topology_of(4, 4, 4), network, 16, "torus: on"));
  CHECK(us(one.row(), "exposed all-reduce between hosts") > 2.5 * us(four.row(), "exposed all-reduce between hosts"));
  const auto by_mpi = run(step_of(topology_of(4, 4, 1), network, 16, "hierarchical: on"));
  const auto each = run(step_of(topology_of(4, 4, 4), network, 16, "hierarchical: on"));
  CHECK(us(by_mpi.row(), "between hosts by MPI") > us(each.row(), "between hosts by MPI"));
}

TEST_CASE("what binds no group alone binds all of them together") {
  // A V100 takes 12 GB/s by PCIe, the one way up from a leaf 25 GB/s from four of them: 134 MB once between two hosts.
  auto topology = topology_of(2, 4, 4, "200 Gb/s");
  const auto fabric = topology.find("single_switch: {switch: qm8700,");
  topology.replace(fabric, 31, "fat_tree: {switch: qm8700, leaf_ports: 5, oversubscription: 4,");
  const auto four = run(step_of(topology, network_of(16777216), 8, "torus: on"));
  CHECK(us(four.row(), "exposed all-reduce between hosts") >= 1e6 * 2 * 4 * 16777216 / 25e9);
}

TEST_CASE("ranks of a socket share its cache and its memory") {
  auto loaded = test::scenario(step_of(topology_of(2, 4, 4), "vgg-16", 8, ""));
  auto core = loaded.parameters.at("mpi.core_memory_bandwidth");
  core.value = core.low = core.high = 0;  // no limit: what is shared counts
  loaded.parameters.set(core);
  models::Resources resources(loaded.topology);
  const models::PlanContext context{loaded.topology, loaded.scenario.software, loaded.parameters, resources};
  Workload workload;
  workload.benchmark = Benchmark::osu_allreduce;
  const std::vector gpus{*loaded.topology.find_device("n0.gpu0"), *loaded.topology.find_device("n1.gpu0")};
  const auto beyond_cache = [&](int alike, Bytes size) {
    const auto planner = models::mpi::make_collective_planner(context, workload, gpus, alike);
    REQUIRE(planner.has_value());
    double sum = 0;
    for (const auto& node : (*planner)->plan(size).program.nodes) {
      for (const auto& term : node.fixed)
        sum +=
            term.name == "memory beyond the last-level cache" ? static_cast<double>(node.repeat) * term.time.us() : 0;
    }
    return sum;
  };
  // A buffer of 16 MiB and the library's temporary: a rank's fit 54 MiB of cache, four ranks' do not.
  CHECK(beyond_cache(1, 16_MiB) == 0);
  CHECK(beyond_cache(4, 16_MiB) > 0);
  // Far beyond the cache everything is read from memory, four times as much by four.
  CHECK(beyond_cache(4, 2_GiB) == test::approx(4 * beyond_cache(1, 2_GiB)).epsilon(0.01));
}

TEST_CASE("what keeps Horovod's thread is known before it is simulated") {
  for (const int hcas : {1, 4}) {
    const auto text = step_of(topology_of(4, 4, hcas), network_of(4194304), 16, "hierarchical: on");
    const auto step = run(text);
    models::Resources resources(step.loaded.topology);
    const models::PlanContext context{step.loaded.topology, step.loaded.scenario.software, step.loaded.parameters,
                                      resources};
    const auto by_hosts = models::training::ByHosts::make(context, step.loaded.scenario.workloads[0],
                                                          step.loaded.topology.devices(DeviceKind::gpu));
    REQUIRE(by_hosts.has_value());
    const double kept = us(step.row(), "exposed reduce-scatter") + us(step.row(), "copies to and from host memory") +
                        us(step.row(), "between hosts by MPI");
    CAPTURE(hcas);
    // What groups that share an adapter wait for each other inside a round is not in the estimate.
    CHECK(by_hosts->busy({Bytes{2 * 4 * 4194304}, 2, {}}).us() == test::approx(kept).epsilon(0.05));
  }
}

TEST_CASE("with one GPU per host nothing is left inside hosts") {
  const auto topology = topology_of(4, 1, 1);
  const auto network = network_of(4194304);
  const auto flat = run(step_of(topology, network, 4, ""));
  const auto torus = run(step_of(topology, network, 4, "torus: on"));
  const auto mpi = run(step_of(topology, network, 4, "hierarchical: on"));
  CHECK(us(torus.row(), "in hosts") == 0);
  CHECK(torus.row().time.us() == test::approx(flat.row().time.us()).epsilon(1e-6));
  CHECK(us(mpi.row(), "in hosts") == 0);
  CHECK(us(mpi.row(), "copies to and from host memory") > 0);
}

TEST_CASE("hosts of unequal numbers of GPUs send everything from one rank each") {
  const auto network = network_of(4194304);
  const double bytes = 2.0 * 4 * 4194304;
  for (const auto* form : {"torus: on", "hierarchical: on"}) {
    const auto step = run(step_of(topology_of(2, 4, 1), network, 6, form));
    CAPTURE(form);
    CHECK(us(step.row(), "reduce of what does not divide") > 0);
    CHECK(us(step.row(), "reduce-scatter") == 0);
    CHECK(sent(step) == test::approx(2 * bytes).epsilon(0.15));
    CHECK(sent(step) >= 2 * bytes * 0.999);
    CHECK(step.prediction.workloads[0].settings.back().reason.find("hosts differ") == 0);
  }
}

TEST_CASE("the next negotiation waits for MPI, not for NCCL") {
  const auto topology = topology_of(2, 2, 1);
  const auto mpi = run(step_of(topology, "vgg-16", 4, "hierarchical: on, fusion: 1 MiB"));
  const auto torus = run(step_of(topology, "vgg-16", 4, "torus: on, fusion: 1 MiB"));
  const auto count = [](const Step& step) {
    double waits = 0;
    for (const auto& term : step.row().terms) waits += term.name == "exposed negotiation" ? term.time.us() : 0;
    return waits;
  };
  CHECK(count(mpi) > 2 * count(torus));
}

TEST_CASE("a form by hosts is Horovod's, one of them, and of several hosts") {
  const auto topology = topology_of(2, 2, 1);
  const auto has = [&](int gpus, const std::string& parallel, const std::string& part) {
    const auto text =
        "schema: fabricast/scenario/1\nname: s\n" + topology +
        "workload: {benchmark: training, network: vgg-16, batch_per_gpu: 8, gpus: " + std::to_string(gpus) +
        ", parallel: {" + parallel + "}}\n";
    const auto fault = test::refusal_of(text);
    INFO(fault);
    CHECK(fault.find(part) != std::string::npos);
    CHECK(fault.find("s.yaml:") != std::string::npos);
  };
  has(4, "hierarchical: on", "nothing reads 'hierarchical' here");
  has(4, "data: zero1, torus: on", "nothing reads 'torus' here");
  has(4, "data: horovod, torus: on, hierarchical: on", "which Horovod then takes");
  has(2, "data: horovod, torus: on", "on one host, where Horovod does not split");
  // One count among several is on one host: the result says so.
  const auto both = run("schema: fabricast/scenario/1\nname: s\n" + topology +
                        "workload: {benchmark: training, network: vgg-16, batch_per_gpu: 8, gpus: [1, 2, 4], parallel: "
                        "{data: horovod, torus: on}}\n");
  CHECK(both.prediction.workloads[0].rows[1].algorithm == "horovod");
  CHECK(both.prediction.workloads[0].rows[2].algorithm == "horovod torus");
  CHECK(std::ranges::any_of(both.prediction.workloads[0].assumptions,
                            [](const auto& line) { return line.find("all-reduce of 2 GPUs") != std::string::npos; }));
}
