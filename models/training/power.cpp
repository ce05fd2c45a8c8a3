// SPDX-License-Identifier: Apache-2.0
#include "training/power.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "base/parameter_name.hpp"
#include "nccl/architecture.hpp"
#include "paths/transport.hpp"
#include "training/delays.hpp"
#include "training/terms.hpp"

namespace fabricast::models::training {

namespace {

constexpr double k_joules_per_picojoule = 1e-12;
constexpr int k_halvings = 50;  ///< of the interval that a share is looked for in

/// `gpu.product_power` of the GPU's own architecture, where its silicon has been measured and the network's
/// efficiencies are those of products alone.
const Parameter* measured_silicon(const PlanContext& context, DeviceId gpu, const Network& network) {
  const auto architecture = nccl::architecture_of(context, gpu);
  if (!architecture.is_own || !network.transformer) return nullptr;
  return context.parameters.find(named<"gpu.product_power.{}">(architecture.name));
}

double board_of(const PlanContext& context, DeviceId gpu) { return device_value_or(context, gpu, "tdp_watts", 0); }

double left_of(const PlanContext& context, DeviceId gpu) {
  const double board = board_of(context, gpu);
  return power_limit(context.topology, gpu).value_or(board) - context.parameters["gpu.idle_power"_key] * board;
}

double watts_of_memory(const PlanContext& context, DeviceId gpu) {
  return context.parameters["gpu.memory_energy"_key] * k_joules_per_picojoule *
         device_value(context, gpu, "memory_bandwidth");
}

/// Of all memory's rate, under the host's limit.
double memory_share(const PlanContext& context, DeviceId gpu) {
  if (!power_limit(context.topology, gpu) || board_of(context, gpu) <= 0) return 1;
  return std::min(1.0, left_of(context, gpu) / watts_of_memory(context, gpu));
}

}  // namespace

double PowerBudget::share(const PowerLoad& load) const {
  const auto is_within = [&](double share) {
    const double busy = load.arithmetic / share;
    return arithmetic * std::pow(share, exponent) * busy + memory * load.memory <=
           left * (busy + load.memory + load.exposed);
  };
  if (load.arithmetic <= 0 || is_within(1)) return 1;
  double low = 0, high = 1;
  for (int i = 0; i < k_halvings; ++i) {
    const double middle = (low + high) / 2;
    (is_within(middle) ? low : high) = middle;
  }
  return low;
}

std::optional<double> power_limit(const Topology& topology, DeviceId gpu) {
  const auto& limit = topology.host_spec(topology.host_of(gpu)).gpu_power_limit;
  return limit ? std::optional(limit->watts) : std::nullopt;
}

std::optional<PowerBudget> power_budget(const PlanContext& context, DeviceId gpu, const Network& network) {
  const double board = board_of(context, gpu);
  const auto* silicon = measured_silicon(context, gpu, network);
  if (board <= 0 || (!power_limit(context.topology, gpu) && silicon == nullptr)) return std::nullopt;
  PowerBudget budget{.left = left_of(context, gpu),
                     .arithmetic = board * (1 - context.parameters["gpu.idle_power"_key]),
                     .exponent = context.parameters["gpu.power_exponent"_key]};
  if (silicon != nullptr) {
    const double sms = device_value(context, gpu, "sms");
    const double peak = device_value(context, gpu, "tensor_tflops") / sms;
    budget.arithmetic = std::pow(peak, budget.exponent) * sms * silicon->value;
  }
  budget.memory = std::min(watts_of_memory(context, gpu), budget.left);
  return budget;
}

PowerLoad load_of_program(const Resources& resources, const Program& program) {
  PowerLoad load;
  for (const auto& node : program.nodes) {
    const bool is_compute = node.stream >= 0 && program.streams[static_cast<std::size_t>(node.stream)].device >= 0;
    if (!is_compute || node.work_name == k_optimizer) continue;
    if (is_work(node)) load.arithmetic += (node.repeat * node.work).seconds();
    load.exposed += time_alone(resources, node).seconds();
  }
  return load;
}

double memory_rate(const PlanContext& context, DeviceId gpu) {
  return device_value(context, gpu, "memory_bandwidth") * memory_share(context, gpu);
}

void add_power_settings(const PlanContext& context, const std::vector<DeviceId>& gpus, const Network& network,
                        std::vector<GivenUsed>& out) {
  std::map<std::string, GivenUsed> lines;  // by type and limit
  for (const auto gpu : context.topology.unlike(gpus)) {
    const auto budget = power_budget(context, gpu, network);
    const double share = budget ? budget->share({.arithmetic = 1}) : 1;
    const auto limit = power_limit(context.topology, gpu);
    if (share >= 1 && !limit) continue;
    const auto& type = context.topology.device(gpu).type;
    auto used = fmt::format("{:g} W, arithmetic that never waits at {:.0f} % of its full rate",
                            limit.value_or(board_of(context, gpu)), 100 * share);
    if (memory_share(context, gpu) < 1) used += fmt::format(", memory at {:.0f} %", 100 * memory_share(context, gpu));
    lines.try_emplace(
        fmt::format("{} {}", type, limit.value_or(0)),
        GivenUsed{fmt::format("power limit of {}", type), limit ? fmt::format("{:g} W", *limit) : "default",
                  std::move(used), "power by clock as measured on H200"});
  }
  for (auto& line : lines) out.push_back(std::move(line.second));
}

}  // namespace fabricast::models::training
