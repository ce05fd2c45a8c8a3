// SPDX-License-Identifier: Apache-2.0
// What GPUs do not compute in is refused where it was named, and not the default; what libraries compute instead is
// what is forecast, and said.
#include <algorithm>
#include <string>
#include <vector>

#include "fabricast/check.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {

LoadedScenario on_gpus(const std::string& gpus, const std::string& workload) {
  std::string devices;
  int n = 0;
  for (std::size_t at = 0; at < gpus.size();) {
    const auto end = std::min(gpus.find(' ', at), gpus.size());
    devices += (n > 0 ? ", {name: gpu" : "{name: gpu") + std::to_string(n) + ", type: " + gpus.substr(at, end - at) +
               ", below: socket0}";
    ++n;
    at = end + 1;
  }
  return test::scenario(
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: [{name: "
      "n, "
      "host: {processor: epyc-genoa, devices: [" +
      devices + "]}}]\nworkload: {benchmark: training, network: resnet-50, batch_per_gpu: 32, " + workload + "}\n");
}

/// Of a step on GPUs of these types; "refused" where it is, after checking that `check` says the same at the key.
std::string used_by(const std::string& gpus, const std::string& workload) {
  const auto loaded = on_gpus(gpus, workload);
  const auto forecast = simulate(loaded.topology, loaded.scenario, loaded.parameters);
  const auto said = check_scenario(loaded.topology, loaded.scenario, loaded.parameters);
  CHECK(forecast.has_value() == said.empty());
  if (!forecast) {
    REQUIRE(said.size() == 1);
    CHECK(said.front().message == forecast.error().front().message);
    CHECK(said.front().message.find("do not compute in") != std::string::npos);
    CHECK(said.front().location.line > 0);
    return "refused";
  }
  std::string used;
  bool is_said = false;
  for (const auto& setting : forecast->workloads[0].settings) {
    if (setting.setting == "compute") used = setting.reason.substr(0, setting.reason.find(','));
    is_said = is_said || setting.setting == "precision";
  }
  const auto at = workload.find("precision: ");
  const auto asked = at == std::string::npos ? std::string("bf16") : workload.substr(at + 11);
  CHECK(is_said == (asked != used));
  return used;
}

double time_of(const std::string& gpus, const std::string& workload) {
  return test::run(on_gpus(gpus, workload)).workloads[0].rows.front().time.us();
}

}  // namespace

TEST_CASE("a GPU computes in the precisions that its generation has, and says which one it takes for others") {
  struct Kind {
    std::string type;
    std::vector<std::string> used;  ///< not named, fp32, tf32, fp16, bf16, fp8
  };
  const std::vector<std::string> asked{"", "fp32", "tf32", "fp16", "bf16", "fp8"};
  for (const auto& kind : {Kind{"k80", {"fp32", "fp32", "fp32", "fp16", "refused", "refused"}},
                           Kind{"p100-pcie-16", {"fp32", "fp32", "fp32", "fp16", "refused", "refused"}},
                           Kind{"v100-pcie-32", {"fp16", "fp32", "fp32", "fp16", "refused", "refused"}},
                           Kind{"t4", {"fp16", "fp32", "fp32", "fp16", "refused", "refused"}},
                           Kind{"a100-pcie-80", {"bf16", "fp32", "tf32", "fp16", "bf16", "refused"}},
                           Kind{"a40", {"bf16", "fp32", "tf32", "fp16", "bf16", "refused"}},
                           Kind{"l40s", {"bf16", "fp32", "tf32", "fp16", "bf16", "bf16"}},
                           Kind{"h100-pcie", {"bf16", "fp32", "tf32", "fp16", "bf16", "bf16"}}}) {
    for (std::size_t i = 0; i < asked.size(); ++i) {
      CAPTURE(kind.type);
      CAPTURE(asked[i]);
      CHECK(used_by(kind.type, "gpus: 1" + (asked[i].empty() ? "" : ", precision: " + asked[i])) == kind.used[i]);
    }
  }
}

TEST_CASE("not naming the precision takes as long as naming the one that is taken") {
  CHECK(time_of("v100-pcie-32", "gpus: 1") == time_of("v100-pcie-32", "gpus: 1, precision: fp16"));
  CHECK(time_of("p100-pcie-16", "gpus: 1") == time_of("p100-pcie-16", "gpus: 1, precision: fp32"));
  CHECK(time_of("v100-pcie-32", "gpus: 1, precision: tf32") == time_of("v100-pcie-32", "gpus: 1, precision: fp32"));
  CHECK(time_of("h100-pcie", "gpus: 1") == time_of("h100-pcie", "gpus: 1, precision: bf16"));
}

namespace {

/// Of one GPU, without exchanges and held back by no power limit, in us.
double compute_of(const std::string& gpu, const std::string& workload) {
  auto loaded = test::scenario(
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: [{name: "
      "n, type: " +
      gpu + "}]\nworkload: {benchmark: training, gpus: 1, " + workload + "}\n");
  auto power = loaded.parameters.at("gpu.product_power.hopper");
  power.value = power.low = power.high = 1e-6;
  loaded.parameters.set(power);
  return test::run(loaded).workloads[0].rows.front().time.us();
}

const std::vector<std::string> k_languages{"llama3-8b", "deepseek-v3", "qwen3-30b-a3b", "mixtral-8x7b"};

}  // namespace

TEST_CASE("attention takes as long in fp8 as in bf16: what grows with the square of the sequence is the same") {
  for (const auto& network : k_languages) {
    const auto bend = [&](const std::string& precision) {
      const auto prefill = [&](int tokens) {
        return compute_of("hgx-h100-8", "network: " + network + ", part: layer, batch_per_gpu: 8, tokens: " +
                                            std::to_string(tokens) + ", precision: " + precision);
      };
      return prefill(24576) - 2 * prefill(16384) + prefill(8192);
    };
    CAPTURE(network);
    CHECK(bend("fp8") > 0);
    CHECK(bend("fp8") == test::approx(bend("bf16")).epsilon(0.01));
  }
}

TEST_CASE("a cached token is read in 16 bits in fp8, too, weights in half of them") {
  for (const auto& network : k_languages) {
    const auto decode = [&](int cached, int batch, const std::string& precision) {
      return compute_of("hgx-h200-8", "network: " + network +
                                          ", part: layer, tokens: 1, kv_length: " + std::to_string(cached) +
                                          ", batch_per_gpu: " + std::to_string(batch) + ", precision: " + precision);
    };
    const auto of_cache = [&](const std::string& precision) {
      return decode(65536, 64, precision) - decode(32768, 64, precision);
    };
    CAPTURE(network);
    CHECK(of_cache("fp8") == test::approx(of_cache("bf16")).epsilon(0.01));
  }
  // 3.8 us for each of the eleven kernels of a block, the rest its weights.
  const auto weights = [&](const std::string& precision) {
    const std::string decode = "part: layer, tokens: 1, kv_length: 1, batch_per_gpu: 1, precision: " + precision;
    return compute_of("hgx-h200-8", "network: llama3-405b, " + decode);
  };
  CHECK(weights("fp8") == test::approx(weights("bf16") / 2).epsilon(0.07));
}

TEST_CASE("fp8 is never slower than bf16, and the same where nothing computes in it") {
  for (const auto& network : k_languages) {
    for (const std::string work : {"tokens: 4096", "tokens: 128", "tokens: 1, kv_length: 2048"}) {
      for (const std::string batch : {"1", "16", "256"}) {
        const auto of = [&](const std::string& precision) {
          return compute_of("hgx-h100-8", "network: " + network + ", part: layer, " + work +
                                              ", batch_per_gpu: " + batch + ", precision: " + precision);
        };
        CAPTURE(network);
        CAPTURE(work);
        CAPTURE(batch);
        CHECK(of("fp8") <= of("bf16"));
        CHECK(of("fp8") >= of("bf16") / 2);
      }
    }
  }
  for (const std::string network : {"resnet-50", "vgg-16"}) {
    const auto of = [&](const std::string& precision) {
      return compute_of("hgx-h100-8", "network: " + network + ", batch_per_gpu: 32, precision: " + precision);
    };
    CHECK(of("fp8") == of("bf16"));
  }
}

TEST_CASE("fp8 gains no more where kernels are launched one by one than in a graph of fused ones") {
  for (const std::string network : {"gpt-345m", "gpt-1.3b"}) {
    const auto gain = [&](const std::string& launch) {
      const auto of = [&](const std::string& precision) {
        return compute_of("hgx-h200-8", "network: " + network + ", batch_per_gpu: 8, " + launch +
                                            "parallel: {data: fsdp}, precision: " + precision);
      };
      return of("bf16") / of("fp8");
    };
    CAPTURE(network);
    CHECK(gain("") > 1.05);
    CHECK(gain("") < gain("launch: graph, "));
  }
}

TEST_CASE("a precision that is set from outside the file is named, too") {
  const auto text = [](const std::string& precision) {
    const auto loaded = test::scenario(
        "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  "
        "hosts: [{name: n, type: dgx-1-v100}]\nworkload: {benchmark: training, network: resnet-50, "
        "batch_per_gpu: 32, gpus: 1}\n",
        {{"workload.precision", precision}});
    const auto forecast = simulate(loaded.topology, loaded.scenario, loaded.parameters);
    return forecast ? std::string() : forecast.error().front().message;
  };
  CHECK(text("bf16").find("do not compute in bf16: they have fp16 and fp32") != std::string::npos);
  CHECK(text("fp8").find("do not compute in fp8") != std::string::npos);
  CHECK(text("fp16").empty());
}

TEST_CASE("the least capable GPU of a step decides in what all compute") {
  for (const std::string gpus : {"h100-pcie v100-pcie-32", "v100-pcie-32 h100-pcie"}) {
    CHECK(used_by(gpus, "gpus: 2") == "fp16");
    CHECK(used_by(gpus, "gpus: 2, precision: bf16") == "refused");
    CHECK(used_by(gpus, "gpus: 2, precision: tf32") == "fp32");
  }
  CHECK(used_by("h100-pcie v100-pcie-32", "gpus: 1") == "bf16");
  CHECK(used_by("h100-pcie v100-pcie-32", "devices: [n.gpu1], gpus: 1") == "fp16");
}
