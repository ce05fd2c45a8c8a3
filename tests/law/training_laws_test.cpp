// SPDX-License-Identifier: Apache-2.0
// Laws of training steps over random networks, GPUs, hosts and splits; a failing seed is printed.
#include <algorithm>
#include <string>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;
using test::Random;

namespace {

struct Case {
  std::string network, precision, gpu, parallel, rate = "200 Gb/s";
  int hosts = 2, batch = 8;
  std::string more = "";  ///< further keys of the workload

  [[nodiscard]] std::string yaml(const std::string& gpus) const {
    return "schema: fabricast/scenario/1\nname: law\ntopology:\n  schema: fabricast/topology/1\n  name: law\n"
           "  hosts:\n    - {name: n, count: " +
           std::to_string(hosts) + ", host: {processor: xeon-sapphirerapids, devices: [{name: gpu0, type: " + gpu +
           ", below: socket0}, {name: gpu1, type: " + gpu +
           ", below: socket0}, {name: hca0, type: connectx-7-ndr, below: socket0}]}}\n"
           "  fabric: {single_switch: {switch: qm9700, rate: " +
           rate + "}}\nworkload: {benchmark: training, network: " + network + ", precision: " + precision +
           ", batch_per_gpu: " + std::to_string(batch) + ", gpus: " + gpus + ", parallel: " + parallel + more + "}\n";
  }

