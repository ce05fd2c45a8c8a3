// SPDX-License-Identifier: Apache-2.0
// Every key of `vms:` does something: two legal values change a forecast, a verdict of `check`, or are told apart by a
// refusal. The table must name every key of the schema, keys in keys too; mere names: docs/FORMATS.md, with reasons.
#include <fmt/format.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "fabricast/check.hpp"
#include "tests/support/approx.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {

struct Key {
  std::string key;     ///< as the schema nests it: port_group.mtu, devices.*.vf
  std::string one;     ///< VMs with the first value
  std::string other;   ///< with the second
  std::string host;    ///< settings of the host beside the VMs
  std::string work;    ///< what runs; usually a step and an all-reduce
  std::string fabric;  ///< `lossless:` of the fabric
};

/// Two VMs: a, with this key, and a busy neighbour.
std::string pair_of(const std::string& first) {
  return "[{name: a, " + first + "}, {name: b, vcpus: 100, devices: {hca1: vmxnet3}}]";
}
std::string on_gpu(const std::string& keys) { return pair_of("devices: {gpu0: passthrough, hca0: vmxnet3}, " + keys); }
std::string on_rdma(const std::string& keys) { return pair_of("devices: {gpu0: passthrough, hca0: {vf: 1}}, " + keys); }
std::string on_device(const std::string& device) { return pair_of("devices: {" + device + ", hca0: vmxnet3}"); }
std::string three(const std::string& shares) {
  return "[{name: a, devices: {net: vmxnet3}, port_group: {shares: " + shares +
         "}}, {name: b, count: 2, devices: {net: vmxnet3}}]";
}

const std::string k_tcp_pair = "{benchmark: osu_bw, sizes: [4 MiB], devices: [n0/a, n1/a]}";
const std::string k_two_vms = "{benchmark: osu_latency, sizes: [8 B], devices: [n0/a, n1/b]}";
const std::string k_remote = "{benchmark: gpu_step, gpus: 1, compute: 20 ms, sizes: [0 B], devices: [n0/a.far]}";

