// SPDX-License-Identifier: Apache-2.0
// The band of a row against hand-computed widths, and how far outside the fitted range a row is.
#include "engine/interval.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <string>

#include "fabricast/scatter.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using engine::extrapolation;
using engine::interval;

namespace {

Parameter parameter(const std::string& name, double value, Confidence confidence,
                    Dimension dimension = Dimension::time) {
  Parameter out;
  out.name = name;
  out.value = out.low = out.high = value;
  out.confidence = confidence;
  out.dimension = dimension;
  return out;
}

/// One term of 100 us that belongs to `name`.
Row row_of(const std::string& name, Duration time = 100_us) {
  Row row;
  row.size = Bytes{1024};
  row.time = time;
  row.terms = {{"term", time, name, ""}};
  return row;
}

struct Band {
  double below, above;  ///< us
};

Band band_of(const ParameterSet& parameters, const Row& row, const engine::Extrapolation& outside = {}) {
  const auto band = interval(row, parameters, outside);
  return {row.time.us() - band.low.us(), band.high.us() - row.time.us()};
}

}  // namespace

TEST_CASE("without an interval the confidence gives the width: 3, 5, 10, 30 and 50 %") {
  const std::pair<Confidence, double> widths[] = {{Confidence::high, 3},      {Confidence::fitted, 5},
                                                  {Confidence::medium, 10},   {Confidence::low, 30},
                                                  {Confidence::read_off, 30}, {Confidence::assumed, 50}};
  for (const auto& [confidence, width] : widths) {
    ParameterSet parameters;
    parameters.set(parameter("p", 2, confidence));
    const auto band = band_of(parameters, row_of("p"));
    CHECK(band.below == test::approx(width));
    CHECK(band.above == test::approx(width));
  }
}

TEST_CASE("an interval of its own counts on both sides, of a rate the other way round") {
  auto one = parameter("p", 10, Confidence::medium);
  one.low = 9;
  one.high = 14;
  ParameterSet times;
  times.set(one);
  CHECK(band_of(times, row_of("p")).below == test::approx(10));
  CHECK(band_of(times, row_of("p")).above == test::approx(40));
  one.is_rate = true;
  ParameterSet rates;
  rates.set(one);
  CHECK(band_of(rates, row_of("p")).below == test::approx(100 - 100 * 10.0 / 14));
  CHECK(band_of(rates, row_of("p")).above == test::approx(100 * 10.0 / 9 - 100));
  // A rate of ten times as much takes no more than the term away, one of a tenth adds nine of it.
  one.low = 1;
  one.high = 100;
  rates.set(one);
  CHECK(band_of(rates, row_of("p")).below == test::approx(90));
  CHECK(band_of(rates, row_of("p")).above == test::approx(900));
}

TEST_CASE("terms are independent, the model's own error comes on top, terms without a parameter add nothing") {
  ParameterSet parameters;
  parameters.set(parameter("a", 1, Confidence::low));     // 30 % of 40 us = 12
  parameters.set(parameter("b", 1, Confidence::medium));  // 10 % of 50 us = 5
  auto row = row_of("a", 40_us);
  row.terms.push_back({"second", 50_us, "b", ""});
  row.terms.push_back({"third", 10_us, "topology", ""});
  row.time = 100_us;
  CHECK(band_of(parameters, row).below == test::approx(13));
  parameters.set(parameter("model.relative_error", 0.84, Confidence::medium, Dimension::number));
  CHECK(band_of(parameters, row).above == test::approx(std::hypot(13, 84)));
  CHECK(interval(row, parameters).low.us() == test::approx(100 - std::hypot(13, 84)));
  parameters.set(parameter("model.relative_error", 3, Confidence::medium, Dimension::number));
  CHECK(interval(row, parameters).low.ps == 0);  // never below nothing
}

