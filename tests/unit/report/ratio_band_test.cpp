// SPDX-License-Identifier: Apache-2.0
// The band of a ratio: what two forecasts share is off alike, what differs is independent, nothing is wider than that.
#include "report/ratio_band.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/approx.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;

namespace {

Parameter ranged(const std::string& name, double low, double high, bool is_rate = false) {
  Parameter out{name, 1, Dimension::number, low, high, Confidence::fitted, "test", {}};
  out.is_rate = is_rate;
  return out;
}

/// p: half to twice; q: a fifth either way; r: a rate.
ParameterSet parameters() {
  ParameterSet out;
  for (const auto& one : {ranged("p", 0.5, 2), ranged("q", 0.8, 1.2), ranged("r", 0.7, 1.1, true)}) out.set(one);
  return out;
}

Row row_of(std::vector<Term> terms, double below, double above) {
  Row out;
  for (const auto& term : terms) out.time += term.time;
  out.terms = std::move(terms);
  out.low_time = from_seconds(out.time.seconds() * (1 - below));
  out.high_time = from_seconds(out.time.seconds() * (1 + above));
  return out;
}

Term term(const std::string& name, double us, const std::string& parameter = "") {
  return {name, from_seconds(us * 1e-6), parameter, ""};
}

Row random_row(test::Random& random) {
  std::vector<Term> terms;
  for (const auto* parameter : {"p", "q", "r", "", ""}) {
    const auto us = static_cast<double>(random.next(100));
    const auto* name = random.next(2) == 0 ? "transfer over packets sent by a.hca0" : "launch";
    terms.push_back(term(name, us, parameter));
  }
  terms.push_back(term("least", 1));
  return row_of(std::move(terms), 0.009 * static_cast<double>(random.next(100)),
                0.02 * static_cast<double>(random.next(100)));
}

}  // namespace

TEST_CASE("equal forecasts have the ratio 1 without width, twice as much of everything the ratio 2") {
  const auto set = parameters();
  test::Random random(1);
  for (int i = 0; i < 200; ++i) {
    const auto one = random_row(random);
    auto twice = one;
    for (auto* time : {&twice.time, &twice.low_time, &twice.high_time}) *time = *time * 2;
    for (auto& part : twice.terms) part.time = part.time * 2;
    const auto equal = report::ratio_band({one, set}, {one, set});
    CHECK(equal.low == test::approx(1));
    CHECK(equal.high == test::approx(1));
    const auto doubled = report::ratio_band({twice, set}, {one, set});
    CHECK(doubled.low == test::approx(2));
    CHECK(doubled.high == test::approx(2));
  }
}

TEST_CASE("no ratio's band is wider than that of independent times, and the inverse ratio has the inverse band") {
  const auto set = parameters();
  test::Random random(2);
  for (int i = 0; i < 500; ++i) {
    CAPTURE(i);
    const auto one = random_row(random);
    const auto other = random_row(random);
    const auto band = report::ratio_band({one, set}, {other, set});
    const auto inverse = report::ratio_band({other, set}, {one, set});
    CHECK(inverse.low == test::approx(1 / band.high));
    CHECK(inverse.high == test::approx(1 / band.low));
    const double ratio = one.time.seconds() / other.time.seconds();
    CHECK(band.low <= ratio * (1 + 1e-12));
    CHECK(band.high >= ratio * (1 - 1e-12));
    const auto width = [](Duration longer, Duration shorter) { return std::log(longer.seconds() / shorter.seconds()); };
    const double above = std::hypot(width(one.high_time, one.time), width(other.time, other.low_time));
    const double below = std::hypot(width(one.time, one.low_time), width(other.high_time, other.time));
    CHECK(std::log(band.high / ratio) <= above * (1 + 1e-6) + 1e-6);
    CHECK(std::log(ratio / band.low) <= below * (1 + 1e-6) + 1e-6);
  }
}

TEST_CASE("a parameter of both sides moves the ratio by what it moves them apart, one of each side by both") {
  const auto set = parameters();
  // All of p's band and nothing else: 100 us of p against 60 of p and 40 without an error.
  const auto all = row_of({term("a", 100, "p")}, 0.5, 1);
  const auto most = row_of({term("a", 60, "p"), term("b", 40)}, 0.3, 0.6);
  const auto band = report::ratio_band({all, set}, {most, set});
  CHECK(band.high == test::approx(2 / 1.6));   // p twice as much
  CHECK(band.low == test::approx(0.5 / 0.7));  // p half as much
  const auto of_q = row_of({term("c", 100, "q")}, 0.2, 0.2);
  const auto apart = report::ratio_band({all, set}, {of_q, set});
  CHECK(std::log(apart.high) == test::approx(std::hypot(std::log(2), std::log(1 / 0.8))));
  // The same name with another value is another error.
  auto calibrated = set;
  calibrated.set(ranged("p", 0.9, 1.1));
  CHECK(report::ratio_band({all, set}, {all, calibrated}).high > 1.5);
}

TEST_CASE("what bands have beside parameters cancels as far as both times are made of the same") {
  const ParameterSet none;
  const auto bare = row_of({term("launch", 10), term("transfer over packets sent by a.hca0", 90)}, 0.25, 0.35);
  const auto vm = row_of({term("launch", 10), term("transfer over virtual port out of a.hca0", 90)}, 0.25, 0.35);
  const auto relayed = row_of({term("launch", 10), term("transfer over DRAM of a.memory0", 90)}, 0.25, 0.35);
  const auto width = [&](const Row& one, const Row& other) {
    const auto band = report::ratio_band({one, none}, {other, none});
    return std::log(band.high / band.low);
  };
  const double independent = 2 * std::hypot(std::log(1.35), std::log(1 / 0.75));
  CHECK(width(bare, vm) == test::approx(0));  // one adapter holds both
  // A tenth is the same: 1 - 0.01 / (0.01 + 0.81) of the variance stays.
  CHECK(width(bare, relayed) == test::approx(independent * std::sqrt(0.81 / 0.82)));
  auto taxed = vm;
  taxed.terms.push_back(term("tax", 1));
  taxed.time += taxed.terms.back().time;
  CHECK(width(bare, taxed) < 0.1 * independent);
}
