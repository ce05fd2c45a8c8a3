// SPDX-License-Identifier: Apache-2.0
// SHA-256 of a text, for the provenance of results [FIPS 180-4].
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace fabricast {

/// 64 lower-case hexadecimal digits.
std::string sha256(std::string_view text);

/// Of a file's text as it is read: a byte order mark does not count.
std::string sha256_of_text(std::string_view text);

/// The same of a file. Nothing when it cannot be read, or is a pipe, which gives its text once.
std::optional<std::string> sha256_of_file(const std::string& path);

}  // namespace fabricast
