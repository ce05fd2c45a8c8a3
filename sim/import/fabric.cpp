// SPDX-License-Identifier: Apache-2.0
// `ibnetdiscover` (plain form) [rdma-core infiniband-diags/ibnetdiscover.c], the net files that ibsim reads (no rates,
// no descriptions) [ibsim ibsim/sim_net.c], and Slurm's topology.conf and topology.yaml [slurm
// doc/man/man5/topology.conf.5, topology.yaml.5].
#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <set>
#include <utility>

#include "base/yaml_fault.hpp"
#include "import/source.hpp"

namespace fabricast::import {

namespace {

/// Data rate of "4xEDR" in Gb/s: width times the rate of a lane after coding.
double rate_of(std::string_view text) {
  static const std::map<std::string, double, std::less<>> lanes{{"SDR", 2},    {"DDR", 4},     {"QDR", 8},
                                                                {"FDR10", 10}, {"FDR", 13.64}, {"EDR", 25},
                                                                {"HDR", 50},   {"NDR", 100},   {"XDR", 200}};
  for (const auto word : words_of(text)) {
    const auto at = word.find('x');
    if (at == std::string_view::npos || at == 0) continue;
    const auto width = number_of(word.substr(0, at), 10);
    const auto lane = lanes.find(word.substr(at + 1));
    if (width && *width >= 1 && *width <= 12 && lane != lanes.end()) return static_cast<double>(*width) * lane->second;
  }
  return 0;
}

/// The text in the first pair of double quotes from `at` on; moves `at` behind it.
std::string_view quoted(std::string_view text, std::size_t& at) {
  const auto open = text.find('"', at);
  if (open == std::string_view::npos) return {};
  const auto close = text.find('"', open + 1);
  if (close == std::string_view::npos) return {};
  at = close + 1;
  return text.substr(open + 1, close - open - 1);
}

class IbReader {
 public:
  IbReader(const Source& source, Inventory& out) : source_(source), out_(out) {}

  Result<void> read() {
    const Lines lines(source_.text());
    seen_.place = source_.at(1);
    for (const auto& line : lines.all()) {
      if (line.text.starts_with("devid="))
        devid_ = static_cast<int>(number_of(line.text.substr(6)).value_or(0) & 0xffff);
      const auto kind = line.text.substr(0, line.text.find_first_of(" \t"));
      if (kind == "Switch" || kind == "Ca" || kind == "Hca" || kind == "Rt")  // Hca: net files of ibsim
        read_node(line);
      else if (line.text.starts_with("["))
        read_port(line);
      if (seen_.nodes.size() > 1'000'000)
        return tl::unexpected(Diagnostics{source_.error(source_.at(line.number), "more than 1,000,000 nodes")});
    }
    if (seen_.nodes.empty())
      return tl::unexpected(Diagnostics{source_.error(source_.at(1), "no Switch and no Ca in this output",
                                                      "expected the plain form of `ibnetdiscover`, without -l or -p")});
    add_adapters_by_switches();
    out_.fabrics.push_back(std::move(seen_));
    return {};
  }

 private:
  /// An output that breaks off after its switches, or was cut: their lines name the adapters, too.
  void add_adapters_by_switches() {
    const auto is_adapter = [](const FabricNode& node) { return !node.is_switch && !node.is_aggregation; };
    if (std::ranges::any_of(seen_.nodes, is_adapter)) return;
    std::map<std::string, FabricNode> adapters;
    for (const auto& one : seen_.nodes) {
      for (const auto& [number, port] : one.ports) {
        if (!port.peer.starts_with("H-") || ids_.contains(port.peer) || has(port.peer_description, "Aggregation Node"))
          continue;
        auto& node = adapters[port.peer];
        if (node.id.empty()) {
          node.id = port.peer;
          node.description = port.peer_description;
          node.place = port.place;
        }
        node.num_ports = std::max(node.num_ports, port.peer_port);
        node.ports[port.peer_port] = {one.id, number, port.gbit_per_s, port.place, one.description};
      }
    }
    if (adapters.empty()) return;
    out_.findings.push_back(source_.warning(
        adapters.begin()->second.place,
        fmt::format("no adapter has a record of its own: {} adapters are those that the switches' lines name",
                    adapters.size()),
        "give the whole output of `ibnetdiscover`: what adapters are is in their records"));
    for (auto& [id, node] : adapters) seen_.nodes.push_back(std::move(node));
  }

