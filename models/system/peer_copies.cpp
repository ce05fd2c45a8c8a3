// SPDX-License-Identifier: Apache-2.0
// Copies between two GPUs of one host, as cudaMemcpyPeerAsync makes them and p2pBandwidthLatencyTest times them:
//
//   time = start + bytes / rate
//
// With peer access the rate is that of NVLink, or of PCIe, on the way. Without it the driver moves chunks through
// pinned host memory: two starts, and `cuda.staged_copy_share` of the slower of both links, since chunks of the two
// copies overlap only in part. Both ways at once, each way is a copy of its own.
#include <fmt/format.h>

#include <algorithm>

#include "base/assert.hpp"
#include "base/parameter_name.hpp"
#include "nccl/ranks.hpp"
#include "paths/guest.hpp"
#include "paths/transport.hpp"
#include "system/planners.hpp"

namespace fabricast::models::system {

namespace {

class PeerCopiesPlanner : public Planner {
 public:
  PeerCopiesPlanner(const PlanContext& context, const Workload& workload, std::vector<DeviceId> gpus)
      : context_(context), is_both_ways_(workload.is_bidirectional), gpus_(std::move(gpus)) {
    const auto& topology = context_.topology;
    path_ = topology.path_in_host(gpus_[0], gpus_[1]);
    is_nvlink_ = path_ && path_->uses_nvlink;
    const auto gate = peer_gate_of(context_, gpus_[0], is_nvlink_);
    is_direct_ = context_.software.nccl_p2p && path_ && gate.is_open;
    reason_ = !context_.software.nccl_p2p ? "peer access is off" : gate.reason;
    if (is_direct_ && rate(true) < rate(false)) {
      is_direct_ = false;
      reason_ = "the direct way across the sockets is slower than copies through host memory";
    }
  }

  [[nodiscard]] OperationPlan plan(Bytes size) const override {
    OperationPlan plan;
    plan.size = size;
    plan.algorithm = is_both_ways_ ? "peer copies both ways" : "peer copy";
    plan.protocol = !is_direct_ ? "staged" : is_nvlink_ ? "nvlink" : "pcie";
    for (int copy = 0; copy < (is_direct_ ? 1 : 2); ++copy)
      plan.before.push_back(parameter_term(context_.parameters, "start of a copy", "cuda.copy_overhead"_key));
    Node node;
    node.label = "copy";
    node.flows.push_back(flow(gpus_[0], gpus_[1], size, is_direct_));
    if (is_both_ways_) node.flows.push_back(flow(gpus_[1], gpus_[0], size, is_direct_));
    plan.program.then(std::move(node));
    return plan;
  }
  [[nodiscard]] int num_ranks() const override { return 2; }
  [[nodiscard]] int num_hosts() const override { return 1; }
  [[nodiscard]] std::vector<std::string> devices() const override {
    return {context_.topology.device(gpus_[0]).name, context_.topology.device(gpus_[1]).name};
  }
  [[nodiscard]] std::vector<GivenUsed> settings() const override {
    auto out = virtual_settings(context_, gpus_);
    out.push_back({"peer access", context_.software.nccl_p2p ? "on" : "off", is_direct_ ? "on" : "off",
                   is_direct_ ? "" : reason_});
    return out;
  }
  [[nodiscard]] std::vector<std::string> assumptions() const override {
    return virtual_assumptions(context_, {context_.topology.host_of(gpus_.front())});
  }

 private:
  /// bytes/s of one copy alone.
  [[nodiscard]] double rate(bool is_direct) const {
    return rate_alone(context_.resources, flow(gpus_[0], gpus_[1], Bytes{1}, is_direct));
  }

  [[nodiscard]] Flow flow(DeviceId from, DeviceId to, Bytes size, bool is_direct) const {
    const auto& topology = context_.topology;
    Flow flow;
    flow.bytes = static_cast<double>(size.value);
    Route route;
    if (is_direct) {
      const auto path = topology.path_in_host(from, to);
      FABRICAST_ASSERT(path.has_value(), "a path between two GPUs one way only");
      add_dma(context_, *path, false, route);
    } else {
      flow.rate_cap = add_staged_copy(context_, from, to, topology.local_memory(from), route);
      flow.cap_name = "copy through host memory";
      flow.cap_parameter = "cuda.staged_copy_share"_key;
    }
    CrossingCounter counter;
    for (const auto& crossing : route.crossings) counter.add(crossing.resource, crossing.times);
    flow.crossings = counter.take();
    return flow;
  }

  PlanContext context_;
  bool is_both_ways_;
  std::vector<DeviceId> gpus_;
  std::optional<Path> path_;
  bool is_nvlink_ = false;
  bool is_direct_ = false;
  std::string reason_;
};

}  // namespace

std::unique_ptr<Planner> make_peer_copies_planner(const PlanContext& context, const Workload& workload,
                                                  std::vector<DeviceId> gpus) {
  return std::make_unique<PeerCopiesPlanner>(context, workload, std::move(gpus));
}

}  // namespace fabricast::models::system
