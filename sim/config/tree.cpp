// SPDX-License-Identifier: Apache-2.0
#include "config/tree.hpp"

#include <fmt/format.h>
#include <yaml-cpp/anchor.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string_view>

#include "base/text.hpp"
#include "base/yaml_fault.hpp"

namespace fabricast::config {

namespace {

constexpr std::size_t k_largest_file = 16U << 20;
constexpr std::size_t k_most_nodes = 200'000;            ///< after aliases are expanded
constexpr std::size_t k_most_text = 4 * k_largest_file;  ///< of all values then
constexpr int k_deepest_nesting = 64;

struct Weight {
  std::size_t nodes = 0;
  std::size_t text = 0;
};

void weigh(const Node& node, Weight& weight) {
  ++weight.nodes;
  weight.text += node.scalar.size();
  for (const auto& item : node.items) weigh(item, weight);
  for (const auto& entry : node.entries) {
    weigh(entry.key, weight);
    weigh(entry.value, weight);
  }
}

/// Thrown through yaml-cpp to stop at once; never leaves parse_yaml.
struct Stop {
  Diagnostic reason;
};

class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(std::shared_ptr<const Source> source, Diagnostics& faults)
      : source_(std::move(source)), faults_(faults) {}

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override { add(make(mark, Node::Kind::null), anchor); }
  void OnScalar(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor, const std::string& value) override {
    auto node = make(mark, Node::Kind::scalar);
    node.scalar = value;
    check_text(node);
    add(std::move(node), anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto it = anchors_.find(anchor);
    if (it == anchors_.end())
      throw Stop{make(mark, Node::Kind::null)
                     .error("an alias refers to a list or mapping it is part of", "write the value out")};
    Weight weight;
    weigh(it->second, weight);
    carry(weight, make(mark, Node::Kind::null));
    auto copy = it->second;
    copy.line = mark.line + 1;
    copy.column = mark.column + 1;
    place(std::move(copy));
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, Node::Kind::sequence, anchor);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, Node::Kind::mapping, anchor);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

  Node root;

 private:
  struct Open {
    Node node;
    Node key{};
    bool has_key = false;
    bool is_wanted = false;  ///< the key at hand
    YAML::anchor_t anchor = 0;
    std::map<std::string, SourceLocation> seen{};
  };

  Node make(const YAML::Mark& mark, Node::Kind kind) const {
    Node node;
    node.kind = kind;
    node.source = source_;
    node.line = mark.line + 1;
    node.column = mark.column + 1;
    return node;
  }

  void open(const YAML::Mark& mark, Node::Kind kind, YAML::anchor_t anchor) {
    auto node = make(mark, kind);
    if (stack_.size() >= k_deepest_nesting)
      throw Stop{node.error(fmt::format("lists and mappings are nested more than {} deep", k_deepest_nesting),
                            "no Fabricast file needs that")};
    stack_.push_back({.node = std::move(node), .anchor = anchor});
  }

  void close() {
    auto done = std::move(stack_.back());
    stack_.pop_back();
    add(std::move(done.node), done.anchor);
  }

  /// Counts what is added to the tree; lists and mappings when they end, without their contents.
  void carry(const Weight& weight, const Node& at) {
    all_.nodes += weight.nodes;
    all_.text += weight.text;
    if (all_.nodes > k_most_nodes)
      throw Stop{
          at.error(fmt::format("the document has more than {} nodes after its aliases are expanded", k_most_nodes),
                   "use generators (fat_tree, count) instead of lists")};
    if (all_.text > k_most_text)
      throw Stop{
          at.error(fmt::format("the document has more than {} MiB after its aliases are expanded", k_most_text >> 20),
                   "repeat short values only")};
  }

  /// Keys are one line of text; values may have several.
  void check_text(const Node& node) {
    const bool is_key = !stack_.empty() && stack_.back().node.kind == Node::Kind::mapping && !stack_.back().has_key;
    std::size_t from = 0;
    while (true) {
      const auto found = first_control(std::string_view(node.scalar).substr(from));
      if (found == std::string_view::npos) return;
      const char c = node.scalar[from + found];
      from += found + 1;
      if (!is_key && (c == '\n' || c == '\t')) continue;
      faults_.push_back(node.error(
          fmt::format("{} '{}' has a control character", is_key ? "the key" : "the value", node.scalar.substr(0, 60)),
          "write it without"));
      return;
    }
  }

  void add(Node node, YAML::anchor_t anchor) {
    carry({1, node.scalar.size()}, node);
    if (anchor != 0) anchors_[anchor] = node;
    place(std::move(node));
  }

