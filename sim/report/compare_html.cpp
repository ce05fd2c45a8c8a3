// SPDX-License-Identifier: Apache-2.0
// What-if as one self-contained page: curves of all scenarios, the ratio to the first, the table, and what changed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "report/chart.hpp"
#include "report/compare_tables.hpp"
#include "report/page.hpp"
#include "report/plot.hpp"
#include "report/tables.hpp"

namespace fabricast::report {

namespace {

/// Times that differ by less are one in the table's three decimals.
constexpr double k_same = 0.0005;

std::vector<Chart::Point> points_of(const ComparedTable& table, std::size_t k, bool is_ratio) {
  std::vector<Chart::Point> points;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const auto& line = table.rows[i];
    const double value = is_ratio ? time_ratio(*line[k], *line[0]) : line[k]->time.us();
    points.push_back({line[k]->size, value,
                      fmt::format("{} at {}: {}, {:.3f} of A", letter(k), row_name(table, i), to_string(line[k]->time),
                                  time_ratio(*line[k], *line[0]))});
  }
  return points;
}

std::string picture(const ComparedTable& table, std::size_t count, bool is_ratio) {
  Chart chart(
      is_ratio ? "ratio to A over message size" : "time over message size", is_ratio ? "time / A" : "time",
      is_ratio ? [](double value) { return fmt::format("{:.6g}", value); }
               : [](double us) { return to_string(from_seconds(us * 1e-6)); });
  if (is_ratio) {
    chart.start_at_zero();
    chart.mark(1);
  }
  for (std::size_t k = is_ratio ? 1 : 0; k < count; ++k) {
    const auto points = points_of(table, k, is_ratio);
    for (const auto& point : points) chart.include(point.size, is_ratio ? std::max(1.0, point.value) : point.value);
    chart.add_curve(points, colour(k), std::string(1, letter(k)));
  }
  return plotted(is_ratio ? "Time as a multiple of A's: below 1 is faster." : "Predicted time.", chart.svg(),
                 chart.plot(is_ratio ? "number" : "us"));
}

std::string ratio_table(const ComparedTable& table, std::size_t count) {
  const bool has_sizes = table.names.front().empty();
  const bool has_rates = has_throughput(table);
  std::string out = fmt::format("<table><thead><tr><th class=\"name\">{}</th>", has_sizes   ? "size"
                                                                                : has_rates ? "step"
                                                                                            : "client");
  for (std::size_t k = 0; k < count; ++k) out += fmt::format("<th>{} (us)</th>", letter(k));
  for (std::size_t k = 1; k < count; ++k) out += fmt::format("<th>{}/A</th><th>80 %</th>", letter(k));
  for (std::size_t k = 0; k < count && has_rates; ++k) out += fmt::format("<th>{} (/s)</th>", letter(k));
  out += "</tr></thead><tbody>\n";
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const auto& line = table.rows[i];
    out += fmt::format("<tr><td class=\"name\">{}</td>", escaped(row_name(table, i)));
    for (const auto* row : line)
      out += fmt::format("<td>{:.2f}{}</td>", row->time.us(), row->is_extrapolated ? "*" : "");
    for (std::size_t k = 1; k < count; ++k) {
      const double ratio = time_ratio(*line[k], *line[0]);
      const auto* css = std::abs(ratio - 1) < k_same ? "" : ratio > 1 ? " class=\"slower\"" : " class=\"faster\"";
      out += fmt::format("<td{}>{:.3f}</td><td>{}</td>", css, ratio, to_string(table.bands[i][k]));
    }
    for (std::size_t k = 0; k < count && has_rates; ++k) out += fmt::format("<td>{:.2f}</td>", throughput(*line[k]));
    out += "</tr>\n";
  }
  return boxed("", out + "</tbody></table>\n");
}

/// What a reader must know of the table above.
std::string notes(const ComparedTable& table) {
  std::string out;
  const auto note = [&](const std::string& text) { out += fmt::format("<p class=\"sub\">{}</p>\n", text); };
  const auto is_far = [](const auto& line) {
    return std::ranges::any_of(line, [](const Row* row) { return row->is_extrapolated; });
  };
  if (std::ranges::any_of(table.rows, is_far)) note("* extrapolated beyond what the parameters were fitted to.");
  if (table.num_left_out > 0) note(fmt::format("Rows that not all have, left out: {}.", table.num_left_out));
  for (std::size_t k = 1; k < table.predictions.size(); ++k)
    if (const auto sizes = undecided(table, k); !sizes.empty())
      note(fmt::format("Which of A and {} is faster stays open at {}: the 80 % band of their ratio holds 1.", letter(k),
                       escaped(sizes)));
  return out;
}

