// SPDX-License-Identifier: Apache-2.0
// What virtual machines do to forecasts: gates, redirected and translated peer traffic, virtual ports, VMs side by
// side.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "fabricast/check.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/random.hpp"

using namespace fabricast;
using namespace fabricast::literals;

namespace {

/// Two hosts, each with two GPUs and an adapter below one PCIe switch.
std::string scenario_of(const std::string& virtualization, const std::string& workload) {
  return fmt::format(
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n    - "
      "{{name: n, count: 2, host: {{processor: epyc-rome, devices: [{{name: sw0, kind: pcie_switch, below: socket0, "
      "pcie: gen4 x16}}, {{name: gpu0, type: a100-pcie-40, below: sw0}}, {{name: gpu1, type: a100-pcie-40, below: "
      "sw0}}, {{name: hca0, type: connectx-6-hdr, below: sw0}}]}}}}\n  fabric:\n    single_switch: {{switch: "
      "qm8700}}\nvirtualization: {}\nworkload: {}\n",
      virtualization, workload);
}

const std::string k_bandwidth = "{benchmark: ib_write_bw, buffers: [device, device], sizes: [8 MiB]}";
const std::string k_latency = "{benchmark: osu_latency, buffers: [device, device], sizes: [8 B]}";
const std::string k_host_latency = "{benchmark: osu_latency, sizes: [8 B]}";

LoadedScenario load(const std::string& virtualization, const std::string& workload) {
  return test::scenario(scenario_of(virtualization, workload));
}

WorkloadPrediction forecast(const std::string& virtualization, const std::string& workload) {
  return test::run(load(virtualization, workload)).workloads.front();
}

double rate_of(const std::string& virtualization, const std::string& workload = k_bandwidth) {
  return forecast(virtualization, workload).rows.front().algbw.bytes_per_s;
}

double time_of(const std::string& virtualization, const std::string& workload) {
  return forecast(virtualization, workload).rows.front().time.us();
}

bool has_term(const WorkloadPrediction& workload, const std::string& words) {
  const auto& terms = workload.rows.front().terms;
  return std::any_of(terms.begin(), terms.end(),
                     [&](const Term& term) { return term.name.find(words) != std::string::npos; });
}

bool says(const std::vector<std::string>& lines, const std::string& words) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& line) { return line.find(words) != std::string::npos; });
}

}  // namespace

TEST_CASE("bare metal written out is bare metal left out, term by term") {
  const auto given = forecast("bare-metal", k_latency);
  auto text = scenario_of("x", k_latency);
  text.erase(text.find("virtualization: x\n"), std::string("virtualization: x\n").size());
  const auto left_out = test::run(test::scenario(text)).workloads.front();
  REQUIRE(given.rows.size() == left_out.rows.size());
  CHECK(given.rows.front().time.ps == left_out.rows.front().time.ps);
  REQUIRE(given.rows.front().terms.size() == left_out.rows.front().terms.size());
  for (std::size_t i = 0; i < given.rows.front().terms.size(); ++i)
    CHECK(given.rows.front().terms[i].name == left_out.rows.front().terms[i].name);
  CHECK(given.assumptions == left_out.assumptions);
}

TEST_CASE("bare metal reads no parameter of virtual machines, whatever runs on it") {
  const std::vector<std::string> works{k_bandwidth,
                                       k_latency,
                                       k_host_latency,
                                       "{benchmark: all_reduce_perf, sizes: [8 B, 64 MiB]}",
                                       "{benchmark: all_reduce_perf, sizes: [64 MiB]}\nsoftware: {transport: tcp}",
                                       "{benchmark: gpu_step, compute: 20 ms, sizes: [1 MiB]}",
                                       "{benchmark: host_copies, gpus: 2, sizes: [1 MiB]}",
                                       "{benchmark: osu_allreduce, sizes: [1 MiB]}",
                                       "{benchmark: traffic, pattern: permutation, sizes: [1 MiB]}"};
  const auto reads = [](const LoadedScenario& loaded) {
    std::set<std::string, std::less<>> names;
    auto parameters = loaded.parameters;
    parameters.collect_reads(&names);
    const auto run = simulate(loaded.topology, loaded.scenario, parameters, {});
    if (!run) FAIL(render(run.error()));
    std::set<std::string> out;
    for (const auto& name : names)
      for (const auto* layer : {"virtualization.", "support.", "esxi.", "vgpu.", "mig.", "mig_placement.", "migration.",
                                "remote_gpu.", "host.cpu_", "host.knowledge_", "host.machine_"})
        if (name.starts_with(layer)) out.insert(name);
    return out;
  };
  for (const auto& work : works) {
    CAPTURE(work);
    auto text = scenario_of("x", work);
    text.erase(text.find("virtualization: x\n"), std::string("virtualization: x\n").size());
    const auto found = reads(test::scenario(text));
    CAPTURE(fmt::format("{}", fmt::join(found, " ")));
    CHECK(found.empty());
    // The same look sees them in a VM, but for copies, which cost there what they cost here.
    CHECK(reads(load("sr-iov", work)).empty() == (work.find("host_copies") != std::string::npos));
  }
}

