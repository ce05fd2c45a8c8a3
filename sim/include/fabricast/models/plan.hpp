// SPDX-License-Identifier: Apache-2.0
// What a planner hands to an engine: one operation of a benchmark as a program (program.hpp) of flows over resources,
// with the fixed times between them. A resource is a directed link of the topology (same number as its LinkId) or an
// extra limit that is not a link (a processor's peer-to-peer path, a copy engine). Engines know nothing else of GPUs or
// MPI.
//
//   time = sum(before) + time of the program, at least `floor`
//
// With a scattering floor f (relative scatter j) the mean of the maximum is (t + f + sqrt((t - f)^2 + (2 j f)^2)) / 2.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "fabricast/models/program.hpp"
#include "fabricast/result.hpp"
#include "fabricast/topology.hpp"

namespace fabricast::models {

/// Names of terms: what a rank's core copies beside its messages in an MPI collective.
inline constexpr const char* k_own_part = "own part copied by the core";
inline constexpr const char* k_temporaries = "copies to and from temporary buffers";

struct OperationPlan {
  Bytes size;
  std::vector<Term> before;  ///< launch and set-up, in order
  Program program;
  Duration floor;               ///< the operation cannot repeat faster (host launch rate, message rate); 0 = none
  double floor_jitter = 0;      ///< relative scatter of the floor: near it the longer of both counts more often
  Term floor_term;              ///< what the floor is; its `time` is ignored
  std::int64_t operations = 1;  ///< the planned work is this many benchmark operations (a window of messages)
  double printed_share = 1;     ///< of the program's time, what the benchmark prints: the mean over ranks of a tree
  std::string algorithm;
  std::string protocol;
  int channels = 0;
  Duration low, high;                ///< interval the model gives itself; zero = from the intervals of the terms
  std::string label;                 ///< as Row::label
  int num_ranks = 0, num_hosts = 0;  ///< of this operation where a planner has several numbers; 0 = the planner's
  std::vector<Figure> figures;       ///< as Row::figures
  /// Stream of the program whose time the terms split: what it does, is slowed by and waits for; -1 = the chain's
  /// nodes.
  int watched_stream = -1;
  std::string named_wait;       ///< fixed term that keeps its name where the watched stream waits for another device's
  bool has_flow_times = false;  ///< the completion time of every flow is a result of its own
};

/// Limits that are not links. Each belongs to one device.
enum class Limit {
  peer_read,        ///< a root complex serving DMA reads between PCIe devices
  peer_write,       ///< a root complex forwarding DMA writes between PCIe devices
  peer_cross_read,  ///< the same across sockets
  peer_cross_write,
  dram,          ///< a memory, reads and writes together
  hca_transmit,  ///< payload rate of an HCA port after packet headers
  hca_receive,
  virtual_out,  ///< an adapter as a VM sends through it: virtual function, PVRDMA, vmxnet3, virtio
  virtual_in,
  function_out,  ///< what one VM's virtual function may send: its rate limit
  function_in,
  virtual_switch,  ///< between VMs of one host
  virtual_copy,    ///< the same by memory copy (PVRDMA)
  translation,     ///< peer traffic that the root complexes of a socket translate, reads and writes apart
  translation_write,
  copies,           ///< what a memory exchanges with copying devices, both directions
  copies_in,        ///< what it takes from them
  redirected_read,  ///< peer reads that reach one HCA by way of the root complexes
  gpudirect_read,   ///< what one HCA reads from GPU memory: its outstanding requests over their round trip
  local_out,        ///< all links of a dragonfly's router to others of its group
  local_in,
  global_out,  ///< all links of a group to other groups
  global_in,
  leaf_up,  ///< all links of a leaf to the tier above
  leaf_down,
  pod_up,  ///< all links of a pod to the cores
  pod_down,
};

std::string_view to_string(Limit limit);

/// Extra resources beside the topology's links, and capacities of all.
class Resources {
 public:
  explicit Resources(const Topology& topology) : topology_(&topology) {}

  static int of(LinkId link) { return link.value; }
  /// Number of the extra resource `limit` of `device`, made with `capacity` bytes/s when new. Its capacity is the least
  /// that anybody asks for, with the parameter that says so: what lowers a limit composes, in any order. `part`: one of
  /// several on the device, e.g. the virtual functions of an adapter.
  int extra(Limit limit, DeviceId device, double capacity, const std::string& parameter, int part = 0);
  /// All of `links` together as an extra resource of `device`.
  int together(Limit limit, DeviceId device, const std::vector<LinkId>& links);
  /// Bytes/s; of network links between switches, and of cables slower than their HCA, what packet headers leave.
  [[nodiscard]] double capacity(int resource) const;
  void set_payload_share(LinkId link, double share);
  /// Where flows meet, one over `resource` gets `shares` beside the others' (1 unless said).
  void set_shares(int resource, double shares) { shares_[resource] = shares; }
  [[nodiscard]] double shares(const std::vector<Crossing>& crossings) const;
  [[nodiscard]] std::string name(int resource) const;
  [[nodiscard]] std::string parameter(int resource) const;
  /// The device a limit belongs to, or the one a link starts at.
  [[nodiscard]] DeviceId device(int resource) const;
  [[nodiscard]] bool is_link(int resource) const { return resource < topology_->num_links(); }
  [[nodiscard]] const Topology& topology() const { return *topology_; }

 private:
  struct Extra {
    Limit limit;
    DeviceId device;
    double capacity;
    std::string parameter;
    int part;
  };
  const Topology* topology_;
  std::vector<Extra> extras_;
  std::vector<double> payload_shares_;  ///< [link - first network link]; empty = 1
  std::map<int, double> shares_;        ///< resource -> shares, where they are not 1
  std::map<std::tuple<Limit, std::int32_t, int>, int> numbers_;
};

/// Collects crossings of many paths and returns them sorted and merged.
class CrossingCounter {
 public:
  void add(int resource, int times = 1) {
    counts_.push_back({resource, times});
    if (counts_.size() >= merge_at_) merge();
  }
  void add(const Path& path, int times = 1) {
    for (const auto link : path.links) add(link.value, times);
  }
  [[nodiscard]] std::vector<Crossing> take();

 private:
  void merge();

  std::vector<Crossing> counts_;
  std::size_t merge_at_ = std::size_t{1} << 20;  ///< keeps memory bounded by the number of resources
};

/// Sorted by resource, no resource twice.
std::vector<Crossing> merged(const std::vector<Crossing>& crossings);

/// Bytes/s that a flow reaches when nobody else uses what it crosses, counted as crossings that are merged
/// (CrossingCounter); infinite when nothing holds it.
double rate_alone(const Resources& resources, const Flow& flow);
/// The same whatever its cap: what it crosses.
double rate_of_crossings(const Resources& resources, const Flow& flow);

/// The same for the time of a whole flow, its latency included.
Duration time_alone(const Resources& resources, const Flow& flow);

/// Sum of the times of terms.
Duration sum(const std::vector<Term>& terms);

}  // namespace fabricast::models
