// SPDX-License-Identifier: Apache-2.0
// The shipped catalogue and parameters, compiled in, so that program and library need no data directory.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fabricast::config {

struct EmbeddedFile {
  std::string_view path;  ///< relative to models/: catalogue/gpus/v100-sxm2-16.yaml
  std::string_view text;
};

/// In alphabetical order of path.
const std::vector<EmbeddedFile>& embedded_files();

}  // namespace fabricast::config
