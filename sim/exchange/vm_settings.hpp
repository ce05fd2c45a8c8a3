// SPDX-License-Identifier: Apache-2.0
// What the files of `fabricast export vm-settings` have in common: who holds which device, and lines with sources.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fabricast/topology.hpp"
#include "fabricast/virtualization.hpp"

namespace fabricast::exchange {

/// A device as the machine's VMs hold it.
struct Holder {
  const Virtualization* vm = nullptr;
  std::string device, type;
  std::optional<GpuMode> gpu;
  std::optional<NicMode> nic;
  std::string profile, card;
  int functions = 1;
  std::optional<Bandwidth> rate_limit;
};

std::string upper(std::string text);
/// What one VM holds, written one by one or dealt out by a word (then all of the machine's devices, by mode).
std::vector<Holder> holders_of(const Topology& topology, int host);

/// Lines, each with its source behind it.
class Lines {
 public:
  void add(const std::string& line, const std::string& source = "") {
    lines_.push_back({line, source});
    if (!source.empty()) widest_ = std::max(widest_, std::min<std::size_t>(line.size(), 72));
  }
  /// Lines, `mark` before each source. XML has comments of its own.
  [[nodiscard]] std::string text(const char* mark = "  # ", const char* end = "") const;
  [[nodiscard]] bool is_empty() const { return lines_.empty(); }

 private:
  std::vector<std::pair<std::string, std::string>> lines_;
  std::size_t widest_ = 0;
};

/// Commands of the machine for adapters and GPUs that `all` its VMs hold.
std::string vm_host_commands(const Topology& topology, const Virtualization& guest, const std::vector<Holder>& all);

}  // namespace fabricast::exchange
