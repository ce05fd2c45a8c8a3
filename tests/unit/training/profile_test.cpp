// SPDX-License-Identifier: Apache-2.0
// Measured profiles, and the buckets that PyTorch made of them.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <sstream>

#include "fabricast/training.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"
#include "training/buckets.hpp"
#include "training/work.hpp"

namespace fabricast {
namespace {

using namespace fabricast::literals;

using models::training::ddp_buckets;
using models::training::horovod_buffers;

const std::string k_own = std::string(FABRICAST_SOURCE_DIR) + "/calibration/data/h200-4gpu-nvswitch-passthrough-vm/";

std::string text_of(const std::string& file) {
  std::ifstream in(file);
  REQUIRE(in);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) out.push_back(part);
  return out;
}

TEST_CASE("every bucket of every measured data-parallel row comes out of the rule") {
  const auto profiles = parse_training_profiles("profile", text_of(k_own + "training-profile.tsv"));
  REQUIRE(profiles);
  int rows = 0;
  for (const auto& line : split(text_of(k_own + "training-data-parallel.tsv"), '\n')) {
    const auto columns = split(line, '\t');
    if (columns[0] == "path") continue;
    CAPTURE(line.substr(0, 60));
    const auto profile = std::ranges::find_if(*profiles, [&](const auto& one) {
      return one.model == columns[1] && to_string(one.precision) == columns[2] &&
             one.batch_per_gpu == std::stoi(columns[4]);
    });
    REQUIRE(profile != profiles->end());
    std::string made;
    for (const auto& bucket : ddp_buckets(profile->tensors, Bytes{std::stoll(columns[5]) << 20}))
      made += (made.empty() ? "" : ",") + std::to_string(bucket.bytes.value);
    CHECK(made == columns[11]);
    ++rows;
  }
  CHECK(rows == 20);
}

TEST_CASE("a buffer of Horovod waits for its cycle once, wherever in the backward pass its gradients come") {
  // Cycles of 5 ms, half of one after the last gradient: those of 10 ms are found at 12.5 ms, those of 33 at 37.5;
  // forward takes 20 ms, backward 100.
  for (const int ready_ms : {5, 10, 33, 60, 95}) {
    CAPTURE(ready_ms);
    const auto profile = test::write_file(
        "profile.tsv",
        "#PROFILE\tm\tfp32\tbatch_per_gpu\t1\tstep_us\t121000\tforward_us\t20000\tbackward_us\t100000\t"
        "optimizer_us\t1000\tparameters\t200\na\t400\t" +
            std::to_string(ready_ms) + "000\nb\t400\t100000\n");
    const auto loaded = test::scenario(
        "schema: fabricast/scenario/1\nname: s\n"
        "topology: {schema: fabricast/topology/1, name: t, parameters: {gpu.compute_spread: {value: 0, source: test}}, "
        "hosts: [{name: n, count: 1, type: dgx-1-v100}]}\n"
        "workload: {benchmark: training, profile: \"" +
        profile + "\", model: m, gpus: 2, parallel: {data: horovod, cycle: 5 ms}}\n");
    const auto prediction = test::run(loaded);
    const auto& row = prediction.workloads[0].rows.front();
    double exchange = 1e9;
    for (const auto& span : row.timeline) {
      if (span.name.find("all-reduce") != std::string::npos) exchange = std::min(exchange, span.start.us());
    }
    const double found = 20e3 + 5e3 * ((ready_ms + 2) / 5) + 2.5e3;
    CHECK(exchange > found);
    CHECK(exchange < found + 500);
  }
}

TEST_CASE("a bucket cap that is not given makes the first bucket small") {
  std::vector<GradientTensor> tensors(64, {"t", 1_MiB, {}});
  const auto unset = ddp_buckets(tensors, std::nullopt);
  CHECK(unset.front().bytes == 1_MiB);
  CHECK(unset[1].bytes == 25_MiB);
  CHECK(ddp_buckets(tensors, 25_MiB).front().bytes == 25_MiB);
}

TEST_CASE("no byte is lost in buckets or fusion buffers, and order is kept") {
  const auto profiles = parse_training_profiles("profile", text_of(k_own + "training-profile.tsv"));
  REQUIRE(profiles);
  for (const auto& profile : *profiles) {
    const auto work = models::training::work_of_profile(profile, profile.batch_per_gpu);
    CHECK((work.forward + work.backward + work.optimizer).seconds() <= fabricast::test::approx(profile.step.seconds()));
    for (const std::int64_t mib : {1, 4, 25, 64, 1000}) {
      for (const auto& all :
           {ddp_buckets(work.tensors, Bytes{mib << 20}), horovod_buffers(work.tensors, Bytes{mib << 20}, 1_ms)}) {
        Bytes sum;
        for (std::size_t b = 0; b < all.size(); ++b) {
          sum += all[b].bytes;
          if (b > 0) CHECK(all[b].ready >= all[b - 1].ready);
        }
        CHECK(sum == work.gradient_bytes);
      }
    }
  }
}

TEST_CASE("faults of a profile name their line") {
  const auto faults_of = [](const std::string& text) {
    const auto read = parse_training_profiles("p.tsv", text);
    REQUIRE(!read);
    return read.error();
  };
  CHECK(faults_of("").front().message.find("no line '#PROFILE'") != std::string::npos);
  CHECK(faults_of("fc.bias\t4\t1\n").front().location.line == 1);
  CHECK(faults_of("#PROFILE\tm\tbf16\tforward_us\t1\tbackward_us\t1\nfc\t4\n").front().location.line == 2);
  CHECK(faults_of("#PROFILE\tm\tbf99\n").front().message.find("precision") != std::string::npos);
  CHECK(faults_of("#PROFILE\tm\tbf16\tforward_us\t1\tbackward_us\t1\na\t4\t5\nb\t4\t4\n").front().location.line == 3);
}

}  // namespace
}  // namespace fabricast
