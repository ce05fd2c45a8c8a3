// SPDX-License-Identifier: Apache-2.0
// The settings of fabricast/lossless.hpp as the packet engine's switch takes them: the one way from the catalogue of
// ASICs to a switch, for scenarios and for the tests of the engine's laws.
#pragma once

#include <string>

#include "fabricast/lossless.hpp"
#include "packet/buffer.hpp"

namespace fabricast::engine {

/// Presets of simulators rather than ASICs: what no number of theirs says (store and forward, PAUSE out of band) comes
/// with the packet engine's preset of the same name.
bool is_simulator(const std::string& preset);

/// Without the latency, which is the device's. `fastest`: rate of the fabric's fastest link, to which times and
/// thresholds that depend on a rate are converted.
packet::SwitchConfig switch_config(const LosslessSettings& settings, Bandwidth fastest);

}  // namespace fabricast::engine
