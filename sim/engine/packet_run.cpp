// SPDX-License-Identifier: Apache-2.0
#include "engine/packet_run.hpp"

#include <algorithm>
#include <memory>

#include "engine/executor.hpp"
#include "engine/packet_backend.hpp"
#include "engine/packet_demand.hpp"
#include "engine/packet_fabric.hpp"
#include "engine/packet_report.hpp"

namespace fabricast::engine {

namespace {

/// Queues in the time series: those that several flows share, most shared first.
constexpr std::size_t k_most_sampled = 64;

class PacketRun {
 public:
  PacketRun(const PacketInput& input, const PacketOptions& options)
      : input_(input),
        topology_(input.resources.topology()),
        settings_(lossless_settings(topology_, input.parameters)),
        options_(options) {}

  Result<PacketOutcome> run() {
    fabric_ = make_packet_fabric(
        {topology_, input_.parameters, input_.workloads[0]->transport, hcas_on_fabric(topology_, input_.jobs)});
    auto faults = packet::validate(fabric_.network);
    std::erase_if(faults, [](const Diagnostic& one) { return one.severity != Severity::error; });
    if (!faults.empty()) return tl::unexpected(faults);
    network_ = std::make_unique<PacketBackend>(input_, pairs_, fabric_.network, simulation_options());
    std::vector<Part> parts;
    for (const auto& job : input_.jobs) parts.push_back(whole(job));
    const bool is_chain_alone = parts.size() == 1 && parts[0].program->is_chain();
    auto timings =
        execute(input_.resources, parts, *network_, {.leaves_out_repeats = is_chain_alone && !options_.full_expansion});
    for (std::size_t j = 0; j < timings.size(); ++j) timings[j].total += models::sum(input_.jobs[j].plan->before);
    return outcome(std::move(timings));
  }

 private:
  [[nodiscard]] packet::Options simulation_options() const {
    packet::Options out;
    const auto routing = packet_routing(topology_.spec().fabric, input_.workloads[0]->transport.routing);
    if (routing == "spray") out.routing = packet::RoutingMode::spray;
    if (routing == "adaptive") out.routing = packet::RoutingMode::adaptive;
    out.seed = options_.seed;
    out.shortcuts = options_.shortcuts;
    out.stop = options_.stop;
    if (options_.progress) {
      out.progress = [this, all = std::max(1.0, payload_of(input_.jobs))](const packet::Progress& at) {
        options_.progress(std::min(1.0, (static_cast<double>(at.delivered.value) + network_->left_out_bytes()) / all));
      };
    }
    out.record_pauses = options_.record_pauses;
    out.sample_interval = options_.sample_interval;
    if (options_.sample_interval.ps > 0) {
      out.sample_flows = true;
      out.sampled_queues = sampled_queues();
    }
    return out;
  }

  [[nodiscard]] std::vector<packet::PortClass> sampled_queues() const {
    std::vector<packet::PortClass> out;
    for (const auto& queue : shared_queues(topology_, input_.jobs, k_most_sampled)) {
      const packet::PortClass one{fabric_.sender(queue.link), static_cast<std::uint8_t>(pairs_.priority_of(
                                                                  queue.job, queue.priority, queue.sender))};
      if (std::find(out.begin(), out.end(), one) == out.end()) out.push_back(one);
    }
    return out;
  }

  PacketOutcome outcome(std::vector<OperationTiming> timings) const {
    PacketOutcome out;
    out.timings = std::move(timings);
    out.report = make_report(fabric_.network, network_->results(), pairs_.flow_names());
    out.report.flow_control = to_string(settings_.flow_control);
    if (settings_.flow_control == FlowControl::pfc) out.report.lossless = settings_.pfc;
    if (settings_.flow_control != FlowControl::pfc) out.report.pause_frames = 0;  // those are credit updates
    return out;
  }

  const PacketInput& input_;
  const Topology& topology_;
  LosslessSettings settings_;
  const PacketOptions& options_;
  PacketFabric fabric_;
  PacketPairs pairs_{topology_, settings_, input_.workloads, fabric_};
  std::unique_ptr<PacketBackend> network_;
};

}  // namespace

Result<PacketOutcome> run_packets(const ParameterSet& parameters, const models::Resources& resources,
                                  const std::vector<Job>& jobs, const std::vector<const Workload*>& workloads,
                                  const PacketOptions& options) {
  auto faults = contradictions(workloads, resources.topology().spec().fabric,
                               lossless_settings(resources.topology(), parameters).flow_control);
  if (!faults.empty()) return tl::unexpected(faults);
  const PacketInput input{parameters, resources, jobs, workloads};
  return PacketRun(input, options).run();
}

}  // namespace fabricast::engine
