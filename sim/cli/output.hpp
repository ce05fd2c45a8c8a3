// SPDX-License-Identifier: Apache-2.0
// Files that commands write. A file is whole or as it was before: the text goes to a temporary file beside it, is
// flushed to the disk and then takes the name. Pipes, devices and standard output are written directly.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace fabricast::cli {

/// A file that a command is about to write, and the option that named it.
struct OutputFile {
  std::string option;  ///< "-o"
  std::string path;    ///< "-" is standard output
};

/// Lower-case suffix of the path's last part, without the dot; empty when it has none.
std::string suffix_of(const std::string& path);

/// The format for `path` by its suffix, else the first of `formats`. A suffix that names none of them is a usage error:
/// a spreadsheet or a picture full of text helps nobody. Several suffixes may mean one format ("yml" and "yaml").
std::string format_by_suffix(const OutputFile& file, const std::vector<std::string>& formats);

/// A usage error when one of `outputs` is one of `inputs` (by whatever link or name) or is named twice.
void refuse_overwriting(std::span<const OutputFile> outputs, std::span<const std::string> inputs);

/// Writes to the file or, for "-", to standard output. False (and a message) when that fails.
bool write_output(const std::string& path, const std::string& text, int& exit_code);

/// What was printed has reached standard output. False (and a message) when not: a full disk, a closed pipe.
bool flush_standard_output(int& exit_code);

/// For signal handlers: no temporary file stays behind.
void remove_temporary_file();

}  // namespace fabricast::cli
