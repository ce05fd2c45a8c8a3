// SPDX-License-Identifier: Apache-2.0
// A step of an application whose GPU calls travel to a server.
//
//   remote = compute/share + w c (2 l + t) + max(0, (1 - w) c a - compute/share) + bytes / min(wire, copy)
//
// c calls per step, of which a part w waits for its answer: a round trip of latency l each way and the software t at
// both ends. The others are sent ahead and cost a each, hidden behind the compute as far as it lasts. w, t and a are
// assumed values with wide intervals: nobody has published them.
#include <algorithm>

#include "base/assert.hpp"
#include "base/parameter_name.hpp"
#include "fabricast/models/virtualization.hpp"

namespace fabricast::models {

namespace {

constexpr double k_ip_tcp_header = 52;      // IPv4 20, TCP with time stamps 32
constexpr double k_ethernet_overhead = 38;  // header and checksum 18, preamble 8, gap 12

enum class End { low, value, high };

double at(const Parameter& parameter, End end) {
  return end == End::low ? parameter.low : (end == End::high ? parameter.high : parameter.value);
}

std::vector<Term> terms_of(const ParameterSet& parameters, const RemoteGpuStep& step, const RemotePath& path, End end) {
  const auto& waiting = parameters.at("remote_gpu.waiting_share"_key);
  const auto& call = parameters.at(path.is_rdma ? "remote_gpu.rdma_call_time"_key : "remote_gpu.tcp_call_time"_key);
  const auto& sent_ahead = parameters.at("remote_gpu.queued_call_time"_key);
  const double compute = step.compute.seconds() / step.share;
  std::vector<Term> terms;
  terms.push_back({"compute on the local GPU", step.compute, "workload", "scenario"});
  if (step.share < 1) {
    terms.push_back({"share of the GPU", from_seconds(compute) - step.compute, "workload", "scenario"});
  }
  const double waits = step.calls * at(waiting, end);
  terms.push_back({"round trips of calls that wait, network", from_seconds(waits * 2 * path.latency.seconds()),
                   waiting.name, waiting.source});
  terms.push_back(
      {"round trips of calls that wait, software", from_seconds(waits * at(call, end)), call.name, call.source});
  const double queued = step.calls * (1 - at(waiting, end)) * at(sent_ahead, end);
  terms.push_back({"calls sent ahead, beyond the compute", from_seconds(std::max(0.0, queued - compute)),
                   sent_ahead.name, sent_ahead.source});
  const Bandwidth rate{std::min(path.bandwidth.bytes_per_s, path.local_copy.bytes_per_s)};
  const auto bytes = step.to_gpu + step.from_gpu;
  terms.push_back({"data over the network", transfer_time(bytes, rate), "topology", "link rate and stream limit"});
  return terms;
}

Duration total(const std::vector<Term>& terms) {
  Duration sum;
  for (const auto& term : terms) sum += term.time;
  return sum;
}

}  // namespace

RemoteGpuEstimate remote_gpu_step(const ParameterSet& parameters, const RemoteGpuStep& step, const RemotePath& path) {
  FABRICAST_ASSERT(step.share > 0 && step.share <= 1, "a share of {} of a GPU", step.share);
  RemoteGpuEstimate out;
  out.local = step.compute + transfer_time(step.to_gpu + step.from_gpu, path.local_copy);
  out.terms = terms_of(parameters, step, path, End::value);
  out.remote = total(out.terms);
  out.low = total(terms_of(parameters, step, path, End::low));
  out.high = total(terms_of(parameters, step, path, End::high));
  return out;
}

Bandwidth tcp_stream_rate(const ParameterSet& parameters, Bandwidth link, Bytes mtu) {
  const double payload = std::max<double>(1, static_cast<double>(mtu.value) - k_ip_tcp_header);
  const double per_byte = parameters.at("remote_gpu.tcp_byte_time"_key).value +
                          parameters.at("remote_gpu.tcp_packet_time"_key).value / payload;
  const double on_wire = payload / (payload + k_ip_tcp_header + k_ethernet_overhead);
  return {std::min(link.bytes_per_s * on_wire, 1 / per_byte)};
}

}  // namespace fabricast::models
