// SPDX-License-Identifier: Apache-2.0
// The compatibility matrix against what vendors' pages say: every cell of tests/validation/vm_reference.txt, which was
// written from the pages and not from the parameters, becomes a small host whose verdict must be the page's. GPU x
// release of ESXi x release of the vGPU software x hypervisor x way, profiles, MIG kinds, MMIO, peer access, limits of
// a VM, operations.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "fabricast/check.hpp"
#include "fabricast/virtualization.hpp"
#include "tests/support/clusters.hpp"

using namespace fabricast;

namespace {
namespace reference {

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, by);) {
    const auto begin = part.find_first_not_of(' ');
    if (begin == std::string::npos) continue;
    out.push_back(part.substr(begin, part.find_last_not_of(' ') - begin + 1));
  }
  return out;
}

/// Lines of one kind, cut at the bars, without the kind.
std::vector<std::vector<std::string>> lines(const std::string& kind) {
  std::ifstream in(std::string(FABRICAST_SOURCE_DIR) + "/tests/validation/vm_reference.txt");
  std::vector<std::vector<std::string>> out;
  for (std::string line; std::getline(in, line);) {
    auto cells = split(line, '|');
    if (cells.empty() || cells.front() != kind) continue;
    cells.erase(cells.begin());
    out.push_back(std::move(cells));
  }
  REQUIRE_FALSE(out.empty());
  return out;
}

int code(const std::string& release) {
  const auto number = release_from(release);
  REQUIRE(number);
  return 100 * number->major + 10 * number->minor + number->update;
}

/// Hosts of one kind of device, each with its own settings and VMs.
struct Hosts {
  std::string devices;  ///< of every host
  std::string groups;
  int count = 0;

  std::string add(const std::string& settings, const std::string& vms, const std::string& more = "") {
    const auto name = fmt::format("c{}", count++);
    groups += fmt::format(
        "  - {{name: {}, host: {{processor: xeon-skylake, devices: [{}{}]}}, virtualization: {{{}}}, vms: [{}]}}\n",
        name, devices, more, settings, vms);
    return name;
  }
};

struct Verdict {
  bool is_refused = false, is_doubted = false;
  std::string text;
};

struct Judged {
  std::map<std::string, Verdict> verdicts;
  std::string features;
  /// Of the one VM of the group.
  [[nodiscard]] bool has_peer_access(const std::string& group) const {
    const auto at = features.find(" x " + group + ",");
    REQUIRE(at != std::string::npos);
    const auto line = features.find("GPU peer access ", at);
    return line != std::string::npos && features.compare(line + 16, 3, "yes") == 0;
  }
};

Judged judge(const Hosts& hosts) {
  const bool has_adapters = hosts.devices.find("hca0") != std::string::npos;
  const auto loaded = test::topology("schema: fabricast/topology/1\nname: t\nhosts:\n" + hosts.groups + "fabric:\n  " +
                                     (has_adapters ? "leaf_spine" : "single_switch") + ": {switch: sn2700}\n");
  Judged out;
  for (int i = 0; i < hosts.count; ++i) out.verdicts[fmt::format("c{}", i)] = {};
  for (const auto& one : check_virtualization(loaded.topology, loaded.parameters, loaded.device_types)) {
    const auto at = one.message.find("(group '");
    REQUIRE(at != std::string::npos);
    const auto begin = at + 8;
    auto& verdict = out.verdicts[one.message.substr(begin, one.message.find('\'', begin) - begin)];
    (one.severity == Severity::error ? verdict.is_refused : verdict.is_doubted) = true;
    verdict.text += one.message + "; ";
  }
  out.features = virtual_features(loaded.topology, loaded.parameters);
  return out;
}

std::string gpus(const std::string& type, int count) {
  std::string out;
  for (int i = 0; i < count; ++i)
    out += fmt::format("{}{{name: gpu{}, type: {}, below: socket0}}", i > 0 ? ", " : "", i, type);
  return out;
}

/// What a cell "7.0U3 D" means for a release, where the smaller of the two is too old (or the larger dropped).
enum class Said { fits, doubted, refused };
Said said(const std::string& cell, bool is_outside) {
  if (!is_outside) return Said::fits;
  return cell.back() == 'I' ? Said::doubted : Said::refused;
}
Said worse(Said one, Said other) { return std::max(one, other); }

