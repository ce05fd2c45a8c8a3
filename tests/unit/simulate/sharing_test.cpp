// SPDX-License-Identifier: Apache-2.0
// Scenarios that share GPUs and hosts, from YAML to rows: what the models give reaches the user, and what does not fit
// is refused with the fix.
#include <fmt/format.h>

#include <cmath>

#include "fabricast/check.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

/// One host with an A100, and a second one, over 100 GbE.
std::string on_a100(const std::string& workload, const std::string& more = {}) {
  return "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n"
         "    - {name: n, count: 2, type: server-1a100-cx6dx}\n  fabric: {single_switch: {switch: sn2700}}\n" +
         more + "workload: " + workload + "\n";
}

std::string shared(const std::string& settings) {
  return on_a100("{benchmark: gpu_sharing, sharing: " + settings + "}");
}

double figure(const Row& row, const std::string& key) {
  for (const auto& one : row.figures) {
    if (one.key == key) return one.value;
  }
  FAIL("no figure " << key);
  return 0;
}

const std::vector<Row> rows_of(const std::string& yaml) { return test::run(test::scenario(yaml)).workloads[0].rows; }

void check_terms(const std::vector<Row>& rows) {
  for (const auto& row : rows) {
    CAPTURE(row.label);
    CAPTURE(row.size.value);
    Duration sum;
    for (const auto& term : row.terms) sum += term.time;
    CHECK(sum == row.time);
    CHECK(row.low_time <= row.time);
    CHECK(row.high_time >= row.time);
  }
}

/// Both `run` and `check` refuse with `words`; the hint is not empty.
void check_refused(const std::string& yaml, const std::string& words) {
  CAPTURE(words);
  const auto loaded = load_scenario(test::write_file("refused.yaml", yaml));
  if (!loaded) {
    CAPTURE(render(loaded.error()));
    CHECK(render(loaded.error()).find(words) != std::string::npos);
    return;
  }
  const auto found = check_scenario(loaded->topology, loaded->scenario, loaded->parameters);
  CHECK(render(found).find(words) != std::string::npos);
  CHECK(has_errors(found));
  const auto run = simulate(loaded->topology, loaded->scenario, loaded->parameters);
  REQUIRE_FALSE(run);
  CHECK(render(run.error()).find(words) != std::string::npos);
  CHECK_FALSE(run.error().front().notes.empty());
}

}  // namespace

TEST_CASE("every client of a shared GPU is a row with its name, period and share, and terms that add up") {
  const auto rows = rows_of(
      shared("{policy: fixed_share, profile: a100-10c, clients: [{name: a, kernel: 3 ms, count: 2}, {name: b, kernel: "
             "400 us, pause: 8 ms, variation: 0.5}]}"));
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].label == "a.0");
  CHECK(rows[1].label == "a.1");
  CHECK(rows[2].label == "b");
  // Four slots of an A100-10C; two of three clients are always busy.
  CHECK(figure(rows[0], "slot_share") == test::approx(0.25).epsilon(0.01));
  CHECK(figure(rows[1], "slot_share") == test::approx(0.25).epsilon(0.01));
  CHECK(figure(rows[2], "worst_wait_ps") <= 3 * 2e9 + 2 * 136e6);
  check_terms(rows);
}

TEST_CASE("the driver's RmPVMRL and the keys that mean the same give the same table") {
  const std::string clients = "clients: [{name: a, kernel: 5 ms, count: 3}]";
  const auto by_value = rows_of(shared("{rm_pvmrl: 0x00030001, " + clients + "}"));
  const auto by_keys = rows_of(shared("{policy: equal_share, slice: 3 ms, strict: off, " + clients + "}"));
  REQUIRE(by_value.size() == by_keys.size());
  for (std::size_t i = 0; i < by_value.size(); ++i) CHECK(by_value[i].time == by_keys[i].time);
}

TEST_CASE("MIG instances take longer for a kernel and wait for nobody") {
  const auto rows = rows_of(shared("{profile: 3g.20gb, clients: [{name: a, kernel: 3 ms, count: 2}]}"));
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].time.seconds() == test::approx(3e-3 * 108 / 42));
  CHECK(figure(rows[0], "worst_wait_ps") == 0);
  check_terms(rows);
}

