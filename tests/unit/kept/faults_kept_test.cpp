// SPDX-License-Identifier: Apache-2.0
// What is said of every value of rich files when it is replaced by one that is out of range, of the wrong kind, or a
// word: a message, or what check finds.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>

#include "fabricast/check.hpp"
#include "tests/unit/kept/table.hpp"

using namespace fabricast;

namespace {

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

std::string said_of(const std::string& path) {
  const auto kind = file_kind(path);
  if (!kind) return kind.error().front().message;
  Diagnostics found;
  if (*kind == "topology") {
    const auto loaded = load_topology(path);
    found = loaded ? check_all(*loaded) : loaded.error();
  } else {
    const auto loaded = load_scenario(path);
    found = loaded ? check_all(*loaded) : loaded.error();
  }
  std::string out = fmt::format("{} found", found.size());
  for (std::size_t i = 0; i < std::min<std::size_t>(found.size(), 2); ++i) {
    const auto& at = found[i].location;
    out += fmt::format("; {} at {}:{}", first_line(found[i].message), at.line, at.column);
    if (at.line > 0 && found[i].source_line.empty()) out += ", whose line is not shown";
  }
  return out;
}

}  // namespace

TEST_CASE("of every value replaced by a senseless one the same is said as before") {
  const std::regex value(R"(([A-Za-z_0-9]+): *([^,{}\[\]\n#" ][^,{}\[\]\n#"]*))");
  std::string out;
  std::set<std::string> seen;  // a key with the same value is replaced once
  for (const auto& file : test::yaml_files({"topologies", "scenarios", "tests/golden/inputs"})) {
    const auto kind = file_kind(file.string());
    if (!kind || (*kind != "topology" && *kind != "scenario")) continue;
    std::ifstream stream(file);
    std::string text((std::istreambuf_iterator<char>(stream)), {});
    text = std::regex_replace(text, std::regex(R"(\.\./)"), FABRICAST_SOURCE_DIR "/");
    // Of a file beside it, too.
    text = std::regex_replace(text, std::regex(R"(\[([\w-]+\.yaml)\])"), "[" + file.parent_path().string() + "/$1]");
    text = std::regex_replace(text, std::regex("#[^\n]*"), "");
    out += file.lexically_relative(FABRICAST_SOURCE_DIR).generic_string() + "\n";
    for (std::sregex_iterator match(text.begin(), text.end(), value), end; match != end; ++match) {
      const auto key = (*match)[1].str();
      if (key == "schema" || key == "name" || key == "description" || key == "source" || key == "topology") continue;
      if (!seen.insert(*kind + key + (*match)[2].str()).second) continue;
      for (const auto* other : {"-1", "0", "1e30", "on", "nonsense", "[1, 2]"}) {
        auto changed = text;
        changed.replace(static_cast<std::size_t>(match->position(2)), static_cast<std::size_t>(match->length(2)),
                        other);
        out += fmt::format("  {}: {} -> {}: {}\n", key, (*match)[2].str(), other,
                           said_of(test::write_file("damaged.yaml", changed)));
      }
    }
  }
  test::check_kept("faults", out);
}
