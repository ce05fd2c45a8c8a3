// SPDX-License-Identifier: Apache-2.0
// A source's text within limits, its lines, numbers and faults. Sources come from strangers: every one is at most 64
// MiB, UTF-8 without NUL, nested at most 64 deep.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <pugixml.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.hpp"
#include "fabricast/diagnostic.hpp"
#include "fabricast/import.hpp"
#include "import/inventory.hpp"

namespace fabricast::import {

inline constexpr std::size_t k_most_bytes = std::size_t{64} << 20;
inline constexpr int k_most_levels = 64;

struct Line {
  int number = 0;
  std::string_view text;
};

/// Lines without ends, carriage returns and terminal colours. The result owns the cleaned text.
class Lines {
 public:
  explicit Lines(std::string_view text);
  [[nodiscard]] const std::vector<Line>& all() const { return lines_; }

 private:
  std::string text_;
  std::vector<Line> lines_;
};

class Source {
 public:
  /// A byte order mark does not count.
  Source(std::string name, std::string_view text)
      : name_(std::move(name)), text_(text.starts_with("\xef\xbb\xbf") ? text.substr(3) : text) {}

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::string_view text() const { return text_; }
  [[nodiscard]] SourceLocation at(int line, int column = 1) const { return {name_, line, column}; }
  /// Line and column of a byte of the text.
  [[nodiscard]] SourceLocation at_offset(std::ptrdiff_t offset) const;
  [[nodiscard]] Diagnostic error(SourceLocation where, std::string message, std::string hint = {}) const;
  [[nodiscard]] Diagnostic warning(SourceLocation where, std::string message, std::string hint = {}) const;
  /// Size, encoding; nothing when all is well.
  [[nodiscard]] std::optional<Diagnostic> limits() const;

 private:
  void find_lines() const;

  std::string name_;
  std::string_view text_;
  mutable std::vector<std::size_t> line_starts_;
};

/// An XML document within the limits. No entity but the five of XML is expanded and nothing is loaded from elsewhere.
Result<void> load_xml(const Source& source, pugi::xml_document& document);
/// Calls `use` for the elements below `root`, parents first, with their depth below it.
void for_each_element(const pugi::xml_node& root, const std::function<void(const pugi::xml_node&, int)>& use);
/// JSON within the limits.
Result<nlohmann::json> load_json(const Source& source);

std::vector<std::string_view> split(std::string_view text, char by);
std::string_view trimmed(std::string_view text);
bool has(std::string_view text, std::string_view part);
/// A whole number that begins the text, decimal or 0x; nothing when there is none.
std::optional<std::int64_t> number_of(std::string_view text, int base = 0);
/// A decimal number that begins the text.
double decimal_of(std::string_view text);
/// `bb:dd.f` and `dddd:bb:dd.f` in lower case with a domain of four digits; empty when it is no address.
std::string pci_address(std::string_view text);
/// Generation by transfer rate per lane in GT/s; 0 = none of them.
int generation_of_rate(double gigatransfers);
/// n[01-03,7]x -> n01x n02x n03x n7x. Nothing when the brackets do not match or more than `most` names come out.
std::optional<std::vector<std::string>> expand_hosts(std::string_view list, std::size_t most = 200'000);

// Readers add what their source says.
Result<void> read_nccl_topo(const Source& source, Inventory& out);
Result<void> read_hwloc(const Source& source, Inventory& out);
Result<void> read_smi_topo(const Source& source, Inventory& out);
Result<void> read_lspci(const Source& source, Inventory& out);
Result<void> read_lspci_tree(const Source& source, Inventory& out);
Result<void> read_ibnetdiscover(const Source& source, Inventory& out);
Result<void> read_slurm(const Source& source, Inventory& out);
Result<void> read_libvirt(const Source& source, Inventory& out);
Result<void> read_govc(const Source& source, Inventory& out);

/// All sources, read but not merged.
Result<Inventory> read_sources(const std::vector<ClusterSource>& sources);

/// Bridges of a tree that shows every port, to switches: a bridge whose parent is the root port or a downstream port
/// is the upstream port of a switch, every other bridge is a port. `is_root[i]`: device i hangs below the processor.
void fold_ports(std::vector<PciDevice>& devices);

/// Whether a switch sends requests between devices below it up to the root complex; nothing when no source says so.
std::optional<bool> redirects(const Machine& machine);

}  // namespace fabricast::import
