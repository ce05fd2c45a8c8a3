// SPDX-License-Identifier: Apache-2.0
// Captures of every format become topologies that load, with what they say and nothing else; sources of one cluster are
// merged, and what contradicts is found.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "fabricast/simulate.hpp"
#include "import/identity.hpp"
#include "import/source.hpp"
#include "tests/unit/import/captures.hpp"

using namespace fabricast;
using namespace fabricast::test;

namespace {

std::string text_of(const Diagnostics& found) { return render(found); }

int count_of(const LoadedTopology& loaded, DeviceKind kind) {
  return static_cast<int>(loaded.topology.devices(kind).size());
}

/// Forecast of all sizes on a topology given as YAML or as a file.
std::vector<Row> forecast(const std::string& topology, const std::string& workload, const std::string& software) {
  const auto path = std::filesystem::temp_directory_path() / fmt::format("fabricast-run-{}.yaml", getpid());
  std::string name = topology;
  if (topology.find('\n') != std::string::npos) {
    std::ofstream(path) << topology;
    name = path.string();
  }
  auto loaded = load_scenario_text(
      "s.yaml", fmt::format("schema: fabricast/scenario/1\nname: s\ntopology: {}\n{}workload: {{{}}}\n", name, software,
                            workload));
  std::filesystem::remove(path);
  REQUIRE_MESSAGE(loaded, (loaded ? "" : text_of(loaded.error())));
  auto prediction = simulate(loaded->topology, loaded->scenario, loaded->parameters);
  REQUIRE(prediction);
  return prediction->workloads.front().rows;
}

}  // namespace

TEST_CASE("every capture becomes a topology that loads") {
  const std::map<std::string, std::size_t> formats{{"nccl", 9},   {"hwloc", 9},  {"smi", 13},   {"lspci", 11},
                                                   {"ibnet", 16}, {"slurm", 12}, {"virsh", 10}, {"govc", 5}};
  for (const auto& [format, least] : formats) {
    const auto names = captures_of(format);
    CHECK(names.size() >= least);
    for (const auto& name : names) {
      CAPTURE(name);
      ImportOptions options;
      const bool names_no_gpu = name.starts_with("smi-p") || name == "nccl-rccl-k100.xml";
      if (names_no_gpu) options.gpu = "a100-pcie-40";
      if (name.starts_with("smi-h") && name.find("-vm-") != std::string::npos) options.gpu = "h200-sxm";
      // What guests get says nothing of the host below.
      std::vector<std::string> sources{name};
      if (format == "virsh" || name == "smi-hgx-h100-wrong.txt" || name.starts_with("govc-vm") ||
          name.starts_with("govc-gpu"))
        sources.insert(sources.begin(), "nccl-hgx-h100.xml");
      auto imported = import_files(sources, options);
      REQUIRE_MESSAGE(imported, (imported ? "" : text_of(imported.error())));
      const auto loaded = load_text(imported->yaml);
      CHECK_MESSAGE(loaded, (loaded ? "" : text_of(loaded.error())));
      CHECK(imported->yaml.find("# Imported from") != std::string::npos);
    }
  }
}

TEST_CASE("the dump of the VM with eight H200 forecasts like the shipped topology") {
  const std::string source = FABRICAST_SOURCE_DIR;
  const auto imported = import_files({source + "/calibration/data/h200-8gpu-nvswitch-passthrough-vm/nccl-topo.xml"});
  REQUIRE(imported);
  for (const auto* workload :
       {"benchmark: all_reduce_perf", "benchmark: alltoall_perf", "benchmark: all_gather_perf, gpus: 4"}) {
    for (const auto* software : {"", "software: {nccl: {p2p: off}}\n"}) {
      const auto ours = forecast(imported->yaml, workload, software);
      const auto theirs = forecast(source + "/topologies/h200-8gpu-vm.yaml", workload, software);
      REQUIRE(ours.size() == theirs.size());
      for (std::size_t i = 0; i < ours.size(); ++i) CHECK(ours[i].time == theirs[i].time);
    }
  }
}

