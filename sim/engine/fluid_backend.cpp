// SPDX-License-Identifier: Apache-2.0
#include "engine/fluid_backend.hpp"

namespace fabricast::engine {

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
  for (const auto* flow : flows) lines_.push_back({flow});
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
  clock_.start_flow(bytes, dense_.crossings[line], [this, flow, line] {
    lines_[line].is_busy = false;
    on_end_(flow);
    send(flow, line);
  });
}

void FluidBackend::run(std::function<void(FlowRef)> on_end) {
  on_end_ = std::move(on_end);
  clock_.run();
}

}  // namespace fabricast::engine
