// SPDX-License-Identifier: Apache-2.0
// Pages and pictures: labels that do not touch, round axes, every form of one comparison.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <regex>

#include "report/chart.hpp"
#include "report/compare_tables.hpp"
#include "report/page.hpp"
#include "report/report.hpp"
#include "report/tables.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;

namespace {

struct Label {
  double x = 0, y = 0, width = 0;
  std::string text;
};

double number(const std::ssub_match& text) { return std::stod(text.str()); }

/// Tick labels of each picture of a page, by what their anchor says of the left edge.
std::vector<std::vector<Label>> labels_of(const std::string& page) {
  std::vector<std::vector<Label>> pictures;
  static const std::regex tick(
      R"x(<text x="([-\d.]+)" y="([-\d.]+)" class="(tick|legend)" (font-weight="bold" )?text-anchor="(\w+)">([^<]*)<)x");
  for (std::size_t at = page.find("<svg"); at != std::string::npos; at = page.find("<svg", at + 1)) {
    const auto svg = page.substr(at, page.find("</svg>", at) - at);
    pictures.emplace_back();
    for (std::sregex_iterator it(svg.begin(), svg.end(), tick), end; it != end; ++it) {
      const auto text = std::regex_replace((*it)[6].str(), std::regex("&gt;"), ">");
      const double width = report::label_width(text);
      const auto anchor = (*it)[5].str();
      const double left = number((*it)[1]) - (anchor == "end" ? width : anchor == "middle" ? width / 2 : 0);
      pictures.back().push_back({left, number((*it)[2]), width, text});
    }
  }
  return pictures;
}

/// No two labels of a picture share a point, and none leaves it on the left or right.
void check_labels(const std::string& page) {
  constexpr double k_height = 11;  // of the digits and capitals of a 12 px font, with a little air
  for (const auto* number : {"\"nan", "nan,", ",nan", "\"inf", "inf,"}) CHECK(page.find(number) == std::string::npos);
  for (const auto& labels : labels_of(page)) {
    for (std::size_t a = 0; a < labels.size(); ++a) {
      CAPTURE(labels[a].text);
      CHECK(labels[a].x >= 0);
      for (std::size_t b = a + 1; b < labels.size(); ++b) {
        const bool apart = labels[a].x + labels[a].width <= labels[b].x ||
                           labels[b].x + labels[b].width <= labels[a].x ||
                           std::abs(labels[a].y - labels[b].y) >= k_height;
        CHECK_MESSAGE(apart, labels[b].text);
      }
    }
  }
}

Row row(std::int64_t size, double us) {
  Row out;
  out.size = Bytes{size};
  out.time = from_seconds(us * 1e-6);
  out.low_time = from_seconds(us * 0.8e-6);
  out.high_time = from_seconds(us * 1.3e-6);
  out.algbw = out.busbw = Bandwidth{static_cast<double>(size) / (us * 1e-6)};
  out.algorithm = "ring";
  out.protocol = "simple";
  out.bottleneck = "a <link>";
  out.terms = {{"launch", from_seconds(us * 0.25e-6), "p", "s"},
               {"transfer over x", from_seconds(us * 0.75e-6), "x", ""}};
  return out;
}

Prediction prediction(std::vector<Row> rows, Benchmark benchmark = Benchmark::all_reduce_perf) {
  Prediction out;
  out.scenario = "s";
  out.topology = "t";
  WorkloadPrediction workload;
  workload.name = "w";
  workload.benchmark = benchmark;
  workload.num_ranks = 16;
  workload.num_hosts = 2;
  workload.rows = std::move(rows);
  out.workloads.push_back(std::move(workload));
  return out;
}

Scenario asked() {
  Scenario scenario;
  scenario.workloads.resize(1);
  return scenario;
}

/// Sizes of a random sweep: powers, multiples, neighbours, one.
std::vector<Row> random_rows(test::Random& random) {
  std::vector<Row> rows;
  const auto first = std::int64_t{1} << random.next(30);
  const auto count = 1 + random.next(40);
  const auto kind = random.next(3);
  std::int64_t size = first;
  double us = 0.001 * std::pow(10, static_cast<double>(random.next(9)));
  for (std::uint64_t i = 0; i < count && size < (std::int64_t{1} << 40); ++i) {
    rows.push_back(row(size, us));
    size = kind == 0 ? size * 2 : kind == 1 ? size + first : size + 1;
    us *= 1 + 0.01 * static_cast<double>(random.next(150));
  }
  return rows;
}

std::shared_ptr<const FabricReport> stopped(const std::string& why) {
  auto report = std::make_shared<FabricReport>();
  report->stop = why;
  return report;
}

std::string count_of(const std::string& text, const std::string& what) {
  int count = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return std::to_string(count);
}

}  // namespace

