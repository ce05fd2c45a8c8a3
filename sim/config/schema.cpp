// SPDX-License-Identifier: Apache-2.0
// Checking a document against a schema, and reading accepted values.
#include "config/schema.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <set>

#include "base/assert.hpp"
#include "base/parameter_keys.hpp"
#include "base/text.hpp"
#include "config/names.hpp"
#include "config/written_values.hpp"

namespace fabricast::config {

namespace {

constexpr std::string_view k_on[] = {"on", "true", "yes"};
constexpr std::string_view k_off[] = {"off", "false", "no"};

bool is_one_of(const std::string& word, const auto& words) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

std::string unknown_key_hint(const std::string& key, const std::vector<std::string>& names) {
  // "gpus=16", "name:x", "name node": a key without the ': ' behind it.
  const auto end = std::min(key.size(), key.find_first_of("=: "));
  const auto value = key.find_first_not_of("=: ", end);
  if (value != std::string::npos && is_one_of(key.substr(0, end), names))
    return fmt::format("write '{}: {}'", key.substr(0, end), key.substr(value));
  const auto near = nearest_name(key, names);
  return near.empty() ? fmt::format("known keys: {}", fmt::join(names, ", ")) : fmt::format("did you mean '{}'?", near);
}

std::optional<double> plain_number(const std::string& text) {
  const auto parsed = parse_quantity(text, Dimension::number);
  if (!parsed.ok) return std::nullopt;
  return parsed.value;
}

/// Whether the text ends in a unit of the dimension, whatever its number.
bool has_unit(const std::string& text, Dimension dimension) {
  const auto blank = text.find(' ');
  return blank != std::string::npos && parse_quantity("1" + text.substr(blank), dimension).ok;
}

std::string expected(const Schema& schema) {
  using Type = Schema::Type;
  switch (schema.type) {
    case Type::text:
      return "a word";
    case Type::integer:
      return "a whole number";
    case Type::number:
      return "a number";
    case Type::flag:
      return "on or off";
    case Type::quantity:
      return fmt::format("a {}", to_string(schema.dimension));
    case Type::number_or_quantity:
      return "a number or a quantity with its unit";
    case Type::slot:
      return "a PCIe slot such as 'gen3 x16'";
    case Type::length:
      return "a length such as '3 m'";
    case Type::size_or_auto:
      return "a size or auto";
    case Type::weight:
      return "a share or strict";
    case Type::choice:
      if (schema.choices.size() == 1) return schema.choices.front();
      return schema.choices.size() <= 8 ? fmt::format("one of {}", fmt::join(schema.choices, ", "))
                                        : "one of the known names";
    case Type::list:
      return "a list";
    case Type::mapping:
    case Type::free_mapping:
      return "a mapping";
    case Type::any:
      return "anything";
    case Type::any_of: {
      std::vector<std::string> all;
      for (const auto& one : schema.alternatives) all.push_back(expected(*one));
      return fmt::format("{}", fmt::join(all, " or "));
    }
  }
  return "";
}

Node::Kind kind_of(const Schema& schema) {
  if (schema.type == Schema::Type::list) return Node::Kind::sequence;
  if (schema.type == Schema::Type::mapping || schema.type == Schema::Type::free_mapping) return Node::Kind::mapping;
  return Node::Kind::scalar;
}

/// The schema, or its alternative, that is a mapping or a list; null for none.
const Schema* of_type(const Schema& schema, Schema::Type type) {
  if (schema.type == type) return &schema;
  const auto one = std::ranges::find_if(schema.alternatives, [&](const auto& other) { return other->type == type; });
  return one == schema.alternatives.end() ? nullptr : one->get();
}
const Schema* mapping_of(const Schema& schema) { return of_type(schema, Schema::Type::mapping); }
const Schema* list_of(const Schema& schema) { return of_type(schema, Schema::Type::list); }

std::vector<std::string> names_of(const Schema& mapping) {
  std::vector<std::string> names;
  for (const auto& field : mapping.fields) names.push_back(field.name);
  return names;
}

/// Of a declared parameter, or of a device's field of that name.
std::optional<Dimension> dimension_of_parameter(const std::string& name) {
  if (const auto* key = key_of(name)) return key->dimension;
  const auto field = name.substr(std::min(name.find('.') + 1, name.size()));
  for (const auto& kind : device_kinds())
    for (const auto& one : device_fields(kind))
      if (one.name == field) return one.dimension;
  return std::nullopt;
}

/// How to write what `text` seems to mean: by the dimension that is expected, else by the unit it comes near to.
std::string quantity_hint(const std::string& text, std::optional<Dimension> expected) {
  if (expected) return parse_quantity(text, *expected).hint;
  for (const auto dimension : {Dimension::bytes, Dimension::time, Dimension::bandwidth}) {
    auto hint = parse_quantity(text, dimension).hint;
    if (hint.starts_with("did you mean")) return hint;
  }
  if (text.find("/s") != std::string::npos) return parse_quantity(text, Dimension::bandwidth).hint;
  return "write a number, or one with its unit: '64 KiB', '1.3 us', '100 Gb/s'";
}

/// What a key that is none of `names` may mean.
std::string hint_for_key(const Schema& schema, const std::vector<std::string>& names, std::string key) {
  if (!schema.said_elsewhere.empty()) {
    key = lower(key);
    if (key.starts_with(schema.prefix)) key.erase(0, schema.prefix.size());
    for (const auto& [known, hint] : schema.said_elsewhere)
      if (known == key) return hint;
  }
  for (const auto& field : schema.fields)
    if (const auto* below = mapping_of(*field.schema); below != nullptr && is_one_of(key, names_of(*below)))
      return fmt::format("'{}' is a key of `{}`", key, field.name);
  return unknown_key_hint(key, names);
}

/// How to write what `node` says as the kind of node that is expected.
std::string hint_for_kind(const Node& node, const Schema& schema) {
  if (const auto* list = list_of(schema)) {
    if (node.kind == Node::Kind::scalar) return fmt::format("write [{}]", node.scalar);
    if (node.kind == Node::Kind::mapping && !node.entries.empty() && mapping_of(*list->items) != nullptr)
      return fmt::format("write '- {}: ...', each element with a '-' of its own", node.entries.front().key.scalar);
  }
  const auto* mapping = mapping_of(schema);
  if (mapping == nullptr || mapping->fields.empty() || node.kind == Node::Kind::sequence) return {};
  const auto needed = std::ranges::find_if(mapping->fields, &Field::is_required);
  if (needed != mapping->fields.end() && kind_of(*needed->schema) == Node::Kind::scalar)
    return fmt::format("write '{}: {}' in it", needed->name, node.scalar.empty() ? "..." : node.scalar);
  return fmt::format("its keys: {}", fmt::join(names_of(*mapping), ", "));
}

class Checker {
 public:
  explicit Checker(Diagnostics& faults) : faults_(faults) {}