TEST_CASE("dumps of a machine of the catalogue forecast like the catalogue's host") {
  const std::vector<std::pair<const char*, const char*>> pairs{{"nccl-hgx-h100.xml", "hgx-h100-8"},
                                                               {"nccl-dgx-a100.xml", "dgx-a100"}};
  for (const auto& pair : pairs) {
    const std::string name = pair.first, host = pair.second;
    CAPTURE(name);
    const auto imported = import_files({name});
    REQUIRE(imported);
    const auto shipped =
        fmt::format("schema: fabricast/topology/1\nname: x\nhosts:\n  - {{name: node, type: {}}}\n", host);
    for (const auto* software : {"", "software: {nccl: {nvls: off}}\n"}) {
      const auto ours = forecast(imported->yaml, "benchmark: all_reduce_perf", software);
      const auto theirs = forecast(shipped, "benchmark: all_reduce_perf", software);
      for (std::size_t i = 0; i < ours.size(); ++i) CHECK(ours[i].time == theirs[i].time);
    }
  }
}

TEST_CASE("hwloc XML of versions 2 and 3 says the same") {
  const auto second = import_files({"hwloc-dgx-2-v2.xml"});
  const auto third = import_files({"hwloc-dgx-2-v3.xml"});
  REQUIRE(second);
  REQUIRE(third);
  const auto body = [](const std::string& yaml) { return yaml.substr(yaml.find("schema:")); };
  CHECK(body(second->yaml) == body(third->yaml));
  const auto loaded = load_text(third->yaml);
  REQUIRE(loaded);
  CHECK(count_of(*loaded, DeviceKind::gpu) == 16);
  CHECK(count_of(*loaded, DeviceKind::hca) == 8);
  CHECK(third->yaml.find("{from: gpu0, to: nvswitch0, links: 6}") != std::string::npos);
  CHECK(third->yaml.find("sockets: 2") != std::string::npos);
}

TEST_CASE("names that sources turn into are those of the catalogue, and cards can do what the catalogue says") {
  const auto catalogue = load_whole_catalogue();
  REQUIRE(catalogue);
  for (const auto& identity : import::all_identities()) {
    const auto name = identity.first;
    const auto card = identity.second;
    CAPTURE(name);
    const bool is_there = std::any_of(catalogue->device_types.begin(), catalogue->device_types.end(),
                                      [&](const DeviceType& type) { return type.name == name; });
    CHECK(is_there);
    if (card.generation == 0) continue;
    const auto* generation = catalogue->parameters.find(name + ".pcie_generation");
    const auto* width = catalogue->parameters.find(name + ".pcie_width");
    REQUIRE(generation != nullptr);
    CHECK(static_cast<int>(generation->value) == card.generation);
    CHECK(static_cast<int>(width->value) == card.width);
  }
}

TEST_CASE("GPUs on NVLink-C2C are known by their number, their capability or their name, and hang on a Grace") {
  const auto type_of = [](int device, int capability, const std::string& model, bool has_c2c) {
    import::PciDevice gpu;
    gpu.kind = import::PciKind::gpu;
    gpu.vendor = 0x10de;
    gpu.device = device;
    gpu.compute_capability = capability;
    gpu.model = model;
    gpu.has_c2c = has_c2c;
    return import::gpu_identity(gpu).name;
  };
  CHECK(type_of(0x2941, 100, "", true) == "gb200");
  CHECK(type_of(0x9999, 100, "", true) == "gb200");
  CHECK(type_of(0x9999, 90, "", true) == "gh200");
  CHECK(type_of(0x9999, 103, "", true) == "gb300");
  CHECK(type_of(0x9999, 100, "", false) == "b200-sxm");
  CHECK(type_of(0, 0, "NVIDIA GB300", false) == "gb300");
  CHECK(type_of(0, 0, "NVIDIA B300 SXM6 AC", false) == "b300-sxm");
  CHECK(type_of(0, 0, "NVIDIA GH200 480GB", false) == "gh200");
  CHECK(type_of(0, 0, "NVIDIA H200 NVL", false) == "h200-nvl");
  CHECK(type_of(0, 0, "NVIDIA H200", false) == "h200-sxm");
  CHECK(type_of(0, 0, "NVIDIA RTX PRO 6000 Blackwell Server Edition", false) == "rtx-pro-6000-server");
  // As NCCL's dump has them; the catalogue's slot stands for the link, whatever the dump says of PCIe.
  const auto imported = import_files({"nccl-gb200-written.xml"});
  REQUIRE(imported);
  CHECK(imported->yaml.find("processor: grace") != std::string::npos);
  CHECK(imported->yaml.find("{name: gpu0, type: gb200, below: socket0}") != std::string::npos);
  CHECK(imported->yaml.find("chip-to-chip") == std::string::npos);
}

