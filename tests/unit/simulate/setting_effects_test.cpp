// SPDX-License-Identifier: Apache-2.0
// No setting of `virtualization`, `host_neighbours` or `software` is left out in silence: two values of
// each key change a forecast, change what `check` says, are refused, or the result says that the key changes no time.
// The table must name every key of the schema, so that a new one cannot be forgotten.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/support/approx.hpp"
#include "tests/support/effects.hpp"

using namespace fabricast;
using namespace fabricast::test;

namespace {

const std::vector<TwoValues> k_guest{
    {"hypervisor", "mode: passthrough", "esxi", "kvm"},
    {"version", "mode: passthrough", "\"6.5\"", "\"8.0\""},
    {"gpu", "mode: passthrough, profile: a100-10c", "passthrough", "vgpu"},
    {"nic", "mode: passthrough", "passthrough", "vmxnet3"},
    {"devices", "mode: passthrough", "[{name: hca0, mode: vmxnet3}]", "[{name: hca0, mode: passthrough}]"},
    {"vms_per_host", "mode: sr-iov", "1", "2"},
    {"vcpus", "mode: sr-iov", "16", "512"},
    {"pinning", "mode: passthrough", "on", "off"},
    {"numa", "mode: passthrough", "on", "off"},
    {"memory", "mode: remote-gpu", "8 GiB", "256 GiB"},
    {"memory_reservation", "mode: passthrough", "full", "none"},
    {"huge_pages", "mode: passthrough", "on", "off"},
    {"latency_sensitivity", "mode: sr-iov, vcpus: 512", "normal", "high"},
    {"efi", "mode: passthrough", "on", "off"},
    {"above_4g_decoding", "mode: passthrough", "on", "off"},
    {"mmio", "mode: passthrough", "{use_64bit: on}", "{use_64bit: off}"},
    {"allow_p2p", "mode: passthrough", "on", "off"},
    {"acs", "mode: passthrough, guest_topology: shown", "redirect", "off"},
    {"nvswitches", "mode: passthrough", "passthrough", "shared"},
    {"ats", "mode: passthrough, guest_topology: shown", "on", "off"},
    {"translation", "mode: passthrough, guest_topology: shown", "cached", "shared"},
    {"guest_topology", "mode: passthrough, hypervisor: kvm", "shown", "hidden"},
    {"container", "mode: passthrough", "off", "on"},
    {"vhost", "mode: tcp, hypervisor: kvm", "on", "off"},
    {"mtu", "mode: tcp", "1500", "9000"},
    {"rate_limit", "mode: sr-iov", "5 Gb/s", "50 Gb/s"},
    {"distributed_switch", "mode: passthrough", "a", "b"},
    {"profile", "mode: vgpu", "a100-10c", "a100-40c"},
    {"scheduler", "mode: vgpu, profile: a100-10c, busy_neighbours: 1", "best_effort", "fixed_share"},
    {"scheduler", "mode: vgpu, profile: a100-10c", "equal_share", "fixed_share"},
    {"time_slice", "mode: vgpu, profile: a100-10c, busy_neighbours: 1, scheduler: equal_share", "1 ms", "4 ms"},
    {"time_slice", "mode: vgpu, profile: a100-10c, scheduler: fixed_share", "1 ms", "4 ms"},
    {"busy_neighbours", "mode: vgpu, profile: a100-10c", "0", "2"},
    {"vgpu_release", "mode: vgpu, ecc: on", "\"8.0\"", "\"17.0\""},
    {"ecc", "mode: vgpu, vgpu_release: \"8.0\"", "off", "on"},
    {"unified_memory", "mode: vgpu", "off", "on"},
    {"gpu_share", "mode: remote-gpu", "0.25", "1"},
    {"gpu_memory", "mode: remote-gpu, memory: 16 GiB", "8 GiB", "32 GiB"},
    {"host_memory", "mode: passthrough, memory: 64 GiB", "32 GiB", "128 GiB"},
    {"firmware_functions", "mode: sr-iov, vms_per_host: 2", "1", "8"},
    {"remote_sharing", "mode: remote-gpu", "refuse", "queue"},
    {"needs", "mode: passthrough", "[migration]", "[]"}};

const std::vector<TwoValues> k_neighbours{{"threads", "vcpus: 32", "0", "40"},
                                          {"threads", "", "0", "2048"},
                                          {"vcpus", "threads: 40", "32", "4096"},
                                          {"vcpus", "", "32", "4096"},
                                          {"memory_traffic", "", "0 B/s", "160 GB/s"},
                                          {"knowledge_workers", "", "0", "64"},
                                          {"overcommit", "", "1", "4"}};

const std::vector<TwoValues> k_software{{"mpi", "", "open-mpi-ucx", "mvapich2-gdr"},
                                        {"mpi_version", "", "\"4.0\"", "\"5.0\""},
                                        {"mpi_collectives", "mpi: open-mpi-ucx", "library", "ucc"},
                                        {"ucx", "", "\"1.6\"", "\"1.12\""},
                                        {"eager_limit", "", "1 KiB", "2 MiB"},
                                        {"device_eager_limit", "", "1 KiB", "2 MiB"},
                                        {"gpudirect_limit", "", "1 KiB", "64 MiB"},
                                        {"staging_chunk", "gpudirect_rdma: off", "1 KiB", "1 MiB"},
                                        {"gpudirect_rdma", "", "on", "off"},
                                        {"nv_peer_mem", "", "loaded", "not loaded"},
                                        {"gdrcopy", "", "on", "off"},
                                        {"cross_memory_attach", "", "on", "off"},
                                        {"cuda", "", "\"4.0\"", "\"12.0\""},
                                        {"ofed", "", "\"2.0\"", "\"5.4\""},
                                        {"transport", "", "rdma", "tcp"}};

const std::vector<TwoValues> k_nccl{{"version", "", "\"2.8\"", "\"2.28\""},
                                    {"p2p", "", "on", "off"},
                                    {"shm", "", "on", "off"},
                                    {"shm", "p2p: off", "on", "off"},
                                    {"nvls", "", "on", "off"},
                                    {"collnet", "", "on", "off"},
                                    {"symmetric_memory", "", "on", "off"},
                                    {"symmetric_memory", "nvls: off", "on", "off"},
                                    {"gdr_level", "", "pix", "sys"},
                                    {"pxn", "", "on", "off"},
                                    {"p2p_pxn_level", "", "0", "2"},
                                    {"cross_nic", "", "0", "2"},
                                    {"cross_nic", "", "1", "2"},
                                    {"plugin", "", "internal", "nccl-rdma-sharp"},
                                    {"plugin", "", "internal", "aws-ofi-nccl"},
                                    {"plugin", "collnet: on", "internal", "nccl-rdma-sharp"},
                                    {"plugin_version", "plugin: aws-ofi-nccl", "\"1.9\"", "\"1.16\""},
                                    {"ib_qps_per_connection", "", "1", "4"},
                                    {"ib_split_data_on_qps", "", "on", "off"},
                                    {"ib_split_data_on_qps", "ib_qps_per_connection: 4", "on", "off"},
                                    {"socket_nthreads", "", "0", "4"},
                                    {"nsocks_perthread", "", "1", "4"},
                                    {"nsocks_perthread", "socket_nthreads: 2", "1", "4"}};

void check_key(const std::string& section, const TwoValues& setting, const std::string& workload) {
  CAPTURE(setting.key);
  CAPTURE(workload);
  const auto with = [&](const std::string& value) {
    const auto before = setting.base.empty() ? "" : setting.base + ", ";
    const auto inner = "{" + before + setting.key + ": " + value + "}";
    return seen(
        scenario_of(section == "software.nccl" ? "software: {nccl: " + inner + "}" : section + ": " + inner, workload));
  };
  const auto one = with(setting.one);
  const auto other = with(setting.other);
  // What is said to change no time is as if it were not given.
  const auto without = [&] {
    return seen(scenario_of(
        section == "software.nccl" ? "software: {nccl: {" + setting.base + "}}" : section + ": {" + setting.base + "}",
        workload));
  };
  // What is said to change no time changes none, and what changes nothing is said to.
  const auto words = section + "." + setting.key + " changes no time";
  if (one.times == other.times && one.text == other.text && !one.is_refused) {
    CAPTURE(one.text);
    CHECK(other.idle.find(words) != std::string::npos);
  }
  // Both lines say of what a key changes no time, not that it changes none.
  const bool is_of_some = setting.key == "memory_traffic" || setting.key == "time_slice";
  const bool is_said = one.idle.find(words) != std::string::npos && other.idle.find(words) != std::string::npos;
  if (is_said && !is_of_some) CHECK(one.times == other.times);
  for (const auto* given : {&one, &other}) {
    // A vGPU of the whole GPU costs what passthrough does, its band is wider.
    if (!is_of_some && setting.key != "gpu" && given->idle.find(words) != std::string::npos && !setting.base.empty())
      CHECK(given->times == without().times);
  }
}

}  // namespace

