// SPDX-License-Identifier: Apache-2.0
#include "fabricast/scatter.hpp"

#include <algorithm>
#include <cmath>
#include <string>

namespace fabricast {

namespace {

constexpr std::string_view k_nccl_host = "model.between_systems.nccl_host";
constexpr std::string_view k_nccl_network = "model.between_systems.nccl_network";
constexpr std::string_view k_nccl_sockets = "model.between_systems.nccl_sockets";
constexpr std::string_view k_stand_in = "model.between_systems.stand_in";
constexpr std::string_view k_training_host = "model.between_systems.training_host";
constexpr std::string_view k_training_network = "model.between_systems.training_network";
constexpr std::string_view k_training_language = "model.between_systems.training_language";
constexpr std::string_view k_training_images = "model.between_systems.training_images";
constexpr std::string_view k_mpi = "model.between_systems.mpi";

}  // namespace

bool is_of_sockets_between_hosts(std::string_view parameter) {
  return parameter.ends_with(".socket") || parameter == "nccl.socket_message_time";
}

std::string_view between_systems_name(Benchmark benchmark, int num_hosts) {
  switch (family_of(benchmark)) {
    case BenchmarkFamily::osu:
    case BenchmarkFamily::perftest:
      return k_mpi;
    case BenchmarkFamily::nccl_tests:
      return num_hosts > 1 ? k_nccl_network : k_nccl_host;
    case BenchmarkFamily::training:
      return num_hosts > 1 ? k_training_network : k_training_host;
    case BenchmarkFamily::system:
    case BenchmarkFamily::sharing:
    case BenchmarkFamily::traffic:
      return {};
  }
  return {};
}

double between_systems(Benchmark benchmark, int num_hosts, const ParameterSet& parameters) {
  const auto name = between_systems_name(benchmark, num_hosts);
  const auto* parameter = name.empty() ? nullptr : parameters.find(std::string(name));
  // Exchanges of a step scatter as NCCL does, until a calibration has seen some of this system.
  if (parameter == nullptr && family_of(benchmark) == BenchmarkFamily::training)
    return between_systems(Benchmark::all_reduce_perf, num_hosts, parameters);
  return parameter == nullptr ? 0 : parameter->value;
}

double between_systems(Benchmark benchmark, int num_hosts, const ParameterSet& parameters,
                       const std::vector<std::string>& of_terms, bool has_stand_in) {
  double usual = between_systems(benchmark, num_hosts, parameters);
  const auto* stand_in = parameters.find(std::string(k_stand_in));
  // A strange system and a strange device: two independent reasons. A calibration that knows the system sets the usual
  // one to 0.
  if (usual > 0 && has_stand_in && stand_in != nullptr) usual = std::hypot(usual, stand_in->value);
  const auto* sockets = parameters.find(std::string(k_nccl_sockets));
  const auto name = between_systems_name(benchmark, num_hosts);
  const bool is_nccl = name == k_nccl_network || name == k_training_network;
  if (usual == 0 || sockets == nullptr || !is_nccl) return usual;
  return std::ranges::any_of(of_terms, is_of_sockets_between_hosts) ? std::max(usual, sockets->value) : usual;
}

double compute_between_systems(bool is_transformer, const ParameterSet& parameters) {
  return parameters.value_or(std::string(is_transformer ? k_training_language : k_training_images), 0);
}

ParameterSet without_scatter(ParameterSet parameters) {
  for (const auto name : {k_nccl_host, k_nccl_network, k_training_host, k_training_network, k_training_language,
                          k_training_images, k_mpi})
    parameters.set({std::string(name), 0, Dimension::number, 0, 0, Confidence::fitted, "a known system", {}});
  return parameters;
}

}  // namespace fabricast
