// SPDX-License-Identifier: Apache-2.0
// The regions of aws-ofi-nccl's tuner at points read off its source by hand.
#include "nccl/tuner_regions.hpp"

#include <cmath>
#include <string>
#include <vector>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;
using namespace fabricast::models;
using namespace fabricast::models::nccl;

namespace {

std::string at(std::string_view type, Collective collective, double bytes, int hosts, int per_host = 8) {
  const auto found =
      region_choice(type, collective, bytes, hosts * per_host, hosts, [](const Choice&) { return true; });
  if (!found) return "none";
  return std::string(to_string(found->algorithm)) + " " + std::string(to_string(found->protocol));
}

constexpr double k_mib = 1 << 20;
constexpr double k_gib = 1 << 30;

}  // namespace

TEST_CASE(
    "P5: trees of LL128 from the first byte, rings of LL128, NVLSTree in the middle, rings of Simple at the end") {
  for (const double bytes : {1.0, 8.0, 1024.0, 30 * k_mib})
    CHECK(at("p5", Collective::all_reduce, bytes, 4) == "tree ll128");
  CHECK(at("p5", Collective::all_reduce, 64 * k_mib, 4) == "ring ll128");
  CHECK(at("p5", Collective::all_reduce, 4 * k_gib, 4) == "ring simple");
  CHECK(at("p5", Collective::all_reduce, 256 * k_mib, 8) == "ring ll128");
  CHECK(at("p5", Collective::all_reduce, 256 * k_mib, 32) == "tree ll128");
  CHECK(at("p5", Collective::all_reduce, 4 * k_gib, 32) == "nvls simple");
  CHECK(at("p5", Collective::all_gather, k_mib, 4) == "none");
  CHECK(at("p5", Collective::all_reduce, 16 * k_mib, 16, 1) == "ring ll128");
  CHECK(at("p5", Collective::all_reduce, 512 * k_mib, 4, 1) == "ring simple");
  CHECK(at("p5", Collective::all_reduce, k_mib, 16, 2) == "tree ll128");
  CHECK(at("p5", Collective::all_reduce, k_mib, 16, 4) == "none");
}

TEST_CASE("P5en: LL up to 192 KiB, then LL128, NVLSTree and rings of Simple, gathers by rings") {
  CHECK(at("p5en", Collective::all_reduce, 128 * 1024, 4) == "tree ll");
  CHECK(at("p5en", Collective::all_reduce, 8 * k_mib, 4) == "tree ll128");
  CHECK(at("p5en", Collective::all_reduce, 64 * k_mib, 4) == "ring ll128");
  CHECK(at("p5en", Collective::all_reduce, 400 * k_mib, 4) == "nvls simple");
  CHECK(at("p5en", Collective::all_reduce, 8 * k_gib, 4) == "ring simple");
  CHECK(at("p5en", Collective::all_gather, k_mib, 8) == "ring ll");
  CHECK(at("p5en", Collective::all_gather, 64 * k_mib, 8) == "ring ll128");
  CHECK(at("p5en", Collective::reduce_scatter, 8 * k_gib, 8) == "ring simple");
}

TEST_CASE(
    "no region below three hosts, for unequal hosts, for other collectives, without a tuner, or of what is not "
    "allowed") {
  CHECK(at("p5", Collective::all_reduce, k_mib, 2) == "none");
  CHECK(at("p5en", Collective::broadcast, k_mib, 8) == "none");
  CHECK(at("", Collective::all_reduce, k_mib, 8) == "none");
  const auto no_ll128 = [](const Choice& one) { return one.protocol != Protocol::ll128; };
  CHECK_FALSE(region_choice("p5", Collective::all_reduce, k_mib, 64, 8, no_ll128));
  CHECK_FALSE(region_choice("p5", Collective::all_reduce, k_mib, 65, 8, [](const Choice&) { return true; }));
}

TEST_CASE("every size has a region on three to 128 hosts of eight, up to 100 GiB") {
  test::Random random(3);
  for (int round = 0; round < 500; ++round) {
    const int hosts = 3 + static_cast<int>(random.next(126));
    const double bytes = std::exp2(36.0 * static_cast<double>(random.next(1000)) / 1000);
    CAPTURE(hosts);
    CAPTURE(bytes);
    for (const auto collective : {Collective::all_reduce, Collective::all_gather, Collective::reduce_scatter})
      CHECK(at("p5en", collective, bytes, hosts) != "none");
  }
}