TEST_CASE("the table of settings names every key of the schema") {
  auto guest = keys_of(k_guest);
  guest.insert("mode");  // the first key of every line
  CHECK(guest == keys_of_schema("virtualization"));
  CHECK(keys_of(k_neighbours) == keys_of_schema("host_neighbours"));
  auto software = keys_of(k_software);
  software.insert("nccl");
  CHECK(software == keys_of_schema("software"));
  CHECK(keys_of(k_nccl) == keys_of_schema("software.nccl"));
}

TEST_CASE("every key of virtualization changes a result or a verdict, is refused, or is said to change no time") {
  for (const auto& setting : k_guest) {
    // Beside what makes it act, and by itself.
    const TwoValues alone{setting.key, setting.base.substr(0, setting.base.find(',')), setting.one, setting.other};
    for (const auto& workload : k_workloads) {
      check_key("virtualization", setting, workload);
      if (alone.base != setting.base) check_key("virtualization", alone, workload);
    }
  }
}

TEST_CASE("NVSwitches that VMs share reduce for none of them: all-reduce of eight GPUs is slower") {
  const auto of = [](const std::string& nvswitches) {
    return seen(
        "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: [{name: "
        "n, type: hgx-h100-8}]\nvirtualization: {mode: passthrough, nvswitches: " +
        nvswitches + "}\nworkload: {benchmark: all_reduce_perf, gpus: 8, sizes: [1 GiB]}\n");
  };
  const auto own = of("passthrough");
  const auto shared = of("shared");
  CAPTURE(own.text);
  CAPTURE(shared.text);
  CHECK_FALSE(own.is_refused);
  CHECK_FALSE(shared.is_refused);
  CHECK(own.times != shared.times);
}

