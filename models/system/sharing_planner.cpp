// SPDX-License-Identifier: Apache-2.0
#include "system/sharing_planner.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"
#include "base/parameter_name.hpp"
#include "fabricast/models/virtualization.hpp"
#include "paths/contention.hpp"
#include "paths/guest.hpp"
#include "paths/transport.hpp"
#include "system/device_planner.hpp"

namespace fabricast::models {

std::string assumed_line(const ParameterSet& parameters, const std::string& name) {
  const auto& p = parameters.at(name);
  const auto shown = [&](double value) {
    return p.dimension == Dimension::time ? to_string(from_seconds(value)) : fmt::format("{:g}", value);
  };
  return fmt::format("nobody has published {}: {} assumed, {} to {} possible", name, shown(p.value), shown(p.low),
                     shown(p.high));
}

namespace {

class GpuSharingPlanner : public DevicePlanner {
 public:
  GpuSharingPlanner(const PlanContext& context, const Workload& workload, DeviceId gpu, TimeSlicing slicing)
      : DevicePlanner(context, workload, {gpu}),
        slicing_(slicing),
        profile_(profile_of(context, *workload.sharing, gpu)),
        clients_(clients_of(*workload.sharing)) {
    if (is_mig()) {
      run_mig();
    } else {
      shares_ = share_gpu(slicing_, clients_);
    }
  }

  [[nodiscard]] int num_ranks() const override { return static_cast<int>(clients_.size()); }

  /// The row of client number `size`, from 1.
  [[nodiscard]] OperationPlan plan(Bytes size) const override {
    const auto index = static_cast<std::size_t>(size.value - 1);
    FABRICAST_ASSERT(index < clients_.size(), "client {} of {}", size.value, clients_.size());
    const auto& one = shares_.clients[index];
    OperationPlan plan;
    plan.size = size;
    plan.label = one.name;
    plan.algorithm = is_mig() ? "mig" : std::string(to_string(slicing_.policy));
    plan.protocol = "none";
    plan.before = terms(index);
    plan.figures = {{"kernel_ps", static_cast<double>(clients_[index].kernel.ps)},
                    {"gpu_share", one.share},
                    {"slot_share", one.slot_share},
                    {"median_wait_ps", static_cast<double>(one.median_wait.ps)},
                    {"worst_wait_ps", static_cast<double>(one.worst_wait.ps)},
                    {"switches", one.switches_per_operation}};
    return plan;
  }

  [[nodiscard]] std::vector<GivenUsed> settings() const override {
    const auto& asked = *workload_.sharing;
    std::vector<GivenUsed> out;
    const auto register_value = asked.rm_pvmrl ? fmt::format("RmPVMRL {:#x}", *asked.rm_pvmrl) : std::string();
    if (profile_) {
      out.push_back({"profile", asked.profile, profile_->name,
                     fmt::format("{:g} GB, at most {} per GPU", profile_->framebuffer_gb, profile_->max_instances)});
    }
    if (is_mig()) return out;
    out.push_back({"policy", register_value.empty() ? std::string(to_string(asked.policy)) : register_value,
                   std::string(to_string(slicing_.policy)),
                   slicing_.policy == SharePolicy::fixed_share ? fmt::format("{} slots", slicing_.max_clients) : ""});
    out.push_back({"slice",
                   asked.slice              ? to_string(*asked.slice)
                   : register_value.empty() ? "default"
                                            : register_value,
                   to_string(slicing_.slice),
                   slicing_.policy == SharePolicy::best_effort ? "the hardware's" : "the vGPU scheduler's"});
    out.push_back({"switch_time", asked.switch_time ? to_string(*asked.switch_time) : "default",
                   to_string(slicing_.switch_time), ""});
    out.push_back({"time of the GPU", "",
                   fmt::format("{:.1f} % kernels, {:.1f} % context switches, {:.1f} % unused", 100 * shares_.busy,
                               100 * shares_.switching, 100 * shares_.idle),
                   ""});
    return out;
  }

  [[nodiscard]] std::vector<std::string> assumptions() const override {
    if (is_mig()) {
      return {"kernels are bound by the multiprocessors of their MIG instance",
              "MIG instances do not disturb one another"};
    }
    std::vector<std::string> out{"kernels can be stopped anywhere and fit together into the GPU's memory"};
    const auto type = context_.topology.device(devices_[0]).type;
    if (!workload_.sharing->switch_time && type.rfind("h200", 0) != 0)
      out.push_back(fmt::format("a context switch of {} costs what was measured on an H200", type));
    return out;
  }

 private:
  [[nodiscard]] bool is_mig() const { return profile_ && profile_->is_mig; }

  /// Instances of their own: no waiting, kernels longer by the part of the multiprocessors.
  void run_mig() {
    for (const auto& client : clients_) {
      GpuClientShare one;
      one.name = client.name;
      const auto kernel = from_seconds(client.kernel.seconds() / profile_->compute_fraction);
      one.period = kernel + client.pause;
      one.share = profile_->compute_fraction * kernel.seconds() / one.period.seconds();
      one.slot_share = profile_->compute_fraction;
      shares_.clients.push_back(std::move(one));
    }
  }