std::vector<Key> keys() {
  const auto gpu = [](const char* key, const std::string& one, const std::string& other,
                      const std::string& beside = "") {
    return Key{key, on_gpu(beside + key + ": " + one), on_gpu(beside + key + ": " + other)};
  };
  const auto group = [](const char* key, const std::string& one, const std::string& other) {
    return Key{std::string("port_group.") + key, on_gpu(fmt::format("port_group: {{{}: {}}}", key, one)),
               on_gpu(fmt::format("port_group: {{{}: {}}}", key, other))};
  };
  std::vector<Key> all{gpu("numa", "on", "off"),
                       gpu("hardware_version", "13", "22"),
                       gpu("cpu_shares", "1000", "9000", "vcpus: 64, "),
                       gpu("cpu_load", "0.1", "1", "vcpus: 64, "),
                       gpu("dynamic_directpath", "on", "off", "needs: [ha], "),
                       gpu("vcpus", "8", "200"),
                       gpu("pinning", "on", "off", "vcpus: 4, "),
                       gpu("memory", "64 GiB", "100000 GiB"),
                       gpu("memory_reservation", "full", "none"),
                       gpu("latency_sensitivity", "normal", "high", "vcpus: 64, "),
                       gpu("container", "off", "on"),
                       gpu("needs", "[migration]", "[clone]")};
  const auto big = [](const std::string& keys) {
    return pair_of("devices: {gpu2: passthrough, hca0: {vf: 1}}, " + keys);
  };
  all.push_back({"efi", big("efi: on"), big("efi: off")});
  all.push_back({"mmio.use_64bit", big("mmio: {use_64bit: on}"), big("mmio: {use_64bit: off}")});
  all.push_back({"mmio.size", big("mmio: {size: 32 GiB}"), big("mmio: {size: 256 GiB}")});
  all.push_back({"allow_p2p", on_rdma("guest_topology: injected, allow_p2p: on"),
                 on_rdma("guest_topology: injected, allow_p2p: off")});
  all.push_back({"guest_topology", on_rdma("guest_topology: shown"), on_rdma("guest_topology: hidden")});
  all.push_back({"huge_pages", on_rdma("huge_pages: on"), on_rdma("huge_pages: off")});
  all.push_back({"count", "[{name: a, devices: {hca0: {vf: 1}}, count: 1}]",
                 "[{name: a, devices: {hca0: {vf: 1}}, count: 3}]", "", "{benchmark: osu_allreduce, sizes: [8 B]}"});
  all.push_back({"guest_os", pair_of("devices: {gpu0: passthrough, hca0: pvrdma}, guest_os: linux"),
                 pair_of("devices: {gpu0: passthrough, hca0: pvrdma}, guest_os: windows")});
  all.push_back({"gpu_load", "[{name: a, devices: {gpu0: {vgpu: a100-10c}}, count: 2, gpu_load: on}]",
                 "[{name: a, devices: {gpu0: {vgpu: a100-10c}}, count: 2, gpu_load: off}]"});
  all.push_back({"unified_memory", pair_of("devices: {gpu0: {vgpu: a100-40c}}, needs: [migration], unified_memory: on"),
                 pair_of("devices: {gpu0: {vgpu: a100-40c}}, needs: [migration], unified_memory: off")});
  all.push_back({"distributed_switch",
                 "[{name: a, devices: {hca0: pvrdma}, distributed_switch: x}, {name: b, devices: {hca0: pvrdma}, "
                 "distributed_switch: x}]",
                 "[{name: a, devices: {hca0: pvrdma}, distributed_switch: x}, {name: b, devices: {hca0: pvrdma}, "
                 "distributed_switch: y}]",
                 "", k_two_vms});
  all.push_back({"vhost", "[{name: a, devices: {hca0: virtio}, vhost: on}]",
                 "[{name: a, devices: {hca0: virtio}, vhost: off}]", "hypervisor: kvm", k_tcp_pair});
  all.push_back(group("mtu", "1500", "9000"));
  all.back().work = k_tcp_pair;
  all.push_back({"port_group.vlan",
                 "[{name: a, devices: {hca0: vmxnet3}, port_group: {vlan: 100}}, {name: b, devices: {hca0: vmxnet3}, "
                 "port_group: {vlan: 100}}]",
                 "[{name: a, devices: {hca0: vmxnet3}, port_group: {vlan: 100}}, {name: b, devices: {hca0: vmxnet3}, "
                 "port_group: {vlan: 200}}]",
                 "", k_two_vms});
  const std::string streams =
      "{benchmark: osu_bw, sizes: [4 MiB], devices: [n0/a, n1/a]}, {benchmark: osu_bw, sizes: [4 MiB], devices: "
      "[n0/b0, n1/b0]}, {benchmark: osu_bw, sizes: [4 MiB], devices: [n0/b1, n1/b1]}";
  const auto on_port = [](const std::string& vms) {
    auto out = vms;
    for (auto at = out.find("net:"); at != std::string::npos; at = out.find("net:")) out.replace(at, 4, "slow:");
    return out;
  };
  all.push_back({"port_group.shares", on_port(three("50")), on_port(three("100")), "", streams});
  all.push_back({"port_group.priority", on_rdma("port_group: {vlan: 5, priority: 3}"),
                 on_rdma("port_group: {vlan: 5, priority: 4}"), "", "", "lossless: {trust: pcp}"});
  const auto device = [](const char* key, const std::string& one, const std::string& other) {
    return Key{std::string("devices.*.") + key, on_device(one), on_device(other)};
  };
  all.push_back(device("mode", "gpu0: {mode: passthrough}", "gpu0: {mode: vgpu}"));
  all.push_back(device("vgpu", "gpu0: {vgpu: a100-10c}", "gpu0: {vgpu: [a100-10c, a100-10c]}"));
  all.push_back(device("mig", "gpu0: {mig: 2g.10gb}", "gpu0: {mig: 1g.5gb}"));
  all.push_back(device("vf", "hca1: {vf: 1}", "hca1: {vf: 120}"));
  all.push_back(
      device("count", "a100-pcie-40: {mode: passthrough, count: 1}", "a100-pcie-40: {mode: passthrough, count: 2}"));
  const std::string other_machine = "far: {remote: s.gpu0, share: 0.5}";
  all.push_back(device("remote", "far: {remote: s.gpu0}", "far: {remote: s.gpu1}"));
  all.push_back(device("share", other_machine, "far: {remote: s.gpu0, share: 1}"));
  all.push_back(device("memory", "far: {remote: s.gpu0, memory: 8 GiB}", "far: {remote: s.gpu0, memory: 90 GiB}"));
  for (auto& one : all)
    if (one.one.find("remote:") != std::string::npos) one.work = k_remote;
  all.push_back({"devices.*.rate_limit", "[{name: a, devices: {hca0: {vf: 1, rate_limit: 5 Gb/s}}}]",
                 "[{name: a, devices: {hca0: {vf: 1, rate_limit: 50 Gb/s}}}]", "hypervisor: kvm", k_tcp_pair});
  return all;
}

