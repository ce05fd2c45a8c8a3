// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "base/version.hpp"
#include "config/optional_keys.hpp"
#include "config/readers.hpp"
#include "config/schema.hpp"
#include "config/sharing.hpp"
#include "config/training.hpp"
#include "config/workload_keys.hpp"

namespace fabricast::config {

namespace {

constexpr std::size_t k_most_sizes = 10'000;

class ScenarioReader {
 public:
  explicit ScenarioReader(Diagnostics& faults) : faults_(faults) {}

  Scenario read(const Node& document, const std::string& folder) {
    folder_ = folder;
    Scenario scenario;
    scenario.name = document.find("name")->scalar;
    scenario.file = document.source->name;
    if (const auto* description = document.find("description")) scenario.description = description->scalar;
    if (const auto* topology = document.find("topology"); topology->kind == Node::Kind::scalar)
      scenario.topology_file = resolved(folder, topology->scalar);
    if (const auto* software = document.find("software")) scenario.software = read_software(*software);
    if (const auto* neighbours = document.find("host_neighbours"))
      scenario.host_neighbours = read_host_neighbours(*neighbours);
    if (const auto* files = document.find("parameters")) {
      for (const auto& file : files->items) scenario.parameter_files.push_back(resolved(folder, file.scalar));
    }
    std::vector<const Node*> nodes;
    if (const auto* workload = document.find("workload")) nodes.push_back(workload);
    if (const auto* workloads = document.find("workloads")) {
      for (const auto& one : workloads->items) nodes.push_back(&one);
      if (workloads->items.empty())
        faults_.push_back(workloads->error("'workloads' is empty", "list at least one workload"));
    }
    for (const auto* node : nodes) scenario.workloads.push_back(read_workload(*node));
    for (auto& warning : warn_of_idle_starts(nodes)) faults_.push_back(std::move(warning));
    return scenario;
  }

 private:
  Software read_software(const Node& node) {
    Software software;
    for (const auto& entry : node.entries) software.locations[entry.key.scalar] = entry.key.location();
    if (const auto* mpi = node.find("mpi")) software.mpi = mpi->scalar;
    read_size(node, "gpudirect_limit", software.gpudirect_limit);
    read_size(node, "eager_limit", software.eager_limit);
    read_size(node, "device_eager_limit", software.device_eager_limit);
    read_size(node, "staging_chunk", software.staging_chunk);
    if (software.staging_chunk && software.staging_chunk->value < 1)
      faults_.push_back(node.find("staging_chunk")->error("'staging_chunk' must be at least 1 B"));
    read_flag(node, "gpudirect_rdma", software.gpudirect_rdma);
    if (const auto* module = node.find("nv_peer_mem")) software.nv_peer_mem = module->scalar == "loaded";
    read_flag(node, "gdrcopy", software.gdrcopy);
    read_flag(node, "cross_memory_attach", software.cross_memory_attach);
    read_version(node, "cuda", "a CUDA version, e.g. \"11.4\"", software.cuda_version);
    read_version(node, "ofed", "an MLNX_OFED version, e.g. \"5.4\"", software.ofed_version);
    if (const auto* transport = node.find("transport")) software.transport = transport->scalar;
    read_version(node, "mpi_version", "a release of the MPI library, e.g. \"4.1\"", software.mpi_version);
    if (const auto* collectives = node.find("mpi_collectives")) software.mpi_collectives = collectives->scalar;
    read_version(node, "ucx", "a UCX version, e.g. \"1.12\"", software.ucx_version);
    if (const auto* nccl = node.find("nccl")) {
      read_version(*nccl, "version", "an NCCL version, e.g. \"2.18\"", software.nccl_version);
      read_flag(*nccl, "p2p", software.nccl_p2p);
      read_flag(*nccl, "shm", software.nccl_shm);
      if (const auto* nvls = nccl->find("nvls"); nvls != nullptr && nvls->scalar != "auto")
        software.nccl_nvls = as_flag(*nvls) ? NvlsSetting::on : NvlsSetting::off;
      read_flag(*nccl, "collnet", software.nccl_collnet);
      read_flag(*nccl, "symmetric_memory", software.nccl_symmetric_memory);
      for (const auto& entry : nccl->entries) software.locations["nccl." + entry.key.scalar] = entry.key.location();
      if (const auto* level = nccl->find("gdr_level")) software.nccl_gdr_level = level->scalar;
      read_pxn(*nccl, software);
      read_cross_nic(*nccl, software);
      read_plugin(*nccl, software);
      read_queue_pairs(*nccl, software);
      if (const auto* threads = nccl->find("socket_nthreads"))
        software.nccl_socket_nthreads = static_cast<int>(as_integer(*threads));
      if (const auto* sockets = nccl->find("nsocks_perthread"))
        software.nccl_nsocks_perthread = static_cast<int>(as_integer(*sockets));
    }
    return software;
  }

