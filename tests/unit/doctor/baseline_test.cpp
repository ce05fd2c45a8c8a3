// SPDX-License-Identifier: Apache-2.0
// Healthy runs beside the logs: the cluster differs from its forecast by a factor of its own per benchmark, 0.7 to 1.4.
// The forecast alone takes that for a fault, or hides one behind it; against a healthy run of the same cluster it drops
// out, and what is left is the scatter of two runs: the doctor is as often right as with a forecast without error and
// logs that scatter so.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "tests/support/approx.hpp"
#include "tests/unit/doctor/clusters.hpp"

using namespace fabricast;
using namespace fabricast::test;

namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr int k_biased_draws = 2;
#else
constexpr int k_biased_draws = 16;
#endif

double uniform(std::mt19937_64& random) { return static_cast<double>(random() >> 11) * 0x1p-53; }

/// A factor of 0.7 to 1.4 for each benchmark.
Truth biased(const std::string& name, std::mt19937_64& random) {
  Truth out;
  out.name = name;
  for (const auto benchmark : {Benchmark::all_reduce_perf, Benchmark::sendrecv_perf})
    out.longer[benchmark] = 0.7 * std::pow(2.0, uniform(random));
  return out;
}

DoctorOptions with(const std::vector<std::string>& baselines) {
  DoctorOptions out;
  out.baselines = baselines;
  return out;
}

/// One log of all-reduce on the two hosts of a DGX A100 pair, forecast and scattered, times `longer` from 1 MiB on.
std::string pair_log(const std::string& name, double longer, unsigned seed, const std::string& from = "8 B",
                     const std::string& to = "128 MiB", int factor = 4) {
  std::vector<Bytes> sizes;
  const auto one = case_of_text(
      fmt::format("schema: fabricast/scenario/1\nname: s\ntopology: \"{}\"\nworkload: {{benchmark: all_reduce_perf, "
                  "sizes: {{from: {}, to: {}, factor: {}}}}}\n",
                  topology_file("dgx-a100-pair.yaml"), from, to, factor),
      sizes);
  auto times = doctor::forecast(one, sizes);
  for (std::size_t i = 0; i < times.size(); ++i) {
    if (sizes[i] >= Bytes{1 << 20}) times[i] = from_seconds(times[i].seconds() * longer);
  }
  std::mt19937_64 random(seed);
  const auto path = std::filesystem::temp_directory_path() / fmt::format("fabricast-pair-{}-{}.log", getpid(), name);
  std::ofstream(path) << nccl_tests_log(Benchmark::all_reduce_perf, sizes, times, "dgx", {"", 16, 0, 8}, k_scatter,
                                        random);
  return path.string();
}

std::string h200_log(const std::string& name) {
  return std::string(FABRICAST_SOURCE_DIR) +
         "/calibration/data/h200-2gpu-repeats-nvswitch-passthrough-vm/nccl-tests/h200vm3-2gpu-" + name + ".txt";
}

}  // namespace

TEST_CASE("a healthy run of a cluster that differs from its forecast shows the fault that the forecast hides") {
  std::mt19937_64 random(15);
  std::map<std::string, std::string> files;
  std::map<std::string, std::vector<Log>> logs;
  for (const auto& cluster : clusters()) {
    files[cluster.name] = write_cluster(cluster);
    logs[cluster.name] = logs_of(cluster, files[cluster.name]);
  }
  int counted = 0, by_forecast = 0, by_baseline = 0, unbiased = 0;
  const auto is_first = [](const Result<Diagnosis>& diagnosis, const doctor::Cause& cause) {
    return !diagnosis->findings.empty() && is_named(diagnosis->findings.front(), cause);
  };
  while (counted < k_biased_draws) {
    const auto& cluster = clusters()[random() % clusters().size()];
    const auto& own = logs[cluster.name];
    const auto& wanted = k_list[random() % k_list.size()];
    auto causes = doctor::causes_for(own.front().healthy, true);
    std::erase_if(causes, [&](const auto& cause) { return !cause.id.starts_with(wanted); });
    if (causes.empty()) continue;
    const auto& cause = causes[random() % causes.size()];
    auto truth = biased("biased-sick", random);
    const auto sick = plant(own, cluster, cause, random, truth);
    if (!sick || !sick->differs) continue;
    truth.name = "biased-healthy";
    const auto healthy = plant(own, cluster, no_cause(), random, truth);
    REQUIRE(healthy);
    ++counted;
    const auto alone = diagnose(files[cluster.name], sick->paths);
    const auto beside = diagnose(files[cluster.name], sick->paths, with(healthy->paths));
    REQUIRE(alone);
    REQUIRE_MESSAGE(beside, (beside ? "" : render(beside.error())));
    CHECK(beside->num_rows_with_baseline == beside->num_rows);
    by_forecast += is_first(alone, cause) ? 1 : 0;
    const bool is_right = is_first(beside, cause);
    by_baseline += is_right ? 1 : 0;
    const auto exact = plant(own, cluster, cause, random, {"unbiased", {}, k_scatter * std::sqrt(2.0)});
    REQUIRE(exact);
    const auto known = diagnose(files[cluster.name], exact->paths);
    REQUIRE(known);
    unbiased += is_first(known, cause) ? 1 : 0;
    if (!is_right)
      MESSAGE(fmt::format("{} at {} of {}: found {} (error {:.3f})", cause.id, cause.place, cluster.name,
                          beside->findings.empty() ? "nothing" : beside->findings.front().cause,
                          beside->error_healthy));
  }
  MESSAGE(fmt::format(
      "of {}: {} by the forecast, {} with a healthy run, {} by a forecast without error and the scatter of two runs",
      counted, by_forecast, by_baseline, unbiased));
  CHECK(by_baseline >= unbiased - 1);
  if (k_biased_draws > 2) CHECK(by_forecast < by_baseline);
}

