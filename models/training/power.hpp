// SPDX-License-Identifier: Apache-2.0
// What the power limit of a GPU (its board's own, or `gpu_power_limit` of its host, as `nvidia-smi -pl` sets it) leaves
// of the rate of arithmetic. At the limit a GPU lowers the clock of its multiprocessors, not that of its memory, until
// what a step draws on average fits. With arithmetic at the share s of its full rate
//
//   left (A / s + M + E) = P s^a A / s + Q M,      left = limit - I,  I = `gpu.idle_power` x the board's own limit
//
// A, M: seconds of kernels bound by arithmetic (at full rate) and by memory; E: of exchanges that the GPU waits for,
// which draw nothing here; a = `gpu.power_exponent`. P = p^a x multiprocessors x `gpu.product_power`[architecture], p
// the peak in TFLOP/s of 16 bits per multiprocessor, where the silicon has been measured, else what the board's own
// limit leaves; so too of networks of convolutions, whose efficiencies were taken from steps at the limit. Q =
// `gpu.memory_energy` x bandwidth. Memory falls behind where Q alone is more than is left.
//
// Measured: calibration/data/h200-power-limit. That the products of other architectures draw their board's limit is
// not: where they stay below it a lower limit costs less than this says.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "fabricast/models/planner.hpp"
#include "fabricast/models/program.hpp"
#include "fabricast/training.hpp"

namespace fabricast::models::training {

/// Seconds of a step, or of any part of one.
struct PowerLoad {
  double arithmetic = 0;  ///< at full rate
  double memory = 0;
  double exposed = 0;  ///< exchanges that compute waits for
};

/// Watts of one GPU above what it draws idle.
struct PowerBudget {
  double left = 0;        ///< within its limit
  double arithmetic = 0;  ///< of kernels bound by arithmetic, at full rate
  double memory = 0;      ///< of kernels bound by memory
  double exponent = 1;

  /// Share of the full rate of arithmetic that the limit leaves, in (0, 1].
  [[nodiscard]] double share(const PowerLoad& load) const;
};
/// None where neither a limit is given nor the silicon's power is known.
std::optional<PowerBudget> power_budget(const PlanContext& context, DeviceId gpu, const Network& network);

/// What `make` gives for the share of the full rate that the budget leaves. `load_of` tells work (as if all of it were
/// arithmetic) and exposed time of what was made: what grows with a lower rate is bound by arithmetic.
template <class Make, class LoadOf>
auto within_power(const std::optional<PowerBudget>& budget, const Make& make, const LoadOf& load_of) {
  auto full = make(1.0);
  if (!budget) return full;
  const PowerLoad most = load_of(full);
  const double probe = budget->share(most);
  if (probe >= 1) return full;
  const double grown = load_of(make(probe)).arithmetic - most.arithmetic;
  const double arithmetic = std::min(most.arithmetic, grown / (1 / probe - 1));
  return make(budget->share({arithmetic, most.arithmetic - arithmetic, most.exposed}));
}

/// Passes of a program, and what their streams wait for inside them; optimiser and bubbles are left out.
PowerLoad load_of_program(const Resources& resources, const Program& program);

/// Bytes/s of a GPU's memory under its power limit.
double memory_rate(const PlanContext& context, DeviceId gpu);

/// `gpu_power_limit` of the host that a GPU is in, watts.
std::optional<double> power_limit(const Topology& topology, DeviceId gpu);

/// What steps make of the limits of their GPUs, where those hold anything back.
void add_power_settings(const PlanContext& context, const std::vector<DeviceId>& gpus, const Network& network,
                        std::vector<GivenUsed>& out);

}  // namespace fabricast::models::training
