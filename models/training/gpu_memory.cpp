// SPDX-License-Identifier: Apache-2.0
#include "fabricast/models/gpu_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "fabricast/models/virtualization.hpp"
#include "fabricast/virtualization.hpp"

namespace fabricast::models {

namespace {

constexpr double k_gib_bytes = 0x1p30;

/// What a client of a remote GPU may use: its limit, else its share of the card.
GpuMemory remote_memory(const Virtualization& guest, const std::string& name, const GpuMemory& card) {
  const auto* own = guest.held(name);
  const auto limit = own == nullptr ? guest.gpu_memory : own->memory;
  const double share = own == nullptr ? guest.gpu_share : own->share;
  const double bytes = limit ? static_cast<double>(limit->value) : share * card.bytes;
  if (bytes >= card.bytes) return card;
  return {bytes, fmt::format("client of a remote {}", card.what)};
}

}  // namespace

std::optional<GpuMemory> gpu_memory(const Topology& topology, const ParameterSet& parameters, DeviceId gpu) {
  const auto& device = topology.device(gpu);
  const auto* known = parameters.find(device.type + ".memory");
  if (known == nullptr) return std::nullopt;
  const GpuMemory card{known->value, device.type};
  const auto& guest = topology.virtualization(device.host);
  if (!guest.is_virtual()) return card;
  const auto name = device.name.substr(topology.host_name(device.host).size() + 1);
  const auto mode = guest.gpu_mode(name);
  if (mode == GpuMode::remote) return remote_memory(guest, name, card);
  if (mode != GpuMode::vgpu && mode != GpuMode::mig) return card;
  const auto profile = find_gpu_profile(profile_family(device.type, parameters), guest.profile_of(name), parameters);
  if (!profile || profile->framebuffer_gb * k_gib_bytes >= card.bytes) return card;
  const auto* kind = mode == GpuMode::mig ? "MIG instance" : "vGPU";
  return GpuMemory{profile->framebuffer_gb * k_gib_bytes,
                   fmt::format("{} {} of a {}", kind, guest.profile_of(name), device.type)};
}

std::optional<GpuMemory> least_memory(const Topology& topology, const ParameterSet& parameters,
                                      const std::vector<DeviceId>& gpus) {
  std::optional<GpuMemory> least;
  for (const auto gpu : topology.unlike(gpus)) {
    auto one = gpu_memory(topology, parameters, gpu);
    if (one && (!least || one->bytes < least->bytes)) least = std::move(one);
  }
  return least;
}

}  // namespace fabricast::models
