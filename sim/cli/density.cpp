// SPDX-License-Identifier: Apache-2.0
// fabricast compare --density VM SCENARIO.yaml: how many VMs of one size fit a host, and what each gets when all work.
// Every number of VMs is the scenario with another `count` of that VM: `check` says whether it powers on, the simulator
// runs the scenario's workload on all of them at once.
#include "cli/density.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "fabricast/check.hpp"
#include "fabricast/virtualization.hpp"
#include "report/inputs.hpp"

namespace fabricast::cli {

namespace {

constexpr int k_most_vms = 256;
/// Lines of the table: all small numbers, then every half step of a doubling.
const std::vector<int> k_steps{1,  2,  3,  4,  5,  6,  7,  8,  10, 12,  14,  16,
                               20, 24, 28, 32, 40, 48, 56, 64, 96, 128, 192, 256};

struct Step {
  int count = 0;
  Diagnostics faults;  ///< why so many do not fit
  std::string doubt;   ///< first warning
  double time_us = 0;  ///< of the slowest
  double rate = 0;     ///< bytes/s of all together, where the benchmark has one
  std::string bottleneck;
};

class Density {
 public:
  Density(std::string path, std::string vm, const CommonOptions& options)
      : path_(std::move(path)), vm_(std::move(vm)), options_(options) {}

  /// The table, or nothing after faults were printed.
  std::optional<std::string> run(int& exit_code) {
    const auto first =
        usable(load_scenario(path_, options_.parameter_files, parse_settings(options_.settings)), exit_code);
    if (!first) return std::nullopt;
    if (!find(*first)) {
      exit_code = exit_input;
      return std::nullopt;
    }
    inputs_ = first->inputs;
    std::vector<Step> steps;
    for (const int count : k_steps) {
      if (was_interrupted()) break;
      steps.push_back(step(count));
      if (!steps.back().faults.empty()) break;
    }
    if (steps.size() > 1 && !steps.back().faults.empty()) refine(steps);
    return table(steps);
  }

 private:
  /// Of `vms:` of which group the VM is an entry.
  bool find(const LoadedScenario& loaded) {
    std::vector<std::string> names;
    for (const auto& group : loaded.topology.spec().hosts) {
      if (!group.host.virtualization) continue;
      for (const auto& vm : group.host.virtualization->vms) {
        names.push_back(entry_of(vm->vm_name));
        if (vm->vm_name != vm_ && names.back() != vm_) continue;
        place_ = fmt::format("topology.hosts.{}.vms.{}", group.name, vm_);
        group_ = group.name;
        return true;
      }
    }
    const auto near = nearest_name(vm_, names);
    print_faults({make_error(fmt::format("{}: no VM is called '{}'", path_, vm_),
                             names.empty()  ? "list VMs below `vms` of a host group"
                             : near.empty() ? fmt::format("VMs are {}", names.front())
                                            : fmt::format("did you mean '{}'?", near))});
    return false;
  }

  /// desk of desk3.
  static std::string entry_of(const std::string& name) {
    const auto end = name.find_last_not_of("0123456789");
    return end == std::string::npos ? name : name.substr(0, end + 1);
  }

  Step step(int count) {
    Step out;
    out.count = count;
    auto settings = parse_settings(options_.settings);
    settings.push_back({fmt::format("{}.count", place_), std::to_string(count)});
    auto loaded = load_scenario(path_, options_.parameter_files, settings);
    if (!loaded) {
      out.faults = loaded.error();
      return out;
    }
    for (auto& one : check_virtualization(loaded->topology, loaded->parameters, loaded->device_types)) {
      if (one.severity == Severity::error)
        out.faults.push_back(one);
      else if (out.doubt.empty() && one.message.find("vCPUs") != std::string::npos)
        out.doubt = one.message.substr(0, one.message.find(" (group"));
    }
    if (!out.faults.empty()) return out;
    spread(*loaded, count);
    SimulateOptions simulate_options;
    simulate_options.seed = options_.seed;
    const auto prediction = simulate(loaded->topology, loaded->scenario, loaded->parameters, simulate_options);
    if (!prediction) {
      out.faults = prediction.error();
      return out;
    }
    for (const auto& workload : prediction->workloads) {
      const auto& row = workload.rows.back();
      if (row.time.us() > out.time_us) out.bottleneck = cause_of(row);
      out.time_us = std::max(out.time_us, row.time.us());
      out.rate += row.algbw.bytes_per_s;
      size_ = row.size;
    }
    return out;
  }

