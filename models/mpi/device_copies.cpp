// SPDX-License-Identifier: Apache-2.0
#include "mpi/device_copies.hpp"

#include "base/parameter_name.hpp"
#include "mpi/transfer.hpp"
#include "paths/guest.hpp"

namespace fabricast::models::mpi {

namespace {

// What the overhead and the rate of staging were fitted to: all-reduces of S bytes that are not in place, three copies
// of S, take the overhead and 2 S / rate.
constexpr double k_fitted_copies = 3;
constexpr double k_fitted_sizes = 2;

/// `bytes` read or written in the memory of the rank's GPU.
Term through_gpu_memory(const PlanContext& context, const EndPoint& end, double bytes, std::string name) {
  const auto& share = context.parameters.at("cuda.device_copy_share"_key);
  const double memory = device_value(context, end.gpu, "memory_bandwidth");
  return {std::move(name), from_seconds(bytes / share.value / memory), share.name, share.source};
}

}  // namespace

void add_device_staging(const PlanContext& context, const EndPoint& end, const DeviceCopies& staged,
                        OperationPlan& plan) {
  const auto& parameters = context.parameters;
  const auto& processor = processor_of(context.topology, end.memory);
  const auto& start = parameters.first_of(
      {named<"mpi.collective.staging_overhead.{}">(processor), "mpi.collective.staging_overhead"_key});
  plan.before.push_back(
      parameter_term(parameters, "CUDA copies to and from host buffers", start.name, staged.copies / k_fitted_copies));
  const auto& rate = of_processor(context, end.memory, "pageable_bandwidth", "cuda.pageable_bandwidth"_key);
  plan.before.push_back({"pageable copies of the whole buffer, out and in",
                         from_seconds(staged.bytes / k_fitted_copies * k_fitted_sizes / rate.value), rate.name,
                         rate.source});
}

void add_own_copy(const PlanContext& context, const EndPoint& end, Bytes size, OperationPlan& plan) {
  plan.before.push_back(parameter_term(context.parameters, "own part copied by the GPU", "cuda.copy_overhead"_key));
  plan.before.push_back(
      through_gpu_memory(context, end, 2 * static_cast<double>(size.value), "own part through the GPU's memory"));
}

std::vector<Term> combining_kernel(const PlanContext& context, const EndPoint& end, double bytes) {
  return {parameter_term(context.parameters, "a kernel to combine", "cuda.copy_overhead"_key),
          through_gpu_memory(context, end, 3 * bytes, "combining in the GPU's memory")};
}

}  // namespace fabricast::models::mpi
