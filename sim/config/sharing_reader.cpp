// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdlib>

#include "config/sharing.hpp"

namespace fabricast::config {

namespace {

Duration time_of(const Node& node) { return from_seconds(as_quantity(node, Dimension::time)); }
Bytes size_of(const Node& node) { return as_size(node); }

constexpr Duration k_longest_kernel{10'000'000'000'000};
constexpr Duration k_longest_pause{1'000'000'000'000'000};

GpuSharer read_client(const Node& node, Diagnostics& faults) {
  GpuSharer client;
  client.name = node.find("name")->scalar;
  client.kernel = time_of(*node.find("kernel"));
  if (client.kernel.ps <= 0)
    faults.push_back(node.find("kernel")->error("'kernel' must be longer than 0 s", "an idle client has a long pause"));
  if (const auto* pause = node.find("pause")) client.pause = time_of(*pause);
  if (client.kernel > k_longest_kernel)
    faults.push_back(node.find("kernel")->error("'kernel' must be at most 10 s", "give the time of one operation"));
  if (client.pause > k_longest_pause)
    faults.push_back(
        node.find("pause")->error("'pause' must be at most 1000 s", "leave a client out that never computes"));
  if (const auto* variation = node.find("variation")) client.variation = as_quantity(*variation, Dimension::number);
  if (const auto* count = node.find("count")) client.count = static_cast<int>(as_integer(*count));
  return client;
}

void read_rm_pvmrl(const Node& node, GpuSharing& sharing, Diagnostics& faults) {
  const auto* setting = node.find("rm_pvmrl");
  if (setting == nullptr) return;
  char* end = nullptr;
  sharing.rm_pvmrl = std::strtoull(setting->scalar.c_str(), &end, 0);
  if (setting->scalar.empty() || *end != '\0')
    faults.push_back(setting->error(fmt::format("'rm_pvmrl' must be a number, found '{}'", setting->scalar),
                                    "write the driver's value, e.g. 0x00030001"));
  for (const auto* other : {"policy", "slice", "averaging", "strict"}) {
    if (const auto* twice = node.find(other))
      faults.push_back(twice->error(fmt::format("'{}' is part of 'rm_pvmrl'", other), "give one of the two"));
  }
}

GpuSharing read_gpu_sharing(const Node& node, Diagnostics& faults) {
  GpuSharing sharing;
  sharing.location = node.location();
  if (const auto* policy = node.find("policy")) sharing.policy = *share_policy_from_name(policy->scalar);
  if (const auto* profile = node.find("profile")) sharing.profile = profile->scalar;
  if (const auto* slice = node.find("slice")) sharing.slice = time_of(*slice);
  if (const auto* cost = node.find("switch_time")) sharing.switch_time = time_of(*cost);
  if (const auto* averaging = node.find("averaging")) sharing.averaging = static_cast<int>(as_integer(*averaging));
  if (const auto* strict = node.find("strict")) sharing.is_strict = as_flag(*strict);
  if (const auto* grain = node.find("preemption_granularity")) sharing.preemption_granularity = time_of(*grain);
  read_rm_pvmrl(node, sharing, faults);
  const auto* clients = node.find("clients");
  for (const auto& client : clients->items) sharing.clients.push_back(read_client(client, faults));
  if (sharing.clients.empty()) faults.push_back(clients->error("'clients' is empty", "list at least one client"));
  return sharing;
}

RemoteGpuCalls read_remote(const Node& node, Diagnostics& faults) {
  RemoteGpuCalls remote;
  remote.location = node.location();
  remote.compute = time_of(*node.find("compute"));
  remote.calls = as_quantity(*node.find("calls"), Dimension::number);
  if (const auto* back = node.find("from_gpu")) remote.from_gpu = size_of(*back);
  if (const auto* share = node.find("share")) remote.share = as_quantity(*share, Dimension::number);
  if (const auto* memory = node.find("memory")) remote.memory = size_of(*memory);
  if (const auto* mtu = node.find("mtu")) {
    // A plain number is bytes, as adapters print it.
    const auto dimension = parse_quantity(mtu->scalar, Dimension::number).ok ? Dimension::number : Dimension::bytes;
    const auto parsed = parse_quantity(mtu->scalar, dimension);
    if (!parsed.ok || parsed.value < 576 || parsed.value > 65536)
      faults.push_back(mtu->error(fmt::format("'mtu' must be 576 to 65536 bytes, found '{}'", mtu->scalar),
                                  "write e.g. 1500 or 9000"));
    else
      remote.mtu = static_cast<int>(parsed.value);
  }
  return remote;
}

MigrationSettings read_migration(const Node& node, Diagnostics& faults) {
  MigrationSettings migration;
  migration.location = node.location();
  if (const auto* release = node.find("release")) migration.release = release->scalar;
  if (const auto* memory = node.find("memory")) migration.memory = size_of(*memory);
  if (const auto* link = node.find("link")) {
    migration.link = {as_quantity(*link, Dimension::bandwidth)};
    if (migration.link.bytes_per_s <= 0) faults.push_back(link->error("'link' must be above 0 B/s"));
  }
  if (const auto* pvrdma = node.find("pvrdma")) migration.has_pvrdma = as_flag(*pvrdma);
  if (const auto* registered = node.find("registered")) {
    migration.registered = size_of(*registered);
    if (!migration.has_pvrdma)
      faults.push_back(registered->error("'registered' needs a PVRDMA adapter", "add `pvrdma: on`"));
  }
  const auto* vm = node.find("vm");
  const auto* to = node.find("to");
  if (vm != nullptr) migration.vm = vm->scalar;
  if (to != nullptr) migration.to = to->scalar;
  if (node.find("memory") == nullptr && vm == nullptr)
    faults.push_back(node.error("a migration needs the key 'memory'", "of the VM; or name a VM that has it: vm, to"));
  if ((vm == nullptr) != (to == nullptr))
    faults.push_back(node.error("'vm' and 'to' belong together", "name the VM, host/vm, and the host it moves to"));
  if (const auto* dirty = node.find("dirty_rate")) {
    migration.dirty_rate = {as_quantity(*dirty, Dimension::bandwidth)};
    if (vm == nullptr) faults.push_back(dirty->error("'dirty_rate' of no VM", "name the VM: vm, to"));
  }
  return migration;
}

/// A benchmark of this family without its key, or the key without its benchmark.
void check_pairing(const Node& node, const Workload& workload, Benchmark benchmark, const char* key,
                   Diagnostics& faults) {
  const auto* found = node.find(key);
  if (workload.benchmark == benchmark && found == nullptr)
    faults.push_back(
        node.error(fmt::format("{} needs the key '{}'", to_string(benchmark), key), "docs/FORMATS.md shows it"));
  if (workload.benchmark != benchmark && found != nullptr)
    faults.push_back(found->error(
        fmt::format("'{}' belongs to {}, not to {}", key, to_string(benchmark), to_string(workload.benchmark))));
}

}  // namespace

void read_sharing(const Node& node, Workload& workload, Diagnostics& faults) {
  if (const auto* sharing = node.find("sharing")) workload.sharing = read_gpu_sharing(*sharing, faults);
  if (const auto* iterations = node.find("iterations")) workload.iterations = static_cast<int>(as_integer(*iterations));
  if (const auto* remote = node.find("remote")) workload.remote = read_remote(*remote, faults);
  if (const auto* migration = node.find("migration")) workload.migration = read_migration(*migration, faults);
  check_pairing(node, workload, Benchmark::remote_gpu, "remote", faults);
  check_pairing(node, workload, Benchmark::vgpu_migration, "migration", faults);
  const bool is_nccl = family_of(workload.benchmark) == BenchmarkFamily::nccl_tests;
  if (workload.benchmark == Benchmark::gpu_sharing && !workload.sharing)
    faults.push_back(node.error("gpu_sharing needs the key 'sharing'", "list the VMs of the GPU as its clients"));
  const bool is_shared =
      is_nccl || workload.benchmark == Benchmark::gpu_sharing || workload.benchmark == Benchmark::gpu_step;
  if (workload.sharing && !is_shared)
    faults.push_back(node.find("sharing")->error(
        fmt::format("{} does not share its GPUs by time slices", to_string(workload.benchmark)),
        "use 'sharing' with gpu_sharing, gpu_step or an NCCL benchmark"));
  if (workload.benchmark == Benchmark::gpu_sharing && workload.sharing) {
    workload.sharing->is_whole_workload = true;
    if (const auto* sizes = node.find("sizes"))
      faults.push_back(sizes->error("gpu_sharing has one row per client, no sizes", "leave 'sizes' out"));
    std::int64_t clients = 0;
    for (const auto& client : workload.sharing->clients) clients += client.count;
    workload.sizes.clear();
    for (std::int64_t i = 1; i <= clients; ++i) workload.sizes.push_back({i});
  }
}

HostNeighbours read_host_neighbours(const Node& node) {
  HostNeighbours out;
  const auto integer = [&](const char* key, int& into) {
    if (const auto* found = node.find(key)) into = static_cast<int>(as_integer(*found));
  };
  integer("threads", out.threads);
  integer("vcpus", out.vcpus);
  integer("knowledge_workers", out.knowledge_workers);
  if (const auto* traffic = node.find("memory_traffic"))
    out.memory_traffic = {as_quantity(*traffic, Dimension::bandwidth)};
  if (const auto* overcommit = node.find("overcommit")) out.overcommit = as_quantity(*overcommit, Dimension::number);
  return out;
}

}  // namespace fabricast::config
