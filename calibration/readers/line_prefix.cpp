// SPDX-License-Identifier: Apache-2.0
#include "readers/line_prefix.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>

namespace fabricast::readers {
namespace {

using Text = std::string_view;

/// Whether `text` has the shape: 9 a digit, A a letter, all else itself; what follows is free.
bool has_shape(Text text, Text shape) {
  if (text.size() < shape.size()) return false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const char c = text[i];
    const bool fits = shape[i] == '9'   ? is_digit(c)
                      : shape[i] == 'A' ? std::isalpha(static_cast<unsigned char>(c)) != 0
                                        : c == shape[i];
    if (!fits) return false;
  }
  return true;
}

std::size_t digits_end(Text text, std::size_t at) {
  while (at < text.size() && is_digit(text[at])) ++at;
  return at;
}

/// Length of a date with its time of day at the start of `text`; 0 when there is none. A time of day alone may be a
/// column of the program's own.
std::size_t time_length(Text text) {
  constexpr std::array<Text, 8> k_shapes{"AAA AAA 99 99:99:99 9999", "AAA AAA  9 99:99:99 9999",  // ctime
                                         "9999-99-99T99:99:99",      "9999-99-99 99:99:99",      "9999/99/99 99:99:99",
                                         "AAA 99 99:99:99",          "AAA  9 99:99:99",  // syslog
                                         "9999-99-99_99:99:99"};
  const auto shape = std::find_if(k_shapes.begin(), k_shapes.end(), [&](Text one) { return has_shape(text, one); });
  if (shape == k_shapes.end()) return 0;
  std::size_t at = shape->size();
  if (at < text.size() && (text[at] == '.' || text[at] == ',')) at = digits_end(text, at + 1);
  if (at < text.size() && text[at] == 'Z') return at + 1;
  for (const Text zone : {"+99:99", "-99:99", "+9999", "-9999"}) {
    if (has_shape(text.substr(at), zone)) return at + zone.size();
  }
  return at;
}

/// `<stdout>`, `<stderr>` or `<stddiag>` with its colon.
std::size_t stream_length(Text text) {
  for (const Text stream : {"<stdout>", "<stderr>", "<stddiag>"}) {
    if (!text.starts_with(stream)) continue;
    const bool has_colon = text.size() > stream.size() && text[stream.size()] == ':';
    return stream.size() + (has_colon ? 1 : 0);
  }
  return 0;
}

/// `[...]` at the start of `text`, brackets included; 0 when there is none on the line.
std::size_t bracket_length(Text text) {
  if (!text.starts_with('[')) return 0;
  const auto end = text.find_first_of("[]", 1);
  return end == Text::npos || text[end] == '[' ? 0 : end + 1;
}

/// `3`, `1,3`
bool is_rank(Text inside) {
  std::size_t at = digits_end(inside, 0);
  if (at == 0) return false;
  if (at == inside.size()) return true;
  return inside[at] == ',' && digits_end(inside, at + 1) > at + 1 && digits_end(inside, at + 1) == inside.size();
}

/// `prterun-host-12@1,0`, `host:1,0`
bool is_named_rank(Text inside) {
  const auto at = inside.find_first_of("@:");
  return at != Text::npos && at > 0 && inside.find(' ') == Text::npos && contains(inside.substr(at), ",") &&
         is_rank(inside.substr(at + 1));
}

/// `rank0`, `default0`, `pod/launcher/main`
bool is_task(Text inside) {
  for (const Text word : {"rank", "default"}) {
    if (inside.starts_with(word) && inside.size() > word.size() && digits_end(inside, word.size()) == inside.size())
      return true;
  }
  return inside.starts_with("pod/") && inside.find(' ') == Text::npos;
}

/// One bracket with what belongs to it: `[1,0]<stdout>:`, `[1,0][host:77]<stdout>:`, `[Mon Jul 20 10:11:12 2026][0]`.
std::size_t bracket_prefix_length(Text line) {
  const auto first = bracket_length(line);
  if (first == 0) return 0;
  const auto inside = line.substr(1, first - 2);
  const auto second = bracket_length(line.substr(first));
  if (const auto stream = stream_length(line.substr(first)); stream > 0) return first + stream;
  if (const auto stream = second > 0 ? stream_length(line.substr(first + second)) : 0; stream > 0)
    return first + second + stream;
  const auto time = time_length(inside);
  if (time > 0 && time == inside.size()) return first;
  if (!is_rank(inside) && !is_named_rank(inside) && !is_task(inside)) return 0;
  return first + (first < line.size() && line[first] == ':' ? 1 : 0);
}

void replace_all(std::string& text, Text from, Text to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

// ---- labels -------------------------------------------------------------------------------------------------------

bool is_label_char(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-';
}

/// A label before a line: its word, and what it is long with its blank. `0`, `00` and `12` are one kind, of a task.
struct Label {
  std::string word;
  std::size_t length = 0;
};

/// `node0: `, ` 0: `, `node0 0: `, `main-1  | `; an empty word for none.
Label label_of(Text line) {
  std::size_t at = 0;
  while (at < line.size() && line[at] == ' ') ++at;
  const std::size_t begin = at;
  while (at < line.size() && is_label_char(line[at])) ++at;
  if (at == begin) return {};
  Label label{std::string(line.substr(begin, at - begin)), 0};
  std::size_t end = at;
  while (end < line.size() && line[end] == ' ') ++end;
  if (const auto task = digits_end(line, end); end > at && task > end && task < line.size() && line[task] == ':')
    at = task;  // host and task
  if (end > at && end < line.size() && line[end] == '|') at = end;
  if (at >= line.size() || (line[at] != ':' && line[at] != '|')) return {};
  ++at;
  if (at < line.size() && line[at] != ' ') return {};
  if (digits_end(label.word, 0) == label.word.size()) label.word = "0";
  label.length = std::min(at + 1, line.size());
  return label;
}

}  // namespace

std::size_t rank_tag_length(Text text) {
  const auto first = bracket_length(text);
  if (first == 0) return 0;
  const auto inside = text.substr(1, first - 2);
  const auto stream = stream_length(text.substr(first));
  return is_rank(inside) || (stream > 0 && is_named_rank(inside)) ? first + stream : 0;
}

std::size_t prefix_length(Text line) {
  std::size_t length = 0;
  constexpr int k_most_parts = 4;
  for (int part = 0; part < k_most_parts; ++part) {
    const auto rest = line.substr(length);
    auto own = bracket_prefix_length(rest);
    if (const auto time = time_length(rest); time > 0) {
      const auto stream = stream_length(rest.substr(time));
      const bool ends = time == rest.size() || rest[time] == ' ' || rest[time] == '[' || rest[time] == ':';
      own = stream > 0 || ends ? time + stream : 0;
    }
    if (own == 0) own = stream_length(rest);
    if (own == 0) break;
    length += own;
    if (length < line.size() && line[length] == ' ') ++length;
  }
  return length;
}

std::string without_xml_tag(std::string text) {
  for (const Text name : {"stdout", "stderr", "stddiag"}) {
    const auto open = "<" + std::string(name) + " ";
    if (!text.starts_with(open)) continue;
    const auto end = text.find('>');
    if (end == std::string::npos) return text;
    text.erase(0, end + 1);
    const auto close = text.rfind("</" + std::string(name) + ">");
    if (close != std::string::npos) text.erase(close);
    for (const auto& [code, character] :
         std::map<Text, Text>{{"&#010;", ""}, {"&#009;", "\t"}, {"&lt;", "<"}, {"&gt;", ">"}})
      replace_all(text, code, character);
    replace_all(text, "&amp;", "&");
    return text;
  }
  return text;
}

void drop_labels(std::vector<Line>& lines, bool (*starts_table)(Text line)) {
  std::set<std::string> labels;
  for (const auto& line : lines) {
    const auto label = label_of(line.text);
    if (label.word.empty() || labels.contains(label.word)) continue;
    if (starts_table(Text(line.text).substr(label.length))) labels.insert(label.word);
  }
  if (labels.empty()) return;
  for (auto& line : lines) {
    const auto label = label_of(line.text);
    if (!label.word.empty() && labels.contains(label.word)) line.text.erase(0, label.length);
  }
}

}  // namespace fabricast::readers
