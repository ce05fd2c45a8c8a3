// SPDX-License-Identifier: Apache-2.0
// The HCAs of one host as NCCL sees them from the GPUs that take part: how near and how wide each path is, which GPU
// hands over the data of others (PXN), and which HCA a send or a receive takes.
// Source: NVIDIA/nccl src/graph/paths.cc (ncclTopoComputePaths), search.cc (ncclTopoGetNetDev), topo.cc
// (ncclTopoGetLocalNet, ncclTopoGetLocalGpu) at 2.7 to 2.29.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fabricast/models/planner.hpp"

namespace fabricast::models::nccl {

/// NCCL's classes of paths between a GPU and an HCA, near to far. p2c: by NVLink-C2C to its processor and on from there
/// (from 2.27 on); pxn: over NVLink to a GPU that has the HCA below its own PCIe switches, from 2.28 on at p2c too;
/// phb: anything else inside a socket that passes a root complex.
enum class NicPath { pix, pxb, p2c, pxn, phb, sys };

NicPath nic_path(const PlanContext& context, DeviceId gpu, DeviceId hca);

/// How far apart GPUDirect RDMA may be (NCCL_NET_GDR_LEVEL): up to PCIe switches unless told, from 2.27 on within the
/// socket for GPUs on NVLink-C2C (NCCL_NET_GDR_C2C).
Distance gdr_level(const PlanContext& context, DeviceId gpu);
/// How far NCCL takes an HCA to be from a GPU: as wired, but by way of the processor where GPUDirect RDMA is not used
/// (paths.cc).
Distance nic_distance(const PlanContext& context, DeviceId gpu, DeviceId hca);

/// What a path takes of a PCIe link's planning speed, in shares of its own.
struct LinkLoad {
  LinkId link;
  double share = 1;
};

/// When a ring's channel may leave by another HCA than it came in by: where no nearer path has as much
/// (NCCL_CROSS_NIC=2, the default), before 2.21 by any, then in pairs of channels that swap theirs; from the start by
/// any (1); never (0).
enum class HcaCrossing { never, last, last_in_pairs, always };

/// 0: data leave by the GPU's own HCA. 1: by the peer's HCA if it is near or reached over NVLink. 2: the same, and the
/// GPU beside the HCA hands over. What the release has where nothing is set: 2 from 2.12 on, 0 before.
int p2p_pxn_level(const Software& software);
/// True when GPUs may hand over data of others at all (NCCL_PXN_DISABLE=0, from 2.12 on).
bool has_pxn(const Software& software);

/// NCCL's planning speed of one NVLink in GB/s (topo.h).
double nvlink_gb_per_s(int compute_capability);
/// The same of one link between GPUs of this kind; Infinity Fabric links by RCCL's figure.
double gpu_link_gb_per_s(const PlanContext& context, DeviceId gpu);
/// PCIe planning speed of a slot: 12 GB/s for generation 3 x16 and in proportion.
double pcie_gb_per_s(double generation, double width);
/// Intel's processors that NCCL takes for Broadwell.
bool is_before_skylake(std::string_view microarchitecture);
/// What NCCL plans with for one PCIe link, GB/s; releases before 2.9 take generation 4 for 3.
double link_gb_per_s(const Link& link, int version);
/// NCCL's planning speed of the way between two sockets, GB/s (topo.h): Broadwell and older 6, Skylake 10 (9 before
/// 2.18), Sapphire Rapids 22 and Emerald Rapids 40 from 2.26 on, AMD 16 from 2.19 on and without a limit before.
double between_sockets_gb_per_s(const Topology& topology, DeviceId gpu, int version);
/// What data of a GPU take of the links to and from a processor of Intel's, over what crosses them: NCCL takes it to
/// forward 5/6 of what they carry inside a socket, until 2.8 3/4 (search.cc, INTEL_P2P_OVERHEAD).
double processor_overhead(const Topology& topology, DeviceId gpu, Distance distance, int version);
/// NVML's number of a GPU: its place among those of its host or virtual machine, in use or not.
int nvml_index(const Topology& topology, DeviceId gpu);

/// Adapters with a cable that NCCL opens in the GPU's host or virtual machine: all of one kind, sockets only where no
/// adapter has RDMA.
std::vector<DeviceId> opened_hcas(const PlanContext& context, DeviceId gpu);
/// Those whose plugin the processes of a GPU load: as `opened_hcas`; of a topology that describes no network, all.
std::vector<DeviceId> plugin_hcas(const PlanContext& context, DeviceId gpu);

class HostNics {
 public:
  /// `gpus`: those of one host, or virtual machine, that take part, in rank order.
  HostNics(const PlanContext& context, std::vector<DeviceId> gpus);