TEST_CASE("switches have the ports of the catalogue, and a scheduler's tree never asks one for more") {
  const auto catalogue = load_whole_catalogue();
  REQUIRE(catalogue);
  for (const auto& name : import::all_switches()) {
    const auto* ports = catalogue->parameters.find(name + ".ports");
    REQUIRE(ports != nullptr);
    CHECK(static_cast<int>(ports->value) == import::switch_ports(name));
  }
  // Hosts per leaf, leaves per switch above: few and many of each, one level of switches above and two.
  for (const int hosts : {1, 17, 18, 30, 35, 36, 40, 100}) {
    for (const int leaves : {1, 2, 18, 36, 40}) {
      for (const bool has_root : {false, true}) {
        CAPTURE(hosts);
        CAPTURE(leaves);
        CAPTURE(has_root);
        std::string text;
        for (int l = 0; l < 2 * leaves; ++l)
          text += fmt::format("SwitchName=leaf{} Nodes=n{}-[0-{}]\n", l, l, hosts - 1);
        for (int s = 0; s < 2; ++s)
          text += fmt::format("SwitchName=s{} Switches=leaf[{}-{}]\n", s, s * leaves, (s + 1) * leaves - 1);
        if (has_root) text += "SwitchName=root Switches=s[0-1]\n";
        const auto imported = import_cluster({{"topology.conf", text, SourceRole::any, ""}});
        REQUIRE_MESSAGE(imported, (imported ? "" : text_of(imported.error())));
        const auto loaded = load_text(imported->yaml);
        REQUIRE_MESSAGE(loaded, (loaded ? "" : text_of(loaded.error())));
        CHECK(loaded->topology.num_hosts() == 2 * leaves * hosts);
      }
    }
  }
}

TEST_CASE("a GPU's NVLinks to itself are left out, and the message says so") {
  const auto imported = import_files({"nccl-azure-nc96.xml"});
  REQUIRE(imported);
  CHECK(imported->yaml.find("nvlinks") == std::string::npos);
  CHECK(text_of(imported->findings).find("12 NVLinks of GPU 0001:00:00.0 to itself: left out") != std::string::npos);
}

TEST_CASE("XML is told by its outermost element, not by what it holds") {
  const std::string processors = "<cpu><topology sockets='2' dies='1' cores='8' threads='2'/></cpu>";
  for (const auto* before :
       {"", "<?xml version='1.0'?>\n", "<!-- <topology> -->\n", "<!DOCTYPE domain [<!ENTITY a 'b'>]>\n"}) {
    CAPTURE(before);
    const auto is = [&](const std::string& text, SourceFormat format) {
      const auto found = detect_source(before + text, "x");
      return found && *found == format;
    };
    CHECK(is("<domain type='kvm'><name>a</name>" + processors + "</domain>", SourceFormat::libvirt));
    CHECK(is("<topology version=\"2.0\"><object type=\"Machine\"/></topology>", SourceFormat::hwloc));
    CHECK(is("<system version=\"1\"><cpu/></system>", SourceFormat::nccl_topo));
    CHECK(!detect_source(before + std::string("<graphs version='1'><system/></graphs>"), "x"));
  }
}

TEST_CASE("link texts that NCCL takes for generation 3 are found") {
  const auto imported = import_files({"nccl-hgx-h100-short-speed.xml"});
  REQUIRE(imported);
  const auto found = text_of(imported->findings);
  CHECK(found.find("'32.0 GT/s'") != std::string::npos);
  CHECK(found.find("write '32.0 GT/s PCIe'") != std::string::npos);
  CHECK(imported->yaml.find("pcie: gen5 x16") != std::string::npos);
}

