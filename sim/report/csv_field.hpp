// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace fabricast::report {

/// A field of an RFC 4180 line, quoted when it must be.
std::string csv_field(const std::string& text);

}  // namespace fabricast::report
