// SPDX-License-Identifier: Apache-2.0
#include "exchange/switch_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "exchange/host_tree.hpp"

namespace fabricast::exchange {

namespace {

constexpr int k_most_of_a_tier = 64;  ///< drawn of a tier, beside those that are needed
constexpr int k_most_in_blocks = 256;
constexpr int k_widest_block = 16;
constexpr int k_most_tier_rows = 4;  ///< a tier rather gets wider than this many rows, up to k_widest
constexpr int k_widest = 18;

/// Equal blocks of switches: the planes of a torus, the groups of a dragonfly.
struct Blocks {
  int columns = 0, rows = 0;  ///< of one block; 0 = the fabric has none
  int per_block = 1;
  int num_switches = 0;  ///< in blocks; further ones were added by hand
};

Blocks blocks_of(const FabricSpec& fabric, int num_switches) {
  Blocks blocks;
  if (fabric.kind == FabricKind::torus && fabric.dimensions.size() >= 2) {
    blocks.columns = fabric.dimensions[0];
    blocks.rows = fabric.dimensions[1];
    blocks.per_block = blocks.columns * blocks.rows;
    blocks.num_switches = 1;
    for (const int size : fabric.dimensions) blocks.num_switches *= size;
  }
  if (fabric.kind == FabricKind::dragonfly && fabric.routers_per_group > 0 && fabric.groups > 0) {
    blocks.per_block = fabric.routers_per_group;
    blocks.columns = static_cast<int>(std::ceil(std::sqrt(blocks.per_block)));
    blocks.rows = (blocks.per_block + blocks.columns - 1) / blocks.columns;
    blocks.num_switches = fabric.groups * fabric.routers_per_group;
  }
  const bool fits = blocks.num_switches <= std::min(k_most_in_blocks, num_switches) &&
                    std::max(blocks.columns, blocks.rows) <= k_widest_block;
  return fits ? blocks : Blocks{};
}

class Layout {
 public:
  Layout(const Topology& topology, const std::set<DeviceId>& needed, int columns)
      : needed_(needed), switches_(topology.devices(DeviceKind::network_switch)), columns_(columns) {
    const int count = static_cast<int>(switches_.size());
    const auto blocks = blocks_of(topology.spec().fabric, count);
    if (blocks.columns > 0) {
      place_blocks(blocks);
      place_tier({switches_.begin() + blocks.num_switches, switches_.end()});
      return;
    }
    const auto tiers = switch_tiers(topology);
    for (int tier = tiers.empty() ? -1 : *std::max_element(tiers.begin(), tiers.end()); tier >= 0; --tier) {
      std::vector<DeviceId> members;
      for (std::size_t s = 0; s < switches_.size(); ++s) {
        if (tiers[s] == tier) members.push_back(switches_[s]);
      }
      place_tier(members);
    }
  }

  SwitchLayout out;

 private:
  void put(DeviceId id, Cell cell) {
    out.cells[id] = cell;
    extend(cell);
  }

  void extend(Cell cell) {
    out.columns = std::max(out.columns, cell.column + 1);
    out.rows = std::max(out.rows, cell.row + 1);
  }

  void place_blocks(const Blocks& blocks) {
    const double width = blocks.columns + 0.5;
    const int beside = std::max(1, static_cast<int>((std::max(columns_, k_widest) + 0.5) / width));
    for (int s = 0; s < blocks.num_switches; ++s) {
      const int block = s / blocks.per_block;
      const int at = s % blocks.per_block;
      put(switches_[static_cast<std::size_t>(s)],
          {block % beside * width + at % blocks.columns,
           block / beside * (blocks.rows + 0.5) + static_cast<double>(at / blocks.columns)});
    }
  }

  /// Those that are needed and as many others as there is room for, in their own order.
  [[nodiscard]] std::vector<DeviceId> chosen(const std::vector<DeviceId>& members) const {
    int room = k_most_of_a_tier - static_cast<int>(std::count_if(members.begin(), members.end(),
                                                                 [&](DeviceId id) { return needed_.count(id) > 0; }));
    std::vector<DeviceId> drawn;
    for (const auto id : members) {
      if (needed_.count(id) > 0 || room-- > 0) drawn.push_back(id);
    }
    return drawn;
  }

  /// One tier below what is placed already; rows are centred.
  void place_tier(const std::vector<DeviceId>& members) {
    if (members.empty()) return;
    const auto drawn = chosen(members);
    const int hidden = static_cast<int>(members.size() - drawn.size());
    const int cells = static_cast<int>(drawn.size()) + (hidden > 0 ? 1 : 0);
    const int wanted = (cells + k_most_tier_rows - 1) / k_most_tier_rows;
    const int beside = std::max({1, columns_, std::min(wanted, k_widest)});
    const double top = out.rows > 0 ? out.rows + 0.6 : 0;
    for (int i = 0; i < cells; ++i) {
      const int in_row = std::min(beside, cells - i / beside * beside);
      const double spread = static_cast<double>(beside) / in_row;
      const Cell cell{(i % beside + 0.5) * spread - 0.5, top + static_cast<double>(i / beside)};
      extend({beside - 1.0, cell.row});
      if (i < static_cast<int>(drawn.size())) {
        put(drawn[static_cast<std::size_t>(i)], cell);
      } else {
        out.notes.push_back({cell, fmt::format("+ {} more", hidden)});
      }
    }
  }

  const std::set<DeviceId>& needed_;
  std::vector<DeviceId> switches_;
  int columns_;
};

}  // namespace

SwitchLayout lay_out_switches(const Topology& topology, const std::set<DeviceId>& needed, int columns) {
  return Layout(topology, needed, columns).out;
}

}  // namespace fabricast::exchange
