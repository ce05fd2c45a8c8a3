// SPDX-License-Identifier: Apache-2.0
#include "import/source.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.hpp"

namespace fabricast::import {

namespace {

/// Length of the terminal sequence (ESC [ ... letter) that `text` begins with; 0 when it begins with none.
std::size_t escape_length(std::string_view text) {
  if (text.size() < 2 || text[0] != '\x1b' || text[1] != '[') return 0;
  std::size_t end = 2;
  while (end < text.size() && (text[end] < '@' || text[end] > '~')) ++end;
  return std::min(end + 1, text.size());
}

struct DepthWalker : pugi::xml_tree_walker {
  int deepest = 0;
  std::ptrdiff_t where = 0;

  bool for_each(pugi::xml_node& node) override {
    if (depth() > deepest) {
      deepest = depth();
      where = node.offset_debug();
    }
    return deepest <= k_most_levels;
  }
};

}  // namespace

Lines::Lines(std::string_view text) {
  text_.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    if (const auto skip = escape_length(text.substr(i)); skip > 0) {
      i += skip;
      continue;
    }
    if (text[i] != '\r') text_ += text[i];
    ++i;
  }
  std::string_view rest = text_;
  for (int number = 1; !rest.empty(); ++number) {
    const auto end = rest.find('\n');
    lines_.push_back({number, rest.substr(0, end)});
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
}

void Source::find_lines() const {
  line_starts_ = {0};
  for (std::size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') line_starts_.push_back(i + 1);
  }
}

SourceLocation Source::at_offset(std::ptrdiff_t offset) const {
  if (line_starts_.empty()) find_lines();
  const auto byte = static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, offset));
  const auto next = std::upper_bound(line_starts_.begin(), line_starts_.end(), byte);
  const auto line = static_cast<int>(next - line_starts_.begin());
  return {name_, line, static_cast<int>(byte - *(next - 1)) + 1};
}

Diagnostic Source::error(SourceLocation where, std::string message, std::string hint) const {
  auto fault = make_error_at(where, std::move(message), std::move(hint));
  const int line = fault.location.line;
  if (line_starts_.empty()) find_lines();
  if (line >= 1 && static_cast<std::size_t>(line) <= line_starts_.size()) {
    const auto text = text_.substr(line_starts_[static_cast<std::size_t>(line) - 1]);
    set_source_line(fault, printable(text.substr(0, std::min<std::size_t>(text.find('\n'), 4096))));
  }
  return fault;
}

Diagnostic Source::warning(SourceLocation where, std::string message, std::string hint) const {
  auto found = error(std::move(where), std::move(message), std::move(hint));
  found.severity = Severity::warning;
  return found;
}

std::optional<Diagnostic> Source::limits() const {
  const auto refuse = [&](std::size_t at, std::string message, std::string hint) {
    return error(at_offset(static_cast<std::ptrdiff_t>(at)), std::move(message), std::move(hint));
  };
  if (trimmed(text_).empty()) return refuse(0, "the file is empty", "was the command that made it run as root?");
  if (text_.size() > k_most_bytes)
    return Diagnostic{Severity::error,
                      {name_, 0, 0},
                      fmt::format("the file has {} bytes, at most {} are read", text_.size(), k_most_bytes),
                      {},
                      {}};
  if (const auto bom = text_.substr(0, 2); bom == "\xff\xfe" || bom == "\xfe\xff")
    return refuse(0, "the file is UTF-16, expected UTF-8", "convert it: iconv -f UTF-16 -t UTF-8");
  if (const auto nul = text_.find('\0'); nul != std::string_view::npos)
    return refuse(nul, "the file holds a NUL byte, expected text", {});
  if (const auto bad = first_not_utf8(text_); bad != std::string_view::npos)
    return refuse(bad, "the file is not UTF-8 here", "convert it: iconv -t UTF-8");
  return std::nullopt;
}

