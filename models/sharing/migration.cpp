// SPDX-License-Identifier: Apache-2.0
// Stun of a live migration: the VM stands still while the framebuffer of its vGPUs is read out, sent and written back.
//
//   stun = fixed + gpu_memory x max(time_per_gpu_gb, 1 / link) [+ memory x time_per_vm_gb]
//
// Fixed and per-GB times are fits to the published tables of each release (docs/MODELS.md). GB are 2^30 bytes here, as
// profile names count them. A PVRDMA adapter adds a fixed time, and the registration of the VM's RDMA memory. The VM's
// own memory is copied before while it runs, and counts only in `total`, except in the published table of worst cases.
#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"
#include "base/parameter_name.hpp"
#include "fabricast/models/virtualization.hpp"

namespace fabricast::models {

namespace {

constexpr double k_gib = 0x1.0p30;

/// Adds `times` x a time parameter to the estimate and to the ends of its interval.
void add(MigrationEstimate& estimate, const Parameter& parameter, double times, std::string name) {
  if (times <= 0) return;
  const Term term{std::move(name), from_seconds(parameter.value * times), parameter.name, parameter.source};
  estimate.stun += term.time;
  estimate.low += from_seconds(parameter.low * times);
  estimate.high += from_seconds(parameter.high * times);
  estimate.terms.push_back(term);
}

}  // namespace

const std::vector<std::string>& migration_releases() {
  static const std::vector<std::string> releases{"esxi-6.7u1", "esxi-6.7u3", "esxi-7.0", "worst-case"};
  return releases;
}

MigrationEstimate migration_estimate(const ParameterSet& parameters, const std::string& release, const MigrationVm& vm,
                                     Bandwidth link) {
  FABRICAST_ASSERT(
      std::find(migration_releases().begin(), migration_releases().end(), release) != migration_releases().end(),
      "no migration table of '{}'", release);
  FABRICAST_ASSERT(link.bytes_per_s > 0, "migration over a link of {} B/s", link.bytes_per_s);
  MigrationEstimate out;
  const double gpu_gb = static_cast<double>(vm.gpu_memory.value) / k_gib;
  const double memory_gb = static_cast<double>(vm.memory.value) / k_gib;
  if (gpu_gb > 0) {
    add(out, parameters.at(named<"migration.{}.fixed_time">(release)), 1, "switch to the other host");
    const auto& per_gb = parameters.at(named<"migration.{}.time_per_gpu_gb">(release));
    add(out, per_gb, gpu_gb, fmt::format("framebuffer of {:g} GB", gpu_gb));
    const double on_link = gpu_gb * (k_gib / link.bytes_per_s - per_gb.value);
    if (on_link > 0) {
      const auto wait = from_seconds(on_link);
      out.terms.push_back({"waiting for the migration network", wait, "scenario", "its rate is below the copy's"});
      out.stun += wait;
      out.low += wait;
      out.high += wait;
    }
    if (const auto* per_vm_gb = parameters.find(named<"migration.{}.time_per_vm_gb">(release)))
      add(out, *per_vm_gb, memory_gb, fmt::format("memory of {:g} GB", memory_gb));
  } else {
    add(out, parameters.at("migration.without_gpu.fixed_time"_key), 1, "switch to the other host");
  }
  if (vm.has_pvrdma)
    add(out, parameters.at("migration.pvrdma.fixed_time"_key), 1, "RDMA objects made anew on the other host");
  const double registered_gb = vm.has_pvrdma ? static_cast<double>(vm.registered.value) / k_gib : 0;
  add(out, parameters.at("migration.pvrdma.registration_time_per_gb"_key), registered_gb,
      fmt::format("{:g} GB registered anew for RDMA", registered_gb));
  out.total = out.stun + transfer_time(vm.memory, link);
  out.limit = parameters["migration.limit"_key];
  out.exceeds_limit = out.stun > out.limit;
  return out;
}

}  // namespace fabricast::models
