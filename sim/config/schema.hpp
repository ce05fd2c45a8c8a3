// SPDX-License-Identifier: Apache-2.0
// One description of every file kind, used both to check a document and to print its JSON Schema, so that the two
// cannot drift. A schema says what a node may be; fields have a description that editors show as help.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/tree.hpp"
#include "fabricast/units.hpp"

namespace fabricast::config {

struct Schema;
using SchemaPtr = std::shared_ptr<const Schema>;

struct Field {
  std::string name;
  SchemaPtr schema;
  std::string description;
  bool is_required = false;
};

struct Schema {
  enum class Type {
    text,
    integer,
    number,
    flag,
    quantity,
    number_or_quantity,
    slot,
    length,
    size_or_auto,
    weight,
    choice,
    list,
    mapping,
    free_mapping,
    any_of,
    any  ///< checked by its reader
  };
  Type type = Type::text;
  Dimension dimension = Dimension::number;            ///< quantity; number_or_quantity: its unit's, number: any
  double low = -1e300, high = 1e300;                  ///< integer, number
  std::vector<std::string> choices;                   ///< choice
  SchemaPtr items;                                    ///< list elements, values of a free mapping
  std::vector<Field> fields;                          ///< mapping
  std::vector<std::vector<std::string>> exactly_one;  ///< groups of keys of which exactly one must be given
  std::vector<SchemaPtr> alternatives;                ///< any_of: one per node kind
  std::string what;                                   ///< as messages call it: "a scenario", "a workload"
  bool has_parameters = false;                        ///< free_mapping: its keys are parameters' names
  /// mapping: keys that users know from elsewhere, in lower case and without `prefix`, and what to write instead
  std::vector<std::pair<std::string, std::string>> said_elsewhere = {};
  std::string prefix = {};
};

/// Reports everything that does not fit: wrong kinds, unknown and missing keys, bad values.
void check_node(const Node& node, const Schema& schema, Diagnostics& faults);

/// Schema of a file kind: topology, scenario, parameters, device, calibration.
const Schema& schema_of(const std::string& file_kind);

/// Fields of one kind of device entry (gpu, hca, network_switch, nvswitch, processor) with their dimension. A field
/// with an example is one that models cannot do without: it must be given, or, when it belongs to a family, whenever
/// another field of the family is.
struct DeviceField {
  const char* name;
  Dimension dimension;
  const char* description;
  const char* example = nullptr;
  const char* family = nullptr;
};
const std::vector<DeviceField>& device_fields(const std::string& kind);
const std::vector<std::string>& device_kinds();
/// Attributes of one kind of device, words that say what its values do not, and those of all kinds as a mapping.
std::vector<std::string> device_words(const std::string& kind);
SchemaPtr device_words_schema();

/// Reads values of nodes that check_node has accepted.
bool as_flag(const Node& node);
double as_quantity(const Node& node, Dimension dimension);
/// To the nearest byte.
Bytes as_size(const Node& node);
std::int64_t as_integer(const Node& node);
/// Of a node that check_node has not looked at: nothing unless it is a whole number from `low` to `high`.
std::optional<int> as_whole(const Node& node, int low, int high);
/// `gen3 x16` -> 3, 16
std::pair<int, int> as_slot(const Node& node);
/// `3 m` -> 3
double as_length(const Node& node);
/// `auto` -> 0
double as_size_or_auto(const Node& node);
/// `strict` -> 0
double as_weight(const Node& node);

}  // namespace fabricast::config
