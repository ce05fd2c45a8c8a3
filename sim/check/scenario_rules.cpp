// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "fabricast/check.hpp"
#include "fabricast/gpudirect_software.hpp"
#include "fabricast/models/gpu_memory.hpp"
#include "fabricast/models/shared_gpus.hpp"
#include "fabricast/models/training_memory.hpp"
#include "fabricast/models/training_precision.hpp"
#include "fabricast/models/virtualization.hpp"
#include "fabricast/virtualization.hpp"

namespace fabricast {

namespace {

class ScenarioRules {
 public:
  ScenarioRules(const Topology& topology, const Scenario& scenario, const ParameterSet& parameters)
      : topology_(topology), scenario_(scenario), parameters_(parameters) {}

  Diagnostics run() {
    for (std::size_t w = 0; w < scenario_.workloads.size(); ++w) {
      const auto& workload = scenario_.workloads[w];
      check_count(workload);
      check_memory(workload);
      check_sharing(workload);
      const auto precision = models::precision_faults(topology_, workload, parameters_);
      found_.insert(found_.end(), precision.begin(), precision.end());
      const auto memory = models::training_memory(topology_, scenario_.workloads, w, parameters_);
      found_.insert(found_.end(), memory.begin(), memory.end());
      check_shared_gpus(w);
    }
    check_gpudirect();
    return std::move(found_);
  }

 private:
  void add(Severity severity, const SourceLocation& where, std::string message, std::string fix) {
    auto one = make_error_at(where, std::move(message), std::move(fix));
    one.severity = severity;
    found_.push_back(std::move(one));
  }

  /// Said once for each pair, at the later one.
  void check_shared_gpus(std::size_t index) {
    const auto& all = scenario_.workloads;
    for (const auto& shared : models::shared_gpus(topology_, all, index)) {
      if (shared.other > index) continue;
      add(Severity::warning, all[index].location,
          fmt::format("{} and {} compute on the same {}: processes of a GPU take turns, each gets at most "
                      "half of it",
                      models::name_of(all, shared.other), models::name_of(all, index),
                      models::words_of(topology_, shared.gpus)),
          "give each workload GPUs of its own (`devices`), unless they share them");
    }
  }

  static bool uses_devices(const Workload& workload) {
    return workload.send_buffer == BufferPlace::device || workload.receive_buffer == BufferPlace::device;
  }

  void check_count(const Workload& workload) {
    const auto gpus = static_cast<int>(topology_.devices(DeviceKind::gpu).size());
    if (workload.gpus && *workload.gpus > gpus) {
      add(Severity::error, workload.location,
          has_vms() ? fmt::format("{} GPUs asked for, hosts and VMs of topology '{}' hold {}", *workload.gpus,
                                  topology_.name(), gpus)
                    : fmt::format("{} GPUs asked for, topology '{}' has {}", *workload.gpus, topology_.name(), gpus),
          has_vms() ? "hand GPUs to VMs (`devices` of `vms`), or lower workload.gpus"
                    : "raise the host count of the topology or lower workload.gpus");
    }
    if (uses_devices(workload) && gpus == 0)
      add(Severity::error, workload.location,
          fmt::format("{} works on device buffers, topology '{}' has no GPU", to_string(workload.benchmark),
                      topology_.name()),
          has_vms() ? "use host buffers, or hand GPUs to VMs (`devices` of `vms`)"
                    : "use host buffers or hosts with GPUs");
  }

  /// What no VM holds is idle.
  [[nodiscard]] bool has_vms() const {
    return std::ranges::any_of(topology_.spec().hosts, [](const HostGroupSpec& group) {
      return group.host.virtualization && !group.host.virtualization->vms.empty();
    });
  }

