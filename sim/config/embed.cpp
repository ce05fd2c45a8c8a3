// SPDX-License-Identifier: Apache-2.0
// Run by the build: reads the YAML files of the catalogue, the parameters and the networks, and writes them as C++,
// texts and trees (embedded.hpp). Usage: fabricast_embed OUTPUT ROOT FILE..., files relative to ROOT; a fault in one
// fails.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "config/tree.hpp"

namespace {

using fabricast::config::Node;

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + '"';
}

void write(const Node& node, std::ostream& out) {
  constexpr const char* kinds[] = {"null", "scalar", "sequence", "mapping"};
  out << fmt::format("{{Node::Kind::{},{},{},{},{}}},\n", kinds[static_cast<int>(node.kind)], node.line, node.column,
                     node.items.size() + node.entries.size(), quoted(node.scalar));
  for (const auto& item : node.items) write(item, out);
  for (const auto& entry : node.entries) {
    write(entry.key, out);
    write(entry.value, out);
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const std::string root = argv[2];
  std::ofstream out(argv[1]);
  out << "// Made by sim/config/embed.cpp from models/catalogue, models/params and models/networks.\n"
         "#include \"config/embedded.hpp\"\n\nnamespace fabricast::config {\n\nnamespace {\n\n";
  std::string table;
  for (int i = 3; i < argc; ++i) {
    std::ifstream in(root + "/" + argv[i]);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    fabricast::Diagnostics faults;
    const auto tree = fabricast::config::parse_yaml(argv[i], text, faults);
    if (!faults.empty()) {
      std::fputs(fabricast::render(faults).c_str(), stderr);
      return 1;
    }
    out << fmt::format("constexpr EmbeddedNode k_tree_{}[] = {{\n", i);
    write(tree, out);
    out << "};\n";
    table += fmt::format("      {{\"{}\", R\"~yaml~({})~yaml~\", k_tree_{}}},\n", argv[i], text, i);
  }
  out << "\n}  // namespace\n\nconst std::vector<EmbeddedFile>& embedded_files() {\n"
         "  static const std::vector<EmbeddedFile> files{\n"
      << table << "  };\n  return files;\n}\n\n}  // namespace fabricast::config\n";
  out.close();
  return out ? 0 : 1;
}
