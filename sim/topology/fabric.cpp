// SPDX-License-Identifier: Apache-2.0
#include "topology/fabric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace fabricast::topology {

namespace {

class Generator {
 public:
  Generator(const FabricSpec& spec, const std::vector<HcaPort>& hcas, const ParameterSet& parameters,
            Diagnostics& faults)
      : spec_(spec), hcas_(hcas), parameters_(parameters), faults_(faults) {}

  Fabric make() {
    switch (spec_.kind) {
      case FabricKind::none:
      case FabricKind::list:
        break;
      case FabricKind::single_switch:
        single_switch();
        break;
      case FabricKind::leaf_spine:
        two_tiers(everybody(), "leaf", "spine", spec_.spines);
        break;
      case FabricKind::fat_tree:
        spec_.tiers == 3 ? three_tiers() : two_tiers(everybody(), "leaf", "spine", 0);
        break;
      case FabricKind::rail_optimized:
        rails();
        break;
      case FabricKind::dragonfly:
        dragonfly();
        break;
      case FabricKind::torus:
        torus();
        break;
    }
    by_hand();
    return std::move(fabric_);
  }

 private:
  using Group = std::vector<int>;  // HCA indices

  [[nodiscard]] int num_hcas() const { return static_cast<int>(hcas_.size()); }
  [[nodiscard]] Group everybody() const {
    Group all(hcas_.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int>(i);
    return all;
  }

  [[nodiscard]] int switch_ports() const {
    if (spec_.leaf_ports > 0) return spec_.leaf_ports;
    const auto* ports = parameters_.find(spec_.switch_type + ".ports");
    return ports == nullptr ? 64 : static_cast<int>(ports->value);
  }

  void fault(std::string message, std::string hint, const SourceLocation& where) {
    auto diagnostic = make_error(std::move(message), std::move(hint));
    diagnostic.location = where;
    faults_.push_back(std::move(diagnostic));
  }

  int add_switch(std::string name, std::vector<int> coordinates = {}) {
    fabric_.switches.push_back({std::move(name), spec_.switch_type, std::move(coordinates), -1});
    return num_hcas() + static_cast<int>(fabric_.switches.size()) - 1;
  }

  void cable(int a, int b) {
    const bool has_hca = a < num_hcas() || b < num_hcas();
    const double length = has_hca ? spec_.cable_length_m : spec_.switch_cable_length_m.value_or(spec_.cable_length_m);
    fabric_.cables.push_back({a, b, spec_.rate ? spec_.rate->bytes_per_s : 0, length});
  }

  void single_switch() {
    const int ports = switch_ports();
    if (num_hcas() > ports) {
      fault(fmt::format("{} HCAs do not fit on one switch of {} ports", num_hcas(), ports),
            "use leaf_spine or fat_tree", spec_.location);
      return;
    }
    const int center = add_switch("switch0");
    for (int h = 0; h < num_hcas(); ++h) cable(h, center);
  }

  /// Ports of a leaf towards hosts; the rest go up. down / up = oversubscription.
  [[nodiscard]] int down_ports() const {
    const double share = spec_.oversubscription / (1 + spec_.oversubscription);
    return std::max(1, static_cast<int>(std::floor(switch_ports() * share + 1e-9)));
  }

  std::vector<int> add_leaves(const Group& group, const std::string& name) {
    const int down = down_ports();
    std::vector<int> leaves;
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (i % static_cast<std::size_t>(down) == 0)
        leaves.push_back(add_switch(fmt::format("{}{}", name, leaves.size())));
      cable(group[i], leaves.back());
    }
    return leaves;
  }

