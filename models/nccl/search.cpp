// SPDX-License-Identifier: Apache-2.0
#include "nccl/search.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

#include "base/parameter_name.hpp"
#include "nccl/mesh.hpp"
#include "nccl/pcie_search.hpp"
#include "nccl/rccl.hpp"
#include "nccl/release_rules.hpp"
#include "nccl/tuning.hpp"
#include "paths/guest.hpp"
#include "paths/transport.hpp"

namespace fabricast::models::nccl {

namespace {

/// Channels are doubled after the search.
std::size_t most_channels(int version) { return static_cast<std::size_t>(max_channels(version) / 2); }

/// GPUs of a host are numbered by the bus here (HostGroup).
std::vector<int> in_bus_order(std::size_t n) {
  std::vector<int> order(n);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

/// NVLinks of one GPU towards NVSwitches; 0 when the host has none.
int nvswitch_lanes(const Topology& topology, const std::vector<DeviceId>& gpus) {
  if (gpus.size() < 2) return 0;
  const auto path = topology.path_in_host(gpus[0], gpus[1]);
  if (!path || !path->uses_nvlink || path->links.size() < 2) return 0;
  const auto first = topology.link(path->links[0]);
  return topology.kind(first.to) == DeviceKind::nvswitch ? first.lanes : 0;
}

/// Over direct NVLinks: before Hopper NCCL ends, halved, with what single links carry.
HostSearch over_links(const PlanContext& context, const std::vector<DeviceId>& gpus, int version, int capability) {
  constexpr std::size_t most = 16;
  const double link = gpu_link_gb_per_s(context, gpus[0]);
  const auto speeds = capability >= 90 ? speeds_in_host(version, capability) : std::vector{link};
  auto found = fastest_rings(direct_lanes(context.topology, gpus), link, speeds, most);
  const auto count = found.orders.size();
  HostSearch search;
  search.is_nvlink = count > 0;
  search.speed = found.speed;
  search.orders = std::move(found.orders);
  if (!may_halve(search.speed, count, version, capability)) return search;
  for (std::size_t c = 0; search.orders.size() < std::min(2 * count, most); ++c)
    search.orders.push_back(search.orders[c]);
  search.speed /= 2;
  return search;
}

HostSearch find_channels(const PlanContext& context, const std::vector<DeviceId>& gpus) {
  const auto& topology = context.topology;
  HostSearch search;
  const int capability = compute_capability(context, gpus[0]);
  const bool may_use_nvlink = context.software.nccl_p2p && nvlink_gate_of(context, gpus[0]).is_open;
  if (const int lanes = nvswitch_lanes(topology, gpus); lanes > 0 && may_use_nvlink) {
    // Found by NCCL on HGX hosts: speed 20 up to Ampere, 30 on Hopper, 45 (half of 90) on Blackwell, as many channels
    // as the NVLinks carry.
    search.speed = capability >= 100 ? 45 : capability >= 90 ? 30 : (capability >= 70 ? 20 : 18);
    const int channels = std::clamp(static_cast<int>(lanes * nvlink_gb_per_s(capability) / search.speed), 1, 16);
    search.orders.assign(static_cast<std::size_t>(channels), in_bus_order(gpus.size()));
    search.is_nvlink = search.has_nvswitch = true;
    return search;
  }
  const int version = release_number(context.software.nccl_version);
  if (may_use_nvlink) search = over_links(context, gpus, version, capability);
  if (search.is_nvlink) return search;
  const auto rings = pcie_rings(context, gpus);
  search.pcie_ring = rings.most;
  auto found = place_rings(rings, speeds_in_host(version, capability), static_cast<int>(most_channels(version)));
  if (may_halve(found.speed, static_cast<std::size_t>(found.count), version, capability)) {
    found.count *= 2;
    found.speed /= 2;
  }
  search.speed = found.speed;
  search.orders.assign(static_cast<std::size_t>(found.count), in_bus_order(gpus.size()));
  return search;
}

/// By which HCA a channel leaves: the one that it came in by; in pairs by each other's; any.
enum class Leaving { same, paired, any };

/// One attempt of the search: channels of one speed over paths up to one class, until no HCA or GPU has as much left.
class Attempt {
 public:
  /// `are_equal`: all channels begin and end with the GPUs of the first.
  Attempt(const HostNics& nics, double speed, NicPath farthest, double inside_gb_per_s, Joint joint, Leaving leaving,
          bool are_equal)
      : nics_(nics),
        speed_(speed),
        farthest_(farthest),
        joint_(joint),
        leaving_(leaving),
        are_equal_(are_equal),
        inside_(nics.gpus().size() > 1 ? inside_gb_per_s : 1e9) {
    for (std::size_t h = 0; h < nics.hcas().size(); ++h) rates_.push_back(nics.rate_gb_per_s(h));
    rates_out_ = rates_;
  }

  std::vector<NetworkChannel> channels() {
    std::vector<NetworkChannel> out;
    const auto order = nics_.search_order();
    const auto count = order.size();
    while (out.size() < most_channels(nics_.version()) && inside_ >= speed_) {
      std::optional<NetworkChannel> found;
      for (std::size_t i = 0; i < count && !found; ++i) {
        const auto hca = order[(out.size() + i) % count];
        if (!has_left(rates_[hca])) continue;
        found = from(hca, out);
      }
      if (!found) break;
      take(*found);
      out.push_back(*found);
      if (are_equal_) model_ = out.front();
    }
    return out;
  }

 private:
  /// An HCA is skipped while what is left of it is less than the speed in whole GB/s.
  [[nodiscard]] bool has_left(double rate) const { return rate >= speed_ && rate >= std::floor(speed_); }

  /// The next channel after `out` that comes in by `hca`.
  std::optional<NetworkChannel> from(std::size_t hca, const std::vector<NetworkChannel>& out) const {
    const auto count = nics_.hcas().size();
    if (leaving_ == Leaving::same) return ends(hca, hca, out.size());
    if (leaving_ == Leaving::paired && out.size() % 2 == 1)
      return hca == out.back().hca_out ? ends(hca, out.back().hca, out.size()) : std::nullopt;
    std::optional<NetworkChannel> found;
    // With any HCA a ring leaves by the one beside its last GPU.
    for (std::size_t j = 0; j < count && !found; ++j)
      found = ends(hca, leaving_ == Leaving::any ? beside(hca, j + 1, count) : (hca + j) % count, out.size());
    return found;
  }

  /// Of `count` in a circle, the one `places` from `one` where the ring closes: against the order over NVSwitches,
  /// whose GPUs hand on to the one before, else in order.
  [[nodiscard]] std::size_t beside(std::size_t one, std::size_t places, std::size_t count) const {
    return (one + (joint_ == Joint::nvswitches ? places : 2 * count - places)) % count;
  }

  void take(const NetworkChannel& one) {
    rates_[one.hca] -= speed_;
    rates_out_[one.hca_out] -= speed_;
    const auto sender = nics_.ring_sender(one.last, one.hca_out);
    add_loads(nics_.loads(one.first, one.hca, false), used_);
    add_loads(nics_.loads(sender, one.hca_out, true), used_);
    inside_ -= speed_;
    between_[{nics_.socket_of_hca(one.hca), nics_.socket_of_gpu(one.first)}] += speed_;
    between_[{nics_.socket_of_gpu(sender), nics_.socket_of_hca(one.hca_out)}] += speed_;
  }

  using Loads = std::map<int, double>;  ///< GB/s by link

  void add_loads(const std::vector<LinkLoad>& path, Loads& used) const {
    for (const auto& load : path) used[load.link.value] += load.share * speed_;
  }
  bool has_room(const std::vector<LinkLoad>& path, const Loads& used) const {
    constexpr double rounding = 1e-6;
    return std::ranges::all_of(path, [&](const LinkLoad& load) {
      const auto here = used.find(load.link.value);
      return (here == used.end() ? 0 : here->second) + load.share * speed_ <= nics_.link_speed(load.link) + rounding;
    });
  }

  /// Paths across sockets share the way between them.
  bool has_room_between(int from, int to) const {
    const auto used = between_.find({from, to});
    return from == to || (used == between_.end() ? 0 : used->second) + speed_ <= nics_.between_sockets_gb_per_s();
  }

  /// The nearest GPUs that have the bandwidth left, taken in turn; one GPU receives, another sends where there is one.
  std::optional<NetworkChannel> ends(std::size_t hca, std::size_t hca_out, std::size_t turn) const {
    const auto count = nics_.gpus().size();
    if (!has_left(rates_out_[hca_out])) return std::nullopt;
    for (const auto first : by_nearness(hca, turn, count, used_)) {
      if (model_ && first != model_->first) continue;
      auto used = used_;
      add_loads(nics_.loads(first, hca, false), used);
      const auto senders = count > 1 ? by_nearness(hca_out, turn, first, used) : std::vector{first};
      if (senders.empty() || (model_ && std::ranges::find(senders, model_->last) == senders.end())) continue;
      const auto last = model_ ? model_->last : senders.front();
      if (has_room(nics_.loads(nics_.ring_sender(last, hca_out), hca_out, true), used))
        return NetworkChannel{hca, first, last, hca_out};
    }
    return std::nullopt;
  }

  /// The GPUs that may receive, or send when `first` is one, nearest first.
  std::vector<std::size_t> by_nearness(std::size_t hca, std::size_t turn, std::size_t first, const Loads& used) const {
    const auto count = nics_.gpus().size();
    const bool is_sender = first < count;
    std::vector<std::size_t> found;
    for (std::size_t i = 0; i < count; ++i) {
      const auto gpu = is_sender ? beside(first, i, count) : i;
      if (gpu == first && count > 1) continue;
      const auto class_of_path = is_sender ? nics_.sending_path(gpu, hca) : nics_.receiving_path(gpu, hca);
      const auto end = is_sender ? nics_.ring_sender(gpu, hca) : gpu;
      if (class_of_path > farthest_ || nics_.path_gb_per_s(gpu, hca) < speed_) continue;
      if (!has_room(nics_.loads(end, hca, is_sender), used)) continue;
      const int here = nics_.socket_of_gpu(end);
      const int there = nics_.socket_of_hca(hca);
      if (is_sender ? has_room_between(here, there) : has_room_between(there, here)) found.push_back(gpu);
    }
    // Root ports of one processor are equally far for NCCL, which counts hops.
    const auto distance = [&](std::size_t gpu) { return nics_.receiving_path(gpu, hca); };
    std::ranges::stable_sort(found, {}, distance);
    if (is_sender || found.empty()) return found;
    // GPUs equally near take turns.
    const auto others = std::ranges::upper_bound(found, distance(found.front()), {}, distance);
    std::rotate(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(turn) % (others - found.begin()), others);
    return found;
  }

  const HostNics& nics_;
  double speed_;
  NicPath farthest_;
  Joint joint_;
  Leaving leaving_;
  bool are_equal_;
  std::optional<NetworkChannel> model_;  ///< of equal channels the first
  double inside_;
  std::vector<double> rates_, rates_out_;          ///< left of HCAs
  Loads used_;                                     ///< of PCIe links
  std::map<std::pair<int, int>, double> between_;  ///< used, from socket to socket
};

/// Without room for any channel NCCL takes the first HCA at its least speed.
NetworkChannels one_slow_channel(const HostNics& nics, double speed) {
  return {{{0, 0, nics.gpus().size() - 1, 0}}, speed};
}

/// Fast channels are halved and doubled in number.
void halve_speeds(NetworkChannels& found, int version, int capability) {
  const auto count = found.channels.size();
  if (!may_halve(found.speed, count, version, capability)) return;
  const auto doubled = std::min(2 * count, most_channels(version));
  found.speed /= std::ceil(static_cast<double>(doubled) / static_cast<double>(count));
  for (std::size_t c = count; c < doubled; ++c) found.channels.push_back(found.channels[c - count]);
}

}  // namespace

const std::vector<double>& network_speeds(int version, int compute_capability) {
  static const std::vector<double> v206{24, 21, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24, .12};
  static const std::vector<double> v207{42, 24, 21, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24, .12};
  static const std::vector<double> v208{42, 30, 24, 21, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24, .12};
  static const std::vector<double> v210{48, 30, 24, 22, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24, .12};
  static const std::vector<double> v216{48, 30, 28, 24, 22, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24, .12};
  static const std::vector<double> v216_hopper{48, 45, 30, 24, 15, 12, 6, 3, 2.4, 1.2, .24, .12};
  static const std::vector<double> v218{48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, .24, .12};
  static const std::vector<double> v218_hopper{48, 45, 42, 40, 30, 24, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24, .12};
  static const std::vector<double> v219_hopper{48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, .24, .12};
  if (version < 207) return v206;
  if (version < 208) return v207;
  if (version < 210) return v208;
  if (version < 216) return v210;
  static const std::vector<double> v227_blackwell{96,   48, 45.1, 42, 40, 30,  24,  22,  20,
                                                  17.5, 15, 12,   6,  3,  2.4, 1.2, .24, .12};
  const bool is_hopper = compute_capability >= 90;
  static const std::vector<double> v229_blackwell{96,   80, 48, 45.1, 42, 40,  30,  24,  22, 20,
                                                  17.5, 15, 12, 6,    3,  2.4, 1.2, .24, .12};
  static const std::vector<double> v230_blackwell{96, 86,   80, 48, 45.1, 42, 40,  30,  24,  22,
                                                  20, 17.5, 15, 12, 6,    3,  2.4, 1.2, .24, .12};
  if (compute_capability >= 100 && version >= 227)
    return version < 229 ? v227_blackwell : (version < 230 ? v229_blackwell : v230_blackwell);
  if (version < 218) return is_hopper ? v216_hopper : v216;
  if (!is_hopper) return v218;
  return version < 219 ? v218_hopper : v219_hopper;
}

namespace {

/// How channels may leave, in the order in which NCCL tries it at every speed. Without NVLink the way between two HCAs'
/// GPUs crosses the sockets that the HCAs' own ways need not.
std::vector<Leaving> ways_to_leave(const HostNics& nics, double speed, Joint joint) {
  const bool is_apart = joint == Joint::pcie && speed > nics.between_sockets_gb_per_s();
  if (nics.hcas().size() < 2 || is_apart) return {Leaving::same};
  switch (nics.crossing()) {
    case HcaCrossing::never:
      return {Leaving::same};
    case HcaCrossing::always:
      return {Leaving::any};
    case HcaCrossing::last:
      return {Leaving::same, Leaving::any};
    case HcaCrossing::last_in_pairs:
      break;
  }
  return {Leaving::same, Leaving::paired};
}

/// Channels that all pass the GPUs in one order are tried before others; on meshes the links of one order are not
/// enough for several.
std::vector<bool> ways_to_pass(Joint joint) {
  return joint == Joint::nvlinks ? std::vector{false} : std::vector{true, false};
}

}  // namespace

/// At every speed farther HCAs count while nothing nearer is found, those over NVLink (PXN) always; then the same with
/// channels that leave by other HCAs than they came in by; the next speed is tried while it is more than .49 of the
/// best one's.
NetworkChannels place_channels(const HostNics& nics, const std::vector<double>& speeds, double inside_gb_per_s,
                               Joint joint) {
  NetworkChannels best;
  auto type_of_best = NicPath::sys;
  double total = nics.gpus().size() > 1 ? inside_gb_per_s : 0;
  for (std::size_t g = 0; g < nics.gpus().size(); ++g) total = std::max(total, nics.slot_gb_per_s(g));
  for (const double speed : speeds) {
    if (!best.channels.empty() && speed / best.speed <= .49) break;
    for (const auto leaving : ways_to_leave(nics, speed, joint)) {
      for (const auto type : {NicPath::pix, NicPath::pxb, NicPath::p2c, NicPath::pxn, NicPath::phb, NicPath::sys}) {
        if (!best.channels.empty() && type > type_of_best && type > NicPath::pxn) break;
        for (const bool are_equal : ways_to_pass(joint)) {
          auto channels = Attempt(nics, speed, type, inside_gb_per_s, joint, leaving, are_equal).channels();
          const auto product = [](std::size_t count, double each) { return static_cast<double>(count) * each; };
          if (product(channels.size(), speed) <= product(best.channels.size(), best.speed)) continue;
          best = {std::move(channels), speed, leaving != Leaving::same};
          type_of_best = type;
          if (product(best.channels.size(), speed) >= total) return best;
        }
      }
    }
  }
  return best.channels.empty() ? one_slow_channel(nics, speeds.back()) : best;
}

HostSearch search_alone(const PlanContext& context, const std::vector<DeviceId>& gpus) {
  if (library_of(context, gpus[0]) == Library::rccl) {
    if (auto search = rccl::search(context, gpus, true); !search.orders.empty()) return search;
  }
  auto search = find_channels(context, gpus);
  search.inside = search.speed * static_cast<double>(search.orders.size());
  return search;
}

HostSearch search_by_interface(const PlanContext& context, const std::vector<DeviceId>& gpus) {
  const auto& topology = context.topology;
  double rate = 0;
  for (const auto hca : topology.devices(DeviceKind::hca, topology.host_of(gpus[0])))
    rate = std::max(rate, device_value(context, hca, "rate"));
  if (rate <= 0) rate = context.parameters["nccl.interface_speed"_key].bytes_per_s;
  const auto& speeds =
      network_speeds(release_number(context.software.nccl_version), compute_capability(context, gpus[0]));
  const auto speed = std::find_if(speeds.begin(), speeds.end(), [&](double one) { return one <= rate * 1e-9; });
  HostSearch search;
  search.orders.push_back(in_bus_order(gpus.size()));
  search.speed = search.inside = speed == speeds.end() ? speeds.back() : *speed;
  return search;
}

HostSearch search_with_network(const PlanContext& context, const std::vector<DeviceId>& gpus) {
  if (library_of(context, gpus[0]) == Library::rccl) {
    if (auto search = rccl::search(context, gpus, false); !search.orders.empty()) return search;
  }
  HostSearch search = search_alone(context, gpus);
  search.is_full_mesh = false;
  if (search.pcie_ring > 0) search.inside = search.pcie_ring;
  const auto& nics = search.nics.emplace(context, gpus);
  search.orders.clear();
  if (nics.hcas().empty()) return search;
  const int version = release_number(context.software.nccl_version);
  const int capability = compute_capability(context, gpus[0]);
  const auto joint = search.has_nvswitch ? Joint::nvswitches : search.is_nvlink ? Joint::nvlinks : Joint::pcie;
  auto found = place_channels(nics, network_speeds(version, capability), search.inside, joint);
  const auto num_found = found.channels.size();
  const auto lanes = joint == Joint::nvlinks ? direct_lanes(context.topology, gpus) : LaneMatrix{};
  auto room = channels_per_connection(lanes, gpu_link_gb_per_s(context, gpus[0]), found.speed);
  halve_speeds(found, version, capability);
  search.speed = found.speed;
  search.do_cross = std::ranges::any_of(found.channels, [](const auto& one) { return one.hca != one.hca_out; });
  search.are_swapped = found.do_cross && version >= 220 && found.channels.size() % 2 == 0;
  const int n = static_cast<int>(gpus.size());
  const auto chain = [&](const NetworkChannel& one) {
    const int first = static_cast<int>(one.first);
    const int last = static_cast<int>(one.last);
    return joint == Joint::nvswitches ? chain_of_neighbours(n, first, last)
                                      : chain_between(lanes, room, n, first, last);
  };
  for (const auto& one : found.channels) {
    const auto c = search.orders.size();
    search.orders.push_back(c < num_found ? chain(one) : search.orders[c - num_found]);
    search.hcas.push_back(context.topology.device(nics.hcas()[one.hca]).ordinal);
    search.hcas_out.push_back(context.topology.device(nics.hcas()[one.hca_out]).ordinal);
    const auto last = static_cast<std::size_t>(search.orders.back().back());
    search.senders.push_back(static_cast<int>(nics.ring_sender(last, one.hca_out)));
  }
  return search;
}

}  // namespace fabricast::models::nccl