void compare(const Verdict& verdict, Said expected, const std::vector<std::string>& words) {
  CAPTURE(verdict.text);
  CHECK(verdict.is_refused == (expected == Said::refused));
  const bool is_named = std::any_of(
      words.begin(), words.end(), [&](const std::string& one) { return verdict.text.find(one) != std::string::npos; });
  CHECK(is_named == (expected != Said::fits));
}

const std::vector<std::string> k_releases{"6.0",    "6.5",    "6.7", "6.7 U1", "6.7 U2", "6.7 U3", "7.0", "7.0 U1",
                                          "7.0 U2", "7.0 U3", "8.0", "8.0 U1", "8.0 U2", "8.0 U3", "9.0"};
/// Compute capability 8 and above: hands out vGPUs by SR-IOV, from ESXi 7.0 (D).
bool is_ampere(const std::string& type) {
  return type[0] != 'k' && type[0] != 'm' && type[0] != 'p' && type[0] != 'v' && type[0] != 't';
}

Said of_esxi(const std::vector<std::string>& gpu, const std::string& release) {
  const auto& first = gpu[3];
  const bool is_old = is_ampere(gpu[0]) && code(release) < 700;
  return is_old ? Said::refused : said(first, code(release) < code(first.substr(0, first.find(' '))));
}
bool has_vgpu(const std::vector<std::string>& gpu) { return gpu[3] != "-"; }

}  // namespace reference
}  // namespace

TEST_CASE("pages: GPU x release of ESXi x way") {
  namespace r = reference;
  for (const auto& gpu : r::lines("gpu")) {
    const auto& type = gpu[0];
    CAPTURE(type);
    REQUIRE(gpu.size() == 8);
    r::Hosts hosts{r::gpus(type, 1), {}, 0};
    std::map<std::string, std::array<std::string, 3>> names;
    for (const auto& release : r::k_releases) {
      const auto settings = fmt::format("version: \"{}\"", release);
      names[release] = {hosts.add(settings, "{name: a, devices: {gpu0: vgpu}}"),
                        hosts.add(settings, "{name: a, devices: {gpu0: mig}}"),
                        hosts.add(settings, "{name: a, devices: {gpu0: passthrough}}")};
    }
    const auto judged = r::judge(hosts);
    for (const auto& release : r::k_releases) {
      CAPTURE(release);
      const auto& [vgpu, mig, passed] = names.at(release);
      const auto expected = r::has_vgpu(gpu) ? r::of_esxi(gpu, release) : r::Said::refused;
      r::compare(judged.verdicts.at(vgpu), expected, {"needs ESXi", "has no vGPU"});
      auto of_mig = r::Said::refused;
      if (gpu[4] == "yes" && r::code(release) >= 700)
        of_mig = r::worse(r::of_esxi(gpu, release), r::said("7.0U2 I", r::code(release) < 702));
      r::compare(judged.verdicts.at(mig), of_mig, {"needs ESXi", "came with ESXi", "has no MIG"});
      CHECK_FALSE(judged.verdicts.at(passed).is_refused);
    }
  }
}

TEST_CASE("pages: GPU x release of the vGPU software, and hypervisors") {
  namespace r = reference;
  for (const auto& gpu : r::lines("gpu")) {
    const auto& type = gpu[0];
    CAPTURE(type);
    r::Hosts hosts{r::gpus(type, 1), {}, 0};
    std::map<int, std::string> names;
    for (int release = 5; release <= 20; ++release)
      names[release] = hosts.add(fmt::format("hypervisor: kvm, vgpu_release: \"{}.0\"", release),
                                 "{name: a, devices: {gpu0: vgpu}}");
    std::map<std::string, std::string> others;
    for (const auto* hypervisor : {"kvm", "xen", "cloud-hypervisor", "hyper-v"})
      others[hypervisor] = hosts.add(fmt::format("hypervisor: {}", hypervisor), "{name: a, devices: {gpu0: vgpu}}");
    const auto judged = r::judge(hosts);
    for (const auto& entry : names) {
      const int release = entry.first;
      CAPTURE(release);
      const auto& first = gpu[1];
      const auto& last = gpu[2];
      auto expected = r::has_vgpu(gpu) ? r::Said::fits : r::Said::refused;
      if (first != "-")
        expected = r::worse(expected, r::said(first, 100 * release < r::code(first.substr(0, first.find(' ')))));
      if (last != "-") expected = r::worse(expected, r::said(last, release > std::stoi(last)));
      r::compare(judged.verdicts.at(entry.second), expected, {"does not know", "has dropped", "has no vGPU"});
    }
    for (const auto& [hypervisor, name] : others) {
      const bool has_software = name == others["kvm"] || name == others["xen"];
      CHECK(judged.verdicts.at(name).is_refused == (!has_software || !r::has_vgpu(gpu)));
    }
  }
}