TEST_CASE("systems nobody calibrated differ by a factor either way, on top of the other errors") {
  ParameterSet parameters;
  parameters.set(parameter("a", 1, Confidence::low));  // 30 % of 100 us
  const auto row = row_of("a");
  const auto band = interval(row, parameters, engine::Extrapolation{}, {.exchange = 0.5});
  CHECK(row.time.us() - band.low.us() == test::approx(std::hypot(30, 100 - 100 / 1.5)));
  CHECK(band.high.us() - row.time.us() == test::approx(std::hypot(30, 50)));
  CHECK(interval(row, ParameterSet{}, engine::Extrapolation{}, {.exchange = 4}).low.us() == test::approx(20));
  CHECK(interval(row, ParameterSet{}, engine::Extrapolation{}, {.exchange = 4}).high.us() == test::approx(500));
}

TEST_CASE("the scatter belongs to the kind of forecast, a calibration of that kind takes it away") {
  ParameterSet parameters;
  const auto number = [&](const char* name, double value) {
    parameters.set(parameter(name, value, Confidence::medium, Dimension::number));
  };
  CHECK(between_systems(Benchmark::all_reduce_perf, 1, parameters) == 0);  // nothing declared
  number("model.between_systems.nccl_host", 0.1);
  number("model.between_systems.nccl_network", 0.2);
  number("model.between_systems.mpi", 0.3);
  CHECK(between_systems(Benchmark::alltoall_perf, 1, parameters) == 0.1);
  CHECK(between_systems(Benchmark::alltoall_perf, 2, parameters) == 0.2);
  CHECK(between_systems(Benchmark::osu_latency, 1, parameters) == 0.3);
  CHECK(between_systems(Benchmark::ib_write_bw, 2, parameters) == 0.3);
  for (const auto benchmark : {Benchmark::host_copies, Benchmark::gpu_sharing, Benchmark::traffic})
    CHECK(between_systems(benchmark, 2, parameters) == 0);
  for (const auto benchmark : {Benchmark::sendrecv_perf, Benchmark::osu_bcast})
    CHECK(between_systems(benchmark, 4, without_scatter(parameters)) == 0);
  number("model.between_systems.mpi", 0);
  CHECK(between_systems(Benchmark::osu_bcast, 4, parameters) == 0);
}

TEST_CASE("what a network computes scatters between frameworks, until steps of these GPUs or a profile are known") {
  const char* language = "model.between_systems.training_language";  // 0 as shipped: intervals hold what is published
  const auto band_of = [&](const std::string& workload, bool has_scatter) {
    auto loaded = test::scenario(
        "schema: fabricast/scenario/1\nname: s\ntopology: {schema: fabricast/topology/1, name: t, hosts: [{name: n, "
        "type: "
        "dgx-a100}]}\nworkload: {benchmark: training, batch_per_gpu: 8, gpus: 1, " +
        workload + "}\n");
    if (!has_scatter) loaded.parameters = without_scatter(std::move(loaded.parameters));
    if (has_scatter) loaded.parameters.set(parameter(language, 0.2, Confidence::medium, Dimension::number));
    const auto row = test::run(loaded).workloads[0].rows.front();
    CHECK(row.physical_bound.ps == 0);  // one GPU exchanges nothing
    return std::array{row.low_time.seconds() / row.time.seconds(), row.high_time.seconds() / row.time.seconds()};
  };
  auto parameters = test::shipped("what-if-p2p-on.yaml").parameters;
  parameters.set(parameter(language, 0.2, Confidence::medium, Dimension::number));
  for (const bool is_language : {true, false}) {
    const std::string network = is_language ? "network: bert-large" : "network: resnet-50";
    const double b = compute_between_systems(is_language, parameters);
    CAPTURE(network);
    REQUIRE(b > 0);
    const auto band = band_of(network, true);
    const auto own = band_of(network, false);
    CHECK(band[1] - 1 == test::approx(std::hypot(own[1] - 1, b)).epsilon(1e-6));
    CHECK(1 - band[0] == test::approx(std::hypot(1 - own[0], b / (1 + b))).epsilon(1e-6));
    CHECK(own[0] < 0.9);  // what is computed is no bound
  }
}

