// SPDX-License-Identifier: Apache-2.0
#include "nccl/tuner_regions.hpp"

#include <algorithm>
#include <boost/geometry.hpp>
#include <boost/geometry/geometries/point_xy.hpp>
#include <boost/geometry/geometries/polygon.hpp>
#include <cmath>
#include <utility>
#include <vector>

namespace fabricast::models::nccl {

namespace {

namespace geometry = boost::geometry;
using Point = geometry::model::d2::point_xy<double>;
using Polygon = geometry::model::polygon<Point>;

constexpr double k_most_bytes = 100.0 * (1LL << 30);  ///< TUNER_MAX_SIZE
constexpr double k_most_ranks = 128.0 * 1024;         ///< TUNER_MAX_RANKS

struct Corner {
  double bytes = 0, ranks = 0;
};

/// Regions are made of logarithms; 0 bytes count as one.
Point point(const Corner& corner) { return {std::log2(std::max(1.0, corner.bytes)), std::log2(corner.ranks)}; }

/// Where the line through `a` and `b` leaves what the tuner knows.
Corner beyond(const Corner& a, const Corner& b) {
  const auto from = point(a), to = point(b), edge = point({k_most_bytes, k_most_ranks});
  if (from.x() == to.x()) return {b.bytes, k_most_ranks};
  const double slope = (to.y() - from.y()) / (to.x() - from.x());
  const double ranks = to.y() + slope * (edge.x() - to.x());
  if (ranks < edge.y()) return {k_most_bytes, std::exp2(ranks)};
  return {std::exp2(to.x() + (edge.y() - to.y()) / slope), k_most_ranks};
}

struct Region {
  Choice choice;
  Polygon outline;