TEST_CASE("no way of virtualization is faster than bare metal, and the ways keep their order") {
  for (const auto& workload : {k_latency, k_host_latency}) {
    double before = time_of("bare-metal", workload);
    for (const auto* mode : {"sr-iov", "pvrdma", "tcp"}) {
      CAPTURE(mode);
      const double time = time_of(mode, workload);
      CHECK(time > before);
      before = time;
    }
    CHECK(time_of("passthrough", workload) > time_of("bare-metal", workload));
    CHECK(time_of("passthrough", workload) < time_of("pvrdma", workload));
  }
}

TEST_CASE("a small message pays the tax of both ends by name, and a fifth of it with latency sensitivity high") {
  const double metal = time_of("bare-metal", k_host_latency);
  const auto normal = forecast("passthrough", k_host_latency);
  CHECK(has_term(normal, "virtualization: passthrough at n0"));
  CHECK(has_term(normal, "virtualization: passthrough at n1"));
  // 0.09 us per end
  CHECK(normal.rows.front().time.us() - metal == test::approx(0.18).epsilon(0.01));
  const double high = time_of("{mode: passthrough, latency_sensitivity: high}", k_host_latency);
  CHECK(high - metal == test::approx(0.2 * 0.18).epsilon(0.02));
}

TEST_CASE("device messages are staged where the release or allowP2P closes the gate, and the reason is printed") {
  for (const auto* closed :
       {"{mode: passthrough, version: \"6.5\"}", "{mode: passthrough, allow_p2p: off}", "{mode: pvrdma}"}) {
    CAPTURE(closed);
    const auto staged = forecast(closed, k_latency);
    CHECK(staged.rows.front().protocol == "staged eager");
    const auto reason = std::find_if(staged.settings.begin(), staged.settings.end(),
                                     [](const GivenUsed& one) { return one.setting == "GPUDirect RDMA in the VM"; });
    REQUIRE(reason != staged.settings.end());
    CHECK(reason->used == "impossible");
    CHECK_FALSE(reason->reason.empty());
  }
  // MPI reads GPU memory whatever the guest sees of the tree; NCCL goes by what it sees.
  for (const auto* open : {"{mode: passthrough, version: \"6.7\"}", "sr-iov", "{mode: passthrough, hypervisor: kvm}",
                           "{mode: passthrough, hypervisor: kvm, guest_topology: injected}"}) {
    CAPTURE(open);
    CHECK(forecast(open, k_latency).rows.front().protocol == "eager gdr");
  }
}

TEST_CASE("redirected peer requests climb the switch's uplink and come down again, twice for both directions") {
  const auto path_of = [](const std::string& virtualization) {
    const auto loaded = load(virtualization, k_bandwidth);
    const auto gpu = *loaded.topology.find_device("n0.gpu0");
    const auto hca = *loaded.topology.find_device("n0.hca0");
    return *loaded.topology.path_in_host(gpu, hca);
  };
  for (const auto* direct : {"bare-metal", "passthrough", "{mode: passthrough, acs: off, ats: off}"}) {
    CAPTURE(direct);
    const auto path = path_of(direct);
    CHECK(path.links.size() == 2);  // GPU to switch, switch to adapter
    CHECK(path.root_complexes.empty());
  }
  for (const auto* up :
       {"{mode: passthrough, acs: redirect}", "{mode: passthrough, ats: off}", "{mode: bare-metal, acs: redirect}"}) {
    CAPTURE(up);
    const auto path = path_of(up);
    CHECK(path.links.size() == 4);
    CHECK(path.root_complexes.size() == 1);
    REQUIRE(path.peer_crossings.size() == 1);
    CHECK(path.peer_crossings.front().is_redirected);
    // The limit of peer reads through this processor, 12 GB/s, instead of the port.
    CHECK(rate_of(up) == test::approx(12e9).epsilon(0.01));
  }
  CHECK(rate_of("passthrough") > 24e9);
}

