// SPDX-License-Identifier: Apache-2.0
#include "mpi/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/parameter_name.hpp"
#include "base/version.hpp"
#include "fabricast/models/payload.hpp"
#include "mpi/efa_windows.hpp"
#include "mpi/placement.hpp"
#include "mpi/ucx_threshold.hpp"
#include "paths/guest.hpp"

namespace fabricast::models::mpi {

const std::vector<std::string>& profile_names() {
  static const std::vector<std::string> names{
      "open-mpi-openib", "open-mpi-ucx", "open-mpi-ucx-tcp", "open-mpi-ofi", "mvapich2-gdr", "cray-mpich",
      "cray-mpich-cxi",  "mpich",        "intel-mpi",        "verbs",        "tcp"};
  return names;
}

namespace {

/// Some adapter of the host carries TCP only; of a VM that was described by itself: all do. So do all of a host whose
/// adapters have no RDMA.
bool has_tcp_only(const PlanContext& context, int host) {
  const auto hcas = context.topology.devices(DeviceKind::hca, host);
  const auto is_plain = [&](DeviceId hca) { return access_of(context, hca) == Access::tcp; };
  if (context.software.transport == "auto" && !hcas.empty() && std::ranges::all_of(hcas, is_plain)) return true;
  const auto is_tcp = [&](DeviceId hca) {
    const auto nic = nic_mode_of(context, hca);
    // PVRDMA falls back to TCP on an adapter without RDMA.
    return is_tcp_only(nic) || (nic == NicMode::pvrdma && is_plain(hca));
  };
  const bool is_vm = !context.topology.virtualization(host).vm_name.empty();
  if (is_vm) return !hcas.empty() && std::ranges::all_of(hcas, is_tcp);
  return std::ranges::any_of(hcas, is_tcp);
}

/// Adapters of some host that takes part carry TCP only, so message passing between hosts runs over TCP.
bool has_tcp_adapters(const PlanContext& context, const std::vector<int>& hosts) {
  return std::ranges::any_of(hosts, [&](int host) { return has_tcp_only(context, host); });
}

}  // namespace

namespace {

constexpr std::int64_t k_whole = std::int64_t{1} << 40;  ///< a segment of 1 TiB: messages are not cut
constexpr auto k_ucx_tcp = "open-mpi-ucx-tcp";
constexpr Bytes k_ucx_tcp_sent{8192};  ///< UCX_TCP_TX_SEG_SIZE: what a core copies to send

/// The values of one library.
struct OfLibrary {
  const ParameterSet& parameters;
  const std::string& library;

