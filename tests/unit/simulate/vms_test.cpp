// SPDX-License-Identifier: Apache-2.0
// VMs described one by one: what each holds, what they share, and what no longer reaches whom.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "fabricast/check.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

/// Machines with four A100 and two 100 Gb/s adapters, all below one socket.
std::string cluster(const std::string& settings, const std::string& vms, int count = 2) {
  std::string devices;
  for (int g = 0; g < 4; ++g) devices += fmt::format("{{name: gpu{}, type: a100-pcie-40, below: socket0}}, ", g);
  return fmt::format(
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n    - "
      "{{name: n, count: {}, host: {{processor: xeon-skylake, devices: [{}{{name: hca0, type: connectx-5-100g, below: "
      "socket0}}, {{name: hca1, type: connectx-5-100g, below: socket0}}]}}, virtualization: {}, vms: {}}}\n  fabric:\n "
      "   single_switch: {{switch: sn2700}}\n",
      count, devices, settings, vms);
}

std::vector<WorkloadPrediction> forecast(const std::string& settings, const std::string& vms,
                                         const std::string& workloads) {
  return test::run(test::scenario(cluster(settings, vms) + "workloads: [" + workloads + "]\n")).workloads;
}

Duration time_of(const std::string& settings, const std::string& vms, const std::string& workload) {
  return forecast(settings, vms, workload).front().rows.front().time;
}

std::string faults_of(const std::string& settings, const std::string& vms, const std::string& workload) {
  const auto loaded =
      load_scenario(test::write_file("scenario.yaml", cluster(settings, vms) + "workload: " + workload + "\n"));
  if (!loaded) return test::shown(loaded.error());
  auto found = check_virtualization(loaded->topology, loaded->parameters, loaded->device_types);
  const auto prediction = simulate(loaded->topology, loaded->scenario, loaded->parameters, {});
  if (!prediction) found.insert(found.end(), prediction.error().begin(), prediction.error().end());
  return test::shown(found);
}

const std::string k_kvm = "{hypervisor: kvm}";
const std::string k_write = "{{name: {0}, benchmark: ib_write_bw, sizes: [8 MiB], devices: [n0/{0}, n1/{0}]}}";

std::string write_of(const std::string& vm) { return fmt::format(fmt::runtime(k_write), vm); }

}  // namespace

TEST_CASE("two virtual functions limited to 25 Gb/s reach 50 together, without limits they share the port") {
  const auto vms = [](const std::string& limit) {
    return fmt::format("[{{name: a, devices: {{hca0: {{vf: 1{0}}}}}}}, {{name: b, devices: {{hca0: {{vf: 1{0}}}}}}}]",
                       limit);
  };
  double sum = 0;
  for (const auto& one : forecast(k_kvm, vms(", rate_limit: 25 Gb/s"), write_of("a") + ", " + write_of("b"))) {
    const double rate = one.rows.front().algbw.bytes_per_s * 8e-9;
    CHECK(rate == test::approx(25).epsilon(0.01));
    sum += rate;
  }
  CHECK(sum == test::approx(50).epsilon(0.01));
  const auto both = forecast(k_kvm, vms(""), write_of("a") + ", " + write_of("b"));
  const double alone = forecast(k_kvm, vms(""), write_of("a")).front().rows.front().algbw.bytes_per_s;
  CHECK(both[0].rows.front().algbw.bytes_per_s + both[1].rows.front().algbw.bytes_per_s ==
        test::approx(alone).epsilon(0.03));
}

TEST_CASE("a VM written out is forecast as the word that stands for it") {
  for (const auto* benchmark : {"all_reduce_perf, sizes: [8 B, 64 MiB]", "gpu_step, compute: 10 ms, sizes: [1 MiB]"}) {
    const auto workload = fmt::format("{{benchmark: {}}}", benchmark);
    const auto rows_of = [](const std::string& text) { return test::run(test::scenario(text)).workloads.front().rows; };
    for (const auto& pair : {std::pair("passthrough", "passthrough"), std::pair("sr-iov", "{vf: 1}"),
                             std::pair("pvrdma", "pvrdma"), std::pair("tcp", "vmxnet3")}) {
      const auto* word = pair.first;
      const auto* way = pair.second;
      CAPTURE(word);
      const auto all = fmt::format(
          "[{{name: a, devices: {{a100-pcie-40: {{mode: passthrough, count: 4}}, hca0: {0}, hca1: {0}}}}}]", way);
      const auto written = rows_of(cluster("{hypervisor: esxi}", all) + "workload: " + workload + "\n");
      const auto worded =
          rows_of(cluster("{hypervisor: esxi}", all) + "virtualization: " + word + "\nworkload: " + workload + "\n");
      REQUIRE(written.size() == worded.size());
      for (std::size_t r = 0; r < written.size(); ++r) CHECK(written[r].time == worded[r].time);
    }
  }
}

