// SPDX-License-Identifier: Apache-2.0
// Exchanges of radix k: in every round as many ranks as the radix, at one distance, exchange with all others of them
// [openucx/ucc src/coll_patterns/recursive_knomial.h, sra_knomial.h].
#include <algorithm>
#include <vector>

#include "schedules/algorithms.hpp"

namespace fabricast::models::schedules {

namespace {

/// Ranks whose places, k times their distance apart, exchange in a round.
struct KnomialLevel {
  int distance;
  int group;
};

/// n ranks folded to whole groups: of the first 2 x extra ranks the odd ones leave, their neighbours stand for them.
class Knomial {
 public:
  Knomial(int n, int radix) {
    int used = 1;
    for (; used * radix <= n; used *= radix) levels_.push_back({used, radix});
    const int whole = n / used;
    if (whole > 1) levels_.push_back({used, whole});
    used_ = used * whole;
    extra_ = n - used_;
  }

  [[nodiscard]] const std::vector<KnomialLevel>& levels() const { return levels_; }
  [[nodiscard]] int rank(int place) const { return place < extra_ ? 2 * place : place + extra_; }
  /// Ranks whose places are from `from` on, `count` of them, and those they stand for.
  [[nodiscard]] double ranks_of(int from, int count) const { return count + std::clamp(extra_ - from, 0, count); }

  void enter(Rounds& rounds, double bytes, double reduced) const {
    Round round{.reduced_bytes = reduced, .is_posted = true};
    for (int place = 0; place < extra_; ++place) round.steps.push_back({rank(place) + 1, rank(place), bytes});
    if (extra_ > 0) rounds.push_back(std::move(round));
  }
  void leave(Rounds& rounds, double bytes) const {
    Round round{.is_posted = true};
    for (int place = 0; place < extra_; ++place) round.steps.push_back({rank(place), rank(place) + 1, bytes});
    if (extra_ > 0) rounds.push_back(std::move(round));
  }
  /// Everybody of a group sends `bytes(place)` to everybody else of it.
  template <class BytesOf>
  [[nodiscard]] Round exchange(const KnomialLevel& level, BytesOf bytes, double reduced) const {
    Round round{.reduced_bytes = reduced, .is_posted = true};
    const int span = level.distance * level.group;
    for (int place = 0; place < used_; ++place) {
      const int first = place / span * span + place % level.distance;
      for (int other = first; other < first + span; other += level.distance)
        if (other != place) round.steps.push_back({rank(place), rank(other), bytes(place)});
    }
    return round;
  }

 private:
  int used_ = 1;
  int extra_ = 0;
  std::vector<KnomialLevel> levels_;
};

}  // namespace

Rounds all_reduce_knomial(int n, double bytes, int radix) {
  const Knomial all(n, radix);
  Rounds rounds;
  all.enter(rounds, bytes, bytes);
  for (const auto& level : all.levels())
    rounds.push_back(all.exchange(
        level, [&](int) { return bytes; }, (level.group - 1) * bytes));
  all.leave(rounds, bytes);
  return rounds;
}

Rounds all_reduce_sra_knomial(int n, double bytes, int radix) {
  const Knomial all(n, radix);
  Rounds rounds;
  all.enter(rounds, bytes, bytes);
  double part = bytes;
  for (const auto& level : all.levels()) {
    part /= level.group;
    rounds.push_back(all.exchange(
        level, [&](int) { return part; }, (level.group - 1) * part));
  }
  for (auto level = all.levels().rbegin(); level != all.levels().rend(); ++level) {
    rounds.push_back(all.exchange(
        *level, [&](int) { return part; }, 0));
    part *= level->group;
  }
  all.leave(rounds, bytes);
  return rounds;
}

Rounds all_gather_knomial(int n, double block, int radix) {
  const Knomial all(n, radix);
  Rounds rounds;
  all.enter(rounds, block, 0);
  for (const auto& level : all.levels()) {
    const auto held = [&](int place) {
      return block * all.ranks_of(place / level.distance * level.distance, level.distance);
    };
    rounds.push_back(all.exchange(level, held, 0));
  }
  all.leave(rounds, n * block);
  return rounds;
}

Rounds gather_knomial(int n, double block, int root, int radix) {
  Rounds rounds;
  for (int distance = 1; distance < n; distance *= radix) {
    Round round{.is_posted = true};
    for (int place = 0; place < n; place += distance) {
      const int parent = place / (distance * radix) * (distance * radix);
      if (parent != place)
        round.steps.push_back({peer(place, root, n), peer(parent, root, n), std::min(distance, n - place) * block});
    }
    rounds.push_back(std::move(round));
  }
  return rounds;
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
