// SPDX-License-Identifier: Apache-2.0
// Traces as their producers write them: GOAL text; Chakra's nodes as protobuf and as chakra_jsonizer's JSON.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <utility>
#include <vector>

namespace fabricast::test {

struct ChakraNode {
  int id = 0, type = 4;  ///< COMP_NODE
  std::string name;
  long microseconds = 0;
  std::vector<int> after;
  std::vector<std::pair<std::string, std::string>> attributes;  ///< numbers as int64, others as text
};

inline std::string varint(unsigned long value) {
  std::string out;
  for (; value >= 0x80; value >>= 7U) out += static_cast<char>((value & 0x7fU) | 0x80U);
  return out + static_cast<char>(value);
}
inline std::string field(int number, const std::string& bytes) {
  return varint(static_cast<unsigned long>(number) * 8 + 2) + varint(bytes.size()) + bytes;
}
inline std::string field(int number, unsigned long value) {
  return varint(static_cast<unsigned long>(number) * 8) + varint(value);
}
inline bool is_whole(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

inline std::string protobuf(const std::vector<ChakraNode>& nodes) {
  const auto metadata = field(1, "0.0.4");
  std::string out = varint(metadata.size()) + metadata;
  for (const auto& one : nodes) {
    std::string node = field(1, static_cast<unsigned long>(one.id)) + field(2, one.name) +
                       field(3, static_cast<unsigned long>(one.type));
    std::string packed;
    for (const int id : one.after) packed += varint(static_cast<unsigned long>(id));
    if (!packed.empty()) node += field(5, packed);
    node += field(7, static_cast<unsigned long>(one.microseconds));
    for (const auto& [name, value] : one.attributes)
      node += field(10, field(1, name) + (is_whole(value) ? field(9, std::stoul(value)) : field(29, value)));
    out += varint(node.size()) + node;
  }
  return out;
}

inline std::string json(const std::vector<ChakraNode>& nodes) {
  static const char* const types[] = {"INVALID_NODE", "METADATA_NODE",  "MEM_LOAD_NODE",  "MEM_STORE_NODE",
                                      "COMP_NODE",    "COMM_SEND_NODE", "COMM_RECV_NODE", "COMM_COLL_NODE"};
  std::string out = "{\n  \"version\": \"0.0.4\"\n}\n";
  for (const auto& one : nodes) {
    std::vector<std::string> deps, attributes;
    for (const int id : one.after) deps.push_back(fmt::format("\"{}\"", id));
    for (const auto& [name, value] : one.attributes)
      attributes.push_back(
          fmt::format("{{\"name\": \"{}\", \"{}\": \"{}\"}}", name, is_whole(value) ? "int64Val" : "stringVal", value));
    out += fmt::format(
        "{{\n  \"id\": \"{}\",\n  \"name\": \"{}\",\n  \"type\": \"{}\",\n  \"dataDeps\": [{}],\n  \"durationMicros\": "
        "\"{}\",\n  \"attr\": [{}]\n}}\n",
        one.id, one.name, types[one.type], fmt::join(deps, ", "), one.microseconds, fmt::join(attributes, ", "));
  }
  return out;
}

/// All-reduce of `size` bytes by a ring: n - 1 steps that reduce, which takes `reducing` ns, and n - 1 that gather.
inline std::string goal_ring(int n, long size, long reducing) {
  std::string out = fmt::format("num_ranks {}\n", n);
  for (int r = 0; r < n; ++r) {
    out += fmt::format("rank {} {{\n", r);
    for (int s = 0; s < 2 * (n - 1); ++s) {
      out += fmt::format("s{0}: send {1}b to {2} tag {0}\nr{0}: recv {1}b from {3} tag {0}\n", s, size / n, (r + 1) % n,
                         (r + n - 1) % n);
      if (s < n - 1) out += fmt::format("c{0}: calc {1}\nc{0} requires r{0}\n", s, reducing);
      if (s == 0) continue;
      const auto before = fmt::format("{}{}", s - 1 < n - 1 ? "c" : "r", s - 1);
      out += fmt::format("s{0} requires {1}\ns{0} requires s{2}\nr{0} requires {1}\n", s, before, s - 1);
    }
    out += "}\n";
  }
  return out;
}

}  // namespace fabricast::test
