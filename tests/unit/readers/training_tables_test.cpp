// SPDX-License-Identifier: Apache-2.0
// Tables of training in every layout at hand, cut down to a few rows, and which rows a scenario takes as its own.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "fabricast/measurement.hpp"
#include "fabricast/training.hpp"
#include "readers/training_columns.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/logs.hpp"

using namespace fabricast;

namespace {

std::vector<MeasuredStep> steps_of(const std::string& text) {
  const auto logs = read_logs_text(text, "log.txt");
  REQUIRE(logs.has_value());
  std::vector<MeasuredStep> steps;
  for (const auto& log : *logs) steps.insert(steps.end(), log.steps.begin(), log.steps.end());
  return steps;
}

Scenario scenario_of(TrainingSpec spec) {
  Scenario scenario;
  Workload workload;
  workload.benchmark = Benchmark::training;
  workload.training = std::make_shared<const TrainingSpec>(std::move(spec));
  scenario.workloads.push_back(std::move(workload));
  return scenario;
}

TrainingSpec images(const std::string& name, int batch) {
  TrainingSpec spec;
  spec.network.emplace();
  spec.network->name = name;
  spec.batch_per_gpu = batch;
  spec.precision = Precision::fp32;
  return spec;
}

MeasuredLog rows_of(const std::string& text, const Scenario& scenario, const std::vector<std::string>& parts = {}) {
  const auto logs = read_logs_text(text, "log.txt");
  REQUIRE(logs.has_value());
  const auto table = table_for(*logs, scenario, parts);
  REQUIRE(table.has_value());
  return *table;
}

const std::string k_wide =
    "GPUs InceptionV3 ResNet-50 VGG16\n1    142         238       132\n8    1131        1886      959\n";

}  // namespace

TEST_CASE("a table with a column per model gives a row per model and number of GPUs") {
  const auto steps = steps_of(k_wide);
  REQUIRE(steps.size() == 6);
  CHECK(steps[5].model == "VGG16");
  CHECK(steps[5].gpus == 8);
  CHECK(steps[5].samples_per_s == 959);
  CHECK(steps[5].line == 3);
}

TEST_CASE("throughput becomes the time of the scenario's step") {
  const auto table = rows_of(k_wide, scenario_of(images("vgg-16", 64)));
  REQUIRE(table.rows.size() == 2);
  CHECK(table.rows[1].size == Bytes{8});
  CHECK(table.rows[1].time == from_seconds(8 * 64 / 959.0));
}

TEST_CASE("rows of another network, count, batch, precision, path or without the words asked for are left out") {
  auto spec = images("vgg-16", 64);
  spec.gpu_counts = {4};
  CHECK(rows_of(k_wide, scenario_of(spec)).rows.empty());
  CHECK(rows_of(k_wide, scenario_of(images("bert-large", 64))).rows.empty());
  CHECK(rows_of(k_wide, scenario_of(images("vgg-16", 64)), {"RDMA"}).rows.empty());
  const std::string own =
      "path\tmodel\tprecision\tgpus\tbatch_per_gpu\tstep_us\n"
      "nvlink\tresnet50\ttf32\t2\t64\t25204.6\np2poff\tresnet50\ttf32\t2\t64\t28390."
      "5\ntcp\tresnet50\ttf32\t2\t64\t60099.1\n";
  auto resnet = images("resnet-50", 64);
  resnet.precision = Precision::tf32;
  auto scenario = scenario_of(resnet);
  const auto time = [&] { return rows_of(own, scenario).rows.at(0).time; };
  CHECK(time() == from_seconds(25204.6e-6));
  scenario.software.nccl_p2p = false;
  CHECK(time() == from_seconds(28390.5e-6));
  scenario.software.nccl_shm = false;
  CHECK(time() == from_seconds(60099.1e-6));
  resnet.batch_per_gpu = 32;
  const auto none = rows_of(own, scenario_of(resnet));
  CHECK(none.rows.empty());
  REQUIRE(!none.warnings.empty());
  CHECK(none.warnings.back().message ==
        "no row of this table is the scenario's: 1 of another batch, 2 over another path");
}

