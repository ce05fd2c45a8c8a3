// SPDX-License-Identifier: Apache-2.0
// Running configuration of an Onyx switch to the lossless settings of a fabric: pools (both ways), trust, maps,
// marking, schedulers, priority flow control. Lines that say nothing of these are passed over; a priority that only one
// of pool and flow control knows is a warning, because it is not lossless.
#include "import/onyx.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

namespace fabricast::import {

namespace {

using Words = std::vector<std::string_view>;

constexpr int k_usual_dscp = 26;  // of RDMA packets, in the RoCE guides

struct Marking {
  std::int64_t min = 0, max = 0;  ///< KB
};

class OnyxReader {
 public:
  explicit OnyxReader(const Source& source) : source_(source) {}

  Result<ImportedCluster> read() {
    const Lines lines(source_.text());
    for (const auto& line : lines.all()) {
      number_ = line.number;
      auto words = words_of(line.text);
      if (words.empty() || words[0].starts_with("#") || words[0] == "no") continue;
      read_line(words);
    }
    if (num_read_ == 0)
      return tl::unexpected(
          Diagnostics{source_.error(source_.at(1), "no line of this configuration is of lossless traffic",
                                    "give what `show running-config` prints: traffic pool, dcb, qos lines")});
    check();
    return ImportedCluster{yaml(), std::move(findings_)};
  }

 private:
  /// Words behind `interface ethernet 1/1-1/32`; all of them on other lines.
  static Words without_ports(const Words& words) {
    if (words.size() < 3 || words[0] != "interface") return words;
    return {words.begin() + 3, words.end()};
  }

  void read_line(const Words& all) {
    const auto words = without_ports(all);
    const bool is_port = words.size() != all.size();
    const auto is = [&](std::size_t at, std::string_view word) { return at < words.size() && words[at] == word; };
    ++num_read_;
    if (is(0, "traffic") && is(1, "pool")) return read_pool(words);
    if (is(0, "qos") && is(1, "trust") && words.size() > 2) return read_trust(words[2]);
    if (is(0, "qos") && is(1, "map") && is(2, "dscp")) return read_dscp(words);
    if (is(0, "pool") && is(2, "size")) return read_size(words);
    if (is(0, "ingress-buffer")) return read_buffer(words);
    if (is(0, "traffic-class") && words.size() > 2) return read_class(words);
    if (is(0, "dcb") && is(1, "priority-flow-control"))
      return read_pfc(words, is_port ? fmt::format("{} {}", all[1], all[2]) : std::string());
    --num_read_;
  }

  /// traffic pool NAME type lossless | memory percent X | map switch-priority N...
  void read_pool(const Words& words) {
    if (words.size() < 5) return;
    const std::string name(words[2]);
    if (words[3] == "type") {
      types_[name] = std::string(words[4]);
    } else if (words[3] == "memory" && words.size() > 5) {
      const double percent = decimal_of(words[5]);
      if (percent <= 0 || percent > 100) return warn(fmt::format("'{}' percent of the memory", words[5]), "1 to 100");
      percents_[name] = percent;
    } else if (words[3] == "map" && words.size() > 5) {
      for (std::size_t at = 5; at < words.size(); ++at)
        if (const auto priority = value(words, at, 0, 7)) maps_[name].insert(static_cast<int>(*priority));
    }
  }

  /// qos map dscp D [to] switch-priority P
  void read_dscp(const Words& words) {
    const std::size_t at = words.size() > 4 && words[4] == "to" ? 5 : 4;
    if (at >= words.size() || words[at] != "switch-priority") return;
    const auto dscp = value(words, 3, 0, 63);
    const auto priority = value(words, at + 1, 0, 7);
    if (dscp && priority) dscp_[static_cast<int>(*dscp)] = static_cast<int>(*priority);
  }

