// SPDX-License-Identifier: Apache-2.0
// Values of JSON objects that programs print: numbers also as strings, nothing where a value is missing or senseless;
// programs whose JSON has a reader beside that of their text.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "fabricast/measurement.hpp"
#include "readers/text.hpp"

namespace fabricast::readers {

/// A finite number, also one written as a string; JSON's "nan" gives nothing.
std::optional<double> number_of(const nlohmann::json& object, const char* key);
std::optional<int> int_of(const nlohmann::json& object, const char* key);
std::optional<Bytes> bytes_of(const nlohmann::json& object, const char* key);
/// Without blanks around it; empty when there is none.
std::string text_of(const nlohmann::json& object, const char* key);
/// The member, an empty object where there is none.
const nlohmann::json& object_of(const nlohmann::json& object, const char* key);

/// A run of iperf3; nothing when the object is none.
std::optional<MeasuredLog> iperf3_json(const nlohmann::json& top, const LogText& log);
/// The workloads of a `fabricast run`; empty when the object is none.
std::vector<MeasuredLog> forecast_json(const nlohmann::json& top, const LogText& log);

}  // namespace fabricast::readers