  /// The model is split, so that fewer GPUs cannot run it.
  [[nodiscard]] bool is_split() const {
    return std::ranges::any_of(std::vector{"tensor:", "pipeline:", "context:", "expert:"},
                               [&](const char* key) { return parallel.find(key) != std::string::npos; });
  }
};

/// Mixtures of experts: dispatch inside a host and over hosts, whole and split experts, every way to hold replicas.
Case random_experts(std::uint64_t seed) {
  Random random(seed + 1000);
  Case out;
  out.network = random.pick<std::string>({"qwen3-30b-a3b", "mixtral-8x7b", "llama4-scout", "deepseek-v2-lite"});
  out.precision = random.pick<std::string>({"bf16", "fp8"});
  out.gpu = random.pick<std::string>({"h100-sxm", "a100-pcie-40"});
  if (out.gpu != "h100-sxm") out.precision = "bf16";
  out.hosts = random.pick<int>({2, 4});
  out.batch = random.pick<int>({1, 2});
  out.parallel = random.pick<std::string>(
      {"{expert: 2}", "{expert: 4, imbalance: 1.3}", "{data: fsdp, expert: 2}", "{data: zero1, expert: 4}",
       "{data: zero1, tensor: 2, sequence: on, expert: 2, expert_tensor: 1, micro_batches: 2}",
       "{data: zero1, tensor: 2, sequence: on, expert: 2}", "{pipeline: 2, expert: 2, micro_batches: 4}",
       "{context: 2, expert: 2, recompute: full}"});
  return out;
}

/// Forward pass of one layer: prefill and decoding, dense and with experts.
Case random_layer(std::uint64_t seed) {
  Random random(seed + 2000);
  auto out = random_experts(seed);
  out.network = random.pick<std::string>({"llama3-8b", "mixtral-8x7b", "qwen3-30b-a3b", "deepseek-v2-lite"});
  out.precision = "bf16";
  out.batch = random.pick<int>({1, 16, 256});
  const bool is_dense = out.network == "llama3-8b";
  out.parallel = random.pick<std::string>(
      is_dense ? std::vector<std::string>{"{tensor: 4}", "{tensor: 2}"}
               : std::vector<std::string>{"{expert: 4}", "{tensor: 2, expert: 2}", "{expert: 4, imbalance: 1.5}"});
  out.more = ", part: layer" + random.pick<std::string>({", tokens: 1, kv_length: 2048", ", tokens: 512"});
  return out;
}

Case random_case(std::uint64_t seed) {
  if (seed % 4 == 1) return random_experts(seed);
  if (seed % 8 == 2) return random_layer(seed);
  Random random(seed);
  Case out;
  out.network = random.pick<std::string>({"vgg-16", "resnet-50", "bert-large", "gpt-345m", "mpt-1b", "densenet-121"});
  out.precision = random.pick<std::string>({"fp32", "bf16", "fp16", "tf32"});
  out.gpu = random.pick<std::string>({"h100-sxm", "a100-pcie-40", "v100-pcie-16"});
  if (out.gpu == "v100-pcie-16" && out.precision == "bf16") out.precision = "fp16";
  out.hosts = random.pick<int>({2, 4});
  out.batch = random.pick<int>({1, 8, 32});
  const bool is_transformer =
      out.network.find('-') != std::string::npos &&
      (out.network.starts_with("gpt") || out.network.starts_with("bert") || out.network.starts_with("mpt"));
  out.parallel =
      is_transformer
          ? random.pick<std::string>(
                {"{data: ddp}", "{data: fsdp}", "{data: zero1, micro_batches: 4}", "{data: zero1, tensor: 2}",
                 "{pipeline: 2, micro_batches: 4}", "{pipeline: 2, interleave: 2, micro_batches: 4}", "{data: horovod}",
                 "{context: 2}", "{context: 2, context_exchange: all_to_all}",
                 "{tensor: 2, sequence: on, recompute: full}", "{data: fsdp, tensor: 2, recompute: selective}",
                 "{data: fsdp, context: 2}", "{data: zero1, tensor: 2, pipeline: 2, micro_batches: 4}"})
          : random.pick<std::string>({"{data: ddp}", "{data: ddp, bucket: 1 MiB}", "{data: horovod}",
                                      "{data: ddp, exchange: bf16}", "{data: horovod, cycle: 5 ms}"});
  return out;
}

/// Horovod by hosts on four GPUs of two or four hosts.
Case random_by_hosts(std::uint64_t seed) {
  Random random(seed + 3000);
  Case out;
  out.network = random.pick<std::string>({"vgg-16", "resnet-50", "densenet-121"});
  out.precision = random.pick<std::string>({"fp32", "fp16"});
  out.gpu = random.pick<std::string>({"h100-sxm", "a100-pcie-40", "v100-pcie-16"});
  out.hosts = random.pick<int>({2, 4});
  out.batch = random.pick<int>({8, 32});
  out.parallel = "{data: horovod, " + random.pick<std::string>({"torus", "hierarchical"}) + ": on" +
                 random.pick<std::string>({"", ", fusion: 1 MiB", ", cycle: 5 ms", ", exchange: fp16"}) + "}";
  return out;
}

std::vector<Row> rows_of(const Case& one, const std::string& gpus, const std::vector<Setting>& settings = {}) {
  return test::run(test::with_memory(test::scenario(one.yaml(gpus), settings))).workloads[0].rows;
}

const std::string k_small_experts =
    "schema: fabricast/network/1\nname: experts\nsource: test\ntransformer: {form: llama, layers: 4, hidden: 1024, "
    "heads: "
    "8, ffn: 1024, vocabulary: 8000, sequence: 512, experts: 8, experts_per_token: 2, shared_ffn: 512, expert_every: "
    "2}\n";

/// Which gradients one of Horovod's cycles finds together depends on when they are ready: what is ready later may be
/// sent a cycle earlier than with what it was fused, and what it holds up as well. Seconds; 0 of others.
double two_cycles(const Case& one) {
  if (one.parallel.find("horovod") == std::string::npos) return 0;
  return 2 * (one.parallel.find("cycle: 5 ms") == std::string::npos ? 1e-3 : 5e-3);
}

double figure(const Row& row, const std::string& key) {
  return std::ranges::find(row.figures, key, &Figure::key)->value;
}

}  // namespace

TEST_CASE("a step is split into terms and parts that add up to it, within its bound and band") {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const auto one = random_case(seed);
    CAPTURE(one.yaml("4"));
    const auto row = rows_of(one, "4").front();
    Duration sum;
    for (const auto& term : row.terms) {
      sum += term.time;
      CHECK(term.time.ps >= 0);
    }
    CHECK(sum == row.time);
    double parts = 0;
    for (const char* key :
         {"compute_time_ps", "exposed_exchange_time_ps", "bubble_time_ps", "launch_time_ps", "wait_time_ps"}) {
      CHECK(figure(row, key) >= 0);
      parts += figure(row, key);
    }
    CHECK(parts == test::approx(figure(row, "step_time_ps")).epsilon(1e-9));
    CHECK(row.physical_bound <= row.time);
    CHECK(row.low_time <= row.time);
    CHECK(row.time <= row.high_time);
  }
}