TEST_CASE("the distances NCCL and MPI see do not change by redirection, only by hiding the tree") {
  const auto distance = [](const std::string& virtualization) {
    const auto loaded = load(virtualization, k_bandwidth);
    return loaded.topology.distance(*loaded.topology.find_device("n0.gpu0"), *loaded.topology.find_device("n0.hca0"));
  };
  CHECK(distance("bare-metal") == Distance::pix);
  CHECK(distance("{mode: passthrough, acs: redirect, guest_topology: shown}") == Distance::pix);
  CHECK(distance("{mode: passthrough, guest_topology: injected}") == Distance::pix);
  CHECK(distance("{mode: passthrough, guest_topology: hidden}") == Distance::phb);
  for (const auto* hypervisor : {"esxi", "kvm", "cloud-hypervisor", "xen", "hyper-v"})
    CHECK(distance(fmt::format("{{mode: passthrough, hypervisor: {}}}", hypervisor)) == Distance::phb);
}

TEST_CASE("virtual functions keep to their rate limit, and adapters on small pages to what the IOMMU translates") {
  CHECK(rate_of("{mode: sr-iov, rate_limit: 80 Gb/s}") == test::approx(10e9).epsilon(0.001));
  CHECK(rate_of("{mode: passthrough, huge_pages: off}") == test::approx(20e9).epsilon(0.001));
  CHECK(rate_of("sr-iov") / rate_of("bare-metal") == test::approx(0.985).epsilon(0.002));
}

TEST_CASE("a software adapter pays per byte and per packet: jumbo frames carry more") {
  const std::string tcp = "{benchmark: iperf3}";
  // 1 / (150 ps + 0.66 us / (1500 - 52)) and 1 / (150 ps + 0.66 us / (9000 - 52))
  CHECK(rate_of("{mode: tcp, hypervisor: kvm, mtu: 1500}", tcp) == test::approx(1.651e9).epsilon(0.01));
  CHECK(rate_of("{mode: tcp, hypervisor: kvm, mtu: 9000}", tcp) == test::approx(4.47e9).epsilon(0.01));
}

TEST_CASE("perftest needs an RDMA device in the guest") {
  const auto loaded = load("tcp", k_bandwidth);
  const auto refused = simulate(loaded.topology, loaded.scenario, loaded.parameters);
  REQUIRE_FALSE(refused.has_value());
  CHECK(render(refused.error()).find("ib_write_bw needs RDMA, the VM has n0.hca0 by vmxnet3") != std::string::npos);
}

TEST_CASE("VMs of one host share neither NVLink nor memory") {
  const auto run = [](const std::string& virtualization) {
    return test::run(test::shipped(
                         "what-if-virtualization.yaml",
                         {{"virtualization", virtualization}, {"workload.gpus", "8"}, {"workload.sizes", "[64 MiB]"}}))
        .workloads.front();
  };
  const auto one = run("sr-iov");
  const auto two = run("{mode: sr-iov, vms_per_host: 2}");
  CHECK(one.num_hosts == 1);
  CHECK(two.num_hosts == 2);  // systems
  CHECK(has_term(one, "hops over nvlink"));
  CHECK(has_term(two, "hops over network"));
  CHECK(two.rows.front().time > 2 * one.rows.front().time);
}

TEST_CASE("VMs of one host meet in the adapter, in the hypervisor's switch, or by memory copy") {
  const std::string two_gpus = "{benchmark: all_reduce_perf, gpus: 2, sizes: [64 MiB]}";
  const auto run = [&](const std::string& mode) {
    return forecast(fmt::format("{{mode: {}, vms_per_host: 2}}", mode), two_gpus);
  };
  const auto sr_iov = run("sr-iov");
  const auto tcp = run("tcp");
  const auto pvrdma = run("pvrdma");
  CHECK(sr_iov.rows.front().bottleneck.find("n0.") != std::string::npos);
  CHECK(has_term(tcp, "exchange between VMs in n0.memory0"));
  CHECK(has_term(pvrdma, "copies between VMs in n0.memory0"));
  CHECK(tcp.rows.front().time > pvrdma.rows.front().time);
  CHECK(pvrdma.rows.front().time > sr_iov.rows.front().time);
}

