// SPDX-License-Identifier: Apache-2.0
// The settings that logs are often measured under without saying so, as data: paths and values of --set.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "fabricast/setting_hints.hpp"
#include "fabricast/virtualization.hpp"

namespace fabricast {

namespace {

struct Choice {
  const char* path;
  std::vector<const char*> values;
};

/// Settings of NCCL's runs, both ways: a scenario may say what the log was not measured under. Releases: those after
/// which its tuning tables or thresholds differ.
const std::vector<Choice>& nccl_choices() {
  static const std::vector<Choice> all{
      {"software.nccl.nvls", {"on", "off"}},
      {"software.nccl.p2p", {"on", "off"}},
      {"software.nccl.shm", {"on", "off"}},
      {"software.nccl.pxn", {"on", "off"}},
      {"software.nccl.collnet", {"on", "off"}},
      {"software.nccl.version", {"2.4", "2.8", "2.12", "2.18", "2.23", "2.28"}},
      {"software.nccl.gdr_level", {"pix", "pxb", "sys"}},
      {"software.gpudirect_rdma", {"off", "on"}},
      {"software.transport", {"tcp", "auto"}},
      {"workload.algorithm", {"auto", "ring", "tree"}},
      {"workload.protocol", {"auto", "ll", "ll128", "simple"}},
      {"workload.channels", {"1", "2", "4", "8", "16"}},
      {"workload.launch", {"one_thread", "thread_per_gpu", "process_per_gpu", "graph"}},
  };
  return all;
}

const std::vector<Choice>& mpi_choices() {
  static const std::vector<Choice> all{
      {"software.mpi",
       {"open-mpi-openib", "open-mpi-ucx", "open-mpi-ofi", "mvapich2-gdr", "cray-mpich", "mpich", "intel-mpi"}},
      {"software.transport", {"tcp", "rdma"}},
      {"software.gpudirect_rdma", {"off", "on"}},
      {"software.gdrcopy", {"off", "on"}},
      {"software.cross_memory_attach", {"off", "on"}},
      {"workload.buffers", {"device", "host"}},
  };
  return all;
}

const std::vector<Choice>& perftest_choices() {
  static const std::vector<Choice> all{
      {"workload.bidirectional", {"on", "off"}},
      {"workload.queue_pairs", {"1", "2", "4"}},
      {"workload.buffers", {"device", "host"}},
      {"software.gpudirect_rdma", {"off", "on"}},
  };
  return all;
}

class Changes {
 public:
  Changes(const Scenario& scenario, const TopologySpec& topology) : scenario_(scenario), topology_(topology) {}

  std::vector<SettingChange> all() {
    const auto family = family_of(scenario_.workloads.front().benchmark);
    if (family == BenchmarkFamily::nccl_tests) {
      add(nccl_choices());
      add_algorithms();
      add({{"software.nccl.p2p", "off"}, {"software.nccl.shm", "off"}, {"software.transport", "tcp"}});
      add({{"software.nccl.p2p", "on"}, {"software.nccl.shm", "on"}, {"software.transport", "auto"}});
      add({{"workload.algorithm", "auto"}, {"workload.protocol", "auto"}});
      add_hosts();
    } else if (family == BenchmarkFamily::osu) {
      add(mpi_choices());
      add_hosts();
    } else if (family == BenchmarkFamily::perftest) {
      add(perftest_choices());
      add_hosts();
    }
    return std::move(out_);
  }

 private:
  void add(std::vector<Setting> settings) {
    SettingChange change;
    for (auto& one : settings) {
      constexpr std::string_view k_workload = "workload.";
      const bool is_of_list = scenario_.workloads.size() > 1 && one.path.starts_with(k_workload);
      if (is_of_list) one.path = "workloads.0." + one.path.substr(k_workload.size());
      change.name += fmt::format("{}{}={}", change.name.empty() ? "" : " ", one.path, one.value);
    }
    change.settings = std::move(settings);
    out_.push_back(std::move(change));
  }

  void add(const std::vector<Choice>& choices) {
    for (const auto& choice : choices) {
      for (const auto* value : choice.values) add({{choice.path, value}});
    }
  }

  void add_algorithms() {
    for (const auto* algorithm : {"ring", "tree"}) {
      for (const auto* protocol : {"ll", "ll128", "simple"})
        add({{"workload.algorithm", algorithm}, {"workload.protocol", protocol}});
    }
  }

  /// Redirecting switches, fewer HCAs, another MTU.
  void add_hosts() {
    for (const auto& group : topology_.hosts) {
      const auto* worn = group.host.virtualization.get();  // none: nothing was said
      if (worn == nullptr || worn->mode == VirtualMode::bare_metal) {
        add({{"virtualization", "{mode: bare-metal, acs: redirect}"}});
        if (worn != nullptr) add({{"virtualization", "bare-metal"}});
      } else {
        for (const auto* acs : {"redirect", "direct_translated", "off"}) add({{"virtualization.acs", acs}});
        for (const auto* ats : {"on", "off"}) add({{"virtualization.ats", ats}});
      }
      break;  // one setting for the hosts of all groups
    }
    add_fewer_hcas();
    if (topology_.fabric.kind == FabricKind::none) return;
    for (const auto* mtu : {"1024", "4096"})
      add({{fmt::format("topology.fabric.{}.mtu", to_string(topology_.fabric.kind)), mtu}});
  }

  /// Half of the HCAs of each host, and one: every other name stays.
  void add_fewer_hcas() {
    if (topology_.hosts.size() != 1) return;
    const auto& group = topology_.hosts.front();
    std::vector<std::string> names;
    for (const auto& device : group.host.devices) {
      if (device.kind == DeviceKind::hca) names.push_back(device.name);
    }
    for (std::size_t step = 2; step <= names.size(); step *= 2) {
      std::string gone;
      for (std::size_t i = 0; i < names.size(); ++i) {
        if (i % step != 0) gone += (gone.empty() ? "" : ", ") + names[i];
      }
      add({{fmt::format("topology.hosts.{}.remove", group.name), "[" + gone + "]"}});
    }
  }

  const Scenario& scenario_;
  const TopologySpec& topology_;
  std::vector<SettingChange> out_;
};

}  // namespace

std::vector<SettingChange> settings_to_try(const Scenario& scenario, const TopologySpec& topology) {
  return Changes(scenario, topology).all();
}

}  // namespace fabricast
