// SPDX-License-Identifier: Apache-2.0
#include "fabricast/diagnostic.hpp"

#include "base/assert.hpp"

namespace fabricast {

void raise_internal_error(const char* file, int line, const char* condition, const std::string& message) {
  throw InternalError(fmt::format("{}:{}: {} ({}); please report this with the command that caused it", file, line, message,
                                  condition));
}

}  // namespace fabricast
