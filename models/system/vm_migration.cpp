// SPDX-License-Identifier: Apache-2.0
// vMotion of a VM of the topology, beside whatever else is on the network.
//
//   copied before the switch-over = memory x (1 + d + d^2 + ...) = memory / (1 - d),   d = dirty rate / link, d < 1
//   then the VM stands still: what is dirty of the last round, its vGPUs' framebuffer, and the fixed times of the stun
//
// Both copies are flows from the VM's machine to the other: they share adapters and links with the traffic of others.
// With d >= 1 copying never ends and the hypervisor stuns the VM for all of it; that is refused. Rounds end when the
// rest takes half a second (vSphere's aim for the switch-over).
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fabricast/models/virtualization.hpp"
#include "fabricast/vgpu_mix.hpp"
#include "fabricast/vm_operations.hpp"
#include "paths/guest.hpp"
#include "paths/transport.hpp"
#include "system/sharing_planner.hpp"

namespace fabricast::models {

namespace {

constexpr double k_last_round_s = 0.5;

struct Move {
  int vm = 0;  ///< host number of the VM
  Route route;
  std::string to;
};

class VmMigrationPlanner : public Planner {
 public:
  VmMigrationPlanner(const PlanContext& context, const Workload& workload, Move move)
      : context_(context), workload_(workload), move_(std::move(move)) {}

  [[nodiscard]] OperationPlan plan(Bytes size) const override {
    const auto& asked = *workload_.migration;
    const auto stun = migration_estimate(context_.parameters, asked.release,
                                         {size, asked.memory, asked.has_pvrdma, asked.registered}, asked.link);
    const double dirty = asked.dirty_rate.bytes_per_s / asked.link.bytes_per_s;
    const double rest =
        std::min(dirty * static_cast<double>(asked.memory.value), k_last_round_s * asked.link.bytes_per_s);
    const double copied = static_cast<double>(asked.memory.value) / (1 - dirty) - rest;
    OperationPlan plan;
    plan.size = size;
    plan.algorithm = asked.release;
    plan.protocol = stun.exceeds_limit ? "fails" : "possible";
    const auto before = plan.program.then(copy("memory while the VM runs", copied));
    (void)before;
    const auto gpu = static_cast<double>(size.value);
    plan.program.then(copy("rest of the memory and framebuffer, VM stunned", rest + gpu));
    Node fixed;
    fixed.kind = NodeKind::delay;
    fixed.label = "stun beside the copies";
    fixed.fixed = beside_copies(stun, gpu);
    plan.program.then(std::move(fixed));
    plan.figures = {{"stun_ps", static_cast<double>(stun.stun.ps) + 1e12 * rest / asked.link.bytes_per_s},
                    {"copied_bytes", copied + rest + gpu},
                    {"limit_ps", static_cast<double>(stun.limit.ps)},
                    {"fails", stun.exceeds_limit ? 1.0 : 0.0}};
    return plan;
  }
  [[nodiscard]] int num_ranks() const override { return 1; }
  [[nodiscard]] int num_hosts() const override { return 2; }
  [[nodiscard]] std::vector<std::string> devices() const override { return {context_.topology.host_name(move_.vm)}; }
  [[nodiscard]] std::vector<GivenUsed> settings() const override {
    const auto& asked = *workload_.migration;
    return {
        {"migration", asked.vm, fmt::format("to {}", move_.to), asked.release},
        {"link", to_string(asked.link), to_string(asked.link), "shared with other traffic of the adapters"},
        {"dirty rate", to_string(asked.dirty_rate), to_string(asked.dirty_rate), "memory written while it is copied"}};
  }
  [[nodiscard]] std::vector<std::string> assumptions() const override {
    std::vector<std::string> out{"memory is dirtied evenly: each round of copying is shorter by dirty rate over link",
                                 "the migration network has a port group on the first adapter of both machines"};
    const auto& told = workload_.migration->release;
    const auto table = release_from(told.substr(told.find('-') + 1));
    const auto& version = context_.topology.virtualization(move_.vm).version;
    if (table && (table->major != version.major || table->minor != version.minor))
      out.push_back(
          fmt::format("stun times of {} stand for ESXi {}: none are published for it", told, to_string(version)));
    return out;
  }