  /// Spines with as many cables from every leaf as it has ports up, spread evenly.
  void add_spines(const std::vector<int>& leaves, const std::string& name, int wanted) {
    if (leaves.size() < 2) return;
    const int ports = switch_ports();
    const int up = std::max(1, ports - down_ports());
    const int total = up * static_cast<int>(leaves.size());
    const int spines = wanted > 0 ? wanted : std::max(1, (total + ports - 1) / ports);
    if (static_cast<int>(leaves.size()) * ((up + spines - 1) / spines) > ports &&
        static_cast<int>(leaves.size()) > ports) {
      fault(fmt::format("{} leaves need spines of {} ports, the switch has {}", leaves.size(), leaves.size(), ports),
            "use fat_tree with 3 tiers, more oversubscription or a bigger switch", spec_.location);
      return;
    }
    std::vector<int> made;
    for (int s = 0; s < spines; ++s) made.push_back(add_switch(fmt::format("{}{}", name, s)));
    for (std::size_t l = 0; l < leaves.size(); ++l) {
      // Fewer ports up than spines: start at another spine for every leaf.
      const int offset = up < spines ? static_cast<int>(l) * up : 0;
      for (int u = 0; u < std::max(up, 1); ++u) cable(leaves[l], made[static_cast<std::size_t>((u + offset) % spines)]);
    }
  }

  void two_tiers(const Group& group, const std::string& leaf, const std::string& spine, int spines) {
    add_spines(add_leaves(group, leaf), spine, spines);
  }

  /// Pods of leaves and aggregation switches; aggregation switch j of every pod meets core group j.
  void three_tiers() {
    const int ports = switch_ports();
    const int down = down_ports();
    const int up = std::max(1, ports - down);
    const int leaves_per_pod = std::max(1, ports / 2);
    const int aggregation_up = ports - leaves_per_pod;
    const auto leaves = add_leaves(everybody(), "leaf");
    const int pods = (static_cast<int>(leaves.size()) + leaves_per_pod - 1) / leaves_per_pod;
    if (pods > ports) {
      fault(fmt::format("{} HCAs need {} pods, a core switch has {} ports", num_hcas(), pods, ports),
            "use a bigger switch or more oversubscription", spec_.location);
      return;
    }
    std::vector<std::vector<int>> aggregation(static_cast<std::size_t>(pods));
    for (int pod = 0; pod < pods; ++pod) {
      for (int j = 0; j < up; ++j)
        aggregation[static_cast<std::size_t>(pod)].push_back(add_switch(fmt::format("pod{}-agg{}", pod, j)));
    }
    for (std::size_t l = 0; l < leaves.size(); ++l) {
      for (const int agg : aggregation[l / static_cast<std::size_t>(leaves_per_pod)]) cable(leaves[l], agg);
    }
    if (pods < 2) return;
    for (int j = 0; j < up; ++j) {
      for (int c = 0; c < aggregation_up; ++c) {
        const int core = add_switch(fmt::format("core{}-{}", j, c));
        for (int pod = 0; pod < pods; ++pod)
          cable(aggregation[static_cast<std::size_t>(pod)][static_cast<std::size_t>(j)], core);
      }
    }
  }

  void rails() {
    int rails = spec_.rails;
    if (rails == 0) {
      for (const auto& hca : hcas_) rails = std::max(rails, hca.ordinal + 1);
    }
    std::vector<int> leaves;
    for (int rail = 0; rail < rails; ++rail) {
      Group group;
      for (int h = 0; h < num_hcas(); ++h) {
        if (hcas_[static_cast<std::size_t>(h)].ordinal % rails == rail) group.push_back(h);
      }
      const auto made = add_leaves(group, fmt::format("rail{}-leaf", rail));
      leaves.insert(leaves.end(), made.begin(), made.end());
    }
    add_spines(leaves, "spine", spec_.spines);
  }

  void dragonfly() {
    const int per_router = std::max(1, spec_.hosts_per_router);
    const int routers = std::max(1, spec_.routers_per_group);
    int groups = spec_.groups;
    if (groups == 0) groups = (num_hcas() + per_router * routers - 1) / (per_router * routers);
    if (num_hcas() > groups * routers * per_router) {
      fault(fmt::format("{} HCAs do not fit into {} groups of {} routers with {} each", num_hcas(), groups, routers,
                        per_router),
            "raise groups, routers_per_group or hosts_per_router", spec_.location);
      return;
    }
    std::vector<int> made;
    for (int g = 0; g < groups; ++g) {
      for (int r = 0; r < routers; ++r) {
        made.push_back(add_switch(fmt::format("group{}-router{}", g, r)));
        fabric_.switches.back().group = g;
      }
    }
    for (int h = 0; h < num_hcas(); ++h) cable(h, made[static_cast<std::size_t>(h / per_router)]);
    const auto router = [&](int g, int r) { return made[static_cast<std::size_t>(g * routers + r % routers)]; };
    for (int g = 0; g < groups; ++g) {
      for (int a = 0; a < routers; ++a) {
        for (int b = a + 1; b < routers; ++b) cable(router(g, a), router(g, b));
      }
    }
    // The global ports of a group are dealt out to the other groups in turn.
    const int links = groups > 1 ? std::max(1, routers * spec_.global_links / (groups - 1)) : 0;
    std::vector<int> used(static_cast<std::size_t>(groups), 0);
    for (int a = 0; a < groups; ++a) {
      for (int b = a + 1; b < groups; ++b) {
        for (int k = 0; k < links; ++k)
          cable(router(a, used[static_cast<std::size_t>(a)]++), router(b, used[static_cast<std::size_t>(b)]++));
      }
    }
  }

