// SPDX-License-Identifier: Apache-2.0
// Chakra nodes to operations. Compute nodes take their recorded duration; collectives are those of NCCL; loads, stores
// and metadata take no time. Sizes: comm_size counts what a rank hands in, nccl-tests' all-gather what comes out.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.hpp"
#include "trace/reading.hpp"

namespace fabricast::trace {

namespace {

using Json = nlohmann::json;

enum : int { k_load = 2, k_store = 3, k_compute = 4, k_send = 5, k_receive = 6, k_collective = 7 };
constexpr int k_host_lane = -1;
constexpr std::size_t k_most_levels = 64;

std::optional<std::int64_t> whole(const std::string& text) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error == std::errc{} && end == text.data() + text.size()) return out;
  return std::nullopt;
}

std::string scalar_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_boolean()) return value.get<bool>() ? "1" : "0";
  return value.is_number() ? value.dump() : std::string();
}

/// Of a field in protobuf's JSON names, or in those of the file it was made from.
const Json* field(const Json& object, const char* camel, const char* snake) {
  const auto one = object.find(camel);
  if (one != object.end()) return &*one;
  const auto other = object.find(snake);
  return other == object.end() ? nullptr : &*other;
}

int type_of(const Json& value) {
  static const std::map<std::string, int> names{{"INVALID_NODE", 0},           {"METADATA_NODE", 1},
                                                {"MEM_LOAD_NODE", k_load},     {"MEM_STORE_NODE", k_store},
                                                {"COMP_NODE", k_compute},      {"COMM_SEND_NODE", k_send},
                                                {"COMM_RECV_NODE", k_receive}, {"COMM_COLL_NODE", k_collective}};
  const auto text = scalar_text(value);
  const auto known = names.find(text);
  return known != names.end() ? known->second : static_cast<int>(whole(text).value_or(0));
}

bool read_deps(const Json& object, const char* camel, const char* snake, ChakraNode& node) {
  const auto* list = field(object, camel, snake);
  if (list == nullptr) return true;
  if (!list->is_array()) return false;
  for (const auto& one : *list) {
    const auto id = whole(scalar_text(one));
    if (!id || *id < 0) return false;
    node.after.push_back(static_cast<std::uint64_t>(*id));
  }
  return true;
}

void read_attributes(const Json& object, ChakraNode& node) {
  const auto* list = field(object, "attr", "attrs");
  if (list == nullptr || !list->is_array()) return;
  for (const auto& one : *list) {
    if (!one.is_object() || !one.contains("name")) continue;
    std::string value;
    for (const auto& [key, content] : one.items()) {
      if (key != "name" && key != "docString" && key != "doc_string") value = scalar_text(content);
    }
    node.attributes[scalar_text(one["name"])] = value;
  }
}

bool node_from_json(const Json& object, ChakraNode& node) {
  const auto* id = field(object, "id", "id");
  const auto number = id == nullptr ? std::optional<std::int64_t>(0) : whole(scalar_text(*id));
  if (!number || *number < 0) return false;
  node.id = static_cast<std::uint64_t>(*number);
  if (const auto* name = field(object, "name", "name")) node.name = scalar_text(*name);
  if (const auto* type = field(object, "type", "type")) node.type = type_of(*type);
  if (const auto* time = field(object, "durationMicros", "duration_micros"))
    node.microseconds = whole(scalar_text(*time)).value_or(-1);
  read_attributes(object, node);
  return read_deps(object, "ctrlDeps", "ctrl_deps", node) && read_deps(object, "dataDeps", "data_deps", node);
}

/// What PyTorch writes before it is converted; empty: not that.
std::string other_format(const Json& object) {
  if (object.contains("nodes") && object["nodes"].is_array()) return "PyTorch's execution trace of the host";
  if (object.contains("traceEvents")) return "a trace of PyTorch's profiler";
  return "";
}

