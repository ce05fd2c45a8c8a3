// SPDX-License-Identifier: Apache-2.0
// What VMs cost as described: the setting that was made worse is named, and what it leaves is what a forecast with the
// better one says; faults reach VMs that were described one by one.
#include "doctor/virtual_costs.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "doctor/changes.hpp"
#include "fabricast/virtualization.hpp"
#include "tests/support/approx.hpp"
#include "tests/unit/doctor/logs.hpp"

using namespace fabricast;

namespace {

struct Worse {
  std::string virtualization;  ///< of every host
  std::vector<std::string> causes;
  std::string better;  ///< the settings that undo it, as --set takes them
  std::string cluster = "h200-cx7x4-pair.yaml";
  int ranks = 16;
  std::string software = "{}";
};

const std::string k_kvm = "mode: passthrough, hypervisor: kvm, ats: on";
const std::vector<Worse> k_worse{
    {k_kvm + ", guest_topology: shown", {"translation-shared"}, "virtualization.translation=cached"},
    {k_kvm + ", translation: cached, guest_topology: hidden",
     {"hidden-topology"},
     "virtualization.guest_topology=shown"},
    {k_kvm + ", guest_topology: shown, translation: cached, acs: redirect",
     {"acs-redirect"},
     "virtualization.acs=direct_translated"},
    {k_kvm + ", guest_topology: shown, translation: cached, huge_pages: off",
     {"huge-pages-off"},
     "virtualization.huge_pages=on"},
    // Helper threads: with NCCL's proxies alone these limit, whatever the MTU.
    {"mode: tcp, hypervisor: kvm, mtu: 1500",
     {"mtu-small"},
     "virtualization.mtu=9000",
     "h200-cx7x4-pair.yaml",
     16,
     "{nccl: {socket_nthreads: 8, nsocks_perthread: 8}}"},
};

Result<Diagnosis> seen(const Worse& one, const std::vector<std::string>& logs) {
  const auto path = std::filesystem::temp_directory_path() / fmt::format("fabricast-costs-{}.yaml", getpid());
  std::ofstream(path) << fmt::format(
      "schema: fabricast/scenario/1\nname: s\ntopology: \"{}\"\nvirtualization: {{{}}}\nsoftware: {}\nworkload: "
      "{{benchmark: all_reduce_perf}}\n",
      test::topology_file(one.cluster), one.virtualization, one.software);
  return diagnose(path.string(), logs);
}

std::string text_of(const Worse& one, Bytes size) {
  return fmt::format(
      "schema: fabricast/scenario/1\nname: s\ntopology: \"{}\"\nvirtualization: {{{}}}\nsoftware: {}\nworkload: "
      "{{benchmark: all_reduce_perf, gpus: {}, launch: thread_per_gpu, sizes: [{} B]}}\n",
      test::topology_file(one.cluster), one.virtualization, one.software, one.ranks, size.value);
}

double seconds(const std::string& text, const std::vector<Setting>& settings) {
  const auto loaded = load_scenario_text("s.yaml", text, {}, settings);
  REQUIRE_MESSAGE(loaded, (loaded ? "" : render(loaded.error())));
  const auto forecast = simulate(loaded->topology, loaded->scenario, loaded->parameters);
  REQUIRE_MESSAGE(forecast, (forecast ? "" : render(forecast.error())));
  return forecast->workloads.front().rows.front().time.seconds();
}

std::vector<Setting> settings_of(const std::string& text) {
  std::vector<Setting> out;
  std::istringstream words(text);
  for (std::string word; words >> word;)
    out.push_back({word.substr(0, word.find('=')), word.substr(word.find('=') + 1)});
  return out;
}

}  // namespace

