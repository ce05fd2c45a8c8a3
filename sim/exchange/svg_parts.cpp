// SPDX-License-Identifier: Apache-2.0
#include "exchange/svg_parts.hpp"

#include <algorithm>
#include <cmath>

namespace fabricast::exchange {

const char* colour_of(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::gpu:
      return "#c6f6d5";
    case DeviceKind::hca:
      return "#bee3f8";
    case DeviceKind::network_switch:
      return "#fed7aa";
    case DeviceKind::nvswitch:
      return "#9ae6b4";
    case DeviceKind::pcie_switch:
      return "#e9d8fd";
    case DeviceKind::root_complex:
      return "#edf2f7";
    default:
      return "#e2e8f0";
  }
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else
      out += c;
  }
  return out;
}

std::string shortened(const std::string& text, std::size_t most) {
  if (text.size() <= most) return text;
  std::size_t end = most > 0 ? most - 1 : 0;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end) + "…";
}

double width_of(Bandwidth rate) {
  return std::clamp(1.0 + 1.6 * std::log10(std::max(1e9, rate.bytes_per_s) * 1e-9), 1.0, 6.0);
}

int heat_of_share(double share) {
  int heat = 0;
  for (const double limit : k_heat_limits) heat += share >= limit ? 1 : 0;
  return heat;
}

const char* const k_heat_style =
    ".heat0{stroke:#a0aec0}.heat1{stroke:#4299e1}.heat2{stroke:#38a169}.heat3{stroke:#d69e2e}.heat4{stroke:#e53e3e}"
    ".heat1,.heat2,.heat3,.heat4{opacity:1}"
    ".use{font-size:11px;font-weight:bold;fill:#1a202c}";

}  // namespace fabricast::exchange