  /// As `opened_hcas`; of VMs that meet inside their machine, where no cable is described, the adapters of these.
  [[nodiscard]] const std::vector<DeviceId>& hcas() const { return hcas_; }
  [[nodiscard]] const std::vector<DeviceId>& gpus() const { return gpus_; }
  [[nodiscard]] int version() const { return version_; }
  [[nodiscard]] HcaCrossing crossing() const { return crossing_; }
  [[nodiscard]] double slot_gb_per_s(std::size_t gpu) const { return slots_[gpu]; }
  [[nodiscard]] double rate_gb_per_s(std::size_t hca) const { return rates_[hca]; }
  [[nodiscard]] Distance distance(std::size_t gpu, std::size_t hca) const { return distances_[gpu][hca]; }
  /// Into the GPU: no GPU hands over what others receive.
  [[nodiscard]] NicPath receiving_path(std::size_t gpu, std::size_t hca) const { return receiving_types_[gpu][hca]; }
  [[nodiscard]] NicPath sending_path(std::size_t gpu, std::size_t hca) const { return types_[gpu][hca]; }
  [[nodiscard]] double path_gb_per_s(std::size_t gpu, std::size_t hca) const { return speeds_[gpu][hca]; }
  /// PCIe links of the way in (`is_sender` false) or out; what a GPU sends through a root complex of Intel's takes
  /// more.
  [[nodiscard]] const std::vector<LinkLoad>& loads(std::size_t gpu, std::size_t hca, bool is_sender) const {
    return (is_sender ? loads_out_ : loads_in_)[gpu][hca];
  }
  /// Planning speed of a link that a path takes, GB/s.
  [[nodiscard]] double link_speed(LinkId link) const { return link_speeds_.at(link.value); }
  /// What all paths from one socket to another share, GB/s.
  [[nodiscard]] double between_sockets_gb_per_s() const { return between_sockets_; }
  [[nodiscard]] int socket_of_gpu(std::size_t gpu) const { return gpu_sockets_[gpu]; }
  [[nodiscard]] int socket_of_hca(std::size_t hca) const { return hca_sockets_[hca]; }
  /// The GPU that sends through `hca` for `gpu` on a path of a ring or tree; `gpu` itself without PXN.
  [[nodiscard]] std::size_t ring_sender(std::size_t gpu, std::size_t hca) const;

  /// HCAs that channels of one send or receive of this GPU take in turn.
  [[nodiscard]] int spread(std::size_t gpu) const;
  /// The HCA of a receive, and of a send without PXN. `turn`: the channel; before 2.12 a running number.
  [[nodiscard]] std::size_t local_hca(std::size_t gpu, int turn) const;
  struct Sender {
    std::size_t gpu = 0;  ///< itself, or the one that hands over
    std::size_t hca = 0;
  };
  /// How a send leaves towards a GPU with NVML's number `peer_index`.
  [[nodiscard]] Sender sender(std::size_t gpu, int peer_index, int turn) const;
  /// True when some GPU can hand over data of others.
  [[nodiscard]] bool has_relays() const;
  /// HCAs in the order in which the search for channels tries them. From 2.10 on those come first that the sends of the
  /// GPUs take, which go by NVML's numbers, so that communicators of one GPU each spread over HCAs that are equally
  /// near (search.cc, ncclTopoSelectNets). With all GPUs of the host it is taken to be the HCAs' own order.
  [[nodiscard]] std::vector<std::size_t> search_order() const;
  /// GPUs that NVLink SHARP reduces by between hosts, each with an HCA of its own: HCA after HCA the GPU whose sends
  /// take it first, which is not taken twice (search.cc, ncclTopoSearchRecNet).
  struct Head {
    std::size_t gpu = 0, hca = 0;
  };
  [[nodiscard]] std::vector<Head> heads() const;
  /// Of how many GPUs each HCA carries the sends and receives; a GPU that spreads over several counts in parts.
  [[nodiscard]] std::vector<double> gpus_of_hcas() const;

 private:
  [[nodiscard]] std::vector<LinkLoad> loads_of(const PlanContext& context, DeviceId from, DeviceId to, DeviceId gpu,
                                               bool is_through_processor, double share);
  void measure_paths(const PlanContext& context);
  void add_pxn_paths(const PlanContext& context);
  void find_candidates(std::size_t gpu);
  /// How far the GPU that hands over may be from its HCA.
  [[nodiscard]] NicPath farthest_relay() const { return version_ >= 228 ? NicPath::p2c : NicPath::pxb; }
  [[nodiscard]] std::vector<std::size_t> nearest_gpus(std::size_t hca) const;
  [[nodiscard]] int gpu_of_hca(std::size_t hca) const;

  int version_;
  HcaCrossing crossing_ = HcaCrossing::last;
  int level_;
  bool has_all_gpus_ = true;  ///< of the host, or virtual machine
  std::vector<DeviceId> gpus_, hcas_;
  double between_sockets_ = 0;
  std::vector<int> gpu_sockets_, hca_sockets_;
  std::vector<int> indices_;                                              ///< NVML's, by GPU
  std::vector<double> slots_, rates_;                                     ///< GB/s of GPUs' slots, of HCAs
  std::vector<std::vector<Distance>> distances_;                          ///< [gpu][hca]
  std::vector<std::vector<std::vector<LinkLoad>>> loads_in_, loads_out_;  ///< [gpu][hca]
  std::map<int, double> link_speeds_;                                     ///< GB/s, by link
  std::vector<std::vector<NicPath>> types_;                               ///< [gpu][hca], with PXN
  std::vector<std::vector<NicPath>> receiving_types_;                     ///< the same without
  std::vector<std::vector<double>> speeds_;                               ///< GB/s, the same
  std::vector<std::vector<double>> receiving_speeds_;                     ///< GB/s, without PXN
  std::vector<std::vector<std::size_t>> candidates_;  ///< of a GPU: HCAs with the widest paths, of them the nearest
  std::vector<std::vector<std::size_t>> neighbours_;  ///< of an HCA: GPUs with the widest paths, of them the nearest
  std::vector<std::vector<double>> nvlinks_;          ///< [gpu][gpu] GB/s straight or through a switch; 0 without
  std::vector<int> relays_;                           ///< by HCA; -1 without
};

}  // namespace fabricast::models::nccl
