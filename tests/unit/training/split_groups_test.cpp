// SPDX-License-Identifier: Apache-2.0
// Groups of GPUs that exchange at the same time share adapters, buses and links: what every host must send is never on
// the wire faster than its adapters are, whatever the split.
#include <algorithm>
#include <map>
#include <string>

#include "fabricast/models/planner.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/random.hpp"
#include "training/communicators.hpp"

using namespace fabricast;
using namespace fabricast::literals;
using models::training::Communicators;
using models::training::neighbourhoods_of;
using test::Random;

namespace {

constexpr double k_rate = 50e9;  ///< bytes/s of an adapter

/// Hosts of 8 H100 over NVSwitches, two of them and their adapters below a PCIe switch; every `8 / hcas`-th adapter.
std::string hosts_of(int hosts, int hcas, const std::string& fabric = "{single_switch: {switch: qm9700}}") {
  std::string removed;
  for (int h = 0; h < 8; ++h)
    if (h % (8 / hcas) != 0) removed += (removed.empty() ? "hca" : ", hca") + std::to_string(h);
  return "topology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n    - {name: n, count: " +
         std::to_string(hosts) + ", type: hgx-h100-8" + (removed.empty() ? "" : ", remove: [" + removed + "]") +
         "}\n  fabric: " + fabric + "\n";
}

/// A cluster and what planners look at.
struct Cluster {
  explicit Cluster(const std::string& topology_text)
      : loaded(test::scenario("schema: fabricast/scenario/1\nname: s\n" + topology_text +
                              "workload: {benchmark: all_reduce_perf}\n")),
        resources(loaded.topology),
        context{loaded.topology, loaded.scenario.software, loaded.parameters, resources, 1, true, false},
        gpus(loaded.topology.devices(DeviceKind::gpu)) {
    models::set_payload_shares(resources, loaded.parameters);
  }

  /// `groups` of `count` GPUs, every `stride`-th.
  [[nodiscard]] std::vector<std::vector<DeviceId>> groups(int groups, int stride, int count) const {
    std::vector<std::vector<DeviceId>> out;
    for (int g = 0; g < groups; ++g) {
      out.emplace_back();
      for (int i = 0; i < count; ++i)
        out.back().push_back(gpus[static_cast<std::size_t>(g / stride * stride * count + g % stride + i * stride)]);
    }
    return out;
  }
  [[nodiscard]] Communicators make(const std::vector<std::vector<DeviceId>>& groups) const {
    auto made = Communicators::make(context, Workload{}, groups, false);
    REQUIRE(made);
    return std::move(*made);
  }

  LoadedScenario loaded;
  models::Resources resources;
  models::PlanContext context;
  std::vector<DeviceId> gpus;
};

/// Bytes that a group must get into each host, by host.
std::map<int, double> received(const Topology& topology, const std::vector<DeviceId>& group, Benchmark operation,
                               double size) {
  std::map<int, int> counts;
  for (const auto gpu : group) ++counts[topology.host_of(gpu)];
  const auto n = static_cast<double>(group.size());
  std::map<int, double> out;
  for (const auto& [host, count] : counts) {
    const double far = n - count;
    if (operation == Benchmark::alltoall_perf) out[host] = count * far * size / n;
    if (operation == Benchmark::all_gather_perf || operation == Benchmark::reduce_scatter_perf)
      out[host] = size * (operation == Benchmark::all_gather_perf ? far : std::min<double>(count, far)) / n;
  }
  if (operation == Benchmark::sendrecv_perf)
    for (std::size_t i = 0; i < group.size(); ++i) {
      const int to = topology.host_of(group[(i + 1) % group.size()]);
      if (topology.host_of(group[i]) != to) out[to] += size;
    }
  return out;
}

/// Bytes that the busiest host must get.
double busiest(const Topology& topology, const std::vector<std::vector<DeviceId>>& groups, Benchmark operation,
               double size) {
  std::map<int, double> sums;
  for (const auto& group : groups)
    for (const auto& [host, bytes] : received(topology, group, operation, size)) sums[host] += bytes;
  double most = 0;
  for (const auto& [host, bytes] : sums) most = std::max(most, bytes);
  return most;
}

/// A step of a model that all GPUs hold as `parallel` says.
std::string step_of(const std::string& topology, const std::string& parallel, const std::string& network = "gpt-1.3b",
                    const std::string& more = "") {
  return "schema: fabricast/scenario/1\nname: s\n" + topology + "workload: {benchmark: training, network: " + network +
         ", precision: bf16, batch_per_gpu: 1, parallel: {" + parallel + "}" + more + "}\n";
}

Row row_of(const std::string& text) {
  return test::run(test::with_memory(test::scenario(text))).workloads.front().rows.front();
}

}  // namespace

