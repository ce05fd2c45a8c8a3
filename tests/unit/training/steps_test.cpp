// SPDX-License-Identifier: Apache-2.0
// Forecast steps against our own measured ones, and what each setting does to them.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {

const std::string k_own = std::string(FABRICAST_SOURCE_DIR) + "/calibration/data/h200-4gpu-nvswitch-passthrough-vm/";

double figure(const Row& row, const std::string& key) {
  const auto it = std::ranges::find(row.figures, key, &Figure::key);
  if (it == row.figures.end()) FAIL("no figure " << key);
  return it->value;
}

Row row_of(const std::string& scenario, const std::vector<Setting>& settings = {}) {
  return test::run(test::shipped(scenario, settings)).workloads[0].rows.front();
}

std::vector<std::vector<std::string>> table(const std::string& file) {
  std::ifstream in(k_own + file);
  REQUIRE(in);
  std::vector<std::vector<std::string>> rows;
  for (std::string line; std::getline(in, line);) {
    std::istringstream cells(line);
    rows.emplace_back();
    for (std::string cell; std::getline(cells, cell, '\t');) rows.back().push_back(cell);
  }
  rows.erase(rows.begin());
  return rows;
}

std::vector<Setting> settings_of(const std::vector<std::string>& row) {
  std::vector<Setting> settings{{"workload.model", row[1]},
                                {"workload.precision", row[2]},
                                {"workload.gpus", row[3]},
                                {"workload.batch_per_gpu", row[4]},
                                {"workload.parallel.bucket", row[5] + " MiB"},
                                {"workload.parallel.exchange", row[6]}};
  if (row[0] != "nvlink") settings.push_back({"software.nccl.p2p", "off"});
  if (row[0] == "tcp") {
    settings.push_back({"software.nccl.shm", "off"});
    settings.push_back({"software.transport", "tcp"});
  }
  return settings;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

TEST_CASE("measured data-parallel steps are forecast from the profile of one GPU") {
  std::vector<double> errors, exposed;
  for (const auto& measured : table("training-data-parallel.tsv")) {
    if (measured[1].starts_with("bert")) continue;  // limited by the launching thread
    const auto row = row_of("validation/h200vm4-training-ddp.yaml", settings_of(measured));
    const double step = figure(row, "step_time_ps") * 1e-6;
    const double added = std::stod(measured[7]) - std::stod(measured[9]);
    errors.push_back(std::abs(step / std::stod(measured[7]) - 1));
    exposed.push_back(std::abs(figure(row, "exposed_exchange_time_ps") * 1e-6 / added - 1));
    MESSAGE(measured[0] << " " << measured[1] << " n=" << measured[3] << " cap " << measured[5] << ": " << step
                        << " of " << measured[7] << " us, exchange " << figure(row, "exposed_exchange_time_ps") * 1e-6
                        << " of " << added);
    CHECK(errors.back() < 0.12);
  }
  CHECK(median(errors) < 0.04);
  CHECK(median(exposed) < 0.20);
}

TEST_CASE("a tensor-parallel layer takes what was measured on two GPUs") {
  std::vector<double> errors, alone;
  for (const auto& measured : table("tensor-parallel-layer.tsv")) {
    const std::vector<Setting> settings{{"workload.network", "attention-layer-" + measured[3]},
                                        {"workload.batch_per_gpu", measured[4]},
                                        {"workload.tokens", measured[5]},
                                        {"workload.kv_length", measured[6]}};
    const auto row = row_of("validation/h200vm4-tensor-parallel-layer.yaml", settings);
    errors.push_back(std::abs(figure(row, "step_time_ps") * 1e-6 / std::stod(measured[8]) - 1));
    alone.push_back(std::abs(figure(row, "compute_time_ps") * 1e-6 / std::stod(measured[9]) - 1));
    MESSAGE(measured[3] << " b=" << measured[4] << " tokens " << measured[5] << ": "
                        << figure(row, "step_time_ps") * 1e-6 << " of " << measured[8] << " us, compute "
                        << figure(row, "compute_time_ps") * 1e-6 << " of " << measured[9]);
  }
  CHECK(median(errors) < 0.06);
  CHECK(median(alone) < 0.06);
}

TEST_CASE("settings of a step change what they say") {
  const std::string ddp = "validation/h200vm4-training-ddp.yaml";
  const auto base = row_of(ddp);
  CHECK(figure(base, "gpus") == 2);
  CHECK(figure(row_of(ddp, {{"workload.gpus", "4"}}), "gpus") == 4);
  CHECK(figure(row_of(ddp, {{"workload.gpus", "1"}}), "exposed_exchange_time_ps") == 0);
  CHECK(row_of(ddp, {{"software.nccl.p2p", "off"}}).time > base.time);
  CHECK(row_of(ddp, {{"workload.parallel.exchange", "bf16"}, {"software.nccl.p2p", "off"}}).time <
        row_of(ddp, {{"software.nccl.p2p", "off"}}).time);
  const auto resnet = row_of(ddp, {{"workload.model", "resnet50"}});
  CHECK(resnet.size.value == 102'228'128);
  CHECK(row_of(ddp, {{"workload.parallel.micro_batches", "2"}}).time > base.time);
}

TEST_CASE("one run answers several numbers of GPUs") {
  const auto rows = test::run(test::shipped("validation/h200vm4-training-ddp.yaml", {{"workload.gpus", "[1, 2, 4]"}}))
                        .workloads[0]
                        .rows;
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].label == "1 GPU");
  CHECK(rows[2].label == "4 GPUs");
  CHECK(figure(rows[0], "scaling_efficiency_share") == test::approx(1));
  for (std::size_t i = 1; i < rows.size(); ++i) {
    CHECK(figure(rows[i], "throughput_per_s") > figure(rows[i - 1], "throughput_per_s"));
    CHECK(figure(rows[i], "scaling_efficiency_share") < 1);
  }
}

TEST_CASE("a network without a profile computes as long as was measured, within a quarter") {
  // Launch-bound rows (DenseNet, BERT) are left out: what the host costs is not known well.
  struct Measured {
    std::string network;
    std::string precision;
    int batch;
    double step_us;
  };
  for (const auto& one : {Measured{"resnet-50", "tf32", 64, 23282.6}, Measured{"resnet-50", "bf16", 128, 29671.4},
                          Measured{"resnet-101", "tf32", 64, 37286.8}, Measured{"vgg-16", "tf32", 64, 36511.1},
                          Measured{"vgg-16", "bf16", 32, 12129.9}, Measured{"gpt-124m", "bf16", 8, 26028.8},
                          Measured{"gpt-345m", "bf16", 8, 59588.5}, Measured{"gpt-1.3b", "bf16", 2, 91769.1}}) {
    const auto loaded = test::scenario(
        "schema: fabricast/scenario/1\nname: one\ntopology: " + std::string(FABRICAST_SOURCE_DIR) +
        "/topologies/h200-4gpu-vm.yaml\nworkload: {benchmark: training, gpus: 1, network: " + one.network +
        ", precision: " + one.precision + ", batch_per_gpu: " + std::to_string(one.batch) + "}\n");
    const auto row = test::run(loaded).workloads[0].rows.front();
    CAPTURE(one.network);
    std::string parts;
    for (const auto& term : row.terms) parts += " " + term.name + " " + std::to_string(term.time.us());
    MESSAGE(one.network << " " << one.precision << ": " << row.time.us() << " of " << one.step_us << " us:" << parts);
    CHECK(row.time.us() / one.step_us == test::approx(1).epsilon(0.25));
  }
}