TEST_CASE("access control, narrow links and address translation come from lspci") {
  const auto imported = import_files({"lspci-acs-narrow.txt"});
  REQUIRE(imported);
  CHECK(imported->yaml.find("acs: redirect") != std::string::npos);
  CHECK(imported->yaml.find("pcie: gen5 x16, trained: gen5 x8") != std::string::npos);
  CHECK(text_of(imported->findings).find("trained at gen5 x8, it can do gen5 x16") != std::string::npos);
  const auto clean = import_files({"lspci-clean.txt"});
  REQUIRE(clean);
  CHECK(clean->yaml.find("acs:") == std::string::npos);
  CHECK(clean->findings.empty());
}

TEST_CASE("sources of one cluster are merged, and contradictions name both places") {
  const auto all =
      import_files({"nccl-hgx-h100.xml", "smi-hgx-h100.txt", "ibnetdiscover-ndr-8.txt", "virsh-switch.xml"});
  REQUIRE(all);
  CHECK_MESSAGE(all->findings.empty(), text_of(all->findings));
  const auto loaded = load_text(all->yaml);
  REQUIRE_MESSAGE(loaded, (loaded ? "" : text_of(loaded.error())));
  CHECK(count_of(*loaded, DeviceKind::gpu) == 16);
  CHECK(count_of(*loaded, DeviceKind::hca) == 16);
  CHECK(all->yaml.find("guest_topology: shown") != std::string::npos);
  CHECK(all->yaml.find("ats: off") != std::string::npos);

  const auto wrong = import_files({"nccl-hgx-h100.xml", "smi-hgx-h100-wrong.txt", "lspci-acs-narrow.txt",
                                   "ibnetdiscover-ndr-8.txt", "slurm-wrong.conf", "virsh-missing.xml"});
  REQUIRE(wrong);
  const auto found = text_of(wrong->findings);
  CHECK(found.find("16 NVLinks here") != std::string::npos);
  CHECK(found.find("on two processors here (SYS)") != std::string::npos);
  CHECK(found.find("'vm4' gets 0000:f0:00.0") != std::string::npos);
  CHECK(found.find("is not in the other source") != std::string::npos);
  CHECK(found.find("the fabric shows no such host") != std::string::npos);
  for (const auto& one : wrong->findings) {
    CAPTURE(one.message);
    REQUIRE(!one.notes.empty());
    CHECK(!one.notes.front().location.file.empty());
    CHECK(one.notes.front().location.file != one.location.file);
  }
}

TEST_CASE("a fabric gives hosts, cables with their rates, and what only one end says") {
  const auto imported = import_files({"ibnetdiscover-hdr.txt", "slurm-tree.conf"});
  REQUIRE(imported);
  CHECK_MESSAGE(imported->findings.empty(), text_of(imported->findings));
  const auto loaded = load_text(imported->yaml);
  REQUIRE(loaded);
  CHECK(loaded->topology.num_hosts() == 4);
  CHECK(count_of(*loaded, DeviceKind::network_switch) == 4);
  CHECK(imported->yaml.find("{from: \"leaf0\", to: \"spine0\", count: 2, rate: 200 Gb/s}") != std::string::npos);
  const auto slow = import_files({"ibnetdiscover-slow-cable.txt"});
  REQUIRE(slow);
  CHECK(text_of(slow->findings).find("this end runs at 200 Gb/s") != std::string::npos);
}

TEST_CASE("an output without records of adapters names them in the lines of its switches") {
  const auto cut = import_files({"ibnetdiscover-public-edr-ddr-cable.txt"});
  REQUIRE_MESSAGE(cut, (cut ? "" : text_of(cut.error())));
  CHECK(text_of(cut->findings).find("12 adapters are those that the switches' lines name") != std::string::npos);
  const auto loaded = load_text(cut->yaml);
  REQUIRE(loaded);
  CHECK(loaded->topology.num_hosts() == 12);
  // One cable of six between two switches came up at a fifth of its rate.
  CHECK(text_of(cut->findings).find("another one at 16 Gb/s") != std::string::npos);
  // The same cluster as with records.
  const auto whole = capture("ibnetdiscover-hdr.txt");
  const auto records = whole.find("\nCa");
  REQUIRE(records != std::string::npos);
  const auto both = std::pair{import_cluster({{"x", whole, SourceRole::any, ""}}),
                              import_cluster({{"x", whole.substr(0, records), SourceRole::any, ""}})};
  REQUIRE(both.first);
  REQUIRE(both.second);
  const auto links = [](const std::string& yaml) { return yaml.substr(yaml.find("      - {from: ")); };
  CHECK(links(both.first->yaml) == links(both.second->yaml));
}

