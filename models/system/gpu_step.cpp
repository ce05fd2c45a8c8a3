// SPDX-License-Identifier: Apache-2.0
// A step of an application: GPU time, what the hypervisor and sharing add to it, then an all-reduce of `size` bytes.
//
//   time = compute (1 + tax) / share + compute x cpu share x (1 / core speed - 1) + waits + all-reduce(size)
//
// The tax belongs to the way VMs get GPUs (`virtualization.<mode>.compute_tax`). Of a step
// `host.machine_learning_cpu_share` waits for cores: threads of neighbours that share them and overcommitted vCPUs
// lengthen that part.
#include <fmt/format.h>

#include <set>

#include "nccl/planner.hpp"
#include "nccl/ranks.hpp"
#include "paths/contention.hpp"
#include "paths/guest.hpp"
#include "system/planners.hpp"

namespace fabricast::models::system {

namespace {

class GpuStepPlanner : public Planner {
 public:
  GpuStepPlanner(const PlanContext& context, const Workload& workload, DeviceId gpu, std::unique_ptr<Planner> exchange)
      : context_(context), workload_(workload), compute_(workload.compute), gpu_(gpu), exchange_(std::move(exchange)) {}

  [[nodiscard]] OperationPlan plan(Bytes size) const override {
    OperationPlan plan;
    // Gradients are reduced in place: one GPU alone exchanges nothing.
    const bool exchanges = size.value > 0 && num_ranks() > 1;
    if (exchanges) plan = exchange_->plan(size);
    plan.size = size;
    plan.floor = {};
    plan.algorithm = exchanges ? fmt::format("step, all-reduce by {}", plan.algorithm) : "step";
    auto terms = compute_delays(context_, gpu_, compute_);
    terms.insert(terms.begin(), {"compute of the step on bare metal", compute_, "workload.compute", "the scenario"});
    plan.before.insert(plan.before.begin(), terms.begin(), terms.end());
    return plan;
  }
  [[nodiscard]] int num_ranks() const override { return exchange_->num_ranks(); }
  [[nodiscard]] int num_hosts() const override { return exchange_->num_hosts(); }
  /// Steps follow one another: `iterations` of them stand for a GPU that never runs out of work.
  [[nodiscard]] std::vector<Term> waits(Duration time) const override {
    return waits_of_step(context_, workload_, gpu_, time);
  }
  [[nodiscard]] std::vector<std::string> devices() const override { return exchange_->devices(); }
  [[nodiscard]] std::vector<GivenUsed> settings() const override { return virtual_settings(context_, {gpu_}); }
  [[nodiscard]] std::vector<std::string> assumptions() const override {
    auto out = exchange_->assumptions();
    out.emplace_back("compute and exchange do not overlap");
    return out;
  }

 private:
  PlanContext context_;
  Workload workload_;
  Duration compute_;
  DeviceId gpu_;
  std::unique_ptr<Planner> exchange_;
};

/// The GPU that everybody waits for: VMs that were described one by one may hold unlike parts of GPUs.
DeviceId slowest(const PlanContext& context, const std::vector<DeviceId>& gpus, Duration compute) {
  auto worst = gpus.front();
  if (guest_settings(context, worst).vm_name.empty()) return worst;
  Duration most;
  for (const auto gpu : context.topology.unlike(gpus)) {
    const auto added = sum(compute_delays(context, gpu, compute));
    if (added > most) {
      most = added;
      worst = gpu;
    }
  }
  return worst;
}

}  // namespace

Result<std::unique_ptr<Planner>> make_gpu_step_planner(const PlanContext& context, const Workload& workload) {
  if (workload.compute.ps <= 0) {
    return tl::unexpected(Diagnostics{make_error_at(workload.location, "gpu_step needs the GPU time of a step",
                                                    "add e.g. `compute: 20 ms` to the workload")});
  }
  auto exchange = workload;
  exchange.benchmark = Benchmark::all_reduce_perf;
  auto gpus = nccl::choose_ranks(context, exchange);
  if (!gpus) return tl::unexpected(gpus.error());
  if (const auto sharing = vgpu_sharing(context, gpus->front(), workload.compute); !sharing)
    return tl::unexpected(sharing.error());
  auto planner = nccl::make_collective_planner(context, exchange);
  if (!planner) return tl::unexpected(planner.error());
  return std::make_unique<GpuStepPlanner>(context, workload, slowest(context, *gpus, workload.compute),
                                          std::move(*planner));
}

}  // namespace fabricast::models::system
