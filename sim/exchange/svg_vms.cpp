// SPDX-License-Identifier: Apache-2.0
#include "exchange/svg_vms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "exchange/svg_parts.hpp"

namespace fabricast::exchange {

namespace {

constexpr std::size_t k_drawn_vms = 10;
constexpr double k_line = 17, k_character = 6.2;
constexpr std::array k_colours{"#e53e3e", "#3182ce", "#38a169", "#d69e2e", "#805ad5",
                               "#dd6b20", "#319795", "#d53f8c", "#718096", "#2c5282"};

}  // namespace

double height_of_vms(std::size_t count) {
  if (count == 0) return 0;
  return k_line * static_cast<double>(std::min(count, k_drawn_vms) + (count > k_drawn_vms ? 1 : 0)) + 12;
}

std::string draw_vms(const std::vector<VmView>& vms, double x, double y, double width, std::vector<VmMark>& marks) {
  std::string out;
  const auto most = static_cast<std::size_t>(std::max(4.0, (width - 18) / k_character));
  for (std::size_t v = 0; v < std::min(vms.size(), k_drawn_vms); ++v) {
    const auto& vm = vms[v];
    const auto* colour = k_colours[v % k_colours.size()];
    const double at = y + k_line * static_cast<double>(v) + 12;
    const auto words = fmt::format("{}: {}", vm.name, vm.words);
    out += fmt::format(
        "<g class=\"vm\"><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"10\" height=\"10\" fill=\"{}\"/><text x=\"{:.1f}\" "
        "y=\"{:.1f}\" class=\"note\">{}</text><title>VM {}</title></g>\n",
        x, at - 9, colour, x + 16, at, escaped(shortened(words, most)), escaped(words));
    for (const auto device : vm.held) marks.push_back({device, vm.name, colour});
  }
  if (vms.size() > k_drawn_vms)
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" class=\"note\">+ {} more VMs</text>\n", x + 16,
                       y + k_line * static_cast<double>(k_drawn_vms) + 12, vms.size() - k_drawn_vms);
  return out;
}

}  // namespace fabricast::exchange
