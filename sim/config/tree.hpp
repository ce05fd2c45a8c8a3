// SPDX-License-Identifier: Apache-2.0
// A YAML document as a tree with the place of every node. Made from yaml-cpp's events, so that duplicate keys, aliases
// and depth are seen before anything is expanded.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fabricast/diagnostic.hpp"

namespace fabricast::config {

/// The text a node came from: a file, an embedded file, or the value of a --set.
struct Source {
  std::string name;  ///< as messages print it
  std::vector<std::string> lines;
};

struct Node {
  enum class Kind { null, scalar, sequence, mapping };
  struct Entry;

  Kind kind = Kind::null;
  std::string scalar;
  std::vector<Node> items;     ///< sequence
  std::vector<Entry> entries;  ///< mapping, in file order
  std::shared_ptr<const Source> source;
  int line = 0;  ///< from 1
  int column = 0;

  [[nodiscard]] const Node* find(std::string_view key) const;
  [[nodiscard]] Node* find(std::string_view key);
  [[nodiscard]] SourceLocation location() const;
  [[nodiscard]] Diagnostic error(std::string message, std::string hint = {}) const;
};

struct Node::Entry {
  Node key;
  Node value;
};

/// Without what ends them.
std::vector<std::string> split_lines(std::string_view text);

/// Word for a kind in messages: "a mapping", "a list", "a value", "nothing".
std::string_view describe(Node::Kind kind);

/// Parses one document. All faults that can be found are appended; an empty optional-like null node is returned on
/// error.
Node parse_yaml(const std::string& name, const std::string& text, Diagnostics& faults);

/// Reads a file for parsing: refuses directories, unreadable, empty, binary and over-large (16 MiB) files.
Result<std::string> read_text_file(const std::string& path);

}  // namespace fabricast::config