TEST_CASE("pages: peer access of vGPUs, by card, NVLink, profile, unified memory, guest and MIG") {
  namespace r = reference;
  for (const auto& gpu : r::lines("gpu")) {
    if (!r::has_vgpu(gpu)) continue;
    const auto& type = gpu[0];
    CAPTURE(type);
    const auto linked =
        gpu[5] == "never" ? std::string() : std::string("], nvlinks: [{from: gpu0, to: gpu1, links: 4}");
    r::Hosts hosts{r::gpus(type, 2), {}, 0};
    const auto add = [&](const std::string& keys, const std::string& vgpu, const std::string& more) {
      return hosts.add("hypervisor: kvm",
                       fmt::format("{{name: a, {}devices: {{gpu0: {}, gpu1: {}}}}}", keys, vgpu, vgpu), more);
    };
    const auto whole = add("", "vgpu", linked);
    const auto apart = add("", "vgpu", "");
    const auto half = add("", fmt::format("{{vgpu: {}}}", gpu[6]), linked);
    const auto unified = add("unified_memory: on, ", "vgpu", linked);
    const auto windows = add("guest_os: windows, ", "vgpu", linked);
    const auto mig = gpu[4] == "yes" ? add("", "mig", linked) : std::string();
    const auto judged = r::judge(hosts);
    const bool has_link = gpu[5] != "never";
    CHECK(judged.has_peer_access(whole) == has_link);
    CHECK_FALSE(judged.has_peer_access(apart));
    CHECK_FALSE(judged.has_peer_access(half));
    // Unified memory closes it before Hopper.
    CHECK(judged.has_peer_access(unified) == (has_link && (type[0] == 'h' || type[0] == 'b')));
    CHECK_FALSE(judged.has_peer_access(windows));
    if (!mig.empty()) CHECK_FALSE(judged.has_peer_access(mig));
  }
}

TEST_CASE("pages: a card holds so many of a vGPU profile or MIG kind, and not one more") {
  namespace r = reference;
  for (const auto* kind : {"size", "mig"}) {
    for (const auto& line : r::lines(kind)) {
      const auto& type = line[0];
      CAPTURE(type);
      const auto way = std::string(kind) == "mig" ? "mig" : "vgpu";
      r::Hosts hosts{r::gpus(type, 1), {}, 0};
      std::vector<std::string> words;
      for (const auto& one : r::split(line[1], ',')) {
        const auto parts = r::split(one, ' ');
        const auto profile = std::string(way) == "mig" ? parts[0] : type.substr(0, type.find('-')) + "-" + parts[0];
        for (const int count : {std::stoi(parts[1]), std::stoi(parts[1]) + 1}) {
          hosts.add("hypervisor: kvm",
                    fmt::format("{{name: a, count: {}, devices: {{gpu0: {{{}: {}}}}}}}", count, way, profile));
          words.push_back(fmt::format("{} x {}", count, profile));
        }
      }
      const auto judged = r::judge(hosts);
      for (std::size_t i = 0; i < words.size(); ++i) {
        const auto word = words[i];
        CAPTURE(word);
        const auto& verdict = judged.verdicts.at(fmt::format("c{}", i));
        CAPTURE(verdict.text);
        CHECK(verdict.is_refused == (i % 2 == 1));
        CHECK((verdict.text.find("it holds") != std::string::npos ||
               verdict.text.find("do not fit") != std::string::npos) == (i % 2 == 1));
      }
    }
  }
}

