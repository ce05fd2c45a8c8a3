// SPDX-License-Identifier: Apache-2.0
// The shipped profile tables.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include "fabricast/load.hpp"
#include "fabricast/models/virtualization.hpp"
#include "tests/support/approx.hpp"

using namespace fabricast;
using namespace fabricast::models;

namespace {

const ParameterSet& catalogue() {
  static const auto all = load_whole_catalogue();
  return all->parameters;
}

}  // namespace

TEST_CASE("a P100 with 16 GB holds two VMs of P100-8q, an A100 with 40 GB four of A100-10C") {
  const auto p100 = profile_family("p100-pcie-16", catalogue());
  CHECK(p100 == "p100-16");
  CHECK(find_gpu_profile(p100, "grid_p100-8q", catalogue())->max_instances == 2);
  const auto a100 = profile_family("a100-pcie-40", catalogue());
  CHECK(find_gpu_profile(a100, "A100-10C", catalogue())->max_instances == 4);
  CHECK(find_gpu_profile(a100, "10c", catalogue())->framebuffer_gb == 10);
  CHECK_FALSE(find_gpu_profile(a100, "a100-9c", catalogue()));
}

TEST_CASE("every GPU named by the virtualization guides has profiles, and they fit into its memory") {
  for (const auto* gpu : {"p100-pcie-12", "p100-pcie-16", "p100-sxm2", "v100-pcie-16", "v100-pcie-32", "a100-pcie-40",
                          "a100-pcie-80", "a100-sxm4-40", "a40", "a30", "a10", "t4", "h100-pcie", "h100-sxm"}) {
    CAPTURE(gpu);
    const auto profiles = gpu_profiles(profile_family(gpu, catalogue()), catalogue());
    REQUIRE_FALSE(profiles.empty());
    const double memory_gb = catalogue().at(fmt::format("{}.memory", gpu)).value / 0x1.0p30;
    CHECK(profiles.front().framebuffer_gb == memory_gb);
    for (const auto& profile : profiles) {
      CAPTURE(profile.name);
      CHECK(profile.max_instances >= 1);
      CHECK(profile.framebuffer_gb * profile.max_instances <= memory_gb + 1e-9);
      CHECK(profile.max_instances_mixed <= profile.max_instances);
      CHECK_FALSE(profile.source.empty());
    }
  }
}

TEST_CASE("MIG profiles own multiprocessors, memory slices and copy engines, and never more than the GPU has") {
  const auto three = find_gpu_profile("a100-40", "3g.20gb", catalogue());
  REQUIRE(three);
  CHECK(three->is_mig);
  CHECK(three->compute_fraction == test::approx(42.0 / 108));
  CHECK(three->memory_fraction == test::approx(0.5));
  CHECK(three->copy_engines == 3);
  CHECK(three->max_instances == 2);
  CHECK(find_gpu_profile("a100-40", "a100-3-20c", catalogue())->name == three->name);
  for (const auto& family : profile_families(catalogue())) {
    for (const auto& profile : gpu_profiles(family, catalogue())) {
      if (!profile.is_mig) continue;
      CAPTURE(profile.name);
      CHECK(profile.compute_fraction * profile.max_instances <= 1);
      CHECK(profile.memory_fraction * profile.max_instances <= 1);
      CHECK_FALSE(profile.allows_peer_to_peer);
    }
  }
}

TEST_CASE("only a vGPU with the whole framebuffer may use peer-to-peer") {
  CHECK(find_gpu_profile("v100-32", "32c", catalogue())->allows_peer_to_peer);
  CHECK_FALSE(find_gpu_profile("v100-32", "16c", catalogue())->allows_peer_to_peer);
}

TEST_CASE("a GPU without published profiles has none") {
  CHECK(gpu_profiles(profile_family("k80", catalogue()), catalogue()).empty());
  CHECK(profile_family("no-such-gpu", catalogue()).empty());
}