std::string term_table(const ComparedTable& table, std::size_t k) {
  const auto at = most_changed(table, k);
  const auto& line = table.rows[at];
  const auto& before = *line[0];
  const auto& after = *line[k];
  const auto changes = main_changes(before, after);
  if (changes.empty()) return fmt::format("<p>{} equals A in every term.</p>\n", letter(k));
  std::string out = fmt::format(
      "<table><thead><tr><th class=\"name\">term</th><th>A (us)</th><th>{} (us)</th></tr></thead>"
      "<tbody>\n",
      letter(k));
  for (const auto& change : changes)
    out += fmt::format("<tr><td class=\"name\">{}</td><td>{:.3f}</td><td>{:.3f}</td></tr>\n", escaped(change.term),
                       change.before.us(), change.after.us());
  const auto named = [](const Row& row) { return row.bottleneck.empty() ? std::string("nothing") : row.bottleneck; };
  const auto limits = before.bottleneck.empty() && after.bottleneck.empty()
                          ? std::string()
                          : fmt::format(", limited by {} and {}", named(before), named(after));
  const auto ways =
      way_of(before) == way_of(after) ? "" : fmt::format(", {} to {}", escaped(way_of(before)), escaped(way_of(after)));
  return boxed(fmt::format("What changed most from A to {} at {}: {} to {}{}{}.", letter(k),
                           escaped(row_name(table, at)), to_string(before.time), to_string(after.time), ways, limits),
               out + "</tbody></table>\n");
}

std::string setting_table(std::span<const Compared> all, const Comparison& compared) {
  const auto changes = changed_settings(all, compared);
  if (changes.empty()) return "";
  std::string out =
      "<table><thead><tr><th class=\"name\">scenario</th><th class=\"name\">setting</th><th class=\"name\">A</th>"
      "<th class=\"name\">there</th></tr></thead><tbody>\n";
  for (const auto& one : changes)
    out += fmt::format(
        "<tr><td class=\"name\">{}</td><td class=\"name\">{}</td><td class=\"name\">{}</td><td "
        "class=\"name\">{}</td></tr>\n",
        escaped(one.scenario), escaped(one.setting), escaped(one.before), escaped(one.after));
  return "<h2>Settings that differ</h2>\n" + boxed("", out + "</tbody></table>\n");
}

std::string assumption_list(std::span<const Compared> all, const Comparison& compared) {
  const auto changes = changed_assumptions(all, compared);
  if (changes.empty()) return "";
  std::string out = "<h2>Assumptions that differ</h2>\n<ul>\n";
  for (const auto& one : changes) out += fmt::format("<li>{}</li>\n", escaped(one.text()));
  return out + "</ul>\n";
}

/// The letters, their colours and what they stand for.
std::string legend(std::span<const Compared> all) {
  std::string out = "<ul>\n";
  for (std::size_t k = 0; k < all.size(); ++k) {
    const auto& prediction = *all[k].prediction;
    const auto& first = prediction.workloads.front();
    out += fmt::format("<li><b style=\"color:{}\">{}</b> {}: topology {}, {} ranks on {} host{}, {} engine</li>\n",
                       colour(k), letter(k), escaped(all[k].name), escaped(prediction.topology), first.num_ranks,
                       first.num_hosts, first.num_hosts == 1 ? "" : "s", escaped(all[k].provenance->fidelity));
  }
  return out + "</ul>\n";
}

}  // namespace

std::string compare_html(std::span<const Compared> all) {
  std::string out = "<h1>What if: scenarios side by side</h1>\n" + legend(all);
  const auto compared = comparison(all);
  for (const auto& table : compared.tables) {
    out += fmt::format("<h2>{}</h2>\n", escaped(table.workload));
    if (table.rows.empty()) {
      out += "<p>No size that all have.</p>\n";
      continue;
    }
    // Rows of clients have names, no sizes.
    if (table.names.front().empty()) out += picture(table, all.size(), false) + picture(table, all.size(), true);
    out += ratio_table(table, all.size()) + notes(table);
    for (std::size_t k = 1; k < all.size(); ++k) out += term_table(table, k);
  }
  if (!compared.left_out.empty())
    out += fmt::format("<p class=\"sub\">Workloads without a counterpart, left out: {}.</p>\n",
                       escaped(fmt::format("{}", fmt::join(compared.left_out, ", "))));
  out += setting_table(all, compared) + assumption_list(all, compared) + "<h2>Provenance</h2>\n";
  for (std::size_t k = 0; k < all.size(); ++k)
    out += fmt::format("<p>{}</p>\n", letter(k)) + provenance_html(*all[k].provenance);
  return page("what if", out + embedded_json(compare_json(all)));
}

}  // namespace fabricast::report
