// SPDX-License-Identifier: Apache-2.0
// Hosts of unlike GPUs and adapters in one job: who is listed first changes nothing, the slowest sets the pace.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/random.hpp"
#include "tests/support/refusals.hpp"

using namespace fabricast;

namespace {

struct Kind {
  std::string name, gpu, hca;
  int count = 1;
  std::string processor = "epyc-milan", virtualization = "bare-metal";
};

std::string host_of(const Kind& kind) {
  std::string devices;
  for (int i = 0; i < 2; ++i)
    devices +=
        fmt::format("{0}{{name: gpu{1}, type: {2}, below: socket{1}}}, {{name: hca{1}, type: {3}, below: socket{1}}}",
                    i == 0 ? "" : ", ", i, kind.gpu, kind.hca);
  return fmt::format("{{name: {}, count: {}, host: {{processor: {}, devices: [{}]}}, virtualization: {}}}", kind.name,
                     kind.count, kind.processor, devices, kind.virtualization);
}

LoadedScenario cluster(const std::vector<Kind>& kinds, const std::string& workload) {
  std::string hosts;
  for (const auto& kind : kinds) hosts += (hosts.empty() ? "" : ", ") + host_of(kind);
  return test::scenario(fmt::format(
      "schema: fabricast/scenario/1\nname: t\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: [{}]\n"
      "  fabric: {{single_switch: {{switch: qm8700}}}}\nworkload: {{{}}}\n",
      hosts, workload));
}

std::vector<Duration> times(const std::vector<Kind>& kinds, const std::string& workload) {
  std::vector<Duration> out;
  const auto prediction = test::run(cluster(kinds, workload));
  for (const auto& row : prediction.workloads[0].rows) out.push_back(row.time);
  return out;
}

const std::vector<std::string> k_gpus{"v100-sxm2-32", "a100-sxm4-40", "h100-pcie", "p100-sxm2"};
const std::vector<std::string> k_hcas{"connectx-6-hdr", "connectx-5-edr", "connectx-6-hdr100"};

const std::string k_training =
    "benchmark: training, network: resnet-50, precision: fp32, batch_per_gpu: 32, parallel: ";

const std::vector<std::string> k_workloads{
    "benchmark: all_reduce_perf, sizes: [8 B, 64 KiB, 64 MiB]",
    "benchmark: all_gather_perf, sizes: [64 KiB, 64 MiB]",
    "benchmark: broadcast_perf, sizes: [64 KiB, 64 MiB]",
    "benchmark: alltoall_perf, sizes: [8 B, 64 MiB]",
    "benchmark: osu_allreduce, buffers: host, ranks_per_host: 2, sizes: [8 B, 64 KiB, 4 MiB]",
    "benchmark: osu_allreduce, buffers: device, sizes: [8 B, 64 KiB, 4 MiB]",
    k_training + "{data: ddp}",
    k_training + "{data: horovod}"};

}  // namespace

TEST_CASE("in which order two hosts of unlike GPUs and EPYC Milan are listed changes no time") {
  test::Random random(3);
  for (const auto& workload : k_workloads) {
    for (int i = 0; i < static_cast<int>(test::draws(6)); ++i) {
      const Kind one{"a", random.pick(k_gpus), random.pick(k_hcas)}, other{"b", random.pick(k_gpus), one.hca};
      CAPTURE(workload);
      CAPTURE(one.gpu);
      CAPTURE(other.gpu);
      CAPTURE(one.hca);
      const auto first = times({one, other}, workload), last = times({other, one}, workload);
      REQUIRE(first.size() == last.size());
      for (std::size_t row = 0; row < first.size(); ++row) CHECK(first[row].us() == test::approx(last[row].us()));
    }
  }
}

