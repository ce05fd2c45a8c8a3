// SPDX-License-Identifier: Apache-2.0
// Virtual machines, copies, TCP, and packets over fabrics and settings.
#include <algorithm>
#include <array>

#include "tests/unit/kept/table.hpp"

using namespace fabricast;

namespace {

std::string hosts_in(const std::string& mode) {
  return fmt::format(
      "hosts: [{{name: n, count: 3, type: server-2s-skylake-2v100{}}}]\nfabric: {{single_switch: {{switch: "
      "sn2700}}}}\n",
      mode.empty() ? "" : ", virtualization: {" + mode + "}");
}

/// What ports counted, as sums, and the fullest.
std::string fabric_text(const FabricReport& fabric) {
  std::uint64_t marked = 0, received = 0, sent = 0, frames = 0, dropped = 0;
  std::int64_t queue = 0, ingress = 0, headroom = 0;
  Duration paused, starved;
  for (const auto& port : fabric.ports) {
    marked += port.marked_packets;
    received += port.pauses_received;
    sent += port.pauses_sent;
    frames += port.pause_frames;
    dropped += port.dropped_packets;
    paused += port.paused;
    starved += port.starved;
    queue = std::max(queue, port.max_queue.value);
    ingress = std::max(ingress, port.max_ingress.value);
    headroom = std::max(headroom, port.headroom_used.value);
  }
  return fmt::format(
      "; marked {} pauses {} {} frames {} dropped {} paused {} starved {} queue {} ingress {} headroom {}", marked,
      received, sent, frames, dropped, paused.ps, starved.ps, queue, ingress, headroom);
}

}  // namespace

TEST_CASE("benchmarks in virtual machines of every mode take what they took") {
  std::string out;
  const std::array modes{"",
                         "mode: passthrough",
                         "mode: passthrough, hypervisor: kvm",
                         "mode: sr-iov",
                         "mode: sr-iov, rate_limit: 25 Gb/s",
                         "mode: vgpu, profile: v100-16q",
                         "mode: vgpu, profile: v100-8q",
                         "mode: remote-gpu",
                         "mode: pvrdma",
                         "mode: tcp",
                         "mode: tcp, hypervisor: kvm, vhost: off",
                         "mode: sr-iov, version: \"6.7 U1\", vms_per_host: 2",
                         "mode: passthrough, hypervisor: kvm, numa: off, pinning: off, huge_pages: off",
                         "mode: passthrough, hypervisor: kvm, guest_topology: injected, ats: on",
                         "mode: remote-gpu, gpu_share: 0.4",
                         "mode: vgpu, profile: v100-8q, busy_neighbours: 1, scheduler: equal_share",
                         "mode: vgpu, profile: v100-8q, busy_neighbours: 1, scheduler: fixed_share, time_slice: 4 ms",
                         "mode: vgpu, profile: v100-8q, busy_neighbours: 1, scheduler: best_effort",
                         "mode: sr-iov, vcpus: 400",
                         "mode: sr-iov, vcpus: 400, latency_sensitivity: high, pinning: on, memory_reservation: full",
                         "mode: sr-iov, latency_sensitivity: high, pinning: on, memory_reservation: full",
                         "mode: passthrough, hypervisor: kvm, container: on, acs: redirect",
                         "mode: passthrough, guest_topology: shown, ats: on, translation: shared",
                         "mode: passthrough, allow_p2p: on",
                         "mode: tcp, mtu: 9000",
                         "mode: tcp, vms_per_host: 2",
                         "mode: pvrdma, vms_per_host: 2, vcpus: 60",
                         "mode: vgpu, unified_memory: on"};
  for (const auto* mode : modes) {
    for (const auto* workload :
         {"benchmark: all_reduce_perf", "benchmark: osu_latency", "benchmark: osu_bw, buffers: [device, device]",
          "benchmark: osu_allreduce", "benchmark: ib_write_bw", "benchmark: iperf3", "benchmark: sockperf",
          "benchmark: host_copies, direction: to_host, gpus: 2", "benchmark: host_copies, direction: both, gpus: 2",
          "benchmark: host_copies, direction: to_peer, gpus: 2", "benchmark: gpu_step, compute: 500 us",
          "benchmark: training, network: resnet-50, precision: fp16, batch_per_gpu: 64"}) {
      const auto path =
          test::write_file("topology.yaml", "schema: fabricast/topology/1\nname: kept\n" + hosts_in(mode));
      const auto loaded = load_scenario_text(
          "s.yaml",
          fmt::format("schema: fabricast/scenario/1\nname: kept\ntopology: \"{}\"\nworkload: {{{}}}\n", path, workload),
          {}, {});
      if (!loaded) {
        out += fmt::format("  {{{}}} {}: {}\n", mode, workload, loaded.error().front().message);
        continue;
      }
      auto one = *loaded;
      auto& sizes = one.scenario.workloads.front().sizes;
      if (sizes.empty()) sizes = default_sizes(one.scenario.workloads.front().benchmark);
      if (sizes.size() > 3) sizes = {sizes.front(), sizes[sizes.size() / 2], sizes.back()};
      out += test::forecast_line(one, fmt::format("{{{}}} {}", mode, workload));
    }
  }
  test::check_kept("virtual_modes", out);
}

