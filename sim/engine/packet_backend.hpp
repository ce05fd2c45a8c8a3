// SPDX-License-Identifier: Apache-2.0
// Packets under the executor. A flow's legs become RDMA messages that start when everything but the fabric's own
// latency has passed; what hosts allow paces the senders and receivers. Flows beside the fabric pass what they share
// inside hosts piece by piece.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "engine/host_paths.hpp"
#include "engine/network_backend.hpp"
#include "engine/packet_pairs.hpp"
#include "packet/simulation.hpp"

namespace fabricast::engine {

/// What a packet run stands on.
struct PacketInput {
  const ParameterSet& parameters;
  const models::Resources& resources;
  const std::vector<Job>& jobs;  ///< the parts, whole
  const std::vector<const Workload*>& workloads;
};

class PacketBackend final : public NetworkBackend {
 public:
  /// The fabric behind `pairs` must have passed validate().
  PacketBackend(const PacketInput& input, PacketPairs& pairs, const packet::Network& network,
                const packet::Options& options);

  [[nodiscard]] Duration now() const override { return simulation_.now(); }
  void after(Duration wait, std::function<void()> then) override {
    simulation_.at(simulation_.now() + wait, std::move(then));
  }
  void start_flow(FlowRef flow, Duration wait) override;
  [[nodiscard]] std::vector<std::size_t> starting_order(const models::Node& node) const override;
  void leave_out(const models::Node& node, std::int64_t repeats) override;
  void run(std::function<void(FlowRef)> on_end) override;

  [[nodiscard]] packet::Results results() const { return simulation_.results(); }
  /// Payload of repeats that were not simulated.
  [[nodiscard]] double left_out_bytes() const { return left_out_bytes_; }

 private:
  struct Transfer {
    FlowRef flow;
    std::size_t messages_left = 0;
  };

  void add_host_paths();
  [[nodiscard]] const models::Flow& flow_of(FlowRef flow) const {
    return input_.jobs[flow.part].plan->program.nodes[flow.node].flows[flow.flow];
  }
  [[nodiscard]] std::uint32_t path_of(FlowRef flow, std::size_t leg) const {
    return host_paths_.path(flow.part, flow.node, flow.flow, leg);
  }
  void pass_host(FlowRef flow, double from);
  [[nodiscard]] Duration fabric_latency(const models::Flow& flow) const;
  [[nodiscard]] Duration wait_for_receiver(FlowRef flow) const;
  void post_leg(std::size_t id, std::size_t leg, Duration begin);

  const PacketInput input_;
  const Topology& topology_;
  PacketPairs& pairs_;
  packet::Simulation simulation_;
  std::vector<Transfer> transfers_;
  HostPaths host_paths_;
  std::vector<packet::HostPathId> path_ids_;  ///< [path of host_paths_]
  double left_out_bytes_ = 0;
  std::function<void(FlowRef)> on_end_;
};

}  // namespace fabricast::engine
