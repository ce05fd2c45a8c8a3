// SPDX-License-Identifier: Apache-2.0
// AWS's Elastic Fabric Adapters. Their PCI numbers count generations: efa0 on p3dn and p4d (which alone has GPUDirect
// RDMA), efa1 on p5, efa2 on p5en [hwloc captures of aws/aws-ofi-nccl tests/unit/fixtures/topology, AWS instance
// documentation]. The plugin's RDMA protocol joins those of one GPU [its doc/rdma-protocol.md]; so does the catalogue.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "import/identity.hpp"
#include "import/source.hpp"

namespace fabricast::import {

namespace {

/// Adapters of one GPU that the plugin joins.
struct Rails {
  int count;
  double gbit_per_s;  ///< of one
  const char* type;
};

std::optional<Rails> rails_of(const PciDevice& one) {
  if (one.device == 0xefa1) return Rails{4, 100, "efa-4x100g"};
  if (one.device == 0xefa2) return Rails{2, 200, "efa-2x200g"};
  if (one.device == 0xefa3) return Rails{1, 400, "efa-2x200g"};
  return std::nullopt;
}

double rate_of(const PciDevice& one) {
  double rate = 0;
  for (const auto& port : one.ports) rate = std::max(rate, port.gbit_per_s);
  return rate;
}

/// Topologies that AWS hands out name no PCI device, but the RDMA device: of adapters that are neither InfiniBand, RoCE
/// nor iWARP the kernel's names begin with "rdmap" [rdma-core kernel-boot/rdma_rename.c].
void number_by_name(PciDevice& one) {
  if (one.vendor != 0 || one.ports.empty() || !one.ports.front().name.starts_with("rdmap")) return;
  const double rate = rate_of(one);
  one.vendor = 0x1d0f;
  one.device = rate > 300 ? 0xefa3 : rate > 150 ? 0xefa2 : 0xefa1;
}

void join(PciDevice& first, const PciDevice& other) {
  first.ports.insert(first.ports.end(), other.ports.begin(), other.ports.end());
}

/// Leaves out devices; none of them has others below.
void erase(std::vector<PciDevice>& devices, const std::vector<bool>& is_erased) {
  std::vector<int> place(devices.size(), -1);
  std::vector<PciDevice> kept;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    if (is_erased[i]) continue;
    place[i] = static_cast<int>(kept.size());
    kept.push_back(std::move(devices[i]));
  }
  for (auto& one : kept) {
    if (one.parent >= 0) one.parent = place[static_cast<std::size_t>(one.parent)];
  }
  devices = std::move(kept);
}

}  // namespace

void settle_elastic_adapters(Machine& machine, Inventory& inventory) {
  auto& devices = machine.devices;
  const bool has_a100 = std::any_of(devices.begin(), devices.end(), [](const PciDevice& one) {
    return one.kind == PciKind::gpu && gpu_identity(one).name.starts_with("a100");
  });
  std::map<std::tuple<int, std::string, int>, std::vector<std::size_t>> places;  // of later generations
  for (std::size_t i = 0; i < devices.size(); ++i) {
    auto& one = devices[i];
    if (one.kind != PciKind::nic) continue;
    number_by_name(one);
    if (one.vendor != 0x1d0f) continue;
    if (one.device == 0xefa0 && has_a100) one.type = "efa-100g-gdr";
    const auto rails = rails_of(one);
    if (!rails) continue;
    if (rate_of(one) > 0.97 * rails->count * rails->gbit_per_s)
      one.type = rails->type;
    else
      places[{one.parent, one.root, one.device}].push_back(i);
  }
  std::vector<bool> is_erased(devices.size(), false);
  for (const auto& [place, adapters] : places) {
    const auto rails = *rails_of(devices[adapters.front()]);
    const auto count = static_cast<std::size_t>(rails.count);
    if (adapters.size() % count != 0) continue;
    for (std::size_t i = 0; i < adapters.size(); ++i) {
      auto& first = devices[adapters[i - i % count]];
      is_erased[adapters[i]] = i % count > 0;
      if (i % count > 0) join(first, devices[adapters[i]]);
      first.type = rails.type;
      first.slot = first.trained = {};  // of the one slot that the catalogue gives them together
    }
    if (rails.count > 1)
      inventory.assumed.push_back(
          fmt::format("{} Elastic Fabric Adapters of {:g} Gb/s beside each other are one {}, as "
                      "NCCL's plugin joins them",
                      rails.count, rails.gbit_per_s, rails.type));
  }
  for (auto& one : devices) {
    if (one.type.starts_with("efa-") && one.type.find('x') != std::string::npos && !one.ports.empty())
      one.ports.front().gbit_per_s = 400;
  }
  erase(devices, is_erased);
}

}  // namespace fabricast::import
