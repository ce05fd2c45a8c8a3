// SPDX-License-Identifier: Apache-2.0
// JSON Schema (draft-07) from the same tables that check documents.
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "base/parameter_keys.hpp"
#include "config/schema.hpp"
#include "fabricast/load.hpp"

namespace fabricast {

namespace {

using config::Schema;
using Json = nlohmann::ordered_json;

const char* pattern_of(Dimension dimension) {
  switch (dimension) {
    case Dimension::bytes:
      return "^[0-9.]+([eE][+-]?[0-9]+)? ?(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)$";
    case Dimension::time:
      return "^[0-9.]+([eE][+-]?[0-9]+)? ?(ps|ns|us|\xC2\xB5s|ms|s)$";
    case Dimension::bandwidth:
      return "^[0-9.]+([eE][+-]?[0-9]+)? ?([kMGT]?b/s|[kMGT]?B/s|[KMG]iB/s|[MGT]bps)$";
    case Dimension::number:
      return "^-?[0-9.]+([eE][+-]?[0-9]+)?$";
  }
  return "";
}

/// A quantity is a string with a unit, or 0.
Json quantity(Dimension dimension) {
  return {{"anyOf", {{{"type", "string"}, {"pattern", pattern_of(dimension)}}, {{"const", 0}}}}};
}

/// A declared name as a regular expression: words of a part as alternatives, what may be left out in brackets.
std::string expression_of(std::string_view pattern) {
  std::string out = "^";
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '{') {
      const auto end = pattern.find('}', i);
      out += part_expression(pattern.substr(i + 1, end - i - 1));
      i = end;
    } else if (pattern[i] == '[') {
      out += '(';
    } else if (pattern[i] == ']') {
      out += ")?";
    } else {
      out += pattern[i] == '.' ? "\\." : std::string(1, pattern[i]);
    }
  }
  return out + "$";
}

constexpr std::array k_dimensions{Dimension::number, Dimension::bytes, Dimension::time, Dimension::bandwidth};

std::string definition_of(Dimension dimension) { return fmt::format("{}_parameter", to_string(dimension)); }

/// A parameter by the dimension of its value, once for all names.
Json parameter_definitions(const Json& parameter) {
  Json out = Json::object();
  for (const auto dimension : k_dimensions) {
    auto one = parameter;
    for (const char* end : {"value", "low", "high"})
      one["properties"][end] = dimension == Dimension::number ? Json{{"type", "number"}} : quantity(dimension);
    out[definition_of(dimension)] = std::move(one);
  }
  return out;
}

/// By name: the value's unit and the meaning. Names of devices' values are free.
Json declared_parameters() {
  Json out = Json::object();
  for (const auto& key : parameter_keys())
    out[expression_of(key.pattern)] = {
        {"allOf", Json::array({{{"$ref", "#/definitions/" + definition_of(key.dimension)}}})},
        {"description", key.meaning}};
  return out;
}

Json to_json(const Schema& schema) {
  using Type = Schema::Type;
  switch (schema.type) {
    case Type::text:
      return {{"type", {"string", "number"}}};
    case Type::integer:
      return {{"type", "integer"}, {"minimum", schema.low}, {"maximum", schema.high}};
    case Type::number: {
      Json out{{"type", "number"}, {"minimum", schema.low}};
      if (schema.high < 1e299) out["maximum"] = schema.high;
      return out;
    }
    case Type::flag:
      return {{"anyOf", {{{"type", "boolean"}}, {{"enum", {"on", "off", "yes", "no", "true", "false"}}}}}};
    case Type::quantity:
      return quantity(schema.dimension);
    case Type::number_or_quantity: {
      Json all = Json::array({{{"type", "number"}}});
      for (const auto d : {Dimension::bytes, Dimension::time, Dimension::bandwidth})
        all.push_back({{"type", "string"}, {"pattern", pattern_of(d)}});
      return {{"anyOf", all}};
    }
    case Type::slot:
      return {{"type", "string"}, {"pattern", "^gen[1-6] x(1|2|4|8|12|16|32)$"}, {"examples", {"gen3 x16"}}};
    case Type::length:
      return {{"type", "string"}, {"pattern", "^[0-9.]+ ?(m|cm|km)$"}, {"examples", {"3 m"}}};
    case Type::size_or_auto: {
      auto all = quantity(Dimension::bytes);
      all["anyOf"].push_back({{"const", "auto"}});
      return all;
    }
    case Type::weight:
      return {{"anyOf", {{{"type", "number"}, {"exclusiveMinimum", 0}}, {{"const", "strict"}}}}};
    case Type::choice:
      return {{"enum", schema.choices}};
    case Type::list:
      return {{"type", "array"}, {"items", to_json(*schema.items)}};
    case Type::free_mapping: {
      Json out{{"type", "object"}};
      if (schema.has_parameters) out["patternProperties"] = declared_parameters();
      out["additionalProperties"] = to_json(*schema.items);
      return out;
    }
    case Type::any:
      return Json::object();
    case Type::any_of: {
      Json all = Json::array();
      for (const auto& one : schema.alternatives) all.push_back(to_json(*one));
      return {{"anyOf", all}};
    }
    case Type::mapping:
      break;
  }
  Json out{{"type", "object"}, {"additionalProperties", false}, {"properties", Json::object()}};
  Json required = Json::array();
  for (const auto& field : schema.fields) {
    auto property = to_json(*field.schema);
    property["description"] = field.description;
    out["properties"][field.name] = std::move(property);
    if (field.is_required) required.push_back(field.name);
  }
  if (!required.empty()) out["required"] = required;
  for (const auto& group : schema.exactly_one) {
    Json any = Json::array();
    for (const auto& name : group) any.push_back({{"required", {name}}});
    out["oneOf"] = any;
  }
  return out;
}

/// What one parameter holds, null where a document has none.
const Schema* parameter_of(const Schema* schema) {
  if (schema == nullptr) return nullptr;
  if (schema->has_parameters) return schema->items.get();
  if (const auto* found = parameter_of(schema->items.get())) return found;
  for (const auto& field : schema->fields)
    if (const auto* found = parameter_of(field.schema.get())) return found;
  for (const auto& one : schema->alternatives)
    if (const auto* found = parameter_of(one.get())) return found;
  return nullptr;
}

}  // namespace

std::string json_schema(const std::string& file_kind) {
  const auto& schema = config::schema_of(file_kind);
  auto out = to_json(schema);
  Json whole{{"$schema", "http://json-schema.org/draft-07/schema#"}, {"title", "Fabricast " + file_kind}};
  whole.update(out);
  if (const auto* parameter = parameter_of(&schema)) whole["definitions"] = parameter_definitions(to_json(*parameter));
  return whole.dump(1) + "\n";
}

}  // namespace fabricast