  template <parameter_table::Literal Pattern>
  [[nodiscard]] auto get() const {
    return parameters[named<Pattern>(library)];
  }
  /// A switch that few libraries turn on.
  template <parameter_table::Literal Pattern>
  [[nodiscard]] bool has() const {
    return parameters.contains(named<Pattern>(library)) && get<Pattern>() != 0;
  }
  template <parameter_table::Literal Pattern, parameter_table::Literal Usual>
  [[nodiscard]] auto either() const {
    return parameters.contains(named<Pattern>(library)) ? get<Pattern>() : get<Usual>();
  }
};

/// Adapters that messages may take, of the first of the hosts that has any, and GPUs where `beside_gpus`: its fastest
/// with RDMA; those without it where there are no others.
std::vector<DeviceId> first_adapters(const PlanContext& context, const std::vector<int>& hosts,
                                     bool beside_gpus = false) {
  const auto& topology = context.topology;
  for (const int host : hosts) {
    if (beside_gpus && topology.count(DeviceKind::gpu, host) == 0) continue;
    auto hcas = topology.devices(DeviceKind::hca, host);
    if (hcas.empty()) continue;
    const auto is_plain = [&](DeviceId hca) { return device_value_or(context, hca, "rdma", 1) == 0; };
    if (!std::ranges::all_of(hcas, is_plain)) std::erase_if(hcas, is_plain);
    keep_fastest(context, hcas);
    return hcas;
  }
  return {};
}

/// What the adapters, of the first host with any, are reached by: verbs, or a provider of libfabric alone. Cray's
/// systems come with Cray MPICH; a version is one of Open MPI. Without adapters Open MPI prefers its own transports to
/// UCX [opal_common_ucx_support_level]; builds for GPU memory are taken to be told to use UCX.
std::string usual_library(const PlanContext& context, const Workload& workload, const std::vector<DeviceId>& hcas) {
  const auto is_of_host = [](BufferPlace place) { return place == BufferPlace::host; };
  if (hcas.empty()) {
    const bool is_host_only = is_of_host(workload.send_buffer) && is_of_host(workload.receive_buffer);
    return is_host_only && context.software.ucx_version.empty() ? "tcp" : "open-mpi-ucx";
  }
  const bool is_of_cray = access_of(context, hcas.front()) == Access::libfabric;
  const bool is_efa = provider_of(context, hcas.front()) == "efa";
  const bool is_of_open_mpi = context.software.mpi.empty() && !context.software.mpi_version.empty();
  if (is_of_cray && !is_of_open_mpi) return "cray-mpich";
  return is_of_cray || is_efa ? "open-mpi-ofi" : "open-mpi-ucx";
}

/// Whose values a library's messages between hosts take. Libraries over libfabric move data as the provider of the
/// adapters does; over verbs no log shows it, and UCX's values stand for it.
std::string carrier_of(const PlanContext& context, const std::string& library, const std::vector<DeviceId>& hcas) {
  if (hcas.empty()) return library;
  const auto provider = provider_of(context, hcas.front());
  if (provider == "cxi")
    return library == "cray-mpich" || library == "open-mpi-ofi" || library == "mvapich2-gdr" ? "cray-mpich-cxi"
                                                                                             : library;
  if (provider == "efa" && library == "cray-mpich") return "open-mpi-ofi";
  if (library != "open-mpi-ofi" || provider == "efa") return library;
  return access_of(context, hcas.front()) == Access::libfabric ? "cray-mpich" : "open-mpi-ucx";
}

bool is_of_ucx(const Profile& profile) { return profile.name == "open-mpi-ucx" || profile.name == k_ucx_tcp; }

/// Over TCP: UCX where it is named, by itself or by its release; else Open MPI's own transport, which it prefers where
/// UCX finds no adapter with verbs.
std::string library_over_tcp(const Software& software) {
  const bool is_by_release = software.mpi.empty() && !software.ucx_version.empty();
  return software.mpi == "open-mpi-ucx" || is_by_release ? k_ucx_tcp : "tcp";
}

/// What UCX plans with the adapters of the first host that has any, of host or GPU memory; nullopt of other libraries,
/// or where a value is given.
std::optional<Bytes> planned_eager_limit(const PlanContext& context, const std::vector<DeviceId>& hcas,
                                         const Profile& profile, bool is_device, const std::string& parameter) {
  if (!is_of_ucx(profile) || context.parameters.contains(parameter)) return std::nullopt;
  const auto& topology = context.topology;
  // Between processes of a host.
  if (hcas.empty()) return context.parameters["mpi.shared_memory.posted_eager_limit"_key];
  const auto hca = hcas.front();
  const auto& type = topology.device(hca).type;
  const auto gpus = topology.devices(DeviceKind::gpu, topology.host_of(hca));
  const PlannedPort port{device_value(context, hca, "rate"), payload_share(topology, context.parameters, type),
                         topology.attribute(type, "protocol") == "ethernet"};
  if (profile.is_tcp) {
    const auto& version = context.software.ucx_version;
    const auto segment = is_device ? k_ucx_tcp_sent : profile.eager_segment;
    return longest_eager_of_ucx_over_tcp(port, is_older(version, 1, 16) ? Bytes{0} : segment, !is_older(version, 1, 15),
                                         is_amd(topology, hca));
  }
  if (is_device && !gpus.empty() && !is_older(context.software.ucx_version, 1, 16)) {
    const bool has_one_root = std::ranges::any_of(
        hcas, [&](DeviceId other) { return topology.distance(gpus.front(), other) < Distance::phb; });
    return longest_eager_of_ucx(port, planned_gpu_rate_of_ucx(has_one_root, is_amd(topology, hca)));
  }
  const auto alike = std::ranges::count_if(hcas, [&](DeviceId other) { return topology.device(other).type == type; });
  return longest_eager_of_ucx(port, std::min(static_cast<int>(alike), profile.max_rails), is_amd(topology, hca));
}

bool posts_verbs(const Workload& workload) { return family_of(workload.benchmark) == BenchmarkFamily::perftest; }

/// The library, what carries its messages between hosts, and why these are two.
Profile named_profile(const PlanContext& context, const Workload& workload, const Software& software,
                      const std::vector<int>& hosts, const std::vector<DeviceId>& hcas) {
  Profile out;
  const bool has_tcp = software.transport == "tcp" || has_tcp_adapters(context, hosts);
  out.name = posts_verbs(workload)                                       ? "verbs"
             : has_tcp                                                   ? library_over_tcp(software)
             : software.mpi.empty() || is_known_by_choices(software.mpi) ? usual_library(context, workload, hcas)
                                                                         : software.mpi;
  out.is_tcp = out.name == "tcp" || out.name == k_ucx_tcp;
  out.implementation = out.name == k_ucx_tcp                         ? "open-mpi-ucx"
                       : software.mpi.empty() || out.name == "verbs" ? out.name
                                                                     : software.mpi;
  if (software.mpi.empty() && !has_tcp && out.name == "tcp")
    out.reason = "no adapter: Open MPI prefers its own transports (ob1, vader) to UCX";
  if (out.name == k_ucx_tcp) out.reason = "UCX over TCP";
  if (is_known_by_choices(software.mpi))
    out.reason = fmt::format("between hosts; algorithms and copies inside are {}'s", software.mpi);
  if (auto carrier = carrier_of(context, out.name, hcas); carrier != out.name) {
    if (out.reason.empty() && out.name != "cray-mpich")
      out.reason = fmt::format("between hosts, as {} over these adapters", carrier);
    out.name = std::move(carrier);
  }
  return out;
}

/// The longest messages that are sent eagerly between hosts.
void set_eager_limits(const PlanContext& context, const Software& software, const std::vector<int>& hosts,
                      const std::vector<DeviceId>& hcas, Profile& profile) {
  const auto& p = context.parameters;
  const OfLibrary own{p, profile.name};
  const auto planned = planned_eager_limit(context, hcas, profile, false, named<"mpi.{}.eager_limit">(profile.name));
  profile.eager_limit = software.eager_limit.value_or(planned ? *planned : own.get<"mpi.{}.eager_limit">());
  const auto near_gpus = first_adapters(context, hosts, true);
  const auto planned_of_devices = planned_eager_limit(context, near_gpus.empty() ? hcas : near_gpus, profile, true,
                                                      named<"mpi.{}.device_eager_limit">(profile.name));
  const auto device_limit = software.device_eager_limit ? software.device_eager_limit : software.eager_limit;
  profile.device_eager_limit =
      device_limit.value_or(planned_of_devices ? *planned_of_devices : own.get<"mpi.{}.device_eager_limit">());
  if (profile.name == "open-mpi-ofi" && !device_limit && !hcas.empty())
    profile.device_eager_limit = longest_eager_of_efa(context, hcas.front(), profile.device_eager_limit);
  if (profile.is_tcp) profile.staged_segment = is_of_ucx(profile) ? k_ucx_tcp_sent : Bytes{0};
  profile.staged_eager_limit = !profile.is_tcp      ? profile.eager_limit
                               : is_of_ucx(profile) ? profile.device_eager_limit
                                                    : Bytes{0};
  profile.blocking_eager_limit =
      software.eager_limit.value_or(own.either<"mpi.{}.blocking_eager_limit", "mpi.{}.eager_limit">());
  // From UCX 1.9 on, whose sends are ucp_tag_send_nbx, only memory that the processor reads waits longer for a
  // rendezvous (ucp_tag_send_req; from 1.16 on ucp_proto_rndv_thresh).
  const bool is_late_for_devices = !is_of_ucx(profile) || is_older(software.ucx_version, 1, 9);
  profile.blocking_device_eager_limit = profile.device_eager_limit;
  const auto blocking = named<"mpi.{}.blocking_device_eager_limit">(profile.name);
  if (!device_limit && is_late_for_devices && p.contains(blocking)) profile.blocking_device_eager_limit = p[blocking];
}

/// What the library does between processes of a host, whatever carries its messages to others.
void set_inside(const ParameterSet& p, const Software& software, Profile& profile) {
  const OfLibrary inside{p, profile.implementation};
  if (software.eager_limit) {
    profile.inside_eager_limit = *software.eager_limit;
  } else if (const auto limit = named<"mpi.{}.inside_eager_limit">(profile.implementation); p.contains(limit)) {
    profile.inside_eager_limit = p[limit];
  } else {
    profile.inside_eager_limit = inside.either<"mpi.{}.blocking_eager_limit", "mpi.{}.eager_limit">();
  }
  profile.inside_segment = inside.either<"mpi.{}.inside_segment", "mpi.shared_memory.segment">();
  const auto usual_rendezvous = std::string("mpi.shared_memory.rendezvous"_key);
  profile.inside_rendezvous =
      p.first_of({named<"mpi.{}.inside_rendezvous">(profile.implementation), usual_rendezvous}).name;
  if (const auto* software_inside = p.find(named<"mpi.{}.inside_overhead">(profile.implementation)))
    profile.inside_overhead = software_inside->name;
  profile.copies_whole = profile.inside_segment.value >= k_whole;
  // Cray's kernels map another process's memory (XPMEM); MPICH and Intel MPI copy through cells of shared memory.
  profile.may_attach = (software.cross_memory_attach && !is_known_by_choices(profile.implementation)) ||
                       profile.implementation == "cray-mpich";
  profile.posted_inside_eager_limit = profile.inside_eager_limit;
  profile.has_old_ucx = profile.implementation == "open-mpi-ucx" && is_older(software.ucx_version, 1, 8);
  if (profile.implementation == "open-mpi-ucx") {
    const auto posted = profile.has_old_ucx ? "mpi.shared_memory.posted_eager_limit.ucx1.7"_key
                                            : "mpi.shared_memory.posted_eager_limit"_key;
    profile.posted_inside_eager_limit = software.eager_limit.value_or(p[posted]);
  }
}

/// What a message between hosts takes of cores, copies and connections.
void set_costs(const OfLibrary& own, Profile& profile) {
  profile.overhead = own.get<"mpi.{}.overhead">();
  profile.device_check = own.get<"mpi.{}.device_check">();
  profile.device_overhead = own.get<"mpi.{}.device_overhead">();
  profile.inline_limit = own.get<"mpi.{}.inline_limit">();
  profile.eager_segment = own.get<"mpi.{}.eager_segment">();
  profile.eager_bandwidth = own.get<"mpi.{}.eager_bandwidth">();
  profile.fetch_gap = own.get<"mpi.{}.fetch_gap">();
  profile.gap_copy = own.get<"mpi.{}.gap_copy_bandwidth">();
  profile.inline_copy = own.get<"mpi.{}.inline_copy_bandwidth">();
  profile.wire_gap = own.get<"mpi.{}.wire_gap">();
  profile.staging_bandwidth = own.get<"mpi.{}.staging_bandwidth">();
  profile.eager_copy = own.get<"mpi.{}.eager_copy_bandwidth">();
  profile.rendezvous_messages = own.get<"mpi.{}.rendezvous_messages">();
  profile.message_gap = own.get<"mpi.{}.message_gap">();
  profile.flow_bandwidth = own.get<"mpi.{}.flow_bandwidth">();
  profile.rendezvous_gap = own.get<"mpi.{}.rendezvous_gap">();
  profile.rail_minimum = own.get<"mpi.{}.rail_minimum">();
}

}  // namespace

bool is_known_by_choices(const std::string& library) { return library == "mpich" || library == "intel-mpi"; }

Profile make_profile(const PlanContext& context, const Workload& workload) {
  return make_profile(context, workload, hosts_taking_part(context.topology, workload));
}

Profile make_profile(const PlanContext& context, const Workload& workload, const std::vector<int>& hosts) {
  // perftest posts verbs itself: settings of MPI libraries are not its own.
  const Software none;
  const auto& software = posts_verbs(workload) ? none : context.software;
  const auto hcas = first_adapters(context, hosts);
  auto profile = named_profile(context, workload, software, hosts, hcas);
  const OfLibrary own{context.parameters, profile.name};
  profile.max_rails = static_cast<int>(own.get<"mpi.{}.max_rails">());
  set_costs(own, profile);
  set_eager_limits(context, software, hosts, hcas, profile);
  set_inside(context.parameters, software, profile);
  profile.gpudirect_limit = software.gpudirect_limit.value_or(own.get<"mpi.{}.gpudirect_limit">());
  profile.staging_chunk = software.staging_chunk.value_or(own.get<"mpi.{}.staging_chunk">());
  profile.uses_gdrcopy = software.gdrcopy && own.get<"mpi.{}.gdrcopy">() != 0;
  profile.unpacks_by_engine = is_of_ucx(profile) && !software.gdrcopy;
  profile.reads_by_gdrcopy = profile.uses_gdrcopy && is_older(software.ucx_version, 1, 8);
  profile.is_acknowledged = own.has<"mpi.{}.acknowledged">();
  profile.has_adapter_rendezvous = own.has<"mpi.{}.rendezvous_by_adapter">();
  profile.rotates_hcas = own.get<"mpi.{}.hca_rotation">() != 0;
  profile.compares_gpus = !is_of_ucx(profile) || !is_older(software.ucx_version, 1, 10);
  profile.posts_verbs = posts_verbs(workload);
  if (profile.posts_verbs) profile.gpudirect_farthest = Distance::sys;
  return profile;
}

std::string why_untaught(const Profile& profile) {
  if (profile.name == "cray-mpich-cxi")
    return "messages over Slingshot-11 take what libfabric's CXI provider says; no log taught their times";
  if (profile.name == "open-mpi-ucx" && profile.implementation == "open-mpi-ofi")
    return "messages by libfabric over verbs take what UCX takes; no log taught their times";
  if (profile.name == k_ucx_tcp)
    return "messages by UCX over TCP follow its own rules and take what Open MPI's over TCP take; no log taught their "
           "times";
  if (profile.name == "tcp" && profile.implementation != "tcp" && profile.implementation != "open-mpi-openib")
    return fmt::format("messages by {} over TCP take what Open MPI's own transport takes; no log taught their times",
                       profile.implementation);
  return {};
}

}  // namespace fabricast::models::mpi
