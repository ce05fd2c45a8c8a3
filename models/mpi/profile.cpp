// SPDX-License-Identifier: Apache-2.0
#include "mpi/profile.hpp"

#include <fmt/format.h>

#include "guest/guest.hpp"

namespace fabricast::models::mpi {

const std::vector<std::string>& profile_names() {
  static const std::vector<std::string> names{"open-mpi-openib", "open-mpi-ucx", "open-mpi-ofi", "mvapich2-gdr",
                                              "cray-mpich",      "verbs",        "tcp"};
  return names;
}

namespace {

/// Adapters of some host carry TCP only, so message passing between hosts runs over TCP.
bool has_tcp_adapters(const PlanContext& context) {
  int group = 0;
  for (const auto& spec : context.topology.spec().hosts) {
    for (const auto hca : context.topology.devices(DeviceKind::hca, group)) {
      const auto nic = nic_mode_of(context, hca);
      // PVRDMA falls back to TCP on an adapter without RDMA.
      if (is_tcp_only(nic) || (nic == NicMode::pvrdma && device_value_or(context, hca, "rdma", 1) == 0)) return true;
    }
    group += spec.count;
  }
  return false;
}

}  // namespace

Profile make_profile(const PlanContext& context, const Workload& workload) {
  const auto& software = context.software;
  Profile profile;
  profile.name = family_of(workload.benchmark) == BenchmarkFamily::perftest ? "verbs"
                 : software.transport == "tcp" || has_tcp_adapters(context) ? "tcp"
                 : software.mpi.empty()                                     ? "open-mpi-ucx"
                                                                            : software.mpi;
  const auto& p = context.parameters;
  const auto name = [&](const char* field) { return fmt::format("mpi.{}.{}", profile.name, field); };
  profile.overhead = p.duration(name("overhead"));
  profile.device_overhead = p.duration(name("device_overhead"));
  profile.inline_limit = p.bytes(name("inline_limit"));
  profile.eager_limit = software.eager_limit.value_or(p.bytes(name("eager_limit")));
  profile.device_eager_limit = software.eager_limit.value_or(p.bytes(name("device_eager_limit")));
  profile.eager_copy = p.bandwidth(name("eager_copy_bandwidth"));
  const auto if_known = [&](const char* field) {
    const auto* parameter = p.find(name(field));
    return parameter == nullptr ? 0.0 : parameter->value;
  };
  profile.device_eager_copy = {if_known("device_eager_copy_bandwidth")};
  profile.eager_gap_copy = {if_known("eager_gap_bandwidth")};
  profile.bounce_gap = from_seconds(if_known("bounce_gap"));
  const auto* copied = p.find(name("device_copy_limit"));
  profile.device_copy_limit =
      copied == nullptr ? profile.device_eager_limit : Bytes{static_cast<std::int64_t>(copied->value)};
  profile.rendezvous_messages = p.number(name("rendezvous_messages"));
  profile.message_gap = p.duration(name("message_gap"));
  profile.device_message_gap = p.duration(name("device_message_gap"));
  profile.flow_bandwidth = p.bandwidth(name("flow_bandwidth"));
  profile.rendezvous_gap = p.duration(name("rendezvous_gap"));
  profile.max_rails = static_cast<int>(p.number(name("max_rails")));
  profile.rail_minimum = p.bytes(name("rail_minimum"));
  profile.window_rail_minimum = p.bytes(name("window_rail_minimum"));
  profile.gpudirect_limit = software.gpudirect_limit.value_or(p.bytes(name("gpudirect_limit")));
  profile.staging_chunk = software.staging_chunk.value_or(p.bytes(name("staging_chunk")));
  profile.uses_gdrcopy = software.gdrcopy && p.number(name("gdrcopy")) != 0;
  profile.is_tcp = profile.name == "tcp";
  return profile;
}

}  // namespace fabricast::models::mpi
