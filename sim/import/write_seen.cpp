// SPDX-License-Identifier: Apache-2.0
// Hosts that no dump of their tree describes: adapters that only the fabric shows, and matrices of distances.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "import/identity.hpp"
#include "import/source.hpp"
#include "import/write_topology.hpp"

namespace fabricast::import {

WrittenHost write_bare_host(const std::vector<ListedAdapter>& adapters, bool is_infiniband, Inventory& inventory,
                            const ImportOptions& options) {
  WrittenHost out;
  const auto assume = [&](const std::string& assumed) {
    if (!assumed.empty() && std::ranges::find(inventory.assumed, assumed) == inventory.assumed.end())
      inventory.assumed.push_back(assumed);
  };
  const auto identity = [&](const ListedAdapter& one) {
    return adapter_of_listing(one.devid, one.gbit_per_s, is_infiniband);
  };
  const auto fastest = identity(adapters.empty() ? ListedAdapter{} : std::ranges::max(adapters));
  assume(fastest.assumed);
  const auto processor =
      options.processor.empty() ? usual_processor(fastest.card.generation, "") : Identity{options.processor, "", {}};
  assume(processor.assumed);
  out.yaml = fmt::format("      processor: {}\n      sockets: 2\n      devices:\n", processor.name);
  for (std::size_t i = 0; i < adapters.size(); ++i) {
    out.hcas.push_back(fmt::format("hca{}", i));
    out.rates.push_back(adapters[i].gbit_per_s);
    out.yaml += fmt::format("        - {{name: hca{}, type: {}, below: socket{}}}\n", i, identity(adapters[i]).name,
                            i * 2 / adapters.size());
  }
  out.is_infiniband = is_infiniband;
  return out;
}

namespace {

/// Groups of rows that `together` joins.
std::vector<int> groups_of(const DistanceMatrix& matrix, const std::set<std::string>& together) {
  const auto n = matrix.names.size();
  std::vector<int> group(n);
  std::iota(group.begin(), group.end(), 0);
  const auto top = [&](int i) {
    while (group[static_cast<std::size_t>(i)] != i) i = group[static_cast<std::size_t>(i)];
    return i;
  };
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (together.contains(matrix.cells[i][j]))
        group[static_cast<std::size_t>(top(static_cast<int>(i)))] = top(static_cast<int>(j));
    }
  }
  for (std::size_t i = 0; i < n; ++i) group[i] = top(static_cast<int>(i));
  return group;
}

/// NVLinks of a GPU to an NVSwitch: every pair shows the same number of bonded links, and there are more than two GPUs.
int switched_links(const DistanceMatrix& matrix) {
  int links = -1, gpus = 0;
  for (std::size_t i = 0; i < matrix.names.size(); ++i) {
    if (!matrix.names[i].starts_with("GPU")) continue;
    ++gpus;
    for (std::size_t j = 0; j < matrix.names.size(); ++j) {
      if (j == i || !matrix.names[j].starts_with("GPU")) continue;
      const auto& cell = matrix.cells[i][j];
      const int here =
          cell.starts_with("NV") ? static_cast<int>(number_of(std::string_view(cell).substr(2), 10).value_or(0)) : 0;
      if (links >= 0 && here != links) return 0;
      links = here;
    }
  }
  return gpus > 2 && links > 4 ? std::min(links, 36) : 0;
}

}  // namespace

Result<Machine> machine_of_distances(const Machine& seen, Inventory& inventory, const ImportOptions& options) {
  const auto& matrix = *seen.distances;
  Machine out;
  out.format = seen.format;
  out.place = seen.place;
  out.processor = seen.processor;
  inventory.assumed.push_back(
      "the matrix of distances says who is near whom, not how fast: PCIe links are as fast as the cards");
  const auto switches = groups_of(matrix, {"PIX", "PXB"});
  const auto sockets = groups_of(matrix, {"PIX", "PXB", "PHB", "NODE"});
  std::map<int, int> switch_index, socket_index, members;
  for (const int group : switches) ++members[group];
  for (const int group : sockets) socket_index.try_emplace(group, static_cast<int>(socket_index.size()));
  out.num_sockets = std::max<int>(1, static_cast<int>(socket_index.size()));
  out.has_numa = true;
  const int switched = switched_links(matrix);
  // By the number of links a GPU has: 12 the generation of A100, 18 of H100, 6 of V100 in boards with NVSwitches.
  const int capability = switched == 18 ? 90 : switched == 12 ? 80 : switched == 6 ? 70 : 0;
  for (std::size_t i = 0; i < matrix.names.size(); ++i) {
    const int group = switches[i];
    const int numa = socket_index[sockets[i]];
    if (members[group] > 1 && !switch_index.contains(group)) {
      PciDevice bridge;
      bridge.numa = numa;
      bridge.place = matrix.rows[i];
      switch_index[group] = static_cast<int>(out.devices.size());
      out.devices.push_back(std::move(bridge));
    }
    PciDevice one;
    one.place = matrix.rows[i];
    one.numa = numa;
    one.parent = members[group] > 1 ? switch_index[group] : -1;
    if (matrix.names[i].starts_with("GPU")) {
      one.kind = PciKind::gpu;
      one.address = lower(matrix.names[i]);
      one.gpu = static_cast<int>(number_of(std::string_view(matrix.names[i]).substr(3), 10).value_or(-1));
      one.compute_capability = options.gpu.empty() ? capability : 0;
      if (switched > 0) one.nvlinks.push_back({"", switched, true});
      for (std::size_t j = 0; switched == 0 && j < matrix.names.size(); ++j) {
        const auto& cell = matrix.cells[i][j];
        if (cell.starts_with("NV"))
          one.nvlinks.push_back({lower(matrix.names[j]),
                                 static_cast<int>(std::clamp<std::int64_t>(
                                     number_of(std::string_view(cell).substr(2), 10).value_or(1), 1, 36)),
                                 false});
      }
    } else {
      one.kind = PciKind::nic;
      const auto alias = matrix.nic_names.find(matrix.names[i]);
      const auto name = alias == matrix.nic_names.end() ? matrix.names[i] : alias->second;
      one.ports.push_back({name, static_cast<int>(i), 0});
      one.vendor = 0x15b3;
      one.device = capability == 90 ? 0x1021 : capability == 80 ? 0x101b : 0x1017;
    }
    out.devices.push_back(std::move(one));
  }
  return out;
}

}  // namespace fabricast::import