TEST_CASE(
    "NCCL over TCP between hosts, which one system taught, scatters more until a calibration has seen the system") {
  ParameterSet parameters;
  const auto number = [&](const char* name, double value) {
    parameters.set(parameter(name, value, Confidence::medium, Dimension::number));
  };
  const auto scatter = [&](const char* term, int hosts) {
    return between_systems(Benchmark::all_reduce_perf, hosts, parameters, std::vector<std::string>{term});
  };
  const char* socket = "nccl.hop_time.ring.ll.socket";
  number("model.between_systems.nccl_host", 0.1);
  number("model.between_systems.nccl_network", 0.2);
  CHECK(scatter(socket, 2) == 0.2);  // nothing declared
  number("model.between_systems.nccl_sockets", 1);
  CHECK(scatter(socket, 2) == 1);
  CHECK(scatter(socket, 1) == 0.1);
  for (const auto* term :
       {"efa-100g.plugin_latency", "nccl.hop_time.ring.ll.network", "nccl.hop_time.ring.ll.loopback"})
    CHECK(scatter(term, 2) == 0.2);
  number("model.between_systems.nccl_network", 0);
  CHECK(scatter(socket, 2) == 0);
}

TEST_CASE("where values of another device stand in, that scatter comes on top of the one between systems") {
  ParameterSet parameters;
  const auto number = [&](const char* name, double value) {
    parameters.set(parameter(name, value, Confidence::medium, Dimension::number));
  };
  const auto scatter = [&](Benchmark benchmark, int hosts, const char* term, bool has_stand_in) {
    return between_systems(benchmark, hosts, parameters, std::vector<std::string>{term}, has_stand_in);
  };
  number("model.between_systems.nccl_host", 0.1);
  number("model.between_systems.nccl_network", 0.5);
  CHECK(scatter(Benchmark::all_reduce_perf, 1, "a", true) == 0.1);  // nothing declared
  number("model.between_systems.stand_in", 0.3);
  number("model.between_systems.nccl_sockets", 1);
  CHECK(scatter(Benchmark::all_reduce_perf, 1, "a", false) == 0.1);
  CHECK(scatter(Benchmark::all_reduce_perf, 1, "a", true) == test::approx(std::hypot(0.1, 0.3)));
  CHECK(scatter(Benchmark::all_reduce_perf, 2, "a", true) == test::approx(std::hypot(0.5, 0.3)));
  CHECK(scatter(Benchmark::training, 1, "a", true) == test::approx(std::hypot(0.1, 0.3)));
  CHECK(scatter(Benchmark::all_reduce_perf, 2, "nccl.hop_time.ring.ll.socket", true) == 1);
  number("model.between_systems.nccl_host", 0);  // a calibration has seen the system
  CHECK(scatter(Benchmark::all_reduce_perf, 1, "a", true) == 0);
}

TEST_CASE("doublings beyond the fitted counts widen the band, those of sizes by a quarter") {
  ParameterSet parameters;
  CHECK_FALSE(extrapolation(row_of("p"), 64, 8, parameters).is_outside);  // no fit
  const auto number = [&](const char* name, double value) {
    parameters.set(parameter(name, value, Confidence::fitted, Dimension::number));
  };
  number("model.fitted_ranks", 16);
  number("model.fitted_hosts", 2);
  number("model.fitted_size_low", 4096);
  number("model.fitted_size_high", 65536);
  parameters.set(parameter("p", 1, Confidence::fitted));
  auto row = row_of("p");
  row.size = Bytes{4096};
  CHECK_FALSE(extrapolation(row, 16, 2, parameters).is_outside);
  CHECK(extrapolation(row, 16, 2, parameters).doublings == 0);
  CHECK(extrapolation(row, 128, 2, parameters).doublings == 3);
  CHECK(extrapolation(row, 32, 16, parameters).doublings == 3);  // the larger of both
  row.size = Bytes{1024};
  CHECK(extrapolation(row, 16, 2, parameters).doublings == test::approx(0.5));
  row.size = Bytes{65536 * 4};
  CHECK(extrapolation(row, 32, 2, parameters).doublings == test::approx(1.5));
  CHECK(extrapolation(row, 32, 2, parameters).is_outside);
  number("model.extrapolation_error", 0.2);
  CHECK(band_of(parameters, row, {true, 1.5}).above == test::approx(std::hypot(5, 30)));
}