Result<void> load_xml(const Source& source, pugi::xml_document& document) {
  const auto parsed = document.load_buffer(source.text().data(), source.text().size(),
                                           pugi::parse_minimal | pugi::parse_escapes, pugi::encoding_utf8);
  if (!parsed) {
    const bool is_cut = static_cast<std::size_t>(parsed.offset) + 1 >= source.text().size() ||
                        parsed.status == pugi::status_end_element_mismatch;
    return tl::unexpected(Diagnostics{source.error(source.at_offset(parsed.offset),
                                                   fmt::format("the XML breaks here: {}", lower(parsed.description())),
                                                   is_cut ? "was the file cut short, or pasted in part?" : "")});
  }
  DepthWalker depth;
  document.traverse(depth);
  if (depth.deepest > k_most_levels)
    return tl::unexpected(Diagnostics{source.error(
        source.at_offset(depth.where), fmt::format("elements are nested deeper than {} here", k_most_levels),
        "no machine's tree is that deep")});
  return {};
}

void for_each_element(const pugi::xml_node& root, const std::function<void(const pugi::xml_node&, int)>& use) {
  struct Walker : pugi::xml_tree_walker {
    const std::function<void(const pugi::xml_node&, int)>* use = nullptr;
    bool for_each(pugi::xml_node& node) override {
      if (node.type() == pugi::node_element) (*use)(node, depth());
      return true;
    }
  } walker;
  walker.use = &use;
  auto top = root;
  top.traverse(walker);
}

Result<nlohmann::json> load_json(const Source& source) {
  using nlohmann::json;
  bool is_too_deep = false;
  const auto watch = [&](int depth, json::parse_event_t, json&) {
    is_too_deep = is_too_deep || depth > k_most_levels;
    return !is_too_deep;
  };
  try {
    auto value = json::parse(source.text().begin(), source.text().end(), watch);
    if (!is_too_deep) return value;
  } catch (const json::parse_error& broken) {
    const auto at = std::min(broken.byte, source.text().size());
    return tl::unexpected(
        Diagnostics{source.error(source.at_offset(static_cast<std::ptrdiff_t>(at) - 1), "the JSON breaks here",
                                 at + 1 >= source.text().size() ? "was the file cut short?" : "")});
  } catch (const json::exception& broken) {
    return tl::unexpected(Diagnostics{source.error(source.at(1), fmt::format("JSON: {}", broken.what()))});
  }
  return tl::unexpected(
      Diagnostics{source.error(source.at(1), fmt::format("the JSON is nested deeper than {}", k_most_levels))});
}

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> out;
  for (;;) {
    const auto end = text.find(by);
    out.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

std::optional<std::int64_t> number_of(std::string_view text, int base) {
  const bool is_negative = text.starts_with('-');
  if (is_negative) text.remove_prefix(1);
  if ((base == 0 || base == 16) && (text.starts_with("0x") || text.starts_with("0X"))) {
    text.remove_prefix(2);
    base = 16;
  }
  std::int64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value, base == 0 ? 10 : base);
  if (read.ec != std::errc{}) return std::nullopt;
  return is_negative ? -value : value;
}

double decimal_of(std::string_view text) {
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  return read.ec == std::errc{} && std::isfinite(value) ? value : 0;
}

std::string pci_address(std::string_view text) {
  text = trimmed(text);
  const auto parts = split(text, ':');
  if (parts.size() < 2 || parts.size() > 3) return {};
  const auto slot = split(parts.back(), '.');
  const auto bus = number_of(parts[parts.size() - 2], 16);
  const auto device = number_of(slot[0], 16);
  const auto function = slot.size() > 1 ? number_of(slot[1], 16) : std::optional<std::int64_t>(0);
  const auto domain = parts.size() == 3 ? number_of(parts[0], 16) : std::optional<std::int64_t>(0);
  if (!bus || !device || !function || !domain || *bus < 0 || *bus > 255 || *device < 0 || *device > 31 ||
      *function < 0 || *function > 7 || *domain < 0 || *domain > 0xffffff)
    return {};
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", *domain, *bus, *device, *function);
}

int generation_of_rate(double gigatransfers) {
  static constexpr std::array<double, 6> rates{2.5, 5, 8, 16, 32, 64};
  for (std::size_t i = 0; i < rates.size(); ++i) {
    if (std::abs(gigatransfers - rates[i]) < 0.01 * rates[i]) return static_cast<int>(i) + 1;
  }
  return 0;
}

