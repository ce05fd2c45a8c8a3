// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace fabricast::report {

/// A name as a field of an RFC 4180 line, quoted when it must be; one that a spreadsheet would take for a formula has
/// an apostrophe before it.
std::string csv_field(const std::string& name);

}  // namespace fabricast::report
