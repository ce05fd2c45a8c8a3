// SPDX-License-Identifier: Apache-2.0
#include "nccl/ranks.hpp"

#include "tests/unit/nccl/hosts.hpp"

using namespace fabricast;
using namespace fabricast::models::nccl;
using test::beside_gpus;
using test::cluster_of;
using test::Setup;

namespace {

std::vector<std::string> names(const Setup& setup, const Workload& workload) {
  const auto ranks = choose_ranks(setup.context, workload);
  if (!ranks) return {test::shown(ranks.error())};
  std::vector<std::string> out;
  for (const auto rank : *ranks) out.push_back(setup.loaded->topology.device(rank).name);
  return out;
}

Setup three_hosts() { return Setup(cluster_of({.gpus = 4, .hcas = beside_gpus("connectx-7-ndr", 4)}, 3)); }

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("ranks fill host after host, all GPUs where no number is given") {
  const auto setup = three_hosts();
  Workload workload;
  CHECK(names(setup, workload).size() == 12);
  workload.gpus = 5;
  CHECK(names(setup, workload) == Names{"n0.gpu0", "n0.gpu1", "n0.gpu2", "n0.gpu3", "n1.gpu0"});
  workload.gpus = 12;
  CHECK(names(setup, workload).back() == "n2.gpu3");
  workload.gpus = 13;
  CHECK(names(setup, workload)[0].find("13 GPUs asked for, topology 't' has 12") != std::string::npos);
}

TEST_CASE("so many ranks per host, and no more hosts than needed") {
  const auto setup = three_hosts();
  Workload workload;
  workload.gpus = 3;
  workload.ranks_per_host = 2;
  CHECK(names(setup, workload) == Names{"n0.gpu0", "n0.gpu1", "n1.gpu0"});
  workload.gpus = 6;
  CHECK(names(setup, workload).back() == "n2.gpu1");
  workload.gpus = 7;
  CHECK(names(setup, workload)[0].find("7 GPUs with 2 per host need more hosts than the 3 there are") !=
        std::string::npos);
}

TEST_CASE("GPUs by name keep their order, other names are faults, all of them") {
  const auto setup = three_hosts();
  Workload workload;
  workload.devices = {"n1.gpu2", "n0.gpu0"};
  CHECK(names(setup, workload) == Names{"n1.gpu2", "n0.gpu0"});
  workload.devices = {"n1.gpu9", "n0.hca0"};
  const auto text = names(setup, workload)[0];
  CHECK(text.find("'n1.gpu9' is not a GPU of topology 't'") != std::string::npos);
  CHECK(text.find("'n0.hca0' is not a GPU of topology 't'") != std::string::npos);
}

TEST_CASE("every host must reach the next, the last the first") {
  const auto cabled = [](const std::string& cables) {
    return Setup(
        cluster_of({.gpus = 2, .hcas = {{"connectx-7-ndr", "sw0"}}}, 3, "{}", "{benchmark: all_reduce_perf}",
                   "list: {switches: [{name: a, type: qm9700}, {name: b, type: qm9700}], cables: [" + cables + "]}"));
  };
  const auto whole = cabled("{from: n0.hca0, to: a}, {from: n1.hca0, to: a}, {from: n2.hca0, to: a}");
  const auto all = whole.loaded->topology.devices(DeviceKind::gpu);
  CHECK(unreachable_hosts(whole.context, {}, all).empty());
  const auto apart = cabled("{from: n0.hca0, to: a}, {from: n1.hca0, to: a}, {from: n2.hca0, to: b}");
  const auto faults = unreachable_hosts(apart.context, {}, apart.loaded->topology.devices(DeviceKind::gpu));
  REQUIRE(faults.size() == 1);
  CHECK(test::shown(faults).find("no network path from host 'n1' to host 'n2'") != std::string::npos);
  CHECK(test::shown(faults).find("connect the HCAs of both in `fabric`") != std::string::npos);
  const Setup bare(
      cluster_of({.gpus = 2, .hcas = {}}, 2, "{}", "{benchmark: all_reduce_perf}", "single_switch: {switch: qm9700}"));
  CHECK(test::shown(unreachable_hosts(bare.context, {}, bare.loaded->topology.devices(DeviceKind::gpu)))
            .find("'n1' has no HCA: give it one") != std::string::npos);
  const auto first_two = apart.loaded->topology.devices(DeviceKind::gpu, 0);
  CHECK(unreachable_hosts(apart.context, {}, first_two).empty());  // one host needs no network
}