TEST_CASE("pages: the MMIO space of 1 to 8 cards in a VM, half of it refused") {
  namespace r = reference;
  for (const auto& line : r::lines("mmio")) {
    const auto& type = line[0];
    CAPTURE(type);
    r::Hosts hosts{r::gpus(type, 8), {}, 0};
    const auto sizes = r::split(line[1], ' ');
    REQUIRE(sizes.size() == 5);
    const std::array<int, 5> counts{1, 2, 3, 4, 8};
    for (std::size_t i = 0; i < counts.size(); ++i) {
      const int size = std::stoi(sizes[i]);
      const auto vm = [&](const std::string& mmio) {
        return fmt::format("{{name: a, mmio: {{{}}}, devices: {{{}: {{mode: passthrough, count: {}}}}}}}", mmio, type,
                           counts[i]);
      };
      hosts.add("version: \"8.0\"", vm(size == 0 ? "use_64bit: off" : fmt::format("size: {} GiB", size)));
      hosts.add("version: \"8.0\"", vm(size == 0 ? "size: 1 GiB" : fmt::format("size: {} GiB", size / 2)));
    }
    const auto judged = r::judge(hosts);
    for (std::size_t i = 0; i < counts.size(); ++i) {
      CAPTURE(counts[i]);
      CHECK_FALSE(judged.verdicts.at(fmt::format("c{}", 2 * i)).is_refused);
      CHECK(judged.verdicts.at(fmt::format("c{}", 2 * i + 1)).is_refused == (sizes[i] != "0"));
    }
  }
}

TEST_CASE("pages: the largest VM of each release of ESXi") {
  namespace r = reference;
  for (const auto& line : r::lines("limit")) {
    const auto& release = line[0];
    CAPTURE(release);
    r::Hosts hosts{r::gpus("t4", 33), {}, 0};
    const auto settings = fmt::format("version: \"{}\"", release);
    for (const int more : {0, 1}) {
      hosts.add(settings, fmt::format("{{name: a, hardware_version: {}, devices: {{gpu0: passthrough}}}}",
                                      std::stoi(line[1]) + more));
      const int devices = std::min(32 + more, std::stoi(line[2]) + more);
      hosts.add(settings, fmt::format("{{name: a, devices: {{t4: {{mode: passthrough, count: {}}}}}}}", devices));
      hosts.add(settings,
                fmt::format("{{name: a, memory: {} GiB, devices: {{gpu0: passthrough}}}}", std::stoi(line[3]) + more));
      hosts.add(settings,
                fmt::format("{{name: a, vcpus: {}, devices: {{gpu0: passthrough}}}}", std::stoi(line[4]) + more));
    }
    const auto judged = r::judge(hosts);
    const auto says = [&](int i, const std::string& words) {
      return judged.verdicts.at(fmt::format("c{}", i)).text.find(words) != std::string::npos;
    };
    for (const int i : {0, 4}) {
      const bool is_more = i == 4;
      CHECK(says(i, "has up to") == is_more);
      CHECK(judged.verdicts.at(fmt::format("c{}", i)).is_refused == is_more);
      CHECK(says(i + 1, "allows") == (is_more && std::stoi(line[2]) <= 32));
      CHECK(says(i + 2, "allows") == is_more);
      CHECK(says(i + 3, "vCPUs, ESXi") == is_more);
    }
  }
}

TEST_CASE("pages: what a VM may do by the devices it holds") {
  namespace r = reference;
  const std::array<const char*, 8> operations{"migration",     "suspend", "snapshot",        "ha",
                                              "drs-placement", "drs",     "fault-tolerance", "hot-add"};
  const std::string devices =
      "{name: gpu0, type: v100-pcie-16, below: socket0}, {name: gpu1, type: v100-pcie-16, below: socket0}, "
      "{name: hca0, type: connectx-5-100g, below: socket0}";
  int compared = 0;
  for (const auto& line : r::lines("can")) {
    r::Hosts hosts{devices, {}, 0};
    for (const auto* operation : operations)
      hosts.add(line[0], fmt::format("{{name: a, needs: [{}], {}}}", operation, line[1]));
    const auto judged = r::judge(hosts);
    const auto words = r::split(line[2], ' ');
    REQUIRE(words.size() == operations.size());
    for (std::size_t i = 0; i < operations.size(); ++i) {
      const auto what = fmt::format("{} of {} ({})", operations[i], line[1], line[0]);
      CAPTURE(what);
      const auto& verdict = judged.verdicts.at(fmt::format("c{}", i));
      CAPTURE(verdict.text);
      if (words[i] == "?") continue;
      ++compared;
      CHECK(verdict.is_refused == (words[i] == "no"));
      CHECK((verdict.text.find("is required") != std::string::npos) == (words[i] != "yes"));
    }
  }
  CHECK(compared > 140);
}
