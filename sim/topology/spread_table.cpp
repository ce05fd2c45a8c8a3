// SPDX-License-Identifier: Apache-2.0
#include "topology/spread_table.hpp"

#include <algorithm>
#include <map>
#include <tuple>

namespace fabricast::topology {

SpreadTable::SpreadTable(const std::vector<Link>& links, int first_link, int first_switch,
                         const std::vector<SwitchPlace>& places)
    : of_link_(links.size(), {-1, -1}) {
  std::map<std::pair<int, int>, int> first_of_group;  // of a tier
  for (std::size_t s = 0; s < places.size(); ++s)
    first_of_group.try_emplace({places[s].tier, places[s].group}, static_cast<int>(s));
  std::map<std::tuple<SpreadOver, bool, int>, int> known;
  const auto add = [&](SpreadOver over, bool is_out, int at, LinkId link) {
    const auto [place, is_new] = known.try_emplace({over, is_out, at}, static_cast<int>(shared_.size()));
    if (is_new) shared_.push_back({over, is_out, {first_switch + at}, {}});
    shared_[static_cast<std::size_t>(place->second)].links.push_back(link);
    return place->second;
  };
  const auto is_placed = [&](int number) { return number >= 0 && number < static_cast<int>(places.size()); };
  const auto place_of = [&](int number) -> const SwitchPlace& { return places[static_cast<std::size_t>(number)]; };
  const auto group_of = [&](int number) { return first_of_group.at({place_of(number).tier, place_of(number).group}); };
  for (std::size_t l = 0; l < links.size(); ++l) {
    const int from = links[l].from.value - first_switch, to = links[l].to.value - first_switch;
    if (!is_placed(from) || !is_placed(to)) continue;
    const LinkId id{first_link + static_cast<int>(l)};
    auto& [out, in] = of_link_[l];
    const auto &start = place_of(from), &end = place_of(to);
    if (start.tier != end.tier) {
      const bool is_up = start.tier < end.tier;
      const int lower = is_up ? from : to;
      const bool is_of_leaf = place_of(lower).tier == 0;
      (is_up ? out : in) =
          add(is_of_leaf ? SpreadOver::leaf : SpreadOver::pod, is_up, is_of_leaf ? lower : group_of(lower), id);
    } else if (start.group != end.group) {
      out = add(SpreadOver::group, true, group_of(from), id);
      in = add(SpreadOver::group, false, group_of(to), id);
    } else {
      out = add(SpreadOver::router, true, from, id);
      in = add(SpreadOver::router, false, to, id);
    }
  }
}

std::optional<SpreadLinks> SpreadTable::of(int link) const {
  if (of_link_.empty()) return std::nullopt;
  const auto [out, in] = of_link_[static_cast<std::size_t>(link)];
  if (out < 0 && in < 0) return std::nullopt;
  const auto shared = [&](int one) { return one < 0 ? nullptr : &shared_[static_cast<std::size_t>(one)]; };
  return SpreadLinks{shared(out), shared(in)};
}

SpreadTable SpreadTable::without(const std::vector<LinkId>& failed) const {
  auto out = *this;
  for (auto& one : out.shared_)
    std::erase_if(one.links, [&](LinkId link) { return std::ranges::find(failed, link) != failed.end(); });
  return out;
}

}  // namespace fabricast::topology
