// SPDX-License-Identifier: Apache-2.0
// Shared, remote and migrated GPUs under every policy and setting, alone and beside neighbours.
#include <array>

#include "tests/unit/kept/table.hpp"

using namespace fabricast;

namespace {

struct Varied {
  const char* scenario;               ///< shipped
  std::vector<const char*> settings;  ///< one line each; blanks part several
};

const std::array k_varied{
    Varied{"gpu-sharing-best-effort",
           {"workload.sharing.policy=best_effort",
            "workload.sharing.policy=equal_share",
            "workload.sharing.policy=fixed_share",
            "workload.sharing.policy=best_effort workload.sharing.slice=1ms",
            "workload.sharing.policy=best_effort workload.sharing.slice=20ms",
            "workload.sharing.policy=equal_share workload.sharing.slice=3ms",
            "workload.sharing.clients.0.kernel=40ms",
            "workload.sharing.clients.0.kernel=5us workload.sharing.clients.1.kernel=5us",
            "workload.sharing.clients.0.kernel=5us workload.sharing.policy=fixed_share",
            "workload.sharing.clients.1.pause=0us",
            "workload.sharing.clients.1.count=3 workload.sharing.policy=equal_share",
            "workload.sharing.clients.1.count=3 workload.sharing.policy=fixed_share",
            "workload.sharing.clients.1.variation=0",
            "workload.sharing.switch_time=1ms",
            "workload.sharing.preemption_granularity=1ms",
            "workload.sharing.preemption_granularity=1ms workload.sharing.clients.0.kernel=40ms",
            "workload.sharing.policy=equal_share workload.sharing.averaging=10",
            "workload.sharing.policy=equal_share workload.sharing.averaging=60 workload.sharing.strict=on",
            "workload.sharing.policy=fixed_share workload.sharing.strict=off workload.sharing.slice=5ms",
            "workload.sharing.clients.0.variation=0.9",
            "workload.sharing.profile=a100-20c",
            "workload.sharing.profile=a100-40c"}},
    Varied{"gpu-sharing-mig",
           {"workload.sharing.profile=1g.5gb", "workload.sharing.profile=2g.10gb", "workload.sharing.profile=4g.20gb",
            "workload.sharing.profile=7g.40gb", "workload.sharing.clients.1.count=2"}},
    Varied{"gpu-sharing-processes",
           {"workload.sharing.clients.0.count=1", "workload.sharing.clients.0.count=3",
            "workload.sharing.clients.0.kernel=2ms",
            "workload.sharing.clients.0.kernel=30ms workload.sharing.clients.0.count=4",
            "workload.sharing.clients.0.pause=10ms"}},
    Varied{"remote-gpu-tcp-1500",
           {"software.transport=auto", "workload.remote.mtu=9000", "workload.remote.share=1", "workload.remote.calls=0",
            "workload.remote.from_gpu=64MiB", "workload.remote.compute=1us", "workload.remote.memory=4GiB",
            "software.transport=auto workload.remote.share=1 workload.remote.mtu=9000"}},
    Varied{"vgpu-migration",
           {"workload.migration.release=esxi-6.7u3", "workload.migration.release=esxi-7.0",
            "workload.migration.memory=256GiB", "workload.migration.link=100Gb/s", "workload.migration.link=1Gb/s",
            "workload.migration.release=esxi-7.0 workload.migration.memory=16GiB"}},
    Varied{"pvrdma-migration",
           {"workload.migration.pvrdma=off", "workload.migration.registered=1GiB",
            "workload.migration.registered=100GiB", "workload.migration.link=10Gb/s"}},
    Varied{"vms-training-beside-migration",
           {"workloads.1.migration.dirty_rate=4GB/s", "workloads.1.migration.dirty_rate=0GB/s",
            "workloads.1.migration.memory=16GiB", "workloads.1.start=1ms", "workloads.1.migration.link=25Gb/s"}},
    Varied{"vms-density",
           {"workload.compute=100us", "workload.compute=20ms", "workload.sizes=[0B]", "workload.sizes=[1GiB]"}}};

std::vector<Setting> settings_of(const std::string& text) {
  std::vector<Setting> out;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const auto equals = word.find('=');
    out.push_back({word.substr(0, equals), word.substr(equals + 1)});
  }
  return out;
}

std::string rows_of(const Prediction& result) {
  std::string out;
  for (const auto& workload : result.workloads) {
    for (const auto& row : workload.rows) {
      out += fmt::format("    {} {} {}:{}", workload.name, row.label, row.size.value, test::row_text(row));
      for (const auto& term : row.terms) out += fmt::format(" {} {};", term.name, term.time.ps);
      for (const auto& figure : row.figures) out += fmt::format(" {}={:.6g}", figure.key, figure.value);
      out += "\n";
    }
  }
  return out;
}

}  // namespace

TEST_CASE("shared, remote and migrated GPUs take what they took, under every policy and beside neighbours") {
  std::string out;
  for (const auto& [name, all] : k_varied) {
    for (const std::string one : all) {
      out += fmt::format("{} {}\n", name, one);
      const auto loaded =
          load_scenario(std::string(FABRICAST_SOURCE_DIR) + "/scenarios/" + name + ".yaml", {}, settings_of(one));
      if (!loaded) {
        out += "    " + loaded.error().front().message + "\n";
        continue;
      }
      const auto forecast = simulate(loaded->topology, loaded->scenario, loaded->parameters);
      out += forecast ? rows_of(*forecast) : "    " + forecast.error().front().message + "\n";
    }
  }
  test::check_kept("sharing", out);
}
