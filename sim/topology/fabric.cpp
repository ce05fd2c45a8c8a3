// SPDX-License-Identifier: Apache-2.0
#include "topology/fabric.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "topology/leaves.hpp"

namespace fabricast::topology {

namespace {

constexpr std::size_t k_max_dimensions = 16;
constexpr std::int64_t k_uncountable = std::int64_t{1} << 50;  // products stop growing here

class Generator {
 public:
  Generator(const FabricSpec& spec, const std::vector<HcaPort>& hcas, DeviceValues& values)
      : spec_(spec), hcas_(hcas), values_(values) {}

  Fabric make() {
    if (spec_.rate && spec_.rate->bytes_per_s <= 0) {
      fault("ports of the fabric carry nothing", "give a `rate` above 0, or none to take the slower of HCA and switch");
      return {};
    }
    const auto ports = values_.find(spec_.switch_type, "ports");
    if (ports && spec_.leaf_ports > *ports) {
      fault(fmt::format("leaves of {} ports, a {} has {}", spec_.leaf_ports, spec_.switch_type, *ports),
            "give fewer `leaf_ports` or a bigger switch");
      return {};
    }
    if (!can_split()) return {};
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

  /// Ports in use: all of the switch unless `leaf_ports` says fewer.
  int switch_ports() {
    if (spec_.leaf_ports > 0) return spec_.leaf_ports;
    return static_cast<int>(values_.required(spec_.switch_type, "ports", spec_.location));
  }

  void fault(std::string message, std::string hint) {
    values_.error(spec_.location, std::move(message), std::move(hint));
  }

  int add_switch(std::string name, SwitchPlace place = {}, std::vector<int> coordinates = {}) {
    fabric_.switches.push_back({std::move(name), spec_.switch_type, std::move(coordinates), place, spec_.location});
    return num_hcas() + static_cast<int>(fabric_.switches.size()) - 1;
  }

  void cable(int a, int b) {
    const bool has_hca = a < num_hcas() || b < num_hcas();
    const double length = has_hca ? spec_.cable_length_m : spec_.switch_cable_length_m.value_or(spec_.cable_length_m);
    fabric_.cables.push_back({a, b, spec_.rate ? spec_.rate->bytes_per_s : 0, length});
  }

  void single_switch() {
    const int ports = switch_ports();
    if (const int needed = needed_ports(); needed > ports) {
      const auto splits = needed < num_hcas() ? fmt::format(", with {} ports needed on splitter cables", needed) : "";
      fault(fmt::format("{} HCAs do not fit on one switch of {} ports{}", num_hcas(), ports, splits),
            "use leaf_spine or fat_tree");
      return;
    }
    const int center = add_switch("switch0");
    for (int h = 0; h < num_hcas(); ++h) cable(h, center);
  }

  /// Cables to such HCAs that a port of the switch takes.
  int split_for(const HcaPort& hca) {
    const auto own = values_.find(hca.type, "rate");
    const double rate = spec_.rate ? spec_.rate->bytes_per_s : own.value_or(0);
    return cables_per_port(values_, spec_.switch_type, own ? std::min(rate, *own) : rate);
  }

  /// Ports of the switch that the HCAs need: slow ones share a port by splitter cables.
  int needed_ports() {
    std::map<int, int> by_split;
    for (const auto& hca : hcas_) ++by_split[split_for(hca)];
    return ports_of(by_split);
  }

  /// HCAs on every port down of a leaf: one, or what splitters allow for the fastest HCA.
  int hcas_per_port() {
    if (!spec_.has_splitters) return 1;
    int least = std::numeric_limits<int>::max();
    for (const auto& hca : hcas_) least = std::min(least, split_for(hca));
    return least;
  }

  bool can_split() {
    if (!spec_.has_splitters || hcas_.empty() || hcas_per_port() > 1) return true;
    fault(fmt::format("splitters on ports of a {}, which take one of these HCAs each", spec_.switch_type),
          "remove `splitters`, or take slower HCAs or a switch whose ports can be divided (`port_split`)");
    return false;
  }

  /// What a port up carries for each port down: cables to spines have the switch's rate, those to HCAs the slower of
  /// both ends, as many as share the port. The fastest HCA counts.
  double up_over_down() {
    const double most = spec_.rate ? spec_.rate->bytes_per_s : 1e18;
    const double port = std::min(most, values_.value_or(spec_.switch_type, "rate", most));
    double down = 0;
    for (const auto& hca : hcas_) down = std::max(down, std::min(port, values_.value_or(hca.type, "rate", port)));
    return down > 0 ? port / (down * hcas_per_port()) : 1;
  }

  /// Ports of a leaf towards hosts. Capacity down / capacity up = oversubscription.
  int down_ports() {
    const double ratio = spec_.oversubscription * up_over_down();
    return std::max(1, static_cast<int>(std::floor(switch_ports() * ratio / (1 + ratio) + 1e-9)));
  }

  /// As many as the oversubscription asks for; a port may stay empty when the ratio does not divide the ports.
  int up_ports() { return up_ports(most_down_ > 0 ? most_down_ : down_ports()); }

  int up_ports(int down) {
    const int up = static_cast<int>(std::ceil(down / (spec_.oversubscription * up_over_down()) - 1e-9));
    return std::max(1, std::min(up, switch_ports() - down_ports()));
  }

  /// Reports fabrics nobody builds before memory is spent on them.
  bool is_buildable(std::int64_t switches, std::int64_t cables) {
    if (switches <= k_max_switches && cables <= k_max_cables) return true;
    const bool is_short_of_switches = switches > k_max_switches;
    fault(fmt::format("{} of {} switches and {} cables", to_string(spec_.kind), switches, cables),
          fmt::format("at most {} {} are simulated: make the fabric smaller",
                      is_short_of_switches ? k_max_switches : k_max_cables,
                      is_short_of_switches ? "switches" : "cables"));
    return false;
  }

  std::vector<int> add_leaves(const Group& group, const std::string& name) {
    std::vector<int> hosts;
    for (const int hca : group) hosts.push_back(hcas_[static_cast<std::size_t>(hca)].host);
    const auto filled = fill_leaves(hosts, down_ports() * hcas_per_port());
    const auto num_leaves = static_cast<std::int64_t>(filled.size());
    if (num_leaves > 1)
      most_down_ = std::max(most_down_, (std::ranges::max(filled) + hcas_per_port() - 1) / hcas_per_port());
    std::vector<int> leaves;
    const auto known = static_cast<std::int64_t>(fabric_.switches.size());
    if (!is_buildable(known + num_leaves, num_hcas() + (known + num_leaves) * up_ports())) return leaves;
    auto next = group.begin();
    for (const int hcas : filled) {
      leaves.push_back(add_switch(fmt::format("{}{}", name, leaves.size())));
      for (int i = 0; i < hcas; ++i) cable(*next++, leaves.back());
    }
    return leaves;
  }

  /// Spines with as many cables from every leaf as it has ports up, dealt out in turn.
  void add_spines(const std::vector<int>& leaves, const std::string& name, int wanted) {
    if (leaves.size() < 2) return;
    const int ports = switch_ports();
    // Who asks for more spines than whole hosts need gets the ports that they leave empty.
    const int up = wanted > up_ports() ? up_ports(down_ports()) : up_ports();
    const int num_leaves = static_cast<int>(leaves.size());
    if (wanted > up) {
      fault(fmt::format("{} spines, but a leaf has {} ports up", wanted, up),
            fmt::format("every leaf needs a cable to every spine: take at most {} spines, or leaves with more ports",
                        up));
      return;
    }
    const int spines = wanted > 0 ? wanted : fewest_spines(num_leaves, up, ports);
    const int needed = (num_leaves * up + spines - 1) / spines;
    // Spines are laid out like the leaves, but all ports of the switch are there to be used.
    const int most = std::max(ports, static_cast<int>(values_.value_or(spec_.switch_type, "ports", ports)));
    if (needed > most) {
      fault(fmt::format("{} leaves need {} spines of {} ports, the switch has {}", num_leaves, spines, needed, most),
            wanted > 0 ? "take more spines" : "use fat_tree with 3 tiers, more oversubscription or a bigger switch");
      return;
    }
    std::vector<int> made;
    for (int s = 0; s < spines; ++s) made.push_back(add_switch(fmt::format("{}{}", name, s), {1, 0}));
    for (int l = 0; l < num_leaves; ++l) {
      for (int u = 0; u < up; ++u)
        cable(leaves[static_cast<std::size_t>(l)], made[static_cast<std::size_t>((l * up + u) % spines)]);
    }
  }

  void two_tiers(const Group& group, const std::string& leaf, const std::string& spine, int spines) {
    add_spines(add_leaves(group, leaf), spine, spines);
  }

  /// Pods of leaves and aggregation switches; aggregation switch j of every pod meets core group j.
  void three_tiers() {
    const int ports = switch_ports();
    const int leaves_per_pod = std::max(1, ports / 2);
    const int aggregation_up = ports - leaves_per_pod;
    const auto leaves = add_leaves(everybody(), "leaf");
    const int up = up_ports();
    const int pods = (static_cast<int>(leaves.size()) + leaves_per_pod - 1) / leaves_per_pod;
    if (pods > ports)
      return fault(fmt::format("{} HCAs need {} pods, a core switch has {} ports", num_hcas(), pods, ports),
                   "use a bigger switch or more oversubscription");
    const auto num_leaves = static_cast<std::int64_t>(leaves.size());
    const std::int64_t cores = pods < 2 ? 0 : static_cast<std::int64_t>(up) * aggregation_up;
    if (!is_buildable(num_leaves + static_cast<std::int64_t>(pods) * up + cores,
                      num_hcas() + num_leaves * up + cores * pods))
      return;
    std::vector<std::vector<int>> aggregation(static_cast<std::size_t>(pods));
    for (int pod = 0; pod < pods; ++pod) {
      for (int j = 0; j < up; ++j)
        aggregation[static_cast<std::size_t>(pod)].push_back(add_switch(fmt::format("pod{}-agg{}", pod, j), {1, pod}));
    }
    for (std::size_t l = 0; l < leaves.size(); ++l) {
      for (const int agg : aggregation[l / static_cast<std::size_t>(leaves_per_pod)]) cable(leaves[l], agg);
    }
    if (pods < 2) return;
    for (int j = 0; j < up; ++j) {
      for (int c = 0; c < aggregation_up; ++c) {
        const int core = add_switch(fmt::format("core{}-{}", j, c), {2, 0});
        for (int pod = 0; pod < pods; ++pod)
          cable(aggregation[static_cast<std::size_t>(pod)][static_cast<std::size_t>(j)], core);
      }
    }
  }

  void rails() {
    int most = 0;
    for (const auto& hca : hcas_) most = std::max(most, hca.ordinal + 1);
    const int rails = spec_.rails == 0 ? most : spec_.rails;
    if (rails > most)
      return fault(fmt::format("{} rails of hosts with {} HCAs", rails, most), "lower `rails`, or leave it out");
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
    // Balanced when not given: routers = 2 * hosts, and ports = hosts + (routers - 1) + global links
    // [Kim et al., ISCA 2008].
    const int per_router = spec_.hosts_per_router > 0 ? spec_.hosts_per_router : std::max(1, (switch_ports() + 1) / 4);
    const int routers = spec_.routers_per_group > 0 ? spec_.routers_per_group : 2 * per_router;
    int groups = spec_.groups;
    if (groups == 0) groups = (num_hcas() + per_router * routers - 1) / (per_router * routers);
    if (num_hcas() > static_cast<long>(groups) * routers * per_router) {
      fault(fmt::format("{} HCAs do not fit into {} groups of {} routers with {} each", num_hcas(), groups, routers,
                        per_router),
            "raise groups, routers_per_group or hosts_per_router");
      return;
    }
    if (groups > 1 && routers * spec_.global_links < groups - 1) {
      fault(fmt::format("{} routers with {} global links each reach {} of the {} other groups", routers,
                        spec_.global_links, routers * spec_.global_links, groups - 1),
            "raise global_links or routers_per_group, or take fewer groups");
      return;
    }
    // The global ports of a group are dealt out to the other groups in turn.
    const int links = groups > 1 ? routers * spec_.global_links / (groups - 1) : 0;
    const auto num_routers = static_cast<std::int64_t>(groups) * routers;
    const std::int64_t global_cables = static_cast<std::int64_t>(groups) * (groups - 1) / 2 * links;
    if (!is_buildable(num_routers, num_hcas() + num_routers * (routers - 1) / 2 * spec_.local_links + global_cables))
      return;
    fabric_.num_routers = groups * routers;
    fabric_.routers_per_group = routers;
    std::vector<int> made;
    for (int g = 0; g < groups; ++g) {
      for (int r = 0; r < routers; ++r) made.push_back(add_switch(fmt::format("group{}-router{}", g, r), {0, g}));
    }
    for (int h = 0; h < num_hcas(); ++h) cable(h, made[static_cast<std::size_t>(h / per_router)]);
    const auto router = [&](int g, int r) { return made[static_cast<std::size_t>(g * routers + r % routers)]; };
    for (int g = 0; g < groups; ++g) {
      for (int a = 0; a < routers; ++a)
        for (int b = a + 1; b < routers; ++b)
          for (int k = 0; k < spec_.local_links; ++k) cable(router(g, a), router(g, b));
    }
    std::vector<int> used(static_cast<std::size_t>(groups), 0);
    for (int a = 0; a < groups; ++a) {
      for (int b = a + 1; b < groups; ++b) {
        for (int k = 0; k < links; ++k)
          cable(router(a, used[static_cast<std::size_t>(a)]++), router(b, used[static_cast<std::size_t>(b)]++));
      }
    }
  }

  void torus() {
    std::int64_t product = 1;
    for (const int d : spec_.dimensions) product = std::min<std::int64_t>(product * std::max(0, d), k_uncountable);
    if (spec_.dimensions.empty() || product == 0) {
      fault("a torus without routers", "give `dimensions` of 1 or more, like [4, 4, 4]");
      return;
    }
    if (spec_.dimensions.size() > k_max_dimensions) {
      fault(fmt::format("a torus of {} dimensions", spec_.dimensions.size()),
            fmt::format("give at most {} `dimensions`", k_max_dimensions));
      return;
    }
    if (!is_buildable(product, num_hcas() + product * static_cast<std::int64_t>(spec_.dimensions.size()))) return;
    const int routers = static_cast<int>(product);
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
      made.push_back(add_switch(name, {}, place));
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

  const FabricSpec& spec_;
  const std::vector<HcaPort>& hcas_;
  DeviceValues& values_;
  int most_down_ = 0;  ///< ports down in use on the fullest of several leaves
  Fabric fabric_;
};

}  // namespace

bool needs_ports(const FabricSpec& spec) {
  switch (spec.kind) {
    case FabricKind::none:
    case FabricKind::list:
    case FabricKind::torus:
      return false;
    case FabricKind::dragonfly:
      return spec.hosts_per_router < 1;
    case FabricKind::single_switch:
    case FabricKind::leaf_spine:
    case FabricKind::fat_tree:
    case FabricKind::rail_optimized:
      return spec.leaf_ports < 1;
  }
  return false;
}

Fabric make_fabric(const FabricSpec& spec, const std::vector<HcaPort>& hcas, DeviceValues& values) {
  const auto faults_before = values.num_faults();
  auto fabric = Generator(spec, hcas, values).make();
  if (values.num_faults() > faults_before) return fabric;  // cables by hand may end at what could not be made
  add_by_hand(spec, hcas, fabric, values);
  check_ports(fabric, hcas, values);
  return fabric;
}

}  // namespace fabricast::topology
