// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "schedules/levels.hpp"

namespace fabricast::models::schedules {

Rounds linear(const Tree& tree) {
  Level level;
  for (int r = 1; r < tree.n; ++r) level.emplace_back(0, r);
  return to_rounds({level}, tree);
}

Rounds linear_scatter(const std::vector<double>& blocks) {
  Round round;
  for (std::size_t r = 1; r < blocks.size(); ++r) {
    if (blocks[r] > 0) round.steps.push_back({0, static_cast<int>(r), blocks[r]});
  }
  return round.steps.empty() ? Rounds{} : Rounds{round};
}

Rounds linear_sync_gather(int n, double block, int root, double first) {
  const double asked = first > 0 ? std::min(first, block) : block;
  Rounds rounds;
  int previous = -1;
  const auto add = [&](std::vector<Step> steps) { rounds.push_back({.steps = std::move(steps)}); };
  for (int distance = 1; distance < n; ++distance) {
    const int rank = peer(root, distance, n);
    std::vector<Step> beside{{root, rank, 0}};
    if (previous >= 0 && asked < block) beside.push_back({previous, root, block - asked});
    add(std::move(beside));
    add({{rank, root, asked}});
    previous = rank;
  }
  if (previous >= 0 && asked < block) add({{previous, root, block - asked}});
  return rounds;
}

Rounds one_by_one(const Rounds& rounds) {
  Rounds out;
  for (const auto& round : rounds) {
    for (const auto& step : round.steps) {
      auto one = round;
      one.steps = {step};
      out.push_back(std::move(one));
    }
  }
  return out;
}

}  // namespace fabricast::models::schedules
