// SPDX-License-Identifier: Apache-2.0
// Pinned copies between GPUs and host memory, all started together, in buffers too large for caches:
//
//   time = copy start + bytes / rate,   rate: fair share of PCIe links, root complexes and the memories
//
// A memory takes `in` bytes/s from devices, gives `out`, or moves `both` each way at once. With x into and y out of it:
// x <= in and x + w y <= K, where K = both / (1 - both / out) and w = K / out, so that (0, out) and (both, both) are
// just possible. Values: `<processor>.copy_in_bandwidth`, `copy_out_bandwidth`, `copy_both_bandwidth`; traffic of
// neighbours leaves a part of each.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/assert.hpp"
#include "base/parameter_name.hpp"
#include "nccl/ranks.hpp"
#include "paths/contention.hpp"
#include "paths/guest.hpp"
#include "paths/transport.hpp"
#include "system/planners.hpp"

namespace fabricast::models::system {

namespace {

constexpr double k_most_both = 0.95;  ///< of what goes out alone: copies both ways never add without limit
constexpr int k_weight = 100;         // crossings are whole numbers: x counts 100, y 100 w

class HostCopiesPlanner : public Planner {
 public:
  HostCopiesPlanner(const PlanContext& context, const Workload& workload, std::vector<DeviceId> gpus)
      : context_(context), direction_(workload.direction), gpus_(std::move(gpus)) {}

  [[nodiscard]] OperationPlan plan(Bytes size) const override {
    OperationPlan plan;
    plan.size = size;
    plan.algorithm = fmt::format("{} GPU{} {}", gpus_.size(), gpus_.size() == 1 ? "" : "s", to_string(direction_));
    plan.before.push_back(parameter_term(context_.parameters, "start of the copies", "cuda.copy_overhead"_key));
    Node node;
    node.label = "copies";
    for (const auto gpu : gpus_) {
      if (direction_ != CopyDirection::to_device) node.flows.push_back(copy(gpu, size, true));
      if (direction_ != CopyDirection::to_host) node.flows.push_back(copy(gpu, size, false));
    }
    plan.program.then(std::move(node));
    return plan;
  }
  [[nodiscard]] int num_ranks() const override { return static_cast<int>(gpus_.size()); }
  [[nodiscard]] int num_hosts() const override { return 1; }
  [[nodiscard]] std::vector<std::string> devices() const override {
    std::vector<std::string> names;
    for (const auto gpu : gpus_) names.push_back(context_.topology.device(gpu).name);
    return names;
  }
  [[nodiscard]] std::vector<GivenUsed> settings() const override { return virtual_settings(context_, gpus_); }
  [[nodiscard]] std::vector<std::string> assumptions() const override {
    auto out = virtual_assumptions(context_, {context_.topology.host_of(gpus_.front())});
    out.emplace_back("buffers are pinned, larger than caches, and in the memory of the GPU's socket");
    return out;
  }

 private:
  [[nodiscard]] Flow copy(DeviceId gpu, Bytes size, bool to_host) const {
    const auto& topology = context_.topology;
    const auto memory = topology.local_memory(gpu);
    const auto path = to_host ? topology.path_in_host(gpu, memory) : topology.path_in_host(memory, gpu);
    FABRICAST_ASSERT(path.has_value(), "no path between a GPU and its host memory");
    Flow flow;
    flow.bytes = static_cast<double>(size.value);
    CrossingCounter counter;
    counter.add(*path);
    add_memory(memory, to_host, counter);
    flow.crossings = counter.take();
    const double share = device_value_or(context_, gpu, "host_copy_efficiency", 1);
    flow.rate_cap = share * topology.link_bandwidth(to_host ? path->links.front() : path->links.back()).bytes_per_s;
    flow.cap_name = fmt::format("copy engine of {}", topology.device(gpu).name);
    flow.cap_parameter = topology.device(gpu).type + ".host_copy_efficiency";
    return flow;
  }

  void add_memory(DeviceId memory, bool to_host, CrossingCounter& counter) const {
    const auto& processor = processor_of(context_.topology, memory);
    const auto value = [&](const char* field) {
      return context_.parameters.find(fmt::format("{}.copy_{}_bandwidth", processor, field));
    };
    const auto* in = value("in");
    const auto* out = value("out");
    const auto* both = value("both");
    if (in == nullptr || out == nullptr || both == nullptr) return add_half_duplex(memory, to_host, counter);
    const double sum = both->value / (1 - std::min(k_most_both, both->value / out->value));
    const int weight = to_host ? k_weight : static_cast<int>(std::lround(k_weight * sum / out->value));
    const double left = contention_at(context_, memory, 1).memory_share_left;
    counter.add(context_.resources.extra(Limit::copies, memory, left * k_weight * sum, both->name), weight);
    if (to_host) counter.add(context_.resources.extra(Limit::copies_in, memory, left * in->value, in->name));
  }

  /// Without measured copies: the half-duplex memory of docs/MODELS.md, "Host memory".
  void add_half_duplex(DeviceId memory, bool to_host, CrossingCounter& counter) const {
    Route route;
    add_dram(context_, memory, to_host ? 3 : 2, route);
    for (const auto& crossing : route.crossings) counter.add(crossing.resource, crossing.times);
  }

  PlanContext context_;
  CopyDirection direction_;
  std::vector<DeviceId> gpus_;
};

}  // namespace

Result<std::unique_ptr<Planner>> make_host_copies_planner(const PlanContext& context, const Workload& workload) {
  auto gpus = nccl::choose_ranks(context, workload);
  if (!gpus) return tl::unexpected(gpus.error());
  for (const auto gpu : *gpus) {
    if (context.topology.host_of(gpu) == context.topology.host_of(gpus->front())) continue;
    return tl::unexpected(Diagnostics{make_error_at(workload.location, "host_copies works on the GPUs of one host",
                                                    "lower workload.gpus, or name devices of one host")});
  }
  if (workload.direction == CopyDirection::to_peer) {
    if (gpus->size() == 2 && gpus->front() != gpus->back())
      return make_peer_copies_planner(context, workload, std::move(*gpus));
    return tl::unexpected(
        Diagnostics{make_error_at(workload.location,
                                  fmt::format("a copy to a peer takes two GPUs, found {}",
                                              gpus->size() == 2 ? "the same twice" : std::to_string(gpus->size())),
                                  "set workload.gpus to 2, or name two devices")});
  }
  return std::make_unique<HostCopiesPlanner>(context, workload, std::move(*gpus));
}

}  // namespace fabricast::models::system