TEST_CASE("a cluster that differs from its forecast is healthy beside its own healthy run") {
  std::mt19937_64 random(3);
  int alarms = 0;
  for (const auto& cluster : clusters()) {
    CAPTURE(cluster.name);
    const auto path = write_cluster(cluster);
    const auto own = logs_of(cluster, path);
    for (int run = 0; run < (k_biased_draws > 2 ? 2 : 1); ++run) {
      auto truth = biased("biased-again", random);
      const auto today = plant(own, cluster, no_cause(), random, truth);
      truth.name = "biased-before";
      const auto before = plant(own, cluster, no_cause(), random, truth);
      REQUIRE(today);
      REQUIRE(before);
      const auto alone = diagnose(path, today->paths);
      REQUIRE(alone);
      alarms += alone->is_healthy ? 0 : 1;
      const auto beside = diagnose(path, today->paths, with(before->paths));
      REQUIRE(beside);
      CHECK(beside->is_healthy);
      CHECK(!beside->is_below_baseline);
      CHECK(beside->error_healthy < 0.06);
      const auto same = diagnose(path, today->paths, with(today->paths));
      REQUIRE(same);
      CHECK(same->is_healthy);
      CHECK(same->error_healthy < 1e-6);
    }
  }
  MESSAGE(fmt::format("{} false alarms by the forecast", alarms));
}

TEST_CASE("a loss of 10 to 15 % of the bandwidth shows beside a healthy run") {
  const auto topology = topology_file("dgx-a100-pair.yaml");
  int by_forecast = 0, found = 0, of = 0;
  for (const double loss : {0.10, 0.12, 0.15}) {
    for (unsigned seed = 0; seed < 5; ++seed, ++of) {
      const auto log = pair_log("lost", 1 / (1 - loss), 2 * seed), healthy = pair_log("whole", 1, 2 * seed + 1);
      const auto alone = diagnose(topology, {log}), beside = diagnose(topology, {log}, with({healthy}));
      REQUIRE(alone);
      REQUIRE(beside);
      by_forecast += alone->is_healthy ? 0 : 1;
      found += beside->is_healthy ? 0 : 1;
    }
  }
  MESSAGE(fmt::format("of {}: {} by the forecast, {} with a healthy run", of, by_forecast, found));
  CHECK(found >= of - 1);
  CHECK(by_forecast < found);
}

TEST_CASE("what is slower below 1 MiB alone shows beside a healthy run, too") {
  const auto topology = topology_file("dgx-a100-pair.yaml");
  // Nothing that is known makes messages of 8 B and 32 KiB slower by the same.
  const auto slow = pair_log("small", 1, 1), whole = pair_log("whole", 1, 2);
  std::ifstream in(slow);
  std::string line, text;
  while (std::getline(in, line)) {
    std::istringstream cells(line);
    std::vector<std::string> words{std::istream_iterator<std::string>(cells), {}};
    const bool is_row = words.size() > 11 && words[0].find_first_not_of("0123456789") == std::string::npos;
    if (is_row && std::stoll(words[0]) < (1 << 20)) {
      line.clear();
      for (std::size_t i = 0; i < words.size(); ++i)
        line += (i == 5 || i == 9 ? fmt::format("{:.2f}", 3 * std::stod(words[i])) : words[i]) + " ";
    }
    text += line + "\n";
  }
  in.close();
  std::ofstream(slow) << text;
  const auto diagnosis = diagnose(topology, {slow}, with({whole}));
  REQUIRE(diagnosis);
  CHECK(!diagnosis->is_healthy);
  CHECK(diagnosis->is_below_baseline);
}

