// SPDX-License-Identifier: Apache-2.0
#include "nccl/algorithms/algorithm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/parameter_name.hpp"
#include "nccl/transports/transports.hpp"

namespace fabricast::models::nccl {

Cut ChannelAlgorithm::cut() const {
  Cut cut;
  cut.per_channel = bytes_per_channel();
  cut.per_step = bytes_per_step(cut.per_channel);
  cut.largest_chunk = largest_chunk(cut.per_channel);
  cut.chunk = std::min(cut.largest_chunk, std::max(cut.per_step, 1.0));
  cut.loops = std::max(1.0, std::ceil(cut.per_step / cut.largest_chunk));
  cut.paid_loops = paid_loops(cut.loops);
  cut.pair_channels = pair_channels();
  return cut;
}

double ChannelAlgorithm::buffer_chunk(ParameterStem kind) const {
  const double chunk = op_.parameter(kind, op_.protocol).value;
  return op_.is(Protocol::simple) ? chunk * buffer_factor(op_) : chunk;
}

double ChannelAlgorithm::first_chunk(const Cut& cut) const {
  return op_.parameter("nccl.first_chunk"_stem, op_.protocol).value * cut.chunk;
}

bool ChannelAlgorithm::passes_lines() const {
  return op_.is(Protocol::ll) && op_.group.library == Library::nccl && !op_.has_hop(TransportKind::host_memory) &&
         !op_.has_hop(TransportKind::socket);
}

const Parameter& ChannelAlgorithm::of_primitives(ParameterStem what) const {
  return op_.parameter(what, is_before_new_primitives(op_) ? "ll.nccl2.9" : "ll");
}

double ChannelAlgorithm::levels() const { return std::floor(std::log2(static_cast<double>(op_.group.num_hosts))); }

double ChannelAlgorithm::under_way(double chunks, double depth) {
  return std::min(1.0, std::max(0.0, chunks - 1) / depth);
}

double ChannelAlgorithm::slice_in_tree(double chunk, double under_way) {
  constexpr double others = 3;
  return chunk * (1 + others * under_way) / (1 + others);
}

std::vector<std::string> ChannelAlgorithm::channel_start_names() const {
  if (!fetches_work(op_)) return {};
  return op_.group.architecture.names_of("nccl.channel_start"_stem.text);
}

std::string ChannelAlgorithm::bandwidth_name() const { return op_.protocol; }

std::unique_ptr<ChannelAlgorithm> make_algorithm(const Operation& operation) {
  if (is_peer_to_peer(operation.collective)) return make_pairs(operation);
  if (is_chain(operation.collective)) return make_chain(operation);
  switch (operation.choice.algorithm) {
    case Algorithm::tree:
      return make_tree(operation);
    case Algorithm::nvls:
      return make_nvls(operation);
    case Algorithm::collnet:
      return make_collnet(operation);
    case Algorithm::pat:
      return make_pat(operation);
    case Algorithm::msccl:
      return make_all_pairs(operation);
    case Algorithm::ring:
      break;
  }
  return make_ring(operation);
}

}  // namespace fabricast::models::nccl
