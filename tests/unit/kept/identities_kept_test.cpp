// SPDX-License-Identifier: Apache-2.0
// What PCI numbers, CPUID, rates and numbers of switches turn into, and what is assumed on the way.
#include <array>
#include <optional>

#include "import/identity.hpp"
#include "tests/unit/kept/table.hpp"

using namespace fabricast;
using namespace fabricast::import;

namespace {

constexpr std::array k_rates{0.0, 10.0, 25.0, 40.0, 54.54, 56.0, 100.0, 200.0, 201.0, 400.0, 800.0};

std::string text_of(const Identity& one) {
  return fmt::format("{} gen{} x{} ({})", one.name, one.card.generation, one.card.width, one.assumed);
}

}  // namespace

TEST_CASE("devices are called what they were by their numbers, rates and words") {
  std::string out;
  for (const int vendor : {0x10de, 0x15b3, 0x1d0f, 0x1002})
    for (int device = 0; device < 0x10000; ++device) {
      // Every device of Amazon is an adapter.
      if (vendor == 0x1d0f && device >> 4 != 0xefa && device != 0xec20) continue;
      PciDevice one;
      one.vendor = vendor;
      one.device = device;
      if (const auto gpu = gpu_identity(one); !gpu.name.empty())
        out += fmt::format("  gpu {:04x}:{:04x} {}\n", vendor, device, text_of(gpu));
      if (hca_identity(one).name.empty()) continue;
      for (const auto is_infiniband : {std::optional<bool>(), std::optional(true), std::optional(false)})
        for (const double rate : k_rates) {
          one.is_infiniband = is_infiniband;
          one.ports.resize(1);
          one.ports.front().gbit_per_s = rate;
          out += fmt::format("  adapter {:04x}:{:04x} {} {} Gb/s {}\n", vendor, device,
                             is_infiniband ? (*is_infiniband ? "ib" : "eth") : "?", rate, text_of(hca_identity(one)));
        }
    }
  for (const double rate : k_rates)
    for (const bool is_infiniband : {false, true})
      out += fmt::format("  {} {} Gb/s: {}; switch {}\n", is_infiniband ? "ib" : "eth", rate,
                         text_of(adapter_of_listing(0, rate, is_infiniband)),
                         text_of(switch_identity(0, "", rate, is_infiniband)));
  for (int device = 0; device < 0x10000; ++device)
    if (const auto one = switch_identity(device, "", 100, true); one.assumed.empty())
      out += fmt::format("  switch {:04x} {}\n", device, text_of(one));
  for (const auto* vendor : {"GenuineIntel", "AuthenticAMD", "ARM"})
    for (int family = 0; family < 32; ++family)
      for (int model = 0; model < 256; ++model)
        if (const auto one = processor_identity({vendor, family, model, 5, ""}); !one.name.empty())
          out += fmt::format("  {} {}/{} {}\n", vendor, family, model, text_of(one));
  for (int generation = 1; generation < 7; ++generation)
    for (const auto* vendor : {"", "AuthenticAMD", "GenuineIntel"})
      out += fmt::format("  processor of PCIe {} {} {}\n", generation, vendor,
                         text_of(usual_processor(generation, vendor)));
  test::check_kept("identities", out);
}