  /// GPUs hand over each other's data from 2.12 on.
  void read_pxn(const Node& node, Software& software) {
    const auto* pxn = node.find("pxn");
    const auto* level = node.find("p2p_pxn_level");
    if (pxn != nullptr) software.nccl_pxn = as_flag(*pxn);
    if (level != nullptr) software.nccl_p2p_pxn_level = static_cast<int>(as_integer(*level));
    const bool has_none = is_older(software.nccl_version, 2, 12);
    if (has_none && software.nccl_pxn.value_or(false))
      faults_.push_back(pxn->error(fmt::format("'pxn: on' with NCCL {}, PXN came with 2.12", software.nccl_version),
                                   "leave it out, or set a version from 2.12 on"));
    const bool is_off = has_none || !software.nccl_pxn.value_or(true);
    if (level != nullptr && is_off && *software.nccl_p2p_pxn_level > 0)
      faults_.push_back(level->error(
          fmt::format("'p2p_pxn_level: {}' needs PXN, {}", *software.nccl_p2p_pxn_level,
                      has_none ? fmt::format("NCCL {} has none", software.nccl_version) : "which is off"),
          has_none ? "leave it out, or set a version from 2.12 on" : "leave it out, or leave out 'pxn: off'"));
  }

  void read_cross_nic(const Node& node, Software& software) {
    const auto* cross = node.find("cross_nic");
    if (cross == nullptr) return;
    software.nccl_cross_nic = static_cast<int>(as_integer(*cross));
  }

  void read_queue_pairs(const Node& node, Software& software) {
    const auto* pairs = node.find("ib_qps_per_connection");
    const auto* split = node.find("ib_split_data_on_qps");
    if (pairs != nullptr) software.nccl_ib_qps = static_cast<int>(as_integer(*pairs));
    if (split != nullptr) software.nccl_ib_split_data = as_flag(*split);
    const auto fault = [&](const Node& key, const std::string& what, const char* since) {
      faults_.push_back(key.error(fmt::format("{} with NCCL {}, it came with {}", what, software.nccl_version, since),
                                  fmt::format("leave it out, or set a version from {} on", since)));
    };
    if (software.nccl_ib_qps > 1 && is_older(software.nccl_version, 2, 10))
      fault(*pairs, fmt::format("'ib_qps_per_connection: {}'", software.nccl_ib_qps), "2.10");
    if (split != nullptr && is_older(software.nccl_version, 2, 18)) fault(*split, "'ib_split_data_on_qps'", "2.18");
  }

  void read_plugin(const Node& node, Software& software) {
    const auto* plugin = node.find("plugin");
    const auto* version = node.find("plugin_version");
    if (plugin != nullptr && plugin->scalar != "auto") software.nccl_plugin = plugin->scalar;
    if (version == nullptr) return;
    software.nccl_plugin_version = version->scalar;
    if (software.nccl_plugin != "aws-ofi-nccl")
      faults_.push_back(
          version->error(fmt::format("'plugin_version' beside plugin: {}, rules by release are known of aws-ofi-nccl",
                                     software.nccl_plugin.empty() ? "auto" : software.nccl_plugin),
                         "write plugin: aws-ofi-nccl, or leave it out"));
  }