TEST_CASE("in which order two hosts of unlike processors, in VMs or not, are listed changes no time") {
  const std::vector<std::string> processors{"epyc-milan", "epyc-rome", "xeon-skylake", "xeon-sapphirerapids",
                                            "xeon-broadwell"};
  const std::vector<std::string> virtualizations{"bare-metal", "passthrough", "sr-iov", "tcp"};
  // Of send and receive and of a root's messages the sender is another one.
  const std::vector<std::string> workloads{"benchmark: all_reduce_perf, sizes: [8 B, 4 KiB, 64 KiB, 64 MiB]",
                                           "benchmark: all_gather_perf, sizes: [8 B, 64 KiB, 64 MiB]",
                                           "benchmark: reduce_scatter_perf, sizes: [8 B, 64 KiB, 64 MiB]",
                                           "benchmark: osu_latency, buffers: host, sizes: [8 B, 4 MiB]",
                                           "benchmark: osu_latency, buffers: device, sizes: [8 B, 4 MiB]",
                                           "benchmark: osu_latency, buffers: [host, device], sizes: [8 B, 4 MiB]",
                                           "benchmark: sockperf, sizes: [64 B]",
                                           k_training + "{data: ddp}",
                                           k_training + "{data: horovod}"};
  test::Random random(4);
  for (const auto& workload : workloads) {
    for (int i = 0; i < static_cast<int>(test::draws(6)); ++i) {
      Kind one{"a", random.pick(k_gpus), random.pick(k_hcas)}, other{"b", random.pick(k_gpus), one.hca};
      one.processor = random.pick(processors);
      other.processor = random.pick(processors);
      other.virtualization = random.pick(virtualizations);
      CAPTURE(workload);
      CAPTURE(host_of(one));
      CAPTURE(host_of(other));
      const bool is_sided = workload.find("[host, device]") != std::string::npos;
      if (is_sided) other = {"b", one.gpu, one.hca, 1, one.processor, one.virtualization};
      const auto first = times({one, other}, workload), last = times({other, one}, workload);
      REQUIRE(first.size() == last.size());
      for (std::size_t row = 0; row < first.size(); ++row) CHECK(first[row].us() == test::approx(last[row].us()));
    }
  }
}

TEST_CASE("a ping-pong between unlike places of equal hosts takes the mean of both directions") {
  // GPU 1 hangs on the other socket than the one adapter of its host.
  const auto time = [](const std::string& first, const std::string& second) {
    const auto loaded = test::scenario(
        fmt::format("schema: fabricast/scenario/1\nname: t\ntopology:\n  schema: fabricast/topology/1\n  name: t\n"
                    "  hosts: [{{name: n, count: 2, host: {{processor: xeon-broadwell, devices: [{{name: gpu0, type: "
                    "p100-pcie-16,\n"
                    "    below: socket0}}, {{name: gpu1, type: p100-pcie-16, below: socket1}}, {{name: hca0, type: "
                    "connectx-5-edr,\n"
                    "    below: socket0}}]}}}}]\n  fabric: {{single_switch: {{switch: qm8700}}}}\n"
                    "workload: {{benchmark: osu_latency, buffers: device, devices: [{}, {}], sizes: [8 KiB]}}\n",
                    first, second));
    return test::run(loaded).workloads[0].rows[0].time;
  };
  const auto mixed = time("n0.gpu0", "n1.gpu1");
  CHECK(mixed == time("n0.gpu1", "n1.gpu0"));
  CHECK(mixed > time("n0.gpu0", "n1.gpu0"));
  CHECK(mixed < time("n0.gpu1", "n1.gpu1"));
}

TEST_CASE("a training step waits for the GPUs in VMs, who is first or last") {
  const Kind bare{"bare", "a100-sxm4-40", "connectx-6-hdr"};
  Kind inside = bare;
  inside.name = "inside";
  inside.virtualization = "passthrough";
  const std::string alone =
      "benchmark: training, network: resnet-50, precision: fp32, batch_per_gpu: 32, gpus: 1, "
      "parallel: {data: ddp}";
  const auto slow = times({inside}, alone)[0], fast = times({bare}, alone)[0];
  REQUIRE(slow > fast);
  for (const auto& order : {std::vector{bare, inside}, std::vector{inside, bare}}) {
    const auto prediction = test::run(cluster(order, k_training + "{data: ddp}"));
    CHECK(prediction.workloads[0].rows[0].time > slow);
    const auto& said = prediction.workloads[0].assumptions;
    CHECK(std::ranges::find(said, "the others wait for GPUs in VMs (passthrough)") != said.end());
  }
}