TEST_CASE("packets over every kind of fabric take what they took, with the pauses, marks and drops they had") {
  std::string out;
  const std::array fabrics{
      "single_switch: {switch: sn2700, lossless: {pfc: [3]}}",
      "leaf_spine: {switch: sn2700, leaf_ports: 6, spines: 2, lossless: {pfc: [3]}}",
      "leaf_spine: {switch: sn3700, leaf_ports: 6, spines: 2, lossless: {flow_control: drop}}",
      "leaf_spine: {switch: sb7800, leaf_ports: 6, spines: 1}",
      "torus: {dimensions: [2, 2, 2], switch: sb7800}",
  };
  for (const auto* fabric : fabrics) {
    for (const auto* pattern : {"incast", "permutation", "parking_lot", "victim", "ring_all_reduce"}) {
      for (const auto* transport : {"{}", "{congestion_control: none}", "{congestion_control: dcqcn}",
                                    "{routing: spray}", "{routing: adaptive}", "{verb: send}", "{verb: read}",
                                    "{window: 32 KiB}", "{window: 1 MiB, congestion_control: none}"}) {
        const auto path = test::write_file(
            "topology.yaml", fmt::format("schema: fabricast/topology/1\nname: kept\nhosts: [{{name: n, count: 8, type: "
                                         "server-1v100-cx4-100g}}]\nfabric: {{{}}}\n",
                                         fabric));
        const auto loaded = load_scenario_text(
            "s.yaml",
            fmt::format("schema: fabricast/scenario/1\nname: kept\ntopology: \"{}\"\nworkload: {{benchmark: traffic, "
                        "pattern: {}, sizes: [300 kB], transport: {}}}\n",
                        path, pattern, transport),
            {}, {});
        const auto what = fmt::format("{} {} {}", fabric, pattern, transport);
        if (!loaded) {
          out += fmt::format("  {}: {}\n", what, loaded.error().front().message);
          continue;
        }
        SimulateOptions options;
        options.fidelity = Fidelity::packet;
        const auto forecast = simulate(loaded->topology, loaded->scenario, loaded->parameters, options);
        if (!forecast) {
          out += fmt::format("  {}: {}\n", what, forecast.error().front().message);
          continue;
        }
        const auto& row = forecast->workloads.front().rows.front();
        out += fmt::format("  {}: {}", what, row.time.ps);
        for (const auto& flow : row.flows) out += fmt::format(" {}", flow.end.ps);
        if (row.fabric) out += fabric_text(*row.fabric);
        out += "\n";
      }
    }
  }
  test::check_kept("packets", out);
}
