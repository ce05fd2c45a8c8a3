// SPDX-License-Identifier: Apache-2.0
#include "nccl/release_rules.hpp"

#include <fmt/format.h>

#include "nccl/architecture.hpp"
#include "nccl/patterns.hpp"
#include "nccl/rccl.hpp"
#include "nccl/tuning.hpp"
#include "nccl/workload_rules.hpp"

namespace fabricast::models::nccl {

namespace {

constexpr int k_oldest_read = 204;
constexpr int k_newest_read = 230;
/// ncclSend and ncclRecv (NCCL 2.7 release notes).
constexpr int k_send_receive = 207;
/// Capture in a CUDA graph (NCCL 2.9 release notes).
constexpr int k_graphs = 209;

std::string name_of_release(int version) { return fmt::format("{}.{}", version / 100, version % 100); }

}  // namespace

int max_channels(int version) { return version < 205 ? 16 : version < 225 ? 32 : 64; }

Diagnostics release_faults(const PlanContext& context, const Workload& workload, const std::vector<DeviceId>& ranks) {
  const auto& release = context.software.nccl_version;
  const int version = release_number(release);
  Diagnostics faults;
  if (version < k_oldest_read || version >= 300) {
    faults.push_back(make_error_at(where_set(context, workload, "version"),
                                   fmt::format("no rules of NCCL {} are known, its releases are read from {} to {}",
                                               release, name_of_release(k_oldest_read), name_of_release(k_newest_read)),
                                   "write one of these, e.g. version: \"2.28\""));
    return faults;
  }
  const auto since = [&](int first, const std::string& what) {
    if (version >= first) return;
    faults.push_back(make_error_at(
        workload.location, fmt::format("{} with NCCL {}, it came with {}", what, release, name_of_release(first)),
        fmt::format("set software.nccl.version to {} or later", name_of_release(first))));
  };
  if (is_peer_to_peer(collective_of(workload.benchmark)))
    since(k_send_receive, fmt::format("{} (send and receive)", to_string(workload.benchmark)));
  // A step's `launch: graph` is of its compute.
  if (workload.launch == LaunchMode::graph && workload.iterations > 0) since(k_graphs, "'launch: graph'");
  const int most = max_channels(version);
  if (library_of(context, ranks.front()) == Library::nccl && workload.channels && *workload.channels > most)
    faults.push_back(make_error_at(
        workload.location, fmt::format("'channels: {}', NCCL {} has {} at most", *workload.channels, release, most),
        fmt::format("write {} or fewer", most)));
  return faults;
}

std::string younger_than_sources(const PlanContext& context, DeviceId gpu) {
  const auto& release = context.software.nccl_version;
  if (library_of(context, gpu) != Library::nccl || release_number(release) <= k_newest_read) return {};
  return fmt::format("NCCL {} decides as {}, up to which its source was read", release, name_of_release(k_newest_read));
}

}  // namespace fabricast::models::nccl