TEST_CASE("of VMs with one setting worse that setting is named, and leaves what a forecast with the better one says") {
  const auto logs =
      test::planted_logs(test::topology_file("h200-cx7x4-pair.yaml"), "node",
                         {{"benchmark: all_reduce_perf, gpus: 16, launch: thread_per_gpu", 16, 0, 8}}, {}, 0.01, 3);
  for (const auto& worse : k_worse) {
    CAPTURE(worse.virtualization);
    const auto diagnosis = seen(worse, logs);
    REQUIRE_MESSAGE(diagnosis, (diagnosis ? "" : render(diagnosis.error())));
    REQUIRE(diagnosis->virtualization);
    const auto& cost = *diagnosis->virtualization;
    CHECK_FALSE(cost.is_measured);
    const auto text = text_of(worse, cost.size);
    const double with = seconds(text, {});
    const double bare = seconds(text, {{"virtualization", "{mode: bare-metal}"}});
    CHECK(cost.share == test::approx(with / bare - 1).epsilon(0.01));
    const auto found = std::ranges::find(cost.settings, worse.causes, &VirtualSetting::causes);
    REQUIRE(found != cost.settings.end());
    CHECK(found->setting == worse.better);
    const double better = seconds(text, settings_of(worse.better));
    CHECK(std::abs(found->share_left - std::max(0.0, better / bare - 1)) < 0.01);
    for (const auto& one : cost.settings) CHECK(one.share_left <= 0.8 * cost.share + 1e-9);
    CHECK(std::ranges::is_sorted(cost.settings, {}, &VirtualSetting::share_left));
  }
}

TEST_CASE("where no single setting helps two are named together") {
  const Worse worse{k_kvm, {"translation-shared", "hidden-topology"}, ""};
  std::mt19937_64 random(1);
  const std::vector<Bytes> sizes{{std::int64_t{8} << 30}};
  const test::Planted planted{"", 16, 0, 8};
  const auto path = std::filesystem::temp_directory_path() / fmt::format("fabricast-costs-{}.log", getpid());
  std::ofstream(path) << test::nccl_tests_log(Benchmark::all_reduce_perf, sizes, {Duration{46'000'000'000}}, "node",
                                              planted, 0, random);
  const auto diagnosis = seen(worse, {path.string()});
  REQUIRE_MESSAGE(diagnosis, (diagnosis ? "" : render(diagnosis.error())));
  REQUIRE(diagnosis->virtualization);
  const auto& cost = *diagnosis->virtualization;
  REQUIRE(!cost.settings.empty());
  CHECK(cost.settings.front().causes == worse.causes);
  CHECK(cost.settings.front().setting == "virtualization.translation=cached virtualization.guest_topology=shown");
  CHECK(cost.share > 0.3);
  CHECK(cost.settings.front().share_left < 0.05);
}

TEST_CASE("bare metal costs nothing, nor do VMs that lose nothing") {
  const auto logs = test::planted_logs(test::topology_file("h200-cx7x4-pair.yaml"), "node",
                                       {{"benchmark: all_reduce_perf, gpus: 16", 16, 0, 8}}, {}, 0.01, 3);
  const auto bare = diagnose(test::topology_file("h200-cx7x4-pair.yaml"), logs);
  REQUIRE(bare);
  CHECK_FALSE(bare->virtualization);
}

TEST_CASE("a fault of VMs reaches those that were described one by one") {
  doctor::Case one;
  HostGroupSpec group;
  auto all = Virtualization{};
  all.mode = VirtualMode::passthrough;
  auto vm = all;
  vm.vm_name = "a";
  all.vms = {std::make_shared<const Virtualization>(vm)};
  group.host.virtualization = std::make_shared<const Virtualization>(all);
  one.spec.hosts.push_back(group);
  const auto worse = [](Virtualization& any) { return !any.vm_name.empty() && doctor::put(any.has_ats, false); };
  CHECK(doctor::change_worn(one, worse));
  CHECK(one.spec.hosts.front().host.virtualization->has_ats);
  CHECK_FALSE(one.spec.hosts.front().host.virtualization->vms.front()->has_ats);
  CHECK_FALSE(doctor::change_worn(one, worse));
}