 private:
  [[nodiscard]] Node copy(const char* label, double bytes) const {
    Node node;
    node.label = label;
    Flow flow;
    flow.bytes = std::max(1.0, bytes);
    CrossingCounter counter;
    for (const auto& crossing : move_.route.crossings) counter.add(crossing.resource, crossing.times);
    flow.crossings = counter.take();
    flow.rate_cap = workload_.migration->link.bytes_per_s;
    flow.cap_name = "migration network";
    flow.cap_parameter = "migration.link";
    flow.legs = merged_legs(move_.route.legs);
    node.flows.push_back(std::move(flow));
    return node;
  }

  /// Terms of the stun less what the flow of the framebuffer takes at the rate of the link.
  [[nodiscard]] std::vector<Term> beside_copies(const MigrationEstimate& stun, double gpu_bytes) const {
    auto left = from_seconds(gpu_bytes / workload_.migration->link.bytes_per_s);
    std::vector<Term> out;
    for (auto term : stun.terms) {
      const bool is_copy = term.name.starts_with("framebuffer") || term.name.starts_with("waiting for");
      if (is_copy) {
        const auto cut = std::min(left, term.time);
        term.time = term.time - cut;
        left = left - cut;
      }
      if (term.time.ps > 0) out.push_back(std::move(term));
    }
    return out;
  }

  PlanContext context_;
  Workload workload_;
  Move move_;
};

Diagnostics fault(const Workload& workload, std::string message, std::string hint) {
  return {make_error_at(workload.migration->location, std::move(message), std::move(hint))};
}

HeldModes modes_of(const PlanContext& context, int host) {
  HeldModes held;
  for (const auto gpu : context.topology.devices(DeviceKind::gpu, host)) held.gpus.push_back(gpu_mode_of(context, gpu));
  for (const auto hca : context.topology.devices(DeviceKind::hca, host)) held.nics.push_back(nic_mode_of(context, hca));
  return held;
}

/// First host of the machine of that name.
std::optional<int> machine_called(const Topology& topology, const std::string& name) {
  for (int host = 0; host < topology.num_hosts(); ++host)
    if (topology.machine_name(host) == name) return host;
  return std::nullopt;
}

/// An adapter of the machine with a cable, whoever holds it.
std::optional<DeviceId> port_of(const Topology& topology, int host) {
  for (const auto& device : topology.host_spec(host).devices) {
    if (device.kind != DeviceKind::hca) continue;
    const auto hca = topology.find_device(topology.host_name(host) + "." + device.name);
    if (hca && !topology.uplinks(*hca).empty()) return topology.hardware(*hca);
  }
  return std::nullopt;
}

/// What the VM's vGPUs hold at most, in GB; without limit where a profile is not known.
double framebuffers_gb(const PlanContext& context, int vm) {
  double sum = 0;
  for (const auto gpu : context.topology.devices(DeviceKind::gpu, vm)) {
    const auto type = context.topology.device(gpu).type;
    const auto& name = context.topology.virtualization(vm).profile_of(short_name(context, gpu));
    const auto profile = find_gpu_profile(profile_family(type, context.parameters), name, context.parameters);
    const double whole = context.parameters.number(type + ".memory") / 0x1.0p30;
    sum += name.empty() ? whole : (profile ? profile->framebuffer_gb : std::numeric_limits<double>::infinity());
  }
  return sum;
}

/// What VMs hold of the GPUs of a machine: profile by profile, "" for all of one.
using HeldParts = std::map<int, std::vector<std::string>>;

/// The card in the machine: several parts of one are devices of their own in the VM that holds them.
DeviceId card_of(const PlanContext& context, DeviceId gpu) {
  const auto& topology = context.topology;
  const int host = topology.host_of(gpu);
  const auto& devices = topology.host_spec(host).devices;
  const auto spec = std::ranges::find(devices, short_name(context, gpu), &DeviceSpec::name);
  if (spec == devices.end() || spec->card.empty()) return topology.hardware(gpu);
  const auto card = topology.find_device(topology.host_name(host) + "." + spec->card);
  return topology.hardware(card.value_or(gpu));
}

HeldParts held_on(const PlanContext& context, int machine) {
  const auto& topology = context.topology;
  HeldParts held;
  for (int host = 0; host < topology.num_hosts(); ++host) {
    const auto& guest = topology.virtualization(host);
    if (topology.machine_of(host) != machine || guest.vm_name.empty()) continue;
    for (const auto gpu : topology.devices(DeviceKind::gpu, host))
      held[card_of(context, gpu).value].push_back(guest.profile_of(short_name(context, gpu)));
  }
  return held;
}

/// A vGPU or instance of the VM that needs a place.
struct MovedPart {
  std::string type, profile;
  bool operator==(const MovedPart&) const = default;
};

/// Looks for cards of the destination that take all parts of the VM, by the rules that `check` has for a card.
class PlaceSearch {
 public:
  PlaceSearch(const PlanContext& context, int to) : context_(context), to_(to) {
    const auto& topology = context.topology;
    held_ = held_on(context, topology.machine_of(to));
    for (const auto& spec : topology.host_spec(to).devices) {
      const auto card = topology.find_device(topology.host_name(to) + "." + spec.name);
      if (spec.kind == DeviceKind::gpu && spec.card.empty() && card)
        cards_.emplace_back(topology.hardware(*card).value, spec.type);
    }
  }

