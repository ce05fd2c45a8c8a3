// SPDX-License-Identifier: Apache-2.0
// GPUs of the catalogue by what machines print of them: PCI device number, words of the product's name, compute
// capability.
#pragma once

#include <array>

namespace fabricast::devices {

struct GpuEntry {
  int device;
  const char* name;
  int generation;
  int width = 16;
};
/// NVIDIA device numbers [pci.ids].
inline constexpr std::array k_gpus{
    GpuEntry{0x1021, "k20x", 2},         GpuEntry{0x1023, "k40m", 3},
    GpuEntry{0x102d, "k80", 3},          GpuEntry{0x15f7, "p100-pcie-12", 3},
    GpuEntry{0x15f8, "p100-pcie-16", 3}, GpuEntry{0x15f9, "p100-sxm2", 3},
    GpuEntry{0x1db1, "v100-sxm2-16", 3}, GpuEntry{0x1db5, "v100-sxm2-32", 3},
    GpuEntry{0x1db8, "v100-sxm3-32", 3}, GpuEntry{0x1db4, "v100-pcie-16", 3},
    GpuEntry{0x1db6, "v100-pcie-32", 3}, GpuEntry{0x1eb8, "t4", 3},
    GpuEntry{0x20b0, "a100-sxm4-40", 4}, GpuEntry{0x20b2, "a100-sxm4-80", 4},
    GpuEntry{0x20b3, "a100-sxm-64", 4},  GpuEntry{0x20f1, "a100-pcie-40", 4},
    GpuEntry{0x20b1, "a100-pcie-40", 4}, GpuEntry{0x20b5, "a100-pcie-80", 4},
    GpuEntry{0x20f3, "a800-sxm4-80", 4}, GpuEntry{0x20b7, "a30", 4},
    GpuEntry{0x2235, "a40", 4},          GpuEntry{0x2236, "a10", 4},
    GpuEntry{0x2330, "h100-sxm", 5},     GpuEntry{0x2331, "h100-pcie", 5},
    GpuEntry{0x2335, "h200-sxm", 5},     GpuEntry{0x2329, "h20-sxm", 5},
    GpuEntry{0x232c, "h20-3e-sxm", 5},   GpuEntry{0x26b9, "l40s", 4},
    GpuEntry{0x27b8, "l4", 4},           GpuEntry{0x2901, "b200-sxm", 5},
    GpuEntry{0x3182, "b300-sxm", 6},     GpuEntry{0x2bb5, "rtx-pro-6000-server", 5},
    GpuEntry{0x233b, "h200-nvl", 5},     GpuEntry{0x2342, "gh200", 6, 32},
    GpuEntry{0x2941, "gb200", 6, 32},    GpuEntry{0x31c2, "gb300", 6},
};

/// AMD device numbers [pci.ids]; PCIe 5.0 x16.
inline constexpr std::array k_amd_gpus{GpuEntry{0x74a1, "mi300x", 5}, GpuEntry{0x74a5, "mi325x", 5},
                                       GpuEntry{0x75a0, "mi350x", 5}, GpuEntry{0x75a3, "mi355x", 5}};

/// Words of a product's name, all of which it holds.
struct GpuWords {
  const char* first;
  const char* second;
  const char* name;
};
inline constexpr std::array k_gpu_words{
    GpuWords{"A100 PCIe 80GB", "", "a100-pcie-80"},
    GpuWords{"A100 PCIe 40GB", "", "a100-pcie-40"},
    GpuWords{"A100 80GB PCIe", "", "a100-pcie-80"},
    GpuWords{"A100-PCIE-40GB", "", "a100-pcie-40"},
    GpuWords{"A100 SXM4 80GB", "", "a100-sxm4-80"},
    GpuWords{"A100 SXM4 40GB", "", "a100-sxm4-40"},
    GpuWords{"A100-SXM4-80GB", "", "a100-sxm4-80"},
    GpuWords{"A100-SXM4-40GB", "", "a100-sxm4-40"},
    GpuWords{"A800", "SXM4", "a800-sxm4-80"},
    GpuWords{"GH200", "", "gh200"},
    GpuWords{"H100 SXM5", "", "h100-sxm"},
    GpuWords{"H100 80GB HBM3", "", "h100-sxm"},
    GpuWords{"H100 PCIe", "", "h100-pcie"},
    GpuWords{"H200 NVL", "", "h200-nvl"},
    GpuWords{"H200", "", "h200-sxm"},
    GpuWords{"H20", "", "h20-sxm"},
    GpuWords{"V100", "SXM3", "v100-sxm3-32"},
    GpuWords{"V100", "SXM2 32GB", "v100-sxm2-32"},
    GpuWords{"V100", "SXM2", "v100-sxm2-16"},
    GpuWords{"V100", "PCIe 32GB", "v100-pcie-32"},
    GpuWords{"V100", "PCIe", "v100-pcie-16"},
    GpuWords{"P100", "SXM2", "p100-sxm2"},
    GpuWords{"P100", "PCIe", "p100-pcie-16"},
    GpuWords{"L40S", "", "l40s"},
    GpuWords{"[L4]", "", "l4"},
    GpuWords{"GB300", "", "gb300"},
    GpuWords{"B300", "", "b300-sxm"},
    GpuWords{"GB200", "", "gb200"},
    GpuWords{"B200", "", "b200-sxm"},
    GpuWords{"RTX PRO 6000", "Server", "rtx-pro-6000-server"},
    GpuWords{"A40", "", "a40"},
    GpuWords{"A30", "", "a30"},
    GpuWords{"A10]", "", "a10"},
    GpuWords{"Tesla T4", "", "t4"},
};

struct CapabilityEntry {
  int capability;
  const char* sxm;
  const char* pcie;
  const char* superchip;  ///< on NVLink-C2C
  int generation;
};
inline constexpr std::array k_capabilities{
    CapabilityEntry{60, "p100-sxm2", "p100-pcie-16", "", 3},
    CapabilityEntry{70, "v100-sxm2-16", "v100-pcie-16", "", 3},
    CapabilityEntry{75, "t4", "t4", "", 3},
    CapabilityEntry{80, "a100-sxm4-80", "a100-pcie-80", "", 4},
    CapabilityEntry{86, "a40", "a40", "", 4},
    CapabilityEntry{89, "l40s", "l40s", "", 4},
    CapabilityEntry{90, "h100-sxm", "h100-pcie", "gh200", 5},
    CapabilityEntry{100, "b200-sxm", "b200-sxm", "gb200", 5},
    CapabilityEntry{103, "b300-sxm", "b300-sxm", "gb300", 6},
    CapabilityEntry{120, "rtx-pro-6000-server", "rtx-pro-6000-server", "", 5},
};

}  // namespace fabricast::devices
