// SPDX-License-Identifier: Apache-2.0
// Still pictures of points, lines and bands.
#include <doctest/doctest.h>

#include <regex>
#include <string>
#include <vector>

#include "report/chart.hpp"
#include "report/plot.hpp"

using namespace fabricast;

namespace {

/// Heights of a band's corners from the picture's top: its low ends forth, then its high ends back.
std::vector<double> band_corners(const std::string& picture) {
  std::smatch band;
  if (!std::regex_search(picture, band, std::regex("<polygon points=\"([^\"]*)\""))) return {};
  const auto points = band[1].str();
  const std::regex point("[0-9.]+,([0-9.]+)");
  std::vector<double> out;
  for (std::sregex_iterator it(points.begin(), points.end(), point), end; it != end; ++it)
    out.push_back(std::stod((*it)[1].str()));
  return out;
}

}  // namespace

TEST_CASE("a still picture holds its band inside the frame, and draws none where there is none") {
  report::Plot plot;
  auto& series = plot.series.emplace_back();
  series.x = {1, 2};
  series.y = {10, 20};
  CHECK(band_corners(report::picture_of(plot)).empty());
  series.low = {5, 9};
  series.high = {30, 60};
  const auto corners = band_corners(report::picture_of(plot));
  REQUIRE(corners.size() == 4);
  CHECK(corners[0] > corners[1]);
  CHECK(corners[1] > corners[3]);
  CHECK(corners[3] > corners[2]);
  for (const double corner : corners) {
    CHECK(corner >= report::k_chart_top);
    CHECK(corner <= report::k_chart_height - report::k_chart_bottom);
  }
}