TEST_CASE("a cable from a switch to itself is left out, and the message says so") {
  const auto loops = import_files({"ibnetdiscover-public-loops-speeds.txt"});
  REQUIRE(loops);
  CHECK(text_of(loops->findings).find("ports 1 and 2 of 'SwitchIB Mellanox Technologies' are joined by a cable") !=
        std::string::npos);
  const auto loaded = load_text(loops->yaml);
  REQUIRE_MESSAGE(loaded, (loaded ? "" : text_of(loaded.error())));
  CHECK(loaded->topology.num_hosts() == 5);
}

TEST_CASE("published captures run") {
  const auto run = [](const std::string& name, const std::string& workload, const ImportOptions& options = {}) {
    CAPTURE(name);
    const auto imported = import_files({name}, options);
    REQUIRE_MESSAGE(imported, (imported ? "" : text_of(imported.error())));
    CHECK(!forecast(imported->yaml, workload, "").empty());
  };
  for (const auto& name : captures_of("ibnetdiscover-public-")) {
    if (name != "ibnetdiscover-public-qdr-one-host.txt") run(name, "benchmark: osu_latency, sizes: [8 B, 1 MiB]");
  }
  ImportOptions options;
  options.gpu = "a100-pcie-40";
  for (const auto& name : captures_of("smi-public-")) {
    if (name != "smi-public-one-gpu.txt") run(name, "benchmark: all_reduce_perf, sizes: [8 B, 1 MiB]", options);
  }
}

TEST_CASE("lists of hosts expand as Slurm writes them") {
  using import::expand_hosts;
  const auto expand = [](std::string_view list) { return expand_hosts(list).value_or(std::vector<std::string>{"?"}); };
  CHECK(expand("n[01-03,7]") == std::vector<std::string>{"n01", "n02", "n03", "n7"});
  CHECK(expand("a[1-2]b[3-4],c") == std::vector<std::string>{"a1b3", "a1b4", "a2b3", "a2b4", "c"});
  CHECK(expand("n[08-11]").back() == "n11");
  for (const auto* bad : {"n[1", "n[2-1]", "n[1-999999999]", "n[a-b]", "n]1["}) CHECK(!expand_hosts(bad));
}

TEST_CASE("fabrics of thousands of ports are read") {
  std::string text;
  for (int s = 0; s < 100; ++s) {
    text +=
        fmt::format("devid=0xd2f2\nSwitch\t64 \"S-{:016x}\"\t\t# \"leaf{}\" base port 0 lid 1 lmc 0\n", 0x2000 + s, s);
    for (int p = 1; p <= 32; ++p)
      text += fmt::format("[{}]\t\"H-{:016x}\"[1]({:x}) \t\t# \"n{} mlx5_{}\" lid 2 4xNDR\n", p, 0x100000 + s * 64 + p,
                          p, s * 4 + (p - 1) / 8, (p - 1) % 8);
    for (int p = 1; p <= 32; ++p)
      text += fmt::format("Ca\t1 \"H-{:016x}\"\t\t# \"n{} mlx5_{}\"\n[1]({:x}) \t\"S-{:016x}\"[{}]\t\t# lid 3 4xNDR\n",
                          0x100000 + s * 64 + p, s * 4 + (p - 1) / 8, (p - 1) % 8, p, 0x2000 + s, p);
  }
  const auto imported = import_cluster({{"ib", text, SourceRole::fabric, ""}});
  REQUIRE(imported);
  CHECK(imported->yaml.find("count: 400") != std::string::npos);
}

TEST_CASE("addresses of PCI devices are read with and without domain and function, and nothing else is one") {
  using import::pci_address;
  CHECK(pci_address("3b:00") == "0000:3b:00.0");
  CHECK(pci_address(" 0000:3B:1f.7 ") == "0000:3b:1f.7");
  CHECK(pci_address("10001:ff:02.1") == "10001:ff:02.1");
  for (const auto* none : {"", "3b", "3b:20.0", "3b:00.8", "100:00.0", "0:0:0:0", "3b:zz.0", "1000000:00:00.0"}) {
    CAPTURE(none);
    CHECK(pci_address(none).empty());
  }
}