  /// Major.minor and what the vendor puts behind: "2.18.3-1".
  void read_version(const Node& node, const char* key, const char* what, std::string& into) {
    const auto* version = node.find(key);
    if (version == nullptr) return;
    const auto& text = version->scalar;
    int major = 0;
    int minor = 0;
    int used = 0;
    if (std::sscanf(text.c_str(), "%2d.%2d%n", &major, &minor, &used) != 2 || major < 1 || minor < 0 ||
        text.find_first_not_of("0123456789.-", static_cast<std::size_t>(used)) != std::string::npos) {
      faults_.push_back(
          version->error(fmt::format("'{}' must be {}, found '{}'", key, what, text), "write major.minor in quotes"));
      return;
    }
    into = text;
  }

  Workload read_workload(const Node& node) {
    Workload workload;
    workload.location = node.location();
    for (const auto& entry : node.entries) workload.given.insert(entry.key.scalar);
    workload.benchmark = *benchmark_from_name(node.find("benchmark")->scalar);
    if (const auto* name = node.find("name")) workload.name = name->scalar;
    for (auto& warning : warn_of_unread_keys(node, workload.benchmark)) faults_.push_back(std::move(warning));
    const auto find = [&](const char* key) { return find_read(node, key, workload.benchmark); };
    const auto count = [&](const char* key, std::optional<int>& into) {
      if (const auto* found = find(key)) into = static_cast<int>(as_integer(*found));
    };
    const auto integer = [&](const char* key, int& into) {
      if (const auto* found = find(key)) into = static_cast<int>(as_integer(*found));
    };
    read_gpus(node, workload);
    count("ranks", workload.ranks);
    if (workload.gpus && workload.ranks && workload.gpus != workload.ranks)
      faults_.push_back(
          node.find("ranks")->error(fmt::format("'ranks: {}' beside 'gpus: {}'", *workload.ranks, *workload.gpus),
                                    "both count the ranks, one per GPU: leave one of them out"));
    count("ranks_per_host", workload.ranks_per_host);
    count("channels", workload.channels);
    if (family_of(workload.benchmark) == BenchmarkFamily::perftest) workload.window = 128;  // perftest's tx depth
    integer("window", workload.window);
    integer("pairs", workload.pairs);
    count_pairs(node, workload);
    integer("queue_pairs", workload.queue_pairs);
    integer("root", workload.root);
    integer("streams", workload.streams);
    if (const auto* compute = find("compute")) workload.compute = from_seconds(as_quantity(*compute, Dimension::time));
    if (const auto* direction = find("direction")) {
      for (const auto one :
           {CopyDirection::to_host, CopyDirection::to_device, CopyDirection::both, CopyDirection::to_peer}) {
        if (to_string(one) == direction->scalar) workload.direction = one;
      }
    }
    if (const auto* devices = find("devices")) {
      for (const auto& device : devices->items) {
        const bool is_known = std::ranges::find(workload.devices, device.scalar) != workload.devices.end();
        // Two ranks of a message-passing test may share a GPU or a memory.
        if (is_known && !is_two_sided(workload.benchmark))
          faults_.push_back(
              device.error(fmt::format("device '{}' is named twice", device.scalar),
                           fmt::format("{} gives every rank a GPU of its own", to_string(workload.benchmark))));
        workload.devices.push_back(device.scalar);
      }
    }
    if (const auto* algorithm = find("algorithm")) workload.algorithm = algorithm->scalar;
    if (const auto* protocol = find("protocol")) workload.protocol = protocol->scalar;
    if (const auto* both = find("bidirectional")) workload.is_bidirectional = as_flag(*both);
    if (const auto* start = find("start")) workload.start = from_seconds(as_quantity(*start, Dimension::time));
    read_statistic(node, workload);
    read_launch(node, workload);
    read_traffic(node, workload);
    if (const auto* transport = find("transport")) read_transport(*transport, workload.transport);
    read_buffers(node, workload);
    read_sizes(node, workload);
    read_sharing(node, workload, faults_);
    read_training(node, folder_, workload, faults_);
    return workload;
  }

