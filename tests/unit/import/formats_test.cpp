// SPDX-License-Identifier: Apache-2.0
// What formats have in common with each other: versions of hwloc, ways to call lspci, texts around a command's output,
// and what is left out of a machine.
#include <fmt/format.h>

#include <cctype>

#include "tests/unit/import/captures.hpp"

using namespace fabricast;
using namespace fabricast::test;

namespace {

/// A capture of version 2 as version 3 writes it: other numbers of OS devices, the host's name above the machine.
std::string as_version_3(std::string xml) {
  const auto replace = [&](const std::string& from, const std::string& to) {
    for (auto at = xml.find(from); at != std::string::npos; at = xml.find(from, at + to.size()))
      xml.replace(at, from.size(), to);
  };
  replace("version=\"2.0\"", "version=\"3.0\"");
  const std::vector<std::pair<const char*, const char*>> numbers{{"0", "1a"},  {"1", "4a"},  {"2", "16a"},
                                                                 {"3", "32a"}, {"4", "64a"}, {"5", "12a"}};
  for (const auto& [old, now] : numbers)
    replace(fmt::format("osdev_type=\"{}\"", old), fmt::format("osdev_type=\"{}\"", now));
  for (const auto* now : {"1", "4", "16", "32", "64", "12"})
    replace(fmt::format("osdev_type=\"{}a\"", now), fmt::format("osdev_type=\"{}\"", now));
  const auto name = xml.find("<info name=\"HostName\"");
  if (name == std::string::npos) return xml;
  const auto end = xml.find("/>", name) + 2;
  const auto line = xml.substr(name, end - name);
  xml.erase(name, end - name);
  return xml.insert(xml.rfind("</topology>"), line);
}

}  // namespace

TEST_CASE("every machine says the same in hwloc's version 3") {
  for (const auto& name : captures_of("hwloc-")) {
    CAPTURE(name);
    const auto text = capture(name);
    if (text.find("version=\"2.0\"") == std::string::npos) continue;
    ImportOptions options;
    options.gpu = "a100-pcie-40";
    const auto second = import_cluster({{"x.xml", text, SourceRole::any, ""}}, options);
    const auto third = import_cluster({{"x.xml", as_version_3(text), SourceRole::any, ""}}, options);
    REQUIRE(second);
    REQUIRE(third);
    const auto body = [](const std::string& yaml) { return yaml.substr(yaml.find("schema:")); };
    CHECK(body(second->yaml) == body(third->yaml));
  }
}

TEST_CASE("a card that nothing stands for is left out, and both the message and the file name it") {
  const auto left_out = import_files({"hwloc-westmere-24.xml"});
  REQUIRE(left_out);
  CHECK(
      left_out->yaml.find("unknown: hwloc-westmere-24.xml:116: GPU 0000:06:00.0 [10de:06d2] is not in the catalogue") !=
      std::string::npos);
  CHECK(render(left_out->findings).find("--gpu TYPE") != std::string::npos);
  CHECK(left_out->yaml.find("type: a100") == std::string::npos);
  const auto loaded = load_text(left_out->yaml);
  REQUIRE(loaded);
  CHECK(loaded->topology.devices(DeviceKind::gpu).empty());
  // A picture of the console is no GPU, whatever stands for GPUs.
  ImportOptions options;
  options.gpu = "a100-pcie-40";
  const auto console = import_files({"hwloc-display-only.xml"}, options);
  REQUIRE(console);
  CHECK(console->yaml.find("a100") == std::string::npos);
  // What NCCL and nvidia-smi list computes: there the type must be known.
  CHECK_FALSE(import_files({"nccl-rccl-k100.xml"}));
}