/// Files: one number per rank before the suffix, in any order.
const std::map<std::int64_t, Benchmark>& collectives() {
  static const std::map<std::int64_t, Benchmark> all{
      {0, Benchmark::all_reduce_perf},     {1, Benchmark::reduce_perf},    {2, Benchmark::all_gather_perf},
      {5, Benchmark::broadcast_perf},      {6, Benchmark::alltoall_perf},  {7, Benchmark::reduce_scatter_perf},
      {8, Benchmark::reduce_scatter_perf}, {9, Benchmark::all_reduce_perf}};
  return all;
}
constexpr std::int64_t k_barrier = 9;
constexpr std::int64_t k_barrier_bytes = 4;  ///< PyTorch's barrier is an all-reduce of one element

class Converter {
 public:
  Converter(const std::vector<ChakraNode>& nodes, int rank) : nodes_(nodes), rank_(rank) {}

  Result<std::vector<TraceOp>> convert() {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!numbers_.emplace(nodes_[i].id, static_cast<int>(i)).second)
        return fail(nodes_[i], "has the id of an earlier node", "ids of a file's nodes differ");
    }
    std::vector<TraceOp> out;
    for (const auto& node : nodes_) {
      TraceOp op;
      op.place = node.place;
      op.name = node.name.empty() ? fmt::format("node {}", node.id) : printable(node.name.substr(0, 200));
      if (auto fault = fill(node, op)) return tl::unexpected(Diagnostics{std::move(*fault)});
      for (const auto id : std::set(node.after.begin(), node.after.end())) {
        const auto known = numbers_.find(id);
        if (known == numbers_.end())
          return fail(node, fmt::format("waits for node {}, which the file does not hold", id),
                      "a trace holds all nodes that others wait for");
        op.after.push_back(known->second);
      }
      out.push_back(std::move(op));
    }
    return out;
  }

 private:
  [[nodiscard]] Diagnostic error(const ChakraNode& node, const std::string& what, const std::string& fix) const {
    return make_error_at(node.place, fmt::format("node {} '{}' {}", node.id, printable(node.name.substr(0, 80)), what),
                         fix);
  }
  [[nodiscard]] tl::unexpected<Diagnostics> fail(const ChakraNode& node, const std::string& what,
                                                 const std::string& fix) const {
    return tl::unexpected(Diagnostics{error(node, what, fix)});
  }
  static std::optional<std::int64_t> number(const ChakraNode& node, const char* name) {
    const auto known = node.attributes.find(name);
    return known == node.attributes.end() ? std::nullopt : whole(known->second);
  }
  static std::string text(const ChakraNode& node, const char* name) {
    const auto known = node.attributes.find(name);
    return known == node.attributes.end() ? std::string() : known->second;
  }

  std::optional<Diagnostic> fill(const ChakraNode& node, TraceOp& op) const {
    if (node.type == k_send || node.type == k_receive) return fill_message(node, op);
    if (node.type == k_collective) return fill_collective(node, op);
    const auto host = text(node, "is_cpu_op");
    const bool is_host = host == "1" || host == "true" || host == "True";
    const auto stream = std::clamp<std::int64_t>(number(node, "stream").value_or(0), 0, 1023);
    op.lane = is_host ? k_host_lane : static_cast<int>(stream);
    if (node.microseconds < 0 || node.microseconds > k_longest_us)
      return error(node, fmt::format("takes {} us", node.microseconds), "durations are 0 to 1e12 us");
    if (node.type == k_compute) op.time = from_seconds(static_cast<double>(node.microseconds) * 1e-6);
    return std::nullopt;
  }

  std::optional<Diagnostic> fill_size(const ChakraNode& node, TraceOp& op) const {
    const auto size = number(node, "comm_size");
    if (!size || *size < 0 || *size > k_most_message)
      return error(node, size ? fmt::format("exchanges {} B", *size) : "has no comm_size",
                   "give comm_size in bytes, up to 2^50");
    op.size = Bytes{*size};
    return std::nullopt;
  }

  std::optional<Diagnostic> fill_message(const ChakraNode& node, TraceOp& op) const {
    op.kind = node.type == k_send ? TraceOpKind::send : TraceOpKind::receive;
    const auto* key = node.type == k_send ? "comm_dst" : "comm_src";
    const auto peer = number(node, key);
    if (!peer || *peer < 0 || *peer >= static_cast<std::int64_t>(k_most_ranks) || *peer == rank_)
      return error(node, peer ? fmt::format("has {} {} on rank {}", key, *peer, rank_) : fmt::format("has no {}", key),
                   "the other rank's number");
    op.peer = static_cast<int>(*peer);
    op.tag = number(node, "comm_tag").value_or(0);
    return fill_size(node, op);
  }

  std::optional<Diagnostic> fill_collective(const ChakraNode& node, TraceOp& op) const {
    op.kind = TraceOpKind::collective;
    const auto type = number(node, "comm_type");
    const auto known = collectives().find(type.value_or(-1));
    if (known == collectives().end())
      return error(
          node, type ? fmt::format("is collective {}, which NCCL has not", *type) : "has no comm_type",
          "comm_type 0 all-reduce, 1 reduce, 2 all-gather, 5 broadcast, 6 all-to-all, 7 reduce-scatter, 9 barrier");
    op.collective = known->second;
    op.group = printable(text(node, "pg_name"));
    if (*type == k_barrier) {
      op.size = Bytes{k_barrier_bytes};
      return std::nullopt;
    }
    return fill_size(node, op);
  }

  const std::vector<ChakraNode>& nodes_;
  int rank_;
  std::map<std::uint64_t, int> numbers_;
};

}  // namespace

