// SPDX-License-Identifier: Apache-2.0
// NCCL's own account of its choices (NCCL_DEBUG=INFO, NCCL_DEBUG_SUBSYS=TUNING or ALL), wherever it stands in a log:
// the latency / bandwidth table by algorithm and protocol, and the choice for each size. Every rank prints; what
// repeats is kept once. Entries with bandwidth 0 are what NCCL ruled out.
#include <algorithm>
#include <array>
#include <set>
#include <tuple>

#include "readers/readers.hpp"

namespace fabricast::readers {
namespace {

constexpr std::array<std::string_view, 3> k_protocols{"ll", "ll128", "simple"};
constexpr std::array<std::string_view, 7> k_algorithms{"tree",      "ring", "collnet_direct", "collnet_chain", "nvls",
                                                       "nvls_tree", "pat"};

/// The name of `word` in `known`, blanks, case and underscores ignored, or by number; empty when unknown.
template <std::size_t N>
std::string known_name(std::string_view word, const std::array<std::string_view, N>& known) {
  const auto number = parse_count(word);
  if (number)
    return *number < static_cast<std::int64_t>(N) ? std::string(known[static_cast<std::size_t>(*number)])
                                                  : std::string{};
  const auto folded = [](std::string_view name) {
    auto text = lower(name);
    std::erase_if(text, [](char c) { return c == '_' || c == ' '; });
    return text;
  };
  const auto it = std::find_if(known.begin(), known.end(), [&](auto name) { return folded(name) == folded(word); });
  return it == known.end() ? std::string{} : std::string(*it);
}

/// The cells of a line `name | a | b |`, trimmed; empty when there are not at least two bars.
std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (auto bar = line.find('|'); bar != std::string_view::npos; bar = line.find('|')) {
    cells.push_back(trim(line.substr(0, bar)));
    line.remove_prefix(bar + 1);
  }
  return cells.size() > 1 ? cells : std::vector<std::string_view>{};
}

using TuningColumn = std::pair<std::string, std::string>;  ///< algorithm, protocol

/// Columns of a header: `Algorithm | Tree | Ring |` (three protocols each) or `... | Tree/ LL | Tree/ LL128 |`.
std::vector<TuningColumn> header_columns(const std::vector<std::string_view>& cells) {
  std::vector<TuningColumn> columns;
  for (std::size_t i = 1; i < cells.size(); ++i) {
    const auto slash = cells[i].find('/');
    const auto algorithm = known_name(trim(cells[i].substr(0, slash)), k_algorithms);
    if (algorithm.empty() || parse_printed(trim(cells[i].substr(0, slash)))) return {};
    if (slash == std::string_view::npos) {
      for (const auto protocol : k_protocols) columns.emplace_back(algorithm, protocol);
    } else {
      columns.emplace_back(algorithm, known_name(trim(cells[i].substr(slash + 1)), k_protocols));
    }
  }
  return columns;
}

std::string last_word(std::string_view cell) {
  const auto words = split_words(cell);
  return words.empty() ? std::string{} : std::string(words.back().text);
}

/// A row `AllReduce | 15.2/ 43.6 | ...`: latency in us, bandwidth in GB/s.
void read_table_row(const Line& line, const std::vector<std::string_view>& cells,
                    const std::vector<TuningColumn>& columns, NcclTuning& tuning) {
  if (cells.size() != columns.size() + 1) return;
  for (std::size_t i = 1; i < cells.size(); ++i) {
    const auto slash = cells[i].find('/');
    if (slash == std::string_view::npos) return;
    const auto latency = parse_printed(trim(cells[i].substr(0, slash)));
    const auto bandwidth = parse_printed(trim(cells[i].substr(slash + 1)));
    if (!latency || !bandwidth || latency->value < 0 || bandwidth->value <= 0) continue;
    tuning.table.push_back({last_word(cells[0]), columns[i - 1].first, columns[i - 1].second, from_us(latency->value),
                            Bandwidth{bandwidth->value * 1e9}, line.number});
  }
}

/// The word after `key` among `words`.
std::string_view word_after(const std::vector<Word>& words, std::string_view key) {
  const auto it = std::find_if(words.begin(), words.end(), [&](const Word& w) { return w.text == key; });
  return it == words.end() || it + 1 == words.end() ? std::string_view{} : (it + 1)->text;
}

/// `AllReduce: 1024 Bytes -> Algo RING proto LL channel{Lo..Hi}={0..3}`, or with numbers and `time 12.3`.
std::optional<NcclChoice> parse_choice(const Line& line) {
  const auto arrow = line.text.find(" Bytes -> Algo ");
  if (arrow == std::string::npos) return std::nullopt;
  const auto before = split_words(std::string_view(line.text).substr(0, arrow));
  const auto after = split_words(std::string_view(line.text).substr(arrow));
  if (before.size() < 2) return std::nullopt;
  const auto size = parse_count(before.back().text);
  NcclChoice choice;
  choice.operation = std::string(before[before.size() - 2].text);
  if (choice.operation.ends_with(':')) choice.operation.pop_back();
  choice.algorithm = known_name(word_after(after, "Algo"), k_algorithms);
  choice.protocol = known_name(word_after(after, "proto"), k_protocols);
  if (!size || choice.algorithm.empty() || choice.protocol.empty()) return std::nullopt;
  choice.size = {*size};
  choice.line = line.number;
  if (const auto time = parse_printed(word_after(after, "time")); time && time->value > 0)
    choice.predicted_time = from_us(time->value);
  const auto range = line.text.find("={");
  const auto dots = range == std::string::npos ? range : line.text.find("..", range);
  if (dots != std::string::npos) {
    choice.channels_from = leading_count(std::string_view(line.text).substr(range + 2, dots - range - 2));
    choice.channels_to = leading_count(std::string_view(line.text).substr(dots + 2));
  }
  return choice;
}

bool is_same(const NcclChoice& a, const NcclChoice& b) {
  return std::tie(a.size, a.operation, a.algorithm, a.protocol, a.channels_to) ==
         std::tie(b.size, b.operation, b.algorithm, b.protocol, b.channels_to);
}

using TableKey = std::tuple<std::string, std::string, std::string>;

}  // namespace

std::optional<MeasuredLog> read_nccl_tuning(const LogText& log) {
  auto table = begin_table(log, LogFormat::nccl_tuning, 0);
  auto& tuning = table.tuning;
  std::vector<TuningColumn> columns;
  for (const auto& line : log.lines) {
    if (const auto choice = parse_choice(line)) {
      const bool is_known = !tuning.choices.empty() && is_same(tuning.choices.back(), *choice);
      if (!is_known) tuning.choices.push_back(*choice);
    } else if (const auto cells = cells_of(line.text); !cells.empty()) {
      if (auto header = header_columns(cells); !header.empty())
        columns = std::move(header);
      else
        read_table_row(line, cells, columns, tuning);
    }
  }
  std::set<TableKey> seen;
  std::erase_if(tuning.table,
                [&](const NcclModelEntry& e) { return !seen.emplace(e.operation, e.algorithm, e.protocol).second; });
  if (tuning.table.empty() && tuning.choices.empty()) return std::nullopt;
  table.line = tuning.table.empty() ? tuning.choices.front().line : tuning.table.front().line;
  return table;
}

}  // namespace fabricast::readers
