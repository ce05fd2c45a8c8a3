// SPDX-License-Identifier: Apache-2.0
#include "engine/causes.hpp"

namespace fabricast::engine {

namespace {

Duration end_of(const OperationTiming& timing, int node) { return timing.nodes[static_cast<std::size_t>(node)].end; }

}  // namespace

std::vector<int> waited_for(const models::Program& program, const OperationTiming& timing, int ignored_stream) {
  std::vector<int> last_of_stream(program.streams.size(), -1);
  std::vector<int> causes(program.nodes.size(), -1);
  for (std::size_t n = 0; n < program.nodes.size(); ++n) {
    const auto& node = program.nodes[n];
    auto& cause = causes[n];
    const auto see = [&](int earlier) {
      if (earlier >= 0 && (cause < 0 || end_of(timing, earlier) > end_of(timing, cause))) cause = earlier;
    };
    for (const int earlier : node.after) see(earlier);
    if (node.stream < 0 || node.stream == ignored_stream) continue;
    auto& last = last_of_stream[static_cast<std::size_t>(node.stream)];
    see(last);
    last = static_cast<int>(n);
  }
  return causes;
}

int last_to_end(const OperationTiming& timing) {
  int last = -1;
  for (int n = 0; n < static_cast<int>(timing.nodes.size()); ++n) {
    if (last < 0 || end_of(timing, n) > end_of(timing, last)) last = n;
  }
  return last;
}

}  // namespace fabricast::engine
