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

/// Operations of a benchmark that count, after one that warms up (nccl-tests: `-w 1`). Its 20 take as long: the rates
/// that senders begin with settle in the first one.
constexpr int k_measured = 5;

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
    auto timings = operate();
    if (is_loop() && has_slowed_down()) timings = settle();
    for (std::size_t j = 0; j < timings.size(); ++j) timings[j].total += models::sum(input_.jobs[j].plan->before);
    return outcome(std::move(timings));
  }

 private:
  /// All jobs once, from where the fabric stands.
  std::vector<OperationTiming> operate() {
    ++operations_;
    std::vector<Part> parts;
    for (const auto& job : input_.jobs) {
      parts.push_back(whole(job));
      parts.back().start += network_->now();
    }
    const bool is_chain_alone = parts.size() == 1 && parts[0].program->is_chain();
    return execute(input_.resources, parts, *network_,
                   {.leaves_out_repeats = is_chain_alone && !options_.full_expansion});
  }

  /// Alone, a benchmark makes its operation again and again, over the same queue pairs.
  [[nodiscard]] bool is_loop() const {
    if (input_.jobs.size() != 1 || input_.workloads[0]->iterations == 0) return false;
    const auto family = family_of(input_.workloads[0]->benchmark);
    return family == BenchmarkFamily::nccl_tests || family == BenchmarkFamily::osu ||
           family == BenchmarkFamily::perftest;
  }

  /// Senders were told to slow down, and go on with the rates that they have by then.
  [[nodiscard]] bool has_slowed_down() const {
    const auto results = network_->results();
    return results.stop == packet::StopReason::finished &&
           std::ranges::any_of(results.queue_pairs, [](const auto& pair) { return pair.cnps > 0; });
  }

  /// Of the operations behind the first one, in which every sender began at the rate of its port, the one nearest to
  /// their mean.
  std::vector<OperationTiming> settle() {
    std::vector<std::vector<OperationTiming>> measured;
    Duration sum;
    for (int i = 0; i < k_measured && network_->results().stop == packet::StopReason::finished; ++i) {
      measured.push_back(operate());
      sum += measured.back()[0].total;
    }
    const auto mean = sum / static_cast<std::int64_t>(measured.size());
    return *std::ranges::min_element(measured, {}, [&](const auto& timings) {
      const auto& took = timings[0].total;
      return took < mean ? mean - took : took - mean;
    });
  }

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
        const double operations = operations_ > 1 ? 1 + k_measured : 1;
        const double done = static_cast<double>(at.delivered.value) + network_->left_out_bytes();
        options_.progress(std::min(1.0, done / (operations * all)));
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
    out.report.operations = operations_;
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
  int operations_ = 0;  ///< simulated, one after the other
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