  void place(Node node) {
    if (stack_.empty()) {
      root = std::move(node);
      return;
    }
    auto& top = stack_.back();
    if (node.kind == Node::Kind::null) move_back(node, top);
    if (top.node.kind == Node::Kind::sequence) {
      top.node.items.push_back(std::move(node));
    } else if (!top.has_key) {
      top.is_wanted = check_key(top, node);
      top.key = std::move(node);
      top.has_key = true;
    } else {
      top.has_key = false;
      if (top.is_wanted) top.node.entries.push_back({std::move(top.key), std::move(node)});
    }
  }

  /// The parser marks what is left empty at the token behind it: it is at its key, or at the dash of its list.
  void move_back(Node& node, const Open& top) const {
    if (top.has_key) {
      node.line = top.key.line;
      node.column = top.key.column;
    }
    if (top.node.kind != Node::Kind::sequence) return;
    for (int line = std::min(node.line, static_cast<int>(source_->lines.size())); line >= top.node.line; --line) {
      auto text = std::string_view(source_->lines[static_cast<std::size_t>(line - 1)]);
      text = text.substr(0, text.find(" #"));
      const auto last = text.find_last_not_of(' ');
      if (last == std::string_view::npos || text[last] != '-') continue;
      node.line = line;
      node.column = static_cast<int>(last) + 1;
      return;
    }
  }

  /// True for a key that is new.
  bool check_key(Open& top, const Node& key) {
    if (key.kind != Node::Kind::scalar) {
      faults_.push_back(key.error(fmt::format("a key must be a word, found {}", describe(key.kind))));
      return false;
    }
    if (key.scalar == "<<") {
      faults_.push_back(key.error("merge keys ('<<') are not supported",
                                  "write the keys out, or use the device catalogue for what repeats"));
      return false;
    }
    const auto [it, is_new] = top.seen.try_emplace(key.scalar, key.location());
    if (is_new) return true;
    auto fault = key.error(fmt::format("key '{}' is given twice", key.scalar));
    fault.notes.push_back({fmt::format("'{}' is first given here", key.scalar), it->second});
    faults_.push_back(std::move(fault));
    return false;
  }

  std::shared_ptr<const Source> source_;
  Diagnostics& faults_;
  std::vector<Open> stack_;
  std::map<YAML::anchor_t, Node> anchors_;
  Weight all_;
};

/// yaml-cpp recurses on brackets: count them before it sees the text. Quoted text may hold brackets; the limit is far
/// above.
int bracket_depth(const std::string& text) {
  int depth = 0;
  int deepest = 0;
  for (const char c : text) {
    if (c == '[' || c == '{') deepest = std::max(deepest, ++depth);
    if ((c == ']' || c == '}') && depth > 0) --depth;
    if (c == '\n' && depth < 0) depth = 0;
  }
  return deepest;
}

/// Deepest block nesting: indentations that are still open, and dashes on one line.
int block_depth(const std::vector<std::string>& lines) {
  std::vector<std::size_t> open;
  int deepest = 0;
  for (const auto& line : lines) {
    const auto indent = line.find_first_not_of(' ');
    if (indent == std::string::npos || line[indent] == '#') continue;
    while (!open.empty() && open.back() >= indent) open.pop_back();
    open.push_back(indent);
    int marks = 0;
    for (std::size_t i = indent; i + 1 < line.size() && (line[i] == '-' || line[i] == '?') && line[i + 1] == ' ';
         i = line.find_first_not_of(' ', i + 1)) {
      ++marks;
      if (line.find_first_not_of(' ', i + 1) == std::string::npos) break;
    }
    deepest = std::max(deepest, static_cast<int>(open.size()) + marks);
  }
  return deepest;
}

Diagnostic file_fault(const std::string& path, std::string message, std::string hint = {}) {
  auto fault = make_error(std::move(message), std::move(hint));
  fault.location.file = path;
  return fault;
}

Diagnostic at_place(const std::shared_ptr<const Source>& source, const YamlFault& fault) {
  Node place;
  place.source = source;
  place.line = fault.line;
  place.column = fault.column;
  return place.error(fault.message, fault.hint);
}

}  // namespace

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  std::string line;
  std::istringstream in{std::string(text)};
  while (std::getline(in, line)) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    lines.push_back(line);
  }
  return lines;
}

const Node* Node::find(std::string_view key) const {
  for (const auto& entry : entries) {
    if (entry.key.scalar == key) return &entry.value;
  }
  return nullptr;
}

