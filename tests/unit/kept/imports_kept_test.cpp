// SPDX-License-Identifier: Apache-2.0
// The topology that each held capture becomes, what is said of it, and what changes in both when a line of it is lost
// or a number in it is another.
#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>

#include "fabricast/import.hpp"
#include "tests/unit/kept/table.hpp"

using namespace fabricast;

namespace {

constexpr std::size_t k_most_lines = 150;   ///< of a topology that are kept
constexpr std::size_t k_most_changes = 24;  ///< of one capture

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> out;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) out.push_back(line);
  return out;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string out;
  for (const auto& line : lines) out += line + "\n";
  return out;
}

/// Lines of the topology, then what is said of it; or why there is none.
std::vector<std::string> imported(const std::string& text) {
  ImportOptions options;
  options.gpu = "a100-pcie-40";
  const auto cluster = import_cluster({{"capture", text, SourceRole::any, ""}}, options);
  std::vector<std::string> out;
  if (cluster) out = lines_of(cluster->yaml);
  for (const auto& finding : cluster ? cluster->findings : cluster.error())
    out.push_back(fmt::format("said at {}: {}", finding.location.line, lines_of(finding.message + "\n").front()));
  return out;
}

/// "3 lines gone, 1 new, first: ...", nothing when they are the same.
std::string difference(const std::vector<std::string>& before, const std::vector<std::string>& after) {
  std::multiset<std::string> gone(before.begin(), before.end()), added(after.begin(), after.end());
  for (const auto& line : after)
    if (const auto at = gone.find(line); at != gone.end()) gone.erase(at);
  for (const auto& line : before)
    if (const auto at = added.find(line); at != added.end()) added.erase(at);
  const auto first = std::ranges::find_if(after, [&](const std::string& line) { return added.contains(line); });
  if (gone.empty() && added.empty()) return before == after ? "" : "another order";
  return fmt::format("{} lines gone, {} new{}", gone.size(), added.size(), first == after.end() ? "" : ": " + *first);
}

/// The first number of a line doubled; the line itself where it has none.
std::string with_another_number(const std::string& line) {
  const auto begin = std::ranges::find_if(line, [](unsigned char c) { return std::isdigit(c) != 0; });
  const auto end = std::find_if(begin, line.end(), [](unsigned char c) { return std::isdigit(c) == 0; });
  if (begin == line.end() || end - begin > 9) return line;
  return std::string(line.begin(), begin) + std::to_string(2 * std::stol(std::string(begin, end)) + 1) +
         std::string(end, line.end());
}

}  // namespace

TEST_CASE("captures become the topologies that they became before, whole and with a line changed") {
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(FABRICAST_SOURCE_DIR) + "/tests/unit/import/data"))
    if (entry.path().extension() != ".md") files.push_back(entry.path());
  std::ranges::sort(files);
  std::string out;
  for (const auto& file : files) {
    std::ifstream stream(file);
    const std::string text((std::istreambuf_iterator<char>(stream)), {});
    const auto whole = imported(text);
    out += file.filename().string() + fmt::format(": {} lines\n", whole.size());
    for (std::size_t i = 0; i < std::min(whole.size(), k_most_lines); ++i) out += "  " + whole[i] + "\n";
    const auto lines = lines_of(text);
    const auto step = 1 + lines.size() / k_most_changes;
    for (std::size_t at = 0; at < lines.size(); at += step) {
      auto other = lines;
      other.erase(other.begin() + static_cast<std::ptrdiff_t>(at));
      if (const auto said = difference(whole, imported(joined(other))); !said.empty())
        out += fmt::format("  without line {}: {}\n", at + 1, said);
      other = lines;
      other[at] = with_another_number(lines[at]);
      if (const auto said = difference(whole, imported(joined(other))); !said.empty())
        out += fmt::format("  another number in line {}: {}\n", at + 1, said);
    }
  }
  test::check_kept("imports", out);
}