TEST_CASE("healthy runs of one machine, measured again and again, have nothing wrong beside each other") {
  const std::string topology = std::string(FABRICAST_SOURCE_DIR) + "/topologies/h200-8gpu-vm.yaml";
  for (const auto& several : {std::pair("all_reduce-threads-run", 5), std::pair("all_reduce-one-thread-run", 5)}) {
    const auto* const kind = several.first;
    const int runs = several.second;
    for (int today = 1; today <= runs; ++today) {
      for (int before = 1; before <= runs; ++before) {
        CAPTURE(kind);
        CAPTURE(today);
        CAPTURE(before);
        const auto diagnosis = diagnose(topology, {h200_log(fmt::format("{}{}", kind, today))},
                                        with({h200_log(fmt::format("{}{}", kind, before))}));
        REQUIRE(diagnosis);
        CHECK(diagnosis->is_healthy);
        CHECK(diagnosis->num_rows_with_baseline == diagnosis->num_rows);
      }
    }
  }
}

TEST_CASE("rows at a healthy run's sizes and between them are held against it, others against the forecast") {
  const auto topology = topology_file("dgx-a100-pair.yaml");
  const auto healthy = pair_log("coarse", 1.3, 1, "128 KiB", "32 MiB", 4);
  const auto log = pair_log("fine", 1.3 * 3, 2, "64 KiB", "128 MiB", 2);
  const auto diagnosis = diagnose(topology, {log}, with({healthy}));
  REQUIRE(diagnosis);
  REQUIRE(diagnosis->covered.size() == 1);
  const auto& table = diagnosis->covered.front();
  CHECK(table.file == log);
  CHECK(table.num_rows == 12);
  CHECK(table.by_forecast == std::vector<Bytes>{Bytes{64 << 10}, Bytes{64 << 20}, Bytes{128 << 20}});
  CHECK(diagnosis->num_rows_with_baseline == 9);
  CHECK(!diagnosis->is_healthy);
  CHECK(diagnosis->is_below_baseline);
  REQUIRE(!diagnosis->findings.empty());
  for (const auto& row : diagnosis->findings.front().evidence) {
    CAPTURE(row.size);
    const bool is_served = row.size > Bytes{64 << 10} && row.size < Bytes{64 << 20};
    CHECK(row.baseline.empty() != is_served);
    if (!is_served) continue;
    CHECK(row.baseline.find(healthy) != std::string::npos);
    CHECK(row.measured.us() == test::approx(3 * row.expected.us()).epsilon(0.2));
  }
}

TEST_CASE("sizes of a healthy run that lie far apart say nothing of those between") {
  const auto diagnosis = diagnose(topology_file("dgx-a100-pair.yaml"), {pair_log("steps", 1, 2, "8 KiB", "8 MiB", 2)},
                                  with({pair_log("sparse", 1, 1, "8 KiB", "8 MiB", 32)}));
  REQUIRE(diagnosis);
  CHECK(diagnosis->num_rows == 11);
  CHECK(diagnosis->num_rows_with_baseline == 3);
}

TEST_CASE("a healthy run that serves one row does not hide that the others are far slower than the forecast") {
  const auto diagnosis = diagnose(topology_file("dgx-a100-pair.yaml"), {pair_log("far", 3, 2, "8 KiB", "512 MiB", 4)},
                                  with({pair_log("one-row", 1, 1, "8 KiB", "8 KiB", 2)}));
  REQUIRE(diagnosis);
  CHECK(diagnosis->num_rows_with_baseline == 1);
  CHECK(!diagnosis->is_below_baseline);
  CHECK(!diagnosis->is_healthy);
}

TEST_CASE("of several healthy runs the middle one counts") {
  const auto topology = topology_file("dgx-a100-pair.yaml");
  const auto log = pair_log("now", 1, 4);
  const std::vector<std::string> three{pair_log("a", 1, 5), pair_log("b", 0.5, 6), pair_log("c", 1, 7)};
  const auto diagnosis = diagnose(topology, {log}, with(three));
  REQUIRE(diagnosis);
  CHECK(diagnosis->is_healthy);
  CHECK(!diagnose(topology, {log}, with({three[1]}))->is_healthy);
  ExpectOptions options;
  options.benchmarks = {Benchmark::all_reduce_perf};
  options.baselines = three;
  const auto floors = expect(topology, options);
  REQUIRE_MESSAGE(floors, (floors ? "" : render(floors.error())));
  CHECK(!check_floors(*read_log(log), floors->floors).is_missed);
}