  void read_node(const Line& line) {
    FabricNode node;
    node.is_switch = line.text.starts_with("Switch");
    const auto words = words_of(line.text);
    node.num_ports =
        words.size() > 1 ? static_cast<int>(std::clamp<std::int64_t>(number_of(words[1], 10).value_or(0), 0, 4096)) : 0;
    std::size_t at = 0;
    node.id = quoted(line.text, at);
    node.description = quoted(line.text, at);
    node.is_aggregation = has(node.description, "Aggregation Node");
    node.vendor_device = std::exchange(devid_, 0);
    node.place = source_.at(line.number);
    if (node.id.empty()) {
      out_.findings.push_back(source_.warning(node.place, "a node without identifier: left out"));
      return;
    }
    if (!ids_.insert(node.id).second) {
      out_.findings.push_back(
          source_.warning(node.place, fmt::format("'{}' is listed twice: the first counts", node.id)));
      is_skipping_ = true;
      return;
    }
    is_skipping_ = false;
    seen_.nodes.push_back(std::move(node));
  }

  void read_port(const Line& line) {
    if (seen_.nodes.empty() || is_skipping_) return;
    const auto number = number_of(line.text.substr(1), 10);
    std::size_t at = 0;
    FabricPort port;
    port.peer = quoted(line.text, at);
    if (const auto open = line.text.find('[', at); open != std::string_view::npos && open < at + 2)
      port.peer_port =
          static_cast<int>(std::clamp<std::int64_t>(number_of(line.text.substr(open + 1), 10).value_or(0), 0, 4096));
    if (auto comment = line.text.find('#'); comment != std::string_view::npos) {
      port.gbit_per_s = rate_of(line.text.substr(comment));
      port.peer_description = quoted(line.text, comment);
    }
    port.place = source_.at(line.number);
    if (!number || *number < 1 || *number > 4096 || port.peer.empty()) {
      out_.findings.push_back(source_.warning(port.place, "this line names no port and its peer: left out"));
      return;
    }
    seen_.nodes.back().ports[static_cast<int>(*number)] = std::move(port);
  }

