// SPDX-License-Identifier: Apache-2.0
// Words of the virtualization settings, as YAML and messages spell them.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>

#include "base/text.hpp"
#include "fabricast/virtualization.hpp"

namespace fabricast {

std::string_view to_string(VirtualMode mode) {
  switch (mode) {
    case VirtualMode::bare_metal:
      return "bare-metal";
    case VirtualMode::passthrough:
      return "passthrough";
    case VirtualMode::sr_iov:
      return "sr-iov";
    case VirtualMode::vgpu:
      return "vgpu";
    case VirtualMode::mig:
      return "mig";
    case VirtualMode::pvrdma:
      return "pvrdma";
    case VirtualMode::tcp:
      return "tcp";
    case VirtualMode::remote_gpu:
      return "remote-gpu";
  }
  return "";
}

std::string_view to_string(Hypervisor hypervisor) {
  switch (hypervisor) {
    case Hypervisor::none:
      return "none";
    case Hypervisor::esxi:
      return "esxi";
    case Hypervisor::kvm:
      return "kvm";
    case Hypervisor::cloud_hypervisor:
      return "cloud-hypervisor";
    case Hypervisor::xen:
      return "xen";
    case Hypervisor::hyper_v:
      return "hyper-v";
  }
  return "";
}

std::string_view to_string(GpuMode mode) {
  switch (mode) {
    case GpuMode::bare_metal:
      return "bare-metal";
    case GpuMode::passthrough:
      return "passthrough";
    case GpuMode::vgpu:
      return "vgpu";
    case GpuMode::mig:
      return "mig";
    case GpuMode::remote:
      return "remote";
  }
  return "";
}

std::string_view to_string(NicMode mode) {
  switch (mode) {
    case NicMode::bare_metal:
      return "bare-metal";
    case NicMode::passthrough:
      return "passthrough";
    case NicMode::sr_iov:
      return "sr-iov";
    case NicMode::pvrdma:
      return "pvrdma";
    case NicMode::vmxnet3:
      return "vmxnet3";
    case NicMode::virtio:
      return "virtio";
  }
  return "";
}

std::string_view to_string(AcsMode mode) {
  switch (mode) {
    case AcsMode::redirect:
      return "redirect";
    case AcsMode::direct_translated:
      return "direct_translated";
    case AcsMode::off:
      return "off";
  }
  return "";
}

std::string_view to_string(GuestTopology seen) {
  switch (seen) {
    case GuestTopology::shown:
      return "shown";
    case GuestTopology::hidden:
      return "hidden";
    case GuestTopology::injected:
      return "injected";
  }
  return "";
}

std::string_view to_string(PeerTranslation translation) {
  return translation == PeerTranslation::shared ? "shared" : "cached";
}

std::string_view to_string(NvswitchMode mode) { return mode == NvswitchMode::shared ? "shared" : "passthrough"; }

std::string_view to_string(LatencySensitivity level) { return level == LatencySensitivity::high ? "high" : "normal"; }

std::string_view to_string(GuestSystem system) { return system == GuestSystem::windows ? "windows" : "linux"; }

std::optional<ReleaseNumber> release_from(std::string_view text) {
  auto plain = lower(text);
  std::erase(plain, ' ');
  ReleaseNumber release;
  int used = 0;
  if (std::sscanf(plain.c_str(), "%2d.%2d%n", &release.major, &release.minor, &used) != 2) return std::nullopt;
  auto rest = plain.substr(static_cast<std::size_t>(used));
  if (rest.empty()) return release;
  // "Update 3" is U3, and "U3f" a patch of it.
  if (rest.starts_with("update")) rest.replace(0, 6, "u");
  const bool has_patch = rest.size() > 2 && std::isalpha(static_cast<unsigned char>(rest.back())) != 0;
  if (has_patch) rest.pop_back();
  int used_by_update = 0;
  if (std::sscanf(rest.c_str(), "u%2d%n", &release.update, &used_by_update) != 1 ||
      static_cast<std::size_t>(used_by_update) != rest.size()) {
    return std::nullopt;
  }
  return release;
}

ReleaseNumber release_of_code(double code) {
  const int number = static_cast<int>(code + 0.5);
  return {number / 100, number / 10 % 10, number % 10};
}

std::string to_string(const ReleaseNumber& release) {
  const auto plain = fmt::format("{}.{}", release.major, release.minor);
  return release.update > 0 ? fmt::format("{} U{}", plain, release.update) : plain;
}

const std::vector<std::string>& virtual_mode_names() {
  static const std::vector<std::string> names{"bare-metal", "passthrough", "sr-iov", "vgpu",
                                              "mig",        "pvrdma",      "tcp",    "remote-gpu"};
  return names;
}

std::optional<VirtualMode> virtual_mode_from(std::string_view name) {
  const auto& names = virtual_mode_names();
  const auto it = std::find(names.begin(), names.end(), name);
  if (it == names.end()) return std::nullopt;
  return static_cast<VirtualMode>(it - names.begin());
}

}  // namespace fabricast
