// SPDX-License-Identifier: Apache-2.0
// Steps on GPUs in VMs, beside neighbours and behind a launching thread: every way to spread the work pays for them as
// the same compute of `gpu_step` does, once.
#include <algorithm>
#include <string>
#include <vector>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {

/// `guest`: keys of the scenario beside its workload, in lines of their own.
Row row_of(const std::string& workload, const std::string& guest = "") {
  return test::run(test::scenario("schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: "
                                  "fabricast/topology/1\n  name: t\n  hosts: [{name: n, type: hgx-h100-8}]\n" +
                                  guest + "\nworkload: {" + workload + "}\n"))
      .workloads[0]
      .rows.front();
}

double figure(const Row& row, const std::string& key) {
  return std::ranges::find(row.figures, key, &Figure::key)->value;
}

struct Form {
  std::string workload;
  int parts;  ///< of them a pass has: one, or layers
};

const std::vector<Form> k_forms{{"network: gpt-124m, batch_per_gpu: 1, parallel: {data: ddp}", 1},
                                {"network: gpt-124m, batch_per_gpu: 2, parallel: {data: horovod}", 1},
                                {"network: gpt-124m, batch_per_gpu: 1, parallel: {data: zero1}", 1},
                                {"network: gpt-124m, batch_per_gpu: 3, parallel: {data: fsdp}", 1},
                                {"network: bert-large, batch_per_gpu: 1, parallel: {data: fsdp}", 1},
                                {"network: gpt-124m, batch_per_gpu: 1, parallel: {data: fsdp, micro_batches: 3}", 1},
                                {"network: gpt-124m, batch_per_gpu: 1, parallel: {data: zero1, micro_batches: 2}", 1},
                                {"network: llama3-8b, part: layer, tokens: 1, kv_length: 4096, batch_per_gpu: 1", 32}};

const std::vector<std::string> k_guests{
    "virtualization: {mode: passthrough}",
    "virtualization: {mode: mig, profile: 1g.10gb}",
    "virtualization: {mode: mig, profile: 3g.40gb}",
    "virtualization: {mode: remote-gpu, gpu_share: 0.5}",
    "virtualization: {mode: vgpu, profile: h100xm-40c}",
    "virtualization: {mode: vgpu, profile: h100xm-40c, scheduler: fixed_share}",
    "virtualization: {mode: vgpu, profile: h100xm-20c, busy_neighbours: 2}",
    "virtualization: {mode: vgpu, profile: h100xm-20c, busy_neighbours: 2, scheduler: equal_share}",
    "virtualization: {mode: passthrough, vcpus: 256}",
    "host_neighbours: {knowledge_workers: 96}",
    "host_neighbours: {overcommit: 2}"};

}  // namespace

TEST_CASE("a step on one GPU pays for VM and neighbours what gpu_step of the same compute pays, however it is spread") {
  for (const auto& form : k_forms) {
    const auto workload = "benchmark: training, gpus: 1, " + form.workload;
    const auto bare = row_of(workload);
    const double work = figure(bare, "compute_time_ps") * 1e-6;
    for (const auto& guest : k_guests) {
      CAPTURE(form.workload);
      CAPTURE(guest);
      const double compute = work * form.parts;
      const auto step =
          row_of("benchmark: gpu_step, gpus: 1, sizes: [0 B], compute: " + std::to_string(compute) + " us", guest);
      const auto shared = row_of(workload, guest);
      const double added = (step.time.us() - compute) / form.parts;
      CHECK(added > 0);
      CHECK(shared.time.us() - bare.time.us() == test::approx(added).epsilon(2e-3));
      CHECK(figure(shared, "compute_time_ps") == figure(bare, "compute_time_ps"));
      CHECK(figure(shared, "wait_time_ps") * 1e-6 == test::approx(added).epsilon(2e-3));
      CHECK(figure(shared, "exposed_exchange_time_ps") == 0);
    }
  }
}

TEST_CASE("all stages of a pipeline compute as much longer beside neighbours, so that its bubble grows with them") {
  // 96 workers keep the cores from a part of every pass; NVLink notices nothing of them.
  const double share = [] {
    const std::string step = "benchmark: gpu_step, gpus: 1, sizes: [0 B], compute: 10 ms";
    return row_of(step, "host_neighbours: {knowledge_workers: 96}").time.us() / row_of(step).time.us() - 1;
  }();
  for (const std::string parallel : {"{pipeline: 2, micro_batches: 2}", "{pipeline: 4, micro_batches: 4}",
                                     "{pipeline: 8, micro_batches: 3}", "{tensor: 2, pipeline: 4, micro_batches: 2}",
                                     "{data: zero1, tensor: 8}", "{data: fsdp, tensor: 2}", "{context: 4}"}) {
    const auto workload =
        "benchmark: training, gpus: 8, network: bert-large, batch_per_gpu: 4, parallel: " + std::string(parallel);
    const auto alone = row_of(workload);
    const auto beside = row_of(workload, "host_neighbours: {knowledge_workers: 96}");
    CAPTURE(parallel);
    const double work = figure(alone, "compute_time_ps") + figure(alone, "bubble_time_ps");
    const double added = static_cast<double>((beside.time - alone.time).ps);
    CHECK(added > 0.999 * share * figure(alone, "compute_time_ps"));
    CHECK(added < 1.005 * share * work);
  }
}

TEST_CASE("kernels that are launched one by one wait as long in FSDP as in DDP, in a graph neither does") {
  for (const std::string network : {"bert-large", "gpt-124m", "gpt-345m"}) {
    for (const std::string batch : {"1", "2", "5", "16"}) {
      for (const std::string recompute : {"none", "selective", "full"}) {
        const auto of = [&](const std::string& data, const std::string& launch) {
          // In fp32 autocast has nothing to cast, so both compute the same.
          return figure(row_of("benchmark: training, gpus: 1, precision: fp32, network: " + network +
                               ", batch_per_gpu: " + batch + launch + ", parallel: {data: " + data +
                               ", recompute: " + recompute + "}"),
                        "launch_time_ps");
        };
        CAPTURE(network);
        CAPTURE(batch);
        CAPTURE(recompute);
        CHECK(of("fsdp", "") == test::approx(of("ddp", "")).epsilon(1e-4));
        CHECK(of("fsdp", ", launch: graph") == 0);
      }
    }
  }
  CHECK(figure(row_of("benchmark: training, gpus: 1, network: bert-large, batch_per_gpu: 1, parallel: {data: fsdp}"),
               "launch_time_ps") > 3e9);
}

TEST_CASE("a GPU that computes longer waits less for its launching thread, in FSDP too") {
  const std::string workload =
      "benchmark: training, gpus: 2, network: bert-large, batch_per_gpu: 1, parallel: {data: fsdp}";
  double before = figure(row_of(workload), "launch_time_ps");
  CHECK(before > 0);
  for (const auto* rate : {"0.9", "0.7", "0.3"}) {
    const double launch = figure(row_of(workload + ", slow: {n.gpu1: " + rate + "}"), "launch_time_ps");
    CHECK(launch < before);
    before = launch;
  }
  CHECK(before == 0);
}
