// SPDX-License-Identifier: Apache-2.0
// Traces of PyTorch's profiler: made here from known times, so that the profile must give them back.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <utility>

#include "config/profiler_trace.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {

struct Layer {
  std::vector<std::int64_t> shape;
  double forward_us, backward_us;
};

/// Writes what Kineto would: steps of forward, backward and optimiser kernels, launched `lead` us ahead.
class Trace {
 public:
  explicit Trace(std::vector<Layer> layers) : layers_(std::move(layers)) {}
  bool has_shapes = true, has_exchange = false;
  double optimizer_us = 300;

  std::string text(int steps) {
    for (int s = 0; s < steps; ++s) step(s);
    return "{\"schemaVersion\": 1, \"traceEvents\": [{\"ph\": \"M\", \"name\": \"process_name\"}" + events_ + "]}";
  }
  [[nodiscard]] double step_us() const {
    double sum = optimizer_us;
    for (const auto& layer : layers_) sum += layer.forward_us + layer.backward_us;
    return sum;
  }

 private:
  void event(const std::string& category, const std::string& name, double begin, double duration, int thread,
             const std::string& arguments) {
    events_ += fmt::format(
        ",\n{{\"ph\": \"X\", \"cat\": \"{}\", \"name\": \"{}\", \"pid\": 1, \"tid\": {}, \"ts\": {:.3f}, \"dur\": "
        "{:.3f}, "
        "\"args\": {{{}}}}}",
        category, name, thread, begin, duration, arguments);
  }
  void kernel(const std::string& name, double us, int thread) {
    ++correlation_;
    event("cuda_runtime", "cudaLaunchKernel", host_, 1, thread, fmt::format("\"correlation\": {}", correlation_));
    event("kernel", name, gpu_, us, 7, fmt::format("\"correlation\": {}, \"stream\": 7", correlation_));
    gpu_ += us;
    host_ += 2;
  }
  void backward_of(const Layer& layer) {
    const double begin = host_;
    kernel("dgrad", layer.backward_us / 2, 2);
    kernel("wgrad", layer.backward_us / 2, 2);
    event("cpu_op", "autograd::engine::evaluate_function: ConvolutionBackward0", begin, host_ - begin, 2, "");
    std::string dims;
    for (const auto extent : layer.shape) dims += fmt::format("{}{}", dims.empty() ? "" : ", ", extent);
    event("cpu_op", "torch::autograd::AccumulateGrad", host_, 1, 2,
          has_shapes ? "\"Input Dims\": [[" + dims + "]]" : "");
    host_ += 3;
  }
  void step(int number) {
    const double begin = host_;
    for (const auto& layer : layers_) kernel("fprop", layer.forward_us, 1);
    if (has_exchange) kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", 1, 1);
    for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) backward_of(*layer);
    const double optimizer = host_;
    kernel("multi_tensor_apply", optimizer_us, 1);
    event("user_annotation", "Optimizer.step#SGD.step", optimizer, host_ - optimizer, 1, "");
    event("user_annotation", fmt::format("ProfilerStep#{}", number), begin, host_ - begin, 1, "");
  }

  std::vector<Layer> layers_;
  std::string events_;
  double host_ = 1000, gpu_ = 5000;
  int correlation_ = 0;
};

const std::vector<Layer> k_layers{{{64, 3, 7, 7}, 100, 150}, {{512, 512, 3, 3}, 200, 380}, {{1000, 512}, 50, 80}};

}  // namespace

TEST_CASE("a trace gives back the times it was made from") {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> some(20, 2000);
  for (int draw = 0; draw < 20; ++draw) {
    std::vector<Layer> layers;
    double forward = 0;
    double backward = 0;
    for (int l = 0; l < 3 + draw % 5; ++l) {
      layers.push_back({{1 + draw, 3 + l}, some(random), some(random)});
      forward += layers.back().forward_us;
      backward += layers.back().backward_us;
    }
    Trace trace(layers);
    const auto profile = config::parse_profiler_trace("net.json", trace.text(1 + draw % 4));
    REQUIRE(profile.has_value());
    CHECK(profile->step.us() == test::approx(trace.step_us()).epsilon(1e-5));
    CHECK(profile->forward.us() == test::approx(forward).epsilon(1e-4));
    CHECK(profile->backward.us() == test::approx(backward).epsilon(1e-4));
    CHECK(profile->optimizer.us() == test::approx(300).epsilon(1e-4));
    REQUIRE(profile->tensors.size() == layers.size());
    double ready = 0;
    for (std::size_t t = 0; t < layers.size(); ++t) {
      const auto& layer = layers[layers.size() - 1 - t];
      ready += layer.backward_us;
      CHECK(profile->tensors[t].ready.us() == test::approx(ready).epsilon(1e-4));
      CHECK(profile->tensors[t].bytes.value == 4 * layer.shape[0] * layer.shape[1]);
    }
  }
}

TEST_CASE("what a trace lacks is said") {
  const auto message = [](const std::string& text) {
    const auto profile = config::parse_profiler_trace("net.json", text);
    return profile ? std::string("none") : profile.error().front().message;
  };
  Trace bare(k_layers);
  bare.has_shapes = false;
  CHECK(message(bare.text(2)) == "the gradients of the trace have no sizes");
  Trace parallel(k_layers);
  parallel.has_exchange = true;
  CHECK(message(parallel.text(2)) == "the trace holds 2 kernels of NCCL");
  CHECK(message("{\"traceEvents\": []}") == "no kernel of a GPU in the trace");
  CHECK(message("{\"traceEvents\": [") == "the trace is no whole JSON document");
  CHECK(message("{}") == "no list 'traceEvents' in the trace");
  CHECK(message("\x1f\x8b zipped") == "the trace is compressed");
}

TEST_CASE("a scenario trains by a trace") {
  const auto file = std::filesystem::temp_directory_path() / fmt::format("fabricast-trace-{}.json", ::getpid());
  Trace trace(k_layers);
  std::ofstream(file) << trace.text(3);
  const auto row =
      test::run(test::shipped("validation/h200vm4-training-ddp.yaml",
                              {{"workload", fmt::format("{{benchmark: training, profile: {}, precision: bf16, "
                                                        "batch_per_gpu: 32, gpus: 1}}",
                                                        file.string())}}))
          .workloads[0]
          .rows.front();
  CHECK(row.time.us() == test::approx(trace.step_us()).epsilon(1e-3));
  std::filesystem::remove(file);
}
