// SPDX-License-Identifier: Apache-2.0
// GOAL schedules in text, as LogGOPSim's txt2bin reads them [spcl/LogGOPSim, README and schedgen]:
//
//   num_ranks 2
//   rank 0 {
//     l1: calc 100 cpu 1
//     l2: send 1024b to 1 tag 5
//     l2 requires l1
//   }
//
// calc counts nanoseconds. `requires`: after the other has ended; `irequires`: after it has started. cpu: operations of
// a cpu run one at a time; nic is read and ignored, the adapters are those of the topology.
#include <fmt/format.h>

#include <charconv>
#include <unordered_map>

#include "base/text.hpp"
#include "trace/reading.hpp"

namespace fabricast::trace {

namespace {

std::optional<std::int64_t> number(std::string_view text, std::int64_t least, std::int64_t most) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc{} || end != text.data() + text.size() || out < least || out > most) return std::nullopt;
  return out;
}

class GoalReader {
 public:
  explicit GoalReader(const TraceFile& file) : file_(file) {
    out_.format = "goal";
    out_.is_on_gpus = false;
  }

  Result<Trace> read() {
    std::string_view text = file_.text;
    while (!text.empty() && faults_.empty()) {
      const auto end = text.find('\n');
      ++line_;
      one_line(text.substr(0, end));
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    if (faults_.empty() && !has_count_) fail("the file has no num_ranks", "begin with `num_ranks N`");
    if (faults_.empty() && rank_ >= 0) fail(fmt::format("rank {} is cut off", rank_), "close it with `}`");
    if (!faults_.empty()) return tl::unexpected(faults_);
    return std::move(out_);
  }

 private:
  void fail(const std::string& message, const std::string& fix) {
    faults_.push_back(make_error_at({file_.name, line_, 1}, message, fix));
  }

  static std::string shown(std::string_view text) { return printable(text.substr(0, 60)); }

  void one_line(std::string_view raw) {
    auto line = raw.substr(0, raw.find("//"));
    line = line.substr(0, line.find('#'));
    auto parts = words_of(line);
    if (parts.empty()) return;
    if (parts[0] == "num_ranks") return read_count(parts);
    if (parts[0] == "rank") return begin_rank(parts);
    if (parts[0] == "}") return end_rank();
    if (rank_ < 0)
      return fail(fmt::format("'{}' stands outside of a rank", shown(line)), "write it between `rank N {` and `}`");
    const auto colon = parts[0].find(':');
    if (colon != std::string_view::npos) return read_op(parts[0].substr(0, colon), parts);
    if (parts.size() >= 3 && parts[1] == ":") {
      parts.erase(parts.begin() + 1);
      return read_op(parts[0], parts);
    }
    if (parts.size() == 3 && (parts[1] == "requires" || parts[1] == "irequires")) return read_dependency(parts);
    fail(fmt::format("'{}' is no operation and no dependency", shown(line)),
         "LABEL: calc N | LABEL: send Nb to RANK tag T | LABEL: recv Nb from RANK tag T | LABEL requires LABEL");
  }

  void read_count(const std::vector<std::string_view>& parts) {
    const auto count = parts.size() == 2 ? number(parts[1], 1, static_cast<std::int64_t>(k_most_ranks)) : std::nullopt;
    if (!count || has_count_) return fail("num_ranks wants one number from 1 to 65536, once", "num_ranks 16");
    has_count_ = true;
    out_.ranks.resize(static_cast<std::size_t>(*count));
  }

  void begin_rank(const std::vector<std::string_view>& parts) {
    const auto rank = parts.size() >= 2
                          ? number(parts[1].substr(0, parts[1].find('{')), 0, static_cast<std::int64_t>(k_most_ranks))
                          : std::nullopt;
    if (rank_ >= 0 || !rank || *rank >= static_cast<std::int64_t>(out_.ranks.size()))
      return fail(rank_ >= 0 ? fmt::format("rank {} is not closed", rank_) : "a rank that num_ranks does not count",
                  "`rank N {` with N below num_ranks, closed by `}`");
    rank_ = static_cast<int>(*rank);
    labels_.clear();
  }

  void end_rank() {
    if (rank_ < 0) return fail("'}' closes nothing", "one `}` per rank");
    for (const auto& [from, to, is_start, line] : dependencies_) {
      line_ = line;
      const auto one = labels_.find(from), other = labels_.find(to);
      if (one == labels_.end() || other == labels_.end())
        return fail(fmt::format("rank {} has no operation '{}'", rank_, shown(one == labels_.end() ? from : to)),
                    "label it, or leave the dependency out");
      auto& op = out_.ranks[static_cast<std::size_t>(rank_)][static_cast<std::size_t>(one->second)];
      (is_start ? op.with : op.after).push_back(other->second);
    }
    dependencies_.clear();
    rank_ = -1;
  }

  void read_dependency(const std::vector<std::string_view>& parts) {
    dependencies_.push_back({std::string(parts[0]), std::string(parts[2]), parts[1] == "irequires", line_});
  }

  void read_op(std::string_view label, const std::vector<std::string_view>& parts) {
    auto& ops = out_.ranks[static_cast<std::size_t>(rank_)];
    if (++num_ops_ > k_most_ops) return fail(fmt::format("more than {} operations", k_most_ops), "replay a part of it");
    if (!labels_.emplace(std::string(label), static_cast<int>(ops.size())).second)
      return fail(fmt::format("rank {} has '{}' twice", rank_, shown(label)), "labels of a rank differ");
    TraceOp op;
    op.place = {file_.name, line_, 1};
    op.name = shown(label);
    if (parts.size() >= 3 && parts[1] == "calc") {
      read_calc(parts, op);
    } else if (parts.size() >= 5 && (parts[1] == "send" || parts[1] == "recv")) {
      read_message(parts, op);
    } else {
      fail(fmt::format("'{}' is no calc, send or recv", shown(parts.size() > 1 ? parts[1] : parts[0])),
           "LABEL: calc N | LABEL: send Nb to RANK tag T | LABEL: recv Nb from RANK tag T");
    }
    ops.push_back(std::move(op));
  }

  void read_calc(const std::vector<std::string_view>& parts, TraceOp& op) {
    const auto ns = number(parts[2], 0, k_longest_us * 1000);
    if (!ns) return fail(fmt::format("calc of '{}'", shown(parts[2])), "a whole number of nanoseconds up to 1e15");
    op.time = from_seconds(static_cast<double>(*ns) * 1e-9);
    read_clauses(parts, 3, op);
  }

  void read_message(const std::vector<std::string_view>& parts, TraceOp& op) {
    op.kind = parts[1] == "send" ? TraceOpKind::send : TraceOpKind::receive;
    const auto bytes =
        parts[2].ends_with('b') ? number(parts[2].substr(0, parts[2].size() - 1), 0, k_most_message) : std::nullopt;
    const auto peer = number(parts[4], 0, static_cast<std::int64_t>(out_.ranks.size()) - 1);
    if (!bytes) return fail(fmt::format("a message of '{}'", shown(parts[2])), "bytes with a b: 1024b");
    if (parts[3] != (op.kind == TraceOpKind::send ? "to" : "from") || !peer || *peer == rank_)
      return fail(fmt::format("'{} {}' is no other rank", shown(parts[3]), shown(parts[4])),
                  "send Nb to RANK, recv Nb from RANK, of another rank below num_ranks");
    op.size = Bytes{*bytes};
    op.peer = static_cast<int>(*peer);
    read_clauses(parts, 5, op);
  }

  void read_clauses(const std::vector<std::string_view>& parts, std::size_t i, TraceOp& op) {
    for (; i + 1 < parts.size(); i += 2) {
      const auto value = number(parts[i + 1], 0, std::int64_t{1} << 40);
      const bool is_known = parts[i] == "tag" || parts[i] == "cpu" || parts[i] == "nic";
      if (!value || !is_known || (parts[i] == "cpu" && *value > 1023)) break;
      if (parts[i] == "tag") op.tag = *value;
      if (parts[i] == "cpu") op.lane = static_cast<int>(*value);
    }
    if (i < parts.size())
      fail(fmt::format("'{}' behind the operation", shown(parts[i])), "tag T, cpu C (up to 1023) or nic N");
  }

  struct Dependency {
    std::string from, to;
    bool is_start = false;
    int line = 0;
  };

  const TraceFile& file_;
  Trace out_;
  Diagnostics faults_;
  bool has_count_ = false;
  int line_ = 0;
  int rank_ = -1;
  std::size_t num_ops_ = 0;
  std::unordered_map<std::string, int> labels_;
  std::vector<Dependency> dependencies_;
};

}  // namespace

Result<Trace> read_goal(const TraceFile& file) { return GoalReader(file).read(); }

}  // namespace fabricast::trace