  /// The first of the parts that stays without place however those before it are dealt out; nothing when all have one.
  std::optional<std::size_t> homeless(const std::vector<MovedPart>& parts) {
    deepest_ = 0;
    return deal(parts, 0) ? std::nullopt : std::optional(deepest_);
  }

 private:
  /// Equal parts go to cards in order, and of cards that hold the same the first stands for all.
  bool deal(const std::vector<MovedPart>& parts, std::size_t next, std::size_t first_card = 0) {
    if (next == parts.size()) return true;
    deepest_ = std::max(deepest_, next);
    std::set<std::vector<std::string>> tried;
    for (std::size_t at = first_card; at < cards_.size(); ++at) {
      const auto& [card, type] = cards_[at];
      if (type != parts[next].type || !tried.insert(held_[card]).second) continue;
      const bool is_equal = next + 1 < parts.size() && parts[next + 1] == parts[next];
      held_[card].push_back(parts[next].profile);
      const bool is_dealt = is_legal(type, held_[card]) && deal(parts, next + 1, is_equal ? at : 0);
      held_[card].pop_back();
      if (is_dealt) return true;
    }
    return false;
  }

  [[nodiscard]] bool is_legal(const std::string& type, const std::vector<std::string>& names) const {
    if (names.size() == 1) return true;
    std::vector<GpuProfile> parts;
    for (const auto& name : names) {
      if (name.empty()) return false;
      const auto found = find_gpu_profile(profile_family(type, context_.parameters), name, context_.parameters);
      if (!found) return true;
      parts.push_back(*found);
    }
    const auto& host = context_.topology.virtualization(to_);
    const double generation = context_.parameters.value_or(type, "compute_capability", 0);
    const CardRules rules{unlike_sizes_bar(host, generation, context_.parameters) == nullptr,
                          unlike_series_bar(host, context_.parameters) == nullptr,
                          host.scheduler == SharePolicy::fixed_share};
    const double memory_gb = context_.parameters.number(type + ".memory") / 0x1.0p30;
    return card_faults(parts, memory_gb, rules, context_.parameters).empty();
  }

