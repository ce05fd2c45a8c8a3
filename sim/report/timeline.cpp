// SPDX-License-Identifier: Apache-2.0
// The step of a training program as a picture: time from left to right, one track per stream.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <vector>

#include "report/chart.hpp"
#include "report/page.hpp"
#include "report/tables.hpp"

namespace fabricast::report {

namespace {

constexpr double k_track = 26;
constexpr double k_tracks_left = 150;
constexpr double k_tracks_right = 30;
constexpr double k_tracks_top = 8;
constexpr double k_smallest = 0.4;  ///< of a rectangle, so that it shows
constexpr std::size_t k_most_spans = 5000;
constexpr std::size_t k_most_legend = 10;

/// One name for spans that differ by a number only: "forward of layer 3", "bucket 2 of 17".
std::string kind_of(const std::string& name) {
  std::string out;
  for (const char c : name) {
    if (c >= '0' && c <= '9') {
      if (out.empty() || out.back() != '#') out += '#';
    } else {
      out += c;
    }
  }
  return out.substr(0, out.find(" ("));
}

class Timeline {
 public:
  explicit Timeline(const Row& row) {
    for (const auto& span : row.timeline) {
      drawn_.push_back(&span);
      end_ = std::max(end_, (span.start + span.time).seconds());
      tracks_.try_emplace(span.stream, tracks_.size());
      colours_.try_emplace(kind_of(span.name), colours_.size());
    }
    if (drawn_.size() <= k_most_spans) return;
    std::ranges::stable_sort(drawn_, std::ranges::greater{}, &Span::time);
    drawn_.resize(k_most_spans);
  }

  [[nodiscard]] std::string svg() const {
    const double bottom = k_tracks_top + k_track * static_cast<double>(tracks_.size());
    const auto rows = std::min(k_most_legend, colours_.size());
    std::string out = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"timeline of a step\">\n",
                                  k_chart_width, bottom + 34 + 20 * static_cast<double>(rows));
    for (const auto& track : tracks_)
      out += fmt::format("<text x=\"{}\" y=\"{}\" class=\"tick\" text-anchor=\"end\">{}</text>\n", k_tracks_left - 8,
                         k_tracks_top + k_track * (static_cast<double>(track.second) + 0.65),
                         escaped(shortened(track.first)));
    for (const auto* span : drawn_) out += box(*span);
    return out + axis(bottom) + legend(bottom + 44) + "</svg>\n";
  }

 private:
  static std::string shortened(const std::string& text) { return text.size() <= 22 ? text : text.substr(0, 21) + "."; }
  [[nodiscard]] double x(double seconds) const {
    return k_tracks_left + seconds / end_ * (k_chart_width - k_tracks_left - k_tracks_right);
  }

  [[nodiscard]] std::string box(const Span& span) const {
    const double from = x(span.start.seconds());
    const double width = std::max(k_smallest, x((span.start + span.time).seconds()) - from);
    return fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.1f}\" width=\"{:.2f}\" height=\"{:.1f}\" style=\"fill:{}\"><title>{}: {} from {}"
        "</title></rect>\n",
        from, k_tracks_top + k_track * static_cast<double>(tracks_.at(span.stream)) + 2, width, k_track - 6,
        colour(colours_.at(kind_of(span.name))), escaped(span.name), to_string(span.time), to_string(span.start));
  }

  [[nodiscard]] std::string axis(double bottom) const {
    std::vector<Tick> ticks;
    const double step = round_step(end_ * 1e3, 8) * 1e-3;
    for (int i = 0; i * step <= end_ * (1 + 1e-9); ++i)
      ticks.push_back({x(i * step), i == 0 ? "0 s" : to_string(from_seconds(i * step))});
    std::string out;
    for (const auto& tick : without_collisions(
             ticks, [](const Tick& t) { return label_width(t.label); }, 8))
      out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" class=\"tick\" text-anchor=\"middle\">{}</text>\n", tick.at,
                         bottom + 18, escaped(tick.label));
    return out;
  }

  [[nodiscard]] std::string legend(double top) const {
    std::string out;
    for (const auto& entry : colours_) {
      if (entry.second >= k_most_legend) continue;
      const double y = top + 20 * static_cast<double>(entry.second);
      out += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"12\" height=\"12\" style=\"fill:{}\"/><text x=\"{}\" y=\"{}\" "
          "class=\"legend\">{}</text>\n",
          k_tracks_left, y - 11, colour(entry.second), k_tracks_left + 18, y, escaped(entry.first));
    }
    return out;
  }

  std::vector<const Span*> drawn_;  ///< the longest, where there are too many
  double end_ = 0;
  std::map<std::string, std::size_t> tracks_;
  std::map<std::string, std::size_t> colours_;
};

}  // namespace

std::string timeline_picture(const WorkloadPrediction& workload) {
  const auto it = std::find_if(workload.rows.rbegin(), workload.rows.rend(),
                               [](const Row& row) { return !row.timeline.empty() && row.time.ps > 0; });
  if (it == workload.rows.rend()) return "";
  const auto longest = it->timeline.size() <= k_most_spans
                           ? std::string()
                           : fmt::format(", its {} longest pieces of work", k_most_spans);
  return boxed(fmt::format("One step on {}: what every stream does{}.", row_name(*it), longest), Timeline(*it).svg());
}

}  // namespace fabricast::report
