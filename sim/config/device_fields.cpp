// SPDX-License-Identifier: Apache-2.0
// The values of every kind of device: what each means, its unit, an example where models cannot do without it. Their
// ranges: base/parameter_keys.cpp.
#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "base/assert.hpp"
#include "config/lossless_schema.hpp"
#include "config/schema.hpp"
#include "config/schema_parts.hpp"

namespace fabricast::config {

namespace {

using parts::choice, parts::mapping, parts::text;

constexpr auto k_bytes = Dimension::bytes;
constexpr auto k_time = Dimension::time;
constexpr auto k_rate = Dimension::bandwidth;
constexpr auto k_number = Dimension::number;

struct Word {
  std::vector<std::string> kinds;
  Field field;
};

const std::vector<Word>& words() {
  static const std::vector<std::string> hca{"hca"};
  static const std::vector<Word> all{
      {{"gpu", "processor"}, {"vendor", text(), "of a GPU (amd: RCCL) or a processor"}},
      {{"gpu"},
       {"architecture", text(), "of a GPU: kepler to blackwell, cdna3, cdna4; others take the nearest one's values"}},
      {{"gpu"},
       {"form", choice({"pcie", "sxm", "sxm2", "sxm3", "sxm4", "sxm5", "sxm6", "oam", "superchip"}), "of a GPU"}},
      {{"processor"}, {"microarchitecture", text(), "of a processor: skylake, zen3 ..."}},
      {{"hca", "network_switch", "switch_asic"},
       {"protocol", choice({"infiniband", "ethernet", "efa", "aries"}), "of an HCA, a switch or its ASIC"}},
      {hca, {"driver", choice({"mlx5"}), "of an HCA: UCX can share its connections among peers"}},
      {hca, {"libfabric", choice({"efa", "cxi"}), "of an HCA: the provider that reaches it instead of verbs"}},
      {hca, {"nccl_plugin", choice({"tcpxo"}), "of an HCA: NCCL's plugin for it"}},
      {hca, {"plugin_since", text(), "of an HCA: first release of the libfabric plugin for it"}},
      {hca, {"line_protocols_since", text(), "of an HCA: first release of that plugin with LL and LL128"}},
      {hca, {"tuner", choice({"p5", "p5en"}), "of an HCA: whose rules that plugin's tuner takes"}},
      {{"network_switch"}, {"asic", text(), "of a switch: the ASIC whose buffers it has"}},
  };
  return all;
}

}  // namespace

std::vector<std::string> device_words(const std::string& kind) {
  std::vector<std::string> out;
  for (const auto& word : words()) {
    if (std::find(word.kinds.begin(), word.kinds.end(), kind) != word.kinds.end()) out.push_back(word.field.name);
  }
  return out;
}

SchemaPtr device_words_schema() {
  std::vector<Field> fields;
  for (const auto& word : words()) fields.push_back(word.field);
  return mapping("words of a device", std::move(fields));
}

const std::vector<DeviceField>& device_fields(const std::string& kind) {
  static const auto all = [] {
    std::map<std::string, std::vector<DeviceField>> tables{
        {"gpu",
         {{"memory", k_bytes, "device memory"},
          {"memory_bandwidth", k_rate, "of the device memory", "900 GB/s"},
          {"compute_capability", k_number, "10 x major + minor", "80"},
          {"sms", k_number, "streaming multiprocessors"},
          {"fp32_tflops", k_number, "peak"},
          {"fp64_tflops", k_number, "peak"},
          {"fp16_tflops", k_number, "peak without tensor cores"},
          {"tensor_tflops", k_number, "peak of tensor cores, dense"},
          {"pcie_generation", k_number, "of the host link", "4"},
          {"pcie_width", k_number, "lanes", "16"},
          {"nvlink_links", k_number, "NVLinks of one GPU", "12", "NVLink"},
          {"nvlink_link_bandwidth", k_rate, "per link and direction", "25 GB/s", "NVLink"},
          {"nvlink_efficiency", k_number, "share a large peer copy reaches", "0.9", "NVLink"},
          {"nvlink_latency", k_time, "of one link", "0.4 us", "NVLink"},
          {"copy_engines", k_number, "usable at once"},
          {"bar1", k_bytes, "aperture"},
          {"tdp_watts", k_number, "watts, the power limit of the board"},
          {"host_copy_efficiency", k_number, "share of the host link a pinned copy reaches"}}},
        {"hca",
         {{"rate", k_rate, "data rate of one port", "100 Gb/s"},
          {"ports", k_number, "ports in use"},
          {"pcie_generation", k_number, "of the host link", "4"},
          {"pcie_width", k_number, "lanes", "16"},
          {"latency", k_time, "one way, sending and receiving side together", "0.6 us"},
          {"message_rate", k_number, "messages per second"},
          {"mtu", k_number, "largest payload of a packet, bytes", "4096"},
          {"default_mtu", k_number, "payload of its packets where the fabric names no `mtu`; default: mtu"},
          {"packet_header", k_number, "bytes around the payload", "30"},
          {"payload_efficiency", k_number,
           "share of the data rate that large messages were seen to reach; default: packet headers only"},
          {"gpudirect_read_bandwidth", k_rate, "what the HCA reads from GPU memory; default: only its links limit it"},
          {"connection_bandwidth", k_rate,
           "what one connection reaches, when the adapter or its network limits it; default: the stack's own limit"},
          {"connection_burst", k_bytes,
           "what one connection moves so fast in a row before it slows; default: everything"},
          {"connection_sustained_bandwidth", k_rate, "its rate after that"},
          {"socket_threads", k_number,
           "helper threads that NCCL starts for each TCP connection, by the adapter's PCI vendor; default 0: its "
           "proxy"},
          {"sockets_per_thread", k_number, "TCP streams of each of them; default 1"},
          {"plugin_latency", k_time, "what NCCL's network plugin adds to a message; default: nothing"},
          {"plugin_bandwidth", k_rate, "what NCCL's network plugin moves, many messages at once; default: the port's"},
          {"plugin_store_and_forward", k_number,
           "times that a slice of Simple is complete before it moves on; default nccl.network_store_and_forward"},
          {"plugin_line_store_and_forward", k_number, "the same of LL"},
          {"plugin_process_bandwidth", k_rate,
           "what the plugin's thread of one process moves each way while it sends and receives; default: no limit"},
          {"plugin_simple_only", k_number,
           "1 when the settings that come with the plugin leave NCCL rings and trees of Simple; default 0"},
          {"plugin_tuner", k_number,
           "1 when a tuner that comes with the plugin chooses instead of NCCL's tables; default 0"},
          {"plugin_buffer_size", k_bytes,
           "NCCL's buffer by those settings; over EFA from aws-ofi-nccl 1.16 on; default nccl.buffer_size"},
          {"plugin_p2p_chunk", k_bytes,
           "its chunk of send and receive, as plugin_buffer_size; default nccl.p2p_network_chunk"},
          {"plugin_nvls_tree_chunk", k_bytes,
           "its chunk of NVLink SHARP between hosts; from aws-ofi-nccl 1.8 on; default nccl.chunk.nvls"},
          {"rails", k_number,
           "adapters that aws-ofi-nccl joins to this one; short messages take one of them; default 1"},
          {"libfabric_eager_limit", k_bytes,
           "largest message that NCCL's plugin sends at once by libfabric; the receiver reads longer ones after their "
           "header; default: all at once"},
          {"libfabric_gpu_eager_limit", k_bytes,
           "the same of messages that the adapter reads from a GPU's memory; default libfabric_eager_limit"},
          {"libfabric_immediate_limit", k_bytes,
           "largest message that libfabric's provider writes into its command, and copies out of GPU memory for it; "
           "default: none"},
          {"libfabric_copy_time", k_time, "of such a copy out of GPU memory; default 0"},
          {"libfabric_latency", k_time, "what NCCL's plugin adds to a hop by libfabric; default 0"},
          {"libfabric_message_time", k_time,
           "of NCCL's proxy for each message that it sends or receives by libfabric; default 0"},
          {"libfabric_runt", k_bytes,
           "the same where the plugin needs a libfabric that sends the begin of such a message at once (over EFA "
           "aws-ofi-nccl from 1.8 on); default libfabric_gpu_eager_limit"},
          {"libfabric_receive_copy_time", k_time,
           "of a message from libfabric's buffers to a GPU's memory: over EFA of any that is sent at once, and of the "
           "read that flushes; over CXI, by the processor, of one for which NCCL's proxy has not posted; default 0"},
          {"libfabric_window", k_bytes,
           "data of an announced MPI message that the receiver grants at a time where its adapter reads no memory, or "
           "none of that size; over EFA FI_EFA_TX_MIN_CREDITS packets; default: all of them"},
          {"libfabric_read_limit", k_bytes,
           "smallest MPI message out of host memory that the receiver's adapter reads, over EFA; default: it reads "
           "none"},
          {"plugin_reported_latency", k_time,
           "of a message, as aws-ofi-nccl reports it to NCCL's planning from 1.7 on; default 75 us"},
          {"post_gap", k_time,
           "least time between two messages that perftest posts to one queue pair; default: the stack's"},
          {"store_and_forward", k_number,
           "share of a packet's stages paid one after the other; default verbs.store_and_forward"},
          {"rdma", k_number, "1 with RDMA, 0 for TCP only"}}},
        {"network_switch",
         {{"ports", k_number, "ports", "40"},
          {"rate", k_rate, "per port", "200 Gb/s"},
          {"port_split", k_number, "cables that a splitter makes of one port, each with its part of the rate"},
          {"latency", k_time, "port to port", "130 ns"},
          {"sharp", k_number, "1: reduces streams of any size in the network (SHARP 2 and later); default 0"},
          {"buffer", k_bytes, "packet memory"},
          {"vl_buffer", k_bytes,
           "InfiniBand input buffer of one virtual lane of a port; default: what `longest_cable` needs, at least "
           "lossless.vl_buffer"},
          {"longest_cable", k_number, "metres, the longest that its maker offers for links of full rate in a fabric"},
          {"credit_update", k_time, "InfiniBand: least time between two credit updates"}}},
        {"switch_asic", asic_fields()},
        {"nvswitch",
         {{"ports", k_number, "NVLink ports", "18"},
          {"port_bandwidth", k_rate, "per port and direction", "25 GB/s"},
          {"multicast", k_number, "1: reduces and multicasts (NVLink SHARP); 0 before the third generation; default 0"},
          {"latency", k_time, "port to port", "100 ns"}}},
        {"processor",
         {{"cores", k_number, "per socket"},
          {"memory_bandwidth", k_rate, "sustained, per socket", "100 GB/s"},
          {"memory_latency", k_time, "from a core"},
          {"last_level_cache", k_bytes, "per socket; default mpi.last_level_cache"},
          {"core_cache", k_bytes, "second level, per core; default mpi.core_cache"},
          {"io_cache", k_bytes, "ways of the last-level cache that devices write to; default none"},
          {"shared_memory_copy_bandwidth", k_rate,
           "what one core copies between ranks of a host; default mpi.shared_memory.copy_bandwidth"},
          {"shared_memory_overhead", k_time, "one message between ranks of a host; default mpi.shared_memory.overhead"},
          {"socket_bandwidth", k_rate, "between two sockets, per direction", "20 GB/s", "second socket"},
          {"socket_latency", k_time, "extra of the other socket, one way", "100 ns", "second socket"},
          {"pcie_generation", k_number, "of the slots", "4"},
          {"root_complex_bandwidth", k_rate, "one root complex to the mesh, per direction", "40 GB/s"},
          {"root_complex_latency", k_time, "one pass", "150 ns"},
          {"p2p_read_bandwidth", k_rate, "peer reads through the processor"},
          {"p2p_write_bandwidth", k_rate, "peer writes through the processor"},
          {"p2p_cross_read_bandwidth", k_rate, "peer reads across sockets"},
          {"p2p_cross_write_bandwidth", k_rate, "peer writes across sockets"},
          {"translated_peer_bandwidth", k_rate,
           "peer traffic the root complexes of one socket translate for VMs, per direction"},
          {"redirected_adapter_bandwidth", k_rate, "peer reads that redirecting switches leave one adapter"},
          {"copy_in_bandwidth", k_rate, "what one memory takes from copying devices, buffers beyond caches"},
          {"copy_out_bandwidth", k_rate, "what one memory gives to copying devices"},
          {"copy_both_bandwidth", k_rate, "each way at once"},
          {"max_payload", k_number, "PCIe payload per packet, bytes", "256"},
          {"pageable_bandwidth", k_rate,
           "copies between a GPU and memory that CUDA does not know; default cuda.pageable_bandwidth"},
          {"gdrcopy_read_bandwidth", k_rate, "loads of one core from GPU memory"},
          {"gdrcopy_write_bandwidth", k_rate, "stores of one core to GPU memory"},
          {"gdrcopy_overhead", k_time,
           "what a device buffer adds to an eager message per end, with gdrcopy; default: the stack's device_overhead"},
          {"launch_interval", k_time, "one kernel launch of one thread"}}},
        {"host", {}},
    };
    for (const auto& field : dcqcn_fields()) tables["hca"].push_back(field);
    return tables;
  }();
  const auto it = all.find(kind);
  FABRICAST_ASSERT(it != all.end(), "device kind '{}'", kind);
  return it->second;
}

const std::vector<std::string>& device_kinds() {
  static const std::vector<std::string> kinds{"gpu",       "hca", "network_switch", "switch_asic", "nvswitch",
                                              "processor", "host"};
  return kinds;
}

}  // namespace fabricast::config
