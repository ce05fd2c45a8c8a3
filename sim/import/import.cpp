// SPDX-License-Identifier: Apache-2.0
#include "fabricast/import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "import/merge.hpp"
#include "import/onyx.hpp"
#include "import/source.hpp"
#include "import/write_topology.hpp"

namespace fabricast {

namespace {

using import::Inventory;
using import::Source;

struct Format {
  SourceFormat format;
  const char* name;
  SourceRole role;
  Result<void> (*read)(const Source&, Inventory&);
};

constexpr std::array k_formats{
    Format{SourceFormat::nccl_topo, "nccl-topo", SourceRole::host, import::read_nccl_topo},
    Format{SourceFormat::hwloc, "hwloc", SourceRole::host, import::read_hwloc},
    Format{SourceFormat::smi_topo, "smi-topo", SourceRole::host, import::read_smi_topo},
    Format{SourceFormat::lspci, "lspci", SourceRole::host, import::read_lspci},
    Format{SourceFormat::lspci_tree, "lspci-tree", SourceRole::host, import::read_lspci_tree},
    Format{SourceFormat::ibnetdiscover, "ibnetdiscover", SourceRole::fabric, import::read_ibnetdiscover},
    Format{SourceFormat::slurm, "slurm", SourceRole::placement, import::read_slurm},
    Format{SourceFormat::libvirt, "libvirt", SourceRole::vms, import::read_libvirt},
    Format{SourceFormat::govc, "govc", SourceRole::vms, import::read_govc},
    Format{SourceFormat::onyx, "onyx", SourceRole::fabric, import::read_onyx},
};

const Format& format_of(SourceFormat format) {
  return *std::find_if(k_formats.begin(), k_formats.end(), [&](const Format& f) { return f.format == format; });
}

/// Name of an XML text's outermost element; empty where it does not begin with one.
std::string_view root_element(std::string_view text) {
  while (true) {
    text = import::trimmed(text);
    if (!text.starts_with("<")) return {};
    const auto* end = text.starts_with("<?") ? "?>" : text.starts_with("<!--") ? "-->" : nullptr;
    if (end == nullptr && text.starts_with("<!")) {
      const auto subset = text.find('[');
      end = subset != std::string_view::npos && subset < text.find('>') ? "]>" : ">";
    }
    if (end == nullptr) return text.substr(1, text.find_first_of(" \t\r\n/>", 1) - 1);
    const auto at = text.find(end);
    if (at == std::string_view::npos) return {};
    text.remove_prefix(at + std::string_view(end).size());
  }
}

/// The first line, below prompts and messages of the command, that begins with a PCI address, or with the picture of a
/// bus.
std::optional<SourceFormat> lspci_form(std::string_view text) {
  for (const auto line : import::split(text, '\n')) {
    if (line.starts_with("-[") || line.starts_with("-+-[")) return SourceFormat::lspci_tree;
    const auto word = line.substr(0, line.find(' '));
    if (import::has(word, ".") && !import::pci_address(word).empty()) return SourceFormat::lspci;
  }
  return std::nullopt;
}

/// A node of a fabric as ibsim's net files write it: kind, number of ports, identifier in quotes.
bool is_net_file(std::string_view text) {
  for (const auto line : import::split(text, '\n')) {
    const auto words = words_of(line);
    if (words.size() >= 3 && (words[0] == "Switch" || words[0] == "Hca" || words[0] == "Ca") &&
        import::number_of(words[1], 10) && words[2].starts_with('"'))
      return true;
  }
  return false;
}

/// Words that only one format has, in the first part of the text.
std::optional<SourceFormat> looks_like(std::string_view text) {
  const auto head = text.substr(0, std::size_t{1} << 16);
  const auto begin = import::trimmed(head);
  const auto holds = [&](std::string_view part) { return import::has(head, part); };
  if (begin.starts_with("<")) {
    const auto root = root_element(head);  // domains have a <topology>, too: that of their processors
    if (root == "system") return SourceFormat::nccl_topo;
    if (root == "topology") return SourceFormat::hwloc;
    if (root == "domain") return SourceFormat::libvirt;
    return std::nullopt;
  }
  if (begin.starts_with("{")) return SourceFormat::govc;
  if (import::looks_like_onyx(head)) return SourceFormat::onyx;
  if (holds("switchguid=") || holds("caguid=") || holds("\"H-0") || holds("\"S-0") || is_net_file(head))
    return SourceFormat::ibnetdiscover;
  const auto small = lower(head);  // Slurm's keys are written in any case
  if (import::has(small, "switchname=") || import::has(small, "blockname=") || holds("switches:") || holds("blocks:") ||
      holds("block_sizes"))
    return SourceFormat::slurm;
  if (holds("GPU0") && (holds(" X ") || holds("PIX") || holds("SYS") || holds("NODE") || holds("PHB")))
    return SourceFormat::smi_topo;
  return lspci_form(begin);
}

/// The format asked for, else the one the text looks like, which must fit what the source was given as.
Result<SourceFormat> format_asked(const ClusterSource& source) {
  if (!source.format.empty()) {
    for (const auto& one : k_formats) {
      if (source.format == one.name) return one.format;
    }
    return tl::unexpected(Diagnostics{make_error(fmt::format("'{}' is no format of a source", source.format))});
  }
  return detect_source(source.text, source.name);
}

Result<void> read_source(const ClusterSource& given, Inventory& inventory) {
  const Source source(given.name, given.text);
  if (auto fault = source.limits()) return tl::unexpected(Diagnostics{*fault});
  const auto format = format_asked(given);
  if (!format) return tl::unexpected(format.error());
  const auto& entry = format_of(*format);
  const bool is_both = *format == SourceFormat::govc;  // hosts and machines
  if (given.role != SourceRole::any && given.role != entry.role && !is_both) {
    static constexpr std::array<const char*, 5> roles{"", "--host", "--fabric", "--placement", "--vms"};
    return tl::unexpected(
        Diagnostics{source.error(source.at(1),
                                 fmt::format("this looks like {}, it was given with {}", entry.name,
                                             roles[static_cast<std::size_t>(given.role)]),
                                 fmt::format("give it with {}", roles[static_cast<std::size_t>(entry.role)]))});
  }
  inventory.sources.push_back(fmt::format("{}: {}", entry.name, given.name));
  return entry.read(source, inventory);
}

}  // namespace

std::string_view to_string(SourceFormat format) { return format_of(format).name; }

const std::vector<std::string>& source_format_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> out;
    for (const auto& one : k_formats) out.emplace_back(one.name);
    return out;
  }();
  return names;
}