  /// OSU's tests of several pairs use all ranks that they are started with.
  void count_pairs(const Node& node, Workload& workload) {
    if (!pairs_its_ranks(workload.benchmark) || node.find("pairs") != nullptr) return;
    const auto ranks = workload.ranks ? workload.ranks : workload.gpus;
    if (!ranks) return;
    workload.pairs = std::max(1, *ranks / 2);
    if (*ranks % 2 == 0) return;
    const auto* count = node.find(workload.ranks ? "ranks" : "gpus");
    faults_.push_back(
        count->error(fmt::format("{} pairs its ranks, of {} one is left over", to_string(workload.benchmark), *ranks),
                     "write an even number, or `pairs`"));
  }

  /// A list of counts is a table of training steps; its largest is what must exist.
  void read_gpus(const Node& node, Workload& workload) {
    const auto* gpus = find_read(node, "gpus", workload.benchmark);
    if (gpus == nullptr) return;
    if (gpus->kind == Node::Kind::scalar) {
      workload.gpus = static_cast<int>(as_integer(*gpus));
      return;
    }
    if (workload.benchmark != Benchmark::training || gpus->items.empty()) {
      faults_.push_back(gpus->error(gpus->items.empty() ? "'gpus' is an empty list" : "'gpus' is a list",
                                    "write one number; the benchmark `training` takes a list, one row each"));
      return;
    }
    for (const auto& item : gpus->items)
      workload.gpus = std::max(workload.gpus.value_or(1), static_cast<int>(as_integer(item)));
  }

  void read_statistic(const Node& node, Workload& workload) {
    const auto* statistic = node.find("statistic");
    if (statistic == nullptr) return;
    if (family_of(workload.benchmark) != BenchmarkFamily::osu || !is_collective(workload.benchmark))
      faults_.push_back(statistic->error(
          fmt::format("'statistic' belongs to MPI collectives, not to {}", to_string(workload.benchmark)),
          "leave it out"));
    workload.statistic = statistic->scalar == to_string(Statistic::max) ? Statistic::max : Statistic::mean;
  }

  /// Two end points named by the user, which may be one.
  static bool is_two_sided(Benchmark benchmark) {
    const auto family = family_of(benchmark);
    return (family == BenchmarkFamily::osu || family == BenchmarkFamily::perftest) && !is_collective(benchmark);
  }

  void read_traffic(const Node& node, Workload& workload) {
    auto& traffic = workload.traffic;
    for (const auto* key : {"pattern", "senders", "local_senders", "flows"}) {
      const auto* found = node.find(key);
      if (found != nullptr && workload.benchmark != Benchmark::traffic)
        faults_.push_back(found->error(fmt::format("'{}' belongs to the benchmark `traffic`", key)));
    }
    if (const auto* pattern = node.find("pattern")) {
      for (const auto known : {TrafficPattern::flows, TrafficPattern::incast, TrafficPattern::permutation,
                               TrafficPattern::parking_lot, TrafficPattern::victim, TrafficPattern::ring_all_reduce}) {
        if (to_string(known) == pattern->scalar) traffic.pattern = known;
      }
    }
    if (const auto* senders = find_read(node, "senders", workload.benchmark))
      traffic.senders = static_cast<int>(as_integer(*senders));
    if (const auto* local = find_read(node, "local_senders", workload.benchmark))
      traffic.local_senders = static_cast<int>(as_integer(*local));
    if (const auto* flows = node.find("flows")) {
      for (const auto& one : flows->items) traffic.flows.push_back(read_flow(one));
    }
    if (workload.benchmark != Benchmark::traffic) return;
    if (traffic.flows.empty() && traffic.pattern == TrafficPattern::flows)
      faults_.push_back(node.error("traffic without flows", "give a `pattern:`, or list `flows:`"));
    if (!traffic.flows.empty() && traffic.pattern != TrafficPattern::flows)
      faults_.push_back(node.find("flows")->error("'flows' beside a pattern", "list flows, or name a pattern"));
  }

  static TrafficFlow read_flow(const Node& node) {
    TrafficFlow flow;
    flow.location = node.location();
    flow.from = node.find("from")->scalar;
    flow.to = node.find("to")->scalar;
    if (const auto* name = node.find("name")) flow.name = name->scalar;
    if (const auto* start = node.find("start")) flow.start = from_seconds(as_quantity(*start, Dimension::time));
    if (const auto* priority = node.find("priority")) flow.priority = static_cast<int>(as_integer(*priority));
    read_size(node, "bytes", flow.bytes);
    return flow;
  }

