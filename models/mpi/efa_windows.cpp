// SPDX-License-Identifier: Apache-2.0
#include "mpi/efa_windows.hpp"

#include <algorithm>
#include <cmath>

#include "fabricast/models/payload.hpp"

namespace fabricast::models::mpi {

namespace {

constexpr Bytes k_runt{300 * 1024};  ///< EFA_DEFAULT_RUNT_SIZE

/// Smallest message out of host memory that it reads; 0: it reads none.
double smallest_read(const PlanContext& context, DeviceId hca) {
  return provider_of(context, hca) == "efa" ? device_value_or(context, hca, "libfabric_read_limit", 0) : 0;
}

}  // namespace

Bytes longest_eager_of_efa(const PlanContext& context, DeviceId hca, Bytes usual) {
  return smallest_read(context, hca) > 0 ? std::max(usual, k_runt) : usual;
}

bool copies_by_adapter(const PlanContext& context, const Profile& profile, DeviceId hca) {
  return profile.name == "open-mpi-ofi" && smallest_read(context, hca) > 0;
}

EfaAnnounced::EfaAnnounced(const PlanContext& context, const Profile& profile, DeviceId from_hca, DeviceId to_hca,
                           Bytes size, bool is_direct) {
  if (profile.name != "open-mpi-ofi" || provider_of(context, from_hca) != "efa") return;
  const double bytes = static_cast<double>(size.value);
  const double from_host = std::max(smallest_read(context, from_hca), smallest_read(context, to_hca));
  const bool has_reads = std::min(smallest_read(context, from_hca), smallest_read(context, to_hca)) > 0;
  if (has_reads && (is_direct || bytes >= from_host)) {
    const auto of_adapter = [&](DeviceId hca) {
      return device_value(context, hca, "rate") / device_value_or(context, hca, "rails", 1) *
             payload_share(context.topology, context.parameters, context.topology.device(hca).type);
    };
    read_bandwidth_ = std::min(of_adapter(from_hca), of_adapter(to_hca));
    return;
  }
  const double window = device_value_or(context, to_hca, "libfabric_window", 0);
  const double first = static_cast<double>(profile.eager_segment.value);
  if (window > 0) grants_ = static_cast<int>(std::ceil(std::max(0.0, bytes - first) / window));
}

}  // namespace fabricast::models::mpi
