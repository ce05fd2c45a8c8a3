// SPDX-License-Identifier: Apache-2.0
// What every cause does to the forecast of every cluster, against a kept table: id, place, times over healthy ones at a
// small, a middle and a large size. FABRICAST_UPDATE_GOLDEN=1 writes it anew.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "doctor/case.hpp"
#include "tests/unit/doctor/logs.hpp"

using namespace fabricast;

namespace {

constexpr const char* k_table = FABRICAST_SOURCE_DIR "/tests/unit/doctor/causes.txt";

struct Run {
  std::string name, topology, workload;
};

const std::vector<Run>& runs() {
  const auto rail = std::string("hosts: [{name: n, count: 2, type: dgx-a100}]\n") +
                    "fabric: {rail_optimized: {switch: qm8700, rails: 8}}\n";
  const auto leaves = std::string("hosts: [{name: n, count: 4, type: server-1v100-cx4-100g}]\n") +
                      "fabric: {leaf_spine: {switch: sn2700, leaf_ports: 4, spines: 1, lossless: {pfc: [3]}}}\n";
  static const std::vector<Run> all{
      {"rails, all-reduce", rail, "benchmark: all_reduce_perf"},
      {"rails, one host", rail, "benchmark: all_reduce_perf, gpus: 8"},
      {"rails, MPI between GPUs", rail, "benchmark: osu_bw, buffers: [device, device]"},
      {"cubes, all-reduce",
       "hosts: [{name: n, count: 2, type: dgx-1-v100}]\nfabric: {single_switch: {switch: sb7800}}\n",
       "benchmark: all_reduce_perf"},
      {"leaves, send and receive", leaves, "benchmark: sendrecv_perf"},
      {"leaves, MPI", leaves, "benchmark: osu_latency"},
      {"guests, all-reduce",
       "hosts: [{name: n, count: 2, type: kvm-a100-2hdr, virtualization: {mode: passthrough, hypervisor: kvm, ats: on, "
       "numa: on}}]\nfabric: {single_switch: {switch: qm8700}}\n",
       "benchmark: all_reduce_perf"},
      {"guests, all-to-all",
       "hosts: [{name: n, count: 2, type: kvm-a100-2hdr, virtualization: {mode: passthrough, hypervisor: kvm, ats: on, "
       "numa: on}}]\nfabric: {single_switch: {switch: qm8700}}\n",
       "benchmark: alltoall_perf"},
  };
  return all;
}

doctor::Case case_of(const Run& run, std::vector<Bytes>& sizes) {
  const auto path =
      std::filesystem::temp_directory_path() / fmt::format("fabricast-causes-{}.yaml", static_cast<int>(getpid()));
  std::ofstream(path) << "schema: fabricast/topology/1\nname: causes\n" << run.topology;
  return test::case_of_text(
      fmt::format("schema: fabricast/scenario/1\nname: s\ntopology: \"{}\"\nworkload: {{{}, sizes: [64 B, 64 KiB, 64 "
                  "MiB]}}\n",
                  path.string(), run.workload),
      sizes);
}

std::string table() {
  std::string out;
  for (const auto& run : runs()) {
    std::vector<Bytes> sizes;
    const auto healthy = case_of(run, sizes);
    const auto times = doctor::forecast(healthy, sizes);
    REQUIRE(times.size() == 3);
    for (const bool tells_hosts : {false, true}) {
      out += fmt::format("{}{}\n", run.name, tells_hosts ? ", hosts told apart" : "");
      for (const auto& cause : doctor::causes_for(healthy, tells_hosts)) {
        auto sick = healthy;
        const bool applies = cause.apply(sick);
        if (tells_hosts && cause.host < 0) continue;  // as above
        out += fmt::format("  {} ({}, {}) host {} prior {:g}:", cause.id, cause.title, cause.place, cause.host,
                           cause.prior);
        const auto slower = applies ? doctor::forecast(sick, sizes) : std::vector<Duration>{};
        if (!applies) out += " does not apply";
        if (applies && slower.empty()) out += " no forecast";
        for (std::size_t i = 0; i < slower.size(); ++i)
          out += fmt::format(" {:.4g}", slower[i].seconds() / times[i].seconds());
        out += "\n";
      }
    }
  }
  return out;
}

}  // namespace

TEST_CASE("every cause changes the forecast of every cluster as it did") {
  const auto now = table();
  if (std::getenv("FABRICAST_UPDATE_GOLDEN") != nullptr) std::ofstream(k_table) << now;
  std::ifstream file(k_table);
  std::istringstream actual(now);
  std::string kept, line, run;
  while (std::getline(file, kept)) {
    if (kept.front() != ' ') run = kept;
    CAPTURE(run);
    REQUIRE(std::getline(actual, line));
    CHECK(line == kept);
  }
  CHECK_FALSE(std::getline(actual, line));
}
