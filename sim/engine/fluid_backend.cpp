// SPDX-License-Identifier: Apache-2.0
#include "engine/fluid_backend.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

namespace fabricast::engine {

namespace {

constexpr int k_most_strands = 32;  // of one flow

/// Shares as whole numbers: the solver gives equal rates, so a flow of twice the shares moves as twice as many strands.
/// Exact where the ratios are of whole numbers up to k_most_strands, else the largest has that many.
std::vector<int> strands_of(const std::vector<double>& shares) {
  std::vector<int> out(shares.size(), 1);
  if (shares.empty() || std::ranges::adjacent_find(shares, std::not_equal_to<>()) == shares.end()) return out;
  const double most = *std::ranges::max_element(shares);
  int best = k_most_strands;
  for (int whole = k_most_strands; whole >= 1; --whole) {
    const bool is_exact = std::ranges::all_of(shares, [&](double one) {
      const double strands = one / most * whole;
      return strands > 0.5 && std::abs(strands - std::round(strands)) < 1e-9;
    });
    if (is_exact) best = whole;
  }
  for (std::size_t f = 0; f < shares.size(); ++f)
    out[f] = std::max(1, static_cast<int>(std::lround(shares[f] / most * best)));
  return out;
}

}  // namespace

FluidBackend::FluidBackend(const models::Resources& resources, const std::vector<Part>& parts, bool keep_all,
                           double longest) {
  std::vector<const models::Flow*> flows;
  for (const auto& part : parts) {
    first_line_.emplace_back();
    for (std::size_t n = 0; n < part.count; ++n) {
      first_line_.back().push_back(flows.size());
      for (const auto& flow : part.node(n).flows) flows.push_back(&flow);
    }
  }
  std::vector<double> shares;
  for (const auto* flow : flows) shares.push_back(resources.shares(flow->crossings));
  const auto strands = strands_of(shares);
  for (std::size_t f = 0; f < flows.size(); ++f) lines_.push_back({flows[f], strands[f]});
  dense_ = make_dense(resources, flows, keep_all);
  clock_.begin(dense_.capacities, longest);
}

void FluidBackend::start_flow(FlowRef flow, Duration wait) {
  const auto line = first_line_[flow.part][flow.node] + flow.flow;
  clock_.after((wait + lines_[line].flow->latency).seconds(), [this, flow, line] {
    ++lines_[line].waiting;
    send(flow, line);
  });
}

void FluidBackend::send(FlowRef flow, std::size_t line) {
  auto& own = lines_[line];
  if (own.is_busy || own.waiting == 0) return;
  --own.waiting;
  const double bytes = own.flow->bytes;
  if (bytes <= 0) return on_end_(flow);
  own.is_busy = true;
  own.moving = own.strands;
  for (int strand = 0; strand < own.strands; ++strand) {
    clock_.start_flow(bytes / own.strands, dense_.crossings[line], [this, flow, line] {
      if (--lines_[line].moving > 0) return;
      lines_[line].is_busy = false;
      on_end_(flow);
      send(flow, line);
    });
  }
}

void FluidBackend::run(std::function<void(FlowRef)> on_end) {
  on_end_ = std::move(on_end);
  clock_.run();
}

}  // namespace fabricast::engine
