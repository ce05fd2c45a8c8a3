// SPDX-License-Identifier: Apache-2.0
// Virtualization costs bare metal nothing: no parameter of it is read, and a host that says `bare-metal` gives the same
// bytes as one that says nothing. Shipped scenarios of every planner, and random hosts.
#include <algorithm>
#include <set>

#include "report/report.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;

namespace {

const std::vector<std::string> k_of_virtualization{"virtualization.", "support.", "esxi.",
                                                   "vgpu.",           "mig.",     "mig_placement."};

bool is_of_virtualization(const std::string& name) {
  return std::any_of(k_of_virtualization.begin(), k_of_virtualization.end(),
                     [&](const std::string& prefix) { return name.rfind(prefix, 0) == 0; });
}

struct Ran {
  std::string text;
  std::set<std::string> read;  ///< parameters of virtualization
};

Ran ran(LoadedScenario loaded) {
  std::set<std::string, std::less<>> names;
  loaded.parameters.collect_reads(&names);
  const auto prediction = test::run(loaded);
  loaded.parameters.collect_reads(nullptr);
  Ran out;
  for (const auto& name : names)
    if (is_of_virtualization(name)) out.read.insert(name);
  const report::Provenance provenance;
  const report::Document document{prediction, loaded.scenario, provenance};
  out.text = report::text(document) + report::json(document) + report::csv(document);
  return out;
}

void check_nothing_is_read(const std::string& what, const Ran& plain, const Ran& worded) {
  CAPTURE(what);
  for (const auto& name : plain.read) FAIL_CHECK(name << " is read on bare metal");
  CHECK(plain.text == worded.text);
}

}  // namespace

TEST_CASE("shipped scenarios of bare metal read no parameter of virtualization, whether they say so or not") {
  for (const auto* name :
       {"osu-latency-fdr-gpudirect.yaml", "osu-bw-fdr-gpudirect.yaml", "osu-latency-fdr-no-gpudirect.yaml",
        "allreduce-dgx-a100-pair.yaml", "allreduce-roce-sn2700.yaml", "allreduce-irregular.yaml",
        "osu-allreduce-dragonfly.yaml", "two-jobs.yaml", "training-horovod-16p100.yaml", "traffic-incast-roce.yaml",
        "traffic-victim-pfc.yaml", "validation/virtual/tcp-25g.yaml"}) {
    const bool is_worded = std::string(name).find("virtual") != std::string::npos;
    const std::vector<Setting> bare{{"virtualization", "bare-metal"}};
    check_nothing_is_read(name, ran(test::shipped(name, is_worded ? bare : std::vector<Setting>{})),
                          ran(test::shipped(name, bare)));
  }
}

TEST_CASE("random bare hosts read no parameter of virtualization") {
  for (std::uint64_t seed = 0; seed < test::draws(30); ++seed) {
    CAPTURE(seed);
    test::Random random(seed);
    const auto host = random.pick<std::string>(
        {"hgx-h100-8", "dgx-a100", "server-2s-broadwell-4p100", "dgx-1-v100", "server-2s-rome-4a100"});
    const auto work = random.pick<std::string>(
        {"all_reduce_perf, sizes: [8 B, 64 MiB]", "alltoall_perf, sizes: [1 MiB]",
         "osu_allreduce, buffers: device, sizes: [8 B, 1 MiB]", "osu_bcast, buffers: device, sizes: [64 KiB]",
         "gpu_step, compute: 20 ms, sizes: [1 MiB]", "host_copies, gpus: 2, direction: to_peer, sizes: [64 MiB]"});
    const auto text = [&](const std::string& guest) {
      return "schema: fabricast/scenario/1\nname: law\ntopology:\n  schema: fabricast/topology/1\n  name: law\n  "
             "hosts: [{name: n, type: " +
             host + guest + "}]\nworkload: {benchmark: " + work + "}\n";
    };
    check_nothing_is_read(host + ", " + work, ran(test::scenario(text(""))),
                          ran(test::scenario(text(", virtualization: bare-metal"))));
  }
}
