// SPDX-License-Identifier: Apache-2.0
// Replayed traces take what the planners say of the same work.
#include <cmath>

#include "engine/fluid.hpp"
#include "fabricast/replay.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"
#include "tests/unit/trace/writers.hpp"
#include "training/buckets.hpp"
#include "training/data_parallel.hpp"

using namespace fabricast;
using test::ChakraNode;

namespace {

LoadedTopology shipped_topology(const std::string& name) {
  auto loaded = load_topology(std::string(FABRICAST_SOURCE_DIR) + "/topologies/" + name);
  REQUIRE(loaded);
  return std::move(*loaded);
}

Trace read(const std::string& text, int copies = 0) {
  auto trace = read_trace({{"trace", text}}, copies);
  if (!trace) FAIL(render(trace.error()));
  return std::move(*trace);
}

ReplayReport replayed(const LoadedTopology& on, const Trace& trace, int per_host = 0) {
  ReplayOptions options;
  options.ranks_per_host = per_host;
  auto report = replay(on.topology, on.parameters, trace, options);
  if (!report) FAIL(render(report.error()));
  return std::move(*report);
}

double us(Duration time) { return time.us(); }

const std::string k_gpu_pair = "dgx-a100-pair.yaml";

ChakraNode compute(int id, long microseconds, std::vector<int> after = {}, const std::string& stream = "0") {
  return {id, 4, "work", microseconds, std::move(after), {{"stream", stream}}};
}
ChakraNode all_reduce(int id, long bytes, std::vector<int> after = {}, const std::string& type = "0") {
  return {id,
          7,
          "all-reduce",
          0,
          std::move(after),
          {{"comm_type", type}, {"comm_size", std::to_string(bytes)}, {"pg_name", "g"}}};
}

/// nccl-tests' time of one operation on all 16 GPUs of the pair, without the host's floor.
double collective_us(const LoadedTopology& on, Benchmark benchmark, std::int64_t size) {
  models::Resources resources(on.topology);
  models::set_payload_shares(resources, on.parameters);
  const Software software;
  const models::PlanContext context{on.topology, software, on.parameters, resources, 1, false, false};
  Workload workload;
  workload.benchmark = benchmark;
  workload.iterations = 1;
  auto planner = models::make_planner(context, workload);
  REQUIRE(planner);
  const auto plan = (*planner)->plan(Bytes{size});
  return us(engine::run(resources, {{&plan, {}}}).front().total);
}

}  // namespace

TEST_CASE("a ring all-reduce written as a GOAL schedule takes what the MPI planner says of the ring") {
  // Four hosts of one leaf: all ways are equal.
  const auto on = shipped_topology("fat-tree-roce-128.yaml");
  for (const long size : {4096L, 65536L, 1L << 20U, 4L << 20U}) {
    const auto loaded = test::scenario(fmt::format(
        "schema: fabricast/scenario/1\nname: ring\ntopology: {}/topologies/fat-tree-roce-128.yaml\n"
        "workload: {{benchmark: osu_allreduce, algorithm: ring, ranks: 4, ranks_per_host: 1, sizes: [{} B]}}\n",
        FABRICAST_SOURCE_DIR, size));
    const auto row = test::run(loaded, {.with_terms = true}).workloads[0].rows[0];
    double beside = 0, reductions = 0;  // us of the whole call: entry and copies, which a schedule does not have
    for (const auto& term : row.terms) {
      const bool is_beside = term.name == "collective entry" || term.name == "copies to and from temporary buffers";
      beside += is_beside ? us(term.time) : 0;
      reductions += term.name == "reduction on the host" ? us(term.time) : 0;
    }
    const auto reducing = static_cast<long>(std::lround(reductions * 1e3 / 3));
    const double planned = us(row.time) - beside;
    const auto report = replayed(on, read(test::goal_ring(4, size, reducing)), 1);
    CAPTURE(size);
    CHECK(us(report.time) == test::approx(planned).epsilon(0.01));
    CHECK(report.num_ops == 4 * (3 * 3 + 3 * 2));
    CHECK(us(report.ranks[0].compute_alone) == test::approx(3e-3 * static_cast<double>(reducing)).epsilon(1e-6));
  }
}

TEST_CASE("collectives of a Chakra trace are those of NCCL's planner, sizes counted as Chakra does") {
  const auto on = shipped_topology(k_gpu_pair);
  const std::vector<std::tuple<std::string, Benchmark, long>> all{
      {"0", Benchmark::all_reduce_perf, 1},  {"1", Benchmark::reduce_perf, 1},
      {"2", Benchmark::all_gather_perf, 16}, {"5", Benchmark::broadcast_perf, 1},
      {"6", Benchmark::alltoall_perf, 1},    {"7", Benchmark::reduce_scatter_perf, 1}};
  for (const auto& one : all) {
    const auto& type = std::get<0>(one);
    const auto benchmark = std::get<1>(one);
    const long factor = std::get<2>(one);
    const long size = 4 << 20;
    const auto report = replayed(on, read(test::json({all_reduce(1, size, {}, type)}), 16));
    CAPTURE(type);
    CHECK(us(report.time) == test::approx(collective_us(on, benchmark, factor * size)).epsilon(1e-6));
    CHECK(report.ranks.size() == 16);
    CHECK(report.ranks[3].exposed == report.ranks[3].exchange);
  }
}

