// SPDX-License-Identifier: Apache-2.0
// The solver against certified values of NIST's Statistical Reference Datasets whose data are too long for a source
// file (tests/unit/fit/nist): at least six digits from one of NIST's two starting points, several starts allowed.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <numbers>
#include <sstream>
#include <string>

#include "fit/least_squares.hpp"

using fabricast::fit::minimise;
using fabricast::fit::Problem;
using fabricast::fit::Values;

namespace {

using Model = std::function<double(const Values& b, double x)>;

struct Dataset {
  Values first_start, second_start, certified, y, x;
};

Values numbers_of(const std::string& text) {
  std::istringstream in(text);
  Values out;
  for (double value = 0; in >> value;) out.push_back(value);
  return out;
}

/// Four lines of heads, then y and x in turn, or y alone with x = from step to.
Dataset read_dataset(const std::string& name) {
  std::ifstream in(std::string(FABRICAST_SOURCE_DIR) + "/tests/unit/fit/nist/" + name + ".dat");
  REQUIRE(in.good());
  Dataset out;
  std::string line, rest;
  std::getline(in, line);
  out.first_start = numbers_of(line.substr(7));
  std::getline(in, line);
  out.second_start = numbers_of(line.substr(7));
  std::getline(in, line);
  out.certified = numbers_of(line.substr(10));
  std::getline(in, line);
  std::ostringstream data;
  data << in.rdbuf();
  const auto values = numbers_of(data.str());
  const auto range = line.find("x = ");
  const bool is_paired = line == "data y x";
  const std::size_t half = values.size() / 2;
  for (std::size_t i = 0; i < (is_paired || range == std::string::npos ? half : values.size()); ++i) {
    out.y.push_back(is_paired ? values[2 * i] : values[i]);
    if (range != std::string::npos) {
      const auto grid = numbers_of(line.substr(range + 4));
      out.x.push_back(grid[0] + static_cast<double>(i) * grid[1]);
    } else {
      out.x.push_back(is_paired ? values[2 * i + 1] : values[half + i]);
    }
  }
  return out;
}

/// Largest relative miss of the certified values; 1 when the solver ends elsewhere.
double miss(const Dataset& data, const Problem& problem, const Values& start) {
  const auto solution =
      minimise(problem, start, {.max_iterations = 5000, .tolerance = 1e-15, .with_covariance = true, .go_on = {}});
  double worst = 0;
  for (std::size_t i = 0; i < start.size(); ++i)
    worst = std::max(worst, std::abs(solution.x[i] / data.certified[i] - 1));
  return std::isfinite(worst) ? worst : 1;
}

Problem problem_of(const Dataset& data, const Model& model) {
  Problem problem;
  problem.residuals = [&data, model](const Values& b) {
    Values out;
    for (std::size_t i = 0; i < data.y.size(); ++i) out.push_back(model(b, data.x[i]) - data.y[i]);
    return out;
  };
  return problem;
}

void check_digits(const std::string& name, std::size_t num_points, const Model& model) {
  const auto data = read_dataset(name);
  CAPTURE(name);
  REQUIRE(data.y.size() == num_points);
  const auto problem = problem_of(data, model);
  const double far = miss(data, problem, data.first_start);
  const double near = miss(data, problem, data.second_start);
  CAPTURE(far);
  CAPTURE(near);
  CHECK(std::min(far, near) < 1e-6);
}

double gauss(const Values& b, double x) {
  return b[0] * std::exp(-b[1] * x) + b[2] * std::exp(-std::pow((x - b[3]) / b[4], 2)) +
         b[5] * std::exp(-std::pow((x - b[6]) / b[7], 2));
}

double three_exponentials(const Values& b, double x) {
  return b[0] * std::exp(-b[1] * x) + b[2] * std::exp(-b[3] * x) + b[4] * std::exp(-b[5] * x);
}

double chwirut(const Values& b, double x) { return std::exp(-b[0] * x) / (b[1] + b[2] * x); }

}  // namespace

TEST_CASE("Chwirut1 and Chwirut2, ultrasonic calibration, reach the certified values") {
  check_digits("Chwirut1", 214, chwirut);
  check_digits("Chwirut2", 54, chwirut);
}

