// SPDX-License-Identifier: Apache-2.0
// The first line is read as a quantity of every dimension; each further line `path=value` is set in a small scenario.
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/assert.hpp"
#include "base/text.hpp"
#include "fabricast/fabricast.hpp"

namespace {

using namespace fabricast;

constexpr std::string_view k_scenario = R"(schema: fabricast/scenario/1
name: settings
topology:
  schema: fabricast/topology/1
  name: pair
  hosts:
    - {name: node, count: 2, type: dgx-a100}
  fabric: {single_switch: {switch: quantum-hdr}}
workloads:
  - {benchmark: ib_write_bw, sizes: [64 KiB]}
)";

void read_quantity(std::string_view text) {
  for (const auto dimension : {Dimension::bytes, Dimension::time, Dimension::bandwidth, Dimension::number}) {
    const auto parsed = parse_quantity(text, dimension);
    FABRICAST_ASSERT(parsed.ok == parsed.error.empty(), "'{}' is neither read nor refused", text);
    if (!parsed.ok) continue;
    FABRICAST_ASSERT(std::isfinite(parsed.value), "'{}' is {}", text, parsed.value);
    FABRICAST_ASSERT(dimension == Dimension::number || parsed.value >= 0, "'{}' is {}", text, parsed.value);
    const auto printed = quantity_text(parsed.value, dimension, 3);
    FABRICAST_ASSERT(parse_quantity(printed, dimension).ok, "'{}' is printed as '{}'", text, printed);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto end = text.find('\n');
  read_quantity(text.substr(0, end));
  std::vector<Setting> settings;
  while (end != std::string_view::npos && !text.empty() && settings.size() < 8) {
    const auto next = text.find('\n');
    if (next == std::string_view::npos) break;
    text.remove_prefix(next + 1);
    const auto line = text.substr(0, text.find('\n'));
    const auto equals = line.find('=');
    if (equals == std::string_view::npos || equals == 0) continue;
    settings.push_back({std::string(line.substr(0, equals)), std::string(line.substr(equals + 1))});
  }
  const auto loaded = load_scenario_text("fuzz.yaml", std::string(k_scenario), {}, settings);
  if (loaded) return 0;
  const auto message = render(loaded.error());
  FABRICAST_ASSERT(printable(message, Keep::lines) == message, "a message has a control character: {}",
                   printable(message));
  return 0;
}