TEST_CASE("a data-parallel step written as a Chakra trace takes what the training planner says, within 1 %") {
  using namespace models::training;
  const auto on = shipped_topology(k_gpu_pair);
  models::Resources resources(on.topology);
  models::set_payload_shares(resources, on.parameters);
  const Software software;
  const models::PlanContext context{on.topology, software, on.parameters, resources, 1, false, false};
  StepWork work;
  work.forward = from_seconds(0.020);
  work.backward = from_seconds(0.040);
  work.optimizer = from_seconds(0.003);
  for (int i = 0; i < 40; ++i) {
    work.tensors.push_back({"t", Bytes{5'000'000}, from_seconds(0.001 * (i + 1))});
    work.gradient_bytes = work.gradient_bytes + work.tensors.back().bytes;
  }
  const auto group = Communicator::make(context, Workload{}, on.topology.devices(DeviceKind::gpu));
  REQUIRE(group);
  models::OperationPlan plan;
  plan.program = data_parallel_program({on.parameters, 1.5e12}, {}, work, {.group = &*group});
  const double planned = us(engine::run(resources, {{&plan, {}}}).front().total);
  // What one rank computes, launches and exchanges, in the program's own order.
  std::vector<ChakraNode> nodes;
  const auto buckets = ddp_buckets(work.tensors, std::nullopt);
  std::size_t bucket = 0;
  int computed = -1, exchanged = -1;
  for (std::size_t n = 0; n < plan.program.nodes.size(); ++n) {
    const auto& node = plan.program.nodes[n];
    const int id = static_cast<int>(nodes.size());
    if (node.kind == models::NodeKind::compute) {
      std::vector<int> after;
      if (computed >= 0) after.push_back(computed);
      if (node.label == "gradients out of their buckets") after.push_back(exchanged);
      nodes.push_back(compute(id, std::lround(us(node.work)), after));
      computed = id;
    } else if (node.label.find("all-reduce") != std::string::npos && node.label != plan.program.nodes[n - 1].label) {
      nodes.push_back(all_reduce(id, buckets[bucket++].bytes.value, {computed}));
      exchanged = id;
    }
  }
  REQUIRE(bucket == buckets.size());
  REQUIRE(bucket > 5);
  const auto report = replayed(on, read(test::protobuf(nodes), 16));
  CHECK(us(report.time) == test::approx(planned).epsilon(0.01));
  // Overlap is real: compute beside exchanges is slower, and only a part of the exchange shows.
  CHECK(report.ranks[5].compute > report.ranks[5].compute_alone);
  CHECK(report.ranks[5].exposed < report.ranks[5].exchange / 2);
}

TEST_CASE("protobuf and JSON of the same trace are one trace, streams overlap, a stream does not") {
  const auto on = shipped_topology(k_gpu_pair);
  const std::vector<ChakraNode> nodes{compute(5, 100, {}, "7"), compute(6, 50, {}, "7"), compute(7, 120, {}, "20"),
                                      all_reduce(9, 1 << 20, {6, 7}), compute(11, 10, {9}, "7")};
  const auto one = replayed(on, read(test::protobuf(nodes), 8));
  const auto other = replayed(on, read(test::json(nodes), 8));
  CHECK(one.time == other.time);
  CHECK(one.num_ops == 40);
  REQUIRE(one.ranks[2].op_ends.size() == 5);
  CHECK(us(one.ranks[2].op_ends[1]) == test::approx(150));
  CHECK(us(one.ranks[2].op_ends[2]) == test::approx(120));
  CHECK(one.ranks[2].op_ends == other.ranks[2].op_ends);
}

TEST_CASE("ranks of different traces wait for each other: a pipeline of two stages") {
  const auto on = shipped_topology(k_gpu_pair);
  const auto to = [](const char* key, const char* rank) {
    return std::vector<std::pair<std::string, std::string>>{{key, rank}, {"comm_size", "1000000"}, {"comm_tag", "3"}};
  };
  const std::string first = test::json({compute(0, 1000), {1, 5, "send", 0, {0}, to("comm_dst", "1")}});
  const std::string second = test::json({{0, 6, "receive", 0, {}, to("comm_src", "0")}, compute(1, 500, {0})});
  // The number before the suffix is the rank, whatever the order of the files.
  const auto trace = read_trace({{"stage.1.json", second}, {"stage.0.json", first}});
  REQUIRE(trace);
  const auto report = replayed(on, *trace);
  CHECK(us(report.ranks[1].op_ends[0]) > 1000);
  CHECK(us(report.time) == test::approx(us(report.ranks[1].op_ends[0]) + 500));
  CHECK(report.ranks[0].end < report.time);
}

TEST_CASE("GOAL: cores run side by side, irequires starts with the other, requires after it") {
  const auto on = shipped_topology("fat-tree-roce-128.yaml");
  const auto report =
      replayed(on,
               read("num_ranks 2\nrank 0 {\n l1: calc 1000 cpu 0\n l2: calc 3000 cpu 1\n l3: calc 500 cpu 0\n"
                    " l4: calc 10 cpu 2\n l5: calc 10 cpu 3\n l4 irequires l3\n l5 requires l3\n l3 requires "
                    "l1\n}\nrank 1 {\n}\n"),
               1);
  const auto& ends = report.ranks[0].op_ends;
  CHECK(us(ends[1]) == test::approx(3));
  CHECK(us(ends[2]) == test::approx(1.5));
  CHECK(us(ends[3]) == test::approx(1.01));
  CHECK(us(ends[4]) == test::approx(1.51));
  CHECK(report.ranks[1].end.ps == 0);
}