TEST_CASE("a training step of unlike GPUs waits for the slowest, who is first or last") {
  const Kind old{"old", "v100-sxm2-32", "connectx-6-hdr"}, young{"young", "h100-pcie", "connectx-6-hdr"};
  const Kind all_old{"old", old.gpu, old.hca, 2}, all_young{"young", young.gpu, young.hca, 2};
  const std::string sharded =
      "benchmark: training, network: gpt-124m, precision: fp16, batch_per_gpu: 4, parallel: {data: fsdp}";
  for (const auto& step : {k_training + "{data: ddp}", k_training + "{data: horovod}", sharded}) {
    CAPTURE(step);
    const auto slow = times({all_old}, step)[0], fast = times({all_young}, step)[0];
    REQUIRE(slow > fast);
    for (const auto& order : {std::vector{old, young}, std::vector{young, old}}) {
      const auto mixed = times(order, step)[0];
      CHECK(mixed.us() > 0.99 * slow.us());
      CHECK(mixed.us() < 1.01 * slow.us());
    }
  }
  const auto said = test::run(cluster({young, old}, k_training + "{data: ddp}")).workloads[0].assumptions;
  CHECK(std::ranges::find(said, "the others wait for v100-sxm2-32, the slowest of the GPUs") != said.end());
}

TEST_CASE("the GPU of least memory decides whether a step fits") {
  const std::string wide =
      "benchmark: training, network: gpt-1.3b, precision: fp16, batch_per_gpu: 1, parallel: {data: ddp}";
  const Kind large{"large", "h100-pcie", "connectx-6-hdr"}, small{"small", "p100-sxm2", "connectx-6-hdr"};
  for (const auto& order : {std::vector{large, small}, std::vector{small, large}}) {
    const auto loaded = cluster(order, wide);
    const auto refused = simulate(loaded.topology, loaded.scenario, loaded.parameters);
    REQUIRE_FALSE(refused.has_value());
    CHECK(test::shown(refused.error()).find("a p100-sxm2 has") != std::string::npos);
  }
  const Kind both{"large", large.gpu, large.hca, 2};
  const auto fits = cluster({both}, wide);
  CHECK(simulate(fits.topology, fits.scenario, fits.parameters).has_value());
}

TEST_CASE("NCCL plans for the least capable GPU and says so") {
  const Kind old{"old", "v100-sxm2-32", "connectx-6-hdr"}, young{"young", "h100-pcie", "connectx-6-hdr"};
  const auto prediction = test::run(cluster({young, old}, "benchmark: all_reduce_perf, sizes: [64 KiB]"));
  const auto& said = prediction.workloads[0].stand_ins;
  CHECK(std::ranges::any_of(said,
                            [](const std::string& line) { return line.starts_with("h100-pcie beside v100-sxm2-32"); }));
  const Kind alike{"young", young.gpu, young.hca, 2};
  const auto of_alike = test::run(cluster({alike}, "benchmark: all_reduce_perf, sizes: [64 KiB]"));
  for (const auto& line : of_alike.workloads[0].stand_ins) CHECK(line.find(" beside ") == std::string::npos);
}

namespace {

/// NCCL on hosts of catalogue types, one each, in this order.
WorkloadPrediction on_types(const std::vector<std::string>& types, const std::string& fabric,
                            const std::string& workload, const std::string& nccl) {
  std::string hosts;
  for (std::size_t i = 0; i < types.size(); ++i)
    hosts += fmt::format("{}{{name: host{}, type: {}}}", i > 0 ? ", " : "", i, types[i]);
  return test::run(test::scenario(fmt::format(
                       "schema: fabricast/scenario/1\nname: t\ntopology:\n  schema: fabricast/topology/1\n  name: t\n"
                       "  hosts: [{}]\n  fabric: {{single_switch: {{switch: {}}}}}\nsoftware: {{nccl: {{{}}}}}\n"
                       "workload: {{{}}}\n",
                       hosts, fabric, nccl, workload)))
      .workloads[0];
}

/// Rows of an all-reduce.
std::vector<Row> rows_of_types(const std::vector<std::string>& types, const std::string& fabric,
                               const std::string& sizes, const std::string& version = "2.28") {
  return on_types(types, fabric, "benchmark: all_reduce_perf, sizes: [" + sizes + "]", "version: \"" + version + "\"")
      .rows;
}

}  // namespace