TEST_CASE("a label tells GPUs and interconnect") {
  const std::string text =
      "setup model_vgg16\nBaseline-single-GPU-bs64 130.9\n16GPU-TCP-Horovod-NCCL 1308.7\n16GPU-RDMA-Horovod-NCCL "
      "1787.4\n";
  const auto steps = steps_of(text);
  REQUIRE(steps.size() == 3);
  CHECK(steps[0].gpus == 1);
  CHECK(steps[2].gpus == 16);
  CHECK(rows_of(text, scenario_of(images("vgg-16", 64)), {"RDMA"}).rows.at(0).time == from_seconds(1024 / 1787.4));
}

TEST_CASE("a table with a column per number of GPUs") {
  const auto steps = steps_of(
      "| Llama 3.1 8b FP8 (TP=1, CP=2, GA=32) | Throughput on 8x H100 GPUs (GBS=128) | Throughput on 16x H100 GPUs "
      "(GBS=256) |\n"
      "|---|:---:|:---:|\n| Training step time (seconds per step) | 9.44 | 9.47 |\n"
      "| Throughput in tokens per second | 111054 | 221358 |\n| Model flops utilization | 40.59% | 40.45% |\n");
  REQUIRE(steps.size() == 2);
  CHECK(steps[1].gpus == 16);
  CHECK(steps[1].global_batch == 256);
  CHECK(steps[1].precision == Precision::fp8);
  CHECK(steps[1].step == from_seconds(9.47));
  CHECK(readers::is_same_model(steps[1].model, "llama3-8b"));
  CHECK_FALSE(readers::is_same_model(steps[1].model, "llama3-70b"));
  CHECK(readers::is_same_model("inceptionv3", "inception-v3"));
  CHECK_FALSE(readers::is_same_model("resnet101", "resnet-50"));
}

TEST_CASE("a sentence above a table says model, GPUs and batch") {
  const auto steps = steps_of(
      "**Table 3** 1D Parallelism (FSDP). Llama 3.1 8B model. 128 GPUs. Local batch size 2, global batch size 256.\n"
      "| Techniques | TPS/GPU | Memory(GiB) |\n| --- | ---: | ---: |\n| FSDP | 5,605 | 67.0 |\n| FSDP + Float8 | 8,380 "
      "| 61.8 |\n");
  REQUIRE(steps.size() == 2);
  CHECK(steps[0].gpus == 128);
  CHECK(steps[0].batch_per_gpu == 2);
  CHECK(steps[0].tokens_per_s == 5605.0 * 128);
  CHECK(steps[1].precision == Precision::fp8);
}

TEST_CASE("columns of LLM-Foundry and MLPerf") {
  const auto foundry = steps_of(
      "| Model | SeqLen (T) | # GPUs | MicroBatchSize | GlobalBatchSize | Throughput (S/s) | Throughput (T/s) | "
      "Throughput (T/s/GPU) | Precision |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- |\n| 70b | 2048 | 512 | 8 | 4096 | 251 | 515636 | 1007 | "
      "amp_bf16 |\n");
  REQUIRE(foundry.size() == 1);
  CHECK(foundry[0].tokens_per_s == 515636);
  CHECK(foundry[0].precision == Precision::bf16);
  CHECK(readers::is_same_model(foundry[0].model, "mpt-70b"));
  const auto mlperf = steps_of(
      "# dir | runs | gbs | median throughput | t | minutes | params\n"
      "Dell/results/2xXE9680x8H100-SXM-80GB/llama2_70b_lora | 10 | 8 | 3.6436 | None | [20.0] | {}\n"
      "NVIDIA/results/eos_n64_ngc24.09_nemo/gpt3 | 3 | 2048 | 404455.3274 | None | [49.7] | {}\n");
  REQUIRE(mlperf.size() == 2);
  CHECK(mlperf[0].gpus == 16);
  CHECK(mlperf[1].gpus == 512);
  CHECK(mlperf[1].tokens_per_s == test::approx(404455.3274));
}

