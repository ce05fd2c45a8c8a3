// SPDX-License-Identifier: Apache-2.0
// Jobs on the same GPUs: processes take turns, so that together they get no more than the GPU.
#include <string>
#include <vector>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {

const std::string k_train = "benchmark: training, network: gpt-345m, batch_per_gpu: 8";
const std::string k_small = "benchmark: training, network: resnet-50, batch_per_gpu: 4";
const std::string k_decode = "benchmark: training, network: llama3-8b, part: layer, kv_length: 512, batch_per_gpu: 4";
const std::string k_step = "benchmark: gpu_step, compute: 10 ms, sizes: [64 MiB]";
const std::string k_reduce = "benchmark: all_reduce_perf, sizes: [32 MiB]";

std::string on(const std::string& workload, const std::string& gpus) { return workload + ", devices: [" + gpus + "]"; }

/// Times of workloads that run together, in s.
std::vector<double> times_of(const std::vector<std::string>& workloads, const std::string& hosts = "hgx-h100-8}]",
                             SimulateOptions options = {}) {
  std::string all;
  for (const auto& one : workloads) all += "  - {" + one + "}\n";
  const auto prediction = test::run(test::scenario("schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: "
                                                   "fabricast/topology/1\n  name: t\n  hosts: [{name: n, type: " +
                                                   hosts + "\nworkloads:\n" + all),
                                    options);
  std::vector<double> out;
  for (const auto& one : prediction.workloads) out.push_back(one.rows.front().time.seconds());
  return out;
}

double alone(const std::string& workload) { return times_of({workload}).front(); }

}  // namespace

TEST_CASE("n jobs on a GPU take as long as beside n - 1 busy clients of it: slices and switches") {
  const std::string gpus = "n.gpu0, n.gpu1";
  for (const int jobs : {2, 3, 5}) {
    const double turns = jobs * 1.62 / (1.62 - 0.136);
    for (const auto& second : {k_train, k_small, k_decode, k_step}) {
      const auto times_beside = [&](const std::string& first) {
        std::vector<std::string> all{on(first, gpus)};
        for (int job = 1; job < jobs; ++job) all.push_back(on(second, gpus));
        return times_of(all);
      };
      CAPTURE(jobs);
      CAPTURE(second);
      for (const auto& first : {k_train, k_small, k_decode, k_step, k_reduce}) {
        CAPTURE(first);
        const auto times = times_beside(first);
        CHECK(times.front() == test::approx(turns * alone(on(first, gpus))).epsilon(first == k_reduce ? 0.2 : 0.05));
        for (int job = 1; job < jobs; ++job)
          CHECK(times[static_cast<std::size_t>(job)] == test::approx(turns * alone(on(second, gpus))).epsilon(0.05));
      }
      for (const auto& first : {k_step, k_reduce}) {
        const auto clients = on(first, gpus) + ", sharing: {clients: [{name: busy, kernel: 50 ms, pause: 0 s, count: " +
                             std::to_string(jobs - 1) + "}]}";
        CHECK(times_beside(first).front() == test::approx(alone(clients)).epsilon(1e-6));
      }
    }
  }
}

TEST_CASE("jobs that share no GPU, or are not there at the same time, take as long as alone") {
  const auto apart = times_of({on(k_train, "n.gpu0, n.gpu1"), on(k_small, "n.gpu2, n.gpu3")});
  CHECK(apart[0] == test::approx(alone(on(k_train, "n.gpu0, n.gpu1"))).epsilon(1e-9));
  CHECK(apart[1] == test::approx(alone(on(k_small, "n.gpu2, n.gpu3"))).epsilon(1e-9));
  const auto later = times_of({k_train, k_small + ", start: 10 s"});
  CHECK(later[0] == test::approx(alone(k_train)).epsilon(1e-9));
  CHECK(later[1] == test::approx(alone(k_small)).epsilon(1e-9));
  CHECK(times_of({k_train, k_small + ", start: 1 ms"})[0] > 2 * alone(k_train));
}

TEST_CASE("a job that shares one of its GPUs waits with all of them") {
  const auto first = on(k_train, "n.gpu0, n.gpu1, n.gpu2"), second = on(k_train, "n.gpu2, n.gpu3, n.gpu4");
  const auto times = times_of({first, second});
  CHECK(times[0] == test::approx(2 * 1.62 / 1.484 * alone(first)).epsilon(0.01));
  CHECK(times[1] == test::approx(2 * 1.62 / 1.484 * alone(second)).epsilon(0.01));
}

TEST_CASE("of a list of numbers of GPUs only the rows that reach another job's GPUs take turns with it") {
  const auto rows_of = [](const std::string& more) {
    return test::run(test::scenario("schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: "
                                    "fabricast/topology/1\n  name: t\n  hosts: [{name: n, type: "
                                    "hgx-h100-8}]\nworkloads:\n  - {" +
                                    k_train + ", gpus: [1, 2, 4, 8]}\n" + more))
        .workloads[0]
        .rows;
  };
  const auto alone_rows = rows_of("");
  const auto beside = rows_of("  - {" + on(k_train, "n.gpu4, n.gpu5") + "}\n");
  REQUIRE(beside.size() == 4);
  for (std::size_t i = 0; i < 3; ++i)
    CHECK(beside[i].time.seconds() == test::approx(alone_rows[i].time.seconds()).epsilon(1e-9));
  CHECK(beside[3].time.seconds() == test::approx(2 * 1.62 / 1.484 * alone_rows[3].time.seconds()).epsilon(0.01));
}

TEST_CASE("jobs on the same GPUs slow others on the fabric, not each other, in both engines") {
  const std::string hosts = "dgx-1-p100, count: 4}]\n  fabric: {single_switch: {switch: sb7800}}";
  const auto both_on = on(k_step, "n0.gpu0, n2.gpu0"), beside = on(k_step, "n0.gpu1, n2.gpu1");
  for (const auto fidelity : {Fidelity::fluid, Fidelity::packet}) {
    SimulateOptions options;
    options.fidelity = fidelity;
    const double one = times_of({both_on}, hosts, options).front();
    const auto two = times_of({both_on, both_on}, hosts, options);
    CHECK(two[0] == test::approx(2 * 1.62 / 1.484 * one).epsilon(0.03));
    CHECK(two[1] == test::approx(two[0]).epsilon(1e-3));
    const auto three = times_of({both_on, both_on, beside}, hosts, options);
    CHECK(three[2] > 1.02 * times_of({beside}, hosts, options).front());
  }
}
