// SPDX-License-Identifier: Apache-2.0
// What devices and processors are called where their numbers alone do not say it: in topologies that clouds hand out,
// beside other devices, by a stand-in.
#include <fmt/format.h>

#include "tests/unit/import/captures.hpp"

using namespace fabricast;
using namespace fabricast::test;

TEST_CASE("processors that a cloud's file names by their family are those of dumps that add it up as NCCL does") {
  const auto processor = [](int family, int model) {
    const auto xml = fmt::format(
        "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" vendor=\"AuthenticAMD\" familyid=\"{}\" "
        "modelid=\"{}\"><pci busid=\"0003:00:00.0\" class=\"0x030200\" link_speed=\"16 GT/s\" "
        "link_width=\"16\"/></cpu></system>",
        family, model);
    ImportOptions options;
    options.gpu = "a100-sxm4-40";
    const auto imported = import_cluster({{"x.xml", xml, SourceRole::any, ""}}, options);
    REQUIRE(imported);
    const auto at = imported->yaml.find("processor: ") + 11;
    return imported->yaml.substr(at, imported->yaml.find('\n', at) - at);
  };
  CHECK(processor(23, 49) == "epyc-rome");  // NCCL_TOPO_FILE of Azure's ND A100 v4
  CHECK(processor(143, 49) == "epyc-rome");
  CHECK(processor(25, 17) == "epyc-genoa");  // of AWS's P5
  CHECK(processor(175, 1) == "epyc-milan");
  CHECK(processor(99, 1) == "epyc-milan");  // one that nobody knows is of its vendor
}

TEST_CASE("an adapter that one of its rate stands for keeps the link of the dump") {
  const auto imported = import_cluster(
      {{"x.xml",
        "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" "
        "modelid=\"143\"><pci busid=\"0000:4f:00.0\" class=\"0x020000\" vendor=\"0x8086\" device=\"0x1592\" "
        "link_speed=\"16.0 GT/s PCIe\" link_width=\"8\"><nic><net name=\"rocep79s0\" dev=\"0\" speed=\"100000\"/></nic>"
        "</pci></cpu></system>",
        SourceRole::any, ""}});
  REQUIRE(imported);
  CHECK(imported->yaml.find("pcie: gen4 x8") != std::string::npos);
}

TEST_CASE("a BlueField-3 is known by its number, not taken for the ConnectX-7 inside it") {
  const auto adapter = [](const std::string& device, const std::string& pci_class, int mbit_per_s) {
    const auto xml = fmt::format(
        "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" "
        "modelid=\"143\"><pci busid=\"0000:4f:00.0\" class=\"{}\" vendor=\"0x15b3\" device=\"{}\" "
        "link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><nic><net name=\"mlx5_0\" dev=\"0\" speed=\"{}\"/></nic>"
        "</pci></cpu></system>",
        pci_class, device, mbit_per_s);
    const auto imported = import_cluster({{"x.xml", xml, SourceRole::any, ""}});
    REQUIRE(imported);
    const auto at = imported->yaml.find("{name: hca0, type: ") + 19;
    const bool is_said = imported->yaml.find("BlueField-3 as ConnectX-7") != std::string::npos;
    return imported->yaml.substr(at, imported->yaml.find(',', at) - at) + (is_said ? ", assumed" : "");
  };
  CHECK(adapter("0xa2dc", "0x020700", 400000) == "bluefield-3-ndr");
  CHECK(adapter("0xa2dc", "0x020000", 400000) == "bluefield-3-400g");
  CHECK(adapter("0xa2dc", "0x020000", 200000) == "connectx-7-200g, assumed");
  CHECK(adapter("0x1021", "0x020700", 400000) == "connectx-7-ndr");
  CHECK(adapter("0x1021", "0x020000", 400000) == "connectx-7-400g");
}