TEST_CASE("what a VM does not hold it does not reach, what no VM holds is idle") {
  const std::string vms = "[{name: a, devices: {gpu0: passthrough, gpu2: passthrough, hca1: passthrough}}]";
  const auto loaded = test::scenario(cluster(k_kvm, vms) + "workload: {benchmark: all_reduce_perf}\n");
  const auto& topology = loaded.topology;
  CHECK(topology.num_hosts() == 2);
  CHECK(topology.devices(DeviceKind::gpu).size() == 4);
  CHECK(topology.device(topology.devices(DeviceKind::gpu)[1]).name == "n0/a.gpu2");
  for (const auto gpu : topology.devices(DeviceKind::gpu)) {
    REQUIRE(topology.hcas_by_distance(gpu).size() == 1);
    CHECK(topology.hardware_name(topology.hcas_by_distance(gpu)[0]).ends_with(".hca1"));
  }
  CHECK(faults_of(k_kvm, vms, "{benchmark: all_reduce_perf, devices: [n0/a.gpu0, n0/b.gpu1]}").find("is not a GPU") !=
        std::string::npos);
}

TEST_CASE("VMs of a machine share its links, its memory and its ports") {
  const auto vms = [](const std::string& second) {
    return fmt::format(
        "[{{name: a, devices: {{gpu0: passthrough, hca0: {{vf: 1}}}}}}, {{name: b, devices: {{gpu1: passthrough, {}: "
        "{{vf: 1}}}}}}]",
        second);
  };
  const auto gpu_write = [](const std::string& vm) {
    return fmt::format(
        "{{name: {0}, benchmark: ib_write_bw, buffers: [device, device], sizes: [8 MiB], devices: [n0/{0}.gpu{1}, "
        "n1/{0}.gpu{1}]}}",
        vm, vm == "a" ? 0 : 1);
  };
  const auto both = gpu_write("a") + ", " + gpu_write("b");
  const auto shared = forecast(k_kvm, vms("hca0"), both).front().rows.front().time;
  const auto apart = forecast(k_kvm, vms("hca1"), both).front().rows.front().time;
  const auto alone = forecast(k_kvm, vms("hca0"), gpu_write("a")).front().rows.front().time;
  CHECK(shared.seconds() > 1.7 * alone.seconds());
  CHECK(apart.seconds() < 1.5 * alone.seconds());
}

TEST_CASE("VMs of one machine without an adapter meet in the hypervisor's switch") {
  const auto rate = [](const std::string& net) {
    const auto text = fmt::format(
        "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n    - "
        "{{name: n, host: {{processor: xeon-skylake, devices: []}}, vms: [{{name: a, count: 2, devices: {{{}}}}}]}}\n"
        "workload: {{benchmark: osu_bw, sizes: [4 MiB]}}\n",
        net);
    return test::run(test::scenario(text)).workloads.front().rows.front().algbw.bytes_per_s;
  };
  CHECK(rate("net0: vmxnet3") > 2e9);
  CHECK(rate("net0: vmxnet3") < 5e9);
  CHECK(rate("net0: {mode: vmxnet3, rate_limit: 10 Gb/s}") == test::approx(1.25e9).epsilon(0.02));
}

TEST_CASE("software adapters of all kinds meet in the hypervisor's switch, by memory copy only from PVRDMA to PVRDMA") {
  const auto rate = [](const std::string& first, const std::string& second) {
    const auto vms =
        fmt::format("[{{name: a, devices: {{hca0: {}}}}}, {{name: b, devices: {{hca0: {}}}}}]", first, second);
    return forecast("{version: \"8.0\"}", vms,
                    "{benchmark: osu_bw, devices: [n0/a.memory0, n0/b.memory0], sizes: [4 MiB]}")
        .front()
        .rows.front()
        .algbw.bytes_per_s;
  };
  const double over_tcp = rate("vmxnet3", "vmxnet3");
  CHECK(rate("pvrdma", "vmxnet3") == test::approx(over_tcp).epsilon(0.02));
  CHECK(rate("vmxnet3", "pvrdma") == test::approx(over_tcp).epsilon(0.02));
  CHECK(rate("pvrdma", "pvrdma") > 1.5 * over_tcp);
}

