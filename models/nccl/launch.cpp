// SPDX-License-Identifier: Apache-2.0
#include "nccl/launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/parameter_name.hpp"
#include "nccl/operation.hpp"
#include "paths/guest.hpp"

namespace fabricast::models::nccl {

namespace {

/// Of the rank that has most: one per peer and, where a buffer has parts, one to itself.
double sends_and_receives(const Launch& launch) {
  if (launch.collective == Collective::send_receive) return 2;
  if (launch.collective == Collective::all_to_all) return 2.0 * launch.num_ranks;
  return has_parts(launch.collective) ? launch.num_ranks + 1.0 : 0;
}

/// Kernels of a rank's peers start apart, and it needs them all: the last of n - 1 comes the later the more they are.
/// Those of a CUDA graph have no launches between them, one thread's are counted by their intervals.
Term start_of_peers(const PlanContext& context, const Launch& launch) {
  const auto& skew = context.parameters.at("nccl.start_skew"_key);
  const double peers = std::max(1, launch.num_ranks - 1);
  return {fmt::format("the last of {:.0f} peers to start", peers), from_seconds(skew.value * std::log2(peers)),
          skew.name, skew.source};
}

}  // namespace

void add_launching(const PlanContext& context, const Launch& launch, double blocks, OperationPlan& plan) {
  for (auto& term : virtual_launch_terms(context, launch.gpu)) plan.before.push_back(std::move(term));
  if (launch.mode == LaunchMode::graph) return;
  const auto& interval = of_processor(context, launch.gpu, "launch_interval", "cuda.launch_interval"_key);
  const double per_thread = launch.mode == LaunchMode::one_thread ? std::max(1, launch.most_gpus) : 1;
  const double calls = sends_and_receives(launch);
  const bool is_older = release_number(context.software.nccl_version) < 214;
  const auto& per_call =
      context.parameters.at(is_older ? "nccl.launch_time_per_peer.nccl2.13"_key : "nccl.launch_time_per_peer"_key);
  const double more =
      parameter_for(context.parameters, launch.architecture, "nccl.launch_time_per_channel"_stem).value * blocks +
      per_call.value * calls;
  plan.floor = from_seconds((interval.value + more) * per_thread);
  plan.floor_jitter = context.parameters["cuda.launch_jitter"_key];
  plan.floor_term = {fmt::format("waiting for the launching thread ({:.0f} launches of one thread)", per_thread),
                     {},
                     interval.name,
                     interval.source};
}

void add_launch(const PlanContext& context, const Launch& launch, const Choice& choice, double channels,
                OperationPlan& plan) {
  const auto& base = parameter_by_algorithm(context.parameters, launch.architecture, launch.collective,
                                            "nccl.base_time"_stem, choice.algorithm, to_string(choice.protocol));
  plan.before.push_back({"kernel start and synchronisation", from_seconds(base.value), base.name, base.source});
  if (launch.collective == Collective::all_to_all && launch.mode != LaunchMode::graph &&
      launch.mode != LaunchMode::one_thread)
    plan.before.push_back(start_of_peers(context, launch));
  add_launching(context, launch, channels, plan);
  if (launch.mode != LaunchMode::graph) return;
  const auto& saving = context.parameters.at("cuda.graph_saving"_key);
  plan.before.push_back({"launch saved by the CUDA graph", from_seconds(-std::min(saving.value, base.value)),
                         saving.name, saving.source});
}

Term copy_to_itself(const PlanContext& context, DeviceId gpu, Bytes size) {
  const auto& rate = context.parameters.at(context.topology.device(gpu).type + ".memory_bandwidth");
  return {"copy of the buffer (out of place; in place nothing is done)",
          from_seconds(2 * static_cast<double>(size.value) / rate.value), rate.name, rate.source};
}

}  // namespace fabricast::models::nccl