TEST_CASE("what a GPU or its scheduler cannot do is refused by check and run, with the fix") {
  const std::string two = "clients: [{name: a, kernel: 1 ms, count: 2}]";
  check_refused(shared("{profile: a100-9c, " + two + "}"), "has no profile 'a100-9c'");
  check_refused(shared("{profile: a100-40c, " + two + "}"), "2 clients of profile a100-40.40c");
  check_refused(shared("{slice: 100 us, " + two + "}"), "not longer than a context switch");
  check_refused(shared("{rm_pvmrl: 0x02, " + two + "}"), "names no scheduler");
  check_refused(shared("{rm_pvmrl: 0x01, slice: 1 ms, " + two + "}"), "'slice' is part of 'rm_pvmrl'");
  check_refused(shared("{clients: [{name: a, kernel: 0 s}]}"), "'kernel' must be longer than 0 s");
  check_refused(on_a100("{benchmark: gpu_sharing}"), "gpu_sharing needs the key 'sharing'");
  check_refused(on_a100("{benchmark: osu_latency, sharing: {" + two + "}}"), "does not share its GPUs");
  check_refused(on_a100("{benchmark: remote_gpu}"), "remote_gpu needs the key 'remote'");
  check_refused(on_a100("{benchmark: osu_latency, migration: {memory: 1 GiB}}"), "'migration' belongs to");
  CHECK(rows_of(shared("{profile: a100-20c, " + two + "}")).size() == 2);
}

TEST_CASE("a collective waits for the time slices of neighbours, less per operation the more are queued") {
  const auto time = [](const std::string& sharing) {
    const auto rows = rows_of(on_a100("{benchmark: all_reduce_perf, sizes: [1 MiB]" + sharing + "}"));
    check_terms(rows);
    return rows[0].time;
  };
  const std::string neighbour = ", sharing: {clients: [{name: n, kernel: 1 ms, pause: 10 us}]}";
  const auto alone = time("");
  CHECK(time(neighbour + ", iterations: 1") > alone + 1_ms);
  CHECK(time(neighbour) > alone);
  CHECK(time(neighbour) < time(neighbour + ", iterations: 1"));
}

TEST_CASE("busy neighbours of a vGPU slow a collective, and more of them than the profile allows are refused") {
  const auto with = [](const std::string& virtualization) {
    return on_a100("{benchmark: all_reduce_perf, sizes: [1 MiB]}", "virtualization: {" + virtualization + "}\n");
  };
  const auto alone = rows_of(with("mode: vgpu, profile: a100-20c"))[0].time;
  const auto beside = rows_of(with("mode: vgpu, profile: a100-20c, busy_neighbours: 1"))[0].time;
  CHECK(beside.seconds() > 1.5 * alone.seconds());
  const auto loaded = test::scenario(with("mode: vgpu, profile: a100-20c, busy_neighbours: 2"));
  const auto found = render(check_virtualization(loaded.topology, loaded.parameters, loaded.device_types));
  CHECK(found.find("3 vGPUs of a100-40.20c on one a100-pcie-40") != std::string::npos);
}

TEST_CASE("host neighbours slow what goes through host memory, not what goes over NVLink") {
  const auto time = [](const std::string& p2p, const std::string& traffic) {
    auto loaded = test::shipped(
        "allreduce-beside-streams.yaml",
        {{"software.nccl.p2p", p2p}, {"host_neighbours.memory_traffic", traffic}, {"workload.sizes", "[64 MiB]"}});
    const auto rows = test::run(loaded).workloads[0].rows;
    check_terms(rows);
    return rows[0].time;
  };
  CHECK(time("on", "188 GB/s") == time("on", "0 B/s"));
  CHECK(time("off", "188 GB/s").seconds() > 1.2 * time("off", "0 B/s").seconds());
}

TEST_CASE("host neighbours slow sockets inside a host, their bytes and their hops") {
  const auto time = [](const std::string& traffic, const std::string& threads, const std::string& size) {
    auto loaded = test::shipped("allreduce-beside-streams.yaml", {{"software.nccl.p2p", "off"},
                                                                  {"software.nccl.shm", "off"},
                                                                  {"host_neighbours.memory_traffic", traffic},
                                                                  {"host_neighbours.threads", threads},
                                                                  {"workload.sizes", "[" + size + "]"}});
    return test::run(loaded).workloads[0].rows[0].time.seconds();
  };
  for (const auto* size : {"8 B", "256 MiB"}) {
    CAPTURE(size);
    const double alone = time("0 B/s", "0", size);
    CHECK(time("188 GB/s", "0", size) > 1.1 * alone);
    CHECK(time("0 B/s", "24", size) > 1.1 * alone);
  }
}