TEST_CASE("labels of no picture touch, whatever the sizes and times") {
  test::Random random(3);
  const report::Provenance provenance;
  for (int i = 0; i < 60; ++i) {
    CAPTURE(i);
    const auto one = prediction(random_rows(random));
    auto other = one;
    for (auto& changed : other.workloads[0].rows)
      changed.time = from_seconds(changed.time.seconds() * (0.1 + 0.05 * static_cast<double>(random.next(100))));
    const auto scenario = asked();
    check_labels(report::html({one, scenario, provenance}));
    const ParameterSet parameters;
    const std::vector<report::Compared> all{{"a", &one, &scenario, &provenance, &parameters},
                                            {"b", &other, &scenario, &provenance, &parameters}};
    check_labels(report::compare_html(all));
    Validation log;
    log.file = "f.log";
    for (const auto& from : one.workloads[0].rows) {
      ValidationPoint point{from.size, from.time, from.low_time, from.high_time, from.low_time};
      log.points.push_back(point);
    }
    const std::vector<Validation> logs{log, log};
    check_labels(report::validation_html({logs, {}, "s", one.workloads.data(), &provenance}));
    check_labels(report::validation_svg({logs, {}, "s", one.workloads.data(), &provenance}));
  }
}

TEST_CASE("a picture of times that fit no duration, of the slowest and of the fastest rates has labels inside it") {
  const auto scenario = asked();
  const report::Provenance provenance;
  for (const double us : {1e-6, 1.0, 1e12, 8e12, 1e15}) {
    CAPTURE(us);
    const auto one = prediction({row(8, us), row(1024, us * 1.3)});
    check_labels(report::html({one, scenario, provenance}));
    Validation log;
    log.file = "f.log";
    for (const auto& from : one.workloads[0].rows)
      log.points.push_back({from.size, from.time, from.low_time, from.high_time, from.low_time});
    const std::vector<Validation> logs{log};
    check_labels(report::validation_svg({logs, {}, "s", one.workloads.data(), &provenance}));
  }
}

TEST_CASE("times and errors of a validation are labelled left of their frames") {
  Validation log;
  log.file = "f.log";
  for (const auto& from : {row(8, 10), row(1024, 1000)})
    log.points.push_back({from.size, from.time, from.low_time, from.high_time, from.time});
  const auto one = prediction({});
  const report::Provenance provenance;
  const std::vector<Validation> logs{log};
  const auto pictures = labels_of(report::validation_svg({logs, {}, "s", one.workloads.data(), &provenance}));
  REQUIRE(pictures.size() == 1);
  const auto is_left = [](const Label& label) { return std::abs(label.x + label.width - 90) < 0.2; };
  CHECK(std::count_if(pictures[0].begin(), pictures[0].end(), is_left) == 6);  // 10 us, 100 us, 1 ms; 3 errors
}

TEST_CASE("a chart of one value that is a power of ten has a decade of room, colours begin again after the last") {
  report::Chart chart("t", "n", [](double value) { return fmt::format("{:g}", value); });
  chart.include(Bytes{8}, 10);
  chart.add_curve({{Bytes{8}, 10, ""}}, report::colour(0));
  CHECK(chart.y(10) == test::approx(report::k_chart_height - report::k_chart_bottom));
  CHECK(chart.y(100) == test::approx(report::k_chart_top));
  CHECK(chart.svg().find("nan") == std::string::npos);
  CHECK(report::colour(report::k_num_colours + 1) == report::colour(1));
  CHECK(report::colour(0) != report::colour(1));
}