  const PlanContext& context_;
  int to_;
  HeldParts held_;
  std::vector<std::pair<int, std::string>> cards_;
  std::size_t deepest_ = 0;
};

/// The first GPU of the VM, or part of one, for which no card of the destination has a place.
std::optional<std::string> gpu_without_place(const PlanContext& context, int vm, int to) {
  const auto& topology = context.topology;
  std::vector<MovedPart> parts;
  for (const auto gpu : topology.devices(DeviceKind::gpu, vm))
    parts.push_back({topology.device(gpu).type, topology.virtualization(vm).profile_of(short_name(context, gpu))});
  const auto homeless = PlaceSearch(context, to).homeless(parts);
  if (!homeless) return std::nullopt;
  return parts[*homeless].profile.empty() ? parts[*homeless].type : parts[*homeless].profile;
}

/// Stun tables are ESXi's; the row's framebuffer must be in the VM's vGPUs.
Diagnostics table_faults(const PlanContext& context, const Workload& workload, int vm) {
  const auto& guest = context.topology.virtualization(vm);
  if (guest.hypervisor != Hypervisor::esxi)
    return fault(workload,
                 fmt::format("stun tables are known for ESXi, VM '{}' runs on {}", workload.migration->vm,
                             to_string(guest.hypervisor)),
                 "set `hypervisor: esxi`");
  const double most = framebuffers_gb(context, vm);
  for (const auto size : workload.sizes) {
    if (static_cast<double>(size.value) <= 1.01 * most * 0x1.0p30) continue;
    return fault(workload,
                 fmt::format("{} of framebuffer to move, the vGPUs of VM '{}' have {:g} GB", to_string(size),
                             workload.migration->vm, most),
                 "lower `sizes`, or take a larger profile");
  }
  return {};
}

/// What both hosts must have alike: the hypervisor, and for vGPUs the host driver and ECC.
Diagnostics unlike_hosts(const PlanContext& context, const Workload& workload, int vm, int to) {
  const auto& asked = *workload.migration;
  const auto& guest = context.topology.virtualization(vm);
  const auto& other = context.topology.virtualization(to);
  if (!other.is_virtual())
    return fault(
        workload,
        fmt::format("'{}' runs no hypervisor, VM '{}' needs {}", asked.to, asked.vm, to_string(guest.hypervisor)),
        "name a machine with `virtualization`");
  if (other.hypervisor != guest.hypervisor)
    return fault(workload,
                 fmt::format("'{}' runs {}, VM '{}' runs on {}", asked.to, to_string(other.hypervisor), asked.vm,
                             to_string(guest.hypervisor)),
                 "a VM moves between hosts of one hypervisor");
  const bool has_gpu = !context.topology.devices(DeviceKind::gpu, vm).empty();
  if (has_gpu && guest.vgpu_release && other.vgpu_release && *guest.vgpu_release != *other.vgpu_release)
    return fault(workload,
                 fmt::format("'{}' has vGPU {}, the host of VM '{}' vGPU {}", asked.to, to_string(*other.vgpu_release),
                             asked.vm, to_string(*guest.vgpu_release)),
                 "install one vGPU release on both (NVIDIA vGPU documentation, migration)");
  if (has_gpu && guest.has_ecc != other.has_ecc)
    return fault(workload,
                 fmt::format("'{}' has ECC {}, the host of VM '{}' {}", asked.to, other.has_ecc ? "on" : "off",
                             asked.vm, guest.has_ecc ? "on" : "off"),
                 "switch it alike on both (NVIDIA vGPU documentation, migration)");
  return {};
}

Diagnostics refusal(const PlanContext& context, const Workload& workload, int vm, int to) {
  const auto& asked = *workload.migration;
  const auto& topology = context.topology;
  const auto& guest = topology.virtualization(vm);
  const auto gate = operation_gate(guest, modes_of(context, vm), VmOperation::migration, context.parameters);
  if (!gate.is_open && !gate.is_inferred)
    return fault(workload, fmt::format("VM '{}' cannot migrate: {}", asked.vm, gate.reason),
                 "hand its GPUs over as vgpu and its adapters by pvrdma or vmxnet3");
  if (topology.machine_of(vm) == topology.machine_of(to))
    return fault(workload, fmt::format("VM '{}' is on '{}' already", asked.vm, asked.to), "name another machine");
  if (auto faults = unlike_hosts(context, workload, vm, to); !faults.empty()) return faults;
  for (const auto gpu : topology.devices(DeviceKind::gpu, vm)) {
    const auto type = topology.device(gpu).type;
    const bool has_type =
        std::ranges::any_of(topology.host_spec(to).devices, [&](const DeviceSpec& d) { return d.type == type; });
    if (!has_type)
      return fault(workload, fmt::format("'{}' has no {}, which VM '{}' needs part of", asked.to, type, asked.vm),
                   "a vGPU moves between GPUs of one type only");
  }
  if (const auto part = gpu_without_place(context, vm, to))
    return fault(workload,
                 fmt::format("the GPUs of '{}' have no place for the {} of VM '{}'", asked.to, *part, asked.vm),
                 "name a machine with a free part of that size, or leave a VM out");
  if (auto faults = table_faults(context, workload, vm); !faults.empty()) return faults;
  if (guest.memory && *guest.memory != asked.memory)
    return fault(workload,
                 fmt::format("the migrating VM has {}, VM '{}' has {}", to_string(asked.memory), asked.vm,
                             to_string(*guest.memory)),
                 "give the same `memory` in `migration` and in the VM");
  if (asked.dirty_rate.bytes_per_s >= asked.link.bytes_per_s)
    return fault(workload,
                 fmt::format("the VM writes {} of memory, the migration network copies {}: copying never ends",
                             to_string(asked.dirty_rate), to_string(asked.link)),
                 "take a faster link, or quiet the VM");
  return {};
}

}  // namespace

Result<std::unique_ptr<Planner>> make_vm_migration_planner(const PlanContext& context, const Workload& given) {
  auto workload = given;
  auto& asked = *workload.migration;
  const auto& topology = context.topology;
  const auto vm = host_called(topology, asked.vm);
  if (!vm || topology.virtualization(*vm).vm_name.empty())
    return tl::unexpected(fault(workload, fmt::format("no VM '{}' in topology '{}'", asked.vm, topology.name()),
                                "VMs are called host/vm, as `fabricast show` prints them"));
  if (asked.memory.value == 0) asked.memory = topology.virtualization(*vm).memory.value_or(Bytes{});
  if (asked.memory.value == 0)
    return tl::unexpected(fault(workload, fmt::format("nothing says how much memory VM '{}' has", asked.vm),
                                "give `memory` in the VM or in `migration`"));
  const auto to = machine_called(topology, asked.to);
  if (!to)
    return tl::unexpected(
        fault(workload, fmt::format("no host '{}' to migrate to", asked.to), "name a host of the topology"));
  if (auto faults = refusal(context, workload, *vm, *to); !faults.empty()) return tl::unexpected(faults);
  const auto out = port_of(topology, *vm);
  const auto in = port_of(topology, *to);
  const auto path = out && in ? topology.path_between_hcas(*out, *in) : std::nullopt;
  if (!path)
    return tl::unexpected(fault(workload,
                                fmt::format("no network path from '{}' to '{}'", topology.machine_name(*vm), asked.to),
                                "give both machines an adapter and connect them in `fabric`"));
  Move move{*vm, {}, asked.to};
  add_wire(context, *out, *in, 0, move.route);
  if (context.with_legs) move.route.legs.push_back({*out, *in, context.seed, 1, true});
  return std::make_unique<VmMigrationPlanner>(context, workload, std::move(move));
}

}  // namespace fabricast::models
