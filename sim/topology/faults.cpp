// SPDX-License-Identifier: Apache-2.0
// A cluster with dead cables.
#include "base/assert.hpp"
#include "topology/topology_impl.hpp"

namespace fabricast {

bool Topology::can_lose_links() const {
  const auto& fabric = impl_->spec.fabric;
  return fabric.kind != FabricKind::torus && fabric.kind != FabricKind::dragonfly;
}

Topology Topology::without_links(const std::vector<LinkId>& failed) const {
  auto impl = std::make_shared<Impl>();
  impl->spec = impl_->spec;
  impl->shapes = impl_->shapes;
  impl->hosts = impl_->hosts;
  impl->num_host_devices = impl_->num_host_devices;
  impl->num_host_links = impl_->num_host_links;
  impl->switches = impl_->switches;
  impl->network_links = impl_->network_links;
  impl->hcas = impl_->hcas;
  impl->node_of_hca = impl_->node_of_hca;
  impl->is_infiniband = impl_->is_infiniband;
  impl->host_by_name = impl_->host_by_name;
  std::vector<int> cables;
  for (const auto id : failed) {
    FABRICAST_ASSERT(id.value >= impl_->num_host_links && impl_->network, "link {} is no cable", id.value);
    cables.push_back((id.value - impl_->num_host_links) / 2);
  }
  if (impl_->network) impl->network = impl_->network->without(cables);
  return Topology(std::move(impl));
}

}  // namespace fabricast
