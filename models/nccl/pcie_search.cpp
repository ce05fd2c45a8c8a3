// SPDX-License-Identifier: Apache-2.0
#include "nccl/pcie_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "nccl/channels.hpp"
#include "nccl/nics.hpp"
#include "nccl/search.hpp"
#include "nccl/tuning.hpp"
#include "paths/guest.hpp"
#include "paths/transport.hpp"

namespace fabricast::models::nccl {

namespace {

/// A ring of speed 1 in its order, link by link.
class RingLoad {
 public:
  RingLoad(const PlanContext& context, const std::vector<DeviceId>& gpus)
      : context_(context), gpus_(gpus), version_(release_number(context.software.nccl_version)) {
    for (std::size_t g = 0; g < gpus.size() && gpus.size() > 1; ++g) add(gpus[g], gpus[(g + 1) % gpus.size()]);
  }

  [[nodiscard]] double most() const {
    double most = std::numeric_limits<double>::infinity();
    for (const auto& [link, load] : loads_) most = std::min(most, gb_per_s(link) / load);
    for (const auto& [sockets, load] : between_)
      most = std::min(most, between_sockets_gb_per_s(context_.topology, gpus_[0], version_) / load);
    return most;
  }

  [[nodiscard]] double gb_per_s(LinkId id) const { return link_gb_per_s(context_.topology.link(id), version_); }

  /// The links between a device and the processor that NCCL sees: a guest that is not shown the tree sees the GPU's
  /// own.
  [[nodiscard]] std::vector<LinkId> to_processor(DeviceId from, DeviceId to, bool is_up) const {
    const auto path = context_.topology.path_in_host(from, to, {.may_use_nvlink = false, .as_cabled = true});
    std::vector<LinkId> links;
    for (const auto id : path ? path->links : std::vector<LinkId>{})
      if (context_.topology.link(id).kind == LinkKind::pcie) links.push_back(id);
    if (is_flat() && links.size() > 1) links = {is_up ? links.front() : links.back()};
    return links;
  }

 private:
  [[nodiscard]] bool is_flat() const { return is_tree_hidden(context_, gpus_[0]); }

  [[nodiscard]] double overhead(Distance distance) const {
    return processor_overhead(context_.topology, gpus_[0], distance, version_);
  }

  void add(DeviceId from, DeviceId to) {
    const auto& topology = context_.topology;
    const auto kind = kind_in_host(context_, from, to, static_cast<int>(gpus_.size()));
    if (kind == TransportKind::nvlink) return;
    if (kind == TransportKind::pcie) {
      const double load = overhead(topology.distance(from, to));
      const auto path = topology.path_in_host(from, to, {.may_use_nvlink = false, .as_cabled = true});
      for (const auto id : path ? path->links : std::vector<LinkId>{})
        if (topology.link(id).kind == LinkKind::pcie) loads_[id] += load;
    } else {
      // By way of the processor whatever lies between them: PHB in one socket, else SYS.
      const bool is_one_socket = is_flat() || topology.device(from).socket == topology.device(to).socket;
      const double load = overhead(is_one_socket ? Distance::phb : Distance::sys);
      for (const auto id : to_processor(from, topology.local_memory(from), true)) loads_[id] += load;
      for (const auto id : to_processor(topology.local_memory(to), to, false)) loads_[id] += load;
    }
    const std::pair sockets{topology.device(from).socket, topology.device(to).socket};
    if (!is_flat() && sockets.first != sockets.second) between_[sockets] += 1;
  }

  const PlanContext& context_;
  const std::vector<DeviceId>& gpus_;
  int version_;
  std::map<LinkId, double> loads_;
  std::map<std::pair<int, int>, double> between_;
};

}  // namespace

const std::vector<double>& speeds_in_host(int version, int compute_capability) {
  static const std::vector<double> v210{44, 30, 22, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
  static const std::vector<double> v218{40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
  static const std::vector<double> v216_hopper{66, 33, 24, 20, 15, 12, 6, 3};
  static const std::vector<double> v218_hopper{60, 40, 30, 24, 20, 15, 12, 6, 3};
  static const std::vector<double> v219_hopper{60, 50, 40, 30, 24, 20, 15, 12, 6, 3};
  static const std::vector<double> v221_hopper{60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
  static const std::vector<double> v225_blackwell{90, 80, 70, 60, 50, 40, 30, 24, 20, 19};
  static const std::vector<double> v227_blackwell{90, 80, 70, 60, 50, 40, 30, 24, 20, 19, 18};
  static const std::vector<double> v229_blackwell{90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18};
  if (version < 210) return network_speeds(version, compute_capability);
  if (compute_capability >= 100 && version >= 225)
    return version < 227 ? v225_blackwell : (version < 229 ? v227_blackwell : v229_blackwell);
  if (compute_capability >= 90 && version >= 216) {
    if (version < 218) return v216_hopper;
    if (version < 219) return v218_hopper;
    return version < 221 ? v219_hopper : v221_hopper;
  }
  return version < 218 ? v210 : v218;
}

bool may_halve(double speed, std::size_t count, int version, int compute_capability) {
  const double least = compute_capability >= 90 && version >= 216 && version < 218 ? 50 : 25;
  const bool is_enough = version >= 218 && compute_capability > 80 && speed < 50 && count > 4;
  return version >= 207 && speed >= least && !is_enough;
}

PcieRings pcie_rings(const PlanContext& context, const std::vector<DeviceId>& gpus) {
  const RingLoad load(context, gpus);
  PcieRings rings;
  const auto up = load.to_processor(gpus[0], context.topology.local_memory(gpus[0]), true);
  rings.slot = up.empty() ? pcie_gb_per_s(device_value(context, gpus[0], "pcie_generation"),
                                          device_value(context, gpus[0], "pcie_width"))
                          : load.gb_per_s(up.front());
  rings.most = std::min(rings.slot, load.most());
  return rings;
}

PcieChannels place_rings(const PcieRings& rings, const std::vector<double>& speeds, int most_channels) {
  PcieChannels best{0, 0};
  for (const double speed : speeds) {
    if (best.count > 0 && speed / best.speed <= .49) break;
    // NCCL rounds what is left of a link to thousandths.
    const int count = std::min(most_channels, static_cast<int>(std::floor(rings.most / speed + 1e-3)));
    if (count * speed <= best.count * best.speed) continue;
    best = {count, speed};
    if (count * speed >= rings.slot) break;
  }
  return best.count > 0 ? best : PcieChannels{1, speeds.back()};
}

}  // namespace fabricast::models::nccl