TEST_CASE("more bandwidth is never slower, and n GPUs never give more than n times one") {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    auto one = random_case(seed);
    CAPTURE(one.yaml("4"));
    const auto slow = rows_of(one, "4").front();
    one.rate = "400 Gb/s";
    const auto fast = rows_of(one, "4").front();
    CHECK(fast.time.seconds() <= slow.time.seconds() * (1 + 1e-9));
    if (one.is_split()) continue;
    const auto rows = rows_of(one, "[1, 2, 4]");
    for (const auto& row : rows)
      CHECK(figure(row, "throughput_per_gpu_per_s") <= figure(rows.front(), "throughput_per_s") * (1 + 1e-9));
  }
}

TEST_CASE("Horovod by hosts keeps its bound, and more bandwidth between hosts is never slower") {
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    auto one = random_by_hosts(seed);
    const auto gpus = std::to_string(2 * one.hosts);
    CAPTURE(one.yaml(gpus));
    const auto slow = rows_of(one, gpus).front();
    CHECK(slow.physical_bound <= slow.time);
    CHECK(slow.low_time <= slow.time);
    CHECK(slow.time <= slow.high_time);
    double parts = 0;
    for (const char* key :
         {"compute_time_ps", "exposed_exchange_time_ps", "bubble_time_ps", "launch_time_ps", "wait_time_ps"}) {
      CHECK(figure(slow, key) >= 0);
      parts += figure(slow, key);
    }
    CHECK(parts == test::approx(figure(slow, "step_time_ps")).epsilon(1e-9));
    // Faster exchanges leave less time to fuse in; of one buffer in any case nothing is lost.
    auto whole = one;
    whole.parallel = one.parallel.starts_with("{data: horovod, torus")
                         ? "{data: horovod, torus: on, cycle: 1 s}"
                         : "{data: horovod, hierarchical: on, cycle: 1 s}";
    const auto before = rows_of(whole, gpus).front();
    one.rate = whole.rate = "400 Gb/s";
    CHECK(rows_of(whole, gpus).front().time.seconds() <= before.time.seconds() * (1 + 1e-9));
    CHECK(rows_of(one, gpus).front().time.seconds() <= slow.time.seconds() * (1 + 1e-9) + two_cycles(one));
  }
}

TEST_CASE("Horovod by hosts takes the same on both engines where nothing congests") {
  // One GPU that takes part per host has its links for itself.
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    auto one = random_by_hosts(seed);
    one.network = "resnet-50";
    one.batch = 32;
    const std::string gpus = "3, ranks_per_host: 1";
    one.hosts = 3;
    CAPTURE(one.yaml(gpus));
    const auto loaded = test::scenario(one.yaml(gpus));
    SimulateOptions options;
    const auto fluid = test::run(loaded, options).workloads[0].rows.front();
    options.fidelity = Fidelity::packet;
    const auto packet = test::run(loaded, options).workloads[0].rows.front();
    CHECK(packet.time.seconds() == test::approx(fluid.time.seconds()).epsilon(0.01));
  }
}

TEST_CASE("a slow GPU never helps, and costs at most what it computes more") {
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    auto one = random_case(seed);
    CAPTURE(one.yaml("4"));
    const auto own = one.more;
    const auto even = rows_of(one, "4").front();
    auto before = even;
    for (const auto* rate : {"0.95", "0.8", "0.5"}) {
      one.more = own + ", slow: {n0.gpu1: " + rate + "}";
      const auto slow = rows_of(one, "4").front();
      CHECK(slow.time.seconds() >= before.time.seconds() * (1 - 1e-9) - two_cycles(one));
      // Longer compute hides more; beside an exchange it is slowed for longer, but not by more than its share.
      CHECK(slow.time.seconds() <= even.time.seconds() / std::stod(rate) * (1 + 1e-9));
      CHECK(slow.physical_bound <= slow.time);
      before = slow;
    }
    one.more = own + ", jitter: 0.02";
    const auto jitter = rows_of(one, "4").front();
    CHECK(jitter.time >= even.time - from_seconds(two_cycles(one)));
    one.more = own + ", jitter: 0.1";
    CHECK(rows_of(one, "4").front().time >= jitter.time - from_seconds(two_cycles(one)));
  }
}

TEST_CASE("a step that hides its exchange is never slower than one that hides nothing") {
  // One bucket as large as the network leaves nothing to hide.
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    auto one = random_case(4 * seed);
    one.parallel = "{data: ddp, bucket: 100 GiB}";
    one.more = "";
    CAPTURE(one.yaml("4"));
    const auto serial = rows_of(one, "4").front();
    one.parallel = "{data: ddp, bucket: 100 MiB}";
    const auto overlapped = rows_of(one, "4", {}).front();
    // Buckets cost a start each; what compute loses beside an exchange is less than what the exchange hides.
    CHECK(overlapped.time.seconds() <= serial.time.seconds() * 1.02);
  }
}