Node* Node::find(std::string_view key) {
  for (auto& entry : entries) {
    if (entry.key.scalar == key) return &entry.value;
  }
  return nullptr;
}

SourceLocation Node::location() const { return {source ? source->name : "", line, column}; }

Diagnostic Node::error(std::string message, std::string hint) const {
  auto fault = make_error_at(location(), std::move(message), std::move(hint));
  if (source && line >= 1 && line <= static_cast<int>(source->lines.size()))
    set_source_line(fault, source->lines[static_cast<std::size_t>(line - 1)]);
  return fault;
}

std::string_view describe(Node::Kind kind) {
  switch (kind) {
    case Node::Kind::null:
      return "nothing";
    case Node::Kind::scalar:
      return "a value";
    case Node::Kind::sequence:
      return "a list";
    case Node::Kind::mapping:
      return "a mapping";
  }
  return "";
}

Node parse_yaml(const std::string& name, const std::string& text, Diagnostics& faults) {
  auto source = std::make_shared<Source>(Source{name, split_lines(text)});
  if (bracket_depth(text) > 4 * k_deepest_nesting || block_depth(source->lines) > 4 * k_deepest_nesting) {
    faults.push_back(file_fault(name, fmt::format("lists and mappings are nested more than {} deep", k_deepest_nesting),
                                "no Fabricast file needs that"));
    return {};
  }
  TreeBuilder builder(source, faults);
  try {
    std::istringstream in(text);
    YAML::Parser parser(in);
    if (!parser.HandleNextDocument(builder) || builder.root.kind == Node::Kind::null) {
      faults.push_back(
          file_fault(name, "the file is empty", "the first line says what it is, e.g. `schema: fabricast/topology/1`"));
      return {};
    }
    const auto first = std::move(builder.root);
    if (const auto quote = unclosed_quote(source->lines)) {
      faults.push_back(at_place(source, *quote));
      return {};
    }
    if (parser.HandleNextDocument(builder)) {
      faults.push_back(
          builder.root.error("a second document starts here", "one file holds one document; remove the `---`"));
    }
    return first;
  } catch (const Stop& stop) { faults.push_back(stop.reason); } catch (const YAML::Exception& error) {
    faults.push_back(
        at_place(source, yaml_fault(source->lines, error.msg, error.mark.line + 1, error.mark.column + 1)));
  }
  return {};
}

Result<std::string> read_text_file(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code code;
  const auto status = fs::status(path, code);
  const auto refuse = [&](std::string message, std::string hint = {}) {
    return tl::unexpected(Diagnostics{file_fault(path, std::move(message), std::move(hint))});
  };
  if (!fs::exists(status)) return refuse(fmt::format("cannot open the file: {}", std::strerror(ENOENT)));
  if (fs::is_directory(status)) return refuse("this is a directory, a YAML file is expected");
  if (fs::is_regular_file(status) && fs::file_size(path, code) > k_largest_file) {
    return refuse(fmt::format("the file has {} MiB, the largest accepted is {} MiB", fs::file_size(path, code) >> 20,
                              k_largest_file >> 20),
                  "describe regular clusters with `count` and generators such as fat_tree");
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return refuse(fmt::format("cannot open the file: {}", std::strerror(errno)));
  std::string text;
  char buffer[65536];
  while (in.read(buffer, sizeof buffer) || in.gcount() > 0) {
    text.append(buffer, static_cast<std::size_t>(in.gcount()));
    if (text.size() > k_largest_file) return refuse(fmt::format("the file has more than {} MiB", k_largest_file >> 20));
  }
  if (in.bad()) return refuse(fmt::format("cannot read the file: {}", std::strerror(errno)));
  if (text.rfind("\xEF\xBB\xBF", 0) == 0) text.erase(0, 3);
  if (text.find('\0') != std::string::npos) return refuse("this is a binary file, YAML text is expected");
  if (const auto at = first_not_utf8(text); at != std::string::npos) {
    auto fault = file_fault(path, fmt::format("the byte 0x{:02x} is not UTF-8", static_cast<unsigned char>(text[at])),
                            "save the file as UTF-8");
    const auto before = std::string_view(text).substr(0, at);
    fault.location.line = 1 + static_cast<int>(std::ranges::count(before, '\n'));
    fault.location.column = static_cast<int>(at - (before.rfind('\n') + 1)) + 1;
    return tl::unexpected(Diagnostics{std::move(fault)});
  }
  return text;
}

}  // namespace fabricast::config