  void check_memory(const Workload& workload) {
    if (!uses_devices(workload) || workload.sizes.empty()) return;
    const bool is_nccl_tests = family_of(workload.benchmark) == BenchmarkFamily::nccl_tests;
    auto gpus = is_nccl_tests ? models::gpus_of(topology_, workload) : topology_.devices(DeviceKind::gpu);
    if (gpus.empty()) return;
    if (!is_nccl_tests) gpus.resize(1);
    const auto memory = models::least_memory(topology_, parameters_, gpus);
    const auto largest = *std::max_element(workload.sizes.begin(), workload.sizes.end());
    if (!memory) return;
    // Benchmarks keep a send and a receive buffer; nccl-tests (common.cu) leaves at least 1 GiB to
    // NCCL and keeps a third one for its check.
    const double room = memory->bytes - (is_nccl_tests ? 0x1p30 : 0);
    if (2.0 * static_cast<double>(largest.value) <= room) return;
    const auto text = [](double bytes) { return to_string(Bytes{static_cast<std::int64_t>(bytes)}); };
    add(Severity::warning, workload.location,
        fmt::format("two buffers of {} do not fit into the {} of a {}", to_string(largest), text(memory->bytes),
                    memory->what),
        is_nccl_tests
            ? fmt::format(
                  "lower the largest of `sizes`: nccl-tests ends at most at {} (-c 0), at {} when it checks data",
                  text(room / 2), text(room / 3))
            : "lower the largest of `sizes`");
  }

  /// Profile, number of clients and slice of a shared GPU, as the run would refuse them.
  void check_sharing(const Workload& workload) {
    if (!workload.sharing) return;
    const auto gpus = topology_.devices(DeviceKind::gpu);
    const auto named = workload.devices.empty() ? std::nullopt : topology_.find_device(workload.devices.front());
    if (gpus.empty() || (!workload.devices.empty() && !named)) return;
    const auto slicing =
        models::time_slicing(parameters_, *workload.sharing, topology_.device(named.value_or(gpus.front())).type);
    if (!slicing) found_.insert(found_.end(), slicing.error().begin(), slicing.error().end());
  }

  /// Versions below the floors of GPUDirect RDMA: the job runs, slower. Said once for each.
  void check_versions() {
    const auto& software = scenario_.software;
    if (!software.gpudirect_rdma) return;
    const bool is_open_mpi = software.mpi.empty() || software.mpi.starts_with("open-mpi");
    std::set<std::string> said;
    for (const auto hca : topology_.devices(DeviceKind::hca)) {
      const auto type = topology_.device(hca).type;
      if (!said.insert(type).second) continue;
      const auto old = too_old_for_gpudirect(
          parameters_, {software.cuda_version, is_open_mpi ? software.mpi_version : "", software.ofed_version}, type);
      if (!old || !said.insert(old->key).second) continue;
      add(Severity::warning, software.locations.at(old->key),
          fmt::format("{} {} has no GPUDirect RDMA{}: device messages are staged through host memory", old->what,
                      old->version, old->key == "ofed" ? fmt::format(" over a {}", type) : std::string()),
          fmt::format("install {} {} or later (VMware, GPUDirect RDMA in vSphere 6.7)", old->what, old->floor));
    }
  }

  void check_gpudirect() {
    check_versions();
    const auto& software = scenario_.software;
    if (!software.gpudirect_rdma || software.nv_peer_mem) return;
    const auto given = software.locations.find("nv_peer_mem");
    add(Severity::warning, given == software.locations.end() ? SourceLocation{scenario_.file, 0, 0} : given->second,
        "GPUDirect RDMA is on but nv_peer_mem is not loaded: device messages are staged through host memory",
        "load the module (nvidia-peermem), or set gpudirect_rdma: off to say that this is meant");
  }

  const Topology& topology_;
  const Scenario& scenario_;
  const ParameterSet& parameters_;
  Diagnostics found_;
};

}  // namespace

Diagnostics check_scenario(const Topology& topology, const Scenario& scenario, const ParameterSet& parameters) {
  return ScenarioRules(topology, scenario, parameters).run();
}

}  // namespace fabricast
