// SPDX-License-Identifier: Apache-2.0
// Names of parameters in the program, checked against the table of keys when it is compiled: a misspelt or undeclared
// one does not build, and what reading it gives has the type of its declared dimension.
//
//   parameters["host.smt_speed"_key]                      double
//   parameters["gpu.time_slice"_key]                      Duration
//   parameters[named<"mpi.{}.message_gap">(library)]      Duration, of a name made of words
//   op.parameter("nccl.later_loops"_stem, op.protocol)    the most exact of the names that begin so
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/parameter_match.hpp"
#include "base/parameter_table_software.hpp"
#include "base/parameter_table_system.hpp"
#include "fabricast/parameters.hpp"

namespace fabricast {

namespace parameter_table {

template <std::size_t N>
struct Literal {
  char text[N] = {};
  consteval Literal(const char (&from)[N]) { std::copy_n(from, N, text); }  // NOLINT: a literal becomes a value
  [[nodiscard]] constexpr std::string_view view() const { return {text, N - 1}; }
};

/// The first key of the layer of `name` ("nccl.") that `is`; other layers are left out first: compilers count steps.
template <class Is>
constexpr const ParameterKey* first_key(std::string_view name, Is is) {
  const auto layer = name.substr(0, name.find('.') + 1);
  for (const auto& key : k_software_keys)
    if (key.pattern.starts_with(layer) && is(key.pattern)) return &key;
  for (const auto& key : k_system_keys)
    if (key.pattern.starts_with(layer) && is(key.pattern)) return &key;
  return nullptr;
}

constexpr const ParameterKey* declared_by(std::string_view name) {
  return first_key(name, [&](std::string_view pattern) { return matches(pattern, name); });
}

/// Some pattern goes on after `stem` with another part, or ends with it.
constexpr bool is_stem(std::string_view stem) {
  return first_key(stem, [&](std::string_view pattern) {
           for (std::size_t i = 0; i < pattern.size(); ++i) {
             if ((pattern[i] == '.' || pattern[i] == '[') && matches(pattern.substr(0, i), stem)) return true;
             if (pattern[i] == '[') i = pattern.find(']', i);
           }
           return matches(pattern, stem);
         }) != nullptr;
}

}  // namespace parameter_table

/// What names begin with that `[.{part}]` make more exact.
struct ParameterStem {
  std::string_view text;
};

namespace parameter_names {

// Not consteval: clang 14 leaves calls of consteval functions inside templates to the linker.
template <parameter_table::Literal Name>
constexpr auto operator""_key() {
  constexpr const auto* key = parameter_table::declared_by(Name.view());
  static_assert(key != nullptr, "the table of keys (sim/base/parameter_table_*.hpp) declares no such parameter");
  return ParameterName<key->dimension, std::string_view>{Name.view()};
}

template <parameter_table::Literal Stem>
constexpr ParameterStem operator""_stem() {
  static_assert(parameter_table::is_stem(Stem.view()), "no name in the table of keys begins so");
  return {Stem.view()};
}

/// A name with words for its "{}".
template <parameter_table::Literal Pattern, class... Words>
auto named(const Words&... words) {
  constexpr const auto* key = parameter_table::declared_by(Pattern.view());
  static_assert(key != nullptr, "the table of keys (sim/base/parameter_table_*.hpp) declares no such parameter");
  return ParameterName<key->dimension, std::string>{fmt::format(fmt::runtime(Pattern.view()), words...)};
}

}  // namespace parameter_names

using namespace parameter_names;  // NOLINT: literals

}  // namespace fabricast