TEST_CASE("what is computed again never makes a step faster, whatever holds the replicas") {
  for (std::uint64_t seed = 0; seed < test::draws(24); ++seed) {
    Random random(seed + 4000);
    Case one;
    one.network = random.pick<std::string>({"gpt-345m", "mpt-1b", "bert-large", "llama3-8b", "mixtral-8x7b"});
    one.precision = random.pick<std::string>({"bf16", "fp16", "fp32"});
    one.gpu = random.pick<std::string>({"h100-sxm", "a100-pcie-40", "v100-pcie-16"});
    if (one.gpu == "v100-pcie-16" && one.precision == "bf16") one.precision = "fp16";
    one.batch = random.pick<int>({1, 2, 8, 32});
    const auto rest = random.pick<std::string>({"data: ddp", "data: ddp, bucket: 4 MiB", "data: horovod",
                                                "data: ddp, micro_batches: 4", "data: fsdp", "data: zero1",
                                                "data: ddp, tensor: 2", "data: zero1, pipeline: 2, micro_batches: 4"});
    double before = 0;
    for (const std::string recompute : {"none", "selective", "full"}) {
      one.parallel = "{" + rest + ", recompute: " + recompute + "}";
      CAPTURE(one.yaml("4"));
      const double now = rows_of(one, "4").front().time.seconds();
      CHECK(now >= before * (1 - 1e-9) - two_cycles(one));
      before = now;
    }
  }
}

TEST_CASE("experts that exchange beside compute are never slower than those that wait") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    auto one = random_experts(seed);
    one.parallel = seed % 2 == 0 ? "{data: zero1, expert: 4, micro_batches: 4"
                                 : "{expert: 2, pipeline: 2, interleave: 2, micro_batches: 4";
    CAPTURE(one.yaml("4"));
    const auto base = one.parallel;
    one.parallel = base + "}";
    const auto off = rows_of(one, "4").front();
    one.parallel = base + ", expert_overlap: on}";
    CHECK(rows_of(one, "4").front().time <= off.time);
  }
}

TEST_CASE("a step takes the same on both engines where nothing congests") {
  // One GPU per host and one switch: an exchange has its links for itself, but that sends of stages meet now and then.
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    auto one = random_case(seed);
    one.hosts = one.is_split() ? 4 : 2 + static_cast<int>(seed % 3);
    const bool meets = one.parallel.find("pipeline:") != std::string::npos;
    if (!one.is_split()) one.batch = 32;
    // Packets of billions of gradients take long and meet nobody that fewer would not.
    if (seed % 4 == 1) one.network = test::write_file("experts.yaml", k_small_experts);
    const auto text = one.yaml(std::to_string(one.hosts) + ", ranks_per_host: 1");
    CAPTURE(text);
    const auto loaded = test::with_memory(test::scenario(text));
    SimulateOptions options;
    const auto fluid = test::run(loaded, options).workloads[0].rows.front();
    options.fidelity = Fidelity::packet;
    const auto packet = test::run(loaded, options).workloads[0].rows.front();
    CHECK(packet.time.seconds() == test::approx(fluid.time.seconds()).epsilon(meets ? 0.05 : 0.01));
  }
}

TEST_CASE("a pipeline of p stages and m micro-batches idles (p - 1) / (v m) of its ideal time") {
  for (const int batches : {2, 4, 8}) {
    for (const int interleave : {1, 2}) {
      Case one{"gpt-345m", "bf16", "h100-sxm", "", "400 Gb/s", 2, 8};
      one.parallel =
          "{pipeline: 2, micro_batches: " + std::to_string(batches) + (interleave > 1 ? ", interleave: 2}" : "}");
      const auto row = rows_of(one, "2", {{"software.nccl.version", "\"2.20\""}}).front();
      CAPTURE(one.parallel);
      // Stages are not equal (embedding, head), so the bubble is near the formula, not on it.
      const double ideal = figure(row, "compute_time_ps");
      const double bubble = figure(row, "bubble_time_ps") / ideal;
      CHECK(bubble < 1.0 / (interleave * batches) + 0.35);
      CHECK(bubble > 0);
    }
  }
}
