// SPDX-License-Identifier: Apache-2.0
// --host, --fabric, --placement, --vms: what import and export read.
#pragma once

#include <string>
#include <vector>

#include "cli/command.hpp"
#include "fabricast/import.hpp"

namespace fabricast::cli {

struct SourceOptions {
  std::vector<std::string> hosts, fabrics, placements, vms;
};
void add_source_options(CLI::App& app, SourceOptions& options);
/// The files' texts; a file that cannot be read is a message and sets the exit code. `any`: files of any format.
std::vector<ClusterSource> read_source_files(const SourceOptions& options, const std::vector<std::string>& any,
                                             const std::string& format, int& exit_code);

}  // namespace fabricast::cli