std::string scenario_of(const Key& key, const std::string& vms, const std::string& work) {
  const auto settings = key.host.empty() ? std::string("version: \"8.0\"") : key.host;
  return fmt::format(
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n    - "
      "{{name: n, count: 2, host: {{processor: xeon-icelake, devices: [{{name: sw, kind: pcie_switch, below: "
      "socket0}}, "
      "{{name: gpu0, type: a100-pcie-40, below: sw}}, {{name: gpu1, type: a100-pcie-40, below: socket0}}, {{name: "
      "gpu2, "
      "type: a100-pcie-80, below: sw}}, {{name: hca0, type: connectx-5-100g, below: sw}}, {{name: hca1, type: "
      "connectx-5-100g, below: socket0}}, {{name: slow, type: ethernet-25g, below: socket0}}]}}, virtualization: "
      "{{{}}}, vms: {}}}\n    - {{name: s, host: {{processor: xeon-icelake, devices: [{{name: gpu0, type: "
      "a100-pcie-40, below: socket0}}, {{name: gpu1, type: a100-pcie-80, below: socket0}}, {{name: hca0, type: "
      "connectx-5-100g, below: socket0}}]}}}}\n  fabric:\n    single_switch: {{switch: sn2700{}}}\nworkloads: [{}]\n",
      settings, vms, key.fabric.empty() ? "" : ", " + key.fabric, work);
}

/// Everything a user sees, but for the lines that say that a key changes no time.
std::string seen(const Key& key, const std::string& vms) {
  std::string out;
  const std::vector<std::string> both{"{benchmark: gpu_step, gpus: 1, compute: 20 ms, sizes: [0 B]}",
                                      "{benchmark: all_reduce_perf, sizes: [64 MiB], gpus: 2}"};
  for (const auto& work : key.work.empty() ? both : std::vector{key.work}) {
    const auto loaded = load_scenario(test::write_file("key.yaml", scenario_of(key, vms, work)));
    if (!loaded) return test::shown(loaded.error());
    out += test::shown(check_virtualization(loaded->topology, loaded->parameters, loaded->device_types));
    out += test::shown(check_lossless(loaded->topology, loaded->parameters, &loaded->scenario));
    const auto run = simulate(loaded->topology, loaded->scenario, loaded->parameters, {});
    if (!run) return out + test::shown(run.error());
    for (const auto& workload : run->workloads) {
      for (const auto& row : workload.rows) out += fmt::format("{} ", row.time.ps);
      for (const auto& line : workload.assumptions)
        if (line.find("changes no time") == std::string::npos) out += line + "\n";
    }
  }
  return out;
}

/// Source positions differ with the length of a value.
std::string without_places(const std::string& text) {
  std::istringstream in(text);
  std::string out;
  for (std::string line; std::getline(in, line);) {
    const auto bar = line.find(" | ");
    if (bar != std::string::npos && bar < 8) continue;  // the quoted line of the file
    const auto at = line.find("key.yaml:");
    out += (at == std::string::npos ? line : line.substr(line.find(' ', at))) + "\n";
  }
  return out;
}

