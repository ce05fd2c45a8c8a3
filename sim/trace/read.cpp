// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "base/text.hpp"
#include "trace/reading.hpp"

namespace fabricast {

namespace {

using trace::fault;

/// What LogGOPSim's txt2bin writes begins with this number, little-endian [spcl/LogGOPSim2, simulator/Parser.hpp].
constexpr std::string_view k_goal_binary("\x7f\x10\0\0", 4);

bool is_json(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
}

/// x.12.et, x.12.json -> 12; -1 without a number.
long rank_in_name(const std::string& name) {
  const auto suffix = name.rfind('.');
  if (suffix == std::string::npos) return -1;
  auto begin = suffix;
  while (begin > 0 && name[begin - 1] >= '0' && name[begin - 1] <= '9') --begin;
  long out = -1;
  std::from_chars(name.data() + begin, name.data() + suffix, out);
  return out;
}

Result<Trace> read_chakra(std::vector<const TraceFile*> files, int copies) {
  std::stable_sort(files.begin(), files.end(), [](const TraceFile* a, const TraceFile* b) {
    return rank_in_name(a->name) < rank_in_name(b->name);
  });
  Trace out;
  out.format = "chakra";
  std::size_t ops = 0;
  const auto num_ranks = files.size() == 1 && copies > 0 ? static_cast<std::size_t>(copies) : files.size();
  for (std::size_t rank = 0; rank < num_ranks; ++rank) {
    if (rank >= files.size()) {
      out.ranks.push_back(out.ranks.front());
      ops += out.ranks.front().size();
      if (ops > trace::k_most_ops)
        return fault({files[0]->name, 0, 0}, fmt::format("more than {} operations", trace::k_most_ops),
                     "fewer --ranks");
      continue;
    }
    const auto& file = *files[rank];
    auto nodes = trace::is_chakra_binary(file.text) ? trace::read_chakra_binary(file) : trace::read_chakra_json(file);
    if (!nodes) return tl::unexpected(nodes.error());
    auto converted = trace::chakra_ops(*nodes, file, static_cast<int>(rank));
    if (!converted) return tl::unexpected(converted.error());
    ops += converted->size();
    if (ops > trace::k_most_ops)
      return fault({file.name, 0, 0}, fmt::format("more than {} operations", trace::k_most_ops), "fewer ranks");
    out.ranks.push_back(std::move(*converted));
  }
  return out;
}

}  // namespace

Result<Trace> read_trace(const std::vector<TraceFile>& files, int copies) {
  if (files.empty()) return fault({}, "no trace", "one GOAL schedule, or Chakra traces");
  std::vector<const TraceFile*> chakra;
  for (const auto& file : files) {
    if (file.text.size() > trace::k_most_bytes)
      return fault(
          {file.name, 0, 0},
          fmt::format("{} is more than 256 MiB", to_string(Bytes{static_cast<std::int64_t>(file.text.size())})),
          "replay a part of the trace");
    if (file.text.starts_with("\x1f\x8b")) return fault({file.name, 0, 0}, "a compressed file", "gunzip it first");
    if (file.text.starts_with(k_goal_binary))
      return fault({file.name, 0, 0}, "a binary GOAL schedule, as LogGOPSim's txt2bin writes it",
                   "give the text that txt2bin was given");
    if (trace::is_chakra_binary(file.text) || is_json(file.text)) {
      chakra.push_back(&file);
    } else if (files.size() > 1) {
      return fault({file.name, 0, 0}, "a GOAL schedule beside other files", "a schedule is one file with all ranks");
    } else if (copies > 0) {
      return fault({file.name, 0, 0}, "a GOAL schedule says its number of ranks", "leave --ranks out");
    } else if (const auto bad = first_not_utf8(file.text); bad != std::string::npos) {
      return fault({file.name, 0, 0}, fmt::format("byte {} is no text", bad), "a GOAL schedule or a Chakra trace");
    } else {
      return trace::read_goal(file);
    }
  }
  if (chakra.size() > 1 && copies > 0)
    return fault({chakra[1]->name, 0, 0}, "several traces and a number of equal ranks",
                 "leave --ranks out, or give one trace");
  return read_chakra(std::move(chakra), copies);
}

}  // namespace fabricast
