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
  auto impl = std::make_shared<Impl>(*impl_);  // everything but the network stays
  std::vector<int> cables;
  for (const auto id : failed) {
    FABRICAST_ASSERT(id.value >= impl_->num_host_links && impl_->network, "link {} is no cable", id.value);
    cables.push_back((id.value - impl_->num_host_links) / 2);
  }
  if (impl_->network) impl->network = impl_->network->without(cables);
  impl->spread = impl->spread.without(failed);
  return Topology(std::move(impl));
}

}  // namespace fabricast
