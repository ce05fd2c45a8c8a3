// SPDX-License-Identifier: Apache-2.0
#include "mpi/host_sums.hpp"

#include <algorithm>

#include "base/parameter_name.hpp"
#include "mpi/cache.hpp"
#include "paths/transport.hpp"

namespace fabricast::models::mpi {

HostSums::HostSums(const PlanContext& context, DeviceId memory, double working_set)
    : parameters_(&context.parameters),
      beyond_(
          share_beyond_cache(working_set, of_processor(context, memory, "core_cache", "mpi.core_cache"_key).value)) {}

Term HostSums::of(double bytes, const std::vector<Message>& messages) const {
  const auto term = [](double seconds, const Parameter& rate) {
    return Term{"reduction on the host", from_seconds(seconds), rate.name, rate.source};
  };
  const auto seconds_at = [&](const Parameter& rate) { return rate.value > 0 ? bytes / rate.value : 0; };
  const auto& between_cores = parameters_->at("mpi.reduction_bandwidth"_key);
  if (std::ranges::any_of(messages, &Message::is_copied_inside)) return term(seconds_at(between_cores), between_cores);
  const auto& own = parameters_->at("mpi.reduction_bandwidth.core_cache"_key);
  const auto& last_level = parameters_->at("mpi.reduction_bandwidth.last_level"_key);
  const bool is_from_adapter = std::ranges::any_of(messages, &Message::is_written_by_adapter);
  const double beyond = ((is_from_adapter ? 1 : 0) + beyond_) / 2;  // of both operands
  const double seconds = (1 - beyond) * seconds_at(own) + beyond * seconds_at(last_level);
  return term(seconds, beyond > 0.5 ? last_level : own);
}

}  // namespace fabricast::models::mpi