void collect(const nlohmann::json& node, const std::string& prefix, std::set<std::string>& out) {
  for (const auto* way : {"anyOf", "oneOf"})
    if (node.contains(way))
      for (const auto& one : node.at(way)) collect(one, prefix, out);
  if (node.contains("items")) collect(node.at("items"), prefix, out);
  if (node.contains("additionalProperties") && node.at("additionalProperties").is_object())
    collect(node.at("additionalProperties"), prefix + ".*", out);
  if (!node.contains("properties")) return;
  out.erase(prefix);
  for (const auto& [key, value] : node.at("properties").items()) {
    const auto path = prefix.empty() ? key : prefix + "." + key;
    out.insert(path);
    collect(value, path, out);
  }
}

std::set<std::string> keys_of_schema() {
  const auto schema = nlohmann::json::parse(json_schema("topology"));
  std::set<std::string> out;
  collect(schema.at("properties").at("hosts").at("items").at("properties").at("vms"), "", out);
  return out;
}

/// What FORMATS.md says only names something.
std::set<std::string> names_in_docs() {
  std::ifstream in(std::string(FABRICAST_SOURCE_DIR) + "/docs/FORMATS.md");
  std::set<std::string> out;
  for (std::string line; std::getline(in, line);) {
    if (line.rfind("Only names", 0) != 0) continue;
    for (std::size_t at = line.find('`'); at != std::string::npos; at = line.find('`', at + 1)) {
      const auto end = line.find('`', at + 1);
      out.insert(line.substr(at + 1, end - at - 1));
      at = end;
    }
  }
  return out;
}

}  // namespace

TEST_CASE("the table of a VM's keys names every key of the schema, or the docs say why it changes nothing") {
  auto known = names_in_docs();
  CHECK(known.size() >= 2);
  for (const auto& one : keys()) known.insert(one.key);
  known.insert("devices");
  auto schema = keys_of_schema();
  schema.erase("devices.*");
  schema.insert("devices");
  CHECK(known == schema);
}

TEST_CASE("two values of every key of a VM change a forecast or a verdict") {
  for (const auto& one : keys()) {
    CAPTURE(one.key);
    const auto first = without_places(seen(one, one.one));
    const auto second = without_places(seen(one, one.other));
    CAPTURE(first);
    CHECK(first != second);
  }
}

TEST_CASE("of an uplink that VMs fill each gets its shares, and all of it when alone") {
  const auto rates = [](const std::string& shares, bool is_alone) {
    Key key;
    const auto vms = "[{name: a, devices: {slow: vmxnet3}, port_group: {shares: " + shares +
                     "}}, {name: b, count: 2, devices: {slow: vmxnet3}}]";
    const std::string of_a = "{name: a, benchmark: osu_bw, sizes: [4 MiB], devices: [n0/a, n1/a]}";
    const auto others =
        ", {benchmark: osu_bw, sizes: [4 MiB], devices: [n0/b0, n1/b0]}, {benchmark: osu_bw, sizes: [4 MiB], devices: "
        "[n0/b1, n1/b1]}";
    const auto run = test::run(test::scenario(scenario_of(key, vms, is_alone ? of_a : of_a + others)));
    std::vector<double> out;
    for (const auto& workload : run.workloads) out.push_back(workload.rows[0].algbw.bytes_per_s);
    return out;
  };
  const auto normal = rates("50", false);
  CHECK(normal[0] == test::approx(normal[1]).epsilon(0.01));
  const auto high = rates("100", false);
  // Half of the port against two quarters, while all three send.
  CHECK(high[0] == test::approx(1.5 * normal[0]).epsilon(0.02));
  CHECK(rates("100", true)[0] == test::approx(rates("25", true)[0]).epsilon(1e-6));
  // Two fifths each while all three send: the others end that much earlier.
  CHECK(rates("25", false)[1] == test::approx(1.2 * normal[1]).epsilon(0.02));
}

