// SPDX-License-Identifier: Apache-2.0
// Whether a log is of the devices that its topology describes: names that CUDA prints ("NVIDIA A100-SXM4-40GB") beside
// types of the catalogue (`a100-sxm4-40`), perftest's link type beside the adapters' protocol.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/gpu_numbers.hpp"
#include "base/text.hpp"
#include "fit/stated_settings.hpp"

namespace fabricast::fit {

namespace {

std::vector<std::string> parts_of(std::string_view name) {
  std::vector<std::string> out(1);
  for (const char c : lower(name)) {
    const bool is_part = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (is_part) out.back() += c;
    if (!is_part && !out.back().empty()) out.emplace_back();
  }
  if (out.back().empty()) out.pop_back();
  return out;
}

/// `a100` of `a100-sxm4-40`.
std::string model_of(std::string_view type) { return std::string(type.substr(0, type.find('-'))); }

const std::set<std::string>& known_models() {
  static const auto all = [] {
    std::set<std::string> out;
    for (const auto& one : devices::k_gpus) out.insert(model_of(one.name));
    for (const auto& one : devices::k_amd_gpus) out.insert(model_of(one.name));
    return out;
  }();
  return all;
}

/// The first part that names how a board is mounted, empty when none does.
std::string form_of(const std::vector<std::string>& parts) {
  for (const auto& part : parts) {
    for (const char* form : {"sxm", "pcie", "nvl"})
      if (part.starts_with(form)) return form;
  }
  return {};
}

/// Gigabytes in `40` or `40gb`, empty for other words.
std::string memory_of(const std::vector<std::string>& parts, std::string_view unit) {
  for (const auto& part : parts) {
    const auto digits = std::min(part.find_first_not_of("0123456789"), part.size());
    if (digits > 0 && std::string_view(part).substr(digits) == unit) return part.substr(0, digits);
  }
  return {};
}

bool differ(const std::string& one, const std::string& other) { return !one.empty() && !other.empty() && one != other; }

/// Names that say nothing of the catalogue's models, and types of the user's own, may be anything.
bool is_other_gpu(std::string_view name, std::string_view type) {
  const auto words = parts_of(name);
  const auto is_of = [&](const std::string& model) { return std::ranges::find(words, model) != words.end(); };
  if (!known_models().contains(model_of(type)) || std::ranges::none_of(known_models(), is_of)) return false;
  const auto typed = parts_of(type);
  return !is_of(model_of(type)) || differ(form_of(words), form_of(typed)) ||
         differ(memory_of(words, "gb"), memory_of(typed, ""));
}

std::set<std::string> types_of(const Topology& topology, DeviceKind kind) {
  std::set<std::string> out;
  for (const auto device : topology.devices(kind)) out.insert(topology.device(device).type);
  return out;
}

}  // namespace

std::string other_devices(const MeasuredLog& log, const Topology& topology) {
  const auto gpus = types_of(topology, DeviceKind::gpu);
  for (const auto& name : log.header.device_names) {
    const auto is_other = [&](const std::string& type) { return is_other_gpu(name, type); };
    if (!gpus.empty() && std::ranges::all_of(gpus, is_other))
      return fmt::format("the log is of '{}', the topology has {}", name, fmt::join(gpus, ", "));
  }
  const auto hcas = types_of(topology, DeviceKind::hca);
  const bool is_ethernet = log.header.link_type == "Ethernet";
  const auto is_other = [&](const std::string& type) {
    const auto protocol = topology.attribute(type, "protocol");
    return protocol == (is_ethernet ? "infiniband" : "ethernet");
  };
  if ((is_ethernet || log.header.link_type == "IB") && !hcas.empty() && std::ranges::all_of(hcas, is_other))
    return fmt::format("the log's link type is {}, the topology has {}", log.header.link_type, fmt::join(hcas, ", "));
  return {};
}

std::string other_packets(const MeasuredLog& log, const Topology& topology, const ParameterSet& parameters) {
  const auto hcas = types_of(topology, DeviceKind::hca);
  if (!log.header.mtu || hcas.empty()) return {};
  std::set<std::int64_t> carried;
  for (const auto& type : hcas) carried.insert(std::llround(packet_payload(topology.spec().fabric, parameters, type)));
  if (carried.contains(log.header.mtu->value)) return {};
  return fmt::format("the log's packets carry {} B (Mtu), the topology's {} B: `mtu` of its fabric",
                     log.header.mtu->value, fmt::join(carried, " or "));
}

}  // namespace fabricast::fit
