// SPDX-License-Identifier: Apache-2.0
// The words people read for devices, links, fabrics and distances.
#include "fabricast/topology.hpp"

namespace fabricast {

std::string_view to_string(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::socket:
      return "socket";
    case DeviceKind::memory:
      return "memory";
    case DeviceKind::root_complex:
      return "root complex";
    case DeviceKind::pcie_switch:
      return "PCIe switch";
    case DeviceKind::gpu:
      return "GPU";
    case DeviceKind::nvswitch:
      return "NVSwitch";
    case DeviceKind::hca:
      return "HCA";
    case DeviceKind::network_switch:
      return "network switch";
  }
  return "";
}

std::string_view to_string(LinkKind kind) {
  switch (kind) {
    case LinkKind::memory_bus:
      return "memory bus";
    case LinkKind::socket_interconnect:
      return "socket interconnect";
    case LinkKind::socket_internal:
      return "root complex to mesh";
    case LinkKind::pcie:
      return "PCIe";
    case LinkKind::nvlink:
      return "NVLink";
    case LinkKind::network:
      return "network";
  }
  return "";
}

std::string_view to_string(FabricKind kind) {
  switch (kind) {
    case FabricKind::none:
      return "none";
    case FabricKind::single_switch:
      return "single_switch";
    case FabricKind::leaf_spine:
      return "leaf_spine";
    case FabricKind::fat_tree:
      return "fat_tree";
    case FabricKind::rail_optimized:
      return "rail_optimized";
    case FabricKind::dragonfly:
      return "dragonfly";
    case FabricKind::torus:
      return "torus";
    case FabricKind::list:
      return "list";
  }
  return "";
}

std::string_view to_string(FlowControl control) {
  switch (control) {
    case FlowControl::pfc:
      return "pfc";
    case FlowControl::credits:
      return "credits";
    case FlowControl::drop:
      return "drop";
  }
  return "";
}

std::string_view to_string(Routing routing) {
  switch (routing) {
    case Routing::automatic:
      return "automatic";
    case Routing::minimal:
      return "minimal";
    case Routing::dimension_order:
      return "dimension_order";
    case Routing::up_down:
      return "up_down";
    case Routing::adaptive:
      return "adaptive";
  }
  return "";
}

std::string_view to_string(Distance distance) {
  switch (distance) {
    case Distance::same:
      return "same";
    case Distance::nvlink:
      return "NVL";
    case Distance::pix:
      return "PIX";
    case Distance::pxb:
      return "PXB";
    case Distance::phb:
      return "PHB";
    case Distance::node:
      return "NODE";
    case Distance::sys:
      return "SYS";
  }
  return "";
}

}  // namespace fabricast
