// SPDX-License-Identifier: Apache-2.0
// SHA-256 of a text, for the provenance of results [FIPS 180-4].
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fabricast {

/// 64 lower-case hexadecimal digits.
std::string sha256(std::string_view text);

/// Of a file as it is read: a byte order mark does not count. Nothing when the file cannot be read.
std::optional<std::string> sha256_of_file(const std::string& path);

}  // namespace fabricast