TEST_CASE("every key of host_neighbours changes a result, or is said to change no time") {
  for (const auto& setting : k_neighbours)
    for (const auto& workload : k_workloads) check_key("host_neighbours", setting, workload);
}

TEST_CASE("the workloads of these tests run") {
  for (const auto& workload : all_workloads()) {
    const auto plain = seen(scenario_of("", workload));
    CAPTURE(workload);
    CAPTURE(plain.text);
    CHECK_FALSE(plain.times.empty());
  }
}

TEST_CASE("every key of software changes a result or a verdict, is refused, or is said to change no time") {
  for (const auto& workload : all_workloads()) {
    for (const auto& setting : k_software) check_key("software", setting, workload);
    for (const auto& setting : k_nccl) check_key("software.nccl", setting, workload);
  }
}

TEST_CASE("a passed-through GPU does not migrate, and the migration's own keys must fit the hosts'") {
  const auto refusal = [](const std::string& virtualization, const std::string& migration) {
    return seen(scenario_of("virtualization: {" + virtualization + "}",
                            "benchmark: vgpu_migration, sizes: [8 GiB], migration: {memory: 64 GiB" + migration + "}"))
        .text;
  };
  CHECK(refusal("mode: passthrough", "").find("a passed-through GPU ties the VM") != std::string::npos);
  CHECK(refusal("mode: vgpu", "").find("a virtual function ties the VM") != std::string::npos);
  CHECK(refusal("mode: vgpu, nic: vmxnet3, hypervisor: kvm", "").find("runs kvm") != std::string::npos);
  CHECK(refusal("mode: vgpu, nic: vmxnet3, version: \"7.0\"", ", release: esxi-6.7u1").find("runs ESXi 7.0") !=
        std::string::npos);
  CHECK(refusal("mode: vgpu, nic: vmxnet3, memory: 32 GiB", "").find("have 32 GiB") != std::string::npos);
  CHECK(refusal("mode: vgpu, nic: pvrdma", "").find("has no PVRDMA adapter") != std::string::npos);
  CHECK(refusal("mode: vgpu, nic: vmxnet3", ", pvrdma: on").find("has a PVRDMA adapter") != std::string::npos);
  CHECK(refusal("mode: vgpu, nic: vmxnet3, version: \"7.0\", memory: 64 GiB", "").find("error") == std::string::npos);
}