TEST_CASE("vGPUs of several VMs share a GPU in time, MIG instances by multiprocessors, idle ones not at all") {
  const auto step = [](const std::string& way, int count, const std::string& more = "") {
    const auto vms =
        fmt::format("[{{name: a, count: {}, devices: {{gpu0: {}, hca0: {{vf: 1}}}}{}}}]", count, way, more);
    const auto name = count == 1 ? "a" : "a0";
    return time_of(k_kvm, vms,
                   fmt::format("{{benchmark: gpu_step, compute: 20 ms, sizes: [0 B], devices: [n0/{}.gpu0]}}", name))
        .seconds();
  };
  const double one = step("{vgpu: a100-10c}", 1);
  CHECK(step("{vgpu: a100-10c}", 2) > 1.9 * one);
  CHECK(step("{vgpu: a100-10c}", 4) > 3.8 * one);
  CHECK(step("{vgpu: a100-10c}", 4, ", gpu_load: off") < 1.1 * one);
  const double third = step("{mig: 2g.10gb}", 1);
  CHECK(third > 3 * one);
  CHECK(step("{mig: 2g.10gb}", 3) == test::approx(third).epsilon(0.05));
}

TEST_CASE("a training step waits for the smallest part of a GPU, whichever of a VM's GPUs has it") {
  const auto step = [](const std::string& gpus, const std::string& devices) {
    return time_of(
               k_kvm, fmt::format("[{{name: a, devices: {{{}, hca0: {{vf: 1}}}}}}]", gpus),
               "{benchmark: training, network: resnet-50, precision: fp16, batch_per_gpu: 8, parallel: {data: ddp}, "
               "devices: [" +
                   devices + "]}")
        .seconds();
  };
  const double small = step("gpu0: {mig: 1g.5gb}", "n0/a"), large = step("gpu0: {mig: 3g.20gb}", "n0/a");
  REQUIRE(small > 1.5 * large);
  CHECK(step("gpu0: {mig: 1g.5gb}, gpu1: {mig: 3g.20gb}", "n0/a") > small);
  CHECK(step("gpu0: {mig: 3g.20gb}, gpu1: {mig: 1g.5gb}", "n0/a") > small);
}

TEST_CASE("clients of one remote GPU are refused above all of it, or wait for their part") {
  const auto text = [](const std::string& settings, double share) {
    return fmt::format(
        "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n    - "
        "{{name: c, host: {{processor: xeon-skylake, devices: [{{name: hca0, type: connectx-5-100g, below: "
        "socket0}}]}}, "
        "virtualization: {0}, vms: [{{name: a, count: 2, devices: {{far: {{remote: s.gpu0, share: {1}}}, hca0: "
        "pvrdma}}}}]}}\n"
        "    - {{name: s, host: {{processor: xeon-skylake, devices: [{{name: gpu0, type: a100-pcie-40, below: "
        "socket0}}, "
        "{{name: hca0, type: connectx-5-100g, below: socket0}}]}}}}\n  fabric: {{single_switch: {{switch: sn2700}}}}\n"
        "workload: {{benchmark: gpu_step, compute: 20 ms, sizes: [0 B], devices: [c/a0.far]}}\n",
        settings, share);
  };
  const auto time = [&](const std::string& settings, double share) {
    return test::run(test::scenario(text(settings, share))).workloads.front().rows.front().time.seconds();
  };
  const auto loaded = test::scenario(text("{version: \"8.0\"}", 0.8));
  CHECK(render(check_virtualization(loaded.topology, loaded.parameters, loaded.device_types))
            .find("clients ask for 1.6 of s.gpu0") != std::string::npos);
  CHECK(time("{version: \"8.0\"}", 0.5) > 1.9 * 20e-3);
  CHECK(time("{remote_sharing: queue}", 0.8) == test::approx(time("{remote_sharing: queue}", 0.5)).epsilon(1e-3));
}

TEST_CASE("vCPUs of other VMs slow a step by how many there are, their load and their shares") {
  const auto step = [](const std::string& own, const std::string& other) {
    const auto vms = fmt::format(
        "[{{name: a, vcpus: 8, devices: {{gpu0: passthrough, hca0: vmxnet3}}{}}}, {{name: b, count: 10, vcpus: 8, "
        "devices: {{hca0: vmxnet3}}{}}}]",
        own, other);
    return time_of("{version: \"8.0\"}", vms,
                   "{benchmark: gpu_step, compute: 20 ms, sizes: [0 B], devices: [n0/a.gpu0]}");
  };
  const auto alone = step("", ", cpu_load: 0");
  CHECK(step("", "") > alone);
  CHECK(step("", ", cpu_load: 0.2") > alone);
  CHECK(step("", ", cpu_load: 0.2") < step("", ", cpu_load: 0.8"));
  CHECK(step(", cpu_shares: 8000", "") < step("", ""));
  CHECK(step(", latency_sensitivity: high", ", cpu_load: 0.8") == alone);
}

