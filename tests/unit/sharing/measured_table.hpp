// SPDX-License-Identifier: Apache-2.0
// Tab-separated tables of calibration/data: rows of named columns.
#pragma once

#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace fabricast::test {

using TableRow = std::map<std::string, std::string>;

inline std::vector<TableRow> read_table(const std::string& path_in_calibration_data) {
  std::ifstream in(std::string(FABRICAST_SOURCE_DIR) + "/calibration/data/" + path_in_calibration_data);
  const auto cells = [](const std::string& line) {
    std::vector<std::string> out;
    std::istringstream fields(line);
    for (std::string field; std::getline(fields, field, '\t');) out.push_back(field);
    return out;
  };
  std::string line;
  std::getline(in, line);
  const auto names = cells(line);
  std::vector<TableRow> rows;
  while (std::getline(in, line)) {
    const auto values = cells(line);
    TableRow row;
    for (std::size_t i = 0; i < names.size() && i < values.size(); ++i) row[names[i]] = values[i];
    rows.push_back(std::move(row));
  }
  return rows;
}

inline double number(const TableRow& row, const std::string& column) { return std::stod(row.at(column)); }

}  // namespace fabricast::test
