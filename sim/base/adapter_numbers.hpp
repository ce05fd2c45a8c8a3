// SPDX-License-Identifier: Apache-2.0
// Adapters by their PCI numbers, for whoever reads them and whoever writes them.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace fabricast::devices {

struct AdapterNumbers {
  int vendor, device;
  const char* family;   ///< how types of the catalogue begin
  const char* driver;   ///< how its driver names it
  const char* assumed;  ///< on the way from these numbers to the family; empty = nothing
};
/// PCI vendor of adapters that InfiniBand listings number by their PCI device.
inline constexpr int k_mellanox = 0x15b3;

/// [pci.ids]; the first numbers of a family are those that its types have.
inline constexpr std::array k_adapter_numbers{
    AdapterNumbers{0x15b3, 0x1003, "connectx-3", "mlx4_", ""},
    AdapterNumbers{0x15b3, 0x1004, "connectx-3", "mlx4_", ""},
    AdapterNumbers{0x15b3, 0x1007, "connectx-3-pro", "mlx4_", ""},
    AdapterNumbers{0x15b3, 0x1011, "connect-ib", "mlx5_", ""},
    AdapterNumbers{0x15b3, 0x1013, "connectx-4", "mlx5_", ""},
    AdapterNumbers{0x15b3, 0x1014, "connectx-4", "mlx5_", ""},
    AdapterNumbers{0x15b3, 0x1015, "connectx-4-lx", "mlx5_", ""},
    AdapterNumbers{0x15b3, 0x1016, "connectx-4-lx", "mlx5_", ""},
    AdapterNumbers{0x15b3, 0x1017, "connectx-5", "mlx5_", ""},
    AdapterNumbers{0x15b3, 0x1018, "connectx-5", "mlx5_", ""},
    AdapterNumbers{0x15b3, 0x1019, "connectx-5", "mlx5_", ""},
    AdapterNumbers{0x15b3, 0x101a, "connectx-5", "mlx5_", ""},
    AdapterNumbers{0x15b3, 0x101b, "connectx-6", "mlx5_", ""},
    AdapterNumbers{0x15b3, 0x101c, "connectx-6", "mlx5_", ""},
    AdapterNumbers{0x15b3, 0x101d, "connectx-6-dx", "mlx5_", ""},
    AdapterNumbers{0x15b3, 0x101e, "connectx-6-dx", "mlx5_", "a virtual function of ConnectX-6 Dx or newer"},
    AdapterNumbers{0x15b3, 0x101f, "connectx-6-dx", "mlx5_", "ConnectX-6 Lx as ConnectX-6 Dx"},
    AdapterNumbers{0x15b3, 0xa2d6, "connectx-6-dx", "mlx5_", "BlueField-2 as ConnectX-6 Dx"},
    AdapterNumbers{0x15b3, 0x1021, "connectx-7", "mlx5_", ""},
    AdapterNumbers{0x15b3, 0x1021, "connectx-7-bond", "mlx5_bond_", ""},
    AdapterNumbers{0x15b3, 0xa2dc, "bluefield-3", "mlx5_", ""},
    AdapterNumbers{0x15b3, 0x1023, "connectx-8", "mlx5_", ""},
    AdapterNumbers{0x14e4, 0x1760, "bcm57608", "bnxt_re", ""},
    AdapterNumbers{0x1d0f, 0xefa0, "efa-100g", "rdmap", ""},
    AdapterNumbers{0x1d0f, 0xefa1, "efa-4x100g", "rdmap", ""},
    AdapterNumbers{0x1d0f, 0xefa2, "efa-2x200g", "rdmap", ""},
    AdapterNumbers{0x1d0f, 0xec20, "ena", "eth", ""},
    AdapterNumbers{0x1ae0, 0x0042, "gvnic", "eth", ""},
    AdapterNumbers{0x1ae0, 0x0042, "ethernet-32g", "eth", ""},
    AdapterNumbers{0x17db, 0x0501, "slingshot-11", "cxi", ""},
};

/// Of a type of the catalogue: the longest family that it begins with; no numbers and "net" for others.
constexpr AdapterNumbers adapter_numbers(std::string_view type) {
  AdapterNumbers best{0, 0, "", "net", ""};
  for (const auto& one : k_adapter_numbers)
    if (type.starts_with(one.family) && std::string_view(one.family).size() > std::string_view(best.family).size())
      best = one;
  return best;
}

/// The first entry of PCI numbers; nullptr for unknown ones.
constexpr const AdapterNumbers* adapter_of(int vendor, int device) {
  const auto* found = std::find_if(k_adapter_numbers.begin(), k_adapter_numbers.end(), [&](const AdapterNumbers& one) {
    return one.vendor == vendor && one.device == device;
  });
  return found == k_adapter_numbers.end() ? nullptr : found;
}

}  // namespace fabricast::devices
