// SPDX-License-Identifier: Apache-2.0
// The order in which NCCL numbers the GPUs of a host, whatever their ranks.
#pragma once

#include <map>
#include <utility>
#include <vector>

#include "fabricast/topology.hpp"

namespace fabricast::models::nccl {

/// By the bus: those below one socket together, of these those below one switch (NVIDIA/nccl src/graph/xml.cc keeps
/// them by PCI bus id). Sockets, switches and GPUs of one switch come in the order of their first GPU's number.
class BusOrder {
 public:
  explicit BusOrder(const Topology& topology) : topology_(topology) {}

  /// `gpus`: of one host. Hosts of one shape are looked at once.
  void sort(std::vector<DeviceId>& gpus);

 private:
  [[nodiscard]] std::vector<int> found(const std::vector<DeviceId>& gpus) const;

  const Topology& topology_;
  std::map<std::pair<int, std::vector<int>>, std::vector<int>> orders_;  ///< by Topology::place_of
};

}  // namespace fabricast::models::nccl
