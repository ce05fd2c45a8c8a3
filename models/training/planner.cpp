// SPDX-License-Identifier: Apache-2.0
#include "training/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/parameter_name.hpp"
#include "fabricast/models/training_memory.hpp"
#include "fabricast/models/training_precision.hpp"
#include "fabricast/training.hpp"
#include "nccl/hca_use.hpp"
#include "nccl/ranks.hpp"
#include "paths/contention.hpp"
#include "paths/guest.hpp"
#include "paths/transport.hpp"
#include "training/communicator.hpp"
#include "training/data_parallel.hpp"
#include "training/delays.hpp"
#include "training/key_heads.hpp"
#include "training/power.hpp"
#include "training/roofline.hpp"
#include "training/stragglers.hpp"
#include "training/terms.hpp"
#include "training/transformer.hpp"

namespace fabricast::models::training {

namespace {

constexpr Duration k_some_step{10'000'000'000};

/// One row: its GPUs and how they talk.
struct Size {
  std::vector<DeviceId> gpus;
  std::optional<Communicator> group;  ///< of plain data parallelism
  std::optional<ByHosts> by_hosts;    ///< Horovod's form by hosts, on several of them
  int local_size = 0;                 ///< GPUs of every system; 0 = they differ
  std::optional<SplitGroups> split;   ///< of a split model
};

class TrainingPlanner : public Planner {
 public:
  TrainingPlanner(const PlanContext& context, const Workload& workload, std::map<int, Size> sizes,
                  std::vector<GivenUsed> precision)
      : context_(context),
        workload_(workload),
        spec_(*workload_.training),
        sizes_(std::move(sizes)),
        precision_(std::move(precision)) {
    gpu_ = slowest_gpu(context_, largest().gpus, spec_, is_eager());
    if (is_plain(spec_))
      work_ = spec_.profile ? work_of_profile(*spec_.profile, spec_.batch_per_gpu)
                            : work_of_network(context_, gpu_, spec_, is_eager());
  }

  [[nodiscard]] OperationPlan plan(Bytes count) const override {
    const int gpus = count.value > 0 ? static_cast<int>(count.value) : num_ranks();
    const auto& size = sizes_.at(gpus);
    OperationPlan plan;
    plan.size = gradients(size);
    plan.label = fmt::format("{} GPU{}", gpus, gpus == 1 ? "" : "s");
    plan.algorithm = std::string(to_string(spec_.parallel.data));
    if (size.by_hosts) plan.algorithm += size.by_hosts->is_by_mpi() ? " hierarchical" : " torus";
    plan.watched_stream = 0;
    plan.named_wait = k_straggler;
    plan.num_ranks = gpus;
    plan.num_hosts = hosts_of(size);
    const auto paces = stragglers(size);
    const SideCosts costs{context_.parameters, memory_rate(context_, gpu_)};
    const auto split_at = [&](double rate) { return split(costs, *size.split, paces.front().passes, rate); };
    const auto load_of = [&](const Program& program) { return load_of_program(context_.resources, program); };
    plan.program = size.split ? within_power(power_budget(context_, gpu_, *spec_.network), split_at, load_of)
                              : data_parallel_program(costs, spec_.parallel, work_,
                                                      {.group = size.group ? &*size.group : nullptr,
                                                       .by_hosts = size.by_hosts ? &*size.by_hosts : nullptr,
                                                       .local_size = size.local_size});
    const auto work = longest_work(plan.program);
    add_stragglers(plan.program, paces);
    plan.before = host_terms(work, paces.front().passes);
    return plan;
  }

  [[nodiscard]] std::vector<Figure> figures(const Row& row, Duration wait) const override {
    Duration compute;
    Duration launch;
    Duration slower;
    Duration bubble;
    Duration host;
    const auto before = step_delays(context_, gpu_, spec_, k_some_step);
    for (const auto& term : row.terms) {
      if (term.name == k_forward || term.name == k_backward || term.name == k_optimizer)
        compute += term.time;
      else if (term.name == k_launch)
        launch += term.time;
      else if (term.name == k_straggler)
        slower += term.time;
      else if (term.name == k_bubble)
        bubble += term.time;
      else if (std::ranges::find(before, term.name, &Term::name) != before.end())
        host += term.time;
    }
    const auto exposed = row.time - compute - launch - bubble - slower - host - wait;
    const int gpus = gpus_of(row);
    const auto& p = spec_.parallel;
    const double replicas = static_cast<double>(gpus) / (p.tensor * p.pipeline * p.context);
    const double samples = spec_.batch_per_gpu * p.micro_batches * replicas / row.time.seconds();
    const double rate =
        spec_.network && spec_.network->tokens > 0 ? samples * static_cast<double>(spec_.network->tokens) : samples;
    return {{"gpus", static_cast<double>(gpus)},
            {"step_time_ps", static_cast<double>(row.time.ps)},
            {"compute_time_ps", static_cast<double>(compute.ps)},
            {"exposed_exchange_time_ps", static_cast<double>(exposed.ps)},
            {"bubble_time_ps", static_cast<double>(bubble.ps)},
            {"launch_time_ps", static_cast<double>(launch.ps)},
            {"wait_time_ps", static_cast<double>((slower + host + wait).ps)},
            {"throughput_per_s", rate},
            {unit() + "_per_s", rate},
            {"throughput_per_gpu_per_s", rate / gpus},
            {"scaling_efficiency_share", (compute + launch + host + wait).seconds() / row.time.seconds()}};
  }

  [[nodiscard]] std::vector<Term> waits(Duration time) const override {
    return waits_of_step(context_, workload_, gpu_, time);
  }

  [[nodiscard]] int num_ranks() const override { return sizes_.rbegin()->first; }
  [[nodiscard]] int num_hosts() const override { return hosts_of(largest()); }
  [[nodiscard]] std::vector<std::string> devices() const override {
    return device_names(context_.topology, largest().gpus);
  }
  [[nodiscard]] std::vector<GivenUsed> settings() const override;
  [[nodiscard]] std::vector<std::string> assumptions() const override;
  [[nodiscard]] std::vector<std::string> stand_ins() const override {
    const auto* group = speaker();
    return group == nullptr ? std::vector<std::string>{} : group->planner(Benchmark::all_reduce_perf).stand_ins();
  }

 private:
  /// `arithmetic`: share of the full rate.
  [[nodiscard]] Program split(const SideCosts& costs, const SplitGroups& groups, double slower,
                              double arithmetic) const {
    const Roofline roofline(context_, gpu_, spec_.precision, is_eager() ? Kernels::eager : Kernels::fused, arithmetic);
    if (spec_.part == TrainingPart::layer) return layer_program(roofline, spec_, groups);
    const auto work = transformer_work(roofline, spec_, groups.layout, slower);
    if (spec_.parallel.data == DataParallelism::fsdp) return sharded_program(costs, roofline, spec_, groups, work);
    return split_program(costs, roofline, spec_, groups, work);
  }

  /// PyTorch's own forms of data parallelism launch kernel after kernel unless the step is a graph; models that are
  /// split run in frameworks of fused kernels.
  [[nodiscard]] bool is_eager() const {
    const bool is_pytorch = is_plain(spec_) || spec_.parallel.data == DataParallelism::fsdp;
    return is_pytorch && spec_.part == TrainingPart::step && workload_.launch != LaunchMode::graph;
  }

  /// Whose rules the step follows.
  [[nodiscard]] std::string framework() const {
    if (spec_.parallel.data == DataParallelism::fsdp) return "PyTorch, FSDP";
    if (!is_plain(spec_)) return "Megatron-LM";
    return spec_.parallel.data == DataParallelism::horovod ? "PyTorch, Horovod" : "PyTorch, DDP";
  }
  [[nodiscard]] std::string pace() const {
    if (spec_.profile) return "launches are part of the profile";
    return is_eager() ? "kernels are launched one by one" : "fused kernels or a graph: launches take no time";
  }

  [[nodiscard]] int hosts_of(const Size& size) const {
    std::set<int> hosts;
    for (const auto gpu : size.gpus) hosts.insert(context_.topology.host_of(gpu));
    return static_cast<int>(hosts.size());
  }

  /// What throughput counts. A profile does not say what its samples are.
  [[nodiscard]] std::string unit() const {
    if (!spec_.network) return "samples";
    return spec_.network->tokens > 0 ? "tokens" : spec_.network->sample + "s";
  }

  /// Bytes of gradients that one GPU exchanges in a step; of a layer, of activations.
  [[nodiscard]] Bytes gradients(const Size& size) const {
    if (size.gpus.size() == 1) return {};
    if (!size.split) return work_.gradient_bytes;
    const auto& p = spec_.parallel;
    double dense = 0, experts = 0, whole = 0;
    for (const auto& layer : spec_.network->layers) {
      auto& sum = layer.is_replicated ? whole : layer.experts > 1 ? experts : dense;
      for (const auto elements : layer.tensors) sum += static_cast<double>(elements);
    }
    const double kept = dense / p.tensor + whole + experts / (p.expert * p.expert_tensor.value_or(p.tensor));
    return to_bytes(kept / p.pipeline * element_bytes(p.exchange));
  }

  /// Of all communicators, one whose planner speaks for the step.
  [[nodiscard]] const Communicator* speaker() const {
    const auto& size = largest();
    if (size.group) return &*size.group;
    return size.split ? size.split->speaker() : nullptr;
  }

  [[nodiscard]] bool takes_part(const SlowGpu& slow) const {
    const auto gpu = context_.topology.find_device(slow.gpu);
    return gpu && std::ranges::any_of(sizes_, [&](const auto& one) {
             return std::ranges::find(one.second.gpus, *gpu) != one.second.gpus.end();
           });
  }

  [[nodiscard]] const Size& largest() const { return sizes_.rbegin()->second; }

  [[nodiscard]] static int gpus_of(const Row& row) { return std::max(1, std::atoi(row.label.c_str())); }

  /// What comes on top of `work`, the longest chain of passes. `slower`: how many times as long the slowest GPU
  /// computes, which so waits less for its launching thread.
  [[nodiscard]] std::vector<Term> host_terms(Duration work, double slower) const {
    auto terms = step_delays(context_, gpu_, spec_, work);
    const auto passes = work_.forward + work_.backward;
    const auto launch = std::max(Duration{}, work_.launch - from_seconds((slower - 1) * passes.seconds()));
    if (launch.ps > 0) {
      const auto& one = context_.parameters.at("training.operator_time"_key);
      terms.push_back({k_launch, spec_.parallel.micro_batches * launch, one.name, one.source});
    }
    return terms;
  }

  /// What the compute streams of a step wait for: one per pipeline stage, its GPUs side by side in rank order.
  [[nodiscard]] std::vector<Straggling> stragglers(const Size& size) const {
    const auto streams = size.split ? static_cast<std::size_t>(size.split->layout.pipeline) : std::size_t{1};
    const auto each = size.gpus.size() / streams;
    std::vector<Straggling> out;
    for (std::size_t stream = 0; stream < streams; ++stream) {
      std::vector<std::string> names;
      for (std::size_t g = stream * each; g < (stream + 1) * each; ++g)
        names.push_back(context_.topology.device(size.gpus[g]).name);
      out.push_back(straggling_of(spec_, names, compute_spread(context_.parameters)));
    }
    return out;
  }

  PlanContext context_;
  Workload workload_;
  const TrainingSpec& spec_;
  std::map<int, Size> sizes_;
  std::vector<GivenUsed> precision_;  ///< where it is not what was asked for
  DeviceId gpu_;
  StepWork work_;
};

std::vector<GivenUsed> TrainingPlanner::settings() const {
  auto settings = virtual_settings(context_, largest().gpus);
  const auto& parallel = spec_.parallel;
  settings.push_back({"compute",
                      spec_.profile ? fmt::format("profile of {}", spec_.profile->model) : spec_.network->name,
                      spec_.profile ? "measured times of one GPU" : std::string("roofline"),
                      fmt::format("{}, batch {} per GPU", to_string(spec_.precision), spec_.batch_per_gpu)});
  settings.insert(settings.end(), precision_.begin(), precision_.end());
  if (!spec_.profile) add_power_settings(context_, largest().gpus, *spec_.network, settings);
  if (spec_.part == TrainingPart::step) settings.push_back({"framework", "default", framework(), pace()});
  if (is_plain(spec_) && parallel.data == DataParallelism::ddp)
    settings.push_back({"bucket", parallel.bucket ? to_string(*parallel.bucket) : "auto",
                        parallel.bucket ? to_string(*parallel.bucket) : "1 MiB first, then 25 MiB",
                        parallel.bucket ? "also the first" : "PyTorch's defaults"});
  for (const auto& slow : spec_.slow)
    settings.push_back({"pace of " + slow.gpu, fmt::format("{:g}", slow.rate),
                        fmt::format("{:g} of the others'", slow.rate), "all wait for the slowest"});
  if (spec_.jitter > 0)
    settings.push_back({"jitter of compute", fmt::format("{:g}", spec_.jitter),
                        fmt::format("{:g} of it per step, normal", spec_.jitter), "all wait for the slowest draw"});
  if (const auto* group = speaker())
    for (auto& one : group->planner(Benchmark::all_reduce_perf).settings())
      if (one.setting == nccl::k_gpudirect_between_hosts) settings.push_back(std::move(one));
  if (const auto& by_hosts = largest().by_hosts) {
    const auto between = by_hosts->is_by_mpi() ? fmt::format("MPI ({})", by_hosts->mpi_profile()) : std::string("NCCL");
    settings.push_back({"all-reduce", parallel.hierarchical ? "hierarchical" : "torus",
                        by_hosts->local_size() == 1 ? fmt::format("{} between hosts", between)
                                                    : fmt::format("NCCL in hosts, {} between them", between),
                        by_hosts->local_size() > 0 ? "hosts of equal numbers of GPUs"
                                                   : "hosts differ: one GPU of each exchanges all"});
  }
  return settings;
}

std::vector<std::string> TrainingPlanner::assumptions() const {
  std::vector<std::string> out = spec_.notes;
  if (const auto& apart = compute_spread(context_.parameters); has_spread(spec_) && apart.value > 0 && num_ranks() > 1)
    out.push_back(fmt::format("GPUs of one type compute at paces {:g} % apart (standard deviation, {})",
                              100 * apart.value, apart.name));
  out.emplace_back("input data are there in time");
  if (const auto line = pace_of_types(context_.topology, largest().gpus, gpu_); !line.empty()) out.push_back(line);
  if (auto line = layers_beyond_memory(context_.topology, workload_, context_.parameters); !line.empty())
    out.push_back(std::move(line));
  if (largest().split)
    for (auto& line : split_assumptions(context_, *largest().split, largest().gpus.front()))
      out.push_back(std::move(line));
  for (const auto& slow : spec_.slow) {
    if (!takes_part(slow))
      out.push_back(fmt::format("workload.slow of '{}' changes no time: it takes no part", slow.gpu));
  }
  if (spec_.parallel.hierarchical || spec_.parallel.torus) {
    for (const auto& [gpus, size] : sizes_) {
      if (gpus > 1 && !size.by_hosts)
        out.push_back(fmt::format("Horovod does not split the all-reduce of {} GPUs by hosts: they are on one", gpus));
    }
  }
  if (const auto& by_hosts = largest().by_hosts) {
    for (auto& line : by_hosts->assumptions()) out.push_back(std::move(line));
  }
  if (const auto* group = speaker()) {
    if (workload_.devices.empty()) out.emplace_back(nccl::k_in_host_order);
    for (auto& line : group->planner(Benchmark::all_reduce_perf).assumptions()) out.push_back(std::move(line));
  }
  return out;
}

std::vector<GivenUsed> precision_setting(const Workload& workload, const UsedPrecision& used) {
  if (used.reason.empty()) return {};
  const auto& spec = *workload.training;
  const auto named = !spec.precision_location.file.empty() ? to_string(spec.precision) : "default";
  return {{"precision", std::string(named), std::string(to_string(used.precision)), used.reason}};
}

/// GPUs of every system that takes part; 0 = they differ.
int local_size_of(const PlanContext& context, const std::vector<DeviceId>& gpus) {
  std::map<int, int> counts;
  for (const auto gpu : gpus) ++counts[context.topology.guest_of(gpu)];
  const int first = counts.begin()->second;
  return std::ranges::all_of(counts, [&](const auto& one) { return one.second == first; }) ? first : 0;
}

/// How replicas that are whole talk.
std::optional<Diagnostics> connect(const PlanContext& context, const Workload& workload, Size& size) {
  auto group = Communicator::make(context, workload, size.gpus);
  if (!group) return group.error();
  size.group = std::move(*group);
  size.local_size = local_size_of(context, size.gpus);
  const auto& parallel = workload.training->parallel;
  const bool is_on_one = size.local_size == static_cast<int>(size.gpus.size());
  if (is_on_one || !(parallel.hierarchical || parallel.torus)) return std::nullopt;
  auto by_hosts = ByHosts::make(context, workload, size.gpus);
  if (!by_hosts) return by_hosts.error();
  size.by_hosts = std::move(*by_hosts);
  return std::nullopt;
}

/// A form by hosts that no row can take.
std::optional<Diagnostic> idle_form(const Workload& workload, const std::map<int, Size>& sizes) {
  const auto& parallel = workload.training->parallel;
  if (!parallel.hierarchical && !parallel.torus) return std::nullopt;
  if (std::ranges::any_of(sizes, [](const auto& one) { return one.second.by_hosts.has_value(); })) return std::nullopt;
  return make_error_at(workload.location,
                       fmt::format("'{}' on one host, where Horovod does not split its all-reduce",
                                   parallel.hierarchical ? "hierarchical" : "torus"),
                       "leave it out, or name GPUs of several hosts");
}

}  // namespace

Result<std::unique_ptr<Planner>> make_training_planner(const PlanContext& context, const Workload& given) {
  if (auto faults = step_faults(context, given); !faults.empty()) return tl::unexpected(std::move(faults));
  const auto used = used_precision(context.topology, given, context.parameters);
  const auto workload = as_computed(given, used.precision);
  const auto counts = training_counts(context.topology, workload);
  if (!counts) return tl::unexpected(counts.error());
  std::map<int, Size> sizes;
  for (const int count : *counts) {
    auto asked = workload;
    asked.gpus = count;
    auto gpus = nccl::choose_ranks(context, asked);
    if (!gpus) return tl::unexpected(gpus.error());
    // A profile or a scheduler that does not fit the GPU; how long a step computes does not matter to that.
    if (const auto sharing = vgpu_sharing(context, gpus->front(), k_some_step); !sharing)
      return tl::unexpected(sharing.error());
    Size size;
    size.gpus = std::move(*gpus);
    if (!is_plain(*workload.training)) {
      auto groups = make_groups(context, workload, size.gpus);
      if (!groups) return tl::unexpected(groups.error());
      size.split = std::move(*groups);
    } else if (count > 1) {
      if (auto faults = connect(context, workload, size)) return tl::unexpected(std::move(*faults));
    }
    sizes.emplace(count, std::move(size));
  }
  if (sizes.empty() || sizes.begin()->second.gpus.empty())
    return tl::unexpected(
        Diagnostics{make_error_at(workload.location, "training needs GPUs", "add GPUs to the topology")});
  if (auto faults = slow_faults(context, workload); !faults.empty()) return tl::unexpected(std::move(faults));
  if (auto fault = idle_form(workload, sizes)) return tl::unexpected(Diagnostics{std::move(*fault)});
  return std::make_unique<TrainingPlanner>(context, workload, std::move(sizes), precision_setting(given, used));
}

}  // namespace fabricast::models::training
