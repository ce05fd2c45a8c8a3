// SPDX-License-Identifier: Apache-2.0
// Exchanges of radix k: in every round as many ranks as the radix, at one distance, exchange with all others of them
// [openucx/ucc src/coll_patterns/recursive_knomial.h, sra_knomial.h].
#include <algorithm>
#include <vector>

#include "schedules/algorithms.hpp"
#include "schedules/powers.hpp"

namespace fabricast::models::schedules {

namespace {

/// Ranks whose places, k times their distance apart, exchange in a round.
struct KnomialLevel {
  int distance;
  int group;
};

std::vector<KnomialLevel> levels_of(int n, int radix) {
  std::vector<KnomialLevel> levels;
  int distance = 1;
  for (; distance * radix <= n; distance *= radix) levels.push_back({distance, radix});
  if (const int whole = n / distance; whole > 1) levels.push_back({distance, whole});
  return levels;
}

/// n ranks, of which whole groups exchange; the neighbours of the first ones stand for the rest.
class Knomial {
 public:
  Knomial(int n, int radix)
      : levels_(levels_of(n, radix)),
        fold_(n, Fold::Stays::even, levels_.empty() ? 1 : levels_.back().distance * levels_.back().group) {}

  [[nodiscard]] const std::vector<KnomialLevel>& levels() const { return levels_; }
  [[nodiscard]] const Fold& fold() const { return fold_; }
  /// Everybody of a group sends `bytes(place)` to everybody else of it.
  template <class BytesOf>
  [[nodiscard]] Round exchange(const KnomialLevel& level, BytesOf bytes, double reduced) const {
    Round round{.reduced_bytes = reduced};
    const int span = level.distance * level.group;
    for (int place = 0; place < fold_.power(); ++place) {
      const int first = place / span * span + place % level.distance;
      for (int other = first; other < first + span; other += level.distance)
        if (other != place) round.steps.push_back({fold_.rank(place), fold_.rank(other), bytes(place)});
    }
    return round;
  }

 private:
  std::vector<KnomialLevel> levels_;
  Fold fold_;
};

Rounds posted(Rounds rounds) {
  for (auto& round : rounds) round.is_posted = true;
  return rounds;
}

}  // namespace

Rounds all_reduce_knomial(int n, double bytes, int radix) {
  const Knomial all(n, radix);
  Rounds rounds;
  all.fold().enter(rounds, bytes);
  for (const auto& level : all.levels())
    rounds.push_back(all.exchange(
        level, [&](int) { return bytes; }, (level.group - 1) * bytes));
  all.fold().leave(rounds, bytes);
  return posted(std::move(rounds));
}

Rounds all_reduce_sra_knomial(int n, double bytes, int radix) {
  const Knomial all(n, radix);
  Rounds rounds;
  all.fold().enter(rounds, bytes);
  double part = bytes;
  const auto own = [&](int) { return part; };
  for (const auto& level : all.levels()) {
    part /= level.group;
    rounds.push_back(all.exchange(level, own, (level.group - 1) * part));
  }
  for (auto level = all.levels().rbegin(); level != all.levels().rend(); ++level) {
    rounds.push_back(all.exchange(*level, own, 0));
    part *= level->group;
  }
  all.fold().leave(rounds, bytes);
  return posted(std::move(rounds));
}

Rounds all_gather_knomial(int n, double block, int radix) {
  const Knomial all(n, radix);
  Rounds rounds;
  all.fold().enter(rounds, block);
  for (auto& round : rounds) round.reduced_bytes = 0;
  for (const auto& level : all.levels()) {
    const auto held = [&](int place) {
      const int first = place / level.distance * level.distance;
      return block * all.fold().ranks_of(first, first + level.distance);
    };
    rounds.push_back(all.exchange(level, held, 0));
  }
  all.fold().leave(rounds, n * block);
  return posted(std::move(rounds));
}

Rounds gather_knomial(int n, double block, int root, int radix) {
  Rounds rounds;
  for (int distance = 1; distance < n; distance *= radix) {
    Round round;
    for (int place = 0; place < n; place += distance) {
      const int parent = place / (distance * radix) * (distance * radix);
      if (parent != place)
        round.steps.push_back({peer(place, root, n), peer(parent, root, n), std::min(distance, n - place) * block});
    }
    rounds.push_back(std::move(round));
  }
  return posted(std::move(rounds));
}

Rounds scatter_knomial(int n, double block, int root, int radix) {
  auto rounds = gather_knomial(n, block, root, radix);
  std::ranges::reverse(rounds);
  for (auto& round : rounds)
    for (auto& step : round.steps) std::swap(step.from, step.to);
  return rounds;
}

Rounds broadcast_sag_knomial(int n, double bytes, int root, int radix) {
  auto rounds = scatter_knomial(n, bytes / n, root, radix);
  append(rounds, all_gather_knomial(n, bytes / n, radix));
  return rounds;
}

}  // namespace fabricast::models::schedules