TEST_CASE("Lanczos1 to Lanczos3, three exponentials hard to tell apart, reach the certified values") {
  check_digits("Lanczos1", 24, three_exponentials);
  check_digits("Lanczos2", 24, three_exponentials);
  check_digits("Lanczos3", 24, three_exponentials);
}

TEST_CASE("Gauss1 to Gauss3, two bells on a decay, reach the certified values") {
  check_digits("Gauss1", 250, gauss);
  check_digits("Gauss2", 250, gauss);
  check_digits("Gauss3", 250, gauss);
}

TEST_CASE("Kirby2 and Hahn1, rational functions, reach the certified values") {
  check_digits("Kirby2", 151, [](const Values& b, double x) {
    return (b[0] + b[1] * x + b[2] * x * x) / (1 + b[3] * x + b[4] * x * x);
  });
  check_digits("Hahn1", 236, [](const Values& b, double x) {
    return (b[0] + b[1] * x + b[2] * x * x + b[3] * x * x * x) / (1 + b[4] * x + b[5] * x * x + b[6] * x * x * x);
  });
}

TEST_CASE("MGH10, MGH17, Rat43 and Eckerle4 reach the certified values") {
  check_digits("MGH10", 16, [](const Values& b, double x) { return b[0] * std::exp(b[1] / (x + b[2])); });
  check_digits("MGH17", 33, [](const Values& b, double x) {
    return b[0] + b[1] * std::exp(-x * b[3]) + b[2] * std::exp(-x * b[4]);
  });
  check_digits("Rat43", 15,
               [](const Values& b, double x) { return b[0] / std::pow(1 + std::exp(b[1] - b[2] * x), 1 / b[3]); });
  check_digits("Eckerle4", 35,
               [](const Values& b, double x) { return b[0] / b[1] * std::exp(-0.5 * std::pow((x - b[2]) / b[1], 2)); });
}

TEST_CASE("ENSO, three oscillations of the air pressure, reaches the certified values") {
  check_digits("ENSO", 168, [](const Values& b, double x) {
    const auto wave = [x](double period, double even, double odd) {
      const double phase = 2 * std::numbers::pi * x / period;
      return even * std::cos(phase) + odd * std::sin(phase);
    };
    return b[0] + wave(12, b[1], b[2]) + wave(b[3], b[4], b[5]) + wave(b[6], b[7], b[8]);
  });
}

TEST_CASE("Bennett5, Roszman1 and Nelson reach the certified values") {
  check_digits("Bennett5", 154, [](const Values& b, double x) { return b[0] * std::pow(b[1] + x, -1 / b[2]); });
  check_digits("Roszman1", 25, [](const Values& b, double x) {
    return b[0] - b[1] * x - std::atan(b[2] / (x - b[3])) / std::numbers::pi;
  });
  // Two predictors: eight times of sixteen temperatures each.
  std::ifstream in(std::string(FABRICAST_SOURCE_DIR) + "/tests/unit/fit/nist/Nelson.dat");
  REQUIRE(in.good());
  std::string line;
  for (int head = 0; head < 4; ++head) std::getline(in, line);
  Values y;
  for (double value = 0; in >> value;) y.push_back(value);
  REQUIRE(y.size() == 128);
  Dataset data;
  data.first_start = {2, 0.0001, -0.01};
  data.second_start = {2.5, 5e-9, -0.05};
  data.certified = {2.5906836021E+00, 5.6177717026E-09, -5.7701013174E-02};
  Problem problem;
  problem.residuals = [&y](const Values& b) {
    const Values times{1, 2, 4, 8, 16, 32, 48, 64};
    const Values temperatures{180, 225, 250, 275};
    Values out;
    for (std::size_t i = 0; i < y.size(); ++i)
      out.push_back(b[0] - b[1] * times[i / 16] * std::exp(-b[2] * temperatures[i % 16 / 4]) - std::log(y[i]));
    return out;
  };
  CHECK(std::min(miss(data, problem, data.first_start), miss(data, problem, data.second_start)) < 1e-6);
}