TEST_CASE("labels of a packet run do not touch") {
  test::Random random(4);
  for (int i = 0; i < 20; ++i) {
    auto rows = std::vector<Row>{row(4096, 10 + static_cast<double>(random.next(100'000)) / 7)};
    auto fabric = std::make_shared<FabricReport>();
    fabric->stop = "finished";
    for (std::uint64_t f = 0; f < 1 + random.next(50); ++f) {
      FlowTime flow;
      flow.name = fmt::format("node{} -> node{} (a long name of a flow {})", f, f + 1, f);
      flow.bytes = Bytes{4096};
      flow.end = from_seconds(1e-6 * static_cast<double>(1 + random.next(20'000)));
      rows[0].flows.push_back(flow);
    }
    for (std::uint64_t p = 0; p < random.next(200); ++p) {
      const auto time = from_seconds(1e-6 * static_cast<double>(p + 1));
      fabric->queues.push_back(
          {time, "leaf0 -> spine0", 3, Bytes{static_cast<std::int64_t>(random.next(1'000'000))}, {}});
    }
    rows[0].fabric = fabric;
    const auto one = prediction(rows, Benchmark::traffic);
    const report::Provenance provenance;
    check_labels(report::html({one, asked(), provenance}));
  }
}

TEST_CASE("labels are left out evenly, and as few as possible") {
  std::vector<report::Tick> ticks;
  for (int i = 0; i < 10; ++i) ticks.push_back({10.0 * i, "x"});
  const auto wide = [](double width) { return [width](const report::Tick&) { return width; }; };
  CHECK(report::without_collisions(ticks, wide(8), 2).size() == 10);  // 8 + 2 fits exactly
  CHECK(report::without_collisions(ticks, wide(8.1), 2).size() == 5);
  CHECK(report::without_collisions(ticks, wide(18.1), 2).size() == 4);  // 0 30 60 90
  CHECK(report::without_collisions(ticks, wide(500), 2).size() == 1);
  CHECK(report::without_collisions({}, wide(1), 0).empty());
}

TEST_CASE("size labels are powers of two, or the sizes themselves where a sweep has no two of them") {
  const auto values = [](const std::vector<Bytes>& sizes, int most) {
    std::vector<std::int64_t> out;
    for (const auto size : report::size_ticks(sizes, most)) out.push_back(size.value);
    return out;
  };
  CHECK(values({Bytes{8}, Bytes{64}}, 9) == std::vector<std::int64_t>{8, 16, 32, 64});
  CHECK(values({Bytes{8}, Bytes{64}}, 2) == std::vector<std::int64_t>{8, 32});
  CHECK(values({Bytes{1200}, Bytes{1100}, Bytes{1200}}, 9) == std::vector<std::int64_t>{1100, 1200});
  CHECK(values({Bytes{0}}, 9) == std::vector<std::int64_t>{0});
  CHECK(values({}, 9).empty());
}

TEST_CASE("linear axes end at 1, 2, 2.5 or 5 times a power of ten per step") {
  CHECK(report::round_step(10, 5) == test::approx(2));
  CHECK(report::round_step(10.1, 5) == test::approx(2.5));
  CHECK(report::round_step(12.6, 5) == test::approx(5));
  CHECK(report::round_step(26, 5) == test::approx(10));
  CHECK(report::round_step(0.05, 5) == test::approx(0.01));
  CHECK(report::round_step(0, 5) == test::approx(1));
}

TEST_CASE("points of a chart lie where the axes say") {
  report::Chart chart("t", "n", [](double value) { return fmt::format("{:g}", value); });
  chart.include(Bytes{1}, 1);
  chart.include(Bytes{16}, 100);
  const double width = report::k_chart_width - report::k_chart_left - report::k_chart_right;
  const double height = report::k_chart_height - report::k_chart_top - report::k_chart_bottom;
  CHECK(chart.x(Bytes{1}) == test::approx(report::k_chart_left));
  CHECK(chart.x(Bytes{4}) == test::approx(report::k_chart_left + width / 2));
  CHECK(chart.x(Bytes{16}) == test::approx(report::k_chart_left + width));
  CHECK(chart.y(100) == test::approx(report::k_chart_top));
  CHECK(chart.y(10) == test::approx(report::k_chart_top + height / 2));
  CHECK(chart.y(1) == test::approx(report::k_chart_top + height));
  CHECK(chart.y(1e9) == test::approx(report::k_chart_top));  // cut off, not outside
  chart.start_at_zero();
  CHECK(chart.y(50) == test::approx(report::k_chart_top + height / 2));
  CHECK(chart.y(0) == test::approx(report::k_chart_top + height));
}

TEST_CASE("every page is one file for light and dark, phone and paper, with its text escaped") {
  const auto one = prediction({row(8, 1), row(16, 2)});
  const report::Provenance provenance;
  auto scenario = asked();
  scenario.description = "a <b> & \"c\"";
  const ParameterSet parameters;
  const std::vector<report::Compared> all{{"<a>", &one, &scenario, &provenance, &parameters},
                                          {"b", &one, &scenario, &provenance, &parameters}};
  for (const auto& page : {report::html({one, scenario, provenance}), report::compare_html(all)}) {
    for (const auto* part :
         {"<!doctype html>", "prefers-color-scheme:dark", "name=\"viewport\"", "@media print", "overflow-x:auto"})
      CHECK_MESSAGE(page.find(part) != std::string::npos, part);
    for (const auto* part : {"src=\"http", "url(", "@import", "<link", "<b> &", "<a>", "<link>"})
      CHECK_MESSAGE(page.find(part) == std::string::npos, part);
  }
  CHECK(report::escaped("<a & \"b\">") == "&lt;a &amp; &quot;b&quot;&gt;");
}

TEST_CASE("a comparison shows ratio, direction, changed terms and settings") {
  auto one = prediction({row(8, 100), row(16, 100), row(32, 100)});
  auto two = prediction({row(8, 50), row(16, 400), row(64, 1)});
  one.workloads[0].settings = {{"algorithm", "auto", "ring", ""}, {"channels", "auto", "8", ""}};
  two.workloads[0].settings = {{"algorithm", "auto", "tree", "why"}, {"channels", "auto", "8", ""}};
  two.workloads[0].rows[1].terms.push_back({"new", from_seconds(3e-6), "", ""});
  two.workloads[0].rows[0].is_extrapolated = true;
  const report::Provenance provenance;
  const auto scenario = asked();
  const ParameterSet parameters;
  const std::vector<report::Compared> all{{"a.yaml", &one, &scenario, &provenance, &parameters},
                                          {"b.yaml", &two, &scenario, &provenance, &parameters}};
  const auto compared = report::comparison(all);
  const auto& tables = compared.tables;
  REQUIRE(tables.size() == 1);
  CHECK(tables[0].sizes == std::vector<Bytes>{Bytes{8}, Bytes{16}});  // what both have
  CHECK(report::most_changed(tables[0], 1) == 1);                     // a factor of 4 is more than one of 1/2
  const auto changes = report::changed_terms(*tables[0].rows[1][0], *tables[0].rows[1][1]);
  REQUIRE(changes.size() == 3);
  CHECK(changes[0].term == "transfer over x");
  CHECK(changes[0].before.us() == test::approx(75));
  CHECK(changes[0].after.us() == test::approx(300));
  CHECK(changes[2].term == "new");
  const auto settings = report::changed_settings(all, compared);
  REQUIRE(settings.size() == 1);
  CHECK(settings[0].after == "tree (why)");
  const auto page = report::compare_html(all);
  CHECK(page.find("<td class=\"faster\">0.500</td>") != std::string::npos);
  CHECK(page.find("<td class=\"slower\">4.000</td>") != std::string::npos);
  CHECK(page.find("50.00*") != std::string::npos);
  CHECK(page.find("extrapolated beyond") != std::string::npos);
  CHECK(page.find("What changed most from A to B at 16 B: 100 us to 400 us") != std::string::npos);
  CHECK(count_of(page, "<polyline") == "3");  // two of time, one of the ratio
}

TEST_CASE("terms below a thousandth of the time are not worth a line, but the largest change is") {
  auto before = row(8, 1000);
  auto after = row(8, 1000);
  before.terms = {{"small", from_seconds(1e-9), "", ""}, {"smaller", from_seconds(2e-9), "", ""}};
  after.terms = {{"small", from_seconds(5e-9), "", ""}, {"smaller", from_seconds(3e-9), "", ""}};
  REQUIRE(report::main_changes(before, after).size() == 1);
  CHECK(report::main_changes(before, after)[0].term == "small");
  for (int i = 0; i < 20; ++i) after.terms.push_back({fmt::format("t{}", i), from_seconds(2e-6 + 1e-8 * i), "", ""});
  CHECK(report::main_changes(before, after).size() == 8);
  CHECK(report::main_changes(before, before).empty());
}

TEST_CASE("a row that did not finish has no time in any form") {
  auto one = prediction({row(8, 1), row(16, 777)});
  one.workloads[0].rows[1].fabric = stopped("deadlock");
  const report::Provenance provenance;
  const auto scenario = asked();
  const report::Document document{one, scenario, provenance};
  for (const auto benchmark : {Benchmark::all_reduce_perf, Benchmark::osu_bw, Benchmark::osu_latency,
                               Benchmark::ib_write_bw, Benchmark::ib_write_lat, Benchmark::host_copies}) {
    one.workloads[0].benchmark = benchmark;
    const auto table = report::workload_table(one.workloads[0], scenario.workloads[0]);
    CHECK(count_of(table, "# 16 B: not finished, deadlock after 777.000 us\n") == "1");
    CHECK(count_of(table, "777") == "1");
    CHECK(table.find("Avg bus bandwidth") == std::string::npos);
  }
  const auto csv = report::csv(document);
  CHECK(csv.find("w,16,,,,,,,ring,simple") != std::string::npos);
  CHECK(csv.find(",0,0\r\n") != std::string::npos);
  const auto json = report::json(document);
  CHECK(count_of(json, "\"time_ps\": null") == "2");  // at the top and in its workload
  CHECK(json.find("\"stopped_at_ps\": 777000000") != std::string::npos);
  CHECK(report::html(document).find("16 B: 777") == std::string::npos);
  const ParameterSet parameters;
  const std::vector<report::Compared> all{{"a", &one, &scenario, &provenance, &parameters},
                                          {"b", &one, &scenario, &provenance, &parameters}};
  CHECK(report::comparison(all).tables[0].sizes == std::vector<Bytes>{Bytes{8}});
}

TEST_CASE("nccl-tests' closing lines hold the mean over all rows, an interrupted table has none") {
  auto one = prediction({row(1000, 1), row(3000, 1)});  // 1 and 3 GB/s
  const auto scenario = asked();
  const auto table = report::workload_table(one.workloads[0], scenario.workloads[0]);
  CHECK(table.find("# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 2 \n#\n") != std::string::npos);
  CHECK(count_of(table, "N/A") == "4");
  CHECK(report::workload_table(one.workloads[0], scenario.workloads[0], false).find("Avg") == std::string::npos);
  one.is_interrupted = true;
  const auto text = report::text({one, scenario, {}});
  CHECK(text.find("Avg") == std::string::npos);
  CHECK(text.find("# interrupted") != std::string::npos);
}

TEST_CASE("the fabric's tables are those that the command line guards") {
  const auto one = prediction({row(8, 1)});
  const auto scenario = asked();
  const auto tables = report::fabric_csv({one, scenario, {}});
  REQUIRE(tables.size() == report::k_fabric_tables.size());
  for (std::size_t i = 0; i < tables.size(); ++i) CHECK(tables[i].name == report::k_fabric_tables[i]);
}

TEST_CASE("CSV lines end with what they rest on") {
  auto one = prediction({row(8, 1)});
  one.workloads[0].rows[0].is_extrapolated = true;
  one.scenario = "a, b";
  report::Provenance provenance;
  provenance.fidelity = "packet";
  CHECK(report::csv({one, asked(), provenance}).find(",\"a, b\",t,16,2,packet,1,1\r\n") != std::string::npos);
}
