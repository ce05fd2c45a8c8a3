// SPDX-License-Identifier: Apache-2.0
// The shipped catalogue and parameters, compiled in, so that program and library need no data directory. Their YAML is
// read when the program is built (embed.cpp), which takes half of the time of a small forecast otherwise.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "config/tree.hpp"

namespace fabricast::config {

/// A node of a tree in depth-first order: of a sequence its items follow, of a mapping key and value in turn.
struct EmbeddedNode {
  Node::Kind kind = Node::Kind::null;
  int line = 0, column = 0;
  int children = 0;  ///< items, or entries
  const char* scalar = "";
};

struct EmbeddedFile {
  std::string_view path;  ///< relative to models/: catalogue/gpus/v100-sxm2-16.yaml
  std::string_view text;
  std::span<const EmbeddedNode> nodes;
};

/// In alphabetical order of path.
const std::vector<EmbeddedFile>& embedded_files();

/// What parse_yaml makes of the file's text.
Node tree_of(const EmbeddedFile& file);

}  // namespace fabricast::config
