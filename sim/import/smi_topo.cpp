// SPDX-License-Identifier: Apache-2.0
// `nvidia-smi topo -m`: a matrix of distance classes. Columns are separated by tabs or, pasted, by blanks; newer
// drivers underline the header and name adapters NIC0 with a legend, older ones by their device (mlx5_0).
#include <fmt/format.h>

#include <algorithm>

#include "import/source.hpp"

namespace fabricast::import {

namespace {

bool is_device(std::string_view word) {
  return (word.starts_with("GPU") && word.size() > 3 && word[3] >= '0' && word[3] <= '9') ||
         (word.starts_with("NIC") && word.size() > 3) || word.starts_with("mlx") || word.starts_with("hfi") ||
         word.starts_with("bnxt") || word.starts_with("irdma") || word.starts_with("roce") || word.starts_with("rdma");
}

bool is_distance(std::string_view word) {
  return word == "X" || word == "PIX" || word == "PXB" || word == "PHB" || word == "NODE" || word == "SYS" ||
         word == "SOC" || word == "PSB" || (word.starts_with("NV") && word.size() > 2 && number_of(word.substr(2), 10));
}

/// First number of "0-23,48-71" in the affinity columns behind the matrix is no NUMA node; the node stands alone.
int numa_of(const std::vector<std::string_view>& words, std::size_t first) {
  for (std::size_t i = first; i < words.size(); ++i) {
    const bool is_list = has(words[i], "-") || has(words[i], ",");
    if (is_list) continue;
    if (i == first && i + 1 < words.size()) continue;  // one core of affinity
    const auto number = number_of(words[i], 10);
    if (number && *number >= 0 && *number < 64) return static_cast<int>(*number);
  }
  return -1;
}

}  // namespace

Result<void> read_smi_topo(const Source& source, Inventory& out) {
  const Lines lines(source.text());
  DistanceMatrix matrix;
  std::vector<std::string> columns;
  for (const auto& line : lines.all()) {
    const auto words = words_of(line.text);
    if (words.empty()) continue;
    if (columns.empty()) {
      if (!is_device(words[0]) || words.size() < 2 || is_distance(words[1])) continue;
      for (const auto word : words) {
        if (is_device(word)) columns.emplace_back(word);
        if (!is_device(word)) break;
      }
      continue;
    }
    if (words.size() >= 2 && words[0].ends_with(':') && is_device(words[0])) {
      matrix.nic_names[std::string(words[0].substr(0, words[0].size() - 1))] = words[1];
      continue;
    }
    if (!is_device(words[0])) continue;
    std::vector<std::string> cells;
    for (std::size_t i = 1; i < words.size() && is_distance(words[i]) && cells.size() < columns.size(); ++i)
      cells.emplace_back(words[i] == "SOC" ? "SYS" : words[i]);
    if (cells.size() != columns.size()) {
      out.findings.push_back(source.warning(source.at(line.number),
                                            fmt::format("the row of {} has {} distances for {} columns: left out",
                                                        words[0], cells.size(), columns.size()),
                                            "was the text wrapped or cut?"));
      continue;
    }
    matrix.names.emplace_back(words[0]);
    matrix.numa.push_back(numa_of(words, cells.size() + 1));
    matrix.rows.push_back(source.at(line.number));
    matrix.cells.push_back(std::move(cells));
  }
  if (matrix.names.empty())
    return tl::unexpected(Diagnostics{source.error(source.at(1), "no row of a matrix of `nvidia-smi topo -m`",
                                                   "expected a header of GPU0 GPU1 ... and a row for each")});
  // Rows that are missing take their columns with them.
  std::vector<std::size_t> kept;
  for (const auto& name : matrix.names) {
    const auto at = std::find(columns.begin(), columns.end(), name);
    if (at == columns.end())
      return tl::unexpected(
          Diagnostics{source.error(matrix.rows.front(), fmt::format("row '{}' has no column", name))});
    kept.push_back(static_cast<std::size_t>(at - columns.begin()));
  }
  for (auto& row : matrix.cells) {
    std::vector<std::string> cells;
    for (const auto column : kept) cells.push_back(row[column]);
    row = std::move(cells);
  }
  Machine machine;
  machine.format = "smi-topo";
  machine.place = source.at(1);
  machine.distances = std::move(matrix);
  out.machines.push_back(std::move(machine));
  return {};
}

}  // namespace fabricast::import
