// SPDX-License-Identifier: Apache-2.0
// VMs of a machine in its picture: a line each below the sockets, in a colour that marks the devices they hold.
#pragma once

#include <string>
#include <vector>

#include "exchange/host_tree.hpp"

namespace fabricast::exchange {

/// A device and the VM that holds it.
struct VmMark {
  DeviceId device;
  std::string vm;
  std::string colour;
};

/// Room that so many VMs take below the sockets.
double height_of_vms(std::size_t count);
/// Their lines from (x, y) on, `width` wide; adds what they hold to `marks`.
std::string draw_vms(const std::vector<VmView>& vms, double x, double y, double width, std::vector<VmMark>& marks);

}  // namespace fabricast::exchange
