// SPDX-License-Identifier: Apache-2.0
#include "fabricast/models/plan.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/assert.hpp"

namespace fabricast::models {

namespace {

constexpr double k_same_capacity = 1e-9;  ///< relative; sums in another order

}  // namespace

std::string_view to_string(Limit limit) {
  switch (limit) {
    case Limit::peer_read:
      return "peer reads through";
    case Limit::peer_write:
      return "peer writes through";
    case Limit::peer_cross_read:
      return "cross-socket peer reads through";
    case Limit::peer_cross_write:
      return "cross-socket peer writes through";
    case Limit::dram:
      return "DRAM of";
    case Limit::hca_transmit:
      return "packets sent by";
    case Limit::hca_receive:
      return "packets received by";
    case Limit::virtual_out:
      return "virtual port out of";
    case Limit::virtual_in:
      return "virtual port into";
    case Limit::function_out:
      return "virtual function out of";
    case Limit::function_in:
      return "virtual function into";
    case Limit::virtual_switch:
      return "exchange between VMs in";
    case Limit::virtual_copy:
      return "copies between VMs in";
    case Limit::translation:
      return "translated peer reads of";
    case Limit::translation_write:
      return "translated peer writes of";
    case Limit::copies:
      return "device copies with";
    case Limit::copies_in:
      return "device copies into";
    case Limit::redirected_read:
      return "redirected peer reads of";
    case Limit::gpudirect_read:
      return "GPU memory read by";
    case Limit::local_out:
      return "local links from";
    case Limit::local_in:
      return "local links into";
    case Limit::global_out:
      return "global links from the group of";
    case Limit::global_in:
      return "global links into the group of";
    case Limit::leaf_up:
      return "uplinks of";
    case Limit::leaf_down:
      return "downlinks to";
    case Limit::pod_up:
      return "uplinks of the pod of";
    case Limit::pod_down:
      return "downlinks to the pod of";
  }
  return "";
}

namespace {

/// Ports and functions of a VM are its own; everything else is the hardware's.
bool is_of_vm(Limit limit) {
  return limit == Limit::virtual_out || limit == Limit::virtual_in || limit == Limit::function_out ||
         limit == Limit::function_in;
}

}  // namespace

int Resources::extra(Limit limit, DeviceId device, double capacity, const std::string& parameter, int part) {
  if (!is_of_vm(limit)) device = topology_->hardware(device);
  const int number = topology_->num_links() + static_cast<int>(extras_.size());
  const auto [it, is_new] = numbers_.try_emplace({limit, device.value, part}, number);
  if (is_new) {
    extras_.push_back({limit, device, capacity, parameter, part});
    return number;
  }
  auto& known = extras_[static_cast<std::size_t>(it->second - topology_->num_links())];
  if (capacity < known.capacity * (1 - k_same_capacity)) {
    known.capacity = capacity;
    known.parameter = parameter;
  }
  return it->second;
}

int Resources::together(Limit limit, DeviceId device, const std::vector<LinkId>& links) {
  if (const auto known = numbers_.find({limit, device.value, 0}); known != numbers_.end()) return known->second;
  double sum = 0;
  for (const auto link : links) sum += capacity(link.value);
  return extra(limit, device, sum, parameter(links.front().value));
}

double Resources::capacity(int resource) const {
  if (!is_link(resource)) return extras_[static_cast<std::size_t>(resource - topology_->num_links())].capacity;
  const double rate = topology_->link_bandwidth(LinkId{resource}).bytes_per_s;
  const int network = resource - topology_->first_network_link();
  if (network < 0 || payload_shares_.empty()) return rate;
  return rate * payload_shares_[static_cast<std::size_t>(network)];
}

void Resources::set_payload_share(LinkId link, double share) {
  const int first = topology_->first_network_link();
  if (payload_shares_.empty()) payload_shares_.assign(static_cast<std::size_t>(topology_->num_links() - first), 1.0);
  payload_shares_[static_cast<std::size_t>(link.value - first)] = share;
}

double Resources::shares(const std::vector<Crossing>& crossings) const {
  if (shares_.empty()) return 1;
  for (const auto& crossing : crossings)
    if (const auto own = shares_.find(crossing.resource); own != shares_.end()) return own->second;
  return 1;
}

std::string Resources::name(int resource) const {
  if (is_link(resource)) return topology_->link_name(LinkId{resource});
  const auto& extra = extras_[static_cast<std::size_t>(resource - topology_->num_links())];
  const auto device =
      is_of_vm(extra.limit) ? topology_->device(extra.device).name : topology_->hardware_name(extra.device);
  const auto name = std::string(to_string(extra.limit)) + " " + device;
  return extra.part == 0 ? name : name + " of VM " + std::to_string(extra.part);
}

std::string Resources::parameter(int resource) const {
  if (is_link(resource)) return topology_->link(LinkId{resource}).parameter;
  return extras_[static_cast<std::size_t>(resource - topology_->num_links())].parameter;
}

DeviceId Resources::device(int resource) const {
  if (is_link(resource)) return topology_->link(LinkId{resource}).from;
  return extras_[static_cast<std::size_t>(resource - topology_->num_links())].device;
}

void CrossingCounter::merge() {
  std::sort(counts_.begin(), counts_.end(),
            [](const Crossing& a, const Crossing& b) { return a.resource < b.resource; });
  std::size_t last = 0;
  for (std::size_t i = 1; i < counts_.size(); ++i) {
    if (counts_[i].resource == counts_[last].resource) {
      counts_[last].times += counts_[i].times;
    } else {
      counts_[++last] = counts_[i];
    }
  }
  if (!counts_.empty()) counts_.resize(last + 1);
  merge_at_ = std::max(merge_at_, 4 * counts_.size());
}

std::vector<Crossing> CrossingCounter::take() {
  merge();
  return std::move(counts_);
}

std::vector<Crossing> merged(const std::vector<Crossing>& crossings) {
  CrossingCounter counter;
  for (const auto& crossing : crossings) counter.add(crossing.resource, crossing.times);
  return counter.take();
}

double rate_alone(const Resources& resources, const Flow& flow) {
  return std::min(flow.rate_cap, rate_of_crossings(resources, flow));
}

double rate_of_crossings(const Resources& resources, const Flow& flow) {
  double rate = std::numeric_limits<double>::infinity();
  for (const auto& crossing : flow.crossings)
    rate = std::min(rate, resources.capacity(crossing.resource) / crossing.times);
  return rate;
}

Duration time_alone(const Resources& resources, const Flow& flow) {
  return flow.latency + (flow.bytes > 0 ? from_seconds(flow.bytes / rate_alone(resources, flow)) : Duration{});
}

Duration sum(const std::vector<Term>& terms) {
  Duration total;
  for (const auto& term : terms) total += term.time;
  return total;
}

}  // namespace fabricast::models