TEST_CASE("virtual functions have limits of their own, the port is shared") {
  const auto rate = [](const std::string& settings) {
    const auto workload =
        test::run(test::scenario(scenario_of("virtualization: {mode: sr-iov, vms_per_host: 2, " + settings + "}",
                                             "benchmark: osu_mbw_mr, buffers: device, pairs: 2, sizes: [4 MiB]")));
    return workload.workloads[0].rows[0].algbw.bytes_per_s;
  };
  // Two VMs with 25 Gb/s each move twice what one function may; two with 200 Gb/s each share one port of 200.
  CHECK(rate("rate_limit: 25 Gb/s") == test::approx(2 * 3.125e9).epsilon(0.05));
  CHECK(rate("rate_limit: 200 Gb/s") < 25e9);
}

TEST_CASE("two clients of one remote GPU share it and the network") {
  const auto times = [](const std::string& workloads) {
    std::vector<double> out;
    const auto yaml = scenario_of("", "X");
    const auto scenario = yaml.substr(0, yaml.find("workload: {X}")) + "workloads:\n" + workloads;
    const auto prediction = test::run(test::scenario(scenario));
    for (const auto& one : prediction.workloads) out.push_back(one.rows[0].time.seconds());
    return out;
  };
  const std::string client = "  - {benchmark: remote_gpu, sizes: [1 GiB], remote: {compute: 50 ms, calls: 0";
  const auto alone = times(client + "}}\n");
  const auto both = times(client + "}}\n" + client + "}}\n");
  const auto halves = times(client + ", share: 0.5}}\n" + client + ", share: 0.5}}\n");
  CHECK(both[0] == test::approx(2 * alone[0]).epsilon(0.01));
  CHECK(both[0] == both[1]);
  CHECK(halves[0] == test::approx(both[0]));
}

