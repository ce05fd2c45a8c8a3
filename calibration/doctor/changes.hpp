// SPDX-License-Identifier: Apache-2.0
// What faults do to the description of a host or a fabric.
#pragma once

#include <functional>
#include <utility>

#include "doctor/case.hpp"

namespace fabricast::doctor {

/// False where the value is so already.
template <typename Value>
bool put(Value& into, Value value) {
  if (into == value) return false;
  into = std::move(value);
  return true;
}

/// Of every host what it wears, of bare metal, too, and of each VM that was described by itself; false when `change`
/// says so of all.
bool change_worn(Case& one, const std::function<bool(Virtualization&)>& change);

DeviceSpec* nth(HostSpec& host, DeviceKind kind, int number);
int count(const HostSpec& host, DeviceKind kind);
int num_hosts(const TopologySpec& spec);
/// As the topology names it.
std::string host_name(const TopologySpec& spec, int host);

/// By the catalogue's attribute `protocol`.
bool is_ethernet(const Case& one, const DeviceSpec& device);
/// Halves the lanes (or takes a generation off) of one device's link; false when it is so already.
bool train_narrow(const Case& one, DeviceSpec& device, int width_divisor, int generation);
/// The device gets a type of its own with some values scaled.
void clone_type(Case& one, DeviceSpec& device, const std::vector<std::pair<std::string, double>>& scales);
bool remove_hca(HostSpec& host, int number);
bool swap_hcas(HostSpec& host, int a, int b);
/// The adapters of the first adapter's processor go below the other one, each at a root port of its own.
bool swap_sockets(HostSpec& host);
/// Groups of one host each, so that one can differ; false when there are too many. Names stay.
bool split_groups(TopologySpec& spec);
/// Switches with hosts below and other switches above them.
std::vector<std::string> leaves_with_uplinks(const Topology& topology);
/// The topology without every second cable between `leaf` and other switches.
Topology with_weak_leaf(const Topology& topology, const std::string& leaf);

}  // namespace fabricast::doctor