  [[nodiscard]] std::vector<Term> terms(std::size_t index) const {
    const auto& client = clients_[index];
    const auto& one = shares_.clients[index];
    std::vector<Term> out{{"kernel", client.kernel, "workload.sharing", "scenario"}};
    if (is_mig()) {
      out.push_back({"smaller MIG instance", one.period - client.kernel - client.pause,
                     named<"mig.{}.sms">(profile_->name), profile_->source});
    } else {
      const auto& cost = context_.parameters.at("gpu.context_switch_time"_key);
      const auto wait = one.service_time - client.kernel;
      const auto switching = std::min(wait, from_seconds(one.switches_per_operation * slicing_.switch_time.seconds()));
      out.push_back({"context switches towards the client", switching, cost.name, cost.source});
      out.push_back({"turns of others, used or not", wait - switching, "gpu.time_slice"_key,
                     context_.parameters.at("gpu.time_slice"_key).source});
    }
    const auto rest = one.period - sum(out);
    if (rest.ps != 0) out.push_back({"pause on the host", rest, "workload.sharing", "scenario"});
    return out;
  }

  TimeSlicing slicing_;
  std::optional<GpuProfile> profile_;
  std::vector<GpuClient> clients_;
  GpuShares shares_;
};

class MigrationPlanner : public DevicePlanner {
 public:
  using DevicePlanner::DevicePlanner;
  [[nodiscard]] int num_hosts() const override { return 2; }

  /// `size` is the framebuffer of the VM's vGPUs.
  [[nodiscard]] OperationPlan plan(Bytes size) const override {
    const auto& asked = *workload_.migration;
    const auto one = migration_estimate(context_.parameters, asked.release,
                                        {size, asked.memory, asked.has_pvrdma, asked.registered}, asked.link);
    OperationPlan plan;
    plan.size = size;
    plan.algorithm = asked.release;
    plan.protocol = one.exceeds_limit ? "fails" : "possible";
    plan.before = one.terms;
    plan.low = one.low;
    plan.high = one.high;
    plan.figures = {{"total_ps", static_cast<double>(one.total.ps)},
                    {"limit_ps", static_cast<double>(one.limit.ps)},
                    {"fails", one.exceeds_limit ? 1.0 : 0.0}};
    return plan;
  }

  [[nodiscard]] std::vector<GivenUsed> settings() const override {
    const auto& asked = *workload_.migration;
    return {{"release", asked.release, asked.release, "published stun table"},
            {"link", to_string(asked.link), to_string(asked.link), ""},
            {"memory", to_string(asked.memory), to_string(asked.memory), "copied while the VM runs"}};
  }

  [[nodiscard]] std::vector<std::string> assumptions() const override {
    std::vector<std::string> out{"the VM changes little memory while it is copied",
                                 "unified memory, debuggers and profilers are off: they block migration"};
    for (const auto name : {"migration.pvrdma.fixed_time"_key, "migration.pvrdma.registration_time_per_gb"_key}) {
      if (workload_.migration->has_pvrdma) out.push_back(assumed_line(context_.parameters, name));
    }
    std::sort(out.begin(), out.end());
    return out;
  }
};

Result<DeviceId> the_gpu(const PlanContext& context, const Workload& workload) {
  const auto all = context.topology.devices(DeviceKind::gpu);
  if (workload.devices.empty()) {
    if (all.empty())
      return tl::unexpected(
          Diagnostics{make_error_at(workload.location, fmt::format("topology '{}' has no GPU", context.topology.name()),
                                    "gpu_sharing needs one")});
    return all.front();
  }
  if (workload.devices.size() > 1)
    return tl::unexpected(
        Diagnostics{make_error_at(workload.location, fmt::format("{} devices of gpu_sharing", workload.devices.size()),
                                  "name the one GPU that the clients share")});
  const auto found = context.topology.find_device(workload.devices.front());
  if (!found || context.topology.kind(*found) != DeviceKind::gpu) {
    return tl::unexpected(Diagnostics{make_error_at(
        workload.location,
        fmt::format("'{}' is not a GPU of topology '{}'", workload.devices.front(), context.topology.name()),
        "GPUs are called host.gpuN")});
  }
  return *found;
}

}  // namespace

Result<std::unique_ptr<Planner>> make_sharing_planner(const PlanContext& context, const Workload& workload) {
  if (workload.benchmark == Benchmark::vgpu_migration && !workload.migration->vm.empty())
    return make_vm_migration_planner(context, workload);
  if (workload.benchmark == Benchmark::vgpu_migration) {
    if (auto faults = migration_faults(context, workload); !faults.empty()) return tl::unexpected(faults);
    if (!workload.devices.empty())
      return tl::unexpected(
          Diagnostics{make_error_at(workload.location, "vgpu_migration takes no devices", "remove `devices`")});
    return std::make_unique<MigrationPlanner>(context, workload, std::vector<DeviceId>{});
  }
  if (workload.benchmark == Benchmark::remote_gpu) return make_remote_gpu_planner(context, workload);
  const auto gpu = the_gpu(context, workload);
  if (!gpu) return tl::unexpected(gpu.error());
  const auto slicing = time_slicing_of(context, *workload.sharing, *gpu);
  if (!slicing) return tl::unexpected(slicing.error());
  return std::make_unique<GpuSharingPlanner>(context, workload, *gpu, *slicing);
}

}  // namespace fabricast::models