TEST_CASE("a tree among hosts of unlike numbers of GPUs waits for the longest chain, whichever host comes first") {
  std::vector<std::string> types{"gb200-nvl4-tray", "hgx-h100-8", "quad-gh200-ndr200"};
  const auto first = rows_of_types(types, "qm9700", "8 B").front();
  CHECK(first.algorithm == "tree");
  const auto in_hosts = std::ranges::find_if(
      first.terms, [](const Term& term) { return term.name.find("hops over nvlink") != std::string::npos; });
  REQUIRE(in_hosts != first.terms.end());
  CHECK(in_hosts->name == "14 hops over nvlink");
  while (std::ranges::next_permutation(types).found)
    CHECK(rows_of_types(types, "qm9700", "8 B").front().time.us() == test::approx(first.time.us()).epsilon(0.03));
}

TEST_CASE("a host of one GPU listed first does not give hosts without NVLink LL128") {
  const std::string many = "server-2s-sapphirerapids-8l40s",
                    one = many + ", remove: [gpu1, gpu2, gpu3, gpu4, gpu5, gpu6, gpu7]";
  const auto first = rows_of_types({one, many}, "sn5600", "64 KiB, 1 MiB, 4 MiB");
  const auto last = rows_of_types({many, one}, "sn5600", "64 KiB, 1 MiB, 4 MiB");
  for (std::size_t row = 0; row < first.size(); ++row) {
    CHECK(first[row].protocol != "ll128");
    CHECK(first[row].protocol == last[row].protocol);
  }
}

TEST_CASE("Hopper beside Blackwell has LL128 from 2.30 on") {
  const std::vector<std::string> types{"hgx-h100-8", "dgx-b200"};
  CHECK(rows_of_types(types, "qm9700", "1 MiB", "2.29").front().protocol != "ll128");
  CHECK(rows_of_types(types, "qm9700", "1 MiB", "2.30").front().protocol == "ll128");
}

TEST_CASE("in which order two hosts of unlike numbers of GPUs are listed changes no time") {
  const std::vector<std::string> types{"server-2s-rome-1a100",
                                       "server-2s-rome-2a100",
                                       "server-2s-rome-8a100",
                                       "server-2s-skylake-1v100",
                                       "server-2s-skylake-4v100",
                                       "server-2s-broadwell-2p100",
                                       "server-2s-broadwell-4p100",
                                       "dgx-1-p100",
                                       "dgx-2",
                                       "hgx-h100-8",
                                       "abci-a100",
                                       "kvm-a100-2hdr"};
  test::Random random(5);
  std::vector<std::pair<std::string, std::string>> pairs{{"server-2s-rome-1a100", "server-2s-rome-8a100"},
                                                         {"dgx-2", "server-2s-broadwell-4p100"},
                                                         {"dgx-1-p100", "server-2s-rome-2a100"},
                                                         {"server-2s-rome-1a100", "server-2s-skylake-4v100"}};
  for (int i = 0; i < static_cast<int>(test::draws(12)); ++i)
    pairs.emplace_back(random.pick(types), random.pick(types));
  for (const auto& pair : pairs) {
    for (const std::string collective :
         {"all_reduce_perf", "all_gather_perf", "reduce_scatter_perf", "alltoall_perf", "sendrecv_perf"}) {
      const auto version = random.pick<std::string>({"2.8", "2.18", "2.28"});
      const auto rows = [&](const std::vector<std::string>& hosts) {
        return on_types(hosts, "q3400", "benchmark: " + collective + ", sizes: [8 B, 256 KiB, 2 MiB, 1 GiB]",
                        "version: \"" + version + "\"")
            .rows;
      };
      CAPTURE(pair.first);
      CAPTURE(pair.second);
      CAPTURE(collective);
      CAPTURE(version);
      const auto first = rows({pair.first, pair.second}), last = rows({pair.second, pair.first});
      for (std::size_t row = 0; row < first.size(); ++row) {
        CAPTURE(first[row].size.value);
        CHECK(first[row].time.us() == test::approx(last[row].time.us()).epsilon(0.01));
      }
    }
  }
}