TEST_CASE("VMs of unlike VLANs are refused where they must talk, and only there") {
  Key key;
  const std::string vms =
      "[{name: a, devices: {hca0: {vf: 1}}, port_group: {vlan: 100}}, {name: b, devices: {hca0: {vf: 1}}, port_group: "
      "{vlan: 200}}]";
  const auto refusal = [&](const std::string& work) {
    const auto loaded = test::scenario(scenario_of(key, vms, work));
    const auto run = simulate(loaded.topology, loaded.scenario, loaded.parameters, {});
    return run ? std::string() : test::shown(run.error());
  };
  CHECK(refusal(k_tcp_pair).empty());
  const auto text = refusal(k_two_vms);
  CHECK(text.find("VM 'n0/a' on VLAN 100 and VM 'n1/b' on VLAN 200 do not reach each other without a router") !=
        std::string::npos);
  CHECK(text.find("`vlan`") != std::string::npos);
  // Inside one machine too.
  CHECK(refusal("{benchmark: osu_latency, sizes: [8 B], devices: [n0/a, n0/b]}").find("without a router") !=
        std::string::npos);
}

TEST_CASE("the packet engine puts RDMA packets of a VM into the class of its port group, lossless or not") {
  const auto drops = [](int priority) {
    const auto loaded = test::scenario(fmt::format(
        "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n    - "
        "{{name: n, count: 6, host: {{processor: xeon-skylake, devices: [{{name: hca0, type: connectx-5-100g, below: "
        "socket0}}]}}, virtualization: {{hypervisor: kvm}}, vms: [{{name: a, devices: {{hca0: {{vf: 1}}}}, port_group: "
        "{{vlan: 5, priority: {}}}}}]}}\n  fabric: {{single_switch: {{switch: sn2700, lossless: {{trust: pcp, ecn: "
        "off}}}}}}\nworkload: {{benchmark: traffic, pattern: incast, senders: 5, sizes: [8 MiB]}}\n",
        priority));
    SimulateOptions options;
    options.fidelity = Fidelity::packet;
    const auto run = test::run(loaded, options);
    for (const auto& line : run.workloads[0].assumptions)
      CHECK(line.find("port_group.priority changes no time") == std::string::npos);
    CHECK(run.workloads[0].rows[0].flows[0].priority == priority);
    return run.workloads[0].rows[0].fabric->unmeant_drops();
  };
  CHECK(drops(3) == 0);
  CHECK(drops(4) > 0);
}