Result<SourceFormat> detect_source(std::string_view text, const std::string& name) {
  const Source source(name, text);
  if (auto fault = source.limits()) return tl::unexpected(Diagnostics{*fault});
  if (const auto format = looks_like(source.text())) return *format;
  std::string names;
  for (const auto& one : source_format_names()) names += (names.empty() ? "" : ", ") + one;
  return tl::unexpected(Diagnostics{source.error(source.at(1), "this looks like none of the formats that are imported",
                                                 "name one before the file: " + names)});
}

Result<import::Inventory> import::read_sources(const std::vector<ClusterSource>& sources) {
  Inventory inventory;
  Diagnostics faults;
  for (const auto& source : sources) {
    if (auto read = read_source(source, inventory); !read)
      faults.insert(faults.end(), read.error().begin(), read.error().end());
  }
  if (sources.empty()) faults.push_back(make_error("no source to import"));
  if (!faults.empty()) return tl::unexpected(std::move(faults));
  return inventory;
}

Result<ImportedCluster> import_cluster(const std::vector<ClusterSource>& sources, const ImportOptions& options) {
  if (sources.size() == 1) {
    const auto format = format_asked(sources.front());
    if (format && *format == SourceFormat::onyx) return import::import_onyx(sources.front());
  }
  auto read = import::read_sources(sources);
  if (!read) return tl::unexpected(read.error());
  auto& inventory = *read;
  import::merge_machines(inventory);
  import::check_guests(inventory);
  auto yaml = import::write_topology(inventory, options);
  if (!yaml) return tl::unexpected(yaml.error());
  return ImportedCluster{std::move(*yaml), std::move(inventory.findings)};
}

}  // namespace fabricast