TEST_CASE("NCCL over TCP slows with the load and the shares of other VMs' vCPUs, unless cores are its own") {
  const auto reduce = [](const std::string& own, const std::string& other) {
    const auto vms = fmt::format(
        "[{{name: a, vcpus: 8, devices: {{gpu0: passthrough, hca0: vmxnet3}}{}}}, {{name: b, count: 10, vcpus: 8, "
        "devices: {{hca1: vmxnet3}}{}}}]",
        own, other);
    return time_of("{version: \"8.0\"}", vms, "{benchmark: all_reduce_perf, devices: [n0/a, n1/a], sizes: [8 B]}");
  };
  // Messages of an overcommitted host wait as before, whatever the others' load: compared at equal numbers of vCPUs.
  CHECK(reduce("", ", cpu_load: 0.2") < reduce("", ", cpu_load: 0.8"));
  CHECK(reduce(", cpu_shares: 8000", "") < reduce("", ""));
  CHECK(reduce(", latency_sensitivity: high", ", cpu_load: 0.2") ==
        reduce(", latency_sensitivity: high", ", cpu_load: 0.8"));
}

TEST_CASE("several parts of one card in a VM are GPUs of their own in the card's slot, and share it") {
  const auto vm = [](const std::string& way) { return "[{name: a, devices: {gpu0: " + way + ", hca0: {vf: 1}}}]"; };
  const auto loaded = test::scenario(cluster(k_kvm, vm("{mig: [2g.10gb, 1g.5gb]}")) +
                                     "workload: {benchmark: host_copies, gpus: 2, sizes: [64 MiB]}\n");
  const auto gpus = loaded.topology.devices(DeviceKind::gpu, 0);
  REQUIRE(gpus.size() == 2);
  CHECK(loaded.topology.device(gpus[1]).name == "n0/a.gpu0-1");
  CHECK(!has_errors(check_virtualization(loaded.topology, loaded.parameters, loaded.device_types)));
  // Both copy over the slot's one link: half as fast as one alone, which is as fast as the whole card.
  const auto copies = [&](const std::string& way, const std::string& devices) {
    return time_of(k_kvm, vm(way),
                   "{benchmark: host_copies, direction: to_device, sizes: [256 MiB], devices: [" + devices + "]}")
        .seconds();
  };
  const double one = copies("{mig: [2g.10gb, 1g.5gb]}", "n0/a.gpu0-1");
  CHECK(one == test::approx(copies("passthrough", "n0/a.gpu0")).epsilon(0.01));
  CHECK(copies("{mig: [2g.10gb, 1g.5gb]}", "n0/a.gpu0, n0/a.gpu0-1") > 1.8 * one);
  // vGPUs of one VM take turns as those of several VMs do.
  const auto step = [&](const std::string& way) {
    return time_of(k_kvm, vm(way), "{benchmark: gpu_step, compute: 20 ms, sizes: [0 B], devices: [n0/a.gpu0]}")
        .seconds();
  };
  CHECK(step("{vgpu: [a100-10c, a100-10c]}") > 1.9 * step("{vgpu: a100-10c}"));
  const auto too_many = load_scenario(test::write_file(
      "parts.yaml", cluster(k_kvm, vm("{mig: [4g.20gb, 4g.20gb]}")) + "workload: {benchmark: gpu_step}\n"));
  REQUIRE(too_many);
  CHECK(render(check_virtualization(too_many->topology, too_many->parameters, too_many->device_types))
            .find("do not fit together on gpu0") != std::string::npos);
}

TEST_CASE("jobs in MIG instances of a card compute beside each other, in one instance they take turns, in vGPUs once") {
  const auto both = [](const std::string& way, const std::string& other) {
    const std::string job = "benchmark: training, network: gpt-124m, batch_per_gpu: 2, gpus: 1, devices: [n0/a.gpu";
    return forecast(k_kvm, "[{name: a, devices: {gpu0: " + way + "}}]",
                    "{name: a, " + job + "0]}, {name: b, " + job + other + "]}")[0]
        .rows.front()
        .time.seconds();
  };
  const std::string mig = "{mig: [2g.10gb, 2g.10gb]}", vgpu = "{vgpu: [a100-10c, a100-10c]}";
  const double turns = 2 * 1.62 / (1.62 - 0.136);
  CHECK(both(mig, "0") == test::approx(turns * both(mig, "0-1")).epsilon(0.01));
  // The other vGPU is taken to be busy whatever runs in it.
  CHECK(both(vgpu, "0-1") > 1.9 * both("{vgpu: a100-10c}", "0") / turns);
  CHECK(both(vgpu, "0-1") < 2.3 * both("{vgpu: a100-10c}", "0") / turns);
  CHECK(both(vgpu, "0") == test::approx(turns * both(vgpu, "0-1")).epsilon(0.01));
}

