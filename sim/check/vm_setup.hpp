// SPDX-License-Identifier: Apache-2.0
// The VMs of one machine with what each holds, whether they were described one by one or by one word, and what the
// compatibility matrix (models/params/compatibility.yaml) says of a device.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "check/virtual_host.hpp"
#include "fabricast/vm_operations.hpp"

namespace fabricast::check {

struct HeldGpu {
  std::string name, type;
  GpuMode mode = GpuMode::passthrough;
  std::string profile;
};
struct HeldNic {
  std::string name, type;
  NicMode mode = NicMode::passthrough;
  int functions = 1;
  bool is_limited = false;  ///< to a rate
};
struct VmSetup {
  std::string name;
  const Virtualization* settings = nullptr;
  std::vector<HeldGpu> gpus;
  std::vector<HeldNic> nics;

  [[nodiscard]] HeldModes modes() const;
};

/// In the order of the description; `host` is the first of its group.
std::vector<VmSetup> vm_setups(const VirtualHost& host);

/// Model as the matrix calls it: a100 of a100-sxm4-80, connectx-6 of connectx-6-dx-100g.
std::string gpu_model(const std::string& type);
std::string adapter_family(const std::string& type);

/// 671 of ESXi 6.7 U1, 1220 of vGPU 12.2.
int release_code(const ReleaseNumber& release);
/// The other way round, as people write it.
std::string release_words(double code);

/// A cell of the matrix. Null when it has none.
const Parameter* cell(const VirtualHost& host, const std::string& name);
/// Documented and reported cells refuse, recalled ones warn.
Severity severity_of(const Parameter& cell);

/// The vGPU or MIG profile takes the whole card.
bool is_whole_profile(const VirtualHost& host, const std::string& type, const std::string& name);

/// Rules of what a VM holds and of all VMs of a machine together. Each finding is of one VM (index into `vms`).
struct VmFinding {
  std::size_t vm = 0;
  Finding finding;
};
void gpu_rules(const VirtualHost& host, const std::vector<VmSetup>& vms, std::vector<VmFinding>& found);
void profile_rules(const VirtualHost& host, const std::vector<VmSetup>& vms, std::vector<VmFinding>& found);
void adapter_rules(const VirtualHost& host, const std::vector<VmSetup>& vms, std::vector<VmFinding>& found);
void machine_rules(const VirtualHost& host, const std::vector<VmSetup>& vms, std::vector<VmFinding>& found);

/// Can these MIG instances lie on a card of `slots` memory slots and `compute` slices at once? Each is compute slices
/// and memory slots; where one may start is the placement table's.
struct MigKind {
  int compute = 1, slots = 1;
};
bool can_place(const std::vector<MigKind>& instances, int slots, const ParameterSet& parameters);

}  // namespace fabricast::check
