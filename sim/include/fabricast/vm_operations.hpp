// SPDX-License-Identifier: Apache-2.0
// What may be done with a running VM, by the devices it holds: it may do what all of them may. Sources: docs/MODELS.md,
// "Operations of a VM".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fabricast/parameters.hpp"
#include "fabricast/virtualization.hpp"

namespace fabricast {

enum class VmOperation {
  migration,
  suspend,
  snapshot,
  clone,
  ha,
  drs_placement,
  drs_balancing,
  fault_tolerance,
  hot_add
};
std::string_view to_string(VmOperation operation);
const std::vector<VmOperation>& vm_operations();

/// The modes of what a VM holds, as one would count its devices.
struct HeldModes {
  std::vector<GpuMode> gpus;
  std::vector<NicMode> nics;
};

/// Whether the operation works, and which device keeps it from working. `is_inferred`: a source is missing. Releases
/// are cells of the compatibility matrix.
Gate operation_gate(const Virtualization& vm, const HeldModes& held, VmOperation operation,
                    const ParameterSet& parameters);

/// As a condition that remains, e.g. settings of vCenter; empty when there is none.
std::string operation_condition(const Virtualization& vm, const HeldModes& held, VmOperation operation,
                                const ParameterSet& parameters);

/// The devices of a VM that was described by itself, for people: "gpu0 by passthrough, hca0 by sr-iov (25 Gb/s)".
std::string held_devices(const Virtualization& vm);

}  // namespace fabricast