  void check(const Node& node, const Schema& schema, const std::string& what) {
    if (schema.type == Schema::Type::any) return;
    if (schema.type == Schema::Type::any_of) return check_any(node, schema, what);
    if (node.kind != kind_of(schema)) {
      faults_.push_back(node.error(fmt::format("{} must be {}, found {}", what, expected(schema), describe(node.kind)),
                                   hint_for_kind(node, schema)));
      return;
    }
    switch (schema.type) {
      case Schema::Type::list:
        for (const auto& item : node.items) check(item, *schema.items, fmt::format("an element of {}", what));
        break;
      case Schema::Type::mapping:
        check_mapping(node, schema, what);
        break;
      case Schema::Type::free_mapping:
        for (const auto& entry : node.entries) {
          dimension_ = schema.has_parameters ? dimension_of_parameter(entry.key.scalar) : std::nullopt;
          check(entry.value, *schema.items, fmt::format("'{}'", entry.key.scalar));
        }
        dimension_ = std::nullopt;
        break;
      default:
        check_scalar(node, schema, what);
    }
  }

 private:
  /// One of the alternatives of the node's kind has to hold; where there is but one its own faults are told.
  void check_any(const Node& node, const Schema& schema, const std::string& what) {
    std::vector<const Schema*> meant;
    for (const auto& one : schema.alternatives)
      if (kind_of(*one) == node.kind) meant.push_back(one.get());
    if (meant.size() == 1) return check(node, *meant.front(), what);
    const auto before = static_cast<std::ptrdiff_t>(faults_.size());
    for (const auto* one : meant) {
      check(node, *one, what);
      if (std::ssize(faults_) == before) return;
      faults_.erase(faults_.begin() + before, faults_.end());
    }
    const auto found = meant.empty() ? std::string(describe(node.kind)) : fmt::format("'{}'", node.scalar);
    faults_.push_back(node.error(fmt::format("{} must be {}, found {}", what, expected(schema), found),
                                 meant.empty() ? hint_for_kind(node, schema) : ""));
  }

