// SPDX-License-Identifier: Apache-2.0
// A virtual host is never faster than the same host bare, whatever its type, hypervisor and way to devices. Where the
// guest does not see the PCIe tree libraries may choose ways that they do not on bare metal: then the result says that
// it does not see it.
#include <fmt/format.h>

#include <algorithm>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;
using test::Random;

namespace {

struct Kind {
  std::string host;
  std::string network;  ///< its switch
};

const std::vector<Kind> k_kinds{{"hgx-h100-8", "qm9700"},
                                {"dgx-a100", "qm8700"},
                                {"dgx-1-v100", "sb7800"},
                                {"leonardo-booster", "sb7800"},
                                {"server-2s-broadwell-4p100", "sb7800"},
                                {"server-2s-skylake-4v100", "sb7800"},
                                {"server-2s-icelake-4a40", "sn2700"},
                                {"server-2s-rome-4a100", "qm8700"},
                                {"server-2s-sapphirerapids-8l40s", "sn5600"},
                                {"server-epyc-a100-hdr-sys", "qm8700"},
                                {"server-2v100-cx3pro", "ethernet-40g-tor"},
                                {"oci-bm-gpu4-8", "sn2700"}};

const std::vector<std::string> k_workloads{
    "benchmark: all_reduce_perf, sizes: [8 B, 64 KiB, 1 MiB, 64 MiB]",
    "benchmark: broadcast_perf, sizes: [8 B, 64 KiB, 64 MiB]",
    "benchmark: alltoall_perf, sizes: [4 KiB, 1 MiB, 64 MiB]",
    "benchmark: sendrecv_perf, sizes: [8 B, 64 KiB, 64 MiB]",
    "benchmark: osu_latency, sizes: [8 B, 16 KiB, 4 MiB]",
    "benchmark: osu_latency, buffers: [device, device], sizes: [8 B, 16 KiB, 4 MiB]",
    "benchmark: osu_bibw, sizes: [8 B, 16 KiB, 4 MiB]",
    "benchmark: osu_multi_lat, ranks_per_host: 8, sizes: [8 B, 16 KiB, 4 MiB]",
    "benchmark: osu_allreduce, sizes: [8 B, 16 KiB, 4 MiB]",
    "benchmark: osu_bcast, buffers: device, sizes: [8 B, 1 KiB, 16 KiB, 256 KiB, 4 MiB]",
    "benchmark: osu_gather, ranks_per_host: 8, sizes: [8 B, 16 KiB, 256 KiB]",
};

Prediction forecast(const Kind& kind, const std::string& virtualization, const std::string& workload) {
  return test::run(test::scenario(fmt::format(
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n"
      "    - {{name: node, count: 2, type: {}}}\n  fabric: {{single_switch: {{switch: {}, cable: 5 m}}}}\n"
      "virtualization: {}\nworkload: {{{}}}\n",
      kind.host, kind.network, virtualization, workload)));
}

/// Least time of a row in VMs over its time on bare metal. Half a percent: means over ranks of a broadcast fall when
/// one rank that leaves later waits less in the next call.
double least_ratio(const Prediction& bare, const Prediction& guest) {
  const auto& rows = bare.workloads[0].rows;
  double least = 1.005;
  for (std::size_t r = 0; r < rows.size(); ++r)
    least = std::min(least, guest.workloads[0].rows[r].time.seconds() / rows[r].time.seconds());
  return least;
}

}  // namespace

TEST_CASE("a guest that sees the PCIe tree is never faster than its host bare") {
  for (std::uint64_t k = 0; k < test::draws(150); ++k) {
    Random random(k);
    const auto& kind = random.pick(k_kinds);
    const auto& workload = random.pick(k_workloads);
    const auto mode = random.pick<std::string>({"passthrough", "sr-iov"});
    const auto guest = fmt::format("{{mode: {}, hypervisor: {}, guest_topology: shown}}", mode,
                                   random.pick<std::string>({"esxi", "kvm", "xen"}));
    CAPTURE(kind.host);
    CAPTURE(guest);
    CAPTURE(workload);
    CHECK(least_ratio(forecast(kind, "bare-metal", workload), forecast(kind, guest, workload)) > 0.995);
  }
}

TEST_CASE("a guest that is faster than its host bare says that it does not see the PCIe tree") {
  for (std::uint64_t k = 0; k < test::draws(150); ++k) {
    Random random(1000 + k);
    const auto& kind = random.pick(k_kinds);
    const auto& workload = random.pick(k_workloads);
    const auto guest = random.pick<std::string>(
        {"passthrough", "sr-iov", "{mode: sr-iov, hypervisor: kvm}", "{mode: passthrough, hypervisor: xen}", "tcp"});
    CAPTURE(kind.host);
    CAPTURE(guest);
    CAPTURE(workload);
    const auto there = forecast(kind, guest, workload);
    if (least_ratio(forecast(kind, "bare-metal", workload), there) > 0.995) continue;
    CHECK(std::ranges::any_of(there.workloads[0].assumptions, [](const std::string& line) {
      return line.find("all devices look equally far (PHB)") != std::string::npos;
    }));
  }
}

TEST_CASE("peer requests that root complexes translate pass their own limits too") {
  const Kind kind{"leonardo-booster", "sb7800"};
  for (const auto* workload : {"benchmark: osu_bcast, buffers: device, sizes: [4 MiB]",
                               "benchmark: osu_bw, buffers: [device, device], sizes: [4 MiB]"}) {
    CAPTURE(workload);
    const std::string guest = "{mode: passthrough, hypervisor: kvm, guest_topology: shown}";
    CHECK(least_ratio(forecast(kind, "bare-metal", workload), forecast(kind, guest, workload)) >= 1);
  }
}

TEST_CASE("what virtual functions may carry bounds steps of training as it bounds operations") {
  const Kind kind{"server-2s-skylake-4v100", "sb7800"};
  const auto bound = [&](const std::string& limit) {
    const auto row = forecast(kind, "{mode: sr-iov, rate_limit: " + limit + "}",
                              "benchmark: training, network: resnet-50, batch_per_gpu: 8, gpus: 8")
                         .workloads[0]
                         .rows.at(0);
    CHECK(row.physical_bound <= row.time);
    return row.physical_bound.seconds();
  };
  CHECK(bound("2 Gb/s") == test::approx(5 * bound("10 Gb/s")).epsilon(1e-6));
  CHECK(bound("200 Gb/s") < bound("10 Gb/s"));
}