  /// Advanced buffer management: pool NAME size BYTES type dynamic
  void read_size(const Words& words) {
    if (const auto size = value(words, 3, 1, 1'000'000'000)) sizes_[std::string(words[1])] = *size;
  }

  /// ingress-buffer iPort.pgN bind switch-priority P... | map pool NAME type lossless ... shared alpha A
  void read_buffer(const Words& words) {
    if (words.size() < 5) return;
    const std::string group(words[1]);
    if (words[2] == "bind" && words[3] == "switch-priority") {
      for (std::size_t at = 4; at < words.size(); ++at)
        if (const auto priority = value(words, at, 0, 7)) bound_[group].insert(static_cast<int>(*priority));
      return;
    }
    const auto after = [&](std::string_view word) {
      const auto found = std::ranges::find(words, word);
      return found == words.end() || found + 1 == words.end() ? std::string_view{} : *(found + 1);
    };
    if (words[2] != "map" || after("type") != "lossless") return;
    lossless_groups_.insert(group);
    lossless_pools_.insert(std::string(after("pool")));
    if (const double alpha = decimal_of(after("alpha")); alpha > 0) alpha_ = alpha;
  }

  void read_trust(std::string_view word) {
    const auto level = lower(word);
    if (level != "l2" && level != "l3" && level != "both")
      return warn(fmt::format("trust '{}'", word), "L2, L3 or both");
    const std::string trust = level == "l2" ? "pcp" : "dscp";
    if (!trust_.empty() && trust != trust_) warn("ports trust different marks", "the last one counts");
    trust_ = trust;
  }

  /// traffic-class N congestion-control ecn minimum-absolute A maximum-absolute B | dcb ets strict | dcb ets wrr W
  void read_class(const Words& words) {
    const auto number = value(words, 1, 0, 7);
    if (!number) return;
    const int priority = static_cast<int>(*number);
    const auto at = [&](std::string_view word) {
      const auto found = std::ranges::find(words, word);
      return found == words.end() ? words.size() : static_cast<std::size_t>(found - words.begin());
    };
    if (const auto low = at("minimum-absolute"), high = at("maximum-absolute");
        low < words.size() && high < words.size()) {
      const auto min = value(words, low + 1, 0, 1'000'000);
      const auto max = value(words, high + 1, 0, 1'000'000);
      if (min && max) marks_[priority] = {*min, *max};
    }
    if (at("strict") < words.size()) weights_[priority] = 0;
    if (const auto wrr = at("wrr"); wrr < words.size())
      if (const auto weight = value(words, wrr + 1, 1, 100)) weights_[priority] = static_cast<int>(*weight);
  }

  /// `port`: "ethernet 1/1-1/32" or "port-channel 100", empty on lines of the whole switch.
  void read_pfc(const Words& words, const std::string& port) {
    const auto is = [&](std::size_t at, std::string_view word) { return at < words.size() && words[at] == word; };
    if (is(2, "enable")) is_enabled_ = true;
    if (is(2, "priority") && is(4, "enable"))
      if (const auto priority = value(words, 3, 0, 7)) pfc_.insert(static_cast<int>(*priority));
    if (!port.empty() && is(2, "mode") && is(3, "on")) ports_.push_back(port);
  }

  /// "ethernet 1/1-1/16, port-channel 100 and 3 others".
  [[nodiscard]] std::string ports() const {
    constexpr std::size_t k_most_named = 4;
    std::vector<std::string> named;
    for (const auto& port : ports_) {
      const bool is_plain = std::ranges::all_of(port, [](char c) {
        return c == ' ' || c == '/' || c == '-' || std::isalnum(static_cast<unsigned char>(c)) != 0;
      });
      if (is_plain && named.size() < k_most_named) named.push_back(port);
    }
    const auto others = ports_.size() - named.size();
    return fmt::format("{}{}", fmt::join(named, ", "), others == 0 ? "" : fmt::format(" and {} others", others));
  }

  std::optional<std::int64_t> value(const Words& words, std::size_t at, std::int64_t low, std::int64_t high) {
    const auto number = at < words.size() ? number_of(words[at], 10) : std::nullopt;
    if (number && *number >= low && *number <= high) return number;
    warn(fmt::format("'{}' where a number is expected", at < words.size() ? words[at] : std::string_view("nothing")),
         fmt::format("{} to {}", low, high));
    return std::nullopt;
  }

  void warn(const std::string& what, const std::string& fix) {
    findings_.push_back(source_.warning(source_.at(number_), what, fix));
  }

  /// Priorities of lossless pools that PFC pauses too.
  void check() {
    std::set<int> pooled;
    for (const auto& [pool, priorities] : maps_)
      if (types_[pool] == "lossless") pooled.insert(priorities.begin(), priorities.end());
    for (const auto& group : lossless_groups_) pooled.insert(bound_[group].begin(), bound_[group].end());
    number_ = 1;
    for (const int priority : pfc_)
      if (pooled.count(priority) == 0)
        warn(fmt::format("PFC pauses priority {}, no lossless pool holds it: it is lossy", priority),
             fmt::format("traffic pool NAME map switch-priority {}", priority));
    for (const int priority : pooled) {
      if (pfc_.count(priority) == 0)
        warn(fmt::format("a lossless pool holds priority {}, PFC does not pause it: it is lossy", priority),
             fmt::format("dcb priority-flow-control priority {} enable", priority));
      else
        lossless_.push_back(priority);
    }
    if (!pfc_.empty() && !is_enabled_)
      warn("priority flow control is not enabled", "dcb priority-flow-control enable force");
    if (pfc_.empty() && (is_enabled_ || !ports_.empty()))
      warn(fmt::format("priority flow control is on{}, and no priority has it: all are lossy",
                       ports_.empty() ? "" : " at " + ports()),
           "dcb priority-flow-control priority 3 enable");
    if (!pfc_.empty() && ports_.empty())
      warn("no port has priority flow control", "interface ethernet 1/1-1/32 dcb priority-flow-control mode on force");
  }

  [[nodiscard]] std::string yaml() const {
    std::string out =
        fmt::format("# lossless settings of {}: they go below `fabric:` of a topology\nlossless:\n", source_.name());
    const bool is_pfc = is_enabled_ && !ports_.empty() && !lossless_.empty();
    const auto trust = trust_.empty() ? std::string("pcp") : trust_;
    out += fmt::format("  flow_control: {}\n", is_pfc ? "pfc" : "drop");
    if (is_pfc) {
      // Onyx decides alpha where the configuration does not.
      if (alpha_ <= 0) out += "  operating_system: onyx\n";
      out += fmt::format("  pfc: [{}]  # at {}; what the others lack goes below `ports`\n", fmt::join(lossless_, ", "),
                         ports());
      out += fmt::format("  trust: {}\n", trust);
      if (trust_.empty()) out += "  # no port says what it trusts: Onyx trusts L2\n";
      if (trust_ == "dscp") out += marks();
    } else {
      out += fmt::format("  # trust: {}; nothing is paused, so no mark of a packet decides anything\n", trust);
    }
    double percent = 0;
    for (const auto& [pool, type] : types_)
      if (type == "lossless" && percents_.contains(pool)) percent += percents_.at(pool);
    std::int64_t size = 0;
    for (const auto& pool : lossless_pools_)
      if (sizes_.contains(pool)) size += sizes_.at(pool);
    if (size > 0) out += fmt::format("  shared_buffer: {} B\n", size);
    if (percent > 0 && size == 0) out += fmt::format("  pool_share: {:g}\n", std::min(1.0, percent / 100));
    if (alpha_ > 0 && is_pfc) out += fmt::format("  alpha: {:g}\n", alpha_);
    out += marking() + scheduling();
    return out;
  }

  /// The map, and the mark that adapters write: a switch does not say it, so the one that the map makes lossless.
  [[nodiscard]] std::string marks() const {
    std::vector<std::string> pairs;
    int mark = -1;
    for (const auto& [dscp, priority] : dscp_) {
      pairs.push_back(fmt::format("{}: {}", dscp, priority));
      const bool is_lossless = std::ranges::find(lossless_, priority) != lossless_.end();
      if (is_lossless && (mark < 0 || dscp == k_usual_dscp)) mark = dscp;
    }
    if (mark < 0) return {};
    return fmt::format(
        "  dscp_to_priority: {{{}}}\n  marks: {{dscp: {}}}  # what adapters write (cma_roce_tos) is not known here\n",
        fmt::join(pairs, ", "), mark);
  }

  /// The fabric has one pair of thresholds: that of the lossless classes.
  [[nodiscard]] std::string marking() const {
    for (const auto& [priority, mark] : marks_) {
      const bool is_other = !lossless_.empty() && std::ranges::find(lossless_, priority) == lossless_.end();
      if (!is_other) return fmt::format("  ecn: {{min: {} kB, max: {} kB}}\n", mark.min, mark.max);
    }
    return "  ecn: off\n";
  }

  [[nodiscard]] std::string scheduling() const {
    if (weights_.empty()) return {};
    std::vector<std::string> parts;
    std::string strict;
    for (const auto& [priority, weight] : weights_) {
      parts.push_back(weight == 0 ? fmt::format("{}: strict", priority) : fmt::format("{}: {}", priority, weight));
      const bool is_cnp = weight == 0 && std::ranges::find(lossless_, priority) == lossless_.end();
      if (is_cnp && strict.empty())
        strict = fmt::format("  cnp_priority: {}  # the strict class, as RoCE guides have it\n", priority);
    }
    return fmt::format("  weights: {{{}}}\n{}", fmt::join(parts, ", "), strict);
  }

  const Source& source_;
  int number_ = 1, num_read_ = 0;
  std::map<std::string, std::string> types_;
  std::map<std::string, double> percents_;
  std::map<std::string, std::set<int>> maps_;
  std::map<std::string, std::int64_t> sizes_;               ///< pools of advanced buffer management, bytes
  std::map<std::string, std::set<int>> bound_;              ///< priorities of each group of a port's buffer
  std::set<std::string> lossless_groups_, lossless_pools_;  ///< those groups, and the pools below them
  double alpha_ = 0;                                        ///< of lossless groups; 0: nothing says it
  std::string trust_;
  std::map<int, int> dscp_, weights_;
  std::map<int, Marking> marks_;
  std::set<int> pfc_;
  std::vector<int> lossless_;
  std::vector<std::string> ports_;  ///< with priority flow control
  bool is_enabled_ = false;
  Diagnostics findings_;
};

}  // namespace

bool looks_like_onyx(std::string_view text) {
  const bool is_headed = has(text, "## Running database \"") && has(text, "interface ethernet ");
  return is_headed || has(text, "dcb priority-flow-control") || has(text, "traffic pool ") || has(text, "qos trust L");
}

Result<ImportedCluster> import_onyx(const ClusterSource& given) {
  const Source source(given.name, given.text);
  if (auto fault = source.limits()) return tl::unexpected(Diagnostics{*fault});
  return OnyxReader(source).read();
}

/// Beside other sources it has nothing to give: the settings are a part of a topology by themselves.
Result<void> read_onyx(const Source& source, Inventory&) {
  return tl::unexpected(Diagnostics{source.error(source.at(1), "a switch's configuration beside other sources",
                                                 "import it alone: it gives the `lossless:` part of a topology")});
}

}  // namespace fabricast::import
