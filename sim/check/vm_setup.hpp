// SPDX-License-Identifier: Apache-2.0
// The VMs of one machine with what each holds, whether they were described one by one or by one word, and what the
// compatibility matrix (models/params/compatibility.yaml) says of a device.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "check/virtual_host.hpp"
#include "fabricast/gpudirect_software.hpp"
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

/// Model as the matrix calls it: a100 of a100-sxm4-80.
std::string gpu_model(const std::string& type);

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

/// What rules of the VMs of one machine have in common: they look at VM `vm_`, and report of it.
class VmRules {
 public:
  VmRules(const VirtualHost& host, const std::vector<VmSetup>& vms, std::vector<VmFinding>& found)
      : host_(host), vms_(vms), found_(found) {}

 protected:
  [[nodiscard]] const Virtualization& guest() const { return *vms_[vm_].settings; }
  [[nodiscard]] bool is_esxi() const { return guest().hypervisor == Hypervisor::esxi; }
  /// The VMs were written one by one, not dealt out by a word.
  [[nodiscard]] bool is_described() const { return !host_.group.host.virtualization->vms.empty(); }
  /// The release of the VM's ESXi is before that of the cell; other hypervisors are never.
  [[nodiscard]] bool is_too_old(const Parameter* first) const {
    return first != nullptr && is_esxi() && release_code(guest().version) < first->value;
  }

  void add(Severity severity, std::string key, std::string message, std::string fix, std::string source) {
    found_.push_back({vm_, {severity, std::move(key), std::move(message), std::move(fix), std::move(source)}});
  }

  const VirtualHost& host_;
  const std::vector<VmSetup>& vms_;
  std::vector<VmFinding>& found_;
  std::size_t vm_ = 0;
};

}  // namespace fabricast::check