TEST_CASE("a row is foreign when more than half of its time rests on values that nobody fitted") {
  ParameterSet parameters;
  parameters.set(parameter("model.fitted_ranks", 16, Confidence::fitted, Dimension::number));
  parameters.set(parameter("fit", 1, Confidence::fitted));
  parameters.set(parameter("sure", 1, Confidence::high));
  parameters.set(parameter("guess", 1, Confidence::medium));
  const auto is_outside = [&](Duration fit, Duration sure, Duration guess) {
    auto row = row_of("fit", fit);
    row.terms.push_back({"s", sure, "sure", ""});
    row.terms.push_back({"g", guess, "guess", ""});
    row.time = fit + sure + guess;
    return extrapolation(row, 2, 1, parameters).is_outside;
  };
  CHECK_FALSE(is_outside(25_us, 25_us, 50_us));
  CHECK(is_outside(24_us, 24_us, 52_us));
}

TEST_CASE("what a fit knows has its own error, what it does not know that of no fit, nothing less than the first") {
  std::mt19937_64 random(3);
  std::uniform_real_distribution<double> share(0, 1);
  for (int draw = 0; draw < 500; ++draw) {
    const double narrow = 0.3 * share(random);
    const double wide = share(random);
    engine::Acquaintance known;
    known.has_record = true;
    CHECK(engine::own_error(known, wide, narrow, 0.1) == wide);
    known.is_of_kind = true;
    CHECK(engine::own_error(known, wide, narrow, 0.1) == test::approx(std::min(narrow, std::max(narrow, wide))));
    double before = narrow;
    for (int more = 0; more < 4; ++more) {
      known.doublings = more % 2 == 0 ? known.doublings : known.doublings + 1;
      known.unseen.push_back({0.25 * share(random), more < 2 ? 0 : share(random)});
      const double own = engine::own_error(known, wide, narrow, 0.1);
      CHECK(own >= before - 1e-12);
      CHECK(own <= std::max(narrow, wide));
      before = own;
    }
  }
  // By hand: 0.02 + 0.2 x min(0.02 / 0.1, 0.4) + 0.1 x 0.4 = 0.1, with two doublings of 0.12.
  engine::Acquaintance known;
  known.is_of_kind = true;
  known.unseen = {{0.2, 0.1}, {0.1, 0}};
  CHECK(engine::own_error(known, 0.4, 0.02, 0.12) == test::approx(0.1));
  known.doublings = 2;
  CHECK(engine::own_error(known, 0.4, 0.02, 0.12) == test::approx(0.26));
}

TEST_CASE("a value that a fit has set is as far off as it was before, where nothing is like the logs") {
  ParameterSet parameters;
  auto value = parameter("p", 2, Confidence::fitted);
  value.low = 1.9;
  value.high = 2.1;
  parameters.set(value);
  auto before = parameter("model.fitted_value.p", 0.8, Confidence::fitted, Dimension::number);
  before.low = 0.7;
  before.high = 0.9;
  parameters.set(before);
  engine::Acquaintance known;
  known.is_of_kind = true;
  const auto like = interval(row_of("p"), parameters, known, {});
  CHECK(like.low.us() == test::approx(95));
  CHECK(like.high.us() == test::approx(105));
  // Steps of one GPU say what it computes, not what its exchanges take.
  known.has_exchanged = false;
  CHECK(interval(row_of("p"), parameters, known, {.compute = 0.5}).high == like.high);
  CHECK(interval(row_of("p"), parameters, known, {.exchange = 0.5}).high > like.high);
  known.has_exchanged = true;
  known.is_of_kind = false;
  known.in = {"another system"};
  const auto other = interval(row_of("p"), parameters, known, {});
  CHECK(other.low.us() == test::approx(70));
  CHECK(other.high.us() == test::approx(105));
}