TEST_CASE("a healthy run that serves no row is refused, with what it has and what is needed") {
  const auto topology = topology_file("dgx-a100-pair.yaml");
  const auto log = pair_log("asked", 1, 1);
  const auto refused = [&](const std::string& baseline) {
    const auto diagnosis = diagnose(topology, {log}, with({log, baseline}));
    REQUIRE(!diagnosis);
    REQUIRE(diagnosis.error().size() == 1);
    return render(diagnosis.error());
  };
  const auto elsewhere = pair_log("elsewhere", 1, 1, "256 MiB", "1 GiB");
  const auto one_host =
      planted_logs(topology, "dgx", {{"benchmark: all_reduce_perf, gpus: 8", 8, 0}}, {}, 0.03, 1).front();
  for (const auto& [baseline, has] : {std::pair(elsewhere, "256 MiB to 1 GiB"), std::pair(one_host, "8 ranks on 1")}) {
    const auto text = refused(baseline);
    CAPTURE(text);
    CHECK(text.find(baseline) != std::string::npos);
    CHECK(text.find(has) != std::string::npos);
    CHECK(text.find("16 ranks on 2 hosts") != std::string::npos);
  }
  ExpectOptions options;
  options.benchmarks = {Benchmark::alltoall_perf};
  options.baselines = {log};
  const auto floors = expect(topology, options);
  REQUIRE(!floors);
  CHECK(render(floors.error()).find("alltoall_perf") != std::string::npos);
}

TEST_CASE("what a log and its healthy run both say explains no difference") {
  const auto topology = topology_file("dgx-a100-pair.yaml");
  const std::vector<Planted> one{{"benchmark: all_reduce_perf, gpus: 8", 8, 0}};
  const auto off = planted_logs(topology, "dgx", one, {{"software.nccl.p2p", "off"}}, 0.03, 9).front();
  std::ifstream in(off);
  const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  in.close();
  const auto healthy = off + ".healthy";
  for (const auto& path : {off, healthy}) std::ofstream(path) << "NCCL_P2P_DISABLE=1\n" << text;
  const auto alone = diagnose(topology, {off}), beside = diagnose(topology, {off}, with({healthy}));
  REQUIRE(alone);
  REQUIRE(beside);
  REQUIRE(!alone->findings.empty());
  CHECK(!alone->findings.front().words.empty());
  CHECK(beside->is_healthy);
}

TEST_CASE("beside a run on bare metal a VM is expected to take longer by what it costs in the forecast") {
  const auto& guests = clusters().back();
  REQUIRE(guests.name == "guests");  // VMs that do not see the PCIe tree: GPUDirect is off in them
  auto bare = guests, shown = guests;
  bare.name = "bare";
  const auto at = bare.yaml.find(", virtualization:");
  bare.yaml.erase(at, bare.yaml.find("}}]", at) + 1 - at);
  shown.name = "shown";
  shown.yaml.insert(shown.yaml.find("ats: on"), "guest_topology: injected, ");
  const auto vm_file = write_cluster(guests), bare_file = write_cluster(bare), shown_file = write_cluster(shown);
  std::mt19937_64 random(8);
  auto truth = biased("vm", random);
  const auto in_vm = plant(logs_of(guests, vm_file), guests, no_cause(), random, truth);
  truth.name = "bare";
  const auto on_metal = plant(logs_of(bare, bare_file), bare, no_cause(), random, truth);
  REQUIRE(in_vm);
  REQUIRE(on_metal);
  DoctorOptions options;
  options.bare_metal_baselines = on_metal->paths;
  const auto added = diagnose(vm_file, in_vm->paths, options);
  REQUIRE_MESSAGE(added, (added ? "" : render(added.error())));
  CHECK(added->is_healthy);
  CHECK(added->error_healthy < 0.06);
  REQUIRE(added->virtualization);
  CHECK(added->virtualization->is_measured);
  CHECK(added->virtualization->share > 0.08);
  // Taken for runs of the VM they say that it is slow, which it is.
  const auto compared = diagnose(vm_file, in_vm->paths, with(on_metal->paths));
  REQUIRE(compared);
  CHECK(!compared->is_healthy);
  REQUIRE(compared->virtualization);
  CHECK_FALSE(compared->virtualization->is_measured);
  // Described without what slows it, the VM's difference is explained by that.
  const auto told = diagnose(shown_file, in_vm->paths, options);
  REQUIRE(told);
  REQUIRE(!told->findings.empty());
  auto names = told->findings.front().alike_causes;
  names.push_back(told->findings.front().cause);
  CHECK(std::ranges::count(names, "hidden-topology") == 1);
  // A cluster without VMs has no bare metal below.
  const auto refused = diagnose(bare_file, on_metal->paths, options);
  REQUIRE(!refused);
  CHECK(render(refused.error()).find("--baseline") != std::string::npos);
}
