// SPDX-License-Identifier: Apache-2.0
// How many cables go up from each switch of a scheduler's tree: it says who is below whom, not by how many cables.
#include <algorithm>
#include <set>

#include "import/write_topology.hpp"

namespace fabricast::import {

namespace {

class Uplinks {
 public:
  Uplinks(const PlacementSeen& placement, int adapters, int ports)
      : placement_(placement), adapters_(adapters), ports_(ports) {
    for (std::size_t i = 0; i < placement.switches.size(); ++i) {
      number_[placement.switches[i].name] = i;
      for (const auto& child : placement.switches[i].children) parents_[child].push_back(i);
    }
    down_.assign(placement.switches.size(), 0);
  }

  std::optional<PlacementCables> count() {
    for (std::size_t i = 0; i < placement_.switches.size(); ++i) {
      if (!visit(i)) return std::nullopt;
    }
    return std::move(out_);
  }

 private:
  /// Children first, without recursion; a switch that is above itself has no cables of its own there.
  bool visit(std::size_t root) {
    std::vector<std::pair<std::size_t, bool>> open{{root, false}};
    while (!open.empty()) {
      const auto [at, is_done] = open.back();
      open.pop_back();
      if (is_done) {
        if (!connect(at)) return false;
        continue;
      }
      if (!seen_.insert(at).second) continue;
      open.emplace_back(at, true);
      for (const auto& child : placement_.switches[at].children) {
        const auto known = number_.find(child);
        if (known != number_.end()) open.emplace_back(known->second, false);
      }
    }
    return true;
  }

  /// As many up as down, but no more than the switch and those above have ports for.
  bool connect(std::size_t at) {
    const auto& one = placement_.switches[at];
    const int down = down_[at] + static_cast<int>(one.hosts.size()) * adapters_;
    const auto above = parents_.find(one.name);
    if (above == parents_.end()) return down <= ports_;
    const int num_parents = static_cast<int>(above->second.size());
    if (down + num_parents > ports_) return false;
    const int up = std::min(std::max(1, down), ports_ - down) / num_parents;
    for (const auto parent : above->second) {
      const int most = room_below(parent) / static_cast<int>(placement_.switches[parent].children.size());
      if (most < 1) return false;
      const int cables = std::clamp(up, 1, most);
      out_.is_cut = out_.is_cut || cables < down / num_parents;
      out_.has_tier = out_.has_tier || cables < up;
      down_[parent] += cables;
      out_.counts[{one.name, placement_.switches[parent].name}] = cables;
    }
    return true;
  }

  /// Ports of a switch for the switches below: half of them where it has others above.
  [[nodiscard]] int room_below(std::size_t at) const {
    const auto& one = placement_.switches[at];
    const int room = parents_.contains(one.name) ? ports_ / 2 : ports_;
    return room - static_cast<int>(one.hosts.size()) * adapters_;
  }

  const PlacementSeen& placement_;
  int adapters_, ports_;
  std::map<std::string, std::size_t> number_;
  std::map<std::string, std::vector<std::size_t>> parents_;
  std::vector<int> down_;
  std::set<std::size_t> seen_;
  PlacementCables out_;
};

}  // namespace

std::optional<PlacementCables> placement_cables(const PlacementSeen& placement, int adapters, int ports) {
  return Uplinks(placement, adapters, ports).count();
}

}  // namespace fabricast::import
