// SPDX-License-Identifier: Apache-2.0
// The connections of one communicator. Channels use the same ones again and again: what lies inside the hosts is found
// once for each pair of ends, only the links between hosts depend on the flow.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <unordered_map>
#include <vector>

#include "nccl/channels.hpp"

namespace fabricast::models::nccl {

/// One end of a connection between hosts.
struct NetworkEnd {
  DeviceId gpu, hca;
  DeviceId sender;  ///< as in HostChannel; value -1: the GPU itself
};

/// Whether a crossing is one of a link of this kind.
bool is_link_of(const Resources& resources, const Crossing& crossing, LinkKind kind);

class Connections {
 public:
  /// `hosts`: those of the communicator, with the GPUs that take part.
  Connections(const PlanContext& context, Buffers buffers, const std::vector<HostGroup>& hosts);

  /// Between two ranks of one host.
  const Route& in_host(DeviceId from, DeviceId to);
  /// Between two hosts; `flow` picks one of the equal ways.
  Route between_hosts(const NetworkEnd& from, const NetworkEnd& to, std::uint64_t flow);
  bool is_tcp(DeviceId hca);
  /// What NCCL sees where `gpu` sends.
  [[nodiscard]] Sending sending(DeviceId gpu) const;

 private:
  /// What one end adds whatever the other is.
  struct End {
    DeviceId sender;
    bool is_sender = false;
    bool is_known = false;  ///< what follows is set
    Route segment;          ///< GPU and adapter
    Route port;             ///< of a VM
    Crossing payload;       ///< of the adapter's port
    double latency_s = 0;
  };
  End& end_of(const NetworkEnd& end, bool is_sender);
  void meet(const NetworkEnd& from, const NetworkEnd& to, End& out, End& in);

  const PlanContext& context_;
  Buffers buffers_;
  std::map<int, int> gpus_of_host_;
  std::unordered_map<std::uint64_t, Route> in_host_;
  std::unordered_map<std::int32_t, bool> is_tcp_;
  std::unordered_map<std::uint64_t, std::list<End>> ends_;  ///< of a GPU and an adapter
};

}  // namespace fabricast::models::nccl
