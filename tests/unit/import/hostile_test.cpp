// SPDX-License-Identifier: Apache-2.0
// Sources from strangers: cut short at any place, nested without end, in another encoding, with entities that grow.
// Each is a message with its place, or a topology of what is whole; never a crash, a hang or a file of nonsense.
#include <fmt/format.h>

#include "tests/unit/import/captures.hpp"

using namespace fabricast;
using namespace fabricast::test;

namespace {

/// Imports a text; the message when it is refused.
std::string refusal(const std::string& text, const std::string& format = "") {
  const auto imported = import_cluster({{"x", text, SourceRole::any, format}});
  if (imported) return "";
  CHECK(has_errors(imported.error()));
  return render(imported.error());
}

std::string repeated(const std::string& what, int times) {
  std::string out;
  for (int i = 0; i < times; ++i) out += what;
  return out;
}

}  // namespace

TEST_CASE("captures cut anywhere are refused with a message or read as far as they go") {
  for (const auto& entry : captures_of("")) {
    if (entry == "PROVENANCE.md") continue;
    const auto text = capture(entry);
    CAPTURE(entry);
    for (std::size_t part = 0; part < 23; ++part) {
      const auto cut = text.substr(0, text.size() * part / 23);
      const auto imported = import_cluster({{"cut", cut, SourceRole::any, ""}}, {"x", 0, "h100-sxm", ""});
      if (!imported) CHECK(!render(imported.error()).empty());
    }
  }
}

TEST_CASE("XML that breaks off names its line, and says that it may be cut") {
  const auto text = capture("nccl-hgx-h100.xml");
  const auto message = refusal(text.substr(0, text.size() / 2));
  CHECK(message.find("x:") == 0);
  CHECK(message.find("the XML breaks here") != std::string::npos);
  CHECK(message.find("was the file cut short") != std::string::npos);
}

TEST_CASE("nothing is nested deeper than a machine's tree") {
  const int k_deep = 200'000;
  const auto pci = repeated("<pci busid=\"0000:01:00.0\" class=\"0x060400\">", k_deep) + repeated("</pci>", k_deep);
  CHECK(refusal("<system version=\"1\"><cpu numaid=\"0\">" + pci + "</cpu></system>").find("nested deeper than 64") !=
        std::string::npos);
  const auto object = repeated("<object type=\"Bridge\">", k_deep) + repeated("</object>", k_deep);
  CHECK(refusal("<topology version=\"2.0\">" + object + "</topology>").find("nested deeper") != std::string::npos);
  CHECK(refusal("{\"devices\":" + repeated("[", k_deep) + repeated("]", k_deep) + "}").find("nested deeper") !=
        std::string::npos);
  CHECK(refusal("- tree: {switches: " + repeated("[", k_deep) + repeated("]", k_deep) + "}", "slurm")
            .find("nested deeper") != std::string::npos);
  CHECK(refusal(repeated("- ", k_deep) + "x", "slurm").find("nested deeper") != std::string::npos);
}

TEST_CASE("a broken topology.yaml of Slurm is told at its slip, in no words of the parser's") {
  const auto message = refusal(
      "- topology: x\n  tree:\n    switches:\n      - switch: s0\n        nodes n[0-3]\n        children: s[1-2]\n",
      "slurm");
  CHECK_MESSAGE(message.find("illegal map value") == std::string::npos, message);
  CHECK_MESSAGE(message.find(":5:") != std::string::npos, message);
  CHECK_MESSAGE(message.find("nodes n[0-3]") != std::string::npos, message);
  const auto open =
      refusal("- topology: x\n  tree:\n    switches:\n      - switch: \"s0\n        nodes: n[0-3]\n", "slurm");
  CHECK_MESSAGE(open.find(":4:") != std::string::npos, open);
}

TEST_CASE("entities do not grow, and nothing is loaded from elsewhere") {
  std::string text = "<?xml version=\"1.0\"?>\n<!DOCTYPE lolz [<!ENTITY a0 \"lol\">";
  for (int i = 1; i < 12; ++i)
    text += fmt::format("<!ENTITY a{} \"{}\">", i, repeated(fmt::format("&a{};", i - 1), 10));
  text +=
      "<!ENTITY file SYSTEM \"file:///etc/passwd\">]>\n<domain "
      "type='kvm'><name>&a11;&file;</name><vcpu>2</vcpu></domain>";
  const auto imported =
      import_cluster({{"nccl", capture("nccl-hgx-h100.xml"), SourceRole::any, ""}, {"lol", text, SourceRole::vms, ""}});
  REQUIRE(imported);
  CHECK(imported->yaml.size() < 100'000);
  CHECK(imported->yaml.find("root:") == std::string::npos);
}

TEST_CASE("other encodings and empty files get a message that says so") {
  CHECK(refusal("").find("the file is empty") != std::string::npos);
  CHECK(refusal("  \n\t\n").find("the file is empty") != std::string::npos);
  CHECK(refusal("\xff\xfe<\0s\0").find("UTF-16") != std::string::npos);
  CHECK(refusal(std::string("<system>\0</system>", 18)).find("NUL byte") != std::string::npos);
  CHECK(refusal("<system version=\"1\"><cpu vendor=\"\xe9\"/></system>").find("not UTF-8") != std::string::npos);
  CHECK(refusal("hello world").find("none of the formats") != std::string::npos);
  CHECK(refusal("<html></html>").find("none of the formats") != std::string::npos);
}

TEST_CASE("numbers past all sense are left out or refused") {
  const auto cpu = [](const std::string& inside) {
    return "<system version=\"1\"><cpu numaid=\"0\" vendor=\"GenuineIntel\" familyid=\"6\" modelid=\"143\">" + inside +
           "</cpu></system>";
  };
  const auto gpu = [&](const std::string& links, const std::string& numa) {
    auto text = cpu(
        "<pci busid=\"0000:01:00.0\" class=\"0x030200\" vendor=\"0x10de\" device=\"0x2330\" link_speed=\"1e999 GT/s\" "
        "link_width=\"99999999999999999999\"><gpu dev=\"-7\" sm=\"90\">" +
        links + "</gpu></pci>");
    if (!numa.empty()) text.replace(text.find("numaid=\"0\""), 10, "numaid=\"" + numa + "\"");
    return import_cluster({{"x", text, SourceRole::any, ""}});
  };
  const auto odd = gpu("<nvlink target=\"0000:02:00.0\" count=\"2000000000\" tclass=\"0x068000\"/>", "");
  REQUIRE(odd);
  CHECK(load_text(odd->yaml));
  CHECK(!odd->findings.empty());
  for (const auto* numa : {"2147483647", "99999999999999999999", "-1"}) {
    const auto imported = gpu("", numa);
    CHECK(imported.has_value() == (std::string_view(numa) != "2147483647"));
    if (imported) CHECK(load_text(imported->yaml));
  }
}

TEST_CASE("names from sources cannot break the YAML") {
  auto text = capture("ibnetdiscover-edr.txt");
  const std::string evil = "n\\\": {a: b} # &x *y \\t' mlx5_0";
  for (auto at = text.find("node000 mlx5_0"); at != std::string::npos; at = text.find("node000 mlx5_0", at + 1))
    text.replace(at, 14, "n': {a: b} # x");
  const auto imported = import_cluster({{"x", text, SourceRole::any, ""}});
  REQUIRE(imported);
  const auto loaded = load_text(imported->yaml);
  CHECK_MESSAGE(loaded, (loaded ? "" : render(loaded.error())));
}
