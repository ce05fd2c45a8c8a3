// SPDX-License-Identifier: Apache-2.0
#include "fabricast/models/program.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace fabricast::models {

int Program::then(Node node) {
  const int index = static_cast<int>(nodes.size());
  if (index > 0 && std::ranges::find(node.after, index - 1) == node.after.end()) node.after.push_back(index - 1);
  nodes.push_back(std::move(node));
  return index;
}

int Program::append(const Program& other, const std::vector<int>& after, int stream) {
  FABRICAST_ASSERT(other.streams.empty(), "an operation with {} streams of its own", other.streams.size());
  const int first = static_cast<int>(nodes.size());
  std::vector<char> is_waited_for(other.nodes.size(), 0);
  for (const auto& node : other.nodes) {
    nodes.push_back(node);
    auto& own = nodes.back();
    own.stream = stream;
    for (auto& earlier : own.after) {
      is_waited_for[static_cast<std::size_t>(earlier)] = 1;
      earlier += first;
    }
    if (own.after.empty()) own.after = after;
  }
  num_devices = std::max(num_devices, other.num_devices);
  if (std::ranges::count(is_waited_for, 0) == 1) return static_cast<int>(nodes.size()) - 1;
  Node join;
  join.kind = NodeKind::delay;
  join.stream = stream;
  if (other.nodes.empty()) join.after = after;
  for (std::size_t n = 0; n < is_waited_for.size(); ++n)
    if (is_waited_for[n] == 0) join.after.push_back(first + static_cast<int>(n));
  nodes.push_back(std::move(join));
  return static_cast<int>(nodes.size()) - 1;
}

bool Program::is_chain() const {
  for (std::size_t n = 1; n < nodes.size(); ++n) {
    const int before = static_cast<int>(n) - 1;
    if (std::ranges::find(nodes[n].after, before) == nodes[n].after.end()) return false;
  }
  return true;
}

}  // namespace fabricast::models
