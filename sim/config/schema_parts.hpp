// SPDX-License-Identifier: Apache-2.0
// Short names for the pieces key tables are made of.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "config/schema.hpp"

namespace fabricast::config::parts {

inline SchemaPtr make(Schema schema) { return std::make_shared<const Schema>(std::move(schema)); }
inline SchemaPtr text() { return make({.type = Schema::Type::text}); }
inline SchemaPtr flag() { return make({.type = Schema::Type::flag}); }
inline SchemaPtr slot() { return make({.type = Schema::Type::slot}); }
inline SchemaPtr length() { return make({.type = Schema::Type::length}); }
/// A count of bytes, with or without their unit.
inline SchemaPtr mtu() { return make({.type = Schema::Type::number_or_quantity, .dimension = Dimension::bytes}); }
inline SchemaPtr integer(double low, double high) {
  return make({.type = Schema::Type::integer, .low = low, .high = high});
}
inline SchemaPtr number(double low, double high) {
  return make({.type = Schema::Type::number, .low = low, .high = high});
}
inline SchemaPtr quantity(Dimension dimension) {
  return make({.type = Schema::Type::quantity, .dimension = dimension});
}
inline SchemaPtr size() { return quantity(Dimension::bytes); }
inline SchemaPtr choice(std::vector<std::string> names) {
  return make({.type = Schema::Type::choice, .choices = std::move(names)});
}
inline SchemaPtr list(SchemaPtr items) { return make({.type = Schema::Type::list, .items = std::move(items)}); }
inline SchemaPtr any_of(std::vector<SchemaPtr> all) {
  return make({.type = Schema::Type::any_of, .alternatives = std::move(all)});
}
inline SchemaPtr mapping(std::string what, std::vector<Field> fields,
                         std::vector<std::vector<std::string>> exactly_one = {}) {
  return make({.type = Schema::Type::mapping,
               .fields = std::move(fields),
               .exactly_one = std::move(exactly_one),
               .what = std::move(what)});
}
inline SchemaPtr free_mapping(SchemaPtr items) {
  return make({.type = Schema::Type::free_mapping, .items = std::move(items)});
}

}  // namespace fabricast::config::parts