TEST_CASE("with every virtual CPU busy a loop of operations ends at a scheduler tick") {
  const auto rows = test::run(test::shipped("allreduce-no-vcpu-left.yaml")).workloads[0].rows;
  for (const auto& row : rows) {
    const double ticks = 20 * row.time.seconds() / 4e-3;
    CAPTURE(row.size.value);
    CHECK(ticks == test::approx(std::round(ticks)));
    CHECK(ticks > 0.5);
  }
}

TEST_CASE("knowledge workers and a MIG instance lengthen the compute of a step") {
  // On the 28 cores of the published runs.
  const std::string host =
      "host: {processor: xeon-broadwell, sockets: 2, devices: [{name: gpu0, type: a100-pcie-40, below: socket0, pcie: "
      "gen3 x16}]}";
  const auto step = [&](const std::string& more) {
    return rows_of(
               "schema: fabricast/scenario/1\nname: s\ntopology: {schema: fabricast/topology/1, name: t, hosts: "
               "[{name: n, " +
               host + "}]}\n" + more + "workload: {benchmark: gpu_step, gpus: 1, compute: 20 ms, sizes: [0 B]}\n")[0]
        .time;
  };
  const auto alone = step("");
  CHECK(step("host_neighbours: {knowledge_workers: 32}\n").seconds() ==
        test::approx(1.02 * alone.seconds()).epsilon(0.01));
  CHECK(step("host_neighbours: {knowledge_workers: 96}\n").seconds() ==
        test::approx(1.18 * alone.seconds()).epsilon(0.01));
  CHECK(step("virtualization: {mode: mig, profile: 3g.20gb}\n").seconds() > 2.5 * alone.seconds());
}

TEST_CASE("a remote GPU costs more with small packets, says what is assumed, and gives a wide band") {
  const auto remote = [](const std::string& mtu) {
    return on_a100("{benchmark: remote_gpu, sizes: [64 MiB], remote: {compute: 50 ms, calls: 1000, mtu: " + mtu + "}}",
                   "software: {transport: tcp}\n");
  };
  const auto small = test::run(test::scenario(remote("1500"))).workloads[0];
  const auto jumbo = test::run(test::scenario(remote("9000"))).workloads[0];
  check_terms(small.rows);
  CHECK(small.rows[0].time > jumbo.rows[0].time);
  CHECK(small.rows[0].high_time.seconds() > 1.2 * small.rows[0].time.seconds());
  CHECK(figure(small.rows[0], "overhead_share") > 0);
  bool says_assumed = false;
  for (const auto& line : small.assumptions) says_assumed |= line.find("nobody has published") != std::string::npos;
  CHECK(says_assumed);
  check_refused(on_a100("{benchmark: remote_gpu, remote: {compute: 1 ms, calls: 1, mtu: 100}}"), "'mtu' must be");
}

TEST_CASE("a remote GPU must be in another host and hold the memory asked for") {
  const auto small = load_scenario(test::write_file(
      "remote.yaml", on_a100("{benchmark: remote_gpu, remote: {compute: 1 ms, calls: 1, memory: 64 GiB}}")));
  REQUIRE(small);
  const auto refused = simulate(small->topology, small->scenario, small->parameters);
  REQUIRE_FALSE(refused);
  CHECK(render(refused.error()).find("64 GiB of GPU memory asked for") != std::string::npos);
  auto lonely = test::shipped("gpu-sharing-processes.yaml");
  lonely.scenario.workloads[0].benchmark = Benchmark::remote_gpu;
  lonely.scenario.workloads[0].remote = RemoteGpuCalls{};
  const auto alone = simulate(lonely.topology, lonely.scenario, lonely.parameters);
  REQUIRE_FALSE(alone);
  CHECK(render(alone.error()).find("another host with a GPU") != std::string::npos);
}

TEST_CASE("a migration's rows are framebuffers, those above the limit are marked") {
  const auto rows = test::run(test::shipped("vgpu-migration.yaml")).workloads[0].rows;
  check_terms(rows);
  for (const auto& row : rows) {
    CAPTURE(row.size.value);
    CHECK(figure(row, "fails") == (row.size >= 16_GiB ? 1 : 0));
    CHECK(row.protocol == (row.size >= 16_GiB ? "fails" : "possible"));
  }
}
