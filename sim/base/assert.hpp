// SPDX-License-Identifier: Apache-2.0
// FABRICAST_ASSERT(condition, "format {}", values...): our own faults. On in release builds; the message names the
// place and the values and asks for a report. cli/ turns it into exit code 4.
#pragma once

#include <fmt/format.h>

#include <stdexcept>
#include <string>

namespace fabricast {

/// A fault of Fabricast, never of its input.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void raise_internal_error(const char* file, int line, const char* condition, const std::string& message);

}  // namespace fabricast

#define FABRICAST_ASSERT(condition, ...)                                                                           \
  do {                                                                                                             \
    if (!(condition)) ::fabricast::raise_internal_error(__FILE__, __LINE__, #condition, fmt::format(__VA_ARGS__)); \
  } while (false)
