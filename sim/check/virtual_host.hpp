// SPDX-License-Identifier: Apache-2.0
// One group of virtual hosts as the rules look at it, and how a rule reports: what is wrong and why, the fix, the
// source.
#pragma once

#include <string>
#include <vector>

#include "fabricast/check.hpp"
#include "fabricast/virtualization.hpp"

namespace fabricast::check {

struct VirtualHost {
  const Topology& topology;
  const ParameterSet& parameters;
  const HostGroupSpec& group;
  const Virtualization& guest;
  int host = 0;  ///< first host of the group, or one of the VMs of its first machine
  const std::vector<DeviceType>* types = nullptr;

  /// infiniband, ethernet, ...; empty when nobody says.
  [[nodiscard]] std::string protocol(const std::string& type) const;

  [[nodiscard]] std::vector<DeviceId> gpus() const { return topology.devices(DeviceKind::gpu, host); }
  [[nodiscard]] std::vector<DeviceId> hcas() const { return topology.devices(DeviceKind::hca, host); }
  [[nodiscard]] std::string gpu_type() const;
  [[nodiscard]] bool is_passed_through() const;
  [[nodiscard]] int compute_capability() const;
  /// NVLink joins every two GPUs of the VM.
  [[nodiscard]] bool has_nvlink() const;
};

struct Finding {
  Severity severity = Severity::error;
  std::string key;  ///< the setting it is about; the message points at it when it was written
  std::string message;
  std::string fix;
  std::string source;
};

/// Rules of hosts with each other: protocols, PVRDMA, remote GPUs.
Diagnostics cluster_findings(const Topology& topology, const ParameterSet& parameters,
                             const std::vector<DeviceType>& types);

Diagnostic report(const VirtualHost& host, const Finding& finding);

/// Rules of the VM's system: memory, MMIO, firmware, processors, adapters, required features.
std::vector<Finding> system_findings(const VirtualHost& host);
/// Rules of GPUs and the PCIe tree: profiles, ECC, peer paths.
std::vector<Finding> device_findings(const VirtualHost& host);
/// ACS redirects peer requests; a doubt on bare metal too.
Finding redirect_finding();

}  // namespace fabricast::check