  static void read_transport(const Node& node, TransportSpec& transport) {
    if (const auto* verb = node.find("verb")) transport.verb = verb->scalar;
    if (const auto* control = node.find("congestion_control")) transport.congestion_control = control->scalar;
    if (const auto* routing = node.find("routing")) transport.routing = routing->scalar;
    if (const auto* priority = node.find("priority")) transport.priority = static_cast<int>(as_integer(*priority));
    read_size(node, "window", transport.window);
  }

  static void read_launch(const Node& node, Workload& workload) {
    const auto* launch = find_read(node, "launch", workload.benchmark);
    if (launch == nullptr) return;
    for (const auto mode :
         {LaunchMode::one_thread, LaunchMode::thread_per_gpu, LaunchMode::process_per_gpu, LaunchMode::graph}) {
      if (to_string(mode) == launch->scalar) workload.launch = mode;
    }
  }

  void read_buffers(const Node& node, Workload& workload) {
    const auto place = [](const Node& one) { return one.scalar == "device" ? BufferPlace::device : BufferPlace::host; };
    if (family_of(workload.benchmark) == BenchmarkFamily::nccl_tests)
      workload.send_buffer = workload.receive_buffer = BufferPlace::device;
    const auto* buffers = find_read(node, "buffers", workload.benchmark);
    if (buffers == nullptr) return;
    if (buffers->kind == Node::Kind::scalar) {
      workload.send_buffer = workload.receive_buffer = place(*buffers);
    } else if (buffers->items.size() == 2) {
      workload.send_buffer = place(buffers->items[0]);
      workload.receive_buffer = place(buffers->items[1]);
    } else {
      faults_.push_back(buffers->error(fmt::format("'buffers' has {} elements", buffers->items.size()),
                                       "write one word, or two: sender and receiver"));
    }
    if (family_of(workload.benchmark) == BenchmarkFamily::nccl_tests && workload.send_buffer != BufferPlace::device) {
      faults_.push_back(buffers->error("NCCL benchmarks work on device buffers", "leave 'buffers' out"));
    }
  }

  void read_sizes(const Node& node, Workload& workload) {
    const auto* sizes = node.find("sizes");
    if (sizes == nullptr) return;
    const auto bytes = [](const Node& one) { return as_size(one); };
    if (sizes->kind == Node::Kind::sequence) {
      for (const auto& one : sizes->items) workload.sizes.push_back(bytes(one));
    } else {
      const auto from = bytes(*sizes->find("from"));
      const auto to = bytes(*sizes->find("to"));
      const auto* factor = sizes->find("factor");
      const std::int64_t step = factor == nullptr ? 2 : as_integer(*factor);
      if (from > to)
        faults_.push_back(sizes->error(fmt::format("'sizes' goes from {} down to {}", to_string(from), to_string(to)),
                                       "'from' must not be above 'to'"));
      if (from.value == 0) workload.sizes.push_back(from);
      for (Bytes size{std::max<std::int64_t>(1, from.value)}; size <= to && !size.is_past_range(); size = step * size)
        workload.sizes.push_back(size);
    }
    if (workload.sizes.empty())
      faults_.push_back(
          sizes->error("'sizes' is empty", "list at least one size, or leave it out for the benchmark's own sweep"));
    if (workload.sizes.size() > k_most_sizes)
      faults_.push_back(sizes->error(
          fmt::format("'sizes' has {} elements, at most {} are accepted", workload.sizes.size(), k_most_sizes)));
  }

  std::string folder_;
  Diagnostics& faults_;
};

}  // namespace

Scenario read_scenario(const Node& document, const std::string& folder, Diagnostics& faults) {
  return ScenarioReader(faults).read(document, folder);
}

std::string resolved(const std::string& folder, const std::string& file) {
  const std::filesystem::path path(file);
  if (path.is_absolute() || folder.empty()) return file;
  return (std::filesystem::path(folder) / path).lexically_normal().string();
}

}  // namespace fabricast::config
