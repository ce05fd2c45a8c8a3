// SPDX-License-Identifier: Apache-2.0
// What the files that write HTML share.
#pragma once

#include <string>

namespace fabricast::report {

/// Text as HTML shows it.
std::string escaped(const std::string& text);

}  // namespace fabricast::report
