// SPDX-License-Identifier: Apache-2.0
#include "nccl/nics.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "nccl/rccl.hpp"
#include "nccl/tuning.hpp"
#include "paths/guest.hpp"
#include "paths/transport.hpp"

namespace fabricast::models::nccl {

namespace {

/// Releases before 2.9 know PCIe generations by the names of kernels before 5.7 only and take an unknown name for
/// generation 3 (topo.cc). That the kernel had the newer names is inferred from tables of A100 hosts: they change
/// protocol where NCCL's model does with generation 3.
int known_generation(int version, int generation) { return version < 209 ? std::min(3, generation) : generation; }

/// Bits of `value` below `count`, a power of two, in reverse order.
int mirrored(int value, int count) {
  int out = 0;
  for (int bit = 1, mirror = count >> 1; bit < count; bit <<= 1, mirror >>= 1)
    if ((value & bit) != 0) out |= mirror;
  return out;
}

int ceil_of_ratio(std::size_t a, std::size_t b) { return static_cast<int>((a + b - 1) / b); }

/// NCCL knows paths by NVLink-C2C to a processor and on from there (P2C) from 2.27 on, before as any other through it.
bool knows_c2c(const PlanContext& context, DeviceId gpu) {
  return has_c2c(context.topology, gpu) && release_number(context.software.nccl_version) >= 227;
}

/// What is not above a root port of the socket, for NCCL.
bool is_inside_socket(Distance distance) { return distance == Distance::phb || distance == Distance::node; }

bool is_direct(const PlanContext& context, DeviceId gpu, DeviceId hca) {
  return !uses_tcp(context, hca) && gpudirect_rdma(context, gpu, hca, gdr_level(context, gpu)).is_allowed;
}

NicPath path_at(const PlanContext& context, DeviceId gpu, DeviceId hca, Distance distance) {
  if (distance <= Distance::pix) return NicPath::pix;
  if (distance == Distance::pxb) return NicPath::pxb;
  if (is_inside_socket(distance) && knows_c2c(context, gpu) && is_direct(context, gpu, hca)) return NicPath::p2c;
  return distance == Distance::sys ? NicPath::sys : NicPath::phb;
}

}  // namespace

NicPath nic_path(const PlanContext& context, DeviceId gpu, DeviceId hca) {
  return path_at(context, gpu, hca, nic_distance(context, gpu, hca));
}

Distance gdr_level(const PlanContext& context, DeviceId gpu) {
  const auto& level = context.software.nccl_gdr_level;
  if (level == "pix") return Distance::pix;
  if (level == "phb") return Distance::node;  // NCCL's PHB includes other root ports of the socket
  if (level == "sys") return Distance::sys;
  return level.empty() && knows_c2c(context, gpu) ? Distance::node : Distance::pxb;
}

Distance nic_distance(const PlanContext& context, DeviceId gpu, DeviceId hca) {
  const auto wired = context.topology.distance(gpu, hca);
  return wired >= Distance::phb || is_direct(context, gpu, hca) ? wired : Distance::phb;
}

bool has_pxn(const Software& software) {
  return release_number(software.nccl_version) >= 212 && software.nccl_pxn.value_or(true);
}

int p2p_pxn_level(const Software& software) { return has_pxn(software) ? software.nccl_p2p_pxn_level.value_or(2) : 0; }

/// P100 18, V100 and A100 20, sm86 12, H100 20.6.
double nvlink_gb_per_s(int compute_capability) {
  if (compute_capability >= 100) return 40.1;
  if (compute_capability >= 90) return 20.6;
  if (compute_capability == 86) return 12;
  return compute_capability >= 70 ? 20 : 18;
}

double gpu_link_gb_per_s(const PlanContext& context, DeviceId gpu) {
  return library_of(context, gpu) == Library::rccl ? rccl::k_link_gb_per_s
                                                   : nvlink_gb_per_s(compute_capability(context, gpu));
}

double pcie_gb_per_s(double generation, double width) {
  return width * 15.0 * static_cast<double>(1 << (static_cast<int>(generation) - 1)) / 80.0;
}

bool is_before_skylake(std::string_view microarchitecture) {
  constexpr std::array k_older{"broadwell", "haswell", "ivybridge", "sandybridge"};
  return std::ranges::find(k_older, microarchitecture) != k_older.end();
}

double link_gb_per_s(const Link& link, int version) {
  return pcie_gb_per_s(known_generation(version, link.generation), link.lanes);
}

double between_sockets_gb_per_s(const Topology& topology, DeviceId gpu, int version) {
  if (is_amd(topology, gpu)) return version >= 219 ? 16 : 5000;
  const auto cores = topology.attribute(processor_of(topology, gpu), "microarchitecture");
  if (cores == "emeraldrapids" && version >= 226) return 40;
  // NCCL goes by model numbers: that of Granite Rapids lies between the two (topo.cc).
  if ((cores == "sapphirerapids" || cores == "graniterapids") && version >= 226) return 22;
  if (is_before_skylake(cores)) return 6;
  return version >= 218 ? 10 : 9;
}

double processor_overhead(const Topology& topology, DeviceId gpu, Distance distance, int version) {
  const bool is_intel = topology.attribute(processor_of(topology, gpu), "vendor") == "intel";
  return !is_intel || !is_inside_socket(distance) ? 1 : version <= 208 ? 12.0 / 9 : 6.0 / 5;
}

int nvml_index(const Topology& topology, DeviceId gpu) {
  const int ordinal = topology.device(gpu).ordinal;
  int first = 0;
  while (topology.guest_of(topology.device_in_host(topology.host_of(gpu), DeviceKind::gpu, first)) !=
         topology.guest_of(gpu))
    ++first;
  return ordinal - first;
}

namespace {

HcaCrossing crossing_of(const Software& software) {
  const int setting = software.nccl_cross_nic.value_or(2);
  if (setting < 2) return setting == 0 ? HcaCrossing::never : HcaCrossing::always;
  return release_number(software.nccl_version) < 221 ? HcaCrossing::last : HcaCrossing::last_in_pairs;
}

/// Adapters to other hosts: those that NCCL opens or, where no cable is described, those by which VMs of one machine
/// meet in the adapter's or the hypervisor's switch.
std::vector<DeviceId> hcas_between_hosts(const PlanContext& context, DeviceId gpu) {
  auto out = opened_hcas(context, gpu);
  if (!out.empty()) return out;
  out = context.topology.hcas_by_distance(gpu);
  std::ranges::sort(out, {}, &DeviceId::value);
  return out;
}

/// Adapters of a GPU's host and guest, those with a cable or all; none over sockets where another is.
std::vector<DeviceId> own_hcas(const PlanContext& context, DeviceId gpu, bool needs_cable) {
  const auto& topology = context.topology;
  const int guest = topology.guest_of(gpu);
  std::vector<DeviceId> out;
  for (const auto hca : topology.devices(DeviceKind::hca, topology.host_of(gpu)))
    if ((!needs_cable || topology.is_cabled(hca)) && topology.may_use_hca(guest, hca)) out.push_back(hca);
  const auto is_socket = [&](DeviceId hca) { return uses_tcp(context, hca); };
  if (!std::ranges::all_of(out, is_socket)) std::erase_if(out, is_socket);
  return out;
}

}  // namespace

std::vector<DeviceId> opened_hcas(const PlanContext& context, DeviceId gpu) { return own_hcas(context, gpu, true); }

std::vector<DeviceId> plugin_hcas(const PlanContext& context, DeviceId gpu) {
  const bool has_network = context.topology.first_network_link() != context.topology.num_links();
  return own_hcas(context, gpu, has_network);
}

HostNics::HostNics(const PlanContext& context, std::vector<DeviceId> gpus)
    : version_(release_number(context.software.nccl_version)),
      crossing_(crossing_of(context.software)),
      level_(p2p_pxn_level(context.software)),
      gpus_(std::move(gpus)),
      hcas_(hcas_between_hosts(context, gpus_.front())) {
  for (const auto gpu : gpus_) indices_.push_back(nvml_index(context.topology, gpu));
  const auto of_host = context.topology.devices(DeviceKind::gpu, context.topology.host_of(gpus_.front()));
  has_all_gpus_ = std::ssize(gpus_) == std::ranges::count(of_host, context.topology.guest_of(gpus_.front()),
                                                          [&](DeviceId gpu) { return context.topology.guest_of(gpu); });
  measure_paths(context);
  receiving_speeds_ = speeds_;
  receiving_types_ = types_;
  candidates_.resize(gpus_.size());
  for (std::size_t g = 0; g < gpus_.size(); ++g) find_candidates(g);
  for (std::size_t h = 0; h < hcas_.size(); ++h) neighbours_.push_back(nearest_gpus(h));
  relays_.assign(hcas_.size(), -1);
  if (has_pxn(context.software)) add_pxn_paths(context);
}

/// Without GPUDirect RDMA data go by the memory beside the GPU.
std::vector<LinkLoad> HostNics::loads_of(const PlanContext& context, DeviceId from, DeviceId to, DeviceId gpu,
                                         bool is_through_processor, double share) {
  const auto& topology = context.topology;
  PathOptions options;
  options.may_use_nvlink = false;
  options.as_cabled = true;
  std::vector<LinkLoad> out;
  const auto add = [&](DeviceId begin, DeviceId end) {
    const auto path = topology.path_in_host(begin, end, options);
    if (!path) return;
    for (const auto id : path->links) {
      const auto link = topology.link(id);
      if (link.kind != LinkKind::pcie) continue;
      out.push_back({id, share});
      link_speeds_[id.value] = link_gb_per_s(link, version_);
    }
  };
  if (!is_through_processor) {
    add(from, to);
    return out;
  }
  add(from, topology.local_memory(gpu));
  add(topology.local_memory(gpu), to);
  return out;
}

void HostNics::measure_paths(const PlanContext& context) {
  const auto& topology = context.topology;
  between_sockets_ = nccl::between_sockets_gb_per_s(topology, gpus_[0], version_);
  for (const auto gpu : gpus_) gpu_sockets_.push_back(topology.device(gpu).socket);
  for (const auto hca : hcas_) hca_sockets_.push_back(topology.device(hca).socket);
  PathOptions options;
  options.may_use_nvlink = false;
  options.as_cabled = true;
  const auto narrowest = [&](const std::vector<LinkId>& links) {
    double least = std::numeric_limits<double>::infinity();
    for (const auto id : links) {
      const auto link = topology.link(id);
      if (link.kind == LinkKind::pcie) least = std::min(least, link_gb_per_s(link, version_));
    }
    return least;
  };
  const auto to_memory = [&](DeviceId device) {
    return topology.path_in_host(device, topology.local_memory(device), options);
  };
  for (const auto gpu : gpus_) {
    const auto path = to_memory(gpu);
    slots_.push_back(path && !path->links.empty() ? narrowest({path->links.front()}) : 0);
  }
  for (const auto hca : hcas_) {
    const auto path = to_memory(hca);
    const double rate = device_value(context, hca, "rate") * 1e-9;
    rates_.push_back(path && !path->links.empty() ? std::min(rate, narrowest({path->links.front()})) : rate);
  }
  for (std::size_t g = 0; g < gpus_.size(); ++g) {
    distances_.emplace_back();
    loads_in_.emplace_back();
    loads_out_.emplace_back();
    types_.emplace_back();
    speeds_.emplace_back();
    for (std::size_t h = 0; h < hcas_.size(); ++h) {
      const auto path = topology.path_in_host(gpus_[g], hcas_[h], options);
      double speed = std::min(slots_[g], rates_[h]);
      if (path) speed = std::min(speed, narrowest(path->links));
      if (path && path->socket_crossings > 0) speed = std::min(speed, between_sockets_);
      const auto distance = nic_distance(context, gpus_[g], hcas_[h]);
      const bool is_through_processor = distance != topology.distance(gpus_[g], hcas_[h]);
      // Published tables of V100 and NCCL 2.8 keep to rings where the overhead of that release would have made trees.
      const double share = version_ < 209 ? 1 : processor_overhead(topology, gpus_[g], distance, version_);
      loads_in_[g].push_back(loads_of(context, hcas_[h], gpus_[g], gpus_[g], is_through_processor, 1));
      // What GPUs before Ampere receive takes an eighth of the way back, too.
      if (compute_capability(context, gpus_[g]) < 80 && !loads_in_[g].back().empty()) {
        const auto back = topology.reverse(loads_in_[g].back().back().link);
        link_speeds_[back.value] = link_gb_per_s(topology.link(back), version_);
        loads_in_[g].back().push_back({back, 1.0 / 8});
      }
      loads_out_[g].push_back(loads_of(context, gpus_[g], hcas_[h], gpus_[g], is_through_processor, share));
      distances_[g].push_back(distance);
      types_[g].push_back(path_at(context, gpus_[g], hcas_[h], distance));
      speeds_[g].push_back(speed);
    }
  }
}

/// HCA after HCA as NCCL does it: what earlier ones changed counts for later ones.
void HostNics::add_pxn_paths(const PlanContext& context) {
  const auto& topology = context.topology;
  const auto count = gpus_.size();
  nvlinks_.assign(count, std::vector<double>(count, 0));
  if (!context.software.nccl_p2p || !nvlink_gate_of(context, gpus_[0]).is_open) return;
  const double one = gpu_link_gb_per_s(context, gpus_[0]);
  for (std::size_t a = 0; a < count; ++a) {
    for (std::size_t b = 0; b < count; ++b) {
      const auto path = a == b ? std::nullopt : topology.path_in_host(gpus_[a], gpus_[b]);
      if (path && path->uses_nvlink) nvlinks_[a][b] = one * topology.link(path->links.front()).lanes;
    }
  }
  for (std::size_t h = 0; h < hcas_.size(); ++h) {
    relays_[h] = gpu_of_hca(h);
    if (relays_[h] < 0) continue;
    const auto relay = static_cast<std::size_t>(relays_[h]);
    for (std::size_t g = 0; g < count; ++g) {
      if (nvlinks_[g][relay] <= 0 || types_[relay][h] > farthest_relay()) continue;
      if (speeds_[relay][h] <= speeds_[g][h] && types_[g][h] <= NicPath::pxn) continue;
      types_[g][h] = NicPath::pxn;
      speeds_[g][h] = std::min(speeds_[relay][h], nvlinks_[g][relay]);
      find_candidates(g);
    }
  }
}

void HostNics::find_candidates(std::size_t gpu) {
  auto& out = candidates_[gpu];
  out.clear();
  const auto rank = [&](std::size_t h) { return std::pair(-speeds_[gpu][h], types_[gpu][h]); };
  for (std::size_t h = 0; h < hcas_.size(); ++h) {
    if (!out.empty() && rank(h) < rank(out.front())) out.clear();
    if (out.empty() || rank(h) == rank(out.front())) out.push_back(h);
  }
}

std::vector<std::size_t> HostNics::nearest_gpus(std::size_t hca) const {
  std::vector<std::size_t> out;
  const auto rank = [&](std::size_t g) { return std::pair(-receiving_speeds_[g][hca], receiving_path(g, hca)); };
  for (std::size_t g = 0; g < gpus_.size(); ++g) {
    if (!out.empty() && rank(g) < rank(out.front())) out.clear();
    if (out.empty() || rank(g) == rank(out.front())) out.push_back(g);
  }
  return out;
}

/// Of the GPUs nearest to an HCA the one whose sends take it first; -1 when none's do.
int HostNics::gpu_of_hca(std::size_t hca) const {
  for (int turn = 0; turn < static_cast<int>(hcas_.size()); ++turn)
    for (const auto gpu : neighbours_[hca])
      if (local_hca(gpu, turn) == hca) return static_cast<int>(gpu);
  return -1;
}

std::size_t HostNics::ring_sender(std::size_t gpu, std::size_t hca) const {
  return types_[gpu][hca] == NicPath::pxn ? static_cast<std::size_t>(relays_[hca]) : gpu;
}

int HostNics::spread(std::size_t gpu) const {
  const auto& hcas = candidates_[gpu];
  if (version_ < 212) return static_cast<int>(hcas.size());
  return version_ < 218 ? 1 : ceil_of_ratio(hcas.size(), neighbours_[hcas.front()].size());
}

/// Before 2.12 every connection takes the next candidate; where the count begins is not known: GPUs begin apart.
std::size_t HostNics::local_hca(std::size_t gpu, int turn) const {
  const auto& hcas = candidates_[gpu];
  const int count = static_cast<int>(hcas.size());
  int number = indices_[gpu];
  if (version_ >= 218 && (count & (count - 1)) == 0) number = mirrored(number, count);
  number += turn % spread(gpu);
  return hcas[static_cast<std::size_t>(number % count)];
}

HostNics::Sender HostNics::sender(std::size_t gpu, int peer_index, int turn) const {
  const Sender own{gpu, local_hca(gpu, turn)};
  const auto counterpart = std::find(indices_.begin(), indices_.end(), peer_index);
  if (level_ == 0 || counterpart == indices_.end()) return own;
  const auto hca = local_hca(static_cast<std::size_t>(counterpart - indices_.begin()), turn);
  if (level_ == 1) return types_[gpu][hca] <= NicPath::pxn ? Sender{ring_sender(gpu, hca), hca} : own;
  if (relays_[hca] < 0) return own;
  const auto relay = static_cast<std::size_t>(relays_[hca]);
  const bool is_adjacent = relay == gpu || nvlinks_[gpu][relay] > 0;
  return is_adjacent && receiving_path(relay, hca) <= farthest_relay() ? Sender{relay, hca} : own;
}

bool HostNics::has_relays() const {
  for (std::size_t h = 0; h < hcas_.size(); ++h) {
    if (relays_[h] < 0) continue;
    const auto relay = static_cast<std::size_t>(relays_[h]);
    if (receiving_path(relay, h) > farthest_relay()) continue;
    for (std::size_t g = 0; g < gpus_.size(); ++g)
      if (nvlinks_[g][relay] > 0) return true;
  }
  return false;
}

std::vector<std::size_t> HostNics::search_order() const {
  constexpr int first_release = 210;
  std::vector<std::size_t> out;
  const auto add = [&](std::size_t hca) {
    if (std::ranges::find(out, hca) == out.end()) out.push_back(hca);
  };
  if (version_ >= first_release && !has_all_gpus_ && !hcas_.empty()) {
    for (std::size_t g = 0; g < gpus_.size(); ++g)
      for (int turn = 0; turn < spread(g); ++turn) add(local_hca(g, turn));
  }
  for (std::size_t h = 0; h < hcas_.size(); ++h) add(h);
  return out;
}

std::vector<HostNics::Head> HostNics::heads() const {
  std::vector<Head> out;
  for (const auto hca : search_order()) {
    const int gpu = gpu_of_hca(hca);
    if (gpu < 0 || std::ranges::find(out, static_cast<std::size_t>(gpu), &Head::gpu) != out.end()) continue;
    out.push_back({static_cast<std::size_t>(gpu), hca});
  }
  return out;
}

std::vector<double> HostNics::gpus_of_hcas() const {
  std::vector<double> out(hcas_.size());
  for (std::size_t g = 0; g < gpus_.size() && !hcas_.empty(); ++g)
    for (int turn = 0; turn < spread(g); ++turn) out[local_hca(g, turn)] += 1.0 / spread(g);
  return out;
}

}  // namespace fabricast::models::nccl
