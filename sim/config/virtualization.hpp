// SPDX-License-Identifier: Apache-2.0
// `virtualization:` of a host group or a scenario: key table, reader, and how a scenario replaces it for all hosts.
#pragma once

#include "config/schema.hpp"
#include "fabricast/topology.hpp"
#include "fabricast/virtualization.hpp"

namespace fabricast::config {

SchemaPtr virtualization_schema();
SchemaPtr vms_schema();

/// Reads a word or a mapping that the key table has accepted.
Virtualization read_virtualization(const Node& node, const HostSpec& host, Diagnostics& faults);

/// Bytes of a frame, as a number or with a unit; nothing after a fault.
std::optional<int> read_mtu(const Node& node, Diagnostics& faults);

/// A fault where the quantity of `key` is 0: nothing would pass, or hold anything.
void check_above_zero(const Node& node, const char* key, Dimension dimension, Diagnostics& faults);

/// Reads `vms:` beside the settings of their host, which may be missing. Adds stand-ins of remote GPUs and of software
/// adapters without a port to the devices of `host`.
Virtualization read_vms(const Node& vms, const Node* settings, HostSpec& host, Diagnostics& faults);

/// Puts the scenario's `virtualization` in place of that of every host group.
void override_virtualization(const Node& scenario, Node& topology);

}  // namespace fabricast::config
