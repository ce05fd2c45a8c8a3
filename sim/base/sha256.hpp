// SPDX-License-Identifier: Apache-2.0
// SHA-256 of a text, for the provenance of results [FIPS 180-4].
#pragma once

#include <string>
#include <string_view>

namespace fabricast {

/// 64 lower-case hexadecimal digits.
std::string sha256(std::string_view text);

}  // namespace fabricast