TEST_CASE("a migration shares the network with the traffic beside it, and is refused where a device ties the VM") {
  const auto workloads = [](const std::string& more) {
    return "{name: move, benchmark: vgpu_migration, sizes: [8 GiB], migration: {vm: n0/a, to: n1, memory: 32 GiB, "
           "link: 100 Gb/s" +
           more + "}}";
  };
  const std::string vms =
      "[{name: a, memory: 32 GiB, devices: {gpu0: {vgpu: a100-10c}, hca0: vmxnet3}}, {name: b, devices: {gpu1: "
      "passthrough, hca0: passthrough}}]";
  const std::string can =
      "[{name: a, memory: 32 GiB, devices: {gpu0: {vgpu: a100-10c}, hca0: vmxnet3}}, {name: b, devices: {hca0: {vf: "
      "1}}}]";
  const auto alone = time_of("{version: \"8.0\"}", can, workloads(""));
  CHECK(alone.seconds() > (32.0 + 8.0) * 1.0737 / 12.5);
  // The VM says how much memory it has; where neither does, nothing is assumed.
  auto untold = workloads("");
  untold.replace(untold.find("memory: 32 GiB, "), 16, "");
  CHECK(time_of("{version: \"8.0\"}", can, untold) == alone);
  auto unknown = can;
  unknown.replace(unknown.find("memory: 32 GiB, "), 16, "");
  CHECK(faults_of("{version: \"8.0\"}", unknown, untold).find("nothing says how much memory VM 'n0/a' has") !=
        std::string::npos);
  CHECK(time_of("{version: \"8.0\"}", can, workloads(", dirty_rate: 5 GB/s")) > alone);
  CHECK(faults_of("{version: \"8.0\"}", can, workloads(", dirty_rate: 20 GB/s")).find("copying never ends") !=
        std::string::npos);
  // A vGPU of 10 GB has no 16 GiB to move, and other hypervisors have no table of stuns.
  auto more = workloads("");
  more.replace(more.find("8 GiB"), 5, "16 GiB");
  CHECK(faults_of("{version: \"8.0\"}", can, more).find("the vGPUs of VM 'n0/a' have 10 GB") != std::string::npos);
  CHECK(faults_of("{hypervisor: kvm}", "[{name: a, memory: 32 GiB, devices: {gpu0: {vgpu: a100-10c}, hca0: virtio}}]",
                  workloads(""))
            .find("stun tables are known for ESXi, VM 'n0/a' runs on kvm") != std::string::npos);
  // gpu0 of both machines has two parts of 20 GB; what the other three have decides.
  const auto beside = [&](const std::string& others) {
    std::string all =
        "[{name: a, memory: 32 GiB, devices: {gpu0: {vgpu: a100-20c}, hca0: vmxnet3}}, {name: b, devices: "
        "{gpu0: {vgpu: a100-20c}}}";
    for (int g = 1; g < 4; ++g) all += fmt::format(", {{name: c{0}, devices: {{gpu{0}: {1}}}}}", g, others);
    return faults_of("{version: \"8.0\"}", all + "]", workloads(""));
  };
  const std::string no_place = "the GPUs of 'n1' have no place for the a100-20c of VM 'n0/a'";
  CHECK(beside("{vgpu: a100-20c}").find(no_place) == std::string::npos);
  CHECK(beside("{vgpu: a100-40c}").find(no_place) != std::string::npos);
  CHECK(beside("passthrough").find(no_place) != std::string::npos);
  const std::string tied = "[{name: a, memory: 32 GiB, devices: {gpu0: passthrough, hca0: vmxnet3}}]";
  CHECK(faults_of("{version: \"8.0\"}", tied, workloads("")).find("a passed-through GPU ties the VM") !=
        std::string::npos);
  CHECK(faults_of("{version: \"6.7\"}", "[{name: a, memory: 32 GiB, devices: {hca0: {vf: 1}}}]", workloads(""))
            .find("a virtual function ties") != std::string::npos);
}
