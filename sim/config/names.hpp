// SPDX-License-Identifier: Apache-2.0
// Names that a wrong one may mean: those that hold its letters ("H100" in 'hgx-h100-8', "allreduce" in
// 'all_reduce_perf'), else those a few letters away.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fabricast::config {

/// Letters and digits alone, in lower case: "Quantum-2" is as good as "quantum2".
std::string letters_of(std::string_view text);

/// At most five of `candidates`, the likeliest first.
std::vector<std::string> meant_names(std::string_view word, const std::vector<std::string>& candidates);

/// "did you mean 'a' or 'b'?"; empty for no names.
std::string meant_hint(const std::vector<std::string>& names);

}  // namespace fabricast::config
