// SPDX-License-Identifier: Apache-2.0
#include "config/devices.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/parameter_keys.hpp"
#include "base/text.hpp"
#include "config/embedded.hpp"
#include "config/names.hpp"
#include "config/schema.hpp"
#include "fabricast/inputs.hpp"

namespace fabricast::config {

namespace {

constexpr std::string_view k_catalogue = "catalogue/";

std::string stem(std::string_view path) {
  const auto slash = path.rfind('/');
  auto name = path.substr(slash == std::string_view::npos ? 0 : slash + 1);
  if (name.ends_with(".yaml")) name.remove_suffix(5);
  return std::string(name);
}

bool is_of(const std::string& kind, const std::vector<std::string>& kinds) {
  return kinds.empty() || std::ranges::find(kinds, kind) != kinds.end();
}

/// Shipped devices of the kinds whose descriptions hold `name`; none where it is too short, or where too many do, to
/// say anything.
std::vector<std::string> described_as(const std::string& name, const std::vector<std::string>& kinds) {
  constexpr std::size_t least = 3, most = 4;
  constexpr std::string_view key = "\ndescription: ";
  const auto wanted = letters_of(name);
  std::vector<std::string> out;
  if (wanted.size() < least) return out;
  for (const auto& file : embedded_files()) {
    const std::string_view path = file.path, text = file.text;
    const auto at = text.find(key);
    if (!path.starts_with(k_catalogue) || at == std::string_view::npos) continue;
    const auto begin = at + key.size();
    const auto description = text.substr(begin, text.find('\n', begin) - begin);
    if (letters_of(description).find(wanted) != std::string::npos) out.push_back(stem(path));
  }
  if (out.size() > most) out.clear();
  std::erase_if(out, [&](const std::string& known) { return !is_of(DeviceLibrary::shipped_kind(known), kinds); });
  return out;
}

/// Where the names of the kind stand.
std::string catalogue_hint(const std::vector<std::string>& kinds) {
  return fmt::format("`fabricast list devices{}` prints {}", kinds.size() == 1 ? " " + kinds.front() : "",
                     kinds.size() == 1 ? "those there are" : "the catalogue");
}

Confidence confidence_of(const Node* node) {
  if (node == nullptr) return Confidence::medium;
  for (const auto known : {Confidence::high, Confidence::medium, Confidence::low, Confidence::assumed,
                           Confidence::fitted, Confidence::read_off}) {
    if (to_string(known) == node->scalar) return known;
  }
  return Confidence::medium;
}

/// The dimension a text has by its unit; plain numbers are numbers.
Dimension dimension_of(const std::string& text) {
  for (const auto dimension : {Dimension::number, Dimension::bytes, Dimension::time, Dimension::bandwidth}) {
    if (parse_quantity(text, dimension).ok) return dimension;
  }
  return Dimension::number;
}

double value_of(const Node& node, Dimension dimension, const std::string& what, Diagnostics& faults) {
  const auto parsed = parse_quantity(node.scalar, dimension);
  if (!parsed.ok) faults.push_back(node.error(fmt::format("{}: {}", what, parsed.error), parsed.hint));
  return parsed.value;
}

void check_name(const Node& node, Diagnostics& faults) {
  const auto& name = node.scalar;
  if (is_software_layer(name)) {
    faults.push_back(
        node.error(fmt::format("the name '{}' is taken: it starts the parameters of a software layer", name),
                   "give the device a name of its own, e.g. with the vendor in it"));
  } else if (name.empty() || name.find_first_of(". \t") != std::string::npos) {
    faults.push_back(node.error(fmt::format("a device type is called '{}'", name),
                                "use a name without dots and spaces, like my-gpu"));
  }
}

/// What models need and the file does not give: without it they would compute with a number nobody stated.
void check_complete(const Node& document, const DeviceLibrary::Entry& entry, Diagnostics& faults) {
  const auto* values = document.find("values");
  const auto has = [&](const DeviceField& field) { return values != nullptr && values->find(field.name) != nullptr; };
  const auto& fields = device_fields(entry.type.kind);
  for (const auto& field : fields) {
    if (field.example == nullptr || has(field)) continue;
    const std::string_view family = field.family == nullptr ? "" : field.family;
    if (!family.empty() && std::none_of(fields.begin(), fields.end(), [&](const DeviceField& other) {
          return other.family != nullptr && other.family == family && has(other);
        }))
      continue;
    const auto& where = values != nullptr ? *values : document;
    faults.push_back(where.error(
        fmt::format("{} '{}' has no value '{}' ({})", entry.type.kind, entry.type.name, field.name, field.description),
        fmt::format("add it under `values`, e.g. `{}: {{value: {}, source: data sheet}}`", field.name, field.example)));
  }
}

/// An InfiniBand switch has no packet memory that its ports share.
void check_memory(const Node& document, const DeviceLibrary::Entry& entry, Diagnostics& faults) {
  const auto protocol = entry.type.attributes.find("protocol");
  if (entry.type.kind != "network_switch" || protocol == entry.type.attributes.end() ||
      protocol->second != "infiniband")
    return;
  const auto* values = document.find("values");
  if (const auto* buffer = values == nullptr ? nullptr : values->find("buffer"))
    faults.push_back(buffer->error("'buffer' does nothing for an InfiniBand switch: every lane of a port has its own",
                                   "give `vl_buffer`, or `longest_cable`, from which it follows"));
}

/// Words that nothing reads of a device of this kind.
void check_words(const Node& attributes, const std::string& kind, Diagnostics& faults) {
  const auto known = device_words(kind);
  for (const auto& one : attributes.entries) {
    if (std::find(known.begin(), known.end(), one.key.scalar) == known.end())
      faults.push_back(
          one.key.error(fmt::format("nothing reads the attribute '{}' of a device of kind {}", one.key.scalar, kind),
                        known.empty() ? "leave it out" : fmt::format("known: {}", fmt::join(known, ", "))));
  }
}

/// A value, or an end of its interval, that no machine has. The interval of a fit may reach past the range.
void check_legal(const Node& node, double value, const Parameter& parameter, const std::string& what, bool is_end,
                 Diagnostics& faults) {
  constexpr double k_past = 10;
  auto range = range_of(parameter.name, parameter.dimension);
  if (is_end) range = {0, k_past * range.high, range.what, range.is_declared};
  if (range.holds(value)) return;
  auto hint = fmt::format("give {}: {}", range.what, to_string(range, parameter.dimension));
  const bool is_percent = range.high == 1 && value > 1 && value <= 100;
  if (is_percent) hint += fmt::format("; {} % is written {:.6g}", node.scalar, value / 100);
  faults.push_back(node.error(fmt::format("{} is {}, outside its range", what, node.scalar), hint));
}

}  // namespace

Parameter read_parameter(const std::string& name, const Node& node, const Dimension* dimension, Diagnostics& faults) {
  Parameter parameter;
  parameter.name = name;
  parameter.location = node.location();
  const auto* value = node.find("value");
  parameter.dimension = dimension != nullptr ? *dimension : dimension_of(value->scalar);
  parameter.is_rate = range_of(name, parameter.dimension).is_of_rate;
  const auto read = [&](const char* key, double fallback) {
    const auto* found = node.find(key);
    if (found == nullptr) return fallback;
    const auto before = faults.size();
    const auto what = fmt::format("'{}' of '{}'", key, name);
    const double read_value = value_of(*found, parameter.dimension, what, faults);
    if (faults.size() == before)
      check_legal(*found, read_value, parameter, what, key != std::string_view("value"), faults);
    return read_value;
  };
  parameter.value = read("value", 0);
  parameter.low = read("low", parameter.value);
  parameter.high = read("high", parameter.value);
  if (parameter.low > parameter.value || parameter.high < parameter.value) {
    faults.push_back(
        node.error(fmt::format("the interval of '{}' does not hold its value", name), "low <= value <= high"));
  }
  if (const auto* source = node.find("source")) parameter.source = source->scalar;
  parameter.confidence = confidence_of(node.find("confidence"));
  return parameter;
}

const DeviceLibrary::Entry* DeviceLibrary::read(const Node& document, Diagnostics& faults) {
  Diagnostics own;
  check_node(document, schema_of("device"), own);
  if (has_errors(own)) {
    faults.insert(faults.end(), own.begin(), own.end());
    return nullptr;
  }
  Entry entry;
  entry.type.name = document.find("name")->scalar;
  check_name(*document.find("name"), faults);
  entry.type.kind = document.find("kind")->scalar;
  entry.type.origin = document.source->name;
  if (const auto* description = document.find("description")) entry.type.description = description->scalar;
  if (const auto* attributes = document.find("attributes")) {
    check_words(*attributes, entry.type.kind, faults);
    for (const auto& one : attributes->entries) entry.type.attributes[one.key.scalar] = one.value.scalar;
  }
  const auto& fields = device_fields(entry.type.kind);
  if (const auto* values = document.find("values")) {
    for (const auto& one : values->entries) {
      const auto field =
          std::find_if(fields.begin(), fields.end(), [&](const DeviceField& f) { return one.key.scalar == f.name; });
      if (field == fields.end()) {
        std::vector<std::string> names;
        for (const auto& known : fields) names.emplace_back(known.name);
        faults.push_back(one.key.error(fmt::format("a {} has no field '{}'", entry.type.kind, one.key.scalar),
                                       meant_hint(near_names(one.key.scalar, names, 1))));
        continue;
      }
      entry.values.push_back(
          read_parameter(fmt::format("{}.{}", entry.type.name, one.key.scalar), one.value, &field->dimension, faults));
    }
  }
  check_memory(document, entry, faults);
  check_complete(document, entry, faults);
  if (const auto* host = document.find("host")) entry.host = *host;
  if (entry.type.kind == "host" && document.find("host") == nullptr) {
    faults.push_back(
        document.error("a device of kind host needs the key 'host'", "list its processor, sockets and devices there"));
    return nullptr;
  }
  const auto name = entry.type.name;
  return &(entries_[name] = std::move(entry));
}

void DeviceLibrary::add_file(const std::string& path, Diagnostics& faults, std::vector<InputFile>& inputs) {
  const auto text = read_text_file(path);
  if (!text) {
    faults.insert(faults.end(), text.error().begin(), text.error().end());
    return;
  }
  note_input(inputs, path, *text);
  const auto count = faults.size();
  const auto document = parse_yaml(path, *text, faults);
  if (faults.size() > count) return;
  const auto* name = document.find("name");
  const auto known = name == nullptr ? entries_.end() : entries_.find(name->scalar);
  if (known != entries_.end()) {
    faults.push_back(name->error(
        fmt::format("two device files declare '{}': this one and {}", name->scalar, known->second.type.origin),
        "give every device a name of its own"));
    return;
  }
  read(document, faults);
}

std::string DeviceLibrary::shipped_kind(std::string_view name) {
  static const std::map<std::string_view, const char*> folders{{"asics", "switch_asic"},
                                                               {"gpus", "gpu"},
                                                               {"hcas", "hca"},
                                                               {"hosts", "host"},
                                                               {"nvswitches", "nvswitch"},
                                                               {"processors", "processor"},
                                                               {"switches", "network_switch"}};
  for (const auto& file : embedded_files()) {
    const std::string_view path = file.path;
    if (!path.starts_with(k_catalogue) || stem(path) != name) continue;
    const auto folder = path.substr(k_catalogue.size(), path.rfind('/') - k_catalogue.size());
    const auto kind = folders.find(folder);
    return kind == folders.end() ? "" : kind->second;
  }
  return {};
}

std::vector<std::string> DeviceLibrary::shipped_names() {
  std::vector<std::string> names;
  for (const auto& file : embedded_files()) {
    if (file.path.rfind(k_catalogue, 0) == 0) names.push_back(stem(file.path));
  }
  return names;
}

const DeviceLibrary::Entry* DeviceLibrary::find(const std::string& name, const Node& where, Diagnostics& faults,
                                                const std::vector<std::string>& kinds) {
  if (const auto it = entries_.find(name); it != entries_.end()) return &it->second;
  for (const auto& file : embedded_files()) {
    if (file.path.rfind(k_catalogue, 0) != 0 || stem(file.path) != name) continue;
    return read(tree_of(file), faults);
  }
  auto names = shipped_names();
  std::erase_if(names, [&](const std::string& known) { return !is_of(shipped_kind(known), kinds); });
  for (const auto& [known, entry] : entries_)
    if (is_of(entry.type.kind, kinds)) names.push_back(known);
  auto near = meant_names(name, names);
  if (near.empty()) near = described_as(name, kinds);
  const auto hint =
      near.empty() ? catalogue_hint(kinds) + "; your own device files go under `devices:`" : meant_hint(near);
  faults.push_back(where.error(fmt::format("no device type '{}'", name), hint));
  return nullptr;
}

std::string DeviceLibrary::hint_of_kind(std::string_view name, const std::vector<std::string>& kinds) {
  std::vector<std::string> with_it;
  for (const auto& file : embedded_files())
    if (is_of("host", kinds) && shipped_kind(stem(file.path)) == "host" &&
        file.text.find(fmt::format("type: {},", name)) != std::string_view::npos)
      with_it.push_back(stem(file.path));
  constexpr std::size_t most = 5;
  with_it.resize(std::min(with_it.size(), most));
  return with_it.empty() ? catalogue_hint(kinds) : fmt::format("hosts with it: {}", fmt::join(with_it, ", "));
}

std::vector<const DeviceLibrary::Entry*> DeviceLibrary::all(Diagnostics& faults) {
  std::vector<const Entry*> found;
  for (const auto& name : shipped_names()) {
    if (const auto* entry = find(name, Node{}, faults)) found.push_back(entry);
  }
  return found;
}

ParameterSet read_parameters(const Node& document, Diagnostics& faults) {
  ParameterSet set;
  for (const auto& entry : document.find("parameters")->entries)
    set.set(read_parameter(entry.key.scalar, entry.value, nullptr, faults));
  return set;
}

namespace {

ParameterSet parse_shipped_parameters(Diagnostics& faults) {
  ParameterSet set;
  for (const auto& file : embedded_files()) {
    if (file.path.rfind("params/", 0) != 0) continue;
    const auto document = tree_of(file);
    check_node(document, schema_of("parameters"), faults);
    if (!has_errors(faults)) set.merge(read_parameters(document, faults));
  }
  return set;
}

}  // namespace

ParameterSet shipped_parameters(Diagnostics& faults) {
  struct Parsed {
    Diagnostics faults;
    ParameterSet set;
  };
  // The text is part of the program: a sweep reads it once, not once per design.
  static const Parsed parsed = [] {
    Parsed once;
    once.set = parse_shipped_parameters(once.faults);
    return once;
  }();
  faults.insert(faults.end(), parsed.faults.begin(), parsed.faults.end());
  return parsed.set;
}

}  // namespace fabricast::config
