// SPDX-License-Identifier: Apache-2.0
// Where a release lets LL128 be chosen: on GPUs that it was tested with.
#include "nccl/channels.hpp"

#include <fmt/format.h>

#include <string>
#include <vector>

#include "tests/unit/nccl/hosts.hpp"

using namespace fabricast;
using namespace fabricast::models;
using namespace fabricast::models::nccl;
using test::cluster_of;
using test::HcaAt;
using test::PairedHost;
using test::Setup;

namespace {

/// Two hosts with one GPU beside their HCA.
bool allows(const std::string& gpu, const std::string& release) {
  const PairedHost host{.gpus = 1, .hcas = {{"connectx-7-ndr", "sw0"}}, .gpu = gpu, .has_nvswitch = false};
  return test::graph_of(Setup(cluster_of(host, 2, fmt::format("{{version: \"{}\"}}", release)))).ll128_allowed;
}

}  // namespace

TEST_CASE("LL128 is for the GPUs that a release was tested with, from 2.27 on for all since Volta") {
  const std::vector<std::string> releases{"2.4",  "2.5",  "2.6",  "2.7",  "2.8",  "2.9",  "2.10", "2.11", "2.12",
                                          "2.13", "2.14", "2.15", "2.16", "2.17", "2.18", "2.19", "2.20", "2.21",
                                          "2.22", "2.23", "2.24", "2.25", "2.26", "2.27", "2.28", "2.30"};
  struct First {
    const char* gpu;
    int minor;
  };
  for (const auto& one : {First{"v100-sxm2-32", 4}, First{"a100-sxm4-40", 7}, First{"h100-sxm", 15},
                          First{"b200-sxm", 25}, First{"rtx-pro-6000-server", 25}, First{"a40", 27}, First{"l40s", 27},
                          First{"t4", 27}, First{"b300-sxm", 27}, First{"p100-sxm2", 99}}) {
    for (const auto& release : releases) {
      CAPTURE(one.gpu);
      CAPTURE(release);
      CHECK(allows(one.gpu, release) == (std::stoi(release.substr(2)) >= one.minor));
    }
  }
}

TEST_CASE("hosts with unlike GPUs have no LL128") {
  const auto mixed = [](const std::string& second) {
    return test::graph_of(
               Setup(test::scenario(
                   "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  "
                   "hosts:\n"
                   "    - {name: a, host: {processor: xeon-sapphirerapids, devices: [{name: sw0, kind: pcie_switch, "
                   "below: "
                   "socket0}, "
                   "{name: gpu0, type: h100-sxm, below: sw0}, {name: hca0, type: connectx-7-ndr, below: sw0}]}}\n"
                   "    - {name: b, host: {processor: xeon-sapphirerapids, devices: [{name: sw0, kind: pcie_switch, "
                   "below: "
                   "socket0}, "
                   "{name: gpu0, type: " +
                   second +
                   ", below: sw0}, {name: hca0, type: connectx-7-ndr, below: sw0}]}}\n"
                   "  fabric: {single_switch: {switch: qm9700}}\nworkload: {benchmark: all_reduce_perf}\n")))
        .ll128_allowed;
  };
  CHECK(mixed("h200-sxm"));
  CHECK_FALSE(mixed("a100-sxm4-80"));
}