Result<std::vector<ChakraNode>> read_chakra_json(const TraceFile& file) {
  std::vector<ChakraNode> out;
  const std::string_view text = file.text;
  int line = 1;
  std::size_t counted = 0;
  for (std::size_t begin = text.find_first_of('{'); begin != std::string_view::npos;) {
    line += static_cast<int>(std::count(text.begin() + static_cast<std::ptrdiff_t>(counted),
                                        text.begin() + static_cast<std::ptrdiff_t>(begin), '\n'));
    counted = begin;
    const SourceLocation here{file.name, line, 1};
    const auto end = json_extent(text, begin, k_most_levels).end;
    const auto object = end == std::string_view::npos ? Json(Json::value_t::discarded)
                                                      : Json::parse(text.substr(begin, end - begin), nullptr, false);
    if (!object.is_object())
      return fault(here, "an object that is cut off or no JSON", "one object per node, as chakra_jsonizer prints them");
    begin = text.find_first_of('{', end);
    const bool is_metadata =
        field(object, "version", "version") != nullptr && !object.contains("id") && !object.contains("type");
    if (is_metadata) continue;
    if (auto other = other_format(object); !other.empty())
      return fault(here, "this is " + other + ", no Chakra trace",
                   "`chakra_trace_link` joins both of PyTorch's traces, `chakra_converter PyTorch` makes Chakra's");
    if (!object.contains("id") && !object.contains("type") && !object.contains("name"))
      return fault(here, "an object that is no node: neither id nor type nor name",
                   "one object per node, as chakra_jsonizer prints them");
    ChakraNode node;
    node.place = here;
    if (!node_from_json(object, node))
      return fault(here, "a node whose id or dependencies are no numbers", "ids are whole numbers");
    out.push_back(std::move(node));
    if (out.size() > k_most_ops)
      return fault(here, fmt::format("more than {} nodes", k_most_ops), "replay a part of the trace");
  }
  if (out.empty())
    return fault({file.name, 0, 0}, "no node of a Chakra trace", "one object per node, as chakra_jsonizer prints them");
  return out;
}

Result<std::vector<TraceOp>> chakra_ops(const std::vector<ChakraNode>& nodes, const TraceFile& /*file*/, int rank) {
  return Converter(nodes, rank).convert();
}

}  // namespace fabricast::trace
