// SPDX-License-Identifier: Apache-2.0
// One operation of a communicator: what its algorithm and its transports are asked with.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/parameter_name.hpp"
#include "nccl/architecture.hpp"
#include "nccl/patterns.hpp"

namespace fabricast::models::nccl {

/// Parameter `<what>.<last>.<architecture>` if there is one, else `<what>.<last>`, else the same of `<what>`.
const Parameter& parameter_for(const ParameterSet& parameters, const Architecture& architecture, ParameterStem what,
                               std::string_view last = {});

/// Parameter `<what>.<algorithm>.<last>`; send and receive (`direct`) and broadcast and reduce (`chain`) have values of
/// their own or take the ring's.
const Parameter& parameter_by_algorithm(const ParameterSet& parameters, const Architecture& architecture,
                                        Collective collective, ParameterStem what, Algorithm algorithm,
                                        std::string_view last);

/// Time of one hop over `way`, `<protocol>.<transport>`. A generation of GPUs whose trees have taught nothing takes its
/// rings' figure times what a tree's hop takes of a ring's on all GPUs (NCCL's tables: 4.0 to 3.4 us of Simple), unless
/// its hops have a ramp of their own, which holds part of the figure.
Parameter hop_time(const ParameterSet& parameters, const Architecture& architecture, Collective collective,
                   Algorithm algorithm, std::string_view way);

/// What the costs of all operations of a communicator rest on.
struct Communicator {
  int num_ranks = 0;
  int num_hosts = 0;
  int gpus_of_host = 0;
  int gpus_of_memory = 0;    ///< most that share a host memory
  int graph_channels = 1;    ///< before doubling
  int nvls_heads = 0;        ///< GPUs of each host by which NVLink SHARP reduces
  std::size_t channels = 1;  ///< all
  Library library = Library::nccl;
  Architecture architecture;
  DeviceId gpu;               ///< the first of the slowest host (facts.hpp)
  bool uses_collnet = false;  ///< the fabric's switches reduce
  bool is_redirected =
      false;  ///< requests between a GPU and its HCA go by the root complex although a switch joins them
  double nvls_tree_chunk = 0;  ///< largest of NVLSTree, bytes
  // What a network plugin sets, bytes; 0: NCCL's own.
  double buffer_size = 0;
  double p2p_chunk = 0;
  double one_rail_bytes = 0;
  bool sends_runts = false;  ///< network_plugin.hpp
  int queued = 0;            ///< operations that nccl-tests queues before it waits for them; 0: part of a step or trace
};

struct Operation {
  const PlanContext& context;
  const Communicator& group;
  const Pattern& pattern;
  Collective collective;
  Choice choice;
  std::string protocol;  ///< of `choice`, as parameters name it
  double size = 0;       ///< bytes
  double channels = 1;
  double threads = 512;       ///< of a channel's thread block
  double most_threads = 512;  ///< of it where the size fills them
  double share = 1;           ///< of payload in what the protocol puts on the wire

  Operation(const PlanContext& context, const Communicator& group, const Pattern& pattern, Collective collective,
            const Choice& choice, const ChannelUse& use, Bytes size);

  [[nodiscard]] const Parameter& parameter(ParameterStem what, std::string_view last = {}) const {
    return parameter_for(context.parameters, group.architecture, what, last);
  }
  /// A field of the sending adapter's type; null inside a host and where the catalogue does not say it.
  [[nodiscard]] const Parameter* of_adapter(const Hops& hops, const char* field) const;
  [[nodiscard]] bool has_hop(TransportKind kind) const;
  [[nodiscard]] bool is(Protocol protocol_asked) const { return choice.protocol == protocol_asked; }
  [[nodiscard]] double num_ranks() const { return group.num_ranks; }
  [[nodiscard]] bool is_in_one_host() const { return group.num_hosts == 1; }
};

/// NCCL before 2.10, whose primitives take longer between the operations of a thread block.
[[nodiscard]] bool is_before_new_primitives(const Operation& operation);
/// Before 2.22 every thread block fetches its work from a queue; since, that of a collective lies in the kernel's
/// arguments.
[[nodiscard]] bool fetches_work(const Operation& operation);

void add_latency(Flow& flow, Term term);
/// What limits the flow from now on, where `rate` is less.
void limit_rate(Flow& flow, double rate, std::string name, const std::string& parameter_name);
/// Of what the flow crosses, resources that `is_meant` picks carry `share` of their capacity; `words` follow their
/// name.
void limit_crossings(Flow& flow, const Resources& resources, const Parameter& share, std::string_view words,
                     const std::function<bool(int)>& is_meant);

}  // namespace fabricast::models::nccl
