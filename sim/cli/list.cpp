// SPDX-License-Identifier: Apache-2.0
#include "cli/command.hpp"
namespace fabricast::cli {
void add_list(CLI::App&, int&) {}
}  // namespace fabricast::cli