TEST_CASE("GPUs of a system's name") {
  CHECK(readers::gpus_of_system("XE8640x4H100-SXM-80GB") == 4);
  CHECK(readers::gpus_of_system("7x8xH100-SXM5-80GB") == 56);
  CHECK(readers::gpus_of_system("1536xBM.GPU.H100.8") == 1536);
  CHECK(readers::gpus_of_system("1xBM.GPU.H100.8") == 8);
  CHECK(readers::gpus_of_system("eos_ngc24.09_nemo") == 8);
  CHECK(readers::gpus_of_system("ND_H200_v5_n64_nemo") == 512);
}

TEST_CASE("lines that programs print") {
  const auto horovod = steps_of(
      "Model: ResNet50\nBatch size: 32\nNumber of GPUs: 8\nIter #0: 598.3 img/sec per GPU\nImg/sec per GPU: 600.0 "
      "+-3.8\n"
      "Total img/sec on 8 GPU(s): 4800.1 +-30.3\n");
  REQUIRE(horovod.size() == 1);
  CHECK(horovod[0].samples_per_s == 4800.1);
  CHECK(horovod[0].batch_per_gpu == 32);
  const auto mxnet = steps_of(
      "# gpus: 8\n# ---- raw output below ----\n"
      "2019-06-18 18:15:38,827 Node[0] Epoch[0] Batch [0-20]\tSpeed: 10356.65 samples/sec\n");
  REQUIRE(mxnet.size() == 1);
  CHECK(mxnet[0].gpus == 8);
}

TEST_CASE("a damaged table loses rows, not the whole") {
  const auto logs = read_logs_text("nodes gpus images_per_second\n1 1 740\n1 8 -\n2 16\n2 16 9860\n", "log.txt");
  REQUIRE(logs.has_value());
  CHECK(logs->at(0).steps.size() == 2);
  CHECK(logs->at(0).warnings.size() == 1);
}

TEST_CASE("every training table at hand gives rows") {
  int tables = 0;
  for (const auto& path :
       test::logs_below({test::measurements_folder(), std::string(FABRICAST_SOURCE_DIR) + "/calibration/data"})) {
    const auto name = path.filename().string();
    const auto is_of = [&](const char* word) { return name.find(word) != std::string::npos; };
    // Times per epoch of other networks, inference and profiles are no steps; GNMT, SSD and Mask R-CNN have no
    // throughput.
    const bool is_training = is_of("horovod") || is_of("tfcnn") || is_of("speedlines") || is_of("resnet-scaling") ||
                             is_of("llm-scaling") || is_of("dgxc") || is_of("foundry") || is_of("torchtitan") ||
                             is_of("training-data") || is_of("training-fully") || is_of("tensor-parallel") ||
                             is_of("training-nvlink");
    if (!is_training) continue;
    CAPTURE(name);
    const auto logs = read_logs(path.string());
    REQUIRE(logs.has_value());
    REQUIRE(!logs->empty());
    CHECK(!logs->front().steps.empty());
    for (const auto& step : logs->front().steps) CHECK(step.gpus.value_or(0) > 0);
    ++tables;
  }
  if (std::filesystem::exists(test::measurements_folder()))
    CHECK(tables >= 5);
  else
    MESSAGE("published tables are not at hand");
}

TEST_CASE("commas part thousands, elsewhere a cell is no number") {
  using readers::number_in;
  CHECK(number_in("1,234.5") == 1234.5);
  CHECK(number_in("12,345,678") == 12345678);
  CHECK(number_in("959") == 959);
  for (const auto* text : {"1,53", "1.234,56", ",5", "1,2345", "12,345,67"}) {
    CAPTURE(std::string(text));
    CHECK_FALSE(number_in(text).has_value());
  }
}
