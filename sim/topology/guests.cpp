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

int num_systems(const HostGroupSpec& group) {
  const auto& guest = group.host.virtualization;
  return group.count * (guest && !guest->vms.empty() ? static_cast<int>(guest->vms.size()) : 1);
}

std::optional<int> host_called(const Topology& topology, std::string_view name) {
  if (name.find('.') != std::string_view::npos) return std::nullopt;
  for (int host = 0; host < topology.num_hosts(); ++host)
    if (topology.host_name(host) == name) return host;
  return std::nullopt;
}

int Topology::machine_of(int host) const { return impl_->hosts[static_cast<std::size_t>(host)].machine; }

const std::string& Topology::machine_name(int host) const {
  return impl_->machines[static_cast<std::size_t>(machine_of(host))].name;
}

DeviceId Topology::hardware(DeviceId id) const {
  if (id.value < 0 || id.value >= impl_->num_host_devices) return id;
  const int host = impl_->host_of_device(id.value);
  const int first = impl_->first_of(host);
  return {id.value - impl_->hosts[static_cast<std::size_t>(host)].first_device +
          impl_->hosts[static_cast<std::size_t>(first)].first_device};
}

std::string Topology::hardware_name(DeviceId id) const {
  if (id.value >= impl_->num_host_devices) return device(id).name;
  const int host = impl_->host_of_device(id.value);
  const auto index = static_cast<std::size_t>(id.value - impl_->hosts[static_cast<std::size_t>(host)].first_device);
  return machine_name(host) + "." + impl_->shape_of(host).devices[index].name;
}

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

/// A VM that is not aligned with its devices has its memory on the next socket; one that was given NUMA nodes, on
/// these.
DeviceId Topology::local_memory(DeviceId id) const {
  const auto one = device(id);
  const auto& guest = virtualization(one.host);
  int socket = std::max(0, one.socket);
  if (guest.is_virtual() && !guest.is_numa_aligned) socket = (socket + 1) % host_spec(one.host).num_sockets;
  const auto memories = devices(DeviceKind::memory, one.host);
  const auto at = std::ranges::find(memories, socket, [this](DeviceId memory) { return device(memory).socket; });
  return at == memories.end() ? memories.front() : *at;
}

std::vector<DeviceId> Topology::hcas_by_distance(DeviceId device) const {
  const int host = host_of(device);
  auto hcas = devices(DeviceKind::hca, host);
  if (impl_->network) std::erase_if(hcas, [&](DeviceId hca) { return !is_cabled(hca); });
  // An adapter without RDMA beside one with it is for management.
  const auto& shape = impl_->shape_of(host).devices;
  const int first = impl_->hosts[static_cast<std::size_t>(host)].first_device;
  const auto is_plain = [&](DeviceId hca) {
    return impl_->plain_adapters.contains(shape[static_cast<std::size_t>(hca.value - first)].type);
  };
  if (!std::ranges::all_of(hcas, is_plain)) std::erase_if(hcas, is_plain);
  if (virtualization(host_of(device)).vms_per_host > 1) {
    const int guest = guest_of(device);
    std::erase_if(hcas, [&](DeviceId hca) { return !may_use_hca(guest, hca); });
  }
  if (const auto& vm = virtualization(host_of(device)); !vm.vm_name.empty()) {
    // So is a software adapter.
    const auto is_software = [&](DeviceId hca) {
      return is_tcp_only(vm.nic_mode(this->device(hca).name.substr(host_name(host_of(hca)).size() + 1)));
    };
    if (!std::ranges::all_of(hcas, is_software)) std::erase_if(hcas, is_software);
  }
  std::vector<std::pair<Distance, DeviceId>> ranked;
  for (const auto hca : hcas) ranked.emplace_back(distance(device, hca), hca);
  std::stable_sort(ranked.begin(), ranked.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
  for (std::size_t i = 0; i < hcas.size(); ++i) hcas[i] = ranked[i].second;
  return hcas;
}

}  // namespace fabricast