namespace {

/// The numbers of one bracket, zero-padded as written.
bool expand_range(std::string_view range, std::size_t most, std::vector<std::string>& out) {
  for (const auto part : split(range, ',')) {
    const auto ends = split(part, '-');
    const auto from = number_of(ends[0], 10);
    const auto to = ends.size() == 2 ? number_of(ends[1], 10) : from;
    if (ends.size() > 2 || !from || !to || *from < 0 || *to < *from || static_cast<std::size_t>(*to - *from) >= most ||
        out.size() > most)
      return false;
    for (auto n = *from; n <= *to; ++n) out.push_back(fmt::format("{:0{}}", n, ends[0].size()));
  }
  return true;
}

bool expand_one(std::string_view word, std::size_t most, std::vector<std::string>& out) {
  std::vector<std::string> names{""};
  while (!word.empty()) {
    const auto open = word.find('[');
    for (auto& name : names) name += word.substr(0, open);
    if (open == std::string_view::npos) break;
    const auto close = word.find(']', open);
    if (close == std::string_view::npos) return false;
    std::vector<std::string> numbers;
    if (!expand_range(word.substr(open + 1, close - open - 1), most, numbers)) return false;
    if (names.size() * numbers.size() > most) return false;
    std::vector<std::string> longer;
    for (const auto& name : names) {
      for (const auto& number : numbers) longer.push_back(name + number);
    }
    names = std::move(longer);
    word.remove_prefix(close + 1);
  }
  out.insert(out.end(), names.begin(), names.end());
  return out.size() <= most;
}

}  // namespace

std::optional<std::vector<std::string>> expand_hosts(std::string_view list, std::size_t most) {
  std::vector<std::string> out;
  std::size_t begin = 0;
  int depth = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[') ++depth;
    if (i < list.size() && list[i] == ']') --depth;
    if (i < list.size() && (list[i] != ',' || depth != 0)) continue;
    const auto word = trimmed(list.substr(begin, i - begin));
    begin = i + 1;
    if (!word.empty() && !expand_one(word, most, out)) return std::nullopt;
  }
  if (depth != 0) return std::nullopt;
  return out;
}

void fold_ports(std::vector<PciDevice>& devices) {
  // 0 = not a bridge, 1 = root port, 2 = upstream port (the switch), 3 = downstream port.
  std::vector<int> role(devices.size(), 0);
  std::vector<int> moved(devices.size(), -1);
  std::vector<PciDevice> out;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    auto& one = devices[i];
    const int parent = one.parent;
    const int above = parent < 0 ? 0 : role[static_cast<std::size_t>(parent)];
    if (one.kind == PciKind::bridge) role[i] = parent < 0 ? 1 : above == 2 ? 3 : 2;
    // The nearest switch above: ports are passed over.
    int up = parent;
    while (up >= 0 && role[static_cast<std::size_t>(up)] != 2) up = devices[static_cast<std::size_t>(up)].parent;
    if (role[i] == 3 && one.redirects) {  // the switch redirects where its downstream ports do
      auto& sw = out[static_cast<std::size_t>(moved[static_cast<std::size_t>(parent)])];
      sw.redirects = sw.redirects.value_or(false) || *one.redirects;
    }
    if (role[i] == 1 || role[i] == 3) continue;
    auto kept = one;
    kept.parent = up < 0 ? -1 : moved[static_cast<std::size_t>(up)];
    kept.redirects.reset();
    if (one.kind != PciKind::bridge) kept.redirects = one.redirects;
    moved[i] = static_cast<int>(out.size());
    out.push_back(std::move(kept));
  }
  devices = std::move(out);
}

std::optional<bool> redirects(const Machine& machine) {
  std::optional<bool> out;
  for (const auto& one : machine.devices) {
    if (one.kind == PciKind::bridge && one.redirects) out = out.value_or(false) || *one.redirects;
  }
  return out;
}

}  // namespace fabricast::import