  void torus() {
    int routers = 1;
    for (const int d : spec_.dimensions) routers *= std::max(1, d);
    const int per_router = (num_hcas() + routers - 1) / routers;
    std::vector<int> made;
    std::vector<std::vector<int>> places;
    for (int r = 0; r < routers; ++r) {
      std::vector<int> place;
      int rest = r;
      std::string name = "router";
      for (const int d : spec_.dimensions) {
        place.push_back(rest % d);
        rest /= d;
        name += fmt::format("{}{}", place.size() > 1 ? "-" : "", place.back());
      }
      made.push_back(add_switch(name, place));
      places.push_back(place);
    }
    for (int h = 0; h < num_hcas(); ++h) cable(h, made[static_cast<std::size_t>(h / std::max(1, per_router))]);
    int stride = 1;
    for (std::size_t d = 0; d < spec_.dimensions.size(); ++d) {
      const int size = spec_.dimensions[d];
      for (int r = 0; r < routers; ++r) {
        const int at = places[static_cast<std::size_t>(r)][d];
        if (size < 2 || (size == 2 && at == 1)) continue;
        cable(made[static_cast<std::size_t>(r)],
              made[static_cast<std::size_t>(r + (at + 1 == size ? -at : 1) * stride)]);
      }
      stride *= size;
    }
  }

  /// Switches and cables written one by one.
  void by_hand() {
    std::map<std::string, int> ends;
    for (int h = 0; h < num_hcas(); ++h) ends[hcas_[static_cast<std::size_t>(h)].name] = h;
    for (std::size_t s = 0; s < fabric_.switches.size(); ++s)
      ends[fabric_.switches[s].name] = num_hcas() + static_cast<int>(s);
    for (const auto& one : spec_.switches) {
      if (ends.count(one.name) > 0)
        fault(fmt::format("two switches are called '{}'", one.name), "give every switch its own name", one.location);
      fabric_.switches.push_back({one.name, one.type, {}, -1});
      ends[one.name] = num_hcas() + static_cast<int>(fabric_.switches.size()) - 1;
    }
    for (const auto& one : spec_.cables) {
      const auto end = [&](const std::string& name) {
        const auto it = ends.find(name);
        if (it != ends.end()) return it->second;
        std::vector<std::string> known;
        for (const auto& [other, index] : ends) known.push_back(other);
        const auto near = nearest_name(name, known);
        fault(fmt::format("cable ends at '{}', which is no HCA or switch", name),
              near.empty() ? "ends are host.hcaN or switch names" : fmt::format("did you mean '{}'?", near),
              one.location);
        return -1;
      };
      const int a = end(one.from);
      const int b = end(one.to);
      if (a < 0 || b < 0) continue;
      for (int k = 0; k < std::max(1, one.count); ++k) {
        fabric_.cables.push_back(
            {a, b, one.rate ? one.rate->bytes_per_s : 0, one.length_m.value_or(spec_.cable_length_m)});
      }
    }
  }

  const FabricSpec& spec_;
  const std::vector<HcaPort>& hcas_;
  const ParameterSet& parameters_;
  Diagnostics& faults_;
  Fabric fabric_;
};

}  // namespace

Fabric make_fabric(const FabricSpec& spec, const std::vector<HcaPort>& hcas, const ParameterSet& parameters,
                   Diagnostics& faults) {
  return Generator(spec, hcas, parameters, faults).make();
}

}  // namespace fabricast::topology
