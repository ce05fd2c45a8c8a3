// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"
#include "config/plan.hpp"

namespace fabricast::config {

std::string flow_text(const Node& node) {
  std::string out;
  switch (node.kind) {
    case Node::Kind::null:
      return "~";
    case Node::Kind::scalar:
      return yaml_quoted(node.scalar);
    case Node::Kind::sequence:
      for (const auto& item : node.items) out += (out.empty() ? "" : ", ") + flow_text(item);
      return "[" + out + "]";
    case Node::Kind::mapping:
      for (const auto& entry : node.entries)
        out += (out.empty() ? "" : ", ") + yaml_quoted(entry.key.scalar) + ": " + flow_text(entry.value);
      return "{" + out + "}";
  }
  return out;
}

}  // namespace fabricast::config