TEST_CASE("VMs of one host without an adapter cannot reach each other by message passing, and are told so") {
  const auto loaded = test::scenario(
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n    - "
      "{name: n, type: h200-2gpu-vm}\nvirtualization: {mode: passthrough, vms_per_host: 2}\nworkload: {benchmark: "
      "osu_latency, buffers: [device, device], sizes: [8 B]}\n");
  const auto refused = simulate(loaded.topology, loaded.scenario, loaded.parameters);
  REQUIRE_FALSE(refused.has_value());
  CHECK(render(refused.error()).find("no network path from host 'n' to host 'n'") != std::string::npos);
  CHECK(render(refused.error()).find("VMs of one machine meet in an adapter's switch") != std::string::npos);
}

TEST_CASE("copies of a VM that is not aligned with its devices cross the sockets") {
  const std::string copy = "{benchmark: host_copies, gpus: 1, sizes: [64 MiB]}";
  const auto crossings = [&](const std::string& virtualization) {
    const auto loaded = load(virtualization, copy);
    const auto gpu = *loaded.topology.find_device("n0.gpu0");
    return loaded.topology.path_in_host(gpu, loaded.topology.local_memory(gpu))->socket_crossings;
  };
  CHECK(crossings("passthrough") == 0);
  CHECK(crossings("{mode: passthrough, numa: off}") == 1);
}

TEST_CASE("vCPUs beyond the cores make messages wait") {
  const auto crowded = forecast("{mode: tcp, vms_per_host: 2, vcpus: 128}", k_host_latency);
  CHECK(has_term(crowded, "waiting for a core at n0"));
  CHECK_FALSE(has_term(forecast("{mode: tcp, vms_per_host: 2, vcpus: 8}", k_host_latency), "waiting for a core"));
}

TEST_CASE("a result that rests on figures nobody has published says so, with their range") {
  CHECK(says(forecast("pvrdma", k_host_latency).assumptions,
             "assumed, nobody has published it: virtualization.pvrdma.message_time = 9e-07, between 3e-07 and 2e-06"));
  CHECK_FALSE(says(forecast("sr-iov", k_host_latency).assumptions, "nobody has published it"));
  const auto row = forecast("pvrdma", k_host_latency).rows.front();
  CHECK((row.high_time - row.low_time).us() > 0.5 * row.time.us());
}

TEST_CASE("a remote GPU pays a call over the network before every operation") {
  const std::string all_reduce = "{benchmark: all_reduce_perf, gpus: 2, sizes: [8 B]}";
  const auto remote = forecast("remote-gpu", all_reduce);
  CHECK(has_term(remote, "call to the remote GPU, software at both ends"));
  CHECK(has_term(remote, "call to the remote GPU, round trip over vmxnet3"));
  CHECK(remote.rows.front().time.us() > forecast("passthrough", all_reduce).rows.front().time.us() + 59);
}

