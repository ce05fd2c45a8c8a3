// SPDX-License-Identifier: Apache-2.0
#include "config/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "base/text.hpp"

namespace fabricast::config {

namespace {

constexpr std::string_view k_topology = "topology.";
constexpr std::size_t k_deepest_path = 64;    ///< as deep as files are nested
constexpr std::size_t k_longest_shown = 200;  ///< of a setting, in messages

std::string shortened(const std::string& text) {
  return text.size() <= k_longest_shown ? text : text.substr(0, k_longest_shown) + "...";
}

std::vector<std::string> split(const std::string& path) {
  std::vector<std::string> parts;
  std::string part;
  for (const char c : path) {
    if (c == '.') {
      parts.push_back(part);
      part.clear();
    } else {
      part.push_back(c);
    }
  }
  parts.push_back(part);
  return parts;
}

/// Names of the elements of a list: their `name`, else their number.
std::vector<std::string> element_names(const Node& list) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < list.items.size(); ++i) {
    const auto* name = list.items[i].find("name");
    names.push_back(name != nullptr ? name->scalar : std::to_string(i));
  }
  return names;
}

Node* element(Node& list, const std::string& name) {
  const auto names = element_names(list);
  const auto it = std::find(names.begin(), names.end(), name);
  if (it != names.end()) return &list.items[static_cast<std::size_t>(it - names.begin())];
  if (!name.empty() && name.size() < 9 && name.find_first_not_of("0123456789") == std::string::npos) {
    const auto index = std::stoul(name);
    if (index < list.items.size()) return &list.items[index];
  }
  return nullptr;
}

class Setter {
 public:
  Setter(const Setting& setting, Diagnostics& faults)
      : faults_(faults), text_(shortened(fmt::format("--set {}={}", setting.path, setting.value))) {}

  void set(Node& document, const std::vector<std::string>& path, const std::string& text) {
    for (const auto& part : path) {
      if (!is_text(part)) return;
    }
    if (!is_text(text)) return;
    if (path.size() > k_deepest_path)
      return fault(fmt::format("the path has {} parts", path.size()),
                   fmt::format("no value lies deeper than {}", k_deepest_path));
    Node value = parse_yaml(text_, text, parse_faults_);
    if (!parse_faults_.empty() || text.empty()) {
      value = Node{};
      value.kind = Node::Kind::scalar;
      value.scalar = text;
    }
    mark(value);
    Node* at = &document;
    for (std::size_t i = 0; i < path.size(); ++i) {
      at = step(*at, path[i], i + 1 == path.size());
      if (at == nullptr) return;
    }
    *at = std::move(value);
  }

 private:
  /// Nodes of a setting are located at the setting, not in a file.
  void mark(Node& node) {
    node.source = source_;
    node.line = node.column = 0;
    for (auto& item : node.items) mark(item);
    for (auto& entry : node.entries) {
      mark(entry.key);
      mark(entry.value);
    }
  }

  void fault(std::string message, std::string hint) {
    auto diagnostic = make_error(std::move(message), std::move(hint));
    diagnostic.location.file = text_;
    faults_.push_back(std::move(diagnostic));
  }

  /// A part of the path or the value: UTF-8 without control characters.
  bool is_text(const std::string& text) {
    const bool is_utf8 = first_not_utf8(text) == std::string::npos;
    if (is_utf8 && first_control(text) == std::string::npos) return true;
    fault(fmt::format("'{}' {}", shortened(text), is_utf8 ? "has a control character" : "is not UTF-8"),
          "write it without");
    return false;
  }

  Node* step(Node& at, const std::string& name, bool is_last) {
    if (name.empty()) {
      fault("the path has an empty part", "write e.g. `workload.gpus=8`");
      return nullptr;
    }
    if (at.kind == Node::Kind::sequence) {
      if (auto* found = element(at, name)) return found;
      const auto names = element_names(at);
      const auto near = nearest_name(name, names);
      fault(fmt::format("the list has no element '{}'", name),
            near.empty() ? fmt::format("it has {} elements, named by `name` or from 0", names.size())
                         : fmt::format("did you mean '{}'?", near));
      return nullptr;
    }
    if (at.kind == Node::Kind::scalar && !is_last) {
      // A value such as a file name gives way to a mapping; the check will say if that is not allowed.
      fault(fmt::format("'{}' cannot be set inside the value '{}'", name, at.scalar), "set the whole value instead");
      return nullptr;
    }
    if (at.kind != Node::Kind::mapping) {
      const auto source = at.source;
      at = Node{};
      at.kind = Node::Kind::mapping;
      at.source = source;
    }
    if (auto* found = at.find(name)) return found;
    if (const auto bracket = name.find('['); bracket != std::string::npos && name.ends_with(']')) {
      fault(fmt::format("'{}' is no part of a path", name),
            fmt::format("elements of lists stand behind a dot, by name or number: write '{}.{}'",
                        name.substr(0, bracket), name.substr(bracket + 1, name.size() - bracket - 2)));
      return nullptr;
    }
    Node key;
    key.kind = Node::Kind::scalar;
    key.scalar = name;
    mark(key);
    Node empty;
    mark(empty);
    at.entries.push_back({std::move(key), std::move(empty)});
    return &at.entries.back().value;
  }

  Diagnostics& faults_;
  Diagnostics parse_faults_;
  std::string text_;
  std::shared_ptr<const Source> source_ = std::make_shared<Source>(Source{text_, {}});
};

}  // namespace

void apply_settings(Node& document, const std::vector<Setting>& settings, SettingScope scope, Diagnostics& faults) {
  for (const auto& setting : settings) {
    const bool is_topology = setting.path.rfind(k_topology, 0) == 0;
    if (scope != SettingScope::whole && is_topology != (scope == SettingScope::topology_of_scenario)) continue;
    const bool strip = is_topology && scope != SettingScope::scenario;
    Setter(setting, faults)
        .set(document, split(strip ? setting.path.substr(k_topology.size()) : setting.path), setting.value);
  }
}

}  // namespace fabricast::config
