// SPDX-License-Identifier: Apache-2.0
// What the steps of an NCCL operation cost once its kernel runs: hops of chunks, thread blocks that copy and reduce,
// links shared by all channels. Rings, double binary trees, chains, pairs, NVLink SHARP. Equations: docs/MODELS.md,
// NCCL.
#pragma once

#include <string>
#include <string_view>

#include "nccl/patterns.hpp"

namespace fabricast::models::nccl {

/// `volta` (and older), `ampere` or `hopper`, by compute capability as 10 x major + minor.
struct Architecture {
  std::string name;     ///< whose values are used: the last part of parameters' names
  bool is_own = false;  ///< of this compute capability's major number
};
/// `architecture.<name>` are the compute capabilities from which on values of that name hold: the youngest that is not
/// above the GPU's, for older GPUs the oldest.
Architecture architecture_of(const ParameterSet& parameters, int compute_capability);

/// Parameter `<what>.<last>.<architecture>` if there is one, else `<what>.<last>`.
const Parameter& parameter_for(const ParameterSet& parameters, const std::string& architecture, const std::string& what,
                               std::string_view last = {});

/// Parameter `<what>.<algorithm>.<last>`; send and receive (`direct`) and broadcast and reduce (`chain`) have values of
/// their own or take the ring's.
const Parameter& parameter_by_algorithm(const ParameterSet& parameters, const std::string& architecture,
                                        Collective collective, const std::string& what, Algorithm algorithm,
                                        std::string_view last);

/// Costs of the steps of one communicator's operations.
class StepCosts {
 public:
  struct Communicator {
    int num_ranks = 0;
    int num_hosts = 0;
    int gpus_of_host = 0;
    int gpus_of_memory = 0;    ///< most that share a host memory
    int graph_channels = 1;    ///< before doubling
    std::size_t channels = 1;  ///< all
    std::string architecture;
    DeviceId gpu;  ///< of rank 0
    bool is_redirected =
        false;  ///< requests between a GPU and its HCA go by the root complex although a switch joins them
  };

  StepCosts(const PlanContext& context, Collective collective, Communicator communicator)
      : context_(context), collective_(collective), is_(std::move(communicator)) {}

  /// The pipelined part of an operation of `size` on the channels of `use`: one coupled flow with its latency terms.
  [[nodiscard]] Node node(const Pattern& pattern, const Choice& choice, const ChannelUse& use, Bytes size) const;

 private:
  struct Shape;

  [[nodiscard]] Shape shape_of(const Pattern& pattern, const Choice& choice, const ChannelUse& use, Bytes size) const;
  [[nodiscard]] const Parameter& parameter(const std::string& what, std::string_view last = {}) const {
    return parameter_for(context_.parameters, is_.architecture, what, last);
  }
  [[nodiscard]] double tree_ll128_chunk(const Shape& shape) const;
  [[nodiscard]] const Parameter& channel_bandwidth(const Shape& shape) const;
  [[nodiscard]] bool is_nvlink(const Crossing& crossing) const;
  [[nodiscard]] double crowd_factor(const Shape& shape, TransportKind kind) const;
  [[nodiscard]] bool is_loopback(TransportKind kind) const;
  [[nodiscard]] Algorithm hop_algorithm(const Hops& hops, const Shape& shape) const;
  [[nodiscard]] Term hop_term(const Hops& hops, const Shape& shape) const;
  [[nodiscard]] Term ramp_term(const Shape& shape, double hops) const;
  [[nodiscard]] Term skew_term(const Shape& shape, double hops) const;
  [[nodiscard]] double pair_channels(const Shape& shape, double bytes) const;
  [[nodiscard]] double rank_channels(const Shape& shape) const;
  [[nodiscard]] bool is_beside_slower(const Hops& hops, const Shape& shape) const;
  void add_channel_start(Flow& flow, const Shape& shape) const;
  void add_thread_loops(Flow& flow, const Shape& shape) const;
  void add_hops(Flow& flow, const Shape& shape) const;
  void add_bytes(Flow& flow, const Shape& shape) const;
  void add_tree_fill(Flow& flow, const Shape& shape) const;
  // Sockets: socket_steps.cpp.
  struct SocketUse {
    double streams = 1;  ///< that carry one message
    double helpers = 0;  ///< threads of one connection beside the proxy
  };
  [[nodiscard]] double socket_data_time(const Shape& shape) const;
  [[nodiscard]] double socket_queue_time(const Hops& hops, const Shape& shape) const;
  [[nodiscard]] double thread_speed() const;
  [[nodiscard]] SocketUse socket_use(const Hops& hops, const Shape& shape) const;
  void limit_sockets(Flow& flow, const Shape& shape) const;
  // Between hosts: network_steps.cpp.
  [[nodiscard]] double paid_loops(const Hops& hops, const Shape& shape) const;
  [[nodiscard]] double buffer_factor(const Pattern& pattern) const;
  [[nodiscard]] double nvls_tree_chunk(const Shape& shape) const;
  [[nodiscard]] bool are_iterations_apart(const Shape& shape) const;
  [[nodiscard]] bool is_hidden(const Hops& hops, const Shape& shape) const;
  [[nodiscard]] bool is_paced_by_process(const Flow& flow, const Hops& hops, const Shape& shape) const;
  [[nodiscard]] const Parameter& store_and_forward(const Hops& hops, const Shape& shape) const;
  [[nodiscard]] const Parameter* of_adapter(const Hops& hops, const char* field) const;
  void add_plugin(Flow& flow, const Hops& hops, const Shape& shape) const;
  void limit_plugin(Flow& flow, const Shape& shape) const;
  void add_store_and_forward(Flow& flow, const Shape& shape) const;
  void limit_network_channels(Flow& flow, const Shape& shape) const;
  void limit_host_memories(Flow& flow, const Shape& shape) const;
  void hide_local_work(Flow& flow, const Shape& shape) const;
  void limit_nvlink_stores(Flow& flow, const Shape& shape) const;

  const PlanContext& context_;
  Collective collective_;
  Communicator is_;
};

}  // namespace fabricast::models::nccl