  static std::string cause_of(const Row& row) {
    constexpr std::string_view k_prefix = "virtualization: ";
    return row.bottleneck.starts_with(k_prefix) ? row.bottleneck.substr(k_prefix.size()) : row.bottleneck;
  }

  /// The first workload's copy for every VM, on that VM of all machines of the group.
  void spread(LoadedScenario& loaded, int count) const {
    const auto work = loaded.scenario.workloads.front();
    loaded.scenario.workloads.clear();
    for (int v = 0; v < count; ++v) {
      auto copy = work;
      copy.devices.clear();
      const auto name = count == 1 ? vm_ : fmt::format("{}{}", vm_, v);
      for (int host = 0; host < loaded.topology.num_hosts(); ++host)
        if (loaded.topology.virtualization(host).vm_name == name)
          copy.devices.push_back(loaded.topology.host_name(host));
      copy.gpus.reset();
      if (is_of_one(copy.benchmark)) copy.devices.resize(1);
      copy.name = name;
      loaded.scenario.workloads.push_back(std::move(copy));
    }
  }

  static bool is_of_one(Benchmark benchmark) {
    return benchmark == Benchmark::gpu_step || benchmark == Benchmark::host_copies;
  }

  /// The largest number that fits, between the last that did and the first that did not.
  void refine(std::vector<Step>& steps) {
    int fits = steps[steps.size() - 2].count;
    int fails = steps.back().count;
    auto refused = steps.back();
    steps.pop_back();
    while (fails - fits > 1) {
      auto middle = step((fits + fails) / 2);
      if (middle.faults.empty()) {
        fits = middle.count;
        steps.push_back(std::move(middle));
      } else {
        fails = middle.count;
        refused = std::move(middle);
      }
    }
    steps.push_back(std::move(refused));
  }

  [[nodiscard]] std::string table(const std::vector<Step>& steps) const {
    std::string out = fmt::format("# VMs '{}' on each host of group '{}', all of them at work ({}, {})\n", vm_, group_,
                                  path_, to_string(size_));
    out += fmt::format("# {:>5}{:>16}{:>14}{:>16}  {}\n", "VMs", "time (us)", "of one", "all (GB/s)", "limited by");
    const double alone = steps.front().faults.empty() ? steps.front().time_us : 0;
    int most = 0;
    for (const auto& one : steps) {
      if (!one.faults.empty()) continue;
      most = one.count;
      const auto rate = one.rate > 0 ? fmt::format("{:.2f}", one.rate * 1e-9) : std::string("-");
      out += fmt::format("  {:>5}{:>16.2f}{:>13.3f}x{:>16}  {}{}\n", one.count, one.time_us, one.time_us / alone, rate,
                         one.bottleneck, one.doubt.empty() ? "" : "; " + one.doubt);
    }
    out += verdict(steps, most);
    return out + "# inputs:\n" + report::inputs_text(report::sums_of(inputs_));
  }

  /// How many fit, and why no more do.
  static std::string verdict(const std::vector<Step>& steps, int most) {
    if (most == k_most_vms) return fmt::format("# {} fit; more were not tried\n", most);
    if (steps.back().faults.empty()) return "";
    const auto& why = steps.back().faults.front();
    auto out = fmt::format("# {} fit; {} do not: {}\n", most, steps.back().count, why.message);
    for (const auto& note : why.notes) out += fmt::format("#   {}\n", note.text);
    return out;
  }

  std::string path_, vm_;
  const CommonOptions& options_;
  std::string place_, group_;
  Bytes size_;
  std::vector<InputFile> inputs_;
};

}  // namespace

std::optional<std::string> density_table(const std::string& path, const std::string& vm, const CommonOptions& options,
                                         int& exit_code) {
  return Density(path, vm, options).run(exit_code);
}

}  // namespace fabricast::cli