TEST_CASE("vGPUs that share a GPU wait for each other as the scheduler says, MIG instances own their part") {
  const std::string step = "{benchmark: gpu_step, gpus: 1, compute: 100 ms}";
  const auto beside = [&](const std::string& settings) { return time_of("{mode: vgpu, " + settings + "}", step); };
  const double alone = time_of("vgpu", step);
  CHECK(alone == test::approx(104'000));
  CHECK(beside("profile: a100-10c, busy_neighbours: 1") == test::approx(2 * alone).epsilon(0.15));
  CHECK(beside("profile: a100-10c, busy_neighbours: 3") == test::approx(4 * alone).epsilon(0.15));
  CHECK(beside("profile: a100-10c") == test::approx(alone).epsilon(0.01));  // best effort gives idle slices away
  // Fixed share: a quarter of the GPU even alone.
  CHECK(beside("profile: a100-10c, scheduler: fixed_share") == test::approx(4 * alone).epsilon(0.15));
  CHECK(has_term(forecast("{mode: vgpu, profile: a100-10c, busy_neighbours: 1}", step), "time slices of others"));
  // 3g.20gb: 42 of 108 multiprocessors.
  CHECK(time_of("{mode: mig, profile: 3g.20gb}", step) == test::approx(100'000 * 108 / 42 + 4000).epsilon(0.01));
}

TEST_CASE("device data of a remote GPU travels to the client first, call and bytes, at both ends") {
  const std::string megabyte = "{benchmark: osu_latency, buffers: [device, device], sizes: [1 MiB]}";
  const auto remote = forecast("remote-gpu", megabyte);
  CHECK(has_term(remote, "data to or from the remote GPU"));
  // Twice 60 us, twice 1 MiB at 1 / (150 ps + 0.66 us / 8948) = 4.47 GB/s
  const double more = 2 * 60 + 2 * 1048576 / 4470.0;
  CHECK(remote.rows.front().time.us() - time_of("tcp", megabyte) == test::approx(more).epsilon(0.02));
}

TEST_CASE("compute pays the tax of its way to the GPU, once") {
  const std::string step = "{benchmark: gpu_step, gpus: 1, compute: 10 ms}";
  CHECK(time_of("bare-metal", step) == test::approx(10'000));
  CHECK(time_of("passthrough", step) == test::approx(10'400));
  CHECK(time_of("{mode: passthrough, container: on}", step) == test::approx(10'400));  // a container costs nothing
  CHECK(time_of("vgpu", step) == test::approx(10'400));
}

TEST_CASE("a remote GPU is never faster than the same GPU local in the same kind of VM, however long the step") {
  for (std::uint64_t seed = 0; seed < test::draws(20); ++seed) {
    CAPTURE(seed);
    test::Random random(seed);
    const auto step = fmt::format("{{benchmark: gpu_step, gpus: 1, compute: {} us}}", 1 << random.next(22));
    CAPTURE(step);
    const auto with = [&](const std::string& mode, const std::string& more) {
      return time_of(fmt::format("{{mode: {}{}}}", mode, more), step);
    };
    const auto vms = random.pick<std::string>({"", ", vms_per_host: 2"});
    const auto remote = with("remote-gpu", vms);
    CHECK(remote > with("tcp", vms));
    CHECK(remote > with("passthrough", vms));
    CHECK(with("remote-gpu", vms + ", gpu_share: 0.5") > remote);
  }
  // The server is a VM with the GPU: 4 % of the step, and 40 calls of 60 us.
  CHECK(time_of("remote-gpu", "{benchmark: gpu_step, gpus: 1, compute: 200 ms}") == test::approx(208'000 + 2400));
}

TEST_CASE("a result names the peer access that the host has, not what the GPU's data sheet could have") {
  const auto line_of = [](const std::string& type, const std::string& nvlinks) {
    const auto loaded = test::scenario(fmt::format(
        "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n"
        "    - {{name: n, host: {{processor: xeon-skylake, devices: [{{name: gpu0, type: {0}, below: socket0}}, "
        "{{name: gpu1, type: {0}, below: socket0}}]{1}}}}}\n"
        "virtualization: {{mode: passthrough, allow_p2p: off}}\n"
        "workload: {{benchmark: all_reduce_perf, sizes: [1 MiB]}}\n",
        type, nvlinks));
    std::string out;
    const auto prediction = test::run(loaded);
    for (const auto& one : prediction.workloads.front().settings)
      if (one.setting.starts_with("peer access over")) out += one.setting + ": " + one.used + " ";
    const auto checked = virtual_features(loaded.topology, loaded.parameters);
    CHECK((checked.find("GPU peer access yes") != std::string::npos) == (out.find(": yes") != std::string::npos));
    return out;
  };
  for (const auto& file : std::filesystem::directory_iterator(FABRICAST_SOURCE_DIR "/models/catalogue/gpus")) {
    std::ifstream in(file.path());
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    if (text.find("form: superchip") != std::string::npos) continue;  // not below a Xeon
    const auto type = file.path().stem().string();
    CAPTURE(type);
    CHECK(line_of(type, "") == "peer access over PCIe: no ");
  }
  CHECK(line_of("a100-pcie-40", ", nvlinks: [{from: gpu0, to: gpu1, links: 12}]") == "peer access over NVLink: yes ");
}

TEST_CASE("what keeps NCCL from GPUDirect RDMA between hosts is said beside the setting, in steps too") {
  const auto reason_of = [](const std::string& virtualization, const std::string& workload) {
    for (const auto& one : forecast(virtualization, workload).settings)
      if (one.setting == "GPUDirect RDMA between hosts") return one.used + ": " + one.reason;
    return std::string();
  };
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  for (const std::string workload :
       {"{benchmark: all_reduce_perf, sizes: [1 MiB]}", "{benchmark: sendrecv_perf, sizes: [1 MiB]}",
        "{benchmark: training, network: resnet-50, batch_per_gpu: 8, gpus: 4}"}) {
    CAPTURE(workload);
    CHECK(reason_of("bare-metal", workload) == "yes: ");
    CHECK(reason_of("{mode: passthrough, guest_topology: shown}", workload) == "yes: ");
    CHECK(
        has(reason_of("passthrough", workload), "no: n0.gpu0 and n0.hca0 are PHB apart where the guest does not see"));
    CHECK(has(reason_of("{mode: passthrough, guest_topology: injected, allow_p2p: off}", workload), "no: "));
  }
}
