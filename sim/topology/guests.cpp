// SPDX-License-Identifier: Apache-2.0
// Topology as virtual machines divide it: which system a device belongs to, which adapters it may use, and what a guest
// that cannot see the PCIe tree takes for distances.
#include <algorithm>

#include "fabricast/virtualization.hpp"
#include "topology/topology_impl.hpp"

namespace fabricast {

namespace {

constexpr int k_most_vms = 1024;

/// Devices are dealt out in order: the n-th of `count` goes to this VM.
int owner(int ordinal, int count, int vms) { return count >= vms ? ordinal * vms / count : ordinal; }

}  // namespace

const Virtualization& Topology::virtualization(int host) const { return *impl_->shape_of(host).spec.virtualization; }

int Topology::guest_of(DeviceId id) const {
  const int host = host_of(id);
  const int vms = virtualization(host).vms_per_host;
  if (vms <= 1) return host * k_most_vms;
  const auto one = device(id);
  const int count = this->count(one.kind, host);
  return host * k_most_vms + std::min(vms - 1, one.ordinal * vms / std::max(1, count));
}

bool Topology::may_use_hca(int guest, DeviceId hca) const {
  const int host = host_of(hca);
  if (guest / k_most_vms != host) return false;
  const auto& virtualization = this->virtualization(host);
  if (virtualization.vms_per_host <= 1) return true;
  const auto one = device(hca);
  const auto name = one.name.substr(host_name(one.host).size() + 1);
  if (is_shareable(virtualization.nic_mode(name))) return true;
  return owner(one.ordinal, count(DeviceKind::hca, one.host), virtualization.vms_per_host) == guest % k_most_vms;
}

Distance Topology::distance(DeviceId a, DeviceId b, bool with_nvlink) const {
  if (a == b) return Distance::same;
  if (with_nvlink) {
    const auto path = path_in_host(a, b);
    if (path && path->uses_nvlink) return Distance::nvlink;
  }
  const auto& guest = virtualization(host_of(a));
  if (guest.is_virtual() && guest.guest_topology == GuestTopology::hidden) return Distance::phb;
  PathOptions pcie;
  pcie.may_use_nvlink = false;
  pcie.as_cabled = true;
  const auto path = path_in_host(a, b, pcie);
  if (!path || path->socket_crossings > 0) return Distance::sys;
  if (path->root_complexes.empty()) return path->pcie_switch_hops <= 1 ? Distance::pix : Distance::pxb;
  return path->root_complexes.size() == 1 ? Distance::phb : Distance::node;
}

/// A VM that is not aligned with its devices has its memory on the next socket.
DeviceId Topology::local_memory(DeviceId id) const {
  const auto one = device(id);
  const auto& guest = virtualization(one.host);
  int socket = std::max(0, one.socket);
  if (guest.is_virtual() && !guest.is_numa_aligned) socket = (socket + 1) % count(DeviceKind::memory, one.host);
  return device_in_host(one.host, DeviceKind::memory, socket);
}

std::vector<DeviceId> Topology::hcas_by_distance(DeviceId device) const {
  auto hcas = devices(DeviceKind::hca, host_of(device));
  if (impl_->network) std::erase_if(hcas, [&](DeviceId hca) { return !is_cabled(hca); });
  if (virtualization(host_of(device)).vms_per_host > 1) {
    const int guest = guest_of(device);
    std::erase_if(hcas, [&](DeviceId hca) { return !may_use_hca(guest, hca); });
  }
  std::vector<std::pair<Distance, DeviceId>> ranked;
  for (const auto hca : hcas) ranked.emplace_back(distance(device, hca), hca);
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  for (std::size_t i = 0; i < hcas.size(); ++i) hcas[i] = ranked[i].second;
  return hcas;
}

}  // namespace fabricast
