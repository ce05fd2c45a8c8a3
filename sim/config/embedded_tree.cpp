// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "config/embedded.hpp"

namespace fabricast::config {

namespace {

/// Reads one node with all below it.
class Reader {
 public:
  explicit Reader(const EmbeddedFile& file)
      : at_(file.nodes.data()),
        source_(std::make_shared<Source>(Source{fmt::format("<shipped>/{}", file.path), split_lines(file.text)})) {}

  Node read() {
    const auto& from = *at_++;
    Node node;
    node.kind = from.kind;
    node.scalar = from.scalar;
    node.source = source_;
    node.line = from.line;
    node.column = from.column;
    const auto count = static_cast<std::size_t>(from.children);
    if (from.kind == Node::Kind::sequence) {
      node.items.reserve(count);
      for (std::size_t i = 0; i < count; ++i) node.items.push_back(read());
    } else {
      node.entries.reserve(count);
      for (std::size_t i = 0; i < count; ++i) {
        auto key = read();
        node.entries.push_back({std::move(key), read()});
      }
    }
    return node;
  }

 private:
  const EmbeddedNode* at_;
  std::shared_ptr<const Source> source_;
};

}  // namespace

Node tree_of(const EmbeddedFile& file) { return Reader(file).read(); }

}  // namespace fabricast::config
