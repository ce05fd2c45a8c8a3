// SPDX-License-Identifier: Apache-2.0
// `devices:` of one VM of `vms:`: device of the host or catalogue name -> how the VM gets it.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "config/virtualization.hpp"

namespace fabricast::config {

/// Reads the devices of one VM after the other: types are dealt out to those that fewest VMs hold. Adds stand-ins
/// (remote GPUs, adapters of the hypervisor's own switch, further parts of a card) to the devices of `host`.
class VmDevicesReader {
 public:
  VmDevicesReader(HostSpec& host, Diagnostics& faults) : host_(host), faults_(faults) {}

  /// Of copy `index` of the VM; faults of all copies are said once.
  std::vector<VmDevice> read(const Node& vm, int index);

 private:
  VmDevice way_of(const Node& node);
  std::vector<VmDevice> ways_of(const Node& node);
  std::vector<std::string> names_of(const Node::Entry& entry, const VmDevice& way, int index);
  std::vector<std::string> missing(const Node::Entry& entry, const VmDevice& way, int index);
  void stand_in(const Node::Entry& entry, DeviceKind kind, const std::string& type);
  std::string part_of(const std::string& card, std::size_t part, const SourceLocation& where);
  void check_kind(const Node::Entry& entry, VmDevice& one, bool is_first);

  HostSpec& host_;
  Diagnostics& faults_;
  std::map<std::string, int> holders_;
  std::set<std::string> stand_ins_;
};

}  // namespace fabricast::config