  const Source& source_;
  Inventory& out_;
  FabricSeen seen_;
  std::set<std::string> ids_;
  int devid_ = 0;  ///< of the node whose record begins; 0 = not said
  bool is_skipping_ = false;
};

}  // namespace

Result<void> read_ibnetdiscover(const Source& source, Inventory& out) { return IbReader(source, out).read(); }

namespace {

Diagnostics bad_list(const Source& source, int line, std::string_view list) {
  return {source.error(source.at(line),
                       fmt::format("'{}' is no list of hosts, expected e.g. node[01-04,7]", list.substr(0, 60)))};
}

/// "SwitchName=s0 Nodes=dev[0-5]": one switch per line, `\` joins lines.
Result<void> read_conf(const Source& source, Inventory& out) {
  const Lines lines(source.text());
  PlacementSeen seen;
  seen.place = source.at(1);
  std::string joined;
  int first = 0;
  for (const auto& line : lines.all()) {
    if (joined.empty()) first = line.number;
    auto text = line.text.substr(0, line.text.find('#'));
    const bool goes_on = trimmed(text).ends_with('\\');
    joined += goes_on ? trimmed(text).substr(0, trimmed(text).size() - 1) : text;
    if (goes_on) continue;
    PlacementSwitch one;
    one.place = source.at(first);
    for (const auto word : words_of(joined)) {
      const auto equals = word.find('=');
      if (equals == std::string_view::npos) continue;
      const auto key = lower(word.substr(0, equals));
      const auto value = word.substr(equals + 1);
      if (key == "switchname" || key == "blockname") one.name = value;
      if (key == "blockname") seen.is_block = true;
      if (key != "nodes" && key != "switches") continue;
      auto names = expand_hosts(value);
      if (!names) return tl::unexpected(bad_list(source, first, value));
      (key == "nodes" ? one.hosts : one.children) = std::move(*names);
    }
    joined.clear();
    if (!one.name.empty()) seen.switches.push_back(std::move(one));
  }
  if (seen.switches.empty())
    return tl::unexpected(Diagnostics{source.error(source.at(1), "no SwitchName and no BlockName in this file")});
  out.placements.push_back(std::move(seen));
  return {};
}

/// yaml-cpp descends by recursion: what no person writes is refused before.
std::optional<Diagnostic> too_deep(const Source& source) {
  int brackets = 0, line = 1;
  std::size_t indent = 0, dashes = 0;
  bool at_start = true;
  for (const char c : source.text()) {
    if (c == '\n') {
      ++line;
      indent = dashes = 0;
      at_start = true;
      continue;
    }
    if (c == '[' || c == '{') ++brackets;
    if (c == ']' || c == '}') --brackets;
    if (at_start && c == ' ') ++indent;
    if (at_start && (c == '-' || c == '?')) ++dashes;
    if (c != ' ' && c != '-' && c != '?') at_start = false;
    if (brackets > k_most_levels || indent > 4 * k_most_levels || dashes > k_most_levels)
      return source.error(source.at(line), fmt::format("nested deeper than {}", k_most_levels));
  }
  return std::nullopt;
}

std::string scalar(const YAML::Node& node) { return node && node.IsScalar() ? node.Scalar() : std::string(); }

Result<PlacementSeen> tree_of(const Source& source, const YAML::Node& topology) {
  PlacementSeen seen;
  const auto tree = topology["tree"];
  const auto block = topology["block"];
  seen.is_block = !tree && block;
  const auto list = tree ? tree["switches"] : block ? block["blocks"] : YAML::Node();
  if (!list || !list.IsSequence()) return seen;
  for (const YAML::Node& entry : list) {
    if (!entry.IsMap()) continue;
    PlacementSwitch one;
    one.name = scalar(entry[seen.is_block ? "block" : "switch"]);
    const int line = entry.Mark().line + 1;
    one.place = source.at(line);
    for (const auto* key : {"nodes", "children"}) {
      const auto text = scalar(entry[key]);
      auto names = expand_hosts(text);
      if (!names) return tl::unexpected(bad_list(source, line, text));
      (key == std::string_view("nodes") ? one.hosts : one.children) = std::move(*names);
    }
    if (!one.name.empty()) seen.switches.push_back(std::move(one));
  }
  return seen;
}

Diagnostics yaml_error(const Source& source, const YamlFault& fault) {
  return {source.error(source.at(fault.line, fault.column), fault.message, fault.hint)};
}

Result<void> read_yaml(const Source& source, Inventory& out) {
  if (auto deep = too_deep(source)) return tl::unexpected(Diagnostics{*deep});
  std::vector<std::string> lines;
  for (const auto line : split(source.text(), '\n')) lines.emplace_back(line);
  if (const auto quote = unclosed_quote(lines)) return tl::unexpected(yaml_error(source, *quote));
  try {
    const auto document = YAML::Load(std::string(source.text()));
    YAML::Node chosen;
    if (document.IsSequence()) {
      for (const YAML::Node& one : document) {
        if (!one.IsMap()) continue;
        const bool is_default = scalar(one["cluster_default"]) == "true";
        if (!chosen.IsMap() || is_default) chosen = one;
        if (is_default) break;
      }
    } else if (document.IsMap()) {
      chosen = document;
    }
    if (chosen.IsMap()) {
      auto seen = tree_of(source, chosen);
      if (!seen) return tl::unexpected(seen.error());
      if (!seen->switches.empty()) {
        seen->place = source.at(1);
        out.placements.push_back(std::move(*seen));
        return {};
      }
    }
  } catch (const YAML::Exception& broken) {
    const auto fault = yaml_fault(lines, broken.msg, broken.mark.line + 1, broken.mark.column + 1);
    return tl::unexpected(yaml_error(source, fault));
  }
  return tl::unexpected(Diagnostics{
      source.error(source.at(1), "no tree of switches and no blocks in this file", "flat topologies name no switch")});
}

}  // namespace

Result<void> read_slurm(const Source& source, Inventory& out) {
  const auto text = lower(source.text());
  const bool is_conf = has(text, "switchname=") || has(text, "blockname=");
  return is_conf ? read_conf(source, out) : read_yaml(source, out);
}

}  // namespace fabricast::import