TEST_CASE("the launching part of a step is longer with shared cores") {
  const auto step = [](const std::string& settings) {
    return test::run(
               test::scenario(scenario_of(settings, "benchmark: gpu_step, gpus: 1, compute: 20 ms, sizes: [0 B]")))
        .workloads[0]
        .rows[0]
        .time.us();
  };
  const auto alone = step("virtualization: {mode: passthrough, vcpus: 32}");
  const auto twice = step("virtualization: {mode: passthrough, vcpus: 144}");  // two sockets of 36 cores
  CHECK(twice - alone == test::approx(0.148 * 20'000 * (144.0 / 72 - 1)).epsilon(0.01));
  CHECK(step("host_neighbours: {overcommit: 2}") - step("") == test::approx(0.148 * 20'000).epsilon(0.01));
  // 40 busy threads on 32 CPUs: whole ticks of 4 ms for 20 steps.
  const double ticks = 20 * step("host_neighbours: {threads: 40, vcpus: 32}") / 4'000;
  CHECK(ticks == test::approx(std::round(ticks)).epsilon(1e-6));
}

TEST_CASE("peer access that NCCL does not use and MPI does is not said to change nothing") {
  // NCCL's level on AMD is one PCIe switch; MPI asks CUDA, which copies between roots of one socket.
  const auto seen_with = [](const std::string& benchmark, const char* p2p) {
    const auto prediction = test::run(test::scenario(
        "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n    - "
        "{name: n, count: 1, host: {processor: epyc-genoa, devices: [{name: gpu0, type: p100-pcie-16, below: socket0}, "
        "{name: gpu1, type: p100-pcie-16, below: socket0}, {name: gpu2, type: p100-pcie-16, below: socket1}, {name: "
        "hca0, type: connectx-6-hdr, below: socket0}]}}\nsoftware: {nccl: {p2p: " +
        std::string(p2p) + "}}\nworkload: {benchmark: " + benchmark + ", sizes: [4 MiB]}\n"));
    bool is_said_idle = false;
    for (const auto& line : prediction.workloads[0].assumptions)
      is_said_idle = is_said_idle || line.find("software.nccl.p2p changes no time") != std::string::npos;
    return std::pair{prediction.workloads[0].rows[0].time, is_said_idle};
  };
  const std::string latency = "osu_latency, buffers: device, devices: [n.gpu0, n.gpu1]";
  CHECK(seen_with(latency, "on").first < seen_with(latency, "off").first);
  CHECK_FALSE(seen_with(latency, "on").second);
  CHECK_FALSE(seen_with(latency, "off").second);
  CHECK(seen_with("all_reduce_perf", "on").first == seen_with("all_reduce_perf", "off").first);
  CHECK(seen_with("all_reduce_perf", "off").second);
}

TEST_CASE("a head node without GPUs before the others changes nothing that is said of the settings of NCCL's hosts") {
  // Over InfiniBand and over adapters that speak TCP alone.
  const std::string infiniband = "{name: n, count: 2, type: dgx-a100}]\n  fabric: {single_switch: {switch: qm8700";
  const std::string tcp =
      "{name: n, count: 2, type: google-n1-v100}]\n  fabric: {single_switch: {switch: google-vpc, mtu: 8948 B";
  const auto seen_with = [](const std::string& head, const std::string& nodes, const std::string& settings,
                            const std::string& workload) {
    return seen(
        "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts: [" +
        head + nodes + ", cable: 5 m}}\n" + settings + "\nworkload: {" + workload + "}\n");
  };
  const std::vector<std::pair<std::string, const std::vector<TwoValues>*>> sections{
      {"software: {nccl: {", &k_nccl}, {"software: {", &k_software}, {"host_neighbours: {", &k_neighbours}};
  const std::string bare = "{name: head, count: 1, host: {processor: epyc-rome, devices: []}}, ";
  const std::vector<std::pair<std::string, std::string>> clusters{
      {"{name: head, count: 1, type: azure-hbv3}, ", infiniband}, {bare, infiniband}, {bare, tcp}};
  for (const auto& cluster : clusters) {
    for (const std::string workload : {"benchmark: all_reduce_perf, sizes: [1 MiB]",
                                       "benchmark: training, network: resnet-50, precision: fp16, batch_per_gpu: 64"}) {
      for (const auto& [section, keys] : sections) {
        for (const auto& setting : *keys) {
          for (const auto& value : {setting.one, setting.other}) {
            const auto inner = (setting.base.empty() ? "" : setting.base + ", ") + setting.key + ": " + value;
            const auto settings = section + inner + (section.ends_with("nccl: {") ? "}}" : "}");
            CAPTURE(cluster.first);
            CAPTURE(cluster.second);
            CAPTURE(settings);
            CAPTURE(workload);
            const auto with_head = seen_with(cluster.first, cluster.second, settings, workload);
            const auto without = seen_with("", cluster.second, settings, workload);
            CHECK(with_head.is_refused == without.is_refused);
            CHECK(with_head.idle == without.idle);
          }
        }
      }
    }
  }
}

TEST_CASE("every key of software.nccl changes a time on a topology that is shipped, a plugin what is accepted") {
  struct Place {
    std::string topology, collective;
    TwoValues values;
    std::string software = "";
  };
  const std::string tcp = "transport: tcp, ";
  const std::vector<Place> places{
      {"dgx-a100-pair", "all_reduce_perf", {"version", "", "\"2.8\"", "\"2.28\""}},
      {"hgx-a100", "all_reduce_perf", {"p2p", "", "on", "off"}},
      {"azure-nc24rs-v2", "all_reduce_perf", {"shm", "", "on", "off"}},
      {"hgx-h100-ndr", "all_reduce_perf", {"nvls", "", "auto", "off"}},
      {"dgx-a100-pair", "all_reduce_perf", {"collnet", "", "on", "off"}},
      {"h200-2gpu-vm", "all_reduce_perf", {"symmetric_memory", "", "on", "off"}},
      {"abci-v100", "all_reduce_perf", {"gdr_level", "", "pxb", "phb"}},
      {"abci-a100", "alltoall_perf", {"pxn", "", "on", "off"}},
      {"abci-a100", "alltoall_perf", {"p2p_pxn_level", "", "1", "2"}},
      {"polaris", "all_reduce_perf", {"cross_nic", "", "0", "2"}},
      {"hgx-b300-4", "all_reduce_perf", {"cross_nic", "", "1", "2"}},
      {"leaf-spine-sn2700", "alltoall_perf", {"ib_qps_per_connection", "", "1", "4"}},
      {"leaf-spine-sn2700", "all_reduce_perf", {"ib_split_data_on_qps", "ib_qps_per_connection: 4", "on", "off"}},
      {"aws-p4d", "all_reduce_perf", {"plugin", "", "auto", "internal"}},
      {"aws-p4d", "all_reduce_perf", {"plugin_version", "plugin: aws-ofi-nccl", "\"1.5\"", "\"1.16\""}},
      {"dgx-a100-pair", "all_reduce_perf", {"socket_nthreads", "", "0", "4"}, tcp},
      {"dgx-a100-pair", "all_reduce_perf", {"nsocks_perthread", "socket_nthreads: 2", "1", "4"}, tcp}};
  std::vector<TwoValues> named;
  for (const auto& place : places) {
    const auto with = [&](const std::string& value) {
      const auto& [key, base, one, other] = place.values;
      return seen("schema: fabricast/scenario/1\nname: s\ntopology: " + std::string(FABRICAST_SOURCE_DIR) +
                  "/topologies/" + place.topology + ".yaml\nsoftware: {" + place.software + "nccl: {" +
                  (base.empty() ? "" : base + ", ") + key + ": " + value +
                  "}}\nworkload: {benchmark: " + place.collective + ", sizes: [64 KiB, 16 MiB, 256 MiB]}\n");
    };
    const auto one = with(place.values.one), other = with(place.values.other);
    CAPTURE(place.topology);
    CAPTURE(place.values.key);
    CAPTURE(one.text);
    CHECK_FALSE(one.is_refused);
    CHECK(other.is_refused == (place.values.key == "plugin"));
    CHECK(one.times != other.times);
    named.push_back(place.values);
  }
  CHECK(keys_of(named) == keys_of_schema("software.nccl"));
}
