// SPDX-License-Identifier: Apache-2.0
// How far systems of one kind differ where nobody has calibrated them. Each kind of forecast has a parameter, the
// factor that holds 80 % of the points of systems left out of every fit; a calibration sets those of its logs to 0.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "fabricast/parameters.hpp"
#include "fabricast/scenario.hpp"

namespace fabricast {

/// `model.between_systems.<kind>` of a forecast: nccl_host, nccl_network or mpi; empty where there is no such scatter.
std::string_view between_systems_name(Benchmark benchmark, int num_hosts);

/// What NCCL takes over TCP between hosts rests on the parameter: its hops and a proxy's messages.
bool is_of_sockets_between_hosts(std::string_view parameter);

/// The scatter that a forecast's band has, 0 or more: a time may be 1 + b times as long, or 1 / (1 + b).
double between_systems(Benchmark benchmark, int num_hosts, const ParameterSet& parameters);

/// The same for a forecast whose terms come from these parameters: NCCL over TCP between hosts, which one system
/// taught, scatters as `model.between_systems.nccl_sockets` says; where values of other devices stand for their own
/// (`has_stand_in`), `model.between_systems.stand_in` is added in quadrature.
double between_systems(Benchmark benchmark, int num_hosts, const ParameterSet& parameters,
                       const std::vector<std::string>& of_terms, bool has_stand_in = false);

/// What networks compute, in frameworks that no log taught: `model.between_systems.training_language` of transformers,
/// `.training_images` of others.
double compute_between_systems(bool is_transformer, const ParameterSet& parameters);

/// The same parameters for a system that is known: no scatter between systems.
ParameterSet without_scatter(ParameterSet parameters);

}  // namespace fabricast