TEST_CASE("an adapter of a listing is known by its number, without one by its rate") {
  const auto adapter = [](const std::string& devid, const std::string& name) {
    auto text = capture(name);
    const std::string own = name.find("ndr") != std::string::npos ? "devid=0x1021" : "devid=0x101b";
    for (auto at = text.find(own); at != std::string::npos; at = text.find(own)) text.replace(at, own.size(), devid);
    const auto imported = import_cluster({{"net.txt", text, SourceRole::any, ""}});
    REQUIRE(imported);
    const auto at = imported->yaml.find("{name: hca0, type: ") + 19;
    const bool is_guessed = imported->yaml.find("no source names the adapter") != std::string::npos;
    return imported->yaml.substr(at, imported->yaml.find(',', at) - at) + (is_guessed ? " by rate" : "");
  };
  CHECK(adapter("devid=0x1023", "ibnetdiscover-dgx-ndr.txt") == "connectx-7-ndr");
  CHECK(adapter("devid=0xa2dc", "ibnetdiscover-dgx-ndr.txt") == "bluefield-3-ndr");
  CHECK(adapter("devid=0x9999", "ibnetdiscover-dgx-ndr.txt") == "connectx-7-ndr by rate");
  CHECK(adapter("devid=0x1017", "ibnetdiscover-edr.txt") == "connectx-5-edr");
  CHECK(adapter("devid=0x9999", "ibnetdiscover-edr.txt") == "connectx-4-edr by rate");
}

TEST_CASE("elastic fabric adapters are told apart by the GPUs beside them and joined as NCCL's plugin joins them") {
  const auto adapters = [](const std::string& gpu, const std::string& adapter, int count) {
    std::string xml =
        "<system version=\"1\"><cpu numaid=\"0\" arch=\"x86_64\" vendor=\"GenuineIntel\" familyid=\"6\" "
        "modelid=\"143\"><pci busid=\"0000:00:00.0\" class=\"0x060400\" link_speed=\"32.0 GT/s PCIe\" "
        "link_width=\"16\"><pci busid=\"0000:01:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"" +
        gpu + "\" link_speed=\"32.0 GT/s PCIe\" link_width=\"16\"><gpu dev=\"0\"/></pci>";
    for (int i = 0; i < count; ++i)
      xml += fmt::format(
          "<pci busid=\"0000:{:02x}:00.0\" class=\"0x020000\" {} link_speed=\"16.0 GT/s PCIe\" "
          "link_width=\"8\"><nic><net name=\"rdmap{}s0\" dev=\"{}\" speed=\"100000\"/></nic></pci>",
          2 + i, adapter, 2 + i, i);
    const auto imported = import_cluster({{"x.xml", xml + "</pci></cpu></system>", SourceRole::any, ""}});
    REQUIRE(imported);
    std::vector<std::string> out;
    for (auto at = imported->yaml.find("type: e"); at != std::string::npos; at = imported->yaml.find("type: e", at + 1))
      out.push_back(imported->yaml.substr(at + 6, imported->yaml.find(',', at) - at - 6));
    return out;
  };
  using Names = std::vector<std::string>;
  const std::string a100 = "0x20b0", v100 = "0x1db5", h100 = "0x2330";
  CHECK(adapters(a100, R"(vendor="0x1d0f" device="0xefa0")", 1) == Names{"efa-100g-gdr"});  // hwloc of p4d
  CHECK(adapters(v100, R"(vendor="0x1d0f" device="0xefa0")", 1) == Names{"efa-100g"});
  CHECK(adapters(h100, R"(vendor="0x1d0f" device="0xefa1")", 4) == Names{"efa-4x100g"});
  CHECK(adapters(h100, "", 4) == Names{"efa-4x100g"});  // NCCL_TOPO_FILE of p5 names RDMA devices alone
  CHECK(adapters(h100, R"(vendor="0x1d0f" device="0xefa2")", 2) == Names{"efa-2x200g"});
  CHECK(adapters(h100, R"(vendor="0x1d0f" device="0xefa1")", 3).size() == 3);
}