  void check_mapping(const Node& node, const Schema& schema, const std::string& what) {
    const auto names = names_of(schema);
    std::set<std::string> meant;  // misspelt: they are not missing, too
    for (const auto& entry : node.entries) {
      const auto field = std::find_if(schema.fields.begin(), schema.fields.end(),
                                      [&](const Field& f) { return f.name == entry.key.scalar; });
      if (field == schema.fields.end()) {
        const auto& called = schema.what.empty() ? what : schema.what;
        faults_.push_back(entry.key.error(fmt::format("unknown key '{}' in {}", entry.key.scalar, called),
                                          hint_for_key(schema, names, entry.key.scalar)));
        meant.insert(nearest_name(entry.key.scalar, names));
        continue;
      }
      check(entry.value, *field->schema, fmt::format("'{}'", field->name));
    }
    for (const auto& field : schema.fields) {
      if (!field.is_required || node.find(field.name) != nullptr || meant.contains(field.name)) continue;
      faults_.push_back(
          node.error(fmt::format("{} needs the key '{}'", schema.what.empty() ? what : schema.what, field.name),
                     field.description));
    }
    for (const auto& group : schema.exactly_one) {
      std::vector<std::string> given;
      for (const auto& name : group) {
        if (node.find(name) != nullptr) given.push_back(name);
      }
      const bool is_misspelt = std::ranges::any_of(group, [&](const auto& name) { return meant.contains(name); });
      if (given.size() == 1 || (given.empty() && is_misspelt)) continue;
      faults_.push_back(node.error(
          fmt::format("{} needs exactly one of {}{}", schema.what.empty() ? what : schema.what, fmt::join(group, ", "),
                      given.empty() ? std::string() : fmt::format(", found {}", fmt::join(given, " and ")))));
    }
  }

  void check_scalar(const Node& node, const Schema& schema, const std::string& what) {
    using Type = Schema::Type;
    const auto& text = node.scalar;
    int generation = 0;
    int width = 0;
    double metres = 0;
    switch (schema.type) {
      case Type::text:
        if (text.empty()) faults_.push_back(node.error(fmt::format("{} is empty", what)));
        break;
      case Type::integer:
      case Type::number:
        check_number(node, schema, what);
        break;
      case Type::flag:
        if (!is_one_of(text, k_on) && !is_one_of(text, k_off))
          faults_.push_back(node.error(fmt::format("{} must be on or off, found '{}'", what, text)));
        break;
      case Type::quantity:
        check_quantity(node, schema.dimension, what);
        break;
      case Type::number_or_quantity:
        check_number_or_quantity(node, schema, what);
        break;
      case Type::slot:
        if (!read_slot(text, generation, width))
          faults_.push_back(node.error(
              fmt::format("{} must be a PCIe slot, found '{}'", what, text),
              fmt::format("write generation (1 to 6) and lanes ({}), e.g. `gen3 x16`", fmt::join(k_lanes, ", "))));
        break;
      case Type::length:
        if (!read_length(text, metres))
          faults_.push_back(
              node.error(fmt::format("{} must be a length, found '{}'", what, text), "write e.g. `3 m` or `50 cm`"));
        break;
      case Type::size_or_auto:
        if (text != "auto") check_quantity(node, Dimension::bytes, what);
        break;
      case Type::weight: {
        const auto share = plain_number(text);
        if (text != "strict" && (!share || *share <= 0 || *share > 1e6))
          faults_.push_back(node.error(fmt::format("{} must be a share above 0 or `strict`, found '{}'", what, text)));
        break;
      }
      case Type::choice:
        check_choice(node, schema, what);
        break;
      default:
        break;
    }
  }

