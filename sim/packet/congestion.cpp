// SPDX-License-Identifier: Apache-2.0
#include "packet/congestion.hpp"

#include <array>
#include <cstdint>

#include "packet/dcqcn.hpp"

namespace fabricast::packet {

namespace {

/// Sends at line rate whatever happens.
class NoControl final : public CongestionControl {
 public:
  using CongestionControl::CongestionControl;
  void on_ack(Time, std::uint32_t) override {}
  void on_cnp(Time) override {}
  bool on_mark(Time) override { return false; }
  void pace(Time, std::int64_t) override {}
  [[nodiscard]] unsigned phase(Time) const override { return 0; }
  std::int64_t walk(StateWalk&) override { return 0; }
  [[nodiscard]] Time next_change(Time) const override { return k_never; }
  [[nodiscard]] std::int64_t periods_until_step(std::int64_t) const override { return INT64_MAX; }
};

using Maker = std::unique_ptr<CongestionControl> (*)(const TransportConfig&, const TransportConfig&, double);

struct Entry {
  std::string_view name;
  Maker make;
};

constexpr std::array<Entry, 2> k_controls{{
    {"none",
     [](const TransportConfig&, const TransportConfig&, double line) -> std::unique_ptr<CongestionControl> {
       return std::make_unique<NoControl>(line);
     }},
    {"dcqcn",
     [](const TransportConfig& sender, const TransportConfig& receiver, double line)
         -> std::unique_ptr<CongestionControl> { return std::make_unique<Dcqcn>(sender.dcqcn, receiver.dcqcn, line); }},
}};

}  // namespace

std::unique_ptr<CongestionControl> make_congestion_control(const TransportConfig& sender,
                                                           const TransportConfig& receiver, double line_rate) {
  for (const auto& [name, make] : k_controls)
    if (name == sender.congestion_control) return make(sender, receiver, line_rate);
  return nullptr;
}

std::vector<std::string_view> congestion_control_names() {
  std::vector<std::string_view> names;
  for (const auto& entry : k_controls) names.push_back(entry.name);
  return names;
}

}  // namespace fabricast::packet