  Region(Algorithm algorithm, Protocol protocol, const std::vector<Corner>& corners) : choice{algorithm, protocol} {
    for (const auto& corner : corners) geometry::append(outline, point(corner));
    geometry::correct(outline);
  }
  [[nodiscard]] bool holds(const Corner& at) const { return geometry::covered_by(point(at), outline); }
};
using Regions = std::vector<Region>;

constexpr auto k_tree = Algorithm::tree;
constexpr auto k_ring = Algorithm::ring;
constexpr auto k_nvls_tree = Algorithm::nvls;
constexpr auto k_ll = Protocol::ll;
constexpr auto k_ll128 = Protocol::ll128;
constexpr auto k_simple = Protocol::simple;

const Regions& p5_all_reduce_of_eight() {
  static const Regions regions = [] {
    const auto of_ll128 = beyond({402653184, 2048}, {402653184, 4096});
    const auto of_nvls = beyond({8053063680, 160}, {9663676416, 192});
    return Regions{{k_tree,
                    k_ll128,
                    {{0, 16},
                     {31457280, 16},
                     {37748736, 32},
                     {117440512, 64},
                     {301989888, 128},
                     {301989888, 256},
                     {335544320, 512},
                     {536870912, 1024},
                     {402653184, 2048},
                     {402653184, 4096},
                     of_ll128,
                     {0, of_ll128.ranks}}},
                   {k_ring,
                    k_ll128,
                    {{31457280, 17},
                     {1073741824, 17},
                     {2147483648, 64},
                     {2147483648, 128},
                     {1342177280, 160},
                     {2147483648, 256},
                     {1074790400, 256},
                     {444596224, 160},
                     {301989888, 128},
                     {117440512, 64},
                     {37748736, 32}}},
                   {k_nvls_tree,
                    k_simple,
                    {{2147483648, 128},
                     {6442450944, 128},
                     {8053063680, 160},
                     {9663676416, 192},
                     of_nvls,
                     of_ll128,
                     {402653184, 4096},
                     {402653184, 2048},
                     {536870912, 1024},
                     {335544320, 512},
                     {301989888, 256},
                     {310378496, 160},
                     {444596224, 160},
                     {1074790400, 256},
                     {2684354560, 256},
                     {2147483648, 224},
                     {1342177280, 160}}},
                   {k_ring,
                    k_simple,
                    {{1073741824, 17},
                     {of_nvls.bytes, 17},
                     of_nvls,
                     {9663676416, 192},
                     {8053063680, 160},
                     {2684354560, 64},
                     {1610612736, 32}}}};
  }();
  return regions;
}

const Regions& p5_all_reduce_of_two() {
  static const Regions regions = [] {
    const auto of_ll128 = beyond({88160256, 128}, {178163712, 256});
    const auto of_simple = beyond({787480576, 128}, {1073741824, 256});
    const auto of_ring = beyond({257114112, 128}, {269484032, 256});
    return Regions{
        {k_tree,
         k_ll128,
         {{0, 4},
          {1314816, 4},
          {1051648, 8},
          {1051648, 12},
          {2367488, 16},
          {5525504, 32},
          {9473024, 64},
          {88160256, 128},
          {178163712, 256},
          of_ll128,
          {0, of_ll128.ranks}}},
        {k_ring,
         k_ll128,
         {{1314816, 4},
          {19736576, 4},
          {41842688, 8},
          {296747008, 64},
          {257114112, 128},
          {269484032, 256},
          {178163712, 256},
          {88160256, 128},
          {9473024, 64},
          {5525504, 32},
          {2367488, 16},
          {1051648, 12},
          {1051648, 8}}},
        {k_nvls_tree,
         k_simple,
         {{19736576, 4}, {81844224, 4}, {275775488, 8}, {275775488, 48}, {296747008, 64}, {41842688, 8}}},
        {k_ring,
         k_simple,
         {{81844224, 5},
          {k_most_bytes, 5},
          {k_most_bytes, 32},
          {1073741824, 40},
          {1073741824, 128},
          {787480576, 128},
          {296747008, 64},
          {275775488, 48},
          {275775488, 8}}},
        {k_tree,
         k_simple,
         {{296747008, 64},
          {787480576, 128},
          {1073741824, 256},
          of_simple,
          of_ring,
          {269484032, 256},
          {257114112, 128}}},
        {k_nvls_tree,
         k_simple,
         {of_simple, {1073741824, 256}, {787480576, 128}, {1073741824, 128}, {1073741824, 40}, {k_most_bytes, 32}}}};
  }();
  return regions;
}

const Regions& p5_all_reduce_of_one() {
  static const Regions regions = [] {
    const auto of_tree = beyond({9999360, 64}, {119477248, 128});
    const auto of_ring = beyond({4736000, 2}, {269484032, 128});
    return Regions{
        {k_tree, k_ll128, {{0, 16}, {2367488, 16}, {9999360, 64}, {119477248, 128}, of_tree, {0, k_most_ranks}}},
        {k_ring,
         k_ll128,
         {{0, 2},
          {4736000, 2},
          {269484032, 128},
          of_ring,
          of_tree,
          {119477248, 128},
          {9999360, 64},
          {2367488, 16},
          {0, 16}}},
        {k_ring, k_simple, {{4736000, 2}, {k_most_bytes, 2}, of_ring, {269484032, 128}}}};
  }();
  return regions;
}

const Regions& p5en_all_reduce_of_eight() {
  static const Regions regions = [] {
    const auto of_ll = beyond({196608, 192}, {196608, 1024});
    const auto of_ll128 = beyond({129499136, 127}, {218103808, 1024});
    const auto of_nvls = beyond({7516192768, 256}, {17179869184, 448});
    return Regions{
        {k_tree, k_ll, {{0, 16}, {196608, 16}, {196608, 1024}, of_ll, {0, k_most_ranks}}},
        {k_tree,
         k_ll128,
         {of_ll, {196608, 1024}, {196608, 16}, {13107200, 16}, {129499136, 127}, {218103808, 1024}, of_ll128}},
        {k_ring,
         k_ll128,
         {{129499136, 127}, {13107200, 16}, {29884416, 16}, {293601280, 32}, {589299712, 64}, {549453824, 128}}},
        {k_nvls_tree,
         k_simple,
         {of_ll128,
          {218103808, 1024},
          {129499136, 127},
          {549453824, 128},
          {589299712, 64},
          {293601280, 32},
          {29884416, 16},
          {k_most_bytes, 16},
          {509607936, 32},
          {7516192768, 256},
          {17179869184, 448},
          of_nvls}},
        {k_ring, k_simple, {of_nvls, {17179869184, 448}, {7516192768, 256}, {509607936, 32}, {k_most_bytes, 16}}}};
  }();
  return regions;
}

const Regions& p5en_all_gather_of_eight() {
  static const Regions regions = [] {
    const auto of_ll = beyond({28305408, 768}, {33554432, 1024});
    const auto of_ll128 = beyond({7247754240, 384}, {17179865088, 896});
    return Regions{{k_ring,
                    k_ll,
                    {{0, 16},
                     {786432, 16},
                     {4718592, 128},
                     {13630464, 384},
                     {19922944, 512},
                     {28305408, 768},
                     {33554432, 1024},
                     of_ll,
                     {0, k_most_ranks}}},
                   {k_ring,
                    k_ll128,
                    {of_ll,
                     {33554432, 1024},
                     {28305408, 768},
                     {19922944, 512},
                     {13630464, 384},
                     {4718592, 128},
                     {786432, 16},
                     {236978176, 16},
                     {956301312, 64},
                     {7247754240, 384},
                     {17179865088, 896},
                     of_ll128}},
                   {k_ring,
                    k_simple,
                    {of_ll128,
                     {17179865088, 896},
                     {7247754240, 384},
                     {956301312, 64},
                     {494927872, 32},
                     {236978176, 16},
                     {k_most_bytes, 16}}}};
  }();
  return regions;
}

const Regions& p5en_reduce_scatter_of_eight() {
  static const Regions regions = [] {
    const auto of_ll = beyond({7340032, 256}, {18874368, 512});
    const auto of_ll128 = beyond({7247757312, 256}, {17179869184, 640});
    return Regions{{k_ring,
                    k_ll,
                    {{0, 16}, {786432, 16}, {4718592, 128}, {7340032, 256}, {18874368, 512}, of_ll, {0, k_most_ranks}}},
                   {k_ring,
                    k_ll128,
                    {of_ll,
                     {18874368, 512},
                     {7340032, 256},
                     {4718592, 128},
                     {786432, 16},
                     {291504128, 16},
                     {589299712, 32},
                     {2415919104, 128},
                     {7247757312, 256},
                     {17179869184, 640},
                     of_ll128}},
                   {k_ring,
                    k_simple,
                    {of_ll128,
                     {17179869184, 640},
                     {7247757312, 256},
                     {2415919104, 128},
                     {589299712, 32},
                     {291504128, 16},
                     {k_most_bytes, 16}}}};
  }();
  return regions;
}

const Regions* regions_of(std::string_view type, Collective collective, int per_host) {
  const bool is_all_reduce = collective == Collective::all_reduce;
  if (type == "p5" && is_all_reduce && per_host == 8) return &p5_all_reduce_of_eight();
  if (type == "p5" && is_all_reduce && per_host == 2) return &p5_all_reduce_of_two();
  if (type == "p5" && is_all_reduce && per_host == 1) return &p5_all_reduce_of_one();
  if (type != "p5en" || per_host != 8) return nullptr;
  if (is_all_reduce) return &p5en_all_reduce_of_eight();
  if (collective == Collective::all_gather) return &p5en_all_gather_of_eight();
  return collective == Collective::reduce_scatter ? &p5en_reduce_scatter_of_eight() : nullptr;
}

}  // namespace

std::optional<Choice> region_choice(std::string_view type, Collective collective, double bytes, int ranks, int hosts,
                                    const std::function<bool(const Choice&)>& is_allowed) {
  if (hosts <= 2 || ranks % hosts != 0) return std::nullopt;
  const auto* regions = regions_of(type, collective, ranks / hosts);
  if (regions == nullptr) return std::nullopt;
  const Corner at{bytes, static_cast<double>(ranks)};
  for (const auto& region : *regions)
    if (is_allowed(region.choice) && region.holds(at)) return region.choice;
  return std::nullopt;
}

Choice choose_with_tuner(std::string_view type, const CommunicatorFacts& facts, Collective collective, Bytes size,
                         std::optional<Algorithm> algorithm, std::optional<Protocol> protocol) {
  const auto by_region = region_choice(
      type, collective, static_cast<double>(size.value), facts.num_ranks, facts.num_nodes, [&](const Choice& one) {
        return (!algorithm || *algorithm == one.algorithm) && (!protocol || *protocol == one.protocol) &&
               estimated_time_us(facts, collective, one.algorithm, one.protocol, size) >= 0;
      });
  return by_region ? *by_region : choose(facts, collective, size, algorithm, protocol);
}

}  // namespace fabricast::models::nccl