namespace {

/// A key inside a workload's `migration`, `remote` or `sharing`, with what stands beside it.
struct Nested {
  std::string key;  ///< migration.link, sharing.clients.kernel
  std::string beside, one, other;
};

std::vector<Nested> nested_keys() {
  return {{"migration.release", "memory: 32 GiB", "esxi-6.7u1", "esxi-7.0"},
          {"migration.memory", "release: worst-case", "8 GiB", "32 GiB"},
          {"migration.link", "memory: 32 GiB", "10 Gb/s", "1 Gb/s"},
          {"migration.pvrdma", "memory: 32 GiB, registered: 8 GiB", "on", "off"},
          {"migration.registered", "memory: 32 GiB, pvrdma: on", "1 GiB", "16 GiB"},
          {"migration.vm", "to: n1, memory: 32 GiB", "n0/a", "n0/b"},
          {"migration.to", "vm: n0/a, memory: 32 GiB", "n1", "n0"},
          {"migration.dirty_rate", "vm: n0/a, to: n1, memory: 32 GiB, link: 100 Gb/s", "0 GB/s", "4 GB/s"},
          {"remote.compute", "calls: 1000", "10 ms", "20 ms"},
          {"remote.calls", "compute: 10 ms", "10", "1e5"},
          {"remote.from_gpu", "compute: 10 ms, calls: 1000", "0 B", "1 GiB"},
          {"remote.share", "compute: 10 ms, calls: 1000", "0.5", "1"},
          {"remote.memory", "compute: 10 ms, calls: 1000", "1 MiB", "30 GiB"},
          {"remote.mtu", "compute: 10 ms, calls: 1000", "1500", "9000"},
          {"sharing.policy", "", "best_effort", "fixed_share"},
          {"sharing.rm_pvmrl", "", "0x00010001", "0x001e0001"},
          {"sharing.profile", "policy: fixed_share", "a100-10c", "a100-5c"},
          {"sharing.slice", "policy: equal_share", "1 ms", "10 ms"},
          {"sharing.switch_time", "", "10 us", "1 ms"},
          {"sharing.averaging", "policy: equal_share, preemption_granularity: 3 ms", "1", "60"},
          {"sharing.strict", "policy: equal_share, preemption_granularity: 3 ms", "on", "off"},
          {"sharing.preemption_granularity", "policy: equal_share", "0 s", "5 ms"},
          {"sharing.clients.kernel", "", "1 ms", "7 ms"},
          {"sharing.clients.pause", "", "0 s", "20 ms"},
          {"sharing.clients.variation", "pause: 5 ms", "0", "1"},
          {"sharing.clients.count", "", "1", "3"}};
}

std::string nested_scenario(const Nested& key, const std::string& value) {
  const auto cut = key.key.rfind('.');
  const auto own = key.key.substr(cut + 1) + ": " + value + (key.beside.empty() ? "" : ", " + key.beside);
  const auto mapping = key.key.substr(0, key.key.find('.'));
  const bool is_client = key.key.starts_with("sharing.clients.");
  const auto kernel = own.find("kernel:") == std::string::npos ? ", kernel: 3.3 ms" : "";
  const auto other = std::string("{name: y, kernel: 3 ms, pause: 1 ms}");
  const auto clients = is_client ? "[{name: x, " + own + kernel + "}, " + other + "]"
                                 : "[{name: x, kernel: 3.3 ms, pause: 100 us}, " + other + "]";
  std::string work;
  if (mapping == "migration") work = "{benchmark: vgpu_migration, sizes: [4 GiB], migration: {" + own + "}}";
  if (mapping == "remote") work = "{benchmark: remote_gpu, sizes: [64 MiB], remote: {" + own + "}}";
  if (mapping == "sharing")
    work = "{benchmark: gpu_sharing, devices: [n0.gpu0], sharing: {" + (is_client ? "" : own + ", ") +
           "clients: " + clients + "}}";
  const bool has_vms = own.find("vm: ") != std::string::npos;
  return fmt::format(
      "schema: fabricast/scenario/1\nname: s\ntopology:\n  schema: fabricast/topology/1\n  name: t\n  hosts:\n    - "
      "{{name: n, count: 2, host: {{processor: xeon-icelake, devices: [{{name: gpu0, type: a100-pcie-40, below: "
      "socket0}}, {{name: hca0, type: connectx-5-100g, below: socket0}}]}}{}}}\n  fabric: {{single_switch: {{switch: "
      "sn2700}}}}\nworkload: {}\n",
      has_vms ? ", virtualization: {version: \"8.0\"}, vms: [{name: a, memory: 32 GiB, devices: {gpu0: {vgpu: "
                "a100-10c}, hca0: vmxnet3}}, {name: b, devices: {hca0: {vf: 1}}}]"
              : "",
      work);
}

std::string seen_of(const Nested& key, const std::string& value) {
  const auto loaded = load_scenario(test::write_file("key.yaml", nested_scenario(key, value)));
  if (!loaded) return without_places(test::shown(loaded.error()));
  const auto run = simulate(loaded->topology, loaded->scenario, loaded->parameters, {});
  if (!run) return without_places(test::shown(run.error()));
  std::string out;
  for (const auto& row : run->workloads.at(0).rows) {
    out += fmt::format("{} ", row.time.ps);
    for (const auto& figure : row.figures) out += fmt::format("{} {} ", figure.key, figure.value);
  }
  return out;
}

}  // namespace

TEST_CASE("two values of every key inside a migration, a remote GPU and a shared GPU change a figure or a verdict") {
  std::set<std::string> known{"sharing.clients", "sharing.clients.name"};  // a name is only a name
  for (const auto& one : nested_keys()) {
    known.insert(one.key);
    CAPTURE(one.key);
    const auto first = seen_of(one, one.one);
    CAPTURE(first);
    CHECK(first != seen_of(one, one.other));
  }
  const auto schema = nlohmann::json::parse(json_schema("scenario"));
  const auto& keys = schema.at("properties").at("workload").at("properties");
  std::set<std::string> all;
  for (const auto* mapping : {"migration", "remote", "sharing"}) collect(keys.at(mapping), mapping, all);
  all.insert("sharing.clients");
  CHECK(known == all);
}
