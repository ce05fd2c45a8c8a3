// SPDX-License-Identifier: Apache-2.0
// Which files took part, for provenance: every command that reads a file notes it here with its hash.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fabricast/load.hpp"

namespace fabricast {

/// Notes a text that was read from `path`; once per path. A byte order mark does not count.
void note_input(std::vector<InputFile>& inputs, const std::string& path, std::string_view text);
/// The same of a file that others read, by its hash; empty = it was not there.
void note_hash(std::vector<InputFile>& inputs, const std::string& path, const std::string& sha256);
/// The same of a file that can be read again; not of one that is missing, e.g. an optional log.
void note_file(std::vector<InputFile>& inputs, const std::string& path);

}  // namespace fabricast