TEST_CASE("a host of one GPU listed first does not hide what a setting changes in the other") {
  const auto with = [](const std::vector<std::string>& types, const std::string& nccl) {
    return on_types(types, "q3400", "benchmark: all_reduce_perf, sizes: [64 MiB]", nccl);
  };
  for (const auto& one_case : std::vector<std::pair<std::string, std::array<std::string, 2>>>{
           {"server-2s-rome-8a100", {"p2p: on", "p2p: off"}},
           {"server-2s-rome-8a100", {"shm: on", "shm: off"}},
           {"hgx-h100-8", {"gdr_level: pix", "gdr_level: sys"}},
           {"hgx-h100-8", {"pxn: on", "pxn: off"}}}) {
    const auto& type = one_case.first;
    const auto& keys = one_case.second;
    CAPTURE(type);
    for (const auto& types : {std::vector<std::string>{"server-2s-rome-1a100", type},
                              std::vector<std::string>{type, "server-2s-rome-1a100"}}) {
      const auto one = with(types, keys[0]), other = with(types, keys[1]);
      CAPTURE(keys[0]);
      CAPTURE(types[0]);
      const auto key = keys[0].substr(0, keys[0].find(':'));
      const bool is_idle = std::ranges::any_of(other.assumptions, [&](const std::string& line) {
        return line.starts_with("software.nccl." + key + " changes no time");
      });
      if (is_idle) CHECK(one.rows[0].time == other.rows[0].time);
    }
  }
}

TEST_CASE("why GPUDirect RDMA is not used, and adapters that stay idle, are said of any host, whichever comes first") {
  for (const auto& types : {std::vector<std::string>{"hgx-h100-8", "server-2s-rome-1a100"},
                            std::vector<std::string>{"server-2s-rome-1a100", "hgx-h100-8"}}) {
    const auto result = on_types(types, "q3400", "benchmark: all_reduce_perf, sizes: [1 GiB]", "");
    CAPTURE(types[0]);
    const auto used = [&](const std::string& name) {
      return *std::ranges::find(result.settings, name, &GivenUsed::setting);
    };
    CHECK(used("GPUDirect RDMA between hosts").reason.find("are NODE apart") != std::string::npos);
    CHECK(used("PXN").used.starts_with("rings"));
    CHECK(
        std::ranges::any_of(result.assumptions, [](const auto& line) { return line.starts_with("1 of the 8 HCAs"); }));
  }
}

TEST_CASE("adapters of unlike network plugins in one communicator are refused, over TCP they are not") {
  const auto refusal = [](const std::vector<std::string>& types, const std::string& fabric,
                          const std::string& software) {
    return test::refusal_of(
        fmt::format("schema: fabricast/scenario/1\nname: t\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  "
                    "hosts: [{{name: "
                    "a, type: {}}}, {{name: b, type: {}}}]\n  fabric: {{single_switch: {{switch: {}}}}}\nsoftware: "
                    "{{{}}}\nworkload: "
                    "{{benchmark: all_reduce_perf, sizes: [1 MiB]}}\n",
                    types[0], types[1], fabric, software));
  };
  CHECK(
      refusal({"aws-p5", "aws-p4d"}, "aws-srd-400g", "").find("'efa-100g-gdr' and 'efa-4x100g' in one communicator") !=
      std::string::npos);
  CHECK(refusal({"aws-p3dn", "aws-p4d"}, "aws-srd", "").find("in one communicator") != std::string::npos);
  CHECK(refusal({"google-a3-mega", "google-n1-v100"}, "google-vpc", "").find("in one communicator") !=
        std::string::npos);
  CHECK(refusal({"aws-p3dn", "aws-p4d"}, "aws-srd", "transport: tcp").empty());
  CHECK(refusal({"aws-p5", "aws-p5en"}, "aws-srd-400g", "").empty());
  CHECK(refusal({"hgx-h100-8", "dgx-a100"}, "qm9700", "").empty());
}