  void check_number(const Node& node, const Schema& schema, const std::string& what) {
    const auto value = plain_number(node.scalar);
    const bool is_whole = value && *value == std::floor(*value) && std::abs(*value) < 1e15;
    const bool wants_whole = schema.type == Schema::Type::integer;
    if (!value || (wants_whole && !is_whole)) {
      faults_.push_back(node.error(fmt::format("{} must be {}, found '{}'", what, expected(schema), node.scalar)));
    } else if (*value < schema.low || *value > schema.high) {
      const auto range = schema.high > 1e299 ? fmt::format("at least {}", schema.low)
                                             : fmt::format("{} to {}", schema.low, schema.high);
      faults_.push_back(node.error(fmt::format("{} is {}, allowed is {}", what, node.scalar, range)));
    }
  }

  void check_quantity(const Node& node, Dimension dimension, const std::string& what) {
    const auto parsed = parse_quantity(node.scalar, dimension);
    if (!parsed.ok) faults_.push_back(node.error(fmt::format("{}: {}", what, parsed.error), parsed.hint));
  }

  void check_number_or_quantity(const Node& node, const Schema& schema, const std::string& what) {
    for (const auto dimension : {Dimension::number, Dimension::bytes, Dimension::time, Dimension::bandwidth}) {
      if (schema.dimension != Dimension::number && dimension != Dimension::number && dimension != schema.dimension)
        continue;
      const auto parsed = parse_quantity(node.scalar, dimension);
      if (parsed.ok) return;
      const auto says = [&](const char* words) { return parsed.error.find(words) != std::string::npos; };
      // Of this dimension by its unit, but none of its values.
      if (dimension != Dimension::number && (says("' is negative") || says("out of range")) &&
          has_unit(node.scalar, dimension))
        return faults_.push_back(node.error(fmt::format("{}: {}", what, parsed.error), parsed.hint));
    }
    const auto expected = schema.dimension != Dimension::number ? schema.dimension : dimension_;
    const auto wanted = schema.dimension != Dimension::number ? to_string(schema.dimension) : "quantity";
    faults_.push_back(node.error(fmt::format("{}: '{}' is neither a number nor a {}", what, node.scalar, wanted),
                                 quantity_hint(node.scalar, expected)));
  }

  void check_choice(const Node& node, const Schema& schema, const std::string& what) {
    if (is_one_of(node.scalar, schema.choices)) return;
    auto hint = meant_hint(meant_names(node.scalar, schema.choices));
    if (hint.empty()) hint = fmt::format("known: {}", fmt::join(schema.choices, ", "));
    faults_.push_back(node.error(fmt::format("{} is '{}', which is not known", what, node.scalar), hint));
  }

  Diagnostics& faults_;
  std::optional<Dimension> dimension_;  ///< of the parameter that is looked at, where its name says it
};

}  // namespace

void check_node(const Node& node, const Schema& schema, Diagnostics& faults) {
  Checker(faults).check(node, schema, schema.what.empty() ? "the document" : schema.what);
}

bool as_flag(const Node& node) { return is_one_of(node.scalar, k_on); }

double as_quantity(const Node& node, Dimension dimension) {
  const auto parsed = parse_quantity(node.scalar, dimension);
  FABRICAST_ASSERT(parsed.ok, "unchecked quantity '{}'", node.scalar);
  return parsed.value;
}

Bytes as_size(const Node& node) { return to_bytes(as_quantity(node, Dimension::bytes)); }

std::optional<int> as_whole(const Node& node, int low, int high) {
  const auto number = plain_number(node.scalar);
  if (!number || *number < low || *number > high || *number != std::floor(*number)) return std::nullopt;
  return static_cast<int>(*number);
}

std::int64_t as_integer(const Node& node) { return std::llround(plain_number(node.scalar).value_or(0)); }

std::pair<int, int> as_slot(const Node& node) {
  int generation = 0;
  int width = 0;
  FABRICAST_ASSERT(read_slot(node.scalar, generation, width), "unchecked slot '{}'", node.scalar);
  return {generation, width};
}

double as_length(const Node& node) {
  double metres = 0;
  FABRICAST_ASSERT(read_length(node.scalar, metres), "unchecked length '{}'", node.scalar);
  return metres;
}

double as_size_or_auto(const Node& node) { return node.scalar == "auto" ? 0 : as_quantity(node, Dimension::bytes); }

double as_weight(const Node& node) { return node.scalar == "strict" ? 0 : plain_number(node.scalar).value_or(1); }

}  // namespace fabricast::config