TEST_CASE("lspci with numbers, with bare numbers, and with names says the same devices") {
  const auto with = [](const std::string& bridge, const std::string& gpu, const std::string& nic) {
    return fmt::format(
        "0000:10:00.0 {}\n\tBus: primary=10, secondary=11, subordinate=13, sec-latency=0\n"
        "0000:11:00.0 {}\n\tBus: primary=11, secondary=12, subordinate=13, sec-latency=0\n"
        "0000:12:00.0 {}\n\tLnkSta: Speed 16GT/s, Width x16\n0000:13:00.0 {}\n\tLnkSta: Speed 16GT/s, Width x16\n",
        bridge, bridge, gpu, nic);
  };
  const std::vector<std::string> all{
      with("PCI bridge [0604]: Broadcom Device [1000:c030] (rev b0)",
           "3D controller [0302]: NVIDIA Corporation GA100 [A100 PCIe 40GB] [10de:20f1] (rev a1)",
           "Infiniband controller [0207]: Mellanox Technologies MT28908 Family [ConnectX-6] [15b3:101b]"),
      with("0604: 1000:c030 (rev b0)", "0302: 10de:20f1 (rev a1)", "0207: 15b3:101b"),
      with("Class 0604: Device 1000:c030 (rev b0)", "Class 0302: Device 10de:20f1 (rev a1)",
           "Class 0207: Device 15b3:101b"),
      with("PCI bridge: Broadcom Device c030 (rev b0)",
           "3D controller: NVIDIA Corporation GA100 [A100 PCIe 40GB] (rev a1)",
           "Infiniband controller: Mellanox Technologies MT28908 Family [ConnectX-6]")};
  for (const auto& text : all) {
    CAPTURE(text);
    const auto imported = import_cluster({{"lspci.txt", text, SourceRole::any, ""}});
    REQUIRE_MESSAGE(imported, (imported ? "" : render(imported.error())));
    CHECK(imported->yaml.find("type: a100-pcie-40") != std::string::npos);
    CHECK(imported->yaml.find("type: connectx-6-hdr") != std::string::npos);
    CHECK(load_text(imported->yaml));
  }
}

TEST_CASE("a format is told below prompts and messages, behind a byte order mark, and in any case of its keys") {
  const auto is = [](const std::string& text, SourceFormat format) {
    CAPTURE(text.substr(0, 60));
    const auto found = detect_source(text, "x");
    REQUIRE(found);
    CHECK(*found == format);
    ImportOptions options;
    options.gpu = "h100-sxm";
    CHECK(import_cluster({{"x", text, SourceRole::any, ""}}, options));
  };
  const auto lspci = capture("lspci-clean.txt"), smi = capture("smi-hgx-h100.txt"), slurm = capture("slurm-tree.conf");
  is("$ sudo lspci -Dnnvv\n" + lspci, SourceFormat::lspci);
  is("pcilib: sysfs_read_vpd: read failed: Input/output error\n" + lspci, SourceFormat::lspci);
  is("$ lspci -tv\n" + capture("lspci-tree.txt"), SourceFormat::lspci_tree);
  is("```\n$ nvidia-smi topo -m\n" + smi + "```\n", SourceFormat::smi_topo);
  is("\xef\xbb\xbf" + capture("nccl-hgx-h100.xml"), SourceFormat::nccl_topo);
  is("\xef\xbb\xbf" + slurm, SourceFormat::slurm);
  std::string upper = slurm;
  for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  is(upper, SourceFormat::slurm);
  const auto onyx = detect_source(
      "##\n## Running database \"initial\"\n## Product release: 3.10\n##\n   interface ethernet 1/1 speed 100G force\n",
      "x");
  REQUIRE(onyx);
  CHECK(*onyx == SourceFormat::onyx);
}

TEST_CASE("net files that ibsim reads are fabrics: hosts without descriptions, cables without rates") {
  for (const auto& name : captures_of("ibnetdiscover-ibsim-")) {
    CAPTURE(name);
    const auto imported = import_files({name});
    REQUIRE_MESSAGE(imported, (imported ? "" : render(imported.error())));
    const auto loaded = load_text(imported->yaml);
    REQUIRE(loaded);
    CHECK(loaded->topology.num_hosts() >= 2);
    CHECK(imported->yaml.find("from: ") != std::string::npos);
  }
}
