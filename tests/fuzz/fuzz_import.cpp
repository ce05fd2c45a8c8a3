// SPDX-License-Identifier: Apache-2.0
// Any text as what a cluster prints: read by every importer, the one it looks like first; by one alone where
// FABRICAST_FUZZ_FORMAT names it, so that a fuzz run spends its time there. What is accepted is YAML with a head, of a
// size that the text accounts for.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/assert.hpp"
#include "fabricast/import.hpp"

namespace {

std::vector<std::string> formats_to_read() {
  auto all = fabricast::source_format_names();
  if (const char* one = std::getenv("FABRICAST_FUZZ_FORMAT"); one != nullptr) {
    FABRICAST_ASSERT(std::find(all.begin(), all.end(), one) != all.end(), "FABRICAST_FUZZ_FORMAT={} is no format", one);
    return {one};
  }
  all.insert(all.begin(), "");
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fabricast;
  static const auto formats = formats_to_read();
  const std::string text(reinterpret_cast<const char*>(data), size);
  for (const auto& format : formats) {
    ImportOptions options;
    options.gpu = "a100-pcie-40";
    const auto imported = import_cluster({{"fuzz", text, SourceRole::any, format}}, options);
    if (!imported) {
      FABRICAST_ASSERT(!render(imported.error()).empty(), "refused without a reason");
      continue;
    }
    (void)render(imported->findings);
    FABRICAST_ASSERT(imported->yaml.starts_with("# yaml-language-server") ||
                         imported->yaml.find("\nlossless:\n") != std::string::npos,
                     "neither a topology nor settings of a switch");
    FABRICAST_ASSERT(imported->yaml.size() < (std::size_t{64} << 20), "{} bytes of YAML from {}", imported->yaml.size(),
                     size);
  }
  return 0;
}