TEST_CASE("groups that exchange at once never bring a host its bytes faster than its adapters can") {
  for (std::uint64_t seed = 0; seed < test::draws(60); ++seed) {
    CAPTURE(seed);
    Random random(seed);
    const int hosts = random.pick<int>({2, 4}), hcas = random.pick<int>({1, 2, 4, 8});
    const int stride = random.pick<int>({1, 2, 4, 8}), all = 8 * hosts;
    const int count = random.pick<int>({2, all / stride});
    const auto operation = random.pick<Benchmark>({Benchmark::all_gather_perf, Benchmark::reduce_scatter_perf,
                                                   Benchmark::alltoall_perf, Benchmark::sendrecv_perf});
    const Bytes size{std::int64_t{1} << (22 + random.next(8))};
    CAPTURE(hosts);
    CAPTURE(hcas);
    CAPTURE(stride);
    CAPTURE(count);
    CAPTURE(to_string(operation));
    CAPTURE(size.value);
    const Cluster cluster(hosts_of(hosts, hcas));
    const auto groups = cluster.groups(all / count, stride, count);
    const double most = busiest(cluster.loaded.topology, groups, operation, static_cast<double>(size.value));
    CHECK(cluster.make(groups).time_alone(operation, size).seconds() >= most / (hcas * k_rate));
  }
}

TEST_CASE("groups with an adapter for each of their GPUs take as long as one of them alone") {
  // Not all-to-alls: a GPU alone spreads its sends over both adapters of its PCIe switch.
  const Cluster cluster(hosts_of(4, 8));
  for (const int stride : {1, 8})
    for (const auto operation : {Benchmark::all_gather_perf, Benchmark::reduce_scatter_perf, Benchmark::all_reduce_perf,
                                 Benchmark::sendrecv_perf})
      for (const auto size : {1_KiB, 1_MiB, 256_MiB}) {
        const auto all = cluster.make(cluster.groups(8, stride, 4));
        CAPTURE(stride);
        CAPTURE(to_string(operation));
        CAPTURE(size.value);
        CHECK(all.time_alone(operation, size).us() ==
              test::approx(all.first().time_alone(operation, size).us()).epsilon(0.01));
      }
}

TEST_CASE("half of the adapters take twice as long where all groups go by adapters") {
  std::vector<double> times;
  for (const int hcas : {8, 4, 2, 1}) {
    const Cluster cluster(hosts_of(4, hcas));
    times.push_back(cluster.make(cluster.groups(8, 8, 4)).time_alone(Benchmark::all_gather_perf, Bytes{1 << 30}).us());
  }
  for (std::size_t i = 1; i < times.size(); ++i) {
    CHECK(times[i] > 1.9 * times[i - 1]);
    CHECK(times[i] < 2.2 * times[i - 1]);
  }
}

TEST_CASE("neighbourhoods that meet on no host share the links between switches") {
  // Host h sends to host h + 16, below another leaf; leaves have a quarter of their ports up.
  const std::string fabric = "{fat_tree: {switch: qm9700, tiers: 2, oversubscription: 4}}";
  const auto time = [&](const std::string& of, int hosts) {
    const Cluster cluster(hosts_of(hosts, 8, of));
    const auto groups = cluster.groups(4 * hosts, 4 * hosts, 2);
    const auto near = neighbourhoods_of(cluster.loaded.topology, groups);
    CHECK(near.size() == 1);
    CHECK(near.front().groups.size() == 8);
    CHECK(near.front().likes.size() == static_cast<std::size_t>(hosts / 2 - 1));
    return cluster.make(groups).time_alone(Benchmark::sendrecv_perf, 64_MiB).us();
  };
  CHECK(time(fabric, 32) >= 3.5 * time("{single_switch: {switch: qm9700}}", 4));
}

TEST_CASE("one neighbourhood of groups stands for those in equal places, and none for others") {
  const Cluster cluster(hosts_of(4, 8));
  const auto& topology = cluster.loaded.topology;
  // Four to a host in one group, then groups of both halves.
  auto groups = cluster.groups(8, 1, 4);
  CHECK(neighbourhoods_of(topology, groups).size() == 1);
  CHECK(neighbourhoods_of(topology, groups).front().groups.size() == 2);
  CHECK(neighbourhoods_of(topology, groups).front().likes.empty());
  groups.pop_back();
  const auto two = neighbourhoods_of(topology, groups);
  REQUIRE(two.size() == 2);
  CHECK(two[1].groups.size() == 1);
}

TEST_CASE("a split step never sends gradients and parameters faster than its adapters can") {
  for (std::uint64_t seed = 0; seed < test::draws(40); ++seed) {
    CAPTURE(seed);
    Random random(seed + 7000);
    const int hosts = random.pick<int>({2, 4}), hcas = random.pick<int>({1, 2, 4, 8});
    const int tensor = random.pick<int>({1, 2, 4, 8}), context = random.pick<int>({1, 2});
    const auto data = random.pick<std::string>({"zero1", "fsdp"});
    const auto parallel = "data: " + data + ", exchange: bf16, tensor: " + std::to_string(tensor) +
                          (tensor > 1 ? ", sequence: on" : "") + ", context: " + std::to_string(context);
    CAPTURE(hosts);
    CAPTURE(hcas);
    CAPTURE(parallel);
    const auto row = row_of(step_of(hosts_of(hosts, hcas), parallel));
    const double ranks = 8.0 * hosts / tensor;
    // A ring of n ranks brings each of them (n - 1) / n of what its group holds, and crosses into each host once.
    const double bytes = 2.0 * static_cast<double>(row.size.value) * tensor * (ranks - 8.0 / tensor) / ranks;
    CHECK(row.time.seconds() >= bytes / (hcas * k_rate));
  }
}

TEST_CASE("every kind of split is slower by one adapter than by eight, and never faster by fewer") {
  for (const std::string parallel :
       {"data: zero1, tensor: 8, sequence: on", "data: fsdp, tensor: 8, sequence: on", "data: ddp, tensor: 4",
        "data: zero1, tensor: 8, pipeline: 2, micro_batches: 4", "tensor: 4, context: 2, pipeline: 2",
        "data: zero1, tensor: 8, context: 2, sequence: on", "tensor: 16, sequence: on",
        "data: zero1, tensor: 4, context: 8, sequence: on",
        "data: zero1, tensor: 2, context: 8, context_exchange: all_to_all, sequence: on",
        "data: zero1, tensor: 2, pipeline: 4, interleave: 2, micro_batches: 4"}) {
    double before = 0, first = 0;
    for (const int hcas : {8, 4, 2, 1}) {
      CAPTURE(parallel);
      CAPTURE(hcas);
      const double time = row_of(step_of(hosts_of(4, hcas), parallel)).time.us();
      CHECK(time >= before * (1 - 1e-9));
      before = time;
      if (hcas == 8) first = time;
    }
    CHECK(before > 1.005 * first);
  }
}

TEST_CASE("experts that several GPUs share are slower by one adapter than by eight") {
  for (const std::string parallel : {"data: zero1, expert: 8, tensor: 2, expert_tensor: 2, sequence: on",
                                     "data: zero1, expert: 4, tensor: 4, expert_tensor: 1, sequence: on",
                                     "data: fsdp, expert: 8, tensor: 4, expert_tensor: 4, sequence: on"}) {
    CAPTURE(parallel);
    const double all = row_of(step_of(hosts_of(4, 8), parallel, "mixtral-8x7b")).time.us();
    const double one = row_of(step_of(hosts_of(4, 1), parallel, "mixtral-8x7b")).time.us();
    CHECK(one > 1.3 * all);
  }
}

TEST_CASE("a layer of several replicas waits for what all of them exchange") {
  const auto layer = [](int hcas) {
    return row_of(step_of(hosts_of(4, hcas), "tensor: 16", "llama3-8b", ", part: layer")).time.us();
  };
  CHECK(layer(1) > layer(4));
}

TEST_CASE("a result says which adapters all groups leave idle, and that exchanges inside layers meet other workloads") {
  const auto says = [](const std::string& text, const std::string& part) {
    const auto prediction = test::run(test::with_memory(test::scenario(text)));
    return std::ranges::any_of(prediction.workloads.front().assumptions,
                               [&](const auto& line) { return line.find(part) != std::string::npos; });
  };
  const std::string split = "tensor: 8, sequence: on", idle = "HCAs of n0 carry data",
                    met = "exchanges inside layers meet";
  CHECK_FALSE(says(step_of(hosts_of(4, 8), split), idle));
  CHECK_FALSE(says(step_of(hosts_of(4, 4), split), idle));
  CHECK_FALSE(says(step_of(hosts_of(4, 8), split), met));
  // A plain group of all GPUs, which speaks for itself.
  CHECK_FALSE(says(step_of(hosts_of(4, 8), "data: fsdp"), "at the same moment"));
  auto two = step_of(hosts_of(2, 8), "tensor: 8, sequence: on");
  const auto at = two.find("workload: {");
  two = two.substr(0, at) + "workloads:\n  - {name: a, " + two.substr(at + 11) +
        "  - {name: b, benchmark: ib_write_bw}\n";
  CHECK(says(two, met));
}

TEST_CASE("a step says whether its groups between hosts use GPUDirect RDMA, whichever they are") {
  for (const std::string parallel :
       {"data: zero1, tensor: 8", "tensor: 16", "tensor: 8, pipeline: 2, micro_batches: 2", "data: zero1, context: 16",
        "pipeline: 16, micro_batches: 2", "data: fsdp", "data: zero1, tensor: 8, context: 2"}) {
    CAPTURE(parallel);
    const auto loaded = test::scenario(step_of(hosts_of(2, 8), parallel, "gpt-1.3b"));
    const auto workload = test::run(test::with_memory(loaded)).workloads.front();
    CHECK(std::ranges::count(workload.settings, "GPUDirect RDMA between hosts", &GivenUsed::setting) == 1);
  }
}
